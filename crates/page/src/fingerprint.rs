//! Fingerprints of pages: a hash of the bytes, and a simhash of the visible text.
//!
//! A simhash (M. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002) maps texts with many
//! common features to numbers with many common bits. The [`frontier`] compares the fingerprints.
//!
//! Features are all runs of three words. Behind the first 256 words of a text only one of four sentences counts, with four times the
//! weight: so few words in a short text make a difference, and a long text takes little time. Which ones is decided by how they begin
//! (`is_in_sample`), so the same passage has the same features on every page. A repeated feature counts once.
//!
//! Visible text is what a browser without scripts and style sheets shows, and the title: no tags, comments, scripts and styles. It is read
//! in the pass that finds the links. References such as `&amp;` stay as written, and text hidden by CSS counts. A word is a run of letters
//! and digits, with ASCII letters in lower case. An ideograph or a kana is a word of its own.
//!
//! **Runs of ASCII digits are equal**, because the pages of a trap often differ only in dates, counts and numbers:
//! - `2031` and `17` are the same word, and so are `3fa9c1` and `7fa2c8`, both `#fa#c#`.
//! - `3fa9c1` and `9bd3e2` differ, because letters count.
//! - Consecutive words of digits only count as one word, so that the number of days in a month does not matter.
//! - A word of sixteen or more letters and digits, with at least one of each, counts as "some identifier". Session
//!   names look like that; words do not.
//!
//! With another constant or rule of the simhash, pages look unlike those that an earlier version has fetched: a stored crawl finds near-duplicates
//! of new pages only. Nothing else follows: simhashes come to the frontier from outside, so neither its `LOGIC` nor a stored format changes.
//! [`content_hash`] stays as it is: crawls store its values, also of other things than pages.

use encoding_rs::UTF_8;
use frontier::{ContentHash, SimHash};
use memchr::memchr_iter;
use url::Url;
use xxhash_rust::xxh3::xxh3_128;

use crate::links::eight::{each, first_of};
use crate::links::{LinkOptions, ReadText, extract_with};

/// Minimum number of words of a text with a simhash. Shorter texts have too few features.
const MIN_WORDS: usize = 16;
/// Number of words at the start of a text that all count: more than most pages have that a template fills nearly alone.
const DENSE_WORDS: usize = 256;
/// After them, one sentence in this number counts, with this weight.
const SENTENCES_PER_SAMPLE: u64 = 4;
/// Shorter sentences are never in the sample.
const SAMPLE_BYTES: usize = 4;
/// The bit by which a lower-case letter differs.
const CASE_BIT: u8 = 0x20;
/// Shorter pieces of text between tags are not split.
const SPLIT_BYTES: usize = 64;
/// Minimum length in bytes of an identifier, which has both letters and digits, and the hash of all of them.
const IDENTIFIER_BYTES: usize = 16;
const IDENTIFIER: u64 = 0xD1B5_4A32_D192_ED03;
/// Stands for a run of digits. It is also the hash of a word of digits only.
const NUMBER: u8 = b'#';

/// What a byte of a word counts as: a letter in lower case, or the mark of a number. 0 for bytes between words.
const FOLDED: [u8; 256] = {
    let mut folded = [0; 256];
    let mut at = 0;
    while at < 256 {
        folded[at] = match at as u8 {
            b'0'..=b'9' => NUMBER,
            byte if byte.is_ascii_alphabetic() || !byte.is_ascii() => byte.to_ascii_lowercase(),
            _ => 0,
        };
        at += 1;
    }
    folded
};

/// Returns the XXH3 hash (Y. Collet, 128 bits, seed 0; not cryptographic) of a body; `None` if it is empty: such are no duplicates.
pub fn content_hash(body: &[u8]) -> Option<ContentHash> {
    (!body.is_empty()).then(|| ContentHash::from(xxh3_128(body)))
}

/// Returns the simhash of the visible text of markup; `None` for a text of fewer than 16 words. It finds the links, too: a crawl has both
/// from one pass.
pub fn simhash(markup: &str) -> Option<SimHash> {
    let mut text = TextHash::default();
    let url = Url::parse("http://simhash.invalid/").ok()?;
    extract_with(markup, UTF_8, &url, &LinkOptions::default(), &mut text);
    text.finish()
}

/// A simhash while its text is read.
pub(crate) struct TextHash {
    /// The last two words.
    last: [u64; 2],
    /// Number of words so far that count.
    words: usize,
    /// The high bits of recent features, so that a repeated one counts once: otherwise text that a page repeats a hundred times would decide
    /// alone. Features that share a slot evict each other, and may then count again.
    recent: [u16; RECENT_SLOTS],
    majority: Majority,
}

const RECENT_SLOTS: usize = 8192;

impl Default for TextHash {
    fn default() -> Self {
        Self {
            last: [0; 2],
            words: 0,
            recent: [0; RECENT_SLOTS],
            majority: Majority::default(),
        }
    }
}

impl ReadText for TextHash {
    #[inline]
    fn read(&mut self, text: &[u8]) {
        // Most runs of text between tags are empty or a line break.
        if text.len() >= SAMPLE_BYTES || self.words < DENSE_WORDS {
            self.add_run(text);
        }
    }
}

impl TextHash {
    fn add_run(&mut self, text: &[u8]) {
        if text.len() < SPLIT_BYTES {
            return self.add_sentence(text);
        }
        let is_end = |stop: &usize| text.get(stop + 1).is_some_and(u8::is_ascii_whitespace);
        let mut start = 0;
        for end in memchr_iter(b'.', text).filter(is_end).chain([text.len()]) {
            self.add_sentence(&text[start..end]);
            start = end;
        }
    }

    #[inline]
    fn add_sentence(&mut self, sentence: &[u8]) {
        if self.words < DENSE_WORDS {
            self.add_words(sentence, 1);
        } else if is_in_sample(sentence) {
            self.add_words(sentence, SENTENCES_PER_SAMPLE);
        }
    }

    fn add_words(&mut self, mut text: &[u8], weight: u64) {
        while let Some(first) = text.first() {
            let mut length = 1;
            if FOLDED[usize::from(*first)] != 0 {
                let word;
                (word, length) = first_word(text);
                self.add(word, weight);
            }
            text = &text[length..];
        }
    }

    #[inline]
    fn add(&mut self, word: u64, weight: u64) {
        let [first, second] = self.last;
        // Calendars and tables differ in how many numbers follow each other.
        if word == u64::from(NUMBER) && second == word {
            return;
        }
        self.last = [second, word];
        self.words += 1;
        if self.words >= 3 {
            let feature = mix(first.rotate_left(42)
                ^ second.rotate_left(21).wrapping_mul(GOLDEN_RATIO)
                ^ word.wrapping_mul(GOLDEN_RATIO));
            let tag = (feature >> 48) as u16;
            if std::mem::replace(&mut self.recent[feature as usize % RECENT_SLOTS], tag) != tag {
                self.majority.add(feature, weight);
            }
        }
    }

    /// `None` for a text of fewer than 16 words.
    pub(crate) fn finish(&mut self) -> Option<SimHash> {
        (self.words >= MIN_WORDS).then(|| SimHash::from(self.majority.finish()))
    }
}

/// Returns whether a sentence counts, behind the first words of a text: its first eight bytes decide; of a shorter one, its first and last four;
/// of one with digits there, its first four letters. One of fewer than four bytes never counts.
#[inline]
fn is_in_sample(sentence: &[u8]) -> bool {
    let text = sentence.trim_ascii_start();
    let four = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    let start = match (text.first_chunk(), text.first_chunk(), text.last_chunk()) {
        (Some(eight), ..) => u64::from_le_bytes(*eight) | each(CASE_BIT),
        (_, Some(first), Some(last)) => four(first) << 32 | four(last) | each(CASE_BIT),
        _ => return false,
    };
    // Digits have 3 in their high half, and so have a few other marks. Where there are some, only letters decide.
    let decides = if first_of(start & each(0xF0), [0x30]).is_some() {
        let letters = text.iter().filter(|byte| byte.is_ascii_alphabetic()).take(4);
        letters.fold(0, |start, byte| start << 8 | u64::from(byte | CASE_BIT))
    } else {
        start
    };
    mix(decides) % SENTENCES_PER_SAMPLE == 1
}

/// Returns the hash of the word that begins here, and its length.
///
/// The hash turns by seven bits with each letter, and then takes it in. So eight letters lie side by side, and are taken in at once.
#[inline]
fn first_word(text: &[u8]) -> (u64, usize) {
    let (mut hash, mut length) = (0_u64, 0);
    loop {
        let eight = first_eight(&text[length..]);
        let lower = eight | each(CASE_BIT);
        // The highest bit of each byte tells whether it is an ASCII letter.
        let low = lower & each(0x7F);
        let is_letter = (low + each(0x80 - b'a')) & !(low + each(0x7F - b'z')) & !eight;
        let letters = (!is_letter & each(0x80)).trailing_zeros() / 8;
        let bytes = lower.checked_shl(64 - 8 * letters).unwrap_or(0).swap_bytes();
        let pairs = bytes & 0x007F_007F_007F_007F | (bytes & 0x7F00_7F00_7F00_7F00) >> 1;
        let fours = pairs & 0x0000_3FFF_0000_3FFF | (pairs & 0x3FFF_0000_3FFF_0000) >> 2;
        hash = hash.rotate_left(7 * letters) ^ (fours & 0x0FFF_FFFF) ^ (fours >> 32 << 28);
        length += letters as usize;
        if letters < 8 {
            break;
        }
    }
    match text.get(length) {
        Some(next) if FOLDED[usize::from(*next)] != 0 => first_mixed_word(text),
        _ => (hash, length),
    }
}

/// Returns the first eight bytes, with zeros behind a shorter text.
#[inline]
fn first_eight(text: &[u8]) -> u64 {
    match (text.first_chunk(), text.first_chunk(), text.last_chunk()) {
        (Some(eight), ..) => u64::from_le_bytes(*eight),
        (_, Some(first), Some(last)) => {
            let [first, last] = [first, last].map(|four| u64::from(u32::from_le_bytes(*four)));
            first | last << (8 * (text.len() - 4))
        }
        _ => text.iter().rev().fold(0, |eight, byte| eight << 8 | u64::from(*byte)),
    }
}

/// Does the same for a word that has not only ASCII letters.
fn first_mixed_word(text: &[u8]) -> (u64, usize) {
    let (mut hash, mut length, mut last, mut has_digit) = (0_u64, 0, 0, false);
    for folded in text.iter().map(|byte| FOLDED[usize::from(*byte)]) {
        // The first byte of an ideograph or a kana, U+3000 to U+9FFF, begins a word.
        if folded == 0 || matches!(folded, 0xE3..=0xE9) && length > 0 {
            break;
        }
        length += 1;
        has_digit |= folded == NUMBER;
        if folded != NUMBER || last != NUMBER {
            hash = hash.rotate_left(7) ^ u64::from(folded);
        }
        last = folded;
    }
    let is_identifier = has_digit && length >= IDENTIFIER_BYTES && hash != u64::from(NUMBER);
    (if is_identifier { IDENTIFIER } else { hash }, length)
}

/// Counts, for each of 64 bit positions, how many numbers have a one there.
#[derive(Default)]
struct Majority {
    /// The counts of the latest numbers, a byte each.
    latest: [u64; 8],
    /// How many these are, at most 255, and the weight of each.
    numbers: u64,
    weight: u64,
    counts: [[u64; 8]; 8],
    total: u64,
}

/// For each byte, a number with the bits of the byte as bytes.
const SPREAD: [u64; 256] = {
    let mut spread = [0; 256];
    let mut at = 0;
    while at < 256 * 8 {
        spread[at / 8] |= (((at as u64 / 8) >> (at % 8)) & 1) << (8 * (at % 8));
        at += 1;
    }
    spread
};

impl Majority {
    #[inline]
    fn add(&mut self, number: u64, weight: u64) {
        if self.numbers == 255 || self.weight != weight {
            self.settle();
            self.weight = weight;
        }
        self.numbers += 1;
        for at in 0..8 {
            self.latest[at] += SPREAD[(number >> (8 * at)) as usize % 256];
        }
    }

    #[inline(never)]
    fn settle(&mut self) {
        for (counts, latest) in self.counts.iter_mut().zip(&mut self.latest) {
            for (count, byte) in counts.iter_mut().zip(std::mem::take(latest).to_le_bytes()) {
                *count += u64::from(byte) * self.weight;
            }
        }
        self.total += std::mem::take(&mut self.numbers) * self.weight;
    }

    fn finish(&mut self) -> u64 {
        self.settle();
        let counts = self.counts.as_flattened().iter().rev();
        counts.fold(0, |bits, count| bits << 1 | u64::from(2 * count > self.total))
    }
}

const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finalizer of MurmurHash3 (A. Appleby): every bit of the result depends on every bit of the input.
#[inline]
fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text of `count` words, which differ from each other and from those of another salt. Each tenth ends a sentence.
    fn words(count: u32, salt: u32) -> String {
        let word = |n: u32| {
            let number = mix(u64::from(n) << 32 | u64::from(salt));
            let letters = (0..7).map(|at| char::from(b'a' + (number >> (8 * at) & 15) as u8));
            letters.collect::<String>() + if n % 10 == 9 { ". " } else { " " }
        };
        (0..count).map(word).collect()
    }

    /// The simhash of a text of at least 16 words.
    #[track_caller]
    fn simhash(markup: &str) -> SimHash {
        super::simhash(markup).unwrap()
    }

    #[test]
    fn the_simhash_ignores_markup_case_and_spaces() {
        let text = words(50, 1);
        let markup = text.to_uppercase().replace(' ', " , ...</b>\n<b class='x y z'>");
        let markup = format!("<style>p > a</style>{markup}<!-- > words --><script>if (a</b>) '<p>' + more</SCRIPT >");
        assert_eq!(simhash(&markup), simhash(&text));
        assert_ne!(simhash(&format!("<strong>one more</strong> {text}")), simhash(&text));
    }

    #[test]
    fn texts_with_few_differences_are_near_and_unrelated_texts_are_not() {
        let mut near = 0;
        for salt in 0..50 {
            let text = words(2_000, salt);
            for changed in [0, 500 + 11 * salt as usize] {
                let word = text.split(' ').nth(changed).unwrap();
                let changed = simhash(&text.replacen(word, "another", 1));
                near += u32::from(simhash(&text).is_near(changed));
            }
            // The distance of texts without a common feature is binomial: 16 or less has a probability of 4e-5.
            let other = words(2_000, salt + 1_000);
            assert!(simhash(&text).distance(simhash(&other)) > 16);
            let half = text[..2_500].to_owned() + &other[2_500..];
            assert!(simhash(&text).distance(simhash(&half)) > 3, "the rest counts");
        }
        assert!(near > 75, "{near} of 100");
    }

    #[test]
    fn runs_of_digits_are_equal_and_letters_are_not() {
        // In a short text each word counts, and in a long one the sentences of the sample.
        for count in [30, 1_000] {
            let text = words(count, 1);
            let with = |word: &str| simhash(&text.replace("a ", &format!("a {word} ")));
            let equal = "2031 17, v1.2 v10.33, 12FA345C6 3fa9c1, 1-1T00:0 2-30t1:23, 9e3779b97f4a7c15 f39cc0605cedc834a1, 12345678901234567890 17";
            for (one, other) in equal.split(", ").filter_map(|pair| pair.split_once(' ')) {
                assert_eq!(with(one), with(other), "{one} and {other}");
            }
            assert_eq!(with("x1 2"), with("x7 8 9, 10/11"));
            let different =
                "3fa9c1 9bd3e2, 3fa9c1 fac, a1 1a, 1 one, x1 x1-x2, incomprehensibilities antidisestablishment";
            for (one, other) in different.split(", ").filter_map(|pair| pair.split_once(' ')) {
                assert_ne!(with(one), with(other), "{one} and {other}");
            }
        }
    }

    #[test]
    fn a_word_has_the_hash_of_its_letters_one_by_one() {
        let letters = "AbcdefghijklmnopqrstuvwxyZ";
        for (start, end) in (0..26).flat_map(|start| (start..=26).map(move |end| (start, end))) {
            for after in ["", " ", "-", "{}", "[ a", "@ab cd"] {
                let (word, text) = (&letters[start..end], letters[start..end].to_owned() + after);
                let one_by_one = |hash: u64, letter: u8| hash.rotate_left(7) ^ u64::from(letter | 0x20);
                let expected = (word.bytes().fold(0, one_by_one), word.len());
                assert_eq!(first_word(text.as_bytes()), expected, "{text}");
            }
        }
    }

    #[test]
    fn a_text_of_fewer_than_sixteen_words_has_no_simhash() {
        for (text, is_enough) in [
            (words(15, 1), false),
            (words(14, 1) + "1 2 3", false),
            ("東京都の天気予報は晴れ時々曇り".to_owned(), false),
            (words(16, 1), true),
            (words(15, 1) + "1 2 3", true),
            ("東京都の天気予報は晴れ時々曇りで".to_owned(), true),
        ] {
            assert_eq!(super::simhash(&text).is_some(), is_enough, "{text}");
        }
    }
}
