//! Fingerprints of pages: a hash of the bytes, and a simhash of the visible text.
//!
//! The fetching side computes the [`Fingerprint`] of a page; the frontier compares it with those of earlier pages. It does not
//! matter how a text becomes a simhash, as long as all pages of a crawl use the same method.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number of bits in which the simhashes of near-duplicates may differ.
///
/// G. Manku, A. Jain and A. Das Sarma measured this value for simhashes of 64 bits on eight billion pages: "Detecting
/// near-duplicates for web crawling", WWW 2007.
pub const NEAR_BITS: u32 = 3;

/// The fingerprint of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fingerprint {
    /// The hash of the bytes; `None` if the page is empty or was cut.
    pub content: Option<ContentHash>,
    /// The simhash of the visible text; `None` if the page has too little text to compare.
    pub text: Option<SimHash>,
}

impl Fingerprint {
    /// Returns the fingerprint of a page with this hash and this simhash.
    pub const fn new(content: Option<ContentHash>, text: Option<SimHash>) -> Self {
        Self { content, text }
    }
}

/// A 128-bit hash of the bytes of a page. Pages with equal hashes count as exact duplicates.
///
/// Shown and serialized as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash(u128);

impl ContentHash {
    /// Returns the hash as a number.
    pub const fn value(self) -> u128 {
        self.0
    }
}

/// A 64-bit simhash: texts that share most of their words have simhashes that share most of their bits.
///
/// M. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002. Shown and serialized as 16
/// hexadecimal digits.
///
/// ```
/// use frontier::SimHash;
///
/// let [first, second] = [SimHash::from(0b0000), SimHash::from(0b0111)];
/// assert_eq!(first.distance(second), 3);
/// assert!(first.is_near(second));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SimHash(u64);

impl SimHash {
    /// Returns the number of bits in which two simhashes differ.
    pub const fn distance(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }

    /// Returns whether the simhashes differ in at most [`NEAR_BITS`] bits.
    pub const fn is_near(self, other: Self) -> bool {
        self.distance(other) <= NEAR_BITS
    }

    /// Returns the simhash as a number.
    pub const fn bits(self) -> u64 {
        self.0
    }
}

/// Lets a number be shown in full length, and serialized so, or as a number in binary formats.
macro_rules! hexadecimal {
    ($name:ident, $number:ty, $format:literal) => {
        impl From<$number> for $name {
            fn from(number: $number) -> Self {
                Self(number)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match serializer.is_human_readable() {
                    true => serializer.collect_str(self),
                    false => self.0.serialize(serializer),
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if !deserializer.is_human_readable() {
                    return <$number>::deserialize(deserializer).map(Self);
                }
                let digits = String::deserialize(deserializer)?;
                <$number>::from_str_radix(&digits, 16)
                    .map(Self)
                    .map_err(D::Error::custom)
            }
        }
    };
}

hexadecimal!(ContentHash, u128, "{:032x}");
hexadecimal!(SimHash, u64, "{:016x}");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_shown_in_full_length() {
        assert_eq!(SimHash::from(0xAB).to_string(), "00000000000000ab");
        assert_eq!(ContentHash::from(0xAB).to_string(), format!("{:0>32}", "ab"));
    }

    #[test]
    fn simhashes_are_near_up_to_three_bits() {
        let simhash = SimHash::from(0x0123_4567_89AB_CDEF);
        for (flipped, is_near) in [
            (0, true),
            (1 << 63 | 0b11, true),
            (1 << 63 | 0b111, false),
            (u64::MAX, false),
        ] {
            let other = SimHash::from(simhash.bits() ^ flipped);
            assert_eq!(simhash.distance(other), flipped.count_ones());
            assert_eq!(simhash.is_near(other), is_near, "{flipped:b}");
        }
    }

    #[test]
    fn a_fingerprint_is_serialized_as_hexadecimal_digits() {
        let fingerprint = Fingerprint::new(Some(ContentHash::from(u128::MAX)), Some(SimHash::from(0xAB)));
        let json = serde_json::to_string(&fingerprint).unwrap();
        let digits = "f".repeat(32);
        assert_eq!(json, format!(r#"{{"content":"{digits}","text":"00000000000000ab"}}"#));
    }
}
