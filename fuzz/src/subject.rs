//! The filters and queues that the target `operations` puts together, and what only some of them can do.

use std::collections::VecDeque;

use sieve::snapshot::Snapshot;
use sieve::{
    Accepts, BloomFilter, CountingBloomFilter, Delta, ExactFilter, Fifo, Filter, OnSaturation, PackedQueue,
    RotatingBloomFilter, SeenSet, Sieve,
};

use crate::seal::file_of;

/// A filter under test. What a kind cannot do does nothing.
pub trait Subject: Filter + Clone {
    /// Whether "seen" is never wrong.
    const EXACT: bool = false;

    /// The generation that a key is marked in now.
    fn generation(&self) -> u64 {
        0
    }

    /// Whether a key that was marked in that generation must still look seen.
    fn remembers(&self, _generation: u64) -> bool {
        true
    }

    /// Takes in the keys of another filter of the same shape: `false` for a kind that has no union.
    fn unite(&mut self, _keys: &mut dyn Iterator<Item = &'static str>) -> bool {
        false
    }

    /// Starts a new generation: `false` for a kind that has none.
    fn rotate(&mut self) -> bool {
        false
    }

    /// Brings an older copy up to date.
    fn catch_up(&self, _copy: &mut Self) {}

    /// Takes an accepted key out of the filter: `None` for a kind that cannot.
    fn forget<Q: ToVisit>(_sieve: &mut Sieve<Self, Q>, _key: &str) -> Option<bool> {
        None
    }

    /// Saves the filter and goes on from the file with the same queue.
    fn save_and_resume<Q: ToVisit>(_sieve: &mut Sieve<Self, Q>, _policy: OnSaturation) {}
}

/// A queue under test.
pub trait ToVisit: Fifo<Item = String> + Accepts<String> + Accepts<&'static str> + Default {
    /// The most bytes it may hold, and those it holds.
    fn bound(&self) -> Option<(usize, usize)>;
}

impl ToVisit for VecDeque<String> {
    fn bound(&self) -> Option<(usize, usize)> {
        None
    }
}

impl ToVisit for PackedQueue {
    fn bound(&self) -> Option<(usize, usize)> {
        Some((self.max_bytes()?, self.memory_bytes()))
    }
}

impl Subject for ExactFilter {
    const EXACT: bool = true;
}

impl Subject for BloomFilter {
    fn unite(&mut self, keys: &mut dyn Iterator<Item = &'static str>) -> bool {
        let mut other = BloomFilter::with_hashing(self.sizing(), self.hashing()).unwrap();
        keys.for_each(|key| {
            other.insert(key.as_bytes());
        });
        let estimate = self.estimated_union(&other).unwrap();
        assert!(self.estimated_intersection(&other).unwrap().is_finite());
        self.union(&other).unwrap();
        assert!((self.estimated_len() - estimate).abs() < 1e-9);
        true
    }

    fn catch_up(&self, copy: &mut Self) {
        let mut file = Vec::new();
        self.delta(copy).unwrap().write_to(&mut file).unwrap();
        let delta = Delta::read_from(&mut file.as_slice(), file.len() as u64, None).unwrap();
        copy.apply(&delta).unwrap();
        assert!(file_of(copy) == file_of(self), "a delta left out or made up bits");
        assert!(
            delta.added() == 0 || copy.apply(&delta).is_err(),
            "a delta was applied twice"
        );
    }

    fn save_and_resume<Q: ToVisit>(sieve: &mut Sieve<Self, Q>, policy: OnSaturation) {
        resume(sieve, policy);
    }
}

impl Subject for SeenSet {
    fn save_and_resume<Q: ToVisit>(sieve: &mut Sieve<Self, Q>, policy: OnSaturation) {
        resume(sieve, policy);
    }
}

impl Subject for CountingBloomFilter {
    fn forget<Q: ToVisit>(sieve: &mut Sieve<Self, Q>, key: &str) -> Option<bool> {
        Some(sieve.forget(key))
    }

    fn save_and_resume<Q: ToVisit>(sieve: &mut Sieve<Self, Q>, policy: OnSaturation) {
        resume(sieve, policy);
    }
}

/// How many generations a rotating filter has here.
pub const GENERATIONS: u32 = 3;

impl Subject for RotatingBloomFilter {
    fn generation(&self) -> u64 {
        self.rotations()
    }

    fn remembers(&self, generation: u64) -> bool {
        self.rotations() - generation < u64::from(GENERATIONS)
    }

    fn rotate(&mut self) -> bool {
        RotatingBloomFilter::rotate(self);
        true
    }
}

fn resume<F: Subject + Snapshot, Q: ToVisit>(sieve: &mut Sieve<F, Q>, policy: OnSaturation) {
    let mut file = Vec::new();
    sieve.save_filter(&mut file).unwrap();
    let queue = std::mem::take(sieve.queue_mut());
    let again: Sieve<F, Q> = Sieve::resume(&mut file.as_slice(), file.len() as u64, None, queue).unwrap();
    let (mut resumed, saved) = (again.saturation(), sieve.saturation());
    // The file has the loss, but not its variance, which is estimated after resuming. The self-check depends on it.
    (resumed.lost_noise, resumed.check) = (saved.lost_noise, saved.check);
    assert_eq!(resumed, saved);
    let mut second = Vec::new();
    again.save_filter(&mut second).unwrap();
    assert!(second == file, "a filter changed by being saved and loaded");
    *sieve = again.on_saturation(policy);
}
