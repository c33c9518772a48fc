//! Searches the head of a page for a declared encoding, before the page is decoded.
//!
//! By the HTML standard ("changing the encoding while parsing", 13.2.3.4) the parser restarts when a `<meta>` element
//! contradicts a tentative encoding, wherever it stands. Chromium searches only the head, before it parses: up to the
//! first tag that cannot be in a head, but at least 1024 bytes. So do we. Browsers disagree about pages that declare
//! their encoding later.

use encoding_rs::Encoding;

use super::scan::text_mode_after;
use super::tag::{Attribute, Attributes, Name, Tag};
use super::tokens::{self, Sink, TextMode};

/// Bytes that are searched even if the head ends earlier.
const UNCONDITIONAL_BYTES: usize = 1024;

/// The elements that may be in a head, as in Chromium.
const IN_HEAD: [&str; 8] = ["base", "link", "meta", "noscript", "object", "script", "style", "title"];

/// Returns the encoding of the first `<meta>` element of the head that declares a known one.
///
/// Text in comments, scripts, style sheets and titles is skipped. Costs one pass over the head.
pub(crate) fn declared_encoding(html: &str) -> Option<&'static Encoding> {
    let mut head = Head::default();
    tokens::tokenize_while(html, &mut head, |head, at| {
        let is_behind = head.has_ended && at >= UNCONDITIONAL_BYTES;
        if is_behind {
            head.declared = None;
        }
        !is_behind && head.declared.is_none()
    });
    head.declared
}

#[derive(Default)]
struct Head {
    declared: Option<&'static Encoding>,
    has_ended: bool,
}

impl<'a> Sink<'a> for Head {
    fn start_tag(&mut self, tag: &Tag<'_, 'a>) -> TextMode {
        if tag.name.is("meta") {
            self.declared = declared_by(tag.attributes);
        } else if !tag.name.is("html") && !tag.name.is("head") {
            self.end_tag(&tag.name);
        }
        text_mode_after(&tag.name)
    }

    fn end_tag(&mut self, name: &Name<'a>) {
        self.has_ended |= !IN_HEAD.iter().any(|known| name.is(known));
    }

    fn reads_attributes_of(name: &Name<'_>) -> bool {
        name.is("meta")
    }
}

/// HTML standard, the attributes of a `meta` in "prescan a byte stream" (13.2.3.2).
fn declared_by(meta: &Attributes<'_>) -> Option<&'static Encoding> {
    // If `charset` names an unknown encoding, `content` is not used instead.
    let label = match meta.raw(Attribute::Charset) {
        Some(label) => label,
        None => meta
            .raw(Attribute::Content)
            .filter(|_| {
                let pragma = meta.raw(Attribute::HttpEquiv);
                pragma.is_some_and(|pragma| pragma.eq_ignore_ascii_case("content-type"))
            })
            .and_then(label_in_content)?,
    };
    Encoding::for_label(label.as_bytes())
}

/// The standard's "extracting a character encoding from a `meta` element".
fn label_in_content(content: &str) -> Option<&str> {
    let name = "charset";
    let mut rest = content;
    loop {
        let mut places = rest.as_bytes().windows(name.len());
        let found = places.position(|window| window.eq_ignore_ascii_case(name.as_bytes()))?;
        rest = rest.get(found + name.len()..)?.trim_ascii_start();
        let Some(value) = rest.strip_prefix('=').map(str::trim_ascii_start) else {
            continue;
        };
        return match value.chars().next()? {
            quote @ ('"' | '\'') => value.get(1..)?.split_once(quote).map(|(label, _)| label),
            _ => value.split(|c: char| c.is_ascii_whitespace() || c == ';').next(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KOI8: &str = "<meta charset=koi8-r>";

    fn declared(markup: &str) -> Option<&'static str> {
        declared_encoding(markup).map(Encoding::name)
    }

    #[test]
    fn a_meta_element_declares_by_charset_or_by_pragma() {
        for page in [
            KOI8,
            "<META CHARSET = ' KOI8-R'>",
            "<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>",
            "<meta content='text/html; charset=\"koi8-r\"' http-equiv=content-type>",
            "<meta http-equiv=content-type content='charset charset = koi8-r;x'>",
            "<meta charset=koi8-r charset=utf-8>",
            "<meta content='charset=utf-8' charset=koi8-r>",
            "<meta charset=klingon><meta charset=koi8-r>",
        ] {
            assert_eq!(declared(page), Some("KOI8-R"), "{page}");
        }
        for page in [
            "<meta/charset=koi8-r/x>",
            "<meta charset=koi8-r",
            "<meta charset=\"koi8-r>",
            "<meta content='charset=koi8-r'>",
            "<meta http-equiv=content-type content='charset=\"koi8-r'>",
        ] {
            assert_eq!(declared(page), None, "{page}");
        }
    }

    #[test]
    fn the_head_ends_at_the_first_tag_that_cannot_be_in_it_but_not_in_the_first_1024_bytes() {
        let after = |markup: &str| declared(&format!("<!-- {} -->{markup}{KOI8}", "x".repeat(2_000)));
        for markup in [
            "<!doctype html><html lang=x><HEAD><title>t</title><base><link><style>p{}</style><noscript></noscript>",
            "text & text < text </> </ x> <?php ?> <![CDATA[ > <object></object>",
            "<script><!-- <script> </script> <meta charset=gbk> --></script>",
            "<title><meta charset=gbk></titles></title\n><link title='<meta charset=gbk>'>",
        ] {
            assert_eq!(after(markup), Some("KOI8-R"), "{markup}");
        }
        for markup in "<p> </p> <body> </head> <h1/> <template> <script> <plaintext>".split(' ') {
            assert_eq!(after(markup), None, "{markup}");
        }
        assert_eq!(declared(&format!("<p>{KOI8}")), Some("KOI8-R"));
    }
}
