//! Checks the spelling of a text against Debian's list of American words, in two bytes per word.
//!
//! The filter accepts every word of the list, and about one in a thousand of other words. The example measures this with misspellings:
//! every word of the text with two neighbouring letters swapped.
//!
//! `cargo run -p crawl-sieve --example spell_checker -- /usr/share/common-licenses/GPL-3 /usr/share/dict/american-english`; these are the
//! defaults. Its output:
//!
//! ```text
//! 104334 words in 205568 bytes, the list has 985084
//! unknown words: {"Affero": 3, "GPL": 7, "MERCHANTABILITY": 2, "Sublicensing": 1, "WIPO": 1, "copyrightable": 1, …
//! of 6796 misspellings the filter passed 7: ["PAPLICABLE", "Prpoagation", "SREVICING", "expliictly", "muts", "rPogram", "rpevious"]
//! ```

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use sieve::BloomFilter;

const TEXT: &str = "/usr/share/common-licenses/GPL-3";
const WORDS: &str = "/usr/share/dict/american-english";

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_alphabetic() && letter != '\'');
    words.map(|word| word.trim_matches('\'')).filter(|word| word.len() > 1)
}

/// Returns whether a word is correct, as it is or in lower case, because it may begin a sentence or be in a heading.
fn is_known(word: &str, list: impl Fn(&str) -> bool) -> bool {
    list(word) || list(&word.to_lowercase())
}

fn misspelt(word: &str) -> impl Iterator<Item = String> {
    let letters: Vec<char> = word.chars().collect();
    (1..letters.len()).map(move |at| {
        let mut letters = letters.clone();
        letters.swap(at - 1, at);
        letters.into_iter().collect()
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let text_path = arguments.next().unwrap_or_else(|| TEXT.to_owned());
    let words_path = arguments.next().unwrap_or_else(|| WORDS.to_owned());
    for (path, package) in [(&text_path, "base-files"), (&words_path, "wamerican")] {
        if !Path::new(path).exists() {
            println!("There is no {path}: give another, or `apt-get install {package}`.");
            return Ok(());
        }
    }
    let (text, list) = (fs::read_to_string(text_path)?, fs::read_to_string(words_path)?);

    let mut known = BloomFilter::new(list.lines().count() as u64, 0.001)?;
    for word in list.lines() {
        known.insert(word.as_bytes());
    }
    println!(
        "{} words in {} bytes, the list has {}",
        list.lines().count(),
        known.sizing().memory_bytes(),
        list.len()
    );

    let mut unknown: BTreeMap<&str, u32> = BTreeMap::new();
    for word in words_of(&text) {
        if !is_known(word, |word| known.contains(word.as_bytes())) {
            *unknown.entry(word).or_default() += 1;
        }
    }
    println!("unknown words: {unknown:?}");

    // An exact set finds swapped words that are correct, such as "form" for "from".
    let exact: HashSet<&str> = list.lines().collect();
    let words: BTreeSet<&str> = words_of(&text).collect();
    let misspellings: BTreeSet<String> = words.into_iter().flat_map(misspelt).collect();
    let (mut wrong, mut passed) = (0, Vec::new());
    for word in &misspellings {
        if !is_known(word, |word| exact.contains(word)) {
            wrong += 1;
            if is_known(word, |word| known.contains(word.as_bytes())) {
                passed.push(word);
            }
        }
    }
    println!("of {wrong} misspellings the filter passed {}: {passed:?}", passed.len());
    Ok(())
}
