//! Hashes: which attacks each of them stops, and what it costs.
//!
//! # Seeds, keys and attackers
//!
//! Who knows the hash and its seed can craft keys. Two attacks on MurmurHash3 with a known seed:
//!
//! * One crafted URL has the same 128-bit hash as a page, which is then never fetched. It takes less than a second to compute.
//! * Ten thousand crafted URLs raise the false-positive rate of a filter tenfold.
//!
//! A secret random seed makes every list of keys useless that was computed in advance. It does not make MurmurHash3 or xxh3 a keyed
//! cryptographic hash: there are byte strings that collide for *every* seed of MurmurHash3, though none of URL characters is known.
//! [`Hashing::Hardened`] is SipHash-2-4, a keyed cryptographic hash: without its key, nothing finds collisions faster than trying.
//!
//! | hash | stops lists computed in advance | stops collisions for every seed | ns per 80-byte key |
//! |---|---|---|---|
//! | MurmurHash3, seed 0 (default of this crate: reproducible) | no | no | 36 |
//! | MurmurHash3, random secret seed | yes | no | 36 |
//! | xxh3, random secret seed | yes | no | 18 |
//! | hardened, random secret key | yes | yes | 53 |
//!
//! The times are for the hash alone, on one core of a shared Xeon. A look-up in a filter that fits the cache adds about 10 ns.
//!
//! | keys | use |
//! |---|---|
//! | trusted, or filters must be equal from run to run | seed 0, the default |
//! | from sites that are not yours | a random secret seed: [`Hashing::random`], or your own for xxh3 |
//! | of a public service, of a filter that lives for years, or under attack by somebody who watches and tries again | the hardened hash: [`Hashing::random_hardened`] |

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use siphasher::sip128::SipHasher24;

/// The hash of the keys, with its seed or key. `Debug` shows neither.
///
/// With the feature `serde`, **the serialized form contains the secret**, the seed or the key: store it where only its owner can read it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
// Of a new one, the compiler finds all matches in this crate but the way back from `id` (`snapshot.rs`), and none in others: frontier's
// `keyed_hash.rs` and `durable/seen_set.rs`, cli's `options.rs` and `options/kinds.rs`, python's `sieve.rs` and `file.rs`.
pub enum Hashing {
    /// MurmurHash3, x64, 128 bit (A. Appleby, 2011), with a 64-bit seed: the default, with seed 0.
    Murmur3 {
        /// The seed.
        seed: u64,
    },
    /// XXH3, 64 bit (Y. Collet, 2020), with a 64-bit seed: half the cost. Use it for filters that fit the cache or many duplicates.
    Xxh3 {
        /// The seed.
        seed: u64,
    },
    /// SipHash-2-4 with 128 bits (J.-P. Aumasson, D. J. Bernstein, 2012), with a secret 128-bit key.
    Hardened {
        /// The secret key. Take it from the random numbers of the operating system.
        key: [u8; 16],
    },
}

impl Default for Hashing {
    fn default() -> Self {
        Self::Murmur3 { seed: 0 }
    }
}

impl fmt::Debug for Hashing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Hashing {
    /// Returns MurmurHash3 with a random secret seed, for untrusted URLs.
    ///
    /// The 64 bits of the seed are what the standard library's [`RandomState`] makes of a constant: a pseudorandom function (SipHash-1-3)
    /// under a key that the operating system's random numbers have set. The first call on a thread asks the system; all further
    /// ones cost some tens of nanoseconds. Hashing costs what it does with seed 0.
    ///
    /// Filters that are to be [united](crate::BloomFilter::union), compared or brought up to date by deltas must share one value:
    /// draw it once. A saved filter has the seed in its file.
    ///
    /// ```
    /// use sieve::{Hashing, Sieve};
    ///
    /// let to_visit = Sieve::builder().hashing(Hashing::random()).build()?;
    /// # Ok::<(), sieve::ConfigError>(())
    /// ```
    pub fn random() -> Self {
        let [seed, _] = secret_words();
        Self::Murmur3 { seed }
    }

    /// The hardened hash with a secret random key: against somebody who can watch what you fetch, and try again.
    ///
    /// The key is two words made like the seed of [`random`](Self::random). The standard library promises no cryptographic strength of its
    /// random numbers: who needs that promise draws 16 bytes from the system, by the crate `getrandom` for example, and makes them a
    /// [`Hardened`](Self::Hardened) key.
    ///
    /// A saved filter has a fingerprint of the key only. To load it again, keep the key.
    pub fn random_hardened() -> Self {
        let [first, second] = secret_words();
        let mut key = [0; 16];
        key[..8].copy_from_slice(&first.to_le_bytes());
        key[8..].copy_from_slice(&second.to_le_bytes());
        Self::Hardened { key }
    }

    /// Returns the name of the hash: `murmur3`, `xxh3` or `hardened`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Murmur3 { .. } => "murmur3",
            Self::Xxh3 { .. } => "xxh3",
            Self::Hardened { .. } => "hardened",
        }
    }

    /// The number of the hash in a file.
    pub(crate) fn id(&self) -> u8 {
        match self {
            Self::Murmur3 { .. } => 1,
            Self::Xxh3 { .. } => 2,
            Self::Hardened { .. } => 3,
        }
    }

    /// What a file keeps of the seed or key: a seed itself, but only a fingerprint of a secret key.
    pub(crate) fn stored_seed(&self) -> u64 {
        match self {
            Self::Murmur3 { seed } | Self::Xxh3 { seed } => *seed,
            Self::Hardened { .. } => self.digest(b"fingerprint of the key").first,
        }
    }

    /// Hashes a key.
    #[inline]
    pub fn digest(&self, key: &[u8]) -> Digest {
        match self {
            Self::Murmur3 { seed } => one_by_murmur3(key, *seed),
            Self::Xxh3 { seed } => one_by_xxh3(key, *seed),
            Self::Hardened { key: secret } => one_hardened(key, secret),
        }
    }

    /// Hashes keys as they come, and calls `each` with each digest at once. Returns the number of keys.
    #[inline]
    pub(crate) fn digest_batch<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        digests: &mut [Digest],
        each: impl Fn(Digest),
    ) -> usize {
        match *self {
            Self::Murmur3 { seed } => fill(keys, digests, each, |key| murmur3(key, seed)),
            Self::Xxh3 { seed } => fill(keys, digests, each, |key| xxh3(key, seed)),
            Self::Hardened { key: secret } => fill(keys, digests, each, |key| hardened(key, &secret)),
        }
    }
}

#[inline]
fn fill<'k>(
    keys: impl Iterator<Item = &'k [u8]>,
    digests: &mut [Digest],
    each: impl Fn(Digest),
    hash: impl Fn(&[u8]) -> Digest,
) -> usize {
    let mut count = 0;
    for (place, key) in digests.iter_mut().zip(keys) {
        let digest = hash(key);
        each(digest);
        *place = digest;
        count += 1;
    }
    count
}

// A single key is hashed by a function of its own for each hash, unless one function hashes and marks (`bloom/insert_one.rs`). A common one
// would save the registers for all of them each time.

#[inline(never)]
fn one_by_murmur3(key: &[u8], seed: u64) -> Digest {
    murmur3(key, seed)
}

#[inline(never)]
fn one_by_xxh3(key: &[u8], seed: u64) -> Digest {
    xxh3(key, seed)
}

#[inline(never)]
fn one_hardened(key: &[u8], secret: &[u8; 16]) -> Digest {
    hardened(key, secret)
}

#[inline]
pub(crate) fn murmur3(key: &[u8], seed: u64) -> Digest {
    // It lays its two words out in the platform's order; taking them apart in the same order gives the same words on every platform.
    let [first, second] = bytemuck::cast(fastmurmur3::murmur3_x64_128(key, seed));
    Digest { first, second }
}

#[inline]
pub(crate) fn xxh3(key: &[u8], seed: u64) -> Digest {
    Digest::spread(xxhash_rust::xxh3::xxh3_64_with_seed(key, seed))
}

#[inline]
fn hardened(key: &[u8], secret: &[u8; 16]) -> Digest {
    let hash = SipHasher24::new_with_key(secret).hash(key);
    Digest {
        first: hash.h1,
        second: hash.h2,
    }
}

/// Draws two words that nobody else knows: one keyed hash of two inputs that differ.
fn secret_words() -> [u64; 2] {
    let state = RandomState::new();
    [state.hash_one(0_u8), state.hash_one(1_u8)]
}

/// The checksum of a file's bytes, chained by its seed.
pub(crate) fn checksum(bytes: &[u8], seed: u64) -> u64 {
    Hashing::Murmur3 { seed }.digest(bytes).first
}

/// The hash of one key, as two words: 128 bits, of which xxh3 fills 64.
///
/// All probes come from it, in a filter of any size and layout. So who stores the digests of the accepted keys, as `u128`, can fill another
/// filter of the same [`Hashing`] with them, without the keys:
///
/// ```
/// use sieve::{BloomFilter, Filter, Hashing, Sizing};
///
/// let hashing = Hashing::random();
/// let stored = u128::from(hashing.digest(b"https://example.com/"));
///
/// let mut larger = BloomFilter::with_hashing(Sizing::for_rate(1_000_000, 0.01)?, hashing)?;
/// larger.insert_digest(&[], stored.into());
/// assert!(larger.contains("https://example.com/"));
/// # Ok::<(), sieve::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest {
    pub(crate) first: u64,
    pub(crate) second: u64,
}

impl From<Digest> for u128 {
    /// Returns the bits, the first word above the second. They are the same on every platform.
    #[inline]
    fn from(digest: Digest) -> Self {
        (Self::from(digest.first) << 64) | Self::from(digest.second)
    }
}

impl From<u128> for Digest {
    #[inline]
    fn from(bits: u128) -> Self {
        Self {
            first: (bits >> 64) as u64,
            second: bits as u64,
        }
    }
}

impl Digest {
    /// Makes two halves of one word. Two keys fall together in both with a chance of 2⁻⁶⁴, far below any rate that a filter is sized for.
    #[inline]
    fn spread(word: u64) -> Self {
        Self {
            first: word,
            second: word.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(32),
        }
    }
}

/// Returns a source of random words from a digest: a Weyl sequence through one round of mixing.
#[inline]
pub(crate) fn words(digest: Digest) -> impl FnMut() -> u64 {
    // An odd step visits all 2^64 states, whatever the second half is.
    let (mut state, step) = (digest.first, digest.second | 1);
    move || {
        // The constants are those of D. Stafford's "Mix13" finaliser, with its last shift left out: only high bits are used.
        state = state.wrapping_add(step);
        let word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
    }
}

/// Scales a random word to `0..bound` by the high half of the product (D. Lemire, ACM TOMACS 29(1), 2019).
#[inline]
pub(crate) fn below(word: u64, bound: u64) -> u64 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur3_matches_the_reference_implementation() {
        // Appleby's reference implementation, MurmurHash3_x64_128 with seed 0.
        let hashing = Hashing::default();
        assert_eq!(
            hashing.digest(b"The quick brown fox jumps over the lazy dog"),
            Digest {
                first: 0xe34b_bc7b_bc07_1b6c,
                second: 0x7a43_3ca9_c49a_9347
            }
        );
        assert_eq!(hashing.digest(b""), Digest { first: 0, second: 0 });
        assert_ne!(hashing.digest(b"a"), Hashing::Murmur3 { seed: 1 }.digest(b"a"));
    }

    #[test]
    fn xxh3_matches_the_specification() {
        // XXH3_64bits of the empty input with seed 0, from the test vectors of the xxHash specification.
        let digest = Hashing::Xxh3 { seed: 0 }.digest(b"");
        assert_eq!(digest.first, 0x2d06_8005_38d3_94c2);
        assert_ne!(digest, Hashing::Xxh3 { seed: 1 }.digest(b""));
    }

    #[test]
    fn hardened_is_siphash_with_128_bits() {
        // The first vector of the reference implementation's vectors_sip128: key 00..0f, empty input.
        let mut key = [0; 16];
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = at as u8;
        }
        let digest = Hashing::Hardened { key }.digest(b"");
        let bytes = [digest.first.to_le_bytes(), digest.second.to_le_bytes()].concat();
        assert_eq!(
            bytes,
            [
                0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93
            ]
        );
    }

    #[test]
    fn seeds_and_keys_are_not_shown() {
        let shown = format!(
            "{:?} {:?}",
            Hashing::Murmur3 { seed: 4242 },
            Hashing::Hardened { key: [42; 16] }
        );
        assert!(!shown.contains("42"), "{shown}");
        for (hashing, shown) in [(Hashing::random(), "murmur3"), (Hashing::random_hardened(), "hardened")] {
            assert_eq!(format!("{hashing:?}"), shown);
        }
    }

    #[test]
    fn every_secret_is_different() {
        // Two of 64 bits are equal once in 2^64 draws.
        for draw in [Hashing::random, Hashing::random_hardened] {
            let (one, two) = (draw(), draw());
            assert_ne!(one, two);
            assert_ne!(one.digest(b"key"), two.digest(b"key"));
        }
    }

    #[test]
    fn both_halves_of_a_random_key_are_random() {
        let draw = || match Hashing::random_hardened() {
            Hashing::Hardened { key } => key,
            other => panic!("{other:?}"),
        };
        let (one, two) = (draw(), draw());
        assert_ne!(one[..8], two[..8]);
        assert_ne!(one[8..], two[8..]);
        assert_ne!(one[..8], one[8..]);
    }
}
