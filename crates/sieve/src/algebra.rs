//! Union, intersection and deltas of filters of the same shape.

use crate::bloom::BloomFilter;
use crate::delta::Delta;
use crate::hash::Hashing;
use crate::sizing::Sizing;
use crate::snapshot::fingerprint;

/// Why two filters cannot be combined.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AlgebraError {
    /// They differ in a property that must be equal.
    #[error("the filters differ in their {what}: build both with the same capacity, rate, layout, hash and seed")]
    Mismatch {
        /// The property: `layout`, `number of bits`, `number of probes`, `hash` or `seed or key`.
        what: &'static str,
    },
    /// The filter given as the older one has bits that the newer one lacks.
    #[error("the older filter has bits that the newer one lacks: give an earlier copy of the same filter")]
    NotOlder,
    /// The delta belongs to another state of the filter.
    #[error("the delta belongs to another state of the filter: apply the deltas in order, or send the whole filter")]
    WrongBase,
}

impl BloomFilter {
    /// Adds all keys of another filter. The result is the same as if the keys of both had been inserted into one filter.
    ///
    /// Only standard filters have a union: saturated counters cannot be added, and two filters that grew have layers with different
    /// keys. [`layers`](crate::ScalableBloomFilter::layers) returns the standard filters of the latter.
    ///
    /// Cost: one pass over the memory.
    ///
    /// # Errors
    ///
    /// Filters that differ in layout, bits, probes, hash or seed. On an error nothing is changed.
    ///
    /// ```
    /// use sieve::BloomFilter;
    ///
    /// let mut one = BloomFilter::new(1000, 0.01)?;
    /// let mut two = BloomFilter::new(1000, 0.01)?;
    /// one.insert(b"a");
    /// two.insert(b"b");
    /// one.union(&two)?;
    /// assert!(one.contains(b"a") && one.contains(b"b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn union(&mut self, other: &Self) -> Result<(), AlgebraError> {
        self.check_shape(other.sizing(), other.hashing())?;
        self.change_words(|words| {
            for (word, theirs) in words.iter_mut().zip(other.memory.words()) {
                *word |= theirs;
            }
        });
        Ok(())
    }

    /// Estimates the number of distinct keys in either filter, from the ones of the union. Cost: one pass over both memories.
    ///
    /// # Errors
    ///
    /// As [`union`](Self::union).
    pub fn estimated_union(&self, other: &Self) -> Result<f64, AlgebraError> {
        self.check_shape(other.sizing(), other.hashing())?;
        let both = self.memory.words().iter().zip(other.memory.words());
        let ones = both.map(|(ours, theirs)| u64::from((ours | theirs).count_ones())).sum();
        Ok(self.sizing().keys_at(ones))
    }

    /// Estimates the number of keys in both filters: |A| + |B| − |A ∪ B| by the estimates; never below 0.
    ///
    /// Its noise is about that of the union's estimate. An intersection below that noise is not visible. (The ones that both filters
    /// share are no estimate: two different keys can share bits.) Cost: one pass over both memories.
    ///
    /// # Errors
    ///
    /// As [`union`](Self::union).
    pub fn estimated_intersection(&self, other: &Self) -> Result<f64, AlgebraError> {
        let union = self.estimated_union(other)?;
        Ok((self.estimated_len() + other.estimated_len() - union).max(0.0))
    }

    /// Returns the bits that were added since `older`, an earlier copy of this filter, compressed.
    ///
    /// Cost: one pass over both memories.
    ///
    /// # Errors
    ///
    /// The errors of [`union`](Self::union), and an `older` filter with bits that this one lacks.
    ///
    /// ```
    /// use sieve::BloomFilter;
    ///
    /// let mut ours = BloomFilter::new(100_000, 0.01)?;
    /// ours.insert(b"old");
    /// let mut mirror = ours.clone(); // the copy on the other side
    /// ours.insert(b"new");
    /// let delta = ours.delta(&mirror)?;
    /// assert!(delta.encoded_len() < 150); // of 126 000 bytes
    /// mirror.apply(&delta)?;
    /// assert!(mirror.contains(b"new"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delta(&self, older: &Self) -> Result<Delta, AlgebraError> {
        self.check_shape(older.sizing(), older.hashing())?;
        let (old, new) = (older.memory.words(), self.memory.words());
        if old.iter().zip(new).any(|(old, new)| old & !new != 0) {
            return Err(AlgebraError::NotOlder);
        }
        Ok(Delta::between(old, new, self.sizing(), self.hashing()))
    }

    /// Adds the bits of a delta, so that this filter equals the one that the delta was made from.
    ///
    /// Cost: one pass over the memory.
    ///
    /// # Errors
    ///
    /// A delta that belongs to another shape, hash or seed, or to another state of the filter. On an error nothing is changed.
    pub fn apply(&mut self, delta: &Delta) -> Result<(), AlgebraError> {
        self.check_shape(delta.sizing, delta.hashing)?;
        if fingerprint(self.memory.words()) != delta.base {
            return Err(AlgebraError::WrongBase);
        }
        // A first pass without changes, so that a delta with an error in the middle leaves the filter as it was.
        let mut valid = None;
        self.change_words(|words| {
            valid = delta.walk(words, false);
            if valid.is_some() {
                delta.walk(words, true);
            }
        });
        valid.ok_or(AlgebraError::WrongBase)
    }

    fn check_shape(&self, sizing: Sizing, hashing: Hashing) -> Result<(), AlgebraError> {
        let (ours, our_hash) = (self.sizing(), self.hashing());
        let differs = [
            (ours.layout() != sizing.layout(), "layout"),
            (ours.bits() != sizing.bits(), "number of bits"),
            (ours.hashes() != sizing.hashes(), "number of probes"),
            (our_hash.name() != hashing.name(), "hash"),
            (our_hash != hashing, "seed or key"),
        ];
        match differs.into_iter().find(|(differs, _)| *differs) {
            Some((_, what)) => Err(AlgebraError::Mismatch { what }),
            None => Ok(()),
        }
    }
}
