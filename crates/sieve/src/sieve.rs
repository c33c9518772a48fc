//! The filter in front of the queue. This is the only file that logs.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::bloom::BloomFilter;
use crate::filter::Filter;
use crate::loss::LossMeter;
use crate::queue::{Fifo, Queue};
use crate::saturation::{Level, Notice, Saturation, SelfCheck, Watch};
use crate::sizing::{ConfigError, Sizing};

/// The `log` target of the saturation lines.
const TARGET: &str = "sieve::saturation";

/// The false-positive rate unless another is given: 1 %.
pub const DEFAULT_FALSE_POSITIVE_RATE: f64 = 0.01;

/// How many keys of a batch are hashed before the first is marked.
const BATCH: usize = 32;

/// What happens to new keys once the estimate exceeds the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnSaturation {
    /// They are still accepted, with a growing share wrongly dropped; the log says how many.
    #[default]
    Warn,
    /// They are refused and not marked: nothing is lost silently, and nothing new comes in.
    Refuse,
}

/// Why an item was neither queued nor taken for seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusedBy {
    /// The queue has no room for it.
    Queue,
    /// The filter is past its capacity, and was built with [`OnSaturation::Refuse`].
    Saturation,
}

/// An item that was refused, handed back. It was not marked as seen: it can be offered again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused<T> {
    /// The item.
    pub item: T,
    /// Who refused it.
    pub by: RefusedBy,
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.by {
            RefusedBy::Queue => "the queue is full: take items out before offering more",
            RefusedBy::Saturation => "the filter is past its capacity: start again with a larger one",
        })
    }
}

impl<T: fmt::Debug> std::error::Error for Refused<T> {}

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
/// Filter and queue can be any [`Filter`] and [`Queue`]; by default a [`BloomFilter`] and a `VecDeque<String>`.
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
#[derive(Debug, Clone)]
pub struct Sieve<F = BloomFilter, Q = VecDeque<String>> {
    filter: F,
    queue: Q,
    on_saturation: OnSaturation,
    tally: Tally,
    loss: LossMeter,
    watch: Watch,
}

impl Sieve {
    /// Creates a sieve of strings for `capacity` distinct keys at a false-positive rate of 1 %.
    ///
    /// # Errors
    ///
    /// A capacity of 0, or one whose filter cannot be allocated.
    pub fn new(capacity: u64) -> Result<Self, ConfigError> {
        Self::builder().capacity(capacity).build()
    }

    /// Starts the description of a sieve of strings.
    pub fn builder() -> SieveBuilder {
        SieveBuilder::default()
    }
}

/// The description of a sieve; see [`Sieve::builder`].
#[derive(Debug, Clone)]
pub struct SieveBuilder {
    capacity: u64,
    rate: f64,
    seed: u64,
    on_saturation: OnSaturation,
}

impl Default for SieveBuilder {
    fn default() -> Self {
        Self {
            capacity: 1_000_000,
            rate: DEFAULT_FALSE_POSITIVE_RATE,
            seed: 0,
            on_saturation: OnSaturation::default(),
        }
    }
}

impl SieveBuilder {
    /// Sets the number of distinct keys that are expected; 1 000 000 unless set.
    #[must_use]
    pub fn capacity(mut self, keys: u64) -> Self {
        self.capacity = keys;
        self
    }

    /// Sets the false-positive rate at capacity, a fraction above 0 and below 1; 0.01 unless set.
    #[must_use]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// Sets the seed of the hash; 0 unless set, so that equal input gives equal filters.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets what happens past the capacity; [`OnSaturation::Warn`] unless set.
    #[must_use]
    pub fn on_saturation(mut self, policy: OnSaturation) -> Self {
        self.on_saturation = policy;
        self
    }

    /// Builds the sieve with a `VecDeque<String>` as its queue.
    ///
    /// # Errors
    ///
    /// As [`Sizing::for_rate`], or when the memory cannot be allocated.
    pub fn build(self) -> Result<Sieve, ConfigError> {
        self.build_with(VecDeque::new())
    }

    /// Builds the sieve with a queue of your own.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn build_with<Q: Queue>(self, queue: Q) -> Result<Sieve<BloomFilter, Q>, ConfigError> {
        let sizing = Sizing::for_rate(self.capacity, self.rate)?;
        let filter = BloomFilter::with_seed(sizing, self.seed)?;
        Ok(Sieve::from_parts(filter, queue).on_saturation(self.on_saturation))
    }
}

impl<F: Filter, Q: Queue> Sieve<F, Q> {
    /// Puts a filter in front of a queue. Both should be empty: keys already in them are not counted as accepted.
    ///
    /// ```
    /// use std::collections::VecDeque;
    /// use sieve::{ExactFilter, Sieve};
    ///
    /// let mut exact: Sieve<_, VecDeque<Vec<u8>>> = Sieve::from_parts(ExactFilter::new(), VecDeque::new());
    /// assert!(exact.push(vec![1, 2, 3]));
    /// ```
    pub fn from_parts(filter: F, queue: Q) -> Self {
        let watch = Watch::new(|keys| filter.ones_above(keys), filter.load().capacity);
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
    pub fn push(&mut self, item: Q::Item) -> bool {
        self.try_push(item).unwrap_or(false)
    }

    /// Queues an item unless its key was seen: `Ok(true)` when it was new, `Ok(false)` when it was seen.
    ///
    /// # Errors
    ///
    /// Hands the item back, unmarked, when the queue has no room for it, or when the filter is past its capacity under
    /// [`OnSaturation::Refuse`]. Both are asked before the filter is touched.
    #[inline]
    pub fn try_push(&mut self, item: Q::Item) -> Result<bool, Refused<Q::Item>> {
        let digest = self.filter.digest(item.as_ref());
        self.sift(item, digest)
    }

    /// Queues all items whose keys were not seen, and returns how many were.
    ///
    /// Faster than as many [`push`](Self::push)es: keys are hashed in batches. Give it the links of a page at once.
    pub fn push_all(&mut self, items: impl IntoIterator<Item = Q::Item>) -> usize {
        let mut fresh = 0;
        self.try_push_all(items, |outcome| fresh += usize::from(outcome.unwrap_or(false)));
        fresh
    }

    /// Offers all items as [`try_push`](Self::try_push) would, in order, and hands each outcome to `each`.
    pub fn try_push_all(
        &mut self,
        items: impl IntoIterator<Item = Q::Item>,
        mut each: impl FnMut(Result<bool, Refused<Q::Item>>),
    ) {
        let mut items = items.into_iter();
        let mut batch = Vec::with_capacity(items.size_hint().0.min(BATCH));
        loop {
            batch.extend(items.by_ref().take(BATCH).map(|item| {
                let digest = self.filter.digest(item.as_ref());
                (item, digest)
            }));
            if batch.is_empty() {
                return;
            }
            for (item, digest) in batch.drain(..) {
                each(self.sift(item, digest));
            }
        }
    }

    /// Puts an item back into the queue, past the filter: for retries.
    ///
    /// # Errors
    ///
    /// Hands the item back when the queue has no room for it.
    pub fn requeue(&mut self, item: Q::Item) -> Result<(), Refused<Q::Item>> {
        if !self.queue.admits(&item) {
            return Err(Refused {
                item,
                by: RefusedBy::Queue,
            });
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
    fn sift(&mut self, item: Q::Item, digest: F::Digest) -> Result<bool, Refused<Q::Item>> {
        if let Some(by) = self.refusal(&item) {
            return self.refuse(item, by);
        }
        if !self.filter.insert_digest(item.as_ref(), digest) {
            self.tally.seen += 1;
            return Ok(false);
        }
        self.queue.push(item);
        self.tally.accepted += 1;
        self.loss.accept(&self.filter);
        if self.watch.is_due(self.filter.ones(), self.tally.accepted) {
            self.look();
        }
        Ok(true)
    }

    #[inline]
    fn refusal(&self, item: &Q::Item) -> Option<RefusedBy> {
        if !self.queue.admits(item) {
            return Some(RefusedBy::Queue);
        }
        let past_capacity = self.on_saturation == OnSaturation::Refuse && self.watch.is_past_capacity();
        past_capacity.then_some(RefusedBy::Saturation)
    }

    #[cold]
    fn refuse(&mut self, item: Q::Item, by: RefusedBy) -> Result<bool, Refused<Q::Item>> {
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
        if let Some(notice) = self.watch.look(&saturation, |keys| self.filter.ones_above(keys)) {
            report(&saturation, &notice, self.on_saturation);
        }
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

impl<F: Filter, Q: Queue> Extend<Q::Item> for Sieve<F, Q> {
    fn extend<I: IntoIterator<Item = Q::Item>>(&mut self, items: I) {
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

fn report(saturation: &Saturation, notice: &Notice, policy: OnSaturation) {
    let (severity, next_level_in) = match notice {
        Notice::Level { next_level_in } if saturation.level < Level::FULL => (log::Level::Info, *next_level_in),
        Notice::Level { next_level_in } => (log::Level::Warn, *next_level_in),
        Notice::Suspicion => (log::Level::Warn, None),
    };
    let Saturation {
        level,
        estimated,
        capacity,
        accepted,
        fill,
        rate,
        lost,
        bits,
        ones,
        hashes,
        memory_bytes,
        ..
    } = *saturation;
    log::log!(
        target: TARGET,
        severity,
        level:% = level,
        estimated,
        capacity,
        accepted,
        fill,
        rate,
        lost,
        bits,
        ones,
        hashes,
        memory_bytes,
        consistent = !matches!(saturation.check, SelfCheck::Suspicious { .. }),
        next_level_seconds = next_level_in.map(|wait| wait.as_secs_f64());
        "seen-set {level}: {saturation}{}{}",
        Forecast(level.next(), next_level_in),
        Remedy(saturation, policy),
    );
}

/// "; 1.5x in about 20 min at this pace", or nothing without a clock.
struct Forecast(Level, Option<Duration>);

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(level, Some(wait)) = self else {
            return Ok(());
        };
        let seconds = wait.as_secs();
        match seconds {
            0..120 => write!(f, "; {level} in about {seconds} s at this pace"),
            120..7200 => write!(f, "; {level} in about {} min at this pace", seconds / 60),
            _ => write!(f, "; {level} in about {} h at this pace", seconds / 3600),
        }
    }
}

/// What the operator can do about it.
struct Remedy<'a>(&'a Saturation, OnSaturation);

impl fmt::Display for Remedy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(saturation, policy) = self;
        let enough = (saturation.estimated * 2.0).ceil();
        match policy {
            _ if saturation.level < Level::FULL => {
                write!(
                    f,
                    ". If many more keys are to come, plan for a capacity of {enough:.0} or more"
                )
            }
            OnSaturation::Warn => {
                write!(f, ". To lose fewer, start again with a capacity of {enough:.0} or more")
            }
            OnSaturation::Refuse => {
                write!(
                    f,
                    ". New keys are refused from now on; start again with a capacity of {enough:.0} or more"
                )
            }
        }
    }
}
