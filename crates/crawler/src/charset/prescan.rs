//! The search for a declared encoding in the first bytes of a page, before any parsing.
//!
//! HTML standard, "prescan a byte stream to determine its encoding" and "get an XML encoding" (13.2.3.2). The steps
//! are followed to the letter, oddities included, because pages were written against browsers that do.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// The encoding that these bytes declare, if they declare a known one.
pub(super) fn declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    if bytes.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if bytes.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    Scanner { bytes, at: 0 }.meta_encoding().or_else(|| xml_encoding(bytes))
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// An attribute's name and value, both in lower case.
type Attribute = (Vec<u8>, Vec<u8>);

/// The bytes ran out, which ends the search: what was seen so far may be half a declaration.
struct OutOfBytes;

impl Scanner<'_> {
    fn meta_encoding(&mut self) -> Option<&'static Encoding> {
        while self.at < self.bytes.len() {
            match self.declaration_here() {
                Ok(None) => self.at += 1,
                Ok(found) => return found,
                Err(OutOfBytes) => return None,
            }
        }
        None
    }

    /// Looks at one position and moves to the last byte of what begins there.
    fn declaration_here(&mut self) -> Result<Option<&'static Encoding>, OutOfBytes> {
        let rest = self.rest();
        if rest.starts_with(b"<!--") {
            // The two dashes that open the comment may also close it: `<!-->` is whole.
            self.at += 2;
            self.skip_past(b"-->")?;
        } else if starts_meta(rest) {
            self.at += b"<meta".len();
            return self.meta();
        } else if starts_tag(rest) {
            while !is_space(self.peek()?) && self.peek()? != b'>' {
                self.at += 1;
            }
            while self.attribute()?.is_some() {}
        } else if matches!(rest, [b'<', b'!' | b'/' | b'?', ..]) {
            self.skip_past(b">")?;
        }
        Ok(None)
    }

    fn meta(&mut self) -> Result<Option<&'static Encoding>, OutOfBytes> {
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut is_pragma = false;
        let mut needs_pragma = false;
        let mut encoding = None;
        while let Some((name, value)) = self.attribute()? {
            if seen.contains(&name) {
                continue;
            }
            match name.as_slice() {
                b"http-equiv" => is_pragma |= value == b"content-type",
                b"content" if encoding.is_none() => {
                    encoding = encoding_in_content(&value);
                    needs_pragma = encoding.is_some();
                }
                b"charset" => {
                    encoding = Encoding::for_label(&value);
                    needs_pragma = false;
                }
                _ => {}
            }
            seen.push(name);
        }
        Ok(encoding
            .filter(|_| is_pragma || !needs_pragma)
            .map(as_declared_in_ascii))
    }

    /// The standard's "get an attribute"; `None` at the tag's end, where it stays.
    fn attribute(&mut self) -> Result<Option<Attribute>, OutOfBytes> {
        while is_space(self.peek()?) || self.peek()? == b'/' {
            self.at += 1;
        }
        if self.peek()? == b'>' {
            return Ok(None);
        }
        let mut name = Vec::new();
        loop {
            match self.peek()? {
                b'=' if !name.is_empty() => break,
                b'/' | b'>' => return Ok(Some((name, Vec::new()))),
                byte if is_space(byte) => break,
                byte => name.push(byte.to_ascii_lowercase()),
            }
            self.at += 1;
        }
        self.skip_space()?;
        if self.peek()? != b'=' {
            return Ok(Some((name, Vec::new())));
        }
        self.at += 1;
        self.skip_space()?;
        let value = self.value()?;
        Ok(Some((name, value)))
    }

    fn value(&mut self) -> Result<Vec<u8>, OutOfBytes> {
        let quote = self.peek().map(|byte| matches!(byte, b'"' | b'\'').then_some(byte))?;
        if quote.is_some() {
            self.at += 1;
        }
        let mut value = Vec::new();
        loop {
            let byte = self.peek()?;
            match quote {
                Some(quote) if byte == quote => {
                    self.at += 1;
                    return Ok(value);
                }
                None if is_space(byte) || byte == b'>' => return Ok(value),
                _ => value.push(byte.to_ascii_lowercase()),
            }
            self.at += 1;
        }
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Result<u8, OutOfBytes> {
        self.bytes.get(self.at).copied().ok_or(OutOfBytes)
    }

    fn skip_space(&mut self) -> Result<(), OutOfBytes> {
        while is_space(self.peek()?) {
            self.at += 1;
        }
        Ok(())
    }

    /// Moves to the last byte of the next `end`.
    fn skip_past(&mut self, end: &[u8]) -> Result<(), OutOfBytes> {
        let found = self.rest().windows(end.len()).position(|window| window == end);
        self.at += found.ok_or(OutOfBytes)? + end.len() - 1;
        Ok(())
    }
}

fn starts_meta(bytes: &[u8]) -> bool {
    matches!(bytes, [b'<', b'm' | b'M', b'e' | b'E', b't' | b'T', b'a' | b'A', next, ..] if is_space(*next) || *next == b'/')
}

fn starts_tag(bytes: &[u8]) -> bool {
    matches!(bytes, [b'<', letter, ..] | [b'<', b'/', letter, ..] if letter.is_ascii_alphabetic())
}

/// Spaces of the prescan: tab, line feed, form feed, carriage return, space.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace()
}

/// The standard's "extracting a character encoding from a `meta` element"; `content` is in lower case.
fn encoding_in_content(content: &[u8]) -> Option<&'static Encoding> {
    let mut rest = content;
    loop {
        let found = rest.windows(b"charset".len()).position(|window| window == b"charset")?;
        rest = rest.get(found + b"charset".len()..)?.trim_ascii_start();
        if let Some(value) = rest.strip_prefix(b"=") {
            return Encoding::for_label(content_value(value.trim_ascii_start())?);
        }
    }
}

fn content_value(value: &[u8]) -> Option<&[u8]> {
    match value.split_first()? {
        (quote @ (b'"' | b'\''), quoted) => quoted.get(..quoted.iter().position(|byte| byte == quote)?),
        _ => value.split(|byte| is_space(*byte) || *byte == b';').next(),
    }
}

/// The standard's "get an XML encoding": XHTML served as HTML still says its encoding in the XML way.
fn xml_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
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
    // Not x-user-defined: the XML rule names only UTF-16.
    Encoding::for_label(label).map(|encoding| if is_utf_16(encoding) { UTF_8 } else { encoding })
}

fn skip_control(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| *byte > b' ').unwrap_or(bytes.len());
    bytes.get(start..).unwrap_or_default()
}

fn is_utf_16(encoding: &'static Encoding) -> bool {
    encoding == UTF_16LE || encoding == UTF_16BE
}

/// A declaration that could be read as ASCII cannot have been in UTF-16, whatever it says.
fn as_declared_in_ascii(encoding: &'static Encoding) -> &'static Encoding {
    if is_utf_16(encoding) {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(page: &str) -> Option<&'static str> {
        declared_encoding(page.as_bytes()).map(Encoding::name)
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
    fn half_a_declaration_declares_nothing() {
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
    fn an_xml_declaration_counts_when_no_meta_element_speaks() {
        assert_eq!(name("<?xml version='1.0' encoding='koi8-r'?><p>"), Some("KOI8-R"));
        assert_eq!(name("<?xml version='1.0' encoding='utf-16'?><p>"), Some("UTF-8"));
        assert_eq!(name("<?xml encoding='gbk'?><meta charset=koi8-r>"), Some("KOI8-R"));
        assert_eq!(name(" <?xml encoding='gbk'?>"), None);
        assert_eq!(name("<?xml encoding='g bk'?>"), None);
    }

    #[test]
    fn an_xml_declaration_in_utf_16_shows_by_its_zero_bytes() {
        assert_eq!(declared_encoding(b"<\0?\0x\0m\0l\0"), Some(UTF_16LE));
        assert_eq!(declared_encoding(b"\0<\0?\0x\0m\0l"), Some(UTF_16BE));
    }
}
