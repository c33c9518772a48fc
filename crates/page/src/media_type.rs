//! Media types: what a `Content-Type` says, and what a body is where it says nothing that can be used (MIME Sniffing, WHATWG).
//!
//! A body without a usable type is HTML unless it is plainly something else. That is more than the standard takes for HTML, for which text
//! without a known tag at its start is plain text: a link too many costs a request, a link too few a page.

use std::borrow::Cow;

use crate::charset;

/// The bytes at the start of a body that are looked at ("resource header").
const HEADER_BYTES: usize = 1445;
/// The same for the root element of XML, before which comments may stand.
const PROLOG_BYTES: usize = 16 * 1024;

/// What the start of files without markup is, besides bytes that no text has.
const OTHER_FILES: [&[u8]; 2] = [b"%PDF-", b"%!PS-Adobe-"];

/// What a media type says of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Html,
    Xhtml,
    Xml,
    Other,
    Nothing,
}

/// Returns the last valid value of several `Content-Type` headers, or values in one (Fetch, "extract a MIME type"); without a valid one, what
/// was sent.
pub fn last_valid(headers: &str) -> &str {
    let mut is_quoted = false;
    let parts = headers.split(|c: char| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    });
    let mut last: Option<&str> = None;
    for part in parts.filter(|part| essence(part).is_some_and(|essence| essence != "*/*")) {
        // The same type again does not revoke its charset.
        let repeats = |last: &str| essence(last) == essence(part) && last.contains(';') && !part.contains(';');
        if !last.is_some_and(repeats) {
            last = Some(part);
        }
    }
    last.unwrap_or(headers).trim()
}

/// Returns type and subtype in lower case; `None` if the value has none. What follows them counts as parameters, even without a semicolon.
pub(crate) fn essence(value: &str) -> Option<String> {
    let is_end = |c: char| matches!(c, ';' | ',') || c.is_ascii_whitespace();
    let essence = value.trim_ascii_start().split(is_end).next()?;
    let (kind, subtype) = essence.split_once('/')?;
    let is_token = |text: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !text.is_empty() && text.bytes().all(is_part)
    };
    (is_token(kind) && is_token(subtype)).then(|| essence.to_ascii_lowercase())
}

fn says(content_type: Option<&str>) -> Says {
    match content_type.and_then(essence).as_deref() {
        Some("text/html") => Says::Html,
        Some("application/xhtml+xml") => Says::Xhtml,
        None | Some("unknown/unknown" | "application/unknown" | "*/*") => Says::Nothing,
        Some("text/xml" | "application/xml") => Says::Xml,
        Some(other) if other.ends_with("+xml") => Says::Xml,
        Some(_) => Says::Other,
    }
}

/// How the markup of a page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    Html,
    /// XHTML or SVG.
    Xml,
}

/// Returns whether a body with this `Content-Type` may be HTML or XML. One without a type may.
pub fn may_be_html(content_type: Option<&str>) -> bool {
    says(content_type) != Says::Other
}

/// Returns whether a body is HTML or XHTML.
pub fn is_html(content_type: Option<&str>, body: &[u8]) -> bool {
    syntax_of(content_type, body).is_some_and(|syntax| syntax == Syntax::Html || root_of(content_type, body) != "svg")
}

/// `None` if they are not looked for in it.
pub(crate) fn syntax_of(content_type: Option<&str>, body: &[u8]) -> Option<Syntax> {
    let of_root = || matches!(&*root_of(content_type, body), "html" | "svg").then_some(Syntax::Xml);
    match says(content_type) {
        Says::Html => Some(Syntax::Html),
        Says::Xhtml => Some(Syntax::Xml),
        Says::Other => None,
        Says::Xml => of_root(),
        Says::Nothing if body.trim_ascii_start().starts_with(b"<?xml") => of_root(),
        Says::Nothing => is_text(body).then_some(Syntax::Html),
    }
}

/// Returns whether a `Content-Type` is that of a style sheet.
pub fn is_css(content_type: Option<&str>) -> bool {
    content_type
        .and_then(essence)
        .is_some_and(|essence| essence == "text/css")
}

fn is_text(body: &[u8]) -> bool {
    let start = body.get(..HEADER_BYTES).unwrap_or(body);
    let is_binary = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    let has_mark = encoding_rs::Encoding::for_bom(start).is_some();
    has_mark || !start.iter().any(is_binary) && !OTHER_FILES.iter().any(|other| start.starts_with(other))
}

pub(crate) fn root_of(content_type: Option<&str>, body: &[u8]) -> String {
    let start = body.get(..PROLOG_BYTES).unwrap_or(body);
    let text: Cow<'_, str> = charset::xml_file_encoding(start, content_type).decode(start).0;
    let is_end = |c: char| c.is_whitespace() || matches!(c, '>' | '/');
    let name = after_prolog(&text).get(1..).and_then(|tag| tag.split(is_end).next());
    let local = name.and_then(|name| name.rsplit(':').next());
    local.unwrap_or_default().to_owned()
}

/// Empty if it has none.
pub(crate) fn after_prolog(xml: &str) -> &str {
    let mut rest = xml;
    loop {
        rest = rest.find('<').and_then(|at| rest.get(at..)).unwrap_or_default();
        let end = match rest {
            _ if rest.starts_with("<!--") => "-->",
            _ if rest.starts_with("<?") => "?>",
            _ if rest.starts_with("<!") => {
                rest = after_declaration(rest);
                continue;
            }
            _ => return rest,
        };
        rest = rest.split_once(end).map_or("", |(_, after)| after);
    }
}

fn after_declaration(text: &str) -> &str {
    let mut quote = None;
    let end = text.find(|c| {
        match quote {
            Some(open) if open == c => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            _ => {}
        }
        quote.is_none() && matches!(c, '>' | '[')
    });
    end.and_then(|end| text.get(end + 1..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_types_the_last_valid_one_counts() {
        for (headers, expected) in [
            ("text/html", "text/html"),
            ("text/html,text/html", "text/html"),
            ("text/html; charset=gbk, text/html", "text/html; charset=gbk"),
            ("text/html; charset=gbk, text/plain", "text/plain"),
            ("text/plain, text/html, */*, nonsense", "text/html"),
            ("text/html; x=\"a,b/c\"", "text/html; x=\"a,b/c\""),
            ("", ""),
            (" html ", "html"),
        ] {
            assert_eq!(last_valid(headers), expected, "{headers}");
        }
    }

    #[test]
    fn html_is_told_by_its_type_or_where_that_says_nothing_by_its_bytes() {
        for html in [
            "text/html",
            "Text/HTML; charset=utf-8",
            "text/html charset=utf-8",
            "application/xhtml+xml",
        ] {
            assert!(is_html(Some(html), b"\0"), "{html}");
        }
        for other in "text/plain image/png application/pdf text/htmlx".split(' ') {
            assert!(!is_html(Some(other), b"<html>") && !may_be_html(Some(other)), "{other}");
        }
        for nothing in [
            None,
            Some(""),
            Some("html"),
            Some("text/"),
            Some("unknown/unknown"),
            Some("text/html:x"),
        ] {
            for (is, body) in [
                (true, &b" <!doctype html>"[..]),
                (true, b"a <a href=/>b</a>"),
                (true, b"<?xml version='1.0'?><html>"),
                (false, b"<?xml version='1.0'?><rss>"),
                (false, b"%PDF-1.7 <a href=/x>"),
                (false, b"\x89PNG\r\n\x1a\n\0<a href=/x>"),
                (true, b"\xff\xfe<\0p\0"),
            ] {
                assert!(
                    is_html(nothing, body) == is && may_be_html(nothing),
                    "{nothing:?} {body:?}"
                );
            }
        }
        for (is, body) in [
            (true, "<html xmlns='http://www.w3.org/1999/xhtml'/>"),
            (
                true,
                "\u{feff}<?xml version='1.0'?>\n<!-- <a> -->\n<!DOCTYPE html [<!ENTITY a '<b>'>]>\n<h:html>",
            ),
            (false, "<!-- <html> --><svg><html/></svg>"),
            (false, "<!DOCTYPE html"),
            (false, ""),
        ] {
            for xml in [
                "application/xml",
                "text/xml; charset=utf-8",
                "application/vnd.wap.xhtml+xml",
                "image/svg+xml",
            ] {
                assert!(
                    is_html(Some(xml), body.as_bytes()) == is && may_be_html(Some(xml)),
                    "{body}"
                );
            }
        }
    }
}
