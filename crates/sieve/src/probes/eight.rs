//! Marking keys with eight probes, the number at a rate of 1 %: with AVX2 if the processor has it, and BMI2 and POPCNT.
//!
//! AVX2 handles four words of a block at once, which takes about half of the instructions. A `push` of a seen key to a filter for a million
//! keys takes a fifth less time, and a batch 12 to 17 % less (xxh3, a Zen 5). The bits are the same.

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::{Avx2, mark_unless_seen};

use super::blocks;
use crate::hash::Digest;
use crate::memory::{Block, Line};

/// The way to mark keys with eight probes on this processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EightProbes {
    #[cfg(target_arch = "x86_64")]
    avx2: Option<Avx2>,
}

impl EightProbes {
    /// Looks what the processor can do.
    pub(crate) fn detect() -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            avx2: Avx2::detect(),
        }
    }

    /// Returns the proof that the processor has AVX2, BMI2 and POPCNT, if it has.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn avx2(self) -> Option<Avx2> {
        self.avx2
    }

    /// Sets the bits of a key, and returns the number of those that were not set before. A block that has all of them is not written to, so
    /// that its cache line need not be written back.
    #[inline(always)]
    pub(crate) fn mark(self, line: &mut Line, digest: Digest) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            return avx2.mark_unless_seen(line, digest);
        }
        mark_portably(line, digest)
    }

    /// Sets the bits of keys, one after the other, and returns the number of those that were not set before. It writes which keys were new.
    #[inline]
    pub(crate) fn mark_all(self, blocks: &mut [Block], digests: &[Digest], is_new: &mut [bool]) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            return avx2.mark_all(blocks, digests, is_new);
        }
        mark_all(blocks, digests, is_new, |block, digest| blocks::mark(block, digest, 8))
    }
}

/// Not inlined: a caller that uses AVX2 would save the registers that this one needs.
#[inline(never)]
fn mark_portably(line: &mut Line, digest: Digest) -> u64 {
    let mut block = bytemuck::cast(*line);
    let fresh = blocks::mark(&mut block, digest, 8);
    if fresh > 0 {
        *line = bytemuck::cast(block);
    }
    fresh
}

#[inline(always)]
fn mark_all(
    blocks: &mut [Block],
    digests: &[Digest],
    is_new: &mut [bool],
    mark: impl Fn(&mut Block, Digest) -> u64,
) -> u64 {
    let count = blocks.len() as u64;
    let mut ones = 0;
    for (digest, new) in digests.iter().zip(is_new) {
        let fresh = mark(&mut blocks[blocks::index(*digest, count)], *digest);
        ones += fresh;
        *new = fresh > 0;
    }
    ones
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_andnot_si256, _mm256_blend_epi32, _mm256_cmpeq_epi64, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_packs_epi32, _mm256_set_epi64x, _mm256_set1_epi64x, _mm256_setzero_si256,
        _mm256_sllv_epi64, _mm256_srlv_epi64, _mm256_testz_si256,
    };

    use super::{Block, Digest, Line, blocks};

    /// The processor has AVX2, BMI2 and POPCNT: only [`detect`](Self::detect) makes one. BMI2 is for the hashes of a single key, which
    /// `bloom/insert_one.rs` compiles together with the marking.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Avx2(());

    impl Avx2 {
        pub(super) fn detect() -> Option<Self> {
            let has_all = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            has_all.then_some(Self(()))
        }

        #[inline(always)]
        #[expect(unsafe_code, reason = "the compiler cannot see what the processor has")]
        pub(super) fn mark_unless_seen(self, line: &mut Line, digest: Digest) -> u64 {
            // SAFETY: `self` exists, so the processor has the instructions.
            unsafe { mark_unless_seen(line, digest) }
        }

        #[inline(always)]
        #[expect(unsafe_code, reason = "the compiler cannot see what the processor has")]
        pub(super) fn mark_all(self, blocks: &mut [Block], digests: &[Digest], is_new: &mut [bool]) -> u64 {
            // SAFETY: `self` exists, so the processor has the instructions.
            unsafe { mark_all(blocks, digests, is_new) }
        }
    }

    #[target_feature(enable = "avx2,popcnt")]
    fn mark_all(blocks: &mut [Block], digests: &[Digest], is_new: &mut [bool]) -> u64 {
        super::mark_all(blocks, digests, is_new, |block, digest| mark(block, digest))
    }

    /// Does what [`blocks::mark`] does with eight probes, but does not write to a block that has all of them. The caller of a single key
    /// branches on that, too.
    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    pub(crate) fn mark_unless_seen(line: &mut Line, digest: Digest) -> u64 {
        let words = bytemuck::cast(*line);
        let [all, unset] = marks(words, digest);
        let any = _mm256_or_si256(unset[0], unset[1]);
        if _mm256_testz_si256(any, any) == 1 {
            return 0;
        }
        *line = bytemuck::cast(union(words, all));
        count(unset)
    }

    /// The same without a branch, which no processor can predict in a batch.
    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    fn mark(block: &mut Block, digest: Digest) -> u64 {
        let words = bytemuck::cast(*block);
        let [all, unset] = marks(words, digest);
        *block = bytemuck::cast(union(words, all));
        count(unset)
    }

    /// Returns the bits of a key, and those of its block that are not set.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn marks([first, second]: [__m256i; 2], digest: Digest) -> [[__m256i; 2]; 2] {
        let random = blocks::mixed(digest);
        let (each, six_bits) = (_mm256_set1_epi64x(random.cast_signed()), _mm256_set1_epi64x(63));
        let at_first = _mm256_and_si256(_mm256_srlv_epi64(each, _mm256_set_epi64x(18, 12, 6, 0)), six_bits);
        let at_second = _mm256_and_si256(_mm256_srlv_epi64(each, _mm256_set_epi64x(42, 36, 30, 24)), six_bits);
        let last = _mm256_set1_epi64x(blocks::in_last_word(random).cast_signed());
        let at_second = _mm256_blend_epi32::<0b1100_0000>(at_second, last);
        let one = _mm256_set1_epi64x(1);
        let all = [_mm256_sllv_epi64(one, at_first), _mm256_sllv_epi64(one, at_second)];
        let unset = [_mm256_andnot_si256(first, all[0]), _mm256_andnot_si256(second, all[1])];
        [all, unset]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn union(words: [__m256i; 2], marks: [__m256i; 2]) -> [__m256i; 2] {
        [_mm256_or_si256(words[0], marks[0]), _mm256_or_si256(words[1], marks[1])]
    }

    /// Returns the number of words that are not zero.
    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    fn count(unset: [__m256i; 2]) -> u64 {
        let none = _mm256_setzero_si256();
        let are_zero = unset.map(|words| _mm256_cmpeq_epi64(words, none));
        // Four bits for each word.
        let are_zero = _mm256_movemask_epi8(_mm256_packs_epi32(are_zero[0], are_zero[1]));
        u64::from(8 - are_zero.count_ones() / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;
    use crate::sizing::WORDS;

    /// Digests of every kind, and those at the ends of the ranges.
    fn digests() -> Vec<Digest> {
        let ends = [0, 1, 63, 1 << 42, (1 << 42) - 1, 1 << 63, u64::MAX];
        let extreme = ends
            .map(|first| ends.map(|second| Digest { first, second }))
            .into_iter();
        let usual = (0..4000_u32).map(|key| Hashing::default().digest(&key.to_le_bytes()));
        extreme.flatten().chain(usual).collect()
    }

    #[test]
    fn every_processor_sets_the_same_bits_and_counts_the_same_new_ones() {
        let (mut blocks, mut expected) = ([[0; WORDS]; 2], [[0; WORDS]; 2]);
        for (at, digest) in digests().into_iter().enumerate() {
            let at = at % 2;
            if blocks[at].iter().map(|word: &u64| word.count_ones()).sum::<u32>() > 400 {
                (blocks[at], expected[at]) = Default::default();
            }
            let mut line = bytemuck::cast(blocks[at]);
            let mut portable_line = line;
            let fresh = EightProbes::detect().mark(&mut line, digest);
            assert_eq!(mark_portably(&mut portable_line, digest), fresh, "{digest:x?}");
            assert_eq!(portable_line, line, "{digest:x?}");
            blocks[at] = bytemuck::cast(line);
            let expected_fresh = blocks::mark(&mut expected[at], digest, 8);
            assert_eq!((blocks, fresh), (expected, expected_fresh), "{digest:x?}");
        }
    }

    #[test]
    fn a_batch_is_marked_as_its_keys_are_one_by_one() {
        let digests = digests();
        let (mut blocks, mut expected) = (vec![[0; WORDS]; 60], vec![[0; WORDS]; 60]);
        for batch in digests.chunks(32) {
            let mut is_new = [false; 32];
            let ones = EightProbes::detect().mark_all(&mut blocks, batch, &mut is_new);
            let mut expected_ones = 0;
            for (digest, is_new) in batch.iter().zip(is_new) {
                let fresh = blocks::mark(&mut expected[blocks::index(*digest, 60)], *digest, 8);
                assert_eq!(is_new, fresh > 0, "{digest:x?}");
                expected_ones += fresh;
            }
            assert_eq!((&blocks, ones), (&expected, expected_ones));
        }
    }
}
