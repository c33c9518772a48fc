//! What a [`Sieve`](crate::Sieve) asks of a queue.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Debug;

/// The to-visit queue behind a filter.
///
/// What it takes in is said by [`Accepts`]; how items leave is the queue's own affair: a [`Fifo`] queue pops, a queue of hosts
/// hands out leases.
pub trait Queue {
    /// Returns the number of items that wait.
    fn len(&self) -> usize;

    /// Says whether nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A queue that takes in items of type `T`, whose bytes are the key they are deduplicated on.
///
/// A queue of owned items may accept borrowed ones too: `VecDeque<String>` takes `&str`, and allocates for new keys only.
///
/// A queue that does not take in everything says why, in its own words, and whoever offered the item gets them back:
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
/// # Ok::<(), sieve::ConfigError>(())
/// ```
pub trait Accepts<T: AsRef<[u8]>>: Queue {
    /// Why an item is not taken in; [`Infallible`] for a queue that takes in everything.
    type Refusal: Copy + Debug + PartialEq;

    /// Says whether there is room for this item. It is asked before the filter marks the item as seen.
    ///
    /// # Errors
    ///
    /// Why it would not be taken in now.
    fn admit(&self, item: &T) -> Result<(), Self::Refusal>;

    /// Takes the item in. It must not fail for an item that was just admitted.
    ///
    /// Nor may it panic: of a batch, all new items are marked before the first is pushed, so the panic would lose the rest of
    /// them, up to 31.
    fn push(&mut self, item: T);

    /// Says whether it will admit the next `count` items, whatever they are. A batch is then not asked for one by one.
    fn admits_next(&self, _count: usize) -> bool {
        false
    }
}

/// A queue that hands out its items in the order of arrival.
pub trait Fifo: Queue {
    /// What comes out.
    type Item;

    /// Takes the oldest item out.
    fn pop(&mut self) -> Option<Self::Item>;
}

impl<T> Queue for VecDeque<T> {
    fn len(&self) -> usize {
        Self::len(self)
    }
}

impl<T: AsRef<[u8]>> Accepts<T> for VecDeque<T> {
    type Refusal = Infallible;

    fn admit(&self, _item: &T) -> Result<(), Infallible> {
        Ok(())
    }

    fn admits_next(&self, _count: usize) -> bool {
        true
    }

    #[inline]
    fn push(&mut self, item: T) {
        self.push_back(item);
    }
}

impl Accepts<&str> for VecDeque<String> {
    type Refusal = Infallible;

    fn admit(&self, _item: &&str) -> Result<(), Infallible> {
        Ok(())
    }

    fn admits_next(&self, _count: usize) -> bool {
        true
    }

    #[inline]
    fn push(&mut self, item: &str) {
        self.push_back(item.to_owned());
    }
}

impl Accepts<&String> for VecDeque<String> {
    type Refusal = Infallible;

    fn admit(&self, _item: &&String) -> Result<(), Infallible> {
        Ok(())
    }

    fn admits_next(&self, _count: usize) -> bool {
        true
    }

    #[inline]
    fn push(&mut self, item: &String) {
        self.push_back(item.clone());
    }
}

impl Accepts<&[u8]> for VecDeque<Vec<u8>> {
    type Refusal = Infallible;

    fn admit(&self, _item: &&[u8]) -> Result<(), Infallible> {
        Ok(())
    }

    fn admits_next(&self, _count: usize) -> bool {
        true
    }

    #[inline]
    fn push(&mut self, item: &[u8]) {
        self.push_back(item.to_owned());
    }
}

impl<T> Fifo for VecDeque<T> {
    type Item = T;

    #[inline]
    fn pop(&mut self) -> Option<T> {
        self.pop_front()
    }
}
