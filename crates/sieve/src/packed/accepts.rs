//! The items that a packed queue accepts: strings, or bytes.

use super::{PackedQueue, QueueFull};
use crate::queue::Accepts;

/// Each type of items: that of the queue, and how a key is taken in.
macro_rules! accepts {
    ($($item:ty, $of_queue:ty, $take_in:expr;)+) => {
        $(impl Accepts<$item> for PackedQueue<$of_queue> {
            type Refusal = QueueFull;

            #[inline]
            fn admit(&self, item: &$item) -> Result<(), QueueFull> {
                self.admit_len(item.len())
            }

            fn admits_next(&self, _count: usize) -> bool {
                self.max_bytes().is_none()
            }

            #[inline]
            fn push(&mut self, item: $item) {
                $take_in(self, item);
            }
        })+
    };
}

accepts! {
    &str, String, |queue: &mut Self, item: &str| queue.take_in(item.as_bytes());
    String, String, |queue: &mut Self, item: String| queue.take_in_owned(item.into_bytes());
    &[u8], Vec<u8>, Self::take_in;
    Vec<u8>, Vec<u8>, Self::take_in_owned;
}
