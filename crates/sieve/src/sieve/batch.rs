//! Sifting many items at once.

use super::{Refused, Sieve};
use crate::filter::Filter;
use crate::queue::{Accepts, Queue};
use crate::sizing::MAX_HASHES;

/// The number of keys that are hashed before the first is marked.
const BATCH: usize = 32;

impl<F: Filter, Q: Queue> Sieve<F, Q> {
    /// Pushes all items as [`try_push`](Self::try_push) does, in order, and calls `each` with each result.
    ///
    /// # Panics
    ///
    /// If the iterator or `each` panics. Items that are marked are queued even then. Up to 31 items of the batch are dropped, neither
    /// marked nor queued, and can be pushed again.
    pub fn try_push_all<T: AsRef<[u8]>>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(Result<bool, Refused<T, Q::Refusal>>),
    ) where
        Q: Accepts<T>,
    {
        let mut items = items.into_iter().fuse();
        let mut batch = [const { None }; BATCH];
        let mut digests = [F::Digest::default(); BATCH];
        let mut is_new = [false; BATCH];
        loop {
            // Each is hashed as soon as it is there: what it points to is fetched while the one before is hashed.
            let keys = batch.iter_mut().zip(items.by_ref());
            let keys = keys.map(|(slot, item)| {
                let item: &T = slot.insert(item);
                item.as_ref()
            });
            let count = self.filter.digest_batch(keys, &mut digests);
            let (batch, digests) = (&mut batch[..count], &digests[..count]);
            if self.needs_no_checks::<T>() {
                let keys = batch.iter().flatten().map(AsRef::as_ref);
                self.filter.insert_batch(keys, digests, &mut is_new[..count]);
                self.queue_new(batch, &is_new, &mut each);
            } else {
                self.sift_one_by_one(batch, digests, &mut each);
            }
            if count < BATCH {
                return;
            }
        }
    }

    /// Returns whether a batch needs no checks: no item can be refused, and no level can be reached.
    #[inline]
    fn needs_no_checks<T: AsRef<[u8]>>(&self) -> bool
    where
        Q: Accepts<T>,
    {
        let most_ones = BATCH as u64 * u64::from(MAX_HASHES);
        self.queue.admits_next(BATCH)
            && !self.is_refusing()
            && self
                .counters
                .watch
                .is_quiet_until(self.filter.ones() + most_ones, self.counters.accepted + BATCH as u64)
    }

    /// Queues the new items of a batch that needs no checks, after all are marked.
    ///
    /// No processor can predict whether the next item is new. So there is no branch on it: it decides where a number is written.
    #[inline]
    fn queue_new<T: AsRef<[u8]>>(
        &mut self,
        batch: &mut [Option<T>],
        is_new: &[bool; BATCH],
        each: &mut impl FnMut(Result<bool, Refused<T, Q::Refusal>>),
    ) where
        Q: Accepts<T>,
    {
        let is_new = &is_new[..batch.len()];
        let mut places = [0_u8; BATCH];
        let mut new = 0;
        for (at, &is_new) in is_new.iter().enumerate() {
            places[new] = at as u8;
            new += usize::from(is_new);
        }
        for &at in &places[..new] {
            if let Some(item) = batch[usize::from(at)].take() {
                self.queue.push(item);
            }
        }
        self.counters.seen += (batch.len() - new) as u64;
        self.counters.accepted += new as u64;
        self.follow_up(new as u64);
        is_new.iter().for_each(|&new| each(Ok(new)));
    }

    #[inline(never)]
    fn sift_one_by_one<T: AsRef<[u8]>>(
        &mut self,
        batch: &mut [Option<T>],
        digests: &[F::Digest],
        each: &mut impl FnMut(Result<bool, Refused<T, Q::Refusal>>),
    ) where
        Q: Accepts<T>,
    {
        for (slot, digest) in batch.iter_mut().zip(digests) {
            if let Some(item) = slot.take() {
                each(self.sift(item, |filter, key| filter.insert_digest(key, *digest)));
            }
        }
    }
}
