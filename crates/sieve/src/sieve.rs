//! The [`Sieve`]: a filter in front of a queue.

mod batch;
mod counters;
mod refused;
mod saving;
mod sift;

use std::collections::VecDeque;
use std::time::Duration;

pub use counters::Counters;
pub use refused::{Refused, RefusedBy};

use crate::counting::CountingBloomFilter;
use crate::filter::Filter;
use crate::on_saturation::OnSaturation;
use crate::queue::{Accepts, Fifo, Queue};
use crate::saturation::Saturation;
use crate::seen_set::SeenSet;

/// A filter in front of a to-visit queue: [`push`](Self::push) drops keys that were seen, [`pop`](Self::pop) returns the next one.
///
/// The defaults are a [`SeenSet`] and a `VecDeque<String>`, which takes `String`, and `&str` with an allocation for new keys only. Any
/// other [`Filter`] and [`Queue`] work, too.
///
/// | method | cost |
/// |---|---|
/// | [`push`](Self::push) | one hash and one test-and-set in the filter; a `VecDeque::push_back` when new |
/// | [`push_all`](Self::push_all) | the same, hashed in batches |
/// | [`pop`](Self::pop) | a `VecDeque::pop_front` |
/// | [`saturation`](Self::saturation) | O(1), some logarithms |
///
/// # Examples
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
/// An item can be more than its key: any type that returns the bytes of its key by `AsRef<[u8]>`. Name its queue with
/// [`build_with`](crate::SieveBuilder::build_with).
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
    counters: Counters,
    is_silent: bool,
}

impl<F: Filter, Q: Queue> Sieve<F, Q> {
    /// Creates a sieve from a filter and a queue, which should be empty.
    ///
    /// Keys that are already in the filter do not count as accepted, and the self-check would report them as excess bits. Use
    /// [`resume`](Self::resume) for a filter that was saved.
    ///
    /// ```
    /// use std::collections::VecDeque;
    /// use sieve::{ExactFilter, Sieve};
    ///
    /// let mut exact: Sieve<_, VecDeque<Vec<u8>>> = Sieve::from_parts(ExactFilter::new(), VecDeque::new());
    /// assert!(exact.push(vec![1, 2, 3]));
    /// ```
    pub fn from_parts(filter: F, queue: Q) -> Self {
        Self {
            counters: Counters::new(&filter),
            filter,
            queue,
            on_saturation: OnSaturation::default(),
            is_silent: false,
        }
    }

    /// Sets the policy for new keys beyond the capacity.
    ///
    /// Whether a filter grows depends on its type: a [`ScalableBloomFilter`](crate::ScalableBloomFilter) grows with every policy. Other
    /// filters do not grow; for them, [`OnSaturation::Grow`] changes only the text in the log. That includes a [`SeenSet`] that was built
    /// for another policy, also after [`resume`](Self::resume): give the policy to the [builder](crate::SieveBuilder::on_saturation) of the
    /// first run if the filter may have to grow.
    #[must_use]
    pub fn on_saturation(mut self, policy: OnSaturation) -> Self {
        self.on_saturation = policy;
        self
    }

    /// Queues an item unless its key was seen: `true` if it was new (the polarity of `HashSet::insert`).
    ///
    /// It is also `false` for an item that is refused, which the [`counters`](Self::counters) count. [`try_push`](Self::try_push)
    /// distinguishes the two and returns the item.
    #[inline]
    pub fn push<T: AsRef<[u8]>>(&mut self, item: T) -> bool
    where
        Q: Accepts<T>,
    {
        self.try_push(item).unwrap_or(false)
    }

    /// Queues an item unless its key was seen: `Ok(true)` if it was new, `Ok(false)` if it was seen.
    ///
    /// # Errors
    ///
    /// The item with the reason, if the queue refuses it, or if the filter is beyond its capacity with [`OnSaturation::Refuse`]. Both are
    /// checked first, so that a refused item is not marked as seen.
    #[inline]
    pub fn try_push<T: AsRef<[u8]>>(&mut self, item: T) -> Result<bool, Refused<T, Q::Refusal>>
    where
        Q: Accepts<T>,
    {
        self.sift(item, |filter, key| filter.insert(key))
    }

    /// Queues all items whose keys were not seen, and returns their number.
    ///
    /// It is faster than as many [`push`](Self::push)es: it hashes a batch of keys, and fetches the filter's memory for all of them at
    /// once, before it marks the first. Push the links of a page at once. Refused items are [counted](Self::counters) and
    /// dropped; [`try_push_all`](Self::try_push_all) returns them.
    pub fn push_all<T: AsRef<[u8]>>(&mut self, items: impl IntoIterator<Item = T>) -> usize
    where
        Q: Accepts<T>,
    {
        let before = self.counters.accepted;
        self.try_push_all(items, |_| ());
        (self.counters.accepted - before) as usize
    }

    /// Queues an item without the filter, for retries: whether its key was seen is neither asked nor changed, and nothing is counted.
    ///
    /// # Errors
    ///
    /// The item with the reason, if the queue refuses it.
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

    /// Returns whether a key was seen. Marks nothing.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.filter.contains(key.as_ref())
    }

    /// Returns the number of queued items.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Says whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Measures how full the filter is and what that has cost so far. Cost: O(1).
    pub fn saturation(&self) -> Saturation {
        self.counters.saturation(self.filter.load())
    }

    /// Says whether new keys are refused now: under [`OnSaturation::Refuse`], past the capacity. Cost: O(1).
    #[inline]
    pub fn is_refusing(&self) -> bool {
        self.on_saturation == OnSaturation::Refuse && self.counters.watch.is_past_capacity(self.filter.ones())
    }

    /// Sets the time, for a forecast of the next level in the saturation lines. Before each batch, such as the links of a page, is often
    /// enough. Any monotonic clock will do. It may begin anew after [`resume`](Self::resume) and [`with_counters`](Self::with_counters).
    pub fn set_now(&mut self, now: Duration) {
        self.counters.watch.set_now(now, || self.filter.load().estimated);
    }

    /// Stops or resumes the saturation lines of the log. What is due while they are stopped is never logged.
    ///
    /// It serves programs that push again what was pushed and logged before, such as from a journal.
    pub fn set_silent(&mut self, is_silent: bool) {
        self.is_silent = is_silent;
    }

    /// Returns the filter.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// Takes the sieve apart, into the filter and the queue. What it has counted is lost.
    ///
    /// ```
    /// let mut sieve = sieve::Sieve::new(1000)?;
    /// sieve.push("https://example.com/".to_owned());
    /// let (filter, queue) = sieve.into_parts();
    /// assert!(sieve::Filter::contains(&filter, b"https://example.com/"));
    /// assert_eq!(queue, ["https://example.com/"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_parts(self) -> (F, Q) {
        (self.filter, self.queue)
    }

    /// Returns the queue.
    pub fn queue(&self) -> &Q {
        &self.queue
    }

    /// Returns the queue mutably, to remove items by its own methods.
    pub fn queue_mut(&mut self) -> &mut Q {
        &mut self.queue
    }
}

impl<Q: Queue> Sieve<CountingBloomFilter, Q> {
    /// Removes a key from the filter, so that it is new again: `false` if it is not in the filter.
    ///
    /// Remove only keys that were accepted; see [`CountingBloomFilter`]. An item in the queue stays there. With
    /// [`OnSaturation::Refuse`], new keys are accepted again as soon as the estimate is within the capacity.
    pub fn forget(&mut self, key: impl AsRef<[u8]>) -> bool {
        let removed = self.filter.remove(key.as_ref());
        self.counters
            .loss
            .fell_to(Filter::ones(&self.filter), self.filter.sizing().bits());
        removed
    }
}

impl<F: Filter, Q: Fifo> Sieve<F, Q> {
    /// Removes the oldest item from the queue and returns it.
    pub fn pop(&mut self) -> Option<Q::Item> {
        self.queue.pop()
    }

    /// Returns an iterator that removes the items from the queue, the oldest first. Items that it does not return stay there.
    pub fn drain(&mut self) -> impl Iterator<Item = Q::Item> {
        std::iter::from_fn(|| self.queue.pop())
    }
}

impl<T: AsRef<[u8]>, F: Filter, Q: Accepts<T>> Extend<T> for Sieve<F, Q> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.push_all(items);
    }
}
