//! The interface of a [`Sieve`](crate::Sieve) to its queue.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Debug;

/// The to-visit queue behind a filter.
///
/// [`Accepts`] says which items it takes. How items leave is up to the queue: a [`Fifo`] queue pops, a queue per host returns leases.
pub trait Queue {
    /// The number of queued items.
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
/// A queue may refuse items. Its own type of refusal is returned to the caller of the sieve:
///
/// ```
/// use sieve::{Accepts, Queue, RefusedBy, Sieve};
///
/// #[derive(Default)]
/// struct Short(Vec<String>);
///
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// enum Because {
///     TooLong,
///     Full,
/// }
///
/// // So that a refused item is an `Error`.
/// impl std::fmt::Display for Because {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         write!(f, "the queue refuses it: {self:?}")
///     }
/// }
///
/// impl Queue for Short {
///     fn len(&self) -> usize {
///         self.0.len()
///     }
/// }
///
/// impl Accepts<String> for Short {
///     type Refusal = Because;
///     fn admit(&self, item: &String) -> Result<(), Because> {
///         match item.len() {
///             100.. => Err(Because::TooLong),
///             _ if self.0.len() == 1000 => Err(Because::Full),
///             _ => Ok(()),
///         }
///     }
///     fn push(&mut self, item: String) {
///         self.0.push(item);
///     }
/// }
///
/// let mut to_visit = Sieve::builder().build_with(Short::default())?;
/// let refused = to_visit.try_push("a".repeat(100)).unwrap_err();
/// assert_eq!(refused.by, RefusedBy::Queue(Because::TooLong));
/// let error: &dyn std::error::Error = &refused;
/// assert_eq!(error.to_string(), "the queue refuses it: TooLong");
/// # Ok::<(), sieve::ConfigError>(())
/// ```
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
