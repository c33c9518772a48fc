//! Searches the head of a page for a declared encoding, before the page is decoded.
//!
//! By the HTML standard ("changing the encoding while parsing", 13.2.3.4) the parser restarts when a `<meta>` element
//! contradicts a tentative encoding, wherever it stands. Chromium searches only the head, before it parses: up to the
//! first tag that cannot be in a head, but at least 1024 bytes. So do we. Browsers disagree about pages that declare
//! their encoding later.

use encoding_rs::Encoding;

use super::scan::text_after;
use super::tag::{Attribute, Attributes, Name, Tag, code};
use super::tokens::{self, Next, Sink};

/// Bytes that are searched even if the head ends earlier.
const UNCONDITIONAL_BYTES: usize = 1024;

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
    fn text(&mut self, _: &'a [u8]) {}

    fn raw_text(&mut self, _: &'a str) {}

    fn start_tag(&mut self, tag: &Tag<'_, 'a>) -> Next {
        match tag.name.code() {
            META => self.declared = declared_by(tag.attributes),
            HTML | HEAD => {}
            _ => self.end_tag(&tag.name),
        }
        text_after(&tag.name)
    }

    fn end_tag(&mut self, name: &Name<'a>) {
        // The list is Chromium's.
        let is_in_head = matches!(
            name.code(),
            SCRIPT | NOSCRIPT | STYLE | LINK | META | OBJECT | TITLE | BASE
        );
        self.has_ended |= !is_in_head;
    }

    fn reads_attributes_of(name: &Name<'_>) -> bool {
        name.code() == META
    }

    fn is_in_foreign_content(&self) -> bool {
        false
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

const BASE: u64 = code(b"base");
const HEAD: u64 = code(b"head");
const HTML: u64 = code(b"html");
const LINK: u64 = code(b"link");
const META: u64 = code(b"meta");
const NOSCRIPT: u64 = code(b"noscript");
const OBJECT: u64 = code(b"object");
const SCRIPT: u64 = code(b"script");
const STYLE: u64 = code(b"style");
const TITLE: u64 = code(b"title");

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
