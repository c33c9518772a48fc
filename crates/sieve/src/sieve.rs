//! The filter in front of the queue.

mod batch;
mod refused;
mod saving;

use std::collections::VecDeque;
use std::time::Duration;

use batch::Sifted;
pub use refused::{Refused, RefusedBy};

use crate::counting::CountingBloomFilter;
use crate::filter::Filter;
use crate::lines;
use crate::loss::{LossMeter, drops_per_accepted};
use crate::on_saturation::OnSaturation;
use crate::queue::{Accepts, Fifo, Queue};
use crate::saturation::{Saturation, Watch};
use crate::seen_set::SeenSet;

/// How many items met which fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Tally {
    /// New, marked and queued.
    pub accepted: u64,
    /// Taken for seen: duplicates, and the new keys that were wrongly dropped.
    pub seen: u64,
    /// Refused, and not marked.
    pub refused: u64,
}

/// A filter in front of a to-visit queue: [`push`](Self::push) drops what was seen, [`pop`](Self::pop) hands out the next.
///
/// Filter and queue can be any [`Filter`] and [`Queue`]; by default a [`SeenSet`] and a `VecDeque<String>`,
/// which takes in `String` and, allocating for new keys only, `&str`.
///
/// | method | cost |
/// |---|---|
/// | [`push`](Self::push) | one hash and one test-and-set in the filter; a `VecDeque::push_back` when new |
/// | [`push_all`](Self::push_all) | the same, hashed in batches |
/// | [`pop`](Self::pop) | a `VecDeque::pop_front` |
/// | [`saturation`](Self::saturation) | O(1), some logarithms |
///
/// ```
/// use sieve::{OnSaturation, Sieve};
///
/// let mut to_visit = Sieve::builder()
///     .capacity(10_000)
///     .false_positive_rate(0.001)
///     .seed(42)
///     .on_saturation(OnSaturation::Warn)
///     .build()?;
/// let links = ["https://a.example/", "https://b.example/", "https://a.example/"];
/// assert_eq!(to_visit.push_all(links.map(String::from)), 2);
/// assert_eq!(to_visit.drain().count(), 2);
/// assert!(to_visit.saturation().lost < 0.01);
/// # Ok::<(), sieve::ConfigError>(())
/// ```
///
/// What waits can be more than its key: any item that shows the bytes of its key by `AsRef<[u8]>`, in a queue of such items.
///
/// ```
/// use std::collections::VecDeque;
/// use sieve::Sieve;
///
/// struct Link {
///     url: String,
///     depth: u32,
/// }
///
/// impl AsRef<[u8]> for Link {
///     fn as_ref(&self) -> &[u8] {
///         self.url.as_bytes()
///     }
/// }
///
/// let mut to_visit = Sieve::builder().build_with(VecDeque::<Link>::new())?;
/// to_visit.push(Link { url: "https://a.example/".into(), depth: 0 });
/// assert!(!to_visit.push(Link { url: "https://a.example/".into(), depth: 3 }), "the same key");
/// assert_eq!(to_visit.pop().map(|link| link.depth), Some(0));
/// # Ok::<(), sieve::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sieve<F = SeenSet, Q = VecDeque<String>> {
    filter: F,
    queue: Q,
    on_saturation: OnSaturation,
    tally: Tally,
    loss: LossMeter,
    watch: Watch,
}

impl<F: Filter, Q: Queue> Sieve<F, Q> {
    /// Puts a filter in front of a queue. Both should be empty: keys already in them are not counted as accepted, so that the self-check would
    /// find more bits set than they explain. For a filter that was saved there is [`resume`](Self::resume).
    ///
    /// ```
    /// use std::collections::VecDeque;
    /// use sieve::{ExactFilter, Sieve};
    ///
    /// let mut exact: Sieve<_, VecDeque<Vec<u8>>> = Sieve::from_parts(ExactFilter::new(), VecDeque::new());
    /// assert!(exact.push(vec![1, 2, 3]));
    /// ```
    pub fn from_parts(filter: F, queue: Q) -> Self {
        let load = filter.load();
        let watch = Watch::new(|keys| filter.ones_above(keys), load.capacity, load.layers);
        Self {
            filter,
            queue,
            on_saturation: OnSaturation::default(),
            tally: Tally::default(),
            loss: LossMeter::default(),
            watch,
        }
    }

    /// Sets what happens to new keys past the capacity.
    ///
    /// Growing is the filter's own affair: a [`ScalableBloomFilter`](crate::ScalableBloomFilter) grows under every policy, no other filter does under
    /// [`OnSaturation::Grow`], which then only changes the wording in the log.
    #[must_use]
    pub fn on_saturation(mut self, policy: OnSaturation) -> Self {
        self.on_saturation = policy;
        self
    }

    /// Queues an item unless its key was seen: `true` when it was new (the polarity of `HashSet::insert`).
    ///
    /// An item that is refused also gives `false` and is counted in the [`tally`](Self::tally);
    /// [`try_push`](Self::try_push) tells the two apart and hands the item back.
    #[inline]
    pub fn push<T: AsRef<[u8]>>(&mut self, item: T) -> bool
    where
        Q: Accepts<T>,
    {
        self.try_push(item).unwrap_or(false)
    }

    /// Queues an item unless its key was seen: `Ok(true)` when it was new, `Ok(false)` when it was seen.
    ///
    /// # Errors
    ///
    /// Hands the item back, unmarked, when the queue does not admit it, by the refusal that the queue names, or when the filter is past its capacity under
    /// [`OnSaturation::Refuse`]. Both are asked before the filter is touched.
    #[inline]
    pub fn try_push<T: AsRef<[u8]>>(&mut self, item: T) -> Result<bool, Refused<T, Q::Refusal>>
    where
        Q: Accepts<T>,
    {
        let digest = self.filter.digest(item.as_ref());
        self.sift(item, digest)
    }

    /// Queues all items whose keys were not seen, and returns how many were.
    ///
    /// Faster than as many [`push`](Self::push)es: a batch of keys is hashed, and the filter's memory fetched for all of them at once,
    /// before the first is marked. Give it the links of a page at once. What a bounded queue, or a filter that refuses, turns away is
    /// counted in the [`tally`](Self::tally) and dropped: [`try_push_all`](Self::try_push_all) hands it back.
    pub fn push_all<T: AsRef<[u8]>>(&mut self, items: impl IntoIterator<Item = T>) -> usize
    where
        Q: Accepts<T>,
    {
        let mut fresh = 0;
        self.sift_all(items, |sifted| {
            fresh += match sifted {
                Sifted::Of(outcome) => usize::from(outcome.unwrap_or(false)),
                Sifted::OfBatch { new, .. } => new,
            }
        });
        fresh
    }

    /// Offers all items as [`try_push`](Self::try_push) would, in order, and hands each outcome to `each`.
    ///
    /// # Panics
    ///
    /// If the iterator or `each` does. What is marked is queued then too, but up to 31 items that were taken out of the iterator are dropped
    /// with the batch, neither marked nor queued: they can be offered again.
    pub fn try_push_all<T: AsRef<[u8]>>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(Result<bool, Refused<T, Q::Refusal>>),
    ) where
        Q: Accepts<T>,
    {
        self.sift_all(items, |sifted| match sifted {
            Sifted::Of(outcome) => each(outcome),
            Sifted::OfBatch { is_new, .. } => is_new.iter().for_each(|&new| each(Ok(new))),
        });
    }

    /// Puts an item back into the queue, past the filter: for retries.
    ///
    /// # Errors
    ///
    /// Hands the item back when the queue does not admit it.
    pub fn requeue<T: AsRef<[u8]>>(&mut self, item: T) -> Result<(), Refused<T, Q::Refusal>>
    where
        Q: Accepts<T>,
    {
        if let Err(refusal) = self.queue.admit(&item) {
            let by = RefusedBy::Queue(refusal);
            return Err(Refused { item, by });
        }
        self.queue.push(item);
        Ok(())
    }

    /// Says whether a key was seen; marks nothing.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.filter.contains(key.as_ref())
    }

    /// Returns the number of items that wait in the queue.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Says whether nothing waits in the queue.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Measures how full the filter is and what that has cost so far. Cost: O(1).
    pub fn saturation(&self) -> Saturation {
        Saturation::of(&self.filter.load(), self.tally.accepted, self.loss.lost())
    }

    /// Returns how many items met which fate.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Tells the sieve the time, on any clock that only goes forward; the saturation lines then say when the next comes.
    pub fn set_now(&mut self, now: Duration) {
        self.watch.set_now(now, || self.filter.load().estimated_len);
    }

    /// Gives access to the filter.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// Gives access to the queue.
    pub fn queue(&self) -> &Q {
        &self.queue
    }

    /// Gives access to the queue, to take items out in its own way.
    pub fn queue_mut(&mut self) -> &mut Q {
        &mut self.queue
    }

    /// Decides one item's fate: refuse before marking, then one test-and-set, then queue.
    #[inline]
    fn sift<T: AsRef<[u8]>>(&mut self, item: T, digest: F::Digest) -> Result<bool, Refused<T, Q::Refusal>>
    where
        Q: Accepts<T>,
    {
        if let Some(by) = self.refusal(&item) {
            return self.refuse(item, by);
        }
        if !self.filter.insert_digest(item.as_ref(), digest) {
            self.tally.seen += 1;
            return Ok(false);
        }
        self.queue.push(item);
        self.tally.accepted += 1;
        self.follow_up(1);
        Ok(true)
    }

    /// Follows up keys that were accepted: their share of the loss, and what is to be told.
    #[inline]
    fn follow_up(&mut self, keys: u64) {
        self.loss.accept(keys, self.filter.ones(), || {
            let load = self.filter.load();
            (load.bits, drops_per_accepted(load.false_positive_rate))
        });
        if self
            .watch
            .is_due(self.filter.ones(), self.tally.accepted, self.filter.layers())
        {
            self.look();
        }
    }

    #[inline]
    fn refusal<T: AsRef<[u8]>>(&self, item: &T) -> Option<RefusedBy<Q::Refusal>>
    where
        Q: Accepts<T>,
    {
        if let Err(refusal) = self.queue.admit(item) {
            return Some(RefusedBy::Queue(refusal));
        }
        let past_capacity =
            self.on_saturation == OnSaturation::Refuse && self.watch.is_past_capacity(self.filter.ones());
        past_capacity.then_some(RefusedBy::Saturation)
    }

    #[cold]
    fn refuse<T: AsRef<[u8]>, R>(&mut self, item: T, by: RefusedBy<R>) -> Result<bool, Refused<T, R>> {
        // Nothing is marked on this way, so that asking first is no race: a duplicate is still a duplicate.
        if self.filter.contains(item.as_ref()) {
            self.tally.seen += 1;
            return Ok(false);
        }
        self.tally.refused += 1;
        Err(Refused { item, by })
    }

    #[cold]
    fn look(&mut self) {
        let saturation = self.saturation();
        let ones_above = |keys| self.filter.ones_above(keys);
        if let Some(notice) = self.watch.look(&saturation, self.filter.ones(), ones_above) {
            lines::report(&saturation, &notice, self.on_saturation);
        }
    }
}

impl<Q: Queue> Sieve<CountingBloomFilter, Q> {
    /// Takes a key out of the filter, so that it may come again: `false` when it is certainly not there.
    ///
    /// Only for keys that were accepted; see [`CountingBloomFilter`]. An item that still waits in the queue stays there.
    /// Under [`OnSaturation::Refuse`], new keys are taken in again as soon as the estimate is back within the capacity.
    pub fn forget(&mut self, key: impl AsRef<[u8]>) -> bool {
        let removed = self.filter.remove(key.as_ref());
        self.loss
            .fell_to(Filter::ones(&self.filter), self.filter.sizing().bits());
        removed
    }
}

impl<F: Filter, Q: Fifo> Sieve<F, Q> {
    /// Takes the oldest item out of the queue.
    pub fn pop(&mut self) -> Option<Q::Item> {
        self.queue.pop()
    }

    /// Takes the items out one after the other, until none is left.
    pub fn drain(&mut self) -> Drain<'_, Q> {
        Drain { queue: &mut self.queue }
    }
}

impl<T: AsRef<[u8]>, F: Filter, Q: Accepts<T>> Extend<T> for Sieve<F, Q> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.push_all(items);
    }
}

/// Takes items out of a sieve; see [`Sieve::drain`]. What is not taken stays in the queue.
#[derive(Debug)]
pub struct Drain<'a, Q> {
    queue: &'a mut Q,
}

impl<Q: Fifo> Iterator for Drain<'_, Q> {
    type Item = Q::Item;

    fn next(&mut self) -> Option<Q::Item> {
        self.queue.pop()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.queue.len(), Some(self.queue.len()))
    }
}
