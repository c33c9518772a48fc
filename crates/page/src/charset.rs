//! Which encoding a body has: the encoding sniffing of the WHATWG HTML standard.
//!
//! Source of the rules: HTML, "Determining the character encoding" (13.2.3.2), and the Encoding standard for labels and
//! decoders.
//!
//! Some browsers guess the encoding of a page without a declaration from byte frequencies. We do not, because the
//! result depends on the browser.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED, mem};

use crate::links;

/// Maximum number of bytes of a page that are searched for a declaration: longer than any head.
const HEAD_BYTES: usize = 256 * 1024;

/// Most declarations stand in fewer bytes, which are searched first: the rest need not be copied for that.
const USUAL_HEAD_BYTES: usize = 4096;

/// How many bytes of a style sheet are searched, as the standard says.
const RULE_BYTES: usize = 1024;

/// A body as text, and the encoding it was read with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text without its byte order mark; borrowed if the body is UTF-8 without errors.
    pub text: Cow<'a, str>,
    /// The encoding of the body. The query strings of its links are written in it.
    pub encoding: &'static Encoding,
}

/// Decodes a body to text. Never fails: malformed bytes become U+FFFD.
///
/// The first of these that names a known encoding decides:
/// 1. the byte order mark,
/// 2. the `charset` of the Content-Type header,
/// 3. the first `<meta>` element in the head that declares a known encoding; the head ends at the first tag that cannot
///    be in it, after 1024 bytes at the earliest and 256 KiB at the latest (text of a script that looks like one is none, though
///    browsers take it for one in the first 1024 bytes),
/// 4. an XML declaration,
/// 5. UTF-8, if the body has bytes beyond ASCII and all of it is valid (the end of the body may cut a character),
/// 6. windows-1252.
///
/// A page of pure ASCII without a declaration is windows-1252, as in browsers. Its text is the same in either encoding,
/// but its links are not: `<a href="?q=&eacute;">` requests `?q=%E9`.
///
/// Costs one pass over the body, and a copy of it unless it is UTF-8.
pub fn decode<'a>(body: &'a [u8], content_type: Option<&str>) -> Decoded<'a> {
    let (encoding, mark) = Encoding::for_bom(body).unwrap_or_else(|| (declared_or_guessed(body, content_type), 0));
    let marked = body.get(mark..).unwrap_or_default();
    let (text, _) = encoding.decode_without_bom_handling(marked);
    Decoded { text, encoding }
}

/// Decodes an XML file to text.
pub(crate) fn decode_xml<'a>(body: &'a [u8], content_type: Option<&str>) -> Decoded<'a> {
    let encoding = xml_file_encoding(body, content_type);
    let (text, _) = encoding.decode_with_bom_removal(body);
    Decoded { text, encoding }
}

fn declared_or_guessed(body: &[u8], content_type: Option<&str>) -> &'static Encoding {
    content_type
        .and_then(header_charset)
        .or_else(|| declared(body))
        .unwrap_or_else(|| fallback(body))
}

/// Returns the encoding of an XML file that starts with these bytes (RFC 7303, section 3).
///
/// The first of these decides: byte order mark, `charset` of the Content-Type header, XML declaration, UTF-8.
pub(crate) fn xml_file_encoding(start: &[u8], content_type: Option<&str>) -> &'static Encoding {
    Encoding::for_bom(start)
        .map(|(encoding, _)| encoding)
        .or_else(|| content_type.and_then(header_charset))
        .or_else(|| utf_16_of_xml(start))
        .or_else(|| xml_encoding(start))
        .unwrap_or(UTF_8)
}

/// Decodes a style sheet to text (CSS Syntax Module Level 3, section 3.2).
///
/// The first of these decides: byte order mark, `charset` of the Content-Type header, `@charset` rule, UTF-8.
pub(crate) fn decode_style_sheet<'a>(body: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    let rule = || {
        let label = body.get(..RULE_BYTES).unwrap_or(body).strip_prefix(b"@charset \"")?;
        let end = label.iter().position(|byte| *byte == b'"')?;
        Encoding::for_label(label.get(..end)?).map(as_declared_in_ascii)
    };
    let encoding = content_type.and_then(header_charset).or_else(rule).unwrap_or(UTF_8);
    encoding.decode(body).0
}

fn declared(body: &[u8]) -> Option<&'static Encoding> {
    let start = body.get(..HEAD_BYTES).unwrap_or(body);
    // All encodings but UTF-16 have the markup as ASCII.
    let meta = |part: &[u8]| links::declared_encoding(&mem::decode_latin1(part)).map(as_declared_in_ascii);
    utf_16_of_xml(start)
        .or_else(|| meta(body.get(..USUAL_HEAD_BYTES)?))
        .or_else(|| meta(start))
        .or_else(|| xml_encoding(start))
}

fn utf_16_of_xml(bytes: &[u8]) -> Option<&'static Encoding> {
    if bytes.starts_with(b"<\0?\0x\0") {
        Some(UTF_16LE)
    } else if bytes.starts_with(b"\0<\0?\0x") {
        Some(UTF_16BE)
    } else {
        None
    }
}

/// The standard's "get an XML encoding". XHTML served as HTML declares its encoding in the XML declaration.
fn xml_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let declaration = bytes.strip_prefix(b"<?xml")?;
    let declaration = declaration.get(..declaration.iter().position(|byte| *byte == b'>')?)?;
    let name = b"encoding";
    let found = declaration.windows(name.len()).position(|window| window == name)?;
    let value = declaration
        .get(found + name.len()..)?
        .trim_ascii_start()
        .strip_prefix(b"=")?;
    let (quote @ (b'"' | b'\''), quoted) = value.trim_ascii_start().split_first()? else {
        return None;
    };
    let label = quoted.get(..quoted.iter().position(|byte| byte == quote)?)?;
    Encoding::for_label(label).map(as_declared_in_ascii)
}

/// Replaces UTF-16 by UTF-8: a declaration that is readable as ASCII cannot be in UTF-16.
fn as_declared_in_ascii(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16BE || encoding == UTF_16LE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

fn fallback(body: &[u8]) -> &'static Encoding {
    let valid = match std::str::from_utf8(body) {
        Ok(_) => true,
        // No error length means that the input ended inside a character: the body was truncated, not malformed.
        Err(error) => error.error_len().is_none(),
    };
    if valid && !body.is_ascii() { UTF_8 } else { WINDOWS_1252 }
}

/// Returns the encoding of the first `charset` parameter of a Content-Type. A semicolon in a quoted value is taken for its end. Some servers
/// leave the semicolon before the parameter out.
fn header_charset(content_type: &str) -> Option<&'static Encoding> {
    let after = |separator: char| {
        let mut parameters = content_type
            .split(separator)
            .skip(1)
            .filter_map(|one| one.split_once('='));
        parameters.find(|(name, _)| name.trim_ascii_start().eq_ignore_ascii_case("charset"))
    };
    let (_, label) = after(';').or_else(|| after(' '))?;
    Encoding::for_label(label.trim_ascii().trim_matches('"').as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_known_declaration_decides() {
        let after = |before: &str| format!("{before}{}<meta charset=gbk>", " ".repeat(1024)).into_bytes();
        let koi8 = |header| (b"".to_vec(), Some(header), "KOI8-R");
        for (body, header, expected) in [
            (
                b"\xEF\xBB\xBF\xC3\xA9".to_vec(),
                Some("text/html; charset=windows-1251"),
                "UTF-8",
            ),
            (b"\xFE\xFF\x00a".to_vec(), None, "UTF-16BE"),
            (b"\xFF\xFEa\x00".to_vec(), Some("text/html; charset=utf-8"), "UTF-16LE"),
            (
                b"<meta charset=utf-8>\xE9".to_vec(),
                Some("text/html; charset=iso-8859-1"),
                "windows-1252",
            ),
            koi8("text/html;charset=koi8-r"),
            koi8("text/html; Charset=\"koi8-r\""),
            koi8("text/html; charset=\"koi8-r"),
            koi8("text/html; version=1; charset=koi8-r; charset=utf-8"),
            koi8("text/html; charset= koi8-r "),
            (
                b"<meta charset=gbk>".to_vec(),
                Some("text/html; charset=klingon"),
                "GBK",
            ),
            ("é".into(), None, "UTF-8"),
            (b"\xE9t\xE9".to_vec(), None, "windows-1252"),
            (b"plain".to_vec(), None, "windows-1252"),
            // The body ends inside a character.
            (b"\xC3\xA9\xC3".to_vec(), None, "UTF-8"),
            (b"\xC3\xA9\xC3\xC3".to_vec(), None, "windows-1252"),
            // A declaration beyond the first 1024 bytes counts only in the head.
            (after("<title>x</title>"), None, "GBK"),
            (after("<p>"), None, "windows-1252"),
            (
                b"<script>'<meta charset=koi8-r>'</script><meta charset=gbk>".to_vec(),
                None,
                "GBK",
            ),
            (b"<?xml encoding='koi8-r'?><meta charset=gbk>".to_vec(), None, "GBK"),
            (b"<?xml version='1.0' encoding='koi8-r'?><p>".to_vec(), None, "KOI8-R"),
            (
                b"<?xml version='1.0' encoding = \"utf-16\"?><p>".to_vec(),
                None,
                "UTF-8",
            ),
            (b"<meta charset=utf-16be>".to_vec(), None, "UTF-8"),
            (b"<meta charset=x-user-defined>".to_vec(), None, "windows-1252"),
            (b" <?xml encoding='gbk'?>".to_vec(), None, "windows-1252"),
            (b"<?xml encoding='g bk'?>".to_vec(), None, "windows-1252"),
            (b"<\0?\0x\0m\0l\0".to_vec(), None, "UTF-16LE"),
            (b"\0<\0?\0x\0m\0l".to_vec(), None, "UTF-16BE"),
        ] {
            assert_eq!(decode(&body, header).encoding.name(), expected, "{header:?} {body:?}");
        }
    }

    #[test]
    fn text_has_no_mark_and_is_not_copied_if_it_is_utf_8() {
        assert_eq!(decode(b"\xEF\xBB\xBF\xC3\xA9", None).text, "é");
        assert_eq!(decode(b"\xFE\xFF\x00a", None).text, "a");
        assert!(matches!(decode("é".as_bytes(), None).text, Cow::Borrowed("é")));
        assert_eq!(decode(b"a\xFFb", Some("text/html; charset=utf-8")).text, "a\u{FFFD}b");
    }
}
