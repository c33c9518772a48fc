//! Reads a tag after its `<` or `</`: its name, and attributes, read or skipped (13.2.5.8 and 13.2.5.32 to 13.2.5.40).

use super::Tokenizer;
use crate::links::eight::{first_of, first_of_or_space};
use crate::links::tag::Name;

/// How a tag ends. If the input ends inside a tag, there is none, and the tag is ignored.
pub(super) struct TagEnd {
    pub(super) self_closing: bool,
}

impl<'a> Tokenizer<'a> {
    /// Reads the name of a tag (13.2.5.8).
    #[inline]
    pub(super) fn tag_name(&mut self) -> Name<'a> {
        let start = self.at;
        self.at = self.end_near(start, [b'>', b'/'], ENDS_TAG_NAME).unwrap_or_else(|| {
            let rest = self.bytes().get(start..).unwrap_or_default();
            let length = rest.iter().position(|byte| is(*byte, ENDS_TAG_NAME));
            start + length.unwrap_or(rest.len())
        });
        Name::at(self.bytes(), start..self.at)
    }

    /// Returns the place of the first byte of a class that has white space and these bytes, if it is among the next eight, and no other
    /// byte below the space is before it.
    #[inline]
    fn end_near<const COUNT: usize>(&self, from: usize, bytes: [u8; COUNT], class: u8) -> Option<usize> {
        let end = from + first_of_or_space(self.eight_from(from)?, bytes)?;
        self.byte(end).is_some_and(|byte| is(byte, class)).then_some(end)
    }

    /// Skips the rest of a tag after its name, with attributes that are not read, including its `>`.
    ///
    /// A `>` ends the tag, unless a value in quotes has it. Only values in their usual form are read here: a name, `=` and a quote, with
    /// nothing between them. From anything else with a `=` on, [`attributes`](Self::attributes) reads the tag.
    #[inline]
    pub(super) fn rest_of_tag(&mut self) -> Option<TagEnd> {
        let mut from = self.at;
        while let Some(eight) = self.eight_from(from) {
            let Some(place) = first_of(eight, [b'>', b'=']) else {
                from += 8;
                continue;
            };
            let found = from + place;
            let before = self.byte(found.saturating_sub(1)).unwrap_or(b' ');
            if self.byte(found) == Some(b'>') {
                self.at = found + 1;
                return Some(TagEnd {
                    self_closing: before == b'/',
                });
            }
            let Some(quote @ (b'"' | b'\'')) = self.byte(found + 1) else {
                break;
            };
            // A `=` may also begin a name, and opens no value then.
            if found == self.at || is(before, SPACE) || before == b'/' {
                break;
            }
            let Some(end) = self.find_near(quote, found + 2) else {
                break;
            };
            self.at = end + 1;
            from = self.at;
        }
        self.attributes(&mut |_, _| {})
    }

    /// Reads the rest of a tag after its name (13.2.5.32 to 13.2.5.40), including its `>`.
    #[inline]
    pub(super) fn attributes(&mut self, keep: &mut impl FnMut(&Name<'a>, &'a str)) -> Option<TagEnd> {
        let mut self_closing = false;
        let end = loop {
            match self.byte(self.at) {
                Some(b'>') => break Some(TagEnd { self_closing }),
                Some(b'/') => {
                    self.at += 1;
                    self_closing = self.byte(self.at) == Some(b'>');
                }
                Some(byte) if is(byte, SPACE) => self.at += 1,
                Some(_) => {
                    if self.attribute(keep).is_none() {
                        break None;
                    }
                }
                None => break None,
            }
        };
        self.at = if end.is_some() { self.at + 1 } else { self.html.len() };
        end
    }

    /// Reads an attribute; `None` if the input ends inside it.
    #[inline]
    fn attribute(&mut self, keep: &mut impl FnMut(&Name<'a>, &'a str)) -> Option<()> {
        let start = self.at;
        // Even a `=` belongs to the name if it is the first byte.
        let name_end = match self.end_near(start + 1, [b'>', b'/', b'='], ENDS_ATTRIBUTE_NAME) {
            Some(end) => end,
            None => {
                let rest = self.bytes().get(start + 1..)?;
                start + 1 + rest.iter().position(|byte| is(*byte, ENDS_ATTRIBUTE_NAME))?
            }
        };
        self.at = name_end;
        let value = if self.skip_space()? == b'=' {
            self.at += 1;
            self.value()?
        } else {
            ""
        };
        keep(&Name::at(self.bytes(), start..name_end), value);
        Some(())
    }

    /// Reads the value after a `=`.
    #[inline]
    fn value(&mut self) -> Option<&'a str> {
        match self.skip_space()? {
            quote @ (b'"' | b'\'') => {
                let start = self.at + 1;
                let end = self.find_near(quote, start)?;
                self.at = end + 1;
                Some(self.slice(start, end))
            }
            _ => {
                let start = self.at;
                let rest = self.bytes().get(start..)?;
                let length = rest.iter().position(|byte| is(*byte, ENDS_VALUE))?;
                self.at = start + length;
                Some(self.slice(start, self.at))
            }
        }
    }

    /// Skips white space. Returns the byte after it, if there is one.
    #[inline]
    fn skip_space(&mut self) -> Option<u8> {
        loop {
            let byte = self.byte(self.at)?;
            if !is(byte, SPACE) {
                return Some(byte);
            }
            self.at += 1;
        }
    }
}

/// White space within tags.
const SPACE: u8 = 1;
/// Ends the name of a tag.
pub(super) const ENDS_TAG_NAME: u8 = 2;
/// Ends the name of an attribute, except as its first byte.
const ENDS_ATTRIBUTE_NAME: u8 = 4;
/// Ends a value without quotes.
const ENDS_VALUE: u8 = 8;

/// The classes of each byte inside a tag: one look-up instead of up to eight comparisons.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < 256 {
        classes[at] = match at as u8 {
            byte if byte.is_ascii_whitespace() => SPACE | ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME | ENDS_VALUE,
            b'>' => ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME | ENDS_VALUE,
            b'/' => ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME,
            b'=' => ENDS_ATTRIBUTE_NAME,
            _ => 0,
        };
        at += 1;
    }
    classes
};

#[inline]
pub(super) fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}
