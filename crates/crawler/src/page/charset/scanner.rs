//! The byte scanner of both searches for a declared encoding: tags and `<meta>` elements, before decoding.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// A position in the bytes of a page.
pub(super) struct Scanner<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

/// The name and value of an attribute, as written.
type Attribute<'a> = (&'a [u8], &'a [u8]);

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
            let first = if name.eq_ignore_ascii_case(b"http-equiv") {
                &mut pragma
            } else if name.eq_ignore_ascii_case(b"content") {
                &mut content
            } else if name.eq_ignore_ascii_case(b"charset") {
                &mut charset
            } else {
                continue;
            };
            first.get_or_insert(value);
        }
        let declared = match charset {
            // If `charset` names an unknown encoding, `content` is not used instead.
            Some(label) => Encoding::for_label(label),
            None => content
                .filter(|_| pragma.is_some_and(|pragma| pragma.eq_ignore_ascii_case(b"content-type")))
                .and_then(encoding_in_content),
        };
        Ok(declared.map(as_declared_in_ascii))
    }

    /// The standard's "get an attribute"; `None` at the end of the tag, where it stops.
    pub(super) fn attribute(&mut self) -> Result<Option<Attribute<'a>>, OutOfBytes> {
        self.skip(|byte| is_space(byte) || byte == b'/')?;
        if self.peek()? == b'>' {
            return Ok(None);
        }
        let mut is_first = true;
        // An equals sign may begin a name.
        let name = self.skip(|byte| {
            let is_in_name = !is_space(byte) && !matches!(byte, b'/' | b'>') && (is_first || byte != b'=');
            is_first = false;
            is_in_name
        })?;
        if matches!(self.peek()?, b'/' | b'>') {
            return Ok(Some((name, b"")));
        }
        self.skip(is_space)?;
        if self.peek()? != b'=' {
            return Ok(Some((name, b"")));
        }
        self.at += 1;
        self.skip(is_space)?;
        Ok(Some((name, self.value()?)))
    }

    fn value(&mut self) -> Result<&'a [u8], OutOfBytes> {
        match self.peek()? {
            quote @ (b'"' | b'\'') => {
                self.at += 1;
                let value = self.skip(|byte| byte != quote)?;
                self.at += 1;
                Ok(value)
            }
            _ => self.skip(|byte| !is_space(byte) && byte != b'>'),
        }
    }

    /// Moves to the first byte that is not skipped, and returns those that are.
    fn skip(&mut self, mut is_skipped: impl FnMut(u8) -> bool) -> Result<&'a [u8], OutOfBytes> {
        let rest = self.rest();
        let length = rest.iter().position(|byte| !is_skipped(*byte)).ok_or(OutOfBytes)?;
        self.at += length;
        rest.get(..length).ok_or(OutOfBytes)
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Result<u8, OutOfBytes> {
        self.bytes.get(self.at).copied().ok_or(OutOfBytes)
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

/// The standard's "extracting a character encoding from a `meta` element".
fn encoding_in_content(content: &[u8]) -> Option<&'static Encoding> {
    let mut rest = content;
    loop {
        let mut places = rest.windows(b"charset".len());
        let found = places.position(|window| window.eq_ignore_ascii_case(b"charset"))?;
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
