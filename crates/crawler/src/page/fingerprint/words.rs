//! The words of a text, as hashes.
//!
//! Eight bytes are classified at once. Words with other characters than ASCII letters are read byte after byte.

use std::ops::Range;

use crate::page::bytes::{HIGH, below, digits, each, first, letters};

/// Stands for a run of digits. It is also the hash of a word of digits only.
pub(super) const NUMBER: u64 = b'#' as u64;

/// Minimum length in bytes of an identifier, which has both letters and digits.
const IDENTIFIER_BYTES: usize = 16;

/// The hash of every identifier.
const IDENTIFIER: u64 = 0xD1B5_4A32_D192_ED03;

/// The words of a range of the text. No letter or digit may follow the range.
pub(super) struct Words<'t> {
    text: &'t [u8],
    at: usize,
    end: usize,
}

impl<'t> Words<'t> {
    /// Reads the words in a range of a text. It loads eight bytes at once, also beyond the range. Near the end of the text that is slower.
    pub(super) fn new(text: &'t [u8], range: Range<usize>) -> Self {
        Self {
            text,
            at: range.start,
            end: range.end.min(text.len()),
        }
    }

    /// Returns the hash of the next word.
    #[inline]
    pub(super) fn next_word(&mut self) -> Option<u64> {
        loop {
            if self.at >= self.end {
                return None;
            }
            let bytes = self.eight_from(self.at);
            let letters = letters(bytes);
            let byte = bytes as u8;
            if letters & 0x80 != 0 || byte.is_ascii_digit() {
                // A word whose letters cancel each other out is none.
                match self.plain_word(bytes, letters).unwrap_or_else(|| self.other_word()) {
                    0 => continue,
                    word => return Some(word),
                }
            }
            self.at += first(letters | digits(bytes));
        }
    }

    /// Returns the eight bytes from a place on, with zeros behind the end.
    #[inline]
    fn eight_from(&self, at: usize) -> u64 {
        match self.text.get(at..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => self.last_bytes(at),
        }
    }

    #[cold]
    fn last_bytes(&self, at: usize) -> u64 {
        let rest = self.text.get(at..).unwrap_or_default();
        rest.iter().rev().fold(0, |bytes, byte| bytes << 8 | u64::from(*byte))
    }

    /// Returns the range that was not read yet.
    pub(super) fn rest(&self) -> Range<usize> {
        self.at.min(self.end)..self.end
    }

    /// Reads the word that begins here, if it has ASCII letters only; `None` if it has others, or none.
    #[inline]
    fn plain_word(&mut self, mut bytes: u64, mut letters: u64) -> Option<u64> {
        let (mut hash, mut end) = (0_u64, self.at);
        loop {
            let length = first(!letters & HIGH);
            if bytes & HIGH & below(length) != 0 || end == self.at && length == 0 {
                return None;
            }
            // Seven bits for each letter, the first one highest: the same as a rotation by seven and XOR for each byte.
            let word = (bytes | each(0x20)) & below(length);
            let highest_first = word.swap_bytes().checked_shr(64 - 8 * length as u32).unwrap_or(0);
            hash = hash.rotate_left(7 * length as u32) ^ seven_bits(highest_first);
            end += length;
            if length < 8 {
                let next = (bytes >> (8 * length)) as u8;
                if next.is_ascii_digit() {
                    return None;
                }
                self.at = end;
                return Some(hash);
            }
            bytes = self.eight_from(end);
            letters = crate::page::bytes::letters(bytes);
        }
    }

    /// Reads the word that begins here, byte after byte.
    fn other_word(&mut self) -> u64 {
        let start = self.at;
        let (mut hash, mut has_digit, mut is_after_digit) = (0_u64, false, false);
        for &byte in self.text.get(start..).unwrap_or_default() {
            let folded = match byte {
                b'0'..=b'9' => {
                    has_digit = true;
                    // A run of digits is one of them.
                    if std::mem::replace(&mut is_after_digit, true) {
                        self.at += 1;
                        continue;
                    }
                    NUMBER
                }
                // The first byte of an ideograph or a kana, U+3000 to U+9FFF.
                0xE3..=0xE9 if self.at > start => break,
                b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => {
                    is_after_digit = false;
                    u64::from(byte.to_ascii_lowercase())
                }
                _ => break,
            };
            hash = hash.rotate_left(7) ^ folded;
            self.at += 1;
        }
        if has_digit && hash != NUMBER && hash != 0 && self.at - start >= IDENTIFIER_BYTES {
            IDENTIFIER
        } else {
            hash
        }
    }
}

/// Puts the low seven bits of each byte side by side (H. Warren, "Hacker's Delight", 2nd edition, section 7-4). The eighth must be zero.
#[inline]
fn seven_bits(bytes: u64) -> u64 {
    let pairs = bytes & 0x007F_007F_007F_007F | (bytes & 0x7F00_7F00_7F00_7F00) >> 1;
    let fours = pairs & 0x0000_3FFF_0000_3FFF | (pairs & 0x3FFF_0000_3FFF_0000) >> 2;
    fours & 0x0000_0000_0FFF_FFFF | (fours & 0x0FFF_FFFF_0000_0000) >> 4
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The hashes of all words of a text.
    fn all(text: &str) -> Vec<u64> {
        words_in(text, 0..text.len())
    }

    fn words_in(text: &str, range: Range<usize>) -> Vec<u64> {
        let mut words = Words::new(text.as_bytes(), range);
        std::iter::from_fn(|| words.next_word()).collect()
    }

    /// The hashes of the words of a text, byte after byte: of each letter, in lower case if it is ASCII, and of one mark for each run of
    /// digits.
    fn one_by_one(text: &str) -> Vec<u64> {
        let mut words = vec![(0_u64, String::new())];
        let mut last = b' ';
        for byte in text.bytes() {
            let is_digit = byte.is_ascii_digit();
            let begins = matches!(byte, 0xE3..=0xE9) || byte.is_ascii() && !byte.is_ascii_alphanumeric();
            if begins {
                words.push((0, String::new()));
            }
            let (hash, word) = words.last_mut().unwrap();
            let folded = if is_digit { b'#' } else { byte.to_ascii_lowercase() };
            if byte.is_ascii_alphanumeric() || !byte.is_ascii() {
                word.push(char::from(byte));
                if !(is_digit && last.is_ascii_digit()) {
                    *hash = hash.rotate_left(7) ^ u64::from(folded);
                }
            }
            last = byte;
        }
        words.retain(|(hash, _)| *hash != 0);
        let is_identifier = |hash: u64, word: &str| {
            word.chars().count() >= IDENTIFIER_BYTES && hash != NUMBER && word.contains(|c: char| c.is_ascii_digit())
        };
        let hash = |(hash, word): (u64, String)| if is_identifier(hash, &word) { IDENTIFIER } else { hash };
        words.into_iter().map(hash).collect()
    }

    #[test]
    fn letters_that_cancel_each_other_out_are_no_word() {
        // A rotation by seven comes to all 64 places.
        for word in ["x".repeat(64), "c1".repeat(64)] {
            assert!(one_by_one(&word).is_empty());
            assert!(all(&word).is_empty(), "{word}");
        }
    }

    proptest! {
        #[test]
        fn words_have_the_hashes_of_their_bytes_one_by_one(
            text in "([a-zA-Z]{0,12}|[0-9a-c]{0,9}|x{60,66}|[ .,\\-/@\\[`{:\n]{0,10}|[äßжΩ語かé]{0,3}|<?){0,12}",
        ) {
            prop_assert_eq!(all(&text), one_by_one(&text));
            // What is around the text does not count.
            let within = format!("<b>{text}</b> more");
            prop_assert_eq!(words_in(&within, 3..3 + text.len()), one_by_one(&text));
        }
    }
}
