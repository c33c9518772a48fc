//! A filter for several threads.

use crate::hash::{Digest, Hashing};
use crate::probes::blocks;
use crate::sizing::{ConfigError, Layout, Sizing, WORDS};
use crate::sync::{AtomicU64, Ordering, spin_loop};

/// The bit of a block's last word that no probe has: set while a thread changes the block.
const LOCK: u64 = 1 << 63;

/// A Bloom filter that threads share. If several threads insert the same new key, exactly one of them gets `true`.
///
/// Atomic bit operations alone do not guarantee this: each of two threads may set one of the bits, and both believe that the key was
/// new. Here a thread locks the key's block first, by the one bit that is never a probe. That takes one locked instruction per key, in
/// the cache line of the block. Threads wait for each other only within one block of 511 bits.
///
/// It does not implement [`Filter`](crate::Filter): it does not work in a `Sieve`, does not grow, counts no loss and logs nothing. Use
/// it to share one seen-set between threads that each have their own queue. A crawl with one task that owns a
/// [`Sieve`](crate::Sieve) does not need it and is faster.
///
/// [`to_filter`](Self::to_filter) copies it into a plain filter, which can be saved. [`from_filter`](Self::from_filter) is the way
/// back.
///
/// | method | cost |
/// |---|---|
/// | [`insert`](Self::insert) | one hash, one random access to memory, one locked instruction |
/// | [`contains`](Self::contains) | one hash, one random access to memory; never waits |
/// | [`estimated_len`](Self::estimated_len) | one pass over the memory |
///
/// ```
/// use sieve::ConcurrentBloomFilter;
///
/// let seen = ConcurrentBloomFilter::new(1000, 0.01)?;
/// let winners: usize = std::thread::scope(|scope| {
///     let insert = || usize::from(seen.insert(b"https://example.com/"));
///     let threads = [scope.spawn(insert), scope.spawn(insert)];
///     threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
/// });
/// assert_eq!(winners, 1);
/// # Ok::<(), sieve::ConfigError>(())
/// ```
pub struct ConcurrentBloomFilter {
    blocks: Box<[Block]>,
    sizing: Sizing,
    hashing: Hashing,
}

#[repr(align(64))]
struct Block([AtomicU64; WORDS]);

impl ConcurrentBloomFilter {
    /// Creates a filter for `capacity` keys with a false-positive rate of at most `rate` at capacity, with MurmurHash3 and seed 0.
    ///
    /// # Errors
    ///
    /// The errors of [`Sizing::in_layout`] for blocks, or memory that cannot be allocated.
    pub fn new(capacity: u64, rate: f64) -> Result<Self, ConfigError> {
        Self::with_hashing(Sizing::in_layout(Layout::Blocks, capacity, rate)?, Hashing::default())
    }

    /// Creates a filter of a given shape, hash and seed.
    ///
    /// # Errors
    ///
    /// The classic layout, which has no free bit for the lock, or memory that cannot be allocated.
    pub fn with_hashing(sizing: Sizing, hashing: Hashing) -> Result<Self, ConfigError> {
        if sizing.layout() != Layout::Blocks {
            return Err(ConfigError::BlocksNeeded);
        }
        let refused = ConfigError::CannotAllocate {
            bytes: sizing.memory_bytes(),
        };
        let count = usize::try_from(sizing.blocks()).map_err(|_| refused.clone())?;
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(count).map_err(|_| refused)?;
        blocks.resize_with(count, Block::zeroed);
        Ok(Self {
            blocks: blocks.into_boxed_slice(),
            sizing,
            hashing,
        })
    }

    /// Marks a key as seen, in one test-and-set: `true` for exactly one of the threads that insert a new key.
    ///
    /// For a thread that got `true`, and for threads that synchronize with it, [`contains`](Self::contains) is true from then on.
    #[inline]
    pub fn insert(&self, key: impl AsRef<[u8]>) -> bool {
        self.insert_digest(self.hashing.digest(key.as_ref()))
    }

    /// Marks keys as seen, and calls `each` with each key and whether it was new. It fetches the memory of a batch at once.
    pub fn insert_all<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>, mut each: impl FnMut(&'k [u8], bool)) {
        const BATCH: usize = 32;
        let mut keys = keys.into_iter().fuse();
        let mut batch: [(&[u8], Digest); BATCH] = [(&[], Digest::default()); BATCH];
        loop {
            let mut count = 0;
            for (slot, key) in batch.iter_mut().zip(keys.by_ref()) {
                let digest = self.hashing.digest(key);
                crate::prefetch::prefetch(self.block(digest));
                *slot = (key, digest);
                count += 1;
            }
            for (key, digest) in &batch[..count] {
                each(key, self.insert_digest(*digest));
            }
            if count < BATCH {
                return;
            }
        }
    }

    /// Returns whether the key was seen. "No" is certain, except for keys that another thread inserts at the same time.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        let digest = self.hashing.digest(key.as_ref());
        let masks = blocks::masks(digest, self.sizing.hashes());
        let words = &self.block(digest).0;
        words
            .iter()
            .zip(masks)
            .all(|(word, mask)| word.load(Ordering::Relaxed) & mask == mask)
    }

    /// Estimates the number of distinct keys that were offered, as [`BloomFilter::estimated_len`](crate::BloomFilter::estimated_len). Cost: one pass over the
    /// memory.
    pub fn estimated_len(&self) -> f64 {
        let words = self.blocks.iter().flat_map(|block| &block.0);
        let ones = words
            .zip((0..WORDS).cycle())
            .map(|(word, at)| u64::from(probes_of(at, word.load(Ordering::Relaxed)).count_ones()))
            .sum();
        self.sizing.keys_at(ones)
    }

    /// Returns the shape of the filter.
    pub fn sizing(&self) -> Sizing {
        self.sizing
    }

    /// Creates a filter with the keys of a plain one, such as one that was loaded from a file.
    ///
    /// # Errors
    ///
    /// The errors of [`with_hashing`](Self::with_hashing).
    pub fn from_filter(filter: &crate::BloomFilter) -> Result<Self, ConfigError> {
        let shared = Self::with_hashing(filter.sizing(), filter.hashing())?;
        let words = shared.blocks.iter().flat_map(|block| &block.0);
        for (word, theirs) in words.zip(filter.memory.words()) {
            // This sets no lock: in a plain filter, and in its file, the bit of the lock is zero.
            word.store(*theirs, Ordering::Relaxed);
        }
        Ok(shared)
    }

    /// Copies the keys into a plain filter. Keys that other threads insert meanwhile may or may not be in it. To save a crawl, stop the
    /// threads for the copy: a link that is in it and in no queue that is saved is lost.
    ///
    /// # Errors
    ///
    /// Memory that cannot be allocated.
    pub fn to_filter(&self) -> Result<crate::BloomFilter, ConfigError> {
        let mut filter = crate::BloomFilter::with_hashing(self.sizing, self.hashing)?;
        filter.change_words(|words| {
            let blocks = self.blocks.iter().flat_map(|block| block.0.iter().zip(0..));
            for (word, (theirs, at)) in words.iter_mut().zip(blocks) {
                *word = probes_of(at, theirs.load(Ordering::Relaxed));
            }
        });
        Ok(filter)
    }

    #[inline]
    fn block(&self, digest: Digest) -> &Block {
        &self.blocks[blocks::index(digest, self.blocks.len() as u64)]
    }

    #[inline]
    fn insert_digest(&self, digest: Digest) -> bool {
        let masks = blocks::masks(digest, self.sizing.hashes());
        self.block(digest).mark(&masks)
    }
}

impl std::fmt::Debug for ConcurrentBloomFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConcurrentBloomFilter")
            .field("sizing", &self.sizing)
            .field("hashing", &self.hashing)
            .finish_non_exhaustive()
    }
}

fn probes_of(at: usize, word: u64) -> u64 {
    if at == WORDS - 1 { word & !LOCK } else { word }
}

impl Block {
    fn zeroed() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Sets the bits of a key; `true` when one of them was not set before.
    #[inline]
    fn mark(&self, masks: &[u64; WORDS]) -> bool {
        let [words @ .., last] = &self.0;
        let [first_masks @ .., last_mask] = masks;
        let locked = self.lock();
        let mut missing = !locked & last_mask;
        for (word, mask) in words.iter().zip(first_masks) {
            // Only the holder of the lock writes, so that a load and a store suffice.
            let before = word.load(Ordering::Relaxed);
            if before & mask != *mask {
                missing |= !before & mask;
                word.store(before | mask, Ordering::Relaxed);
            }
        }
        // Releases the lock, and publishes everything that was written under it.
        last.store((locked | last_mask) & !LOCK, Ordering::Release);
        missing != 0
    }

    /// Waits until the block is free, takes it, and returns its last word.
    #[inline]
    fn lock(&self) -> u64 {
        let last = &self.0[WORDS - 1];
        loop {
            let word = last.load(Ordering::Relaxed);
            if word & LOCK == 0
                && last
                    .compare_exchange(word, word | LOCK, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return word;
            }
            spin_loop();
        }
    }
}
