//! What a packed queue takes in: strings where strings come out, bytes where bytes do.

use super::PackedQueue;
use crate::queue::Accepts;

impl Accepts<&str> for PackedQueue<String> {
    #[inline]
    fn admits(&self, item: &&str) -> bool {
        self.admits_len(item.len())
    }

    fn admits_all(&self) -> bool {
        self.max_bytes().is_none()
    }

    #[inline]
    fn push(&mut self, item: &str) {
        self.take_in(item.as_bytes());
    }
}

impl Accepts<String> for PackedQueue<String> {
    #[inline]
    fn admits(&self, item: &String) -> bool {
        self.admits_len(item.len())
    }

    fn admits_all(&self) -> bool {
        self.max_bytes().is_none()
    }

    #[inline]
    fn push(&mut self, item: String) {
        self.take_in_owned(item.into_bytes());
    }
}

impl Accepts<&[u8]> for PackedQueue<Vec<u8>> {
    #[inline]
    fn admits(&self, item: &&[u8]) -> bool {
        self.admits_len(item.len())
    }

    fn admits_all(&self) -> bool {
        self.max_bytes().is_none()
    }

    #[inline]
    fn push(&mut self, item: &[u8]) {
        self.take_in(item);
    }
}

impl Accepts<Vec<u8>> for PackedQueue<Vec<u8>> {
    #[inline]
    fn admits(&self, item: &Vec<u8>) -> bool {
        self.admits_len(item.len())
    }

    fn admits_all(&self) -> bool {
        self.max_bytes().is_none()
    }

    #[inline]
    fn push(&mut self, item: Vec<u8>) {
        self.take_in_owned(item);
    }
}
