//! Searches the first bytes of a page for a declared encoding, before any parsing.
//!
//! HTML standard, "prescan a byte stream to determine its encoding" and "get an XML encoding" (13.2.3.2). The steps are
//! followed exactly, because pages are written for browsers that do so.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::scanner::{OutOfBytes, Scanner, is_space, is_utf_16};

/// Returns the encoding of an XML declaration in UTF-16, which has a zero in every other byte.
pub(super) fn utf_16_of_xml(bytes: &[u8]) -> Option<&'static Encoding> {
    if bytes.starts_with(b"<\0?\0x\0") {
        Some(UTF_16LE)
    } else if bytes.starts_with(b"\0<\0?\0x") {
        Some(UTF_16BE)
    } else {
        None
    }
}

/// Returns the encoding that a `<meta>` element, or text that looks like one, declares in these bytes.
pub(super) fn meta_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    Prescan(Scanner { bytes, at: 0 }).meta_encoding()
}

/// The standard's "get an XML encoding". XHTML served as HTML declares its encoding in the XML declaration.
pub(super) fn xml_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let declaration = bytes.strip_prefix(b"<?xml")?;
    let declaration = declaration.get(..declaration.iter().position(|byte| *byte == b'>')?)?;
    let found = declaration
        .windows(b"encoding".len())
        .position(|window| window == b"encoding")?;
    let value = skip_control(declaration.get(found + b"encoding".len()..)?).strip_prefix(b"=")?;
    let (quote, quoted) = skip_control(value).split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let label = quoted.get(..quoted.iter().position(|byte| byte == quote)?)?;
    if label.iter().any(|byte| *byte <= b' ') {
        return None;
    }
    // The XML rule replaces UTF-16 only, not x-user-defined.
    Encoding::for_label(label).map(|encoding| if is_utf_16(encoding) { UTF_8 } else { encoding })
}

fn skip_control(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| *byte > b' ').unwrap_or(bytes.len());
    bytes.get(start..).unwrap_or_default()
}

struct Prescan<'a>(Scanner<'a>);

impl Prescan<'_> {
    fn meta_encoding(&mut self) -> Option<&'static Encoding> {
        while self.0.at < self.0.bytes.len() {
            match self.declaration_here() {
                Ok(None) => self.0.at += 1,
                Ok(found) => return found,
                Err(OutOfBytes) => return None,
            }
        }
        None
    }

    /// Examines one position, and moves to the last byte of the construct that begins there.
    fn declaration_here(&mut self) -> Result<Option<&'static Encoding>, OutOfBytes> {
        let rest = self.0.rest();
        if rest.starts_with(b"<!--") {
            // The dashes that open the comment may also close it: `<!-->` is complete.
            self.0.at += 2;
            self.0.skip_past(b"-->")?;
        } else if starts_meta(rest) {
            self.0.at += b"<meta".len();
            return self.0.meta();
        } else if starts_tag(rest) {
            while !is_space(self.0.peek()?) && self.0.peek()? != b'>' {
                self.0.at += 1;
            }
            while self.0.attribute()?.is_some() {}
        } else if matches!(rest, [b'<', b'!' | b'/' | b'?', ..]) {
            self.0.skip_past(b">")?;
        }
        Ok(None)
    }
}

fn starts_meta(bytes: &[u8]) -> bool {
    matches!(bytes, [b'<', b'm' | b'M', b'e' | b'E', b't' | b'T', b'a' | b'A', next, ..] if is_space(*next) || *next == b'/')
}

fn starts_tag(bytes: &[u8]) -> bool {
    matches!(bytes, [b'<', letter, ..] | [b'<', b'/', letter, ..] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(page: &str) -> Option<&'static str> {
        meta_encoding(page.as_bytes())
            .or_else(|| xml_encoding(page.as_bytes()))
            .map(Encoding::name)
    }

    #[test]
    fn a_meta_element_declares_by_charset_or_by_pragma() {
        for page in [
            "<meta charset=koi8-r>",
            "<META CHARSET = 'KOI8-R'>",
            "<meta/charset=koi8-r/>x>",
            "<meta\ncharset\n=\n\"koi8-r\">",
            "<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>",
            "<meta content='text/html; charset=\"koi8-r\"' http-equiv=content-type>",
            "<meta http-equiv=content-type content='charset charset = koi8-r;x'>",
            "<meta charset=koi8-r charset=utf-8>",
            "<meta content='charset=utf-8' charset=koi8-r>",
            "<!--><meta charset=koi8-r>-->",
            "<!-- <meta charset=utf-8> --><meta charset=koi8-r>",
            "<p title='<meta charset=utf-8>'><meta charset=koi8-r>",
            "</p title='<meta charset=utf-8>'><meta charset=koi8-r>",
            "<?php <meta charset=koi8-r> ?><meta charset=koi8-r>",
            "<metacharset=utf-8><meta charset=koi8-r>",
            "<meta charset=klingon><meta charset=koi8-r>",
            "<meta content='charset=utf-8'><meta charset=koi8-r>",
            "<script>'<meta charset=koi8-r>'</script>",
        ] {
            let expected = if page.starts_with("<meta/") {
                None
            } else {
                Some("KOI8-R")
            };
            assert_eq!(name(page), expected, "{page}");
        }
    }

    #[test]
    fn an_incomplete_declaration_is_ignored() {
        for page in [
            "<meta charset=koi8-r",
            "<meta charset=\"koi8-r>",
            "<!-- <meta charset=koi8-r>",
            "<p <meta charset",
        ] {
            assert_eq!(name(page), None, "{page}");
        }
        assert_eq!(name("<meta http-equiv=content-type content='charset=\"koi8-r'>"), None);
    }

    #[test]
    fn utf_16_in_a_meta_element_means_utf_8_and_x_user_defined_means_windows_1252() {
        assert_eq!(name("<meta charset=utf-16>"), Some("UTF-8"));
        assert_eq!(name("<meta charset=utf-16be>"), Some("UTF-8"));
        assert_eq!(name("<meta charset=x-user-defined>"), Some("windows-1252"));
    }

    #[test]
    fn an_xml_declaration_counts_when_no_meta_element_declares_an_encoding() {
        assert_eq!(name("<?xml version='1.0' encoding='koi8-r'?><p>"), Some("KOI8-R"));
        assert_eq!(name("<?xml version='1.0' encoding='utf-16'?><p>"), Some("UTF-8"));
        assert_eq!(name("<?xml encoding='gbk'?><meta charset=koi8-r>"), Some("KOI8-R"));
        assert_eq!(name(" <?xml encoding='gbk'?>"), None);
        assert_eq!(name("<?xml encoding='g bk'?>"), None);
    }

    #[test]
    fn an_xml_declaration_in_utf_16_is_recognized_by_its_zero_bytes() {
        assert_eq!(utf_16_of_xml(b"<\0?\0x\0m\0l\0"), Some(UTF_16LE));
        assert_eq!(utf_16_of_xml(b"\0<\0?\0x\0m\0l"), Some(UTF_16BE));
    }
}
