//! Reads a tag after its `<` or `</` (13.2.5.8 and 13.2.5.32 to 13.2.5.40): its name, and then its attributes, which are read or skipped.
//!
//! Names and values end at white space or at one of a few bytes, which are given where they are read. Mostly the end is near, so eight bytes are
//! looked at together first.

use super::Tokenizer;
use crate::links::eight::first_of_or_space;
use crate::links::tag::Name;

/// What ends the name of a tag, as white space does.
pub(super) const TAG_NAME_ENDS: [u8; 2] = [b'>', b'/'];

#[inline]
pub(super) fn is_space_or<const COUNT: usize>(byte: u8, ends: [u8; COUNT]) -> bool {
    byte.is_ascii_whitespace() || ends.contains(&byte)
}

/// Those that read the rest of a tag return whether it closes itself; `None` if the input ends inside it: then there is no tag.
impl<'a> Tokenizer<'a> {
    // A call for each tag and each attribute would take a tenth of the time.
    #[inline(always)]
    pub(super) fn read_name(&mut self) -> Name<'a> {
        let start = self.at;
        self.at = self.find_end(start, TAG_NAME_ENDS).unwrap_or(self.html.len());
        Name::at(self.bytes(), start..self.at)
    }

    /// Reads attributes, and the `>` behind them.
    #[inline]
    pub(super) fn read_attributes(&mut self, keep: &mut impl FnMut(&Name<'a>, &'a str)) -> Option<bool> {
        let mut is_self_closing = false;
        loop {
            let byte = self.byte(self.at);
            match byte {
                Some(b'/') => {
                    self.at += 1;
                    is_self_closing = self.byte(self.at) == Some(b'>');
                }
                Some(b'>') => {
                    self.at += 1;
                    return Some(is_self_closing);
                }
                Some(byte) if byte.is_ascii_whitespace() => self.at += 1,
                Some(_) if self.read_attribute(keep).is_some() => {}
                Some(_) | None => {
                    self.at = self.html.len();
                    return None;
                }
            }
        }
    }

    /// Does the same for attributes that nobody reads, in less time.
    ///
    /// A `>` ends the tag, unless it is in quotes. So values in quotes are looked for, in their usual form: a name, `=` and a quote, with nothing
    /// between them. At any other `=`, [`read_attributes`](Self::read_attributes) reads what is left of the tag, from
    /// behind the last such value on: of `<p a="1>2" b = c>` from the blank before `b` on.
    #[inline]
    pub(super) fn skip_attributes(&mut self) -> Option<bool> {
        while let Some(found) = self.find_near([b'>', b'='], self.at) {
            let before = self.byte(found - 1).unwrap_or_default();
            if self.byte(found) == Some(b'>') {
                self.at = found + 1;
                return Some(before == b'/');
            }
            // Where a name begins, a `=` belongs to it.
            let begins_name = found == self.at || is_space_or(before, [b'/']);
            let Some(quote @ (b'"' | b'\'')) = self.byte(found + 1).filter(|_| !begins_name) else {
                break;
            };
            let Some(close) = self.find_near([quote], found + 2) else {
                break;
            };
            self.at = close + 1;
        }
        self.read_attributes(&mut |_, _| {})
    }

    /// `None` if the input ends inside it.
    #[inline]
    fn read_attribute(&mut self, keep: &mut impl FnMut(&Name<'a>, &'a str)) -> Option<()> {
        let start = self.at;
        // Even a `=` belongs to the name if it is the first byte.
        let name_end = self.find_end(start + 1, [b'>', b'/', b'='])?;
        self.at = name_end;
        let value = if self.skip_space()? == b'=' {
            self.at += 1;
            self.read_value()?
        } else {
            ""
        };
        keep(&Name::at(self.bytes(), start..name_end), value);
        Some(())
    }

    /// Reads the value after a `=`.
    #[inline]
    fn read_value(&mut self) -> Option<&'a str> {
        if let quote @ (b'"' | b'\'') = self.skip_space()? {
            let start = self.at + 1;
            let close = self.find_near([quote], start)?;
            self.at = close + 1;
            Some(self.slice(start, close))
        } else {
            let start = self.at;
            self.at = self.find_end(start, [b'>'])?;
            Some(self.slice(start, self.at))
        }
    }

    /// Returns the byte after white space, if there is one.
    #[inline]
    fn skip_space(&mut self) -> Option<u8> {
        loop {
            let byte = self.byte(self.at)?;
            if !byte.is_ascii_whitespace() {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    #[inline(always)]
    fn find_end<const COUNT: usize>(&self, from: usize, ends: [u8; COUNT]) -> Option<usize> {
        let near = self.eight_from(from).and_then(|eight| first_of_or_space(eight, ends));
        // Some bytes below the space are no white space.
        let near = near.filter(|place| self.byte(from + place).is_some_and(|byte| is_space_or(byte, ends)));
        let place = near.or_else(|| {
            let rest = self.bytes().get(from..)?;
            rest.iter().position(|byte| is_space_or(*byte, ends))
        });
        Some(from + place?)
    }
}
