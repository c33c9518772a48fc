//! Inserting a single key, by a function that is chosen when the filter is created.
//!
//! In the usual shape, with MurmurHash3 or xxh3 and AVX2, the function hashes and marks: a push does not look up the layout and the processor,
//! and saves no registers between two calls. With a million keys it takes 2 to 6 % less time than before (xxh3, most series on a Zen 4). A
//! batch looks up once anyway.

use std::fmt;

use super::BloomFilter;
use crate::hash::Hashing;
use crate::probes::eight::EightProbes;

/// The function for one key in a filter of this hash and shape, on this processor.
#[derive(Clone, Copy)]
pub(super) struct InsertOne(unsafe fn(&mut BloomFilter, &[u8]) -> bool);

impl InsertOne {
    /// Chooses the function for a filter of the usual shape, or of another one, where `eight_probes` is `None`.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(unused_variables, reason = "there is one function for all")
    )]
    pub(super) fn choose(eight_probes: Option<EightProbes>, hashing: &Hashing) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = eight_probes.and_then(EightProbes::avx2) {
            return Self::with_avx2(avx2, hashing);
        }
        Self(in_two_steps)
    }

    #[cfg(target_arch = "x86_64")]
    fn with_avx2(_: crate::probes::eight::Avx2, hashing: &Hashing) -> Self {
        match hashing {
            Hashing::Murmur3 { .. } => Self(avx2::insert_by_murmur3),
            Hashing::Xxh3 { .. } => Self(avx2::insert_by_xxh3),
            Hashing::Hardened { .. } => Self(in_two_steps),
        }
    }

    /// Marks a key as seen: `true` if it was new.
    #[inline(always)]
    #[expect(unsafe_code, reason = "the compiler cannot see what the processor has")]
    pub(super) fn call(self, filter: &mut BloomFilter, key: &[u8]) -> bool {
        // SAFETY: only `with_avx2` makes one with a function that needs AVX2, BMI2 and POPCNT, and takes the proof that the processor has them.
        unsafe { (self.0)(filter, key) }
    }
}

impl fmt::Debug for InsertOne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InsertOne")
    }
}

/// Inserts into a filter of any hash and shape.
fn in_two_steps(filter: &mut BloomFilter, key: &[u8]) -> bool {
    let digest = filter.hashing.digest(key);
    let fresh = filter.mark(digest);
    filter.count(fresh)
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{BloomFilter, Hashing, in_two_steps};
    use crate::hash::{Digest, murmur3, xxh3};
    use crate::probes::eight::mark_unless_seen;

    // The seed comes from the filter, with the hash. A filter of the same shape and another hash is inserted into all the same.

    #[target_feature(enable = "avx2,bmi2,popcnt")]
    pub(super) fn insert_by_murmur3(filter: &mut BloomFilter, key: &[u8]) -> bool {
        match filter.hashing {
            Hashing::Murmur3 { seed } => insert(filter, murmur3(key, seed)),
            _ => in_two_steps(filter, key),
        }
    }

    #[target_feature(enable = "avx2,bmi2,popcnt")]
    pub(super) fn insert_by_xxh3(filter: &mut BloomFilter, key: &[u8]) -> bool {
        match filter.hashing {
            Hashing::Xxh3 { seed } => insert(filter, xxh3(key, seed)),
            _ => in_two_steps(filter, key),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi2,popcnt")]
    fn insert(filter: &mut BloomFilter, digest: Digest) -> bool {
        let fresh = mark_unless_seen(filter.line_mut(digest), digest);
        filter.count(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing::{Layout, Sizing};

    /// Keys of 0 to 299 bytes, and longer ones, which xxh3 hashes in blocks; each three times.
    fn keys() -> Vec<Vec<u8>> {
        let key = |number: u32| {
            let mut key = number.to_le_bytes().repeat(80);
            key.truncate(number as usize % 300);
            key
        };
        let long_key = |length| vec![b'k'; length];
        let once = || (0..3_000).map(key).chain([1_024, 1_025, 2_100].map(long_key));
        (0..3).flat_map(|_| once()).collect()
    }

    #[test]
    fn every_function_inserts_as_the_two_steps_do() {
        let hashings = [
            Hashing::Murmur3 { seed: 0 },
            Hashing::Murmur3 { seed: 9 },
            Hashing::Xxh3 { seed: 0 },
            Hashing::Xxh3 { seed: 9 },
            Hashing::Hardened { key: [9; 16] },
        ];
        let shapes = [
            Sizing::for_rate(2_000, 0.01),
            Sizing::for_rate(2_000, 0.0001),
            Sizing::in_layout(Layout::Classic, 2_000, 0.01),
        ];
        for (hashing, sizing) in hashings
            .iter()
            .flat_map(|hashing| shapes.iter().map(move |sizing| (*hashing, sizing.clone().unwrap())))
        {
            let filter = || BloomFilter::with_hashing(sizing, hashing).unwrap();
            let (mut one, mut two) = (filter(), filter());
            for key in keys() {
                let expected = in_two_steps(&mut two, &key);
                assert_eq!(one.insert(&key), expected, "{hashing:?}, {sizing:?}: {key:?}");
                assert!(one.contains(&key));
            }
            assert_eq!((one.ones(), one.memory.words()), (two.ones(), two.memory.words()));
            assert_eq!(one.ones(), one.memory.count_ones());
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_usual_shape_has_a_function_of_its_own_for_each_fast_hash() {
        let eight_probes = EightProbes::detect();
        if eight_probes.avx2().is_none() {
            return;
        }
        let is_general = |InsertOne(chosen)| {
            let general: unsafe fn(&mut BloomFilter, &[u8]) -> bool = in_two_steps;
            std::ptr::fn_addr_eq(chosen, general)
        };
        let eight_probes = Some(eight_probes);
        let (murmur3, xxh3) = (Hashing::Murmur3 { seed: 9 }, Hashing::Xxh3 { seed: 9 });
        let hardened = Hashing::Hardened { key: [9; 16] };
        assert!(!is_general(InsertOne::choose(eight_probes, &murmur3)));
        assert!(!is_general(InsertOne::choose(eight_probes, &xxh3)));
        assert!(is_general(InsertOne::choose(eight_probes, &hardened)));
        assert!(is_general(InsertOne::choose(None, &xxh3)));
        assert!(!is_general(BloomFilter::new(1_000, 0.01).unwrap().insert_one));
    }

    #[test]
    fn a_function_that_was_chosen_for_another_hash_inserts_by_the_hash_of_the_filter() {
        let sizing = Sizing::for_rate(1_000, 0.01).unwrap();
        let hashings = [
            Hashing::Murmur3 { seed: 1 },
            Hashing::Xxh3 { seed: 1 },
            Hashing::Hardened { key: [1; 16] },
        ];
        for (chosen_for, hashing) in hashings.into_iter().flat_map(|one| hashings.map(|two| (one, two))) {
            let other = BloomFilter::with_hashing(sizing, chosen_for).unwrap();
            let mut filter = BloomFilter::with_hashing(sizing, hashing).unwrap();
            assert!(other.insert_one.call(&mut filter, b"key"));
            assert!(
                filter.contains_digest(hashing.digest(b"key")),
                "{chosen_for:?}, {hashing:?}"
            );
        }
    }
}
