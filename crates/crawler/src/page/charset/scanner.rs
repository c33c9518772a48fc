//! The byte scanner of both searches for a declared encoding: tags and `<meta>` elements, before decoding.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// A position in the bytes of a page.
pub(super) struct Scanner<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

/// The name and value of an attribute, both in lower case.
type Attribute = (Vec<u8>, Vec<u8>);

/// The bytes ran out. This ends the search, because the last declaration may be incomplete.
pub(super) struct OutOfBytes;

impl<'a> Scanner<'a> {
    /// Returns the encoding that a `<meta>` element declares. Starts after its name, and stops at the end of the tag.
    ///
    /// HTML standard, the attributes of a `meta` in the prescan. Of attributes with the same name the first counts.
    pub(super) fn meta(&mut self) -> Result<Option<&'static Encoding>, OutOfBytes> {
        let mut pragma = None;
        let mut content = None;
        let mut charset = None;
        while let Some((name, value)) = self.attribute()? {
            let first = match name.as_slice() {
                b"http-equiv" => &mut pragma,
                b"content" => &mut content,
                b"charset" => &mut charset,
                _ => continue,
            };
            first.get_or_insert(value);
        }
        let declared = match charset {
            // If `charset` names an unknown encoding, `content` is not used instead.
            Some(label) => Encoding::for_label(&label),
            None => content
                .filter(|_| pragma.is_some_and(|pragma| pragma == b"content-type"))
                .and_then(|content| encoding_in_content(&content)),
        };
        Ok(declared.map(as_declared_in_ascii))
    }

    /// The standard's "get an attribute"; `None` at the end of the tag, where it stops.
    pub(super) fn attribute(&mut self) -> Result<Option<Attribute>, OutOfBytes> {
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

    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Result<u8, OutOfBytes> {
        self.bytes.get(self.at).copied().ok_or(OutOfBytes)
    }

    fn skip_space(&mut self) -> Result<(), OutOfBytes> {
        while is_space(self.peek()?) {
            self.at += 1;
        }
        Ok(())
    }

    /// Moves to the last byte of the next `end`.
    pub(super) fn skip_past(&mut self, end: &[u8]) -> Result<(), OutOfBytes> {
        let found = self.rest().windows(end.len()).position(|window| window == end);
        self.at += found.ok_or(OutOfBytes)? + end.len() - 1;
        Ok(())
    }
}

/// Returns whether a byte is white space in tags: tab, line feed, form feed, carriage return or space.
pub(super) fn is_space(byte: u8) -> bool {
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

pub(super) fn is_utf_16(encoding: &'static Encoding) -> bool {
    encoding == UTF_16LE || encoding == UTF_16BE
}

/// Replaces UTF-16 by UTF-8: a declaration that is readable as ASCII cannot be in UTF-16.
fn as_declared_in_ascii(encoding: &'static Encoding) -> &'static Encoding {
    if is_utf_16(encoding) {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}
