//! Fingerprints of pages: a hash of the bytes, and a simhash of the visible text.
//!
//! A simhash (M. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002) maps texts with many
//! common features to numbers with many common bits. The [`frontier`] compares the fingerprints.
//!
//! Features of the first 256 words are all runs of three words. In the rest of a text only one of four words begins a feature, which weighs as
//! much as four, and is the word and those after it, up to 16 bytes. So few words in a short text make a difference, and a long text takes
//! little time. A repeated feature counts once.
//!
//! Visible text is what a browser without scripts and style sheets shows, and the title: no tags, comments, scripts and styles. It is read in the pass that finds
//! the links, or in one without a tree. References such as `&amp;` stay as written, and text hidden by CSS counts. A word is a run of letters
//! and digits, with ASCII letters in lower case. An ideograph or a kana is a word of its own.
//!
//! **Runs of ASCII digits are equal**, because the pages of a trap often differ only in dates, counts and numbers:
//! - `2031` and `17` are the same word, and so are `3fa9c1` and `7fa2c8`, both `#fa#c#`.
//! - `3fa9c1` and `9bd3e2` differ, because letters count.
//! - Consecutive words of digits only count as one word, so that the number of days in a month does not matter.
//! - A word of sixteen or more letters and digits, with at least one of each, counts as "some identifier". Session
//!   names look like that; words do not.
//! - Beyond the first 256 words, a feature ends before a word with a digit.
//!
//! Both hashes can be made to collide on purpose. That gains nothing: the same server could serve the same bytes twice.

mod majority;
mod sample;
mod words;

use std::ops::Range;

use frontier::{ContentHash, SimHash};
use xxhash_rust::xxh3::xxh3_128;

use self::majority::Majority;
use self::sample::{Sample, WORDS_PER_FEATURE_LOG2};
use self::words::{NUMBER, Words};
use crate::page::links::{ReadText, TextRun, read_text};

/// Number of consecutive words in one feature.
const SHINGLE_WORDS: usize = 3;

/// Minimum number of words of a text with a simhash. Shorter texts have too few features.
const MIN_WORDS: usize = 16;

/// Returns the XXH3 hash (Y. Collet, 128 bits, seed 0) of a decompressed body; `None` if it is empty, because empty
/// bodies are no duplicates of each other.
///
/// The hash is not cryptographic: it finds equal pages, and proves nothing.
pub fn content_hash(body: &[u8]) -> Option<ContentHash> {
    (!body.is_empty()).then(|| ContentHash::from(xxh3_128(body)))
}

/// Returns the simhash of the visible text of markup; `None` for a text of fewer than 16 words.
///
/// Never fails. Costs one pass and constant memory.
pub fn simhash(markup: &str) -> Option<SimHash> {
    let mut text = TextHash::default();
    read_text(markup, &mut text);
    text.finish()
}

/// The golden ratio as a fraction of 2⁶⁴: an odd multiplier whose bits have no pattern.
const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

/// Number of words at the start of a text that all count. It is above the length of most pages that a template fills nearly alone, such as
/// those of the Java API that list the uses of a class (142 words in the median). With 128, half as many pairs of them are found.
const DENSE_WORDS: usize = 256;

/// A simhash while its text is read.
#[derive(Default)]
pub(crate) struct TextHash {
    /// The last two words.
    last: [u64; SHINGLE_WORDS - 1],
    /// Number of words so far, at most [`DENSE_WORDS`].
    words: usize,
    recent: RecentFeatures,
    dense: Majority,
    sample: Sample,
    sampled: Majority,
}

impl ReadText for TextHash {
    #[inline]
    fn read(&mut self, text: &TextRun<'_>) {
        if self.words < DENSE_WORDS {
            self.read_words(text);
        } else {
            self.read_sample(text.markup(), text.range());
        }
    }
}

impl TextHash {
    fn read_words(&mut self, text: &TextRun<'_>) {
        let mut words = Words::new(text.markup(), text.range());
        while let Some(word) = words.next_word() {
            self.add(word);
            if self.words == DENSE_WORDS {
                self.read_sample(text.markup(), words.rest());
                return;
            }
        }
    }

    #[inline]
    fn read_sample(&mut self, markup: &[u8], run: Range<usize>) {
        let (recent, sampled) = (&mut self.recent, &mut self.sampled);
        self.sample.read(markup, run, &mut |feature| {
            sampled.add_if(feature, recent.is_new(feature));
        });
    }

    #[inline]
    fn add(&mut self, word: u64) {
        let [first, second] = self.last;
        // Calendars and tables differ in how many numbers follow each other.
        if word == NUMBER && second == NUMBER {
            return;
        }
        self.last = [second, word];
        self.words += 1;
        if self.words >= SHINGLE_WORDS {
            let feature = mix(first.rotate_left(42)
                ^ second.rotate_left(21).wrapping_mul(GOLDEN_RATIO)
                ^ word.wrapping_mul(GOLDEN_RATIO));
            self.dense.add_if(feature, self.recent.is_new(feature));
        }
    }

    /// Returns the simhash; `None` for a text of fewer than 16 words. Call it once, at the end of the text.
    pub(crate) fn finish(&mut self) -> Option<SimHash> {
        if self.words < MIN_WORDS {
            return None;
        }
        if self.words == DENSE_WORDS {
            let (recent, sampled) = (&mut self.recent, &mut self.sampled);
            self.sample
                .finish(&mut |feature| sampled.add_if(feature, recent.is_new(feature)));
            let sampled = std::mem::take(sampled);
            self.dense.add_times_power_of_two(sampled, WORDS_PER_FEATURE_LOG2);
        }
        Some(SimHash::from(std::mem::take(&mut self.dense).finish()))
    }
}

/// Recent features, so that a repeated one counts once. Otherwise text that a page repeats a hundred times would decide
/// alone.
///
/// Two features that share a slot evict each other. They may then count again.
struct RecentFeatures([u32; RECENT_SLOTS]);

/// A power of two. The table takes 32 KiB of stack, as much as the first cache of many processors.
const RECENT_SLOTS: usize = 8192;

impl Default for RecentFeatures {
    fn default() -> Self {
        Self([0; RECENT_SLOTS])
    }
}

impl RecentFeatures {
    #[inline]
    fn is_new(&mut self, feature: u64) -> bool {
        let tag = (feature >> 32) as u32;
        let slot = &mut self.0[feature as usize % RECENT_SLOTS];
        std::mem::replace(slot, tag) != tag
    }
}

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

    /// A text of `count` words, which differ from each other and from those of another salt.
    fn words(count: u32, salt: u32) -> String {
        let word = |n: u32| {
            let mut number = mix(u64::from(n) << 32 | u64::from(salt));
            let letters = (0..7).map(|_| {
                number /= 26;
                char::from(b'a' + (number % 26) as u8)
            });
            letters.collect::<String>() + " "
        };
        (0..count).map(word).collect()
    }

    /// The simhash of a text of at least 16 words.
    #[track_caller]
    fn simhash(markup: &str) -> SimHash {
        super::simhash(markup).unwrap()
    }

    #[test]
    fn the_simhash_ignores_markup_scripts_styles_comments_case_and_spaces() {
        let text = words(50, 1);
        let plain = simhash(&text);
        let (first, last) = text.split_at(text.find(' ').unwrap());
        for markup in [
            format!("<p>{}</p>", text.replace(' ', "</b>\n<b class='x y z'>")),
            format!("{first}<script>if (a</b>) {{ '<p>' + more }}</SCRIPT >{last}"),
            format!("{first}<style media=all>p > a {{ color: red }}</style>{last}"),
            format!("{first}<!-- <p>old</p> > words -->{last}"),
            format!("<!doctype html><?xml version?>{first}<br/>{last}<script>never closed {text}"),
            text.to_uppercase(),
            text.replace(' ', " , ... \t\r\n"),
        ] {
            assert_eq!(simhash(&markup), plain, "{markup}");
        }
        for other in [
            format!("{first} < more words here {last}"),
            format!("<strong>one more</strong> {text}"),
            format!("<styled>one more</styled> {text}"),
        ] {
            assert_ne!(simhash(&other), plain, "{other}");
        }
    }

    #[test]
    fn texts_with_few_differences_are_near_and_unrelated_texts_are_not() {
        for salt in 0..50 {
            let text = words(2_000, salt);
            let changed = text.replacen(words(1, salt).trim(), "another", 1);
            assert_ne!(text, changed);
            assert!(simhash(&text).is_near(simhash(&changed)), "one word of two thousand");
            // The distance of texts without a common feature is binomial: 16 or less has a probability of 4e-5.
            assert!(simhash(&text).distance(simhash(&words(2_000, salt + 1_000))) > 16);
        }
    }

    #[test]
    fn runs_of_digits_are_equal_and_letters_are_not() {
        let text = words(30, 1);
        let with = |word: &str| simhash(&format!("{text}{word} {text}"));
        for [one, other] in [
            ["2031", "17"],
            ["3fa9c1", "7fa2c8"],
            ["3fa9c1", "12FA345C6"],
            ["v1.2", "v10.33"],
            ["2031-01-05T00:00:00", "1-1-1t1:1:1"],
        ] {
            assert_eq!(with(one), with(other), "{one} and {other}");
        }
        for [one, other] in [
            ["3fa9c1", "9bd3e2"],
            ["3fa9c1", "fac"],
            ["3fa9c1", "33"],
            ["a1", "1a"],
            ["a1b", "ab1"],
            ["a1", "a"],
            ["1", "one"],
            ["1", ""],
        ] {
            assert_ne!(with(one), with(other), "{one} and {other}");
        }
    }

    #[test]
    fn identifiers_are_equal_and_long_words_are_not() {
        let text = words(30, 1);
        let with = |word: &str| simhash(&format!("{text}{word} {text}"));
        assert_eq!(with("9e3779b97f4a7c15"), with("f39cc0605cedc834a1"));
        assert_ne!(with("9e3779b97f4a7c1"), with("f39cc0605cedc83"), "too short");
        assert_ne!(with("incomprehensibilities"), with("antidisestablishment"), "no digit");
        assert_eq!(with("12345678901234567890"), with("17"), "a number");
    }

    #[test]
    fn consecutive_numbers_count_as_one_word() {
        let text = words(30, 1);
        let with = |numbers: &str| simhash(&format!("{text}{numbers} {text}"));
        assert_eq!(with("1"), with("27. 28/29 30 31"));
        assert_eq!(with("x1 2"), with("x7 8 9"));
        assert_ne!(with("x1"), with("x1 x2"), "this holds for words of digits only");
    }

    #[test]
    fn texts_that_differ_in_decimal_numbers_only_are_near() {
        let [before, after] = [words(20, 1), words(20, 2)];
        let first = simhash(&format!("{before}0 {after}page 0 of 0"));
        for n in 1..3_000 {
            let other = simhash(&format!("{before}{n} {after}page {} of {}", n * n, n + 7));
            assert_eq!(other, first, "{n}");
        }
    }

    #[test]
    fn one_in_fifty_of_short_texts_that_differ_in_a_hexadecimal_word_is_near() {
        let [before, after] = [words(20, 1), words(19, 2)];
        let text = |n: u64| format!("{before}{:08x} {after}", mix(n) as u32);
        let simhashes: Vec<_> = (1..=3_000).map(|n| simhash(&text(n))).collect();
        let near_to = |one: &SimHash| simhashes.iter().filter(|other| other.is_near(*one)).count();
        let pairs = simhashes.len() * (simhashes.len() - 1);
        let near = simhashes.iter().map(near_to).sum::<usize>() - simhashes.len();
        // Three of 38 features differ, which changes 8 bits on average. Measured: 1.8 % of all pairs are near. For one
        // of the first five texts between 16 and 174 others are near.
        assert!((pairs / 100..pairs / 33).contains(&near), "{near} of {pairs} pairs");
    }

    #[test]
    fn a_text_of_fewer_than_sixteen_words_has_no_simhash() {
        for markup in [
            "",
            "<img src=x>",
            "photo 17",
            &words(15, 1),
            &format!("{}1 2 3 4", words(14, 1)),
            "東京都の天気予報は晴れ時々曇り",
        ] {
            assert_eq!(super::simhash(markup), None, "{markup}");
        }
        for markup in [
            words(16, 1).as_str(),
            &format!("{}1 2 3 4", words(15, 1)),
            "東京都の天気予報は晴れ時々曇りで",
        ] {
            assert!(super::simhash(markup).is_some(), "{markup}");
        }
    }

    #[test]
    fn long_texts_that_differ_in_numbers_and_identifiers_are_equal() {
        let text = words(600, 1);
        let filled = |numbers: &dyn Fn(usize) -> String| {
            let words = text.split_inclusive(' ').enumerate();
            let filled = words.map(|(at, word)| {
                if at % 5 == 0 {
                    word.to_owned() + &numbers(at)
                } else {
                    word.to_owned()
                }
            });
            simhash(&filled.collect::<String>())
        };
        let numbers = |at: usize| format!("{at} ");
        assert_eq!(filled(&numbers), filled(&|at| format!("{}.{} ", at * at, 7 * at)));
        let identifier = |salt: u64| {
            move |at: usize| {
                format!(
                    "{:032x} ",
                    u128::from(mix(at as u64 ^ salt)) << 64 | u128::from(mix(salt))
                )
            }
        };
        assert_eq!(filled(&identifier(1)), filled(&identifier(2)));
        let other = words(600, 2);
        assert!(simhash(&text).distance(simhash(&other)) > 16);
        let [start, end] = [text.get(..2_500).unwrap(), other.get(2_500..).unwrap()];
        assert!(
            simhash(&text).distance(simhash(&(start.to_owned() + end))) > 3,
            "the rest counts"
        );
    }

    #[test]
    fn a_few_changes_behind_the_first_words_of_a_long_text_leave_it_near() {
        let changed = (0..50).filter(|salt| {
            let text = words(3_000, *salt);
            let (at, word) = text.split(' ').enumerate().nth(1_500 + *salt as usize).unwrap();
            assert!(at > 256);
            !simhash(&text).is_near(simhash(&text.replacen(word, "another", 1)))
        });
        assert_eq!(changed.count(), 0);
    }

    #[test]
    fn broken_markup_never_makes_a_simhash_fail() {
        let pieces = [
            "<", "</", "<!--", "<script", "<style>", ">", "é", "語", "a1", "", "<s", "</script", "\0", "&amp;",
        ];
        for a in pieces {
            for b in pieces {
                for c in pieces {
                    let _ = super::simhash(&format!("{a}{b}{c}"));
                    let _ = super::simhash(&format!("{a}{b}{c}").repeat(50));
                    let _ = super::simhash(&format!("{a}{b}{c} ").repeat(900));
                }
            }
        }
    }

    #[test]
    fn the_content_hash_equals_the_reference_implementation_of_xxh3() {
        // The 128-bit XXH3 of "a", as printed by its author's program.
        let hash = content_hash(b"a").unwrap();
        assert_eq!(hash.to_string(), "a96faf705af16834e6c632b61e964e1f");
        assert_eq!(content_hash(b""), None);
    }
}
