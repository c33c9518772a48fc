//! Sifting one item.

use super::{Refused, RefusedBy, Sieve};
use crate::filter::Filter;
use crate::lines;
use crate::loss::drops_per_accepted;
use crate::queue::{Accepts, Queue};

impl<F: Filter, Q: Queue> Sieve<F, Q> {
    /// Sifts one item: refuses before marking, then one test-and-set, by `insert`, then queues.
    #[inline]
    pub(super) fn sift<T: AsRef<[u8]>>(
        &mut self,
        item: T,
        insert: impl FnOnce(&mut F, &[u8]) -> bool,
    ) -> Result<bool, Refused<T, Q::Refusal>>
    where
        Q: Accepts<T>,
    {
        if let Some(by) = self.refusal(&item) {
            return self.refuse(item, by);
        }
        if !insert(&mut self.filter, item.as_ref()) {
            self.counters.seen += 1;
            return Ok(false);
        }
        self.accept(item);
        Ok(true)
    }

    /// Queues a new item. Apart, so that a seen one is a few instructions.
    #[inline(never)]
    fn accept<T: AsRef<[u8]>>(&mut self, item: T)
    where
        Q: Accepts<T>,
    {
        self.queue.push(item);
        self.counters.accepted += 1;
        self.follow_up(1);
    }

    /// Updates the loss for accepted keys, which are counted before, and logs a level that they reached.
    #[inline]
    pub(super) fn follow_up(&mut self, keys: u64) {
        let ones = self.filter.ones();
        self.counters.loss.accept(keys, ones, || {
            let load = self.filter.load();
            (load.bits, drops_per_accepted(load.rate))
        });
        if self
            .counters
            .watch
            .is_due(ones, self.counters.accepted, self.filter.layers())
        {
            self.look();
        }
    }

    /// Why a new key is refused. A further reason belongs into `needs_no_checks` of `batch.rs`, too.
    #[inline]
    pub(super) fn refusal<T: AsRef<[u8]>>(&self, item: &T) -> Option<RefusedBy<Q::Refusal>>
    where
        Q: Accepts<T>,
    {
        if let Err(refusal) = self.queue.admit(item) {
            return Some(RefusedBy::Queue(refusal));
        }
        self.is_refusing().then_some(RefusedBy::Saturation)
    }

    #[cold]
    pub(super) fn refuse<T: AsRef<[u8]>, R>(&mut self, item: T, by: RefusedBy<R>) -> Result<bool, Refused<T, R>> {
        // A duplicate counts as seen, not as refused.
        if self.filter.contains(item.as_ref()) {
            self.counters.seen += 1;
            return Ok(false);
        }
        self.counters.refused += 1;
        Err(Refused { item, by })
    }

    #[cold]
    fn look(&mut self) {
        let saturation = self.saturation();
        let ones_above = |keys| self.filter.ones_above(keys);
        let notice = self.counters.watch.look(&saturation, self.filter.ones(), ones_above);
        if let Some(notice) = notice.filter(|_| !self.is_silent) {
            lines::report(&saturation, &notice, self.on_saturation);
        }
    }
}
