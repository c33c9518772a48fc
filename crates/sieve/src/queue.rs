//! What a [`Sieve`](crate::Sieve) asks of a queue.

use std::collections::VecDeque;

/// The to-visit queue behind a filter.
///
/// How items leave is the queue's own affair: a FIFO queue [pops](Fifo::pop), a queue of hosts hands out leases.
pub trait Queue {
    /// What waits in the queue. Its bytes are the key it is deduplicated on.
    type Item: AsRef<[u8]>;

    /// Says whether there is room for this item. It is asked before the filter marks the item as seen.
    fn admits(&self, item: &Self::Item) -> bool;

    /// Takes the item in. It must not fail for an item that was just admitted.
    fn push(&mut self, item: Self::Item);

    /// Returns the number of items that wait.
    fn len(&self) -> usize;

    /// Says whether nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A queue that hands out its items in the order of arrival.
pub trait Fifo: Queue {
    /// Takes the oldest item out.
    fn pop(&mut self) -> Option<Self::Item>;
}

impl<T: AsRef<[u8]>> Queue for VecDeque<T> {
    type Item = T;

    fn admits(&self, _item: &T) -> bool {
        true
    }

    fn push(&mut self, item: T) {
        self.push_back(item);
    }

    fn len(&self) -> usize {
        VecDeque::len(self)
    }
}

impl<T: AsRef<[u8]>> Fifo for VecDeque<T> {
    fn pop(&mut self) -> Option<T> {
        self.pop_front()
    }
}
