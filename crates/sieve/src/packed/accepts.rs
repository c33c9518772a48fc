//! The items that a packed queue accepts: strings, or bytes.

use super::{PackedQueue, QueueFull};
use crate::queue::Accepts;

impl Accepts<&str> for PackedQueue<String> {
    type Refusal = QueueFull;

    #[inline]
    fn admit(&self, item: &&str) -> Result<(), QueueFull> {
        self.admit_len(item.len())
    }

    fn admits_next(&self, _count: usize) -> bool {
        self.max_bytes().is_none()
    }

    #[inline]
    fn push(&mut self, item: &str) {
        self.take_in(item.as_bytes());
    }
}

impl Accepts<String> for PackedQueue<String> {
    type Refusal = QueueFull;

    #[inline]
    fn admit(&self, item: &String) -> Result<(), QueueFull> {
        self.admit_len(item.len())
    }

    fn admits_next(&self, _count: usize) -> bool {
        self.max_bytes().is_none()
    }

    #[inline]
    fn push(&mut self, item: String) {
        self.take_in_owned(item.into_bytes());
    }
}

impl Accepts<&[u8]> for PackedQueue<Vec<u8>> {
    type Refusal = QueueFull;

    #[inline]
    fn admit(&self, item: &&[u8]) -> Result<(), QueueFull> {
        self.admit_len(item.len())
    }

    fn admits_next(&self, _count: usize) -> bool {
        self.max_bytes().is_none()
    }

    #[inline]
    fn push(&mut self, item: &[u8]) {
        self.take_in(item);
    }
}

impl Accepts<Vec<u8>> for PackedQueue<Vec<u8>> {
    type Refusal = QueueFull;

    #[inline]
    fn admit(&self, item: &Vec<u8>) -> Result<(), QueueFull> {
        self.admit_len(item.len())
    }

    fn admits_next(&self, _count: usize) -> bool {
        self.max_bytes().is_none()
    }

    #[inline]
    fn push(&mut self, item: Vec<u8>) {
        self.take_in_owned(item);
    }
}
