//! The interface of a [`Sieve`](crate::Sieve) to its queue.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Debug;

/// The to-visit queue behind a filter.
///
/// [`Accepts`] says which items it takes. How items leave is up to the queue: a [`Fifo`] queue pops, another has methods of its own. So
/// has this one, with a queue per host, and one request to a host at a time:
///
/// ```
/// use std::collections::{HashMap, VecDeque};
/// use std::convert::Infallible;
/// use sieve::{Accepts, Queue, Sieve};
///
/// /// The type `Url` does not return its bytes by `AsRef<[u8]>`, so the item is a type of our own.
/// struct Page {
///     host: String,
///     url: String,
/// }
///
/// impl AsRef<[u8]> for Page {
///     fn as_ref(&self) -> &[u8] {
///         self.url.as_bytes()
///     }
/// }
///
/// #[derive(Default)]
/// struct HostQueues {
///     /// The hosts with a page that waits or is leased.
///     hosts: HashMap<String, VecDeque<Page>>,
///     /// Those with a page that waits and none that is leased.
///     ready: VecDeque<String>,
///     waiting: usize,
/// }
///
/// impl Queue for HostQueues {
///     fn len(&self) -> usize {
///         self.waiting
///     }
/// }
///
/// impl Accepts<Page> for HostQueues {
///     type Refusal = Infallible;
///     fn admit(&self, _: &Page) -> Result<(), Infallible> {
///         Ok(())
///     }
///     fn push(&mut self, page: Page) {
///         self.waiting += 1;
///         let queue = self.hosts.entry(page.host.clone()).or_insert_with_key(|host| {
///             self.ready.push_back(host.clone());
///             VecDeque::new()
///         });
///         queue.push_back(page);
///     }
/// }
///
/// impl HostQueues {
///     fn lease(&mut self) -> Option<Page> {
///         let page = self.hosts.get_mut(&self.ready.pop_front()?)?.pop_front()?;
///         self.waiting -= 1;
///         Some(page)
///     }
///     /// Call it when the host may be asked again: at once, or after a delay.
///     fn release(&mut self, host: String) {
///         if self.hosts[&host].is_empty() {
///             self.hosts.remove(&host);
///         } else {
///             self.ready.push_back(host);
///         }
///     }
/// }
///
/// let mut to_visit = Sieve::builder().build_with(HostQueues::default())?;
/// for url in ["https://a.example/1", "https://a.example/2", "https://a.example/1"] {
///     to_visit.push(Page { host: "a.example".into(), url: url.into() });
/// }
/// let page = to_visit.queue_mut().lease().ok_or("none waits")?;
/// assert!(to_visit.queue_mut().lease().is_none(), "its host is asked");
/// assert_eq!(to_visit.len(), 1, "what is leased does not wait any more");
/// to_visit.queue_mut().release(page.host);
/// assert!(to_visit.queue_mut().lease().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Queue {
    /// The number of items that wait, without those that were taken and are in flight.
    fn len(&self) -> usize;

    /// Whether the queue is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A queue that accepts items of type `T`. The bytes of an item are the key that it is deduplicated on.
///
/// A queue of owned items may accept borrowed ones, too: `VecDeque<String>` takes `&str`, and allocates for new keys only. Other texts,
/// such as a `Url`, a `Cow<str>` or a `Box<str>`, are pushed as `&str`: `push(url.as_str())`, `push(&*text)`.
///
/// For items of your own, choose their queue when you build the sieve: `Sieve::builder().build_with(VecDeque::<Item>::new())`
/// ([an example](crate::Sieve#examples)).
///
/// A queue may refuse items. Its own type of refusal is returned to the caller of the sieve, in [`RefusedBy::Queue`](crate::RefusedBy):
/// [an example](crate::guide#keep-what-a-full-queue-refuses).
#[diagnostic::on_unimplemented(
    message = "the queue `{Self}` does not accept items of type `{T}`",
    label = "this queue has other items",
    note = "the default queue, `VecDeque<String>`, accepts `String`, `&String` and `&str`: convert other texts by `as_str()` or `&*`",
    note = "for items of your own type, build the sieve with their queue: `Sieve::builder().build_with(VecDeque::<Item>::new())`"
)]
pub trait Accepts<T: AsRef<[u8]>>: Queue {
    /// Why an item is refused; [`Infallible`] for a queue that accepts everything. With `Display`, a [`Refused`](crate::Refused) item is an
    /// `Error`.
    type Refusal: Copy + Debug + PartialEq;

    /// Checks whether the queue accepts this item. The sieve calls it before the filter marks the item as seen.
    ///
    /// # Errors
    ///
    /// The reason why the queue refuses it.
    fn admit(&self, item: &T) -> Result<(), Self::Refusal>;

    /// Queues the item. It must succeed for an item that was just admitted.
    ///
    /// It must not panic: in a batch, all new items are marked before the first is pushed. A panic would lose up to 31 of them.
    fn push(&mut self, item: T);

    /// Returns whether it will admit the next `count` items, whatever they are. The sieve then skips [`admit`](Self::admit) for a batch.
    /// `false` unless you say otherwise; an unbounded queue returns `true`.
    fn admits_next(&self, _count: usize) -> bool {
        false
    }
}

/// A first-in, first-out queue.
pub trait Fifo: Queue {
    /// The items.
    type Item;

    /// Removes the oldest item and returns it.
    fn pop(&mut self) -> Option<Self::Item>;
}

impl<T> Queue for VecDeque<T> {
    fn len(&self) -> usize {
        Self::len(self)
    }
}

impl<T, I: AsRef<[u8]> + Into<T>> Accepts<I> for VecDeque<T> {
    type Refusal = Infallible;

    fn admit(&self, _item: &I) -> Result<(), Infallible> {
        Ok(())
    }

    fn admits_next(&self, _count: usize) -> bool {
        true
    }

    #[inline]
    fn push(&mut self, item: I) {
        self.push_back(item.into());
    }
}

impl<T> Fifo for VecDeque<T> {
    type Item = T;

    #[inline]
    fn pop(&mut self) -> Option<T> {
        self.pop_front()
    }
}
