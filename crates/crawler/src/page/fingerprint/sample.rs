//! A sample of the features of a text, found without hashing each word.
//!
//! The classes of 64 bytes are kept as bits (G. Langdale, D. Lemire, "Parsing gigabytes of JSON per second", The VLDB
//! Journal 28(6), 2019, section 3.1), and the first three letters of a word decide whether a feature begins there. So it depends on the
//! text alone, and the same passage has the same features on every page.

use std::ops::Range;

use crate::page::bytes::{Sixteen, below};

/// How many bits, each made of the first three letters of a word, must be 1 for the word to be chosen. Each halves the share: with two, about
/// one word in four is chosen.
pub(super) const WORDS_PER_FEATURE_LOG2: usize = 2;

/// Bytes whose classes are kept in one register.
const BLOCK_BYTES: usize = 64;

/// Bytes of text in a feature: two or three words.
const WINDOW_BYTES: usize = 16;

/// Bytes from the start of a feature on that are searched for digits.
const SEEN_BYTES: usize = 32;

/// Bytes of a run that is copied at once.
const SHORT_BYTES: usize = 32;

/// Bytes of the buffer. Most text between two tags is much shorter.
const BUFFER_BYTES: usize = 2048;

/// A text that is sampled while it is read.
pub(super) struct Sample {
    /// The block that was scanned last, and the text after it, with a space behind each run.
    buffer: [u8; BUFFER_BYTES],
    filled: usize,
    last: Block,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            buffer: [b' '; BUFFER_BYTES],
            filled: BLOCK_BYTES,
            last: Block::default(),
        }
    }
}

impl Sample {
    /// Reads a run of text in the markup, which no letter and no digit follows.
    #[inline]
    pub(super) fn read(&mut self, markup: &[u8], run: Range<usize>, add: &mut impl FnMut(u64)) {
        if run.len() > SHORT_BYTES || !self.append_short(markup, &run) {
            self.read_long(markup.get(run).unwrap_or_default(), add);
        }
    }

    /// Appends a short run with bytes behind it, which later text overwrites: a copy of constant length needs no call. False where either
    /// side has no room for that.
    #[inline]
    fn append_short(&mut self, markup: &[u8], run: &Range<usize>) -> bool {
        let Some(from) = markup.get(run.start..).and_then(<[u8]>::first_chunk::<SHORT_BYTES>) else {
            return false;
        };
        let to = self.buffer.get_mut(self.filled..);
        let Some((to, behind)) = to.and_then(<[u8]>::split_first_chunk_mut::<SHORT_BYTES>) else {
            return false;
        };
        *to = *from;
        let Some(end) = to.get_mut(run.len()).or(behind.first_mut()) else {
            return false;
        };
        *end = b' ';
        self.filled += run.len() + 1;
        true
    }

    fn read_long(&mut self, mut run: &[u8], add: &mut impl FnMut(u64)) {
        while self.filled + run.len() >= BUFFER_BYTES {
            let (now, later) = run.split_at(BUFFER_BYTES - self.filled);
            self.append(now);
            self.scan(add);
            run = later;
        }
        self.append(run);
        self.append(b" ");
    }

    #[inline]
    fn append(&mut self, text: &[u8]) {
        let end = self.filled + text.len();
        self.buffer[self.filled..end].copy_from_slice(text);
        self.filled = end;
    }

    /// Scans all blocks whose features end in the buffer, and keeps the rest.
    fn scan(&mut self, add: &mut impl FnMut(u64)) {
        let mut base = BLOCK_BYTES;
        while base + BLOCK_BYTES + SEEN_BYTES <= self.filled {
            self.scan_block(base, add);
            base += BLOCK_BYTES;
        }
        let kept = base - BLOCK_BYTES;
        self.buffer.copy_within(kept..self.filled, 0);
        self.filled -= kept;
    }

    /// Scans what is left.
    pub(super) fn finish(&mut self, add: &mut impl FnMut(u64)) {
        self.scan(add);
        // Less than a block and the bytes of a feature are left beside the last block.
        self.append(&[b' '; BLOCK_BYTES + SEEN_BYTES]);
        self.scan(add);
    }

    #[inline]
    fn scan_block(&mut self, base: usize, add: &mut impl FnMut(u64)) {
        let block = self.buffer.get(base..).and_then(<[u8]>::first_chunk);
        let Some(block) = block.map(Block::of) else { return };
        let last = std::mem::replace(&mut self.last, block.clone());
        let mut third = block.third_letters(&last);
        while third != 0 {
            let start = base + third.trailing_zeros() as usize - 2;
            third &= third - 1;
            if let Some(feature) = window(&self.buffer, start) {
                add(feature);
            }
        }
    }
}

/// The classes of 64 bytes, one bit for each.
#[derive(Debug, Clone, Default)]
struct Block {
    /// ASCII letters, and all bytes that are not ASCII.
    letters: u64,
    /// ASCII digits.
    digits: u64,
    /// First bytes of characters that are words of their own.
    ideographs: u64,
    /// The two lowest bits, which are the same in both cases of an ASCII letter.
    lowest: [u64; 2],
}

impl Block {
    #[inline]
    fn of(block: &[u8; BLOCK_BYTES]) -> Self {
        let mut classes = Self::default();
        let (sixteens, _) = block.as_chunks();
        for (number, bytes) in sixteens.iter().enumerate() {
            let (bytes, place) = (Sixteen::of(bytes), 16 * number);
            classes.letters |= bytes.letters() << place;
            classes.digits |= bytes.digits() << place;
            classes.ideographs |= bytes.ideographs() << place;
            classes.lowest[0] |= bytes.with(1) << place;
            classes.lowest[1] |= bytes.with(2) << place;
        }
        classes
    }

    /// Returns the places of the third letters of the words that are chosen, given the block before.
    #[inline]
    fn third_letters(&self, last: &Self) -> u64 {
        // Shifts the bit of each byte to a later byte of the text, `places` further on.
        let before = |places: u32, now: u64, last: u64| now << places | last >> (64 - places);
        let starts = |block: &Self, before: u64| block.letters & !before | block.ideographs;
        let now = starts(self, before(1, self.letters | self.digits, last.letters | last.digits));
        // Only the last two bytes of the last block matter, so what was before that block does not.
        let earlier = starts(last, (last.letters | last.digits) << 1);
        let third = before(2, now, earlier) & before(1, self.letters, last.letters) & self.letters;
        let is_odd = |bit: usize| {
            let (now, last) = (self.lowest[bit], last.lowest[bit]);
            now ^ before(1, now, last) ^ before(2, now, last)
        };
        third & is_odd(0) & is_odd(1)
    }
}

/// Returns the hash of a window, without case and kinds of separators. It ends where a word begins that has a digit, because numbers and
/// identifiers do not matter; `None` if that is the first word.
#[inline]
fn window(text: &[u8], start: usize) -> Option<u64> {
    let bytes = text.get(start..).and_then(<[u8]>::first_chunk::<SEEN_BYTES>)?;
    let (first, second) = bytes.split_first_chunk::<WINDOW_BYTES>()?;
    let (first, second) = (Sixteen::of(first), Sixteen::of(second.first_chunk()?));
    let [mut low, mut high] = first.folded();
    let numbers = first.digits() | second.digits() << 16;
    if numbers != 0 {
        let words = numbers | first.letters() | second.letters() << 16;
        let before = !words & ((numbers & numbers.wrapping_neg()) - 1);
        let length = (u64::BITS - before.leading_zeros()) as usize;
        if length == 0 {
            return None;
        }
        low &= below(length.min(8));
        high &= below(length.saturating_sub(8).min(8));
    }
    // Both halves of one product, as in wyhash (Wang Yi, "Modern non-cryptographic hash function and pseudorandom number generator").
    let product = u128::from(low ^ SALTS[0]) * u128::from(high ^ SALTS[1]);
    Some(product as u64 ^ (product >> 64) as u64)
}

/// The fractions of the golden ratio and of the square root of two.
const SALTS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0x6A09_E667_F3BC_C908];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn features(runs: &[&str]) -> Vec<u64> {
        let mut found = Vec::new();
        let mut sample = Sample::default();
        let mut add = |feature| found.push(feature);
        // As in a page, other text stands behind most runs.
        let markup: String = runs.iter().map(|run| format!("{run}<br>")).collect();
        let mut start = 0;
        for run in runs {
            sample.read(markup.as_bytes(), start..start + run.len(), &mut add);
            start += run.len() + "<br>".len();
        }
        sample.finish(&mut add);
        found
    }

    /// The same byte after byte: the windows of all words that are chosen.
    fn one_by_one(runs: &[&str]) -> Vec<u64> {
        let mut text: Vec<u8> = runs.iter().flat_map(|run| [run.as_bytes(), b" "].concat()).collect();
        text.splice(0..0, *b" ");
        text.extend([b' '; SEEN_BYTES]);
        let is_letter = |at: usize| text[at].is_ascii_alphabetic() || !text[at].is_ascii();
        let mut found = Vec::new();
        for start in 1..text.len() - SEEN_BYTES {
            let is_start =
                !is_letter(start - 1) && !text[start - 1].is_ascii_digit() || matches!(text[start], 0xE3..=0xE9);
            let odd = text[start..start + 3].iter().fold(0, |bits, byte| bits ^ byte);
            if is_start && (start..start + 3).all(is_letter) && odd & 3 == 3 {
                found.extend(window(&text, start));
            }
        }
        found
    }

    proptest! {
        #[test]
        fn the_sample_is_that_of_each_word_alone(
            runs in proptest::collection::vec("([a-zA-Z]{0,12} |[0-9a-c]{0,5}[ .]|[a-z]{60,66}|[ .,]{0,10}|[äßжΩ語かé]{0,4}){0,20}", 0..12),
        ) {
            let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
            prop_assert_eq!(features(&runs), one_by_one(&runs));
        }
    }

    #[test]
    fn short_runs_at_the_end_of_the_buffer_are_read_as_any_others() {
        let words = "odd words of several lengths, and of one letter: a b c ".repeat(60);
        // The first run fills the buffer up to its last bytes, or beyond.
        for first in BUFFER_BYTES - BLOCK_BYTES - 2 * SHORT_BYTES..BUFFER_BYTES {
            for second in 0..=SHORT_BYTES + 2 {
                let runs = [&words[..first], &words[first..first + second], "", &words[7..400]];
                assert_eq!(features(&runs), one_by_one(&runs), "{first} and {second} bytes");
            }
        }
    }

    #[test]
    fn one_word_of_four_is_chosen() {
        for text in [
            include_str!("../../../../../ARCHITECTURE.md"),
            include_str!("../../../../../docs/promises.md"),
        ] {
            let words = text
                .split(|c: char| !c.is_alphanumeric())
                .filter(|word| word.len() >= 3)
                .count();
            let per_feature = words as f64 / features(&[text]).len() as f64;
            assert!((3.0..5.0).contains(&per_feature), "{per_feature}");
        }
    }

    /// The feature that begins with the text.
    fn of(text: &str) -> Option<u64> {
        window(format!("{text:SEEN_BYTES$}").as_bytes(), 0)
    }

    #[test]
    fn a_window_ignores_case_kinds_of_separators_and_what_follows_it() {
        assert_eq!(of("See the class of all"), of("SEE.THE\nCLASS-of us"));
        assert_ne!(of("See the class of all"), of("See the classes"));
        assert_ne!(
            of("See the class of all"),
            of("See  the class of all"),
            "each separator counts"
        );
        assert_ne!(of("sé"), of("sÉ"), "only ASCII has cases");
    }

    #[test]
    fn a_window_ends_before_a_word_with_a_digit() {
        assert_eq!(of("page 2031 of all"), of("page 17 and more"));
        assert_eq!(of("link dGhlIHF1aWNrIGJyb3duIGZveA"), of("link anVtcHMgb3ZlcnRoZWxhe"));
        assert_eq!(
            of("session kqzpwvxybnmcde7f"),
            of("session qwrtzpsdfghjkla8"),
            "the digit is behind the window"
        );
        assert_ne!(of("session 1"), of("chapter 1"));
        assert_eq!(of("abc1"), None);
    }
}
