//! How much memory the queue holds, and whether a key may lead beyond the bound.

use std::fmt;

use super::segment::{MAX_KEY, SEGMENT_BYTES};
use super::{Cold, PackedItem, PackedQueue, Packing};

/// How many places for cold segments an empty queue may keep.
pub(super) const IDLE_PLACES: usize = 16;

/// By how many places their list grows at least.
pub(super) const MORE_PLACES: usize = 4;

/// By how many places a full list of this length grows.
pub(super) fn more_places(len: usize) -> usize {
    len / 2 + MORE_PLACES
}

impl<T: PackedItem> PackedQueue<T> {
    /// Creates an empty queue that never holds more than this many bytes of memory.
    ///
    /// Everything counts that [`memory_bytes`](Self::memory_bytes) counts, also while memory is being moved. A key that
    /// *could* lead beyond is not admitted: as long as a segment is written nothing is refused, then a whole segment must
    /// be free. Once empty, the queue admits any key of up to 65 468 bytes.
    ///
    /// The smallest bound that makes sense is some dozens of segments, a few MiB, as up to two segments are partly unused.
    /// An item that is pushed although it was not admitted is taken in all the same, beyond the bound.
    ///
    /// # Errors
    ///
    /// A bound below what the queue needs to take in anything at all: two segments and about 2 KiB (130 KiB in total), with
    /// `Packing::Compressed` three and 84 KiB (275 KiB in total).
    pub fn with_max_bytes(packing: Packing, max_bytes: usize) -> Result<Self, BoundTooSmall> {
        let mut queue = Self::new(packing);
        let segments = if packing.is_compressed() { 3 } else { 2 };
        let places = IDLE_PLACES + MORE_PLACES;
        let least = queue.memory_bytes() + segments * SEGMENT_BYTES + places * size_of::<Cold>();
        if max_bytes < least {
            return Err(BoundTooSmall { max_bytes, least });
        }
        queue.max_bytes = max_bytes;
        Ok(queue)
    }
}

impl<T> PackedQueue<T> {
    /// Returns the bound in bytes, if there is one.
    pub fn max_bytes(&self) -> Option<usize> {
        (self.max_bytes < usize::MAX).then_some(self.max_bytes)
    }

    /// Returns the bytes of memory that the queue holds: segments, used or not, spare ones, all bookkeeping, itself.
    ///
    /// What the allocator adds to each piece, 8 to 16 bytes, is not known here.
    pub fn memory_bytes(&self) -> usize {
        let segments = self.head.held() + self.tail.held() + self.spare_count() * SEGMENT_BYTES;
        let list = self.cold.capacity() * size_of::<Cold>();
        let memories = self.reading.held() + self.writing.held() + self.compress.held();
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

    fn spare_count(&self) -> usize {
        self.spares.iter().filter(|spare| spare.is_allocated()).count()
    }

    /// Says whether taking in a key that the tail has no room for stays within the bound. It mirrors
    /// [`make_room`](Self::make_room) and [`put_long`](Self::put_long): what they allocate at most, before they free anything.
    #[cold]
    fn can_make_room(&self, key_len: usize) -> bool {
        let (held, demand) = if key_len > MAX_KEY {
            let held = self.memory_bytes() - self.spare_count() * SEGMENT_BYTES;
            (held, self.closing_demand().saturating_add(key_len))
        } else {
            (self.memory_bytes(), self.room_demand())
        };
        held.saturating_add(demand) <= self.max_bytes
    }

    /// The bytes that a tail with room costs.
    fn room_demand(&self) -> usize {
        let one_segment = if self.spare_count() > 0 { 0 } else { SEGMENT_BYTES };
        if self.is_head_idle() {
            // The head becomes the tail, with the memory it has.
            return if self.head.is_allocated() { 0 } else { one_segment };
        }
        if self.tail.used().is_empty() {
            return one_segment;
        }
        if self.packing.is_compressed() {
            // What is compressed is smaller than a segment. Where it is not, it stays, and the tail gets another.
            return self.closing_demand();
        }
        self.closing_demand() + one_segment
    }

    /// The bytes that putting the tail away costs, and a long key behind it without its own bytes.
    fn closing_demand(&self) -> usize {
        let compressed = self.packing.is_compressed();
        let compressed_segment = if compressed { SEGMENT_BYTES } else { 0 };
        let expanded = if compressed && !self.head.is_allocated() {
            SEGMENT_BYTES
        } else {
            0
        };
        compressed_segment + expanded + self.list_demand()
    }

    /// The bytes of a larger list of cold segments, if it lacks places for two more: the tail and a long key.
    fn list_demand(&self) -> usize {
        let len = self.cold.len();
        if self.cold.capacity() - len >= 2 {
            return 0;
        }
        (len + 1 + more_places(len + 1)) * size_of::<Cold>()
    }
}

/// Why a [`PackedQueue`](super::PackedQueue) does not take a key in: it could lead beyond the bound of its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull;

impl fmt::Display for QueueFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue is full: take items out before offering more")
    }
}

impl std::error::Error for QueueFull {}

/// A bound that leaves no room for a queue; see [`PackedQueue::with_max_bytes`](super::PackedQueue::with_max_bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundTooSmall {
    /// The bytes asked for.
    pub max_bytes: usize,
    /// The smallest bound that is possible with this packing, in bytes.
    pub least: usize,
}

impl fmt::Display for BoundTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { max_bytes, least } = self;
        write!(
            f,
            "a queue cannot be kept within {max_bytes} bytes: give at least {least} with this packing"
        )
    }
}

impl std::error::Error for BoundTooSmall {}
