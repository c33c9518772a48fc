//! The memory of a packed queue, and its bound.

use super::segment::{MAX_KEY, SEGMENT_BYTES};
use super::{Cold, PackedQueue, Packing};

/// The slots for cold segments that an empty queue may keep.
pub(super) const IDLE_PLACES: usize = 16;

/// The minimum number of slots by which their list grows.
pub(super) const MORE_PLACES: usize = 4;

pub(super) fn more_places(len: usize) -> usize {
    len / 2 + MORE_PLACES
}

impl<T> PackedQueue<T> {
    /// Creates an empty queue that never uses more than this many bytes of memory.
    ///
    /// The bound counts the same bytes as [`memory_bytes`](Self::memory_bytes), even while memory is moved. A key that *could* exceed
    /// the bound is not admitted: when the current segment is full, there must be memory for a whole one. An empty queue admits any
    /// key of up to 65 468 bytes.
    ///
    /// A useful bound is some dozens of segments, a few MiB, as up to two segments are partly unused. An item that is pushed without
    /// being admitted is queued, beyond the bound.
    ///
    /// # Errors
    ///
    /// A bound below the minimum: two segments and about 2 KiB (130 KiB in total).
    pub fn with_max_bytes(packing: Packing, max_bytes: usize) -> Result<Self, BoundTooSmall> {
        let mut queue = Self::new(packing);
        let places = IDLE_PLACES + MORE_PLACES;
        let least = queue.memory_bytes() + 2 * SEGMENT_BYTES + places * size_of::<Cold>();
        if max_bytes < least {
            return Err(BoundTooSmall { max_bytes, least });
        }
        queue.max_bytes = max_bytes;
        Ok(queue)
    }

    /// Returns the bound in bytes, if any.
    pub fn max_bytes(&self) -> Option<usize> {
        (self.max_bytes < usize::MAX).then_some(self.max_bytes)
    }

    /// Returns the memory of the queue in bytes: all segments, used or not, the bookkeeping, and the value itself.
    ///
    /// It does not include the overhead of the allocator, 8 to 16 bytes per allocation.
    pub fn memory_bytes(&self) -> usize {
        let segments = self.head.held() + self.tail.held() + self.spare.held();
        let list = self.cold.capacity() * size_of::<Cold>();
        let memories = self.reading.held() + self.writing.held();
        size_of::<Self>() + segments + self.cold_bytes + list + memories
    }

    #[inline]
    pub(super) fn admit_len(&self, key_len: usize) -> Result<(), QueueFull> {
        if self.max_bytes == usize::MAX || self.tail.has_room(key_len) || self.can_make_room(key_len) {
            Ok(())
        } else {
            Err(QueueFull)
        }
    }

    /// Returns whether a key that the tail has no room for stays within the bound. It mirrors
    /// [`make_room`](Self::make_room) and [`put_long`](Self::put_long): what they allocate at most, before they free anything.
    #[cold]
    fn can_make_room(&self, key_len: usize) -> bool {
        let (held, demand) = if key_len > MAX_KEY {
            let held = self.memory_bytes() - self.spare.held();
            (held, self.list_demand().saturating_add(key_len))
        } else {
            (self.memory_bytes(), self.room_demand())
        };
        held.saturating_add(demand) <= self.max_bytes
    }

    fn room_demand(&self) -> usize {
        let one_segment = SEGMENT_BYTES - self.spare.held();
        if self.is_head_idle() {
            // The head becomes the tail, with the memory it has.
            return if self.head.is_allocated() { 0 } else { one_segment };
        }
        if self.tail.len() == 0 {
            return one_segment;
        }
        self.list_demand() + one_segment
    }

    fn list_demand(&self) -> usize {
        let len = self.cold.len();
        if self.cold.capacity() - len >= 2 {
            return 0;
        }
        (len + 1 + more_places(len + 1)) * size_of::<Cold>()
    }
}

/// The key could exceed the memory bound of a [`PackedQueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full: pop items before you push more")]
pub struct QueueFull;

/// The bound is below the minimum of a queue; see [`PackedQueue::with_max_bytes`](super::PackedQueue::with_max_bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{max_bytes} bytes are too few for a queue with this packing: give at least {least}")]
pub struct BoundTooSmall {
    /// The bytes asked for.
    pub max_bytes: usize,
    /// The smallest bound that is possible with this packing, in bytes.
    pub least: usize,
}
