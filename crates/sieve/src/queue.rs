//! What a [`Sieve`](crate::Sieve) asks of a queue.

use std::collections::VecDeque;

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
pub trait Accepts<T: AsRef<[u8]>>: Queue {
    /// Says whether there is room for this item. It is asked before the filter marks the item as seen.
    fn admits(&self, item: &T) -> bool;

    /// Takes the item in. It must not fail for an item that was just admitted.
    ///
    /// Nor may it panic: of a batch, all new items are marked before the first is pushed, so the panic would lose the rest of
    /// them, up to 31.
    fn push(&mut self, item: T);

    /// Says whether it admits any item, now and whatever is pushed. A batch of items then need not be asked for one by one.
    fn admits_all(&self) -> bool {
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
    fn admits(&self, _item: &T) -> bool {
        true
    }

    fn admits_all(&self) -> bool {
        true
    }

    #[inline]
    fn push(&mut self, item: T) {
        self.push_back(item);
    }
}

impl Accepts<&str> for VecDeque<String> {
    fn admits(&self, _item: &&str) -> bool {
        true
    }

    fn admits_all(&self) -> bool {
        true
    }

    #[inline]
    fn push(&mut self, item: &str) {
        self.push_back(item.to_owned());
    }
}

impl Accepts<&String> for VecDeque<String> {
    fn admits(&self, _item: &&String) -> bool {
        true
    }

    #[inline]
    fn push(&mut self, item: &String) {
        self.push_back(item.clone());
    }
}

impl Accepts<&[u8]> for VecDeque<Vec<u8>> {
    fn admits(&self, _item: &&[u8]) -> bool {
        true
    }

    fn admits_all(&self) -> bool {
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
