//! A to-visit queue that packs its keys into segments.
//!
//! From front to back, it has a *head*, the segment that is read; *cold* segments; and a *tail*, the segment that is written. A key
//! shares a prefix with the previous key, even if that is in another segment. A key that is too long for a segment is stored by
//! itself among the cold ones. The memory of drained segments is reused before new memory is allocated.

mod accepts;
mod bound;
mod packing;
mod prefix;
mod segment;

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::mem;

use crate::queue::{Fifo, Queue};
pub use bound::{BoundTooSmall, QueueFull};
use bound::{IDLE_PLACES, more_places};
pub use packing::Packing;
use prefix::Previous;
use segment::{MAX_KEY, Segment};

/// A first-in, first-out queue of strings or byte strings in a fraction of the memory of a `VecDeque<String>`.
///
/// Pushing copies the key into a segment of 64 KiB. Popping copies it out, with one allocation of exactly its size. The best
/// [`Packing`] depends on the length of the queue and its keys:
///
/// | 10 million URLs of 81 bytes | bytes each: alternating hosts | runs of 40 of one page | push, ns | pop, ns | both at a constant length, ns |
/// |---|---|---|---|---|---|
/// | `VecDeque<String>` | 120 | 120 | 78 / 87 | 15 / 18 | 41 / 61 |
/// | `Plain` | 82 | 82 | 18 / 41 | 49 / 42 | 52 / 43 |
/// | `Prefix` | 66 | 24 | 27 / 28 | 49 / 43 | 76 / 78 |
///
/// Times are for alternating hosts / runs, the best of three on a busy machine (two cores of a shared Xeon, Rust 1.95); small
/// differences are noise. The keys are pushed as `&str`: a packed queue allocates the `String` when it pops, a `VecDeque<String>` when
/// it pushes. Measure with `cargo bench -p crawl-sieve --bench queue`.
///
/// It is **not** for thousands of small queues: a used queue keeps two segments, and one more for reuse. Its items cannot be
/// iterated, only popped.
///
/// # Costs
///
/// `push` and `pop` are O(bytes of the key); one in some hundreds also switches to another segment. `admit`, `len` and
/// [`memory_bytes`](Self::memory_bytes) are O(1). A key of more than 65 468 bytes has an allocation of its own, and closes the segment
/// before it.
///
/// # Panics
///
/// Never. Like any collection, it aborts if the allocator fails.
///
/// ```
/// use sieve::{PackedQueue, Packing, Sieve};
///
/// let queue: PackedQueue = PackedQueue::with_max_bytes(Packing::Prefix, 10 << 20)?;
/// let mut to_visit = Sieve::builder().capacity(100_000).build_with(queue)?;
/// assert_eq!(to_visit.push_all(["https://a.example/1", "https://a.example/2", "https://a.example/1"]), 2);
/// assert_eq!(to_visit.pop().as_deref(), Some("https://a.example/1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PackedQueue<T = String> {
    packing: Packing,
    max_bytes: usize,
    len: usize,
    /// The segment that is read, from `at` on.
    head: Segment,
    at: usize,
    reading: Previous,
    cold: VecDeque<Cold>,
    /// The bytes of the cold segments, without their slots in the list.
    cold_bytes: usize,
    /// The segment that is written.
    tail: Segment,
    writing: Previous,
    /// A drained segment, for reuse. A queue of constant length needs no more.
    spare: Segment,
    item: PhantomData<fn() -> T>,
}

/// A segment or a long key between the head and the tail; never empty.
#[derive(Clone)]
enum Cold {
    Short(Segment),
    Long(Box<[u8]>),
}

impl Cold {
    fn held(&self) -> usize {
        match self {
            Self::Short(segment) => segment.held(),
            Self::Long(key) => key.len(),
        }
    }
}

impl<T> PackedQueue<T> {
    /// Creates an empty queue without a bound. Segments are allocated when they are needed.
    pub fn new(packing: Packing) -> Self {
        Self {
            packing,
            max_bytes: usize::MAX,
            len: 0,
            head: Segment::default(),
            at: 0,
            reading: Previous::new(packing.is_front_coded()),
            cold: VecDeque::new(),
            cold_bytes: 0,
            tail: Segment::default(),
            writing: Previous::new(packing.is_front_coded()),
            spare: Segment::default(),
            item: PhantomData,
        }
    }

    /// Returns the packing.
    pub fn packing(&self) -> Packing {
        self.packing
    }

    #[inline]
    fn take_in(&mut self, key: &[u8]) {
        if self.packing.is_front_coded() || !self.tail.has_room(key.len()) {
            return self.take_in_with_care(key);
        }
        self.len += 1;
        self.tail.write_plain(key);
    }

    /// Takes in a key that is not just copied into the tail. It is apart, so that the usual push is a few instructions.
    #[inline(never)]
    fn take_in_with_care(&mut self, key: &[u8]) {
        if !self.tail.has_room(key.len()) {
            if key.len() > MAX_KEY {
                return self.put_long(key);
            }
            self.make_room();
        }
        self.len += 1;
        if self.packing.is_front_coded() {
            self.tail.write_front_coded(key, &mut self.writing);
        } else {
            self.tail.write_plain(key);
        }
    }

    #[inline]
    fn take_in_owned(&mut self, key: Vec<u8>) {
        if key.len() > MAX_KEY {
            self.put_long(key);
        } else {
            self.take_in(&key);
        }
    }

    #[inline]
    fn hand_out(&mut self) -> Option<Vec<u8>> {
        if self.len == 0 {
            return None;
        }
        self.len -= 1;
        if self.is_head_drained()
            && let Some(long) = self.advance()
        {
            return Some(long);
        }
        Some(if self.packing.is_front_coded() {
            self.head.read_front_coded(&mut self.at, &mut self.reading)
        } else {
            self.head.read_plain(&mut self.at)
        })
    }

    fn is_head_drained(&self) -> bool {
        self.at == self.head.len()
    }

    fn is_head_idle(&self) -> bool {
        self.is_head_drained() && self.cold.is_empty()
    }

    /// Gives the tail room for a key.
    #[cold]
    fn make_room(&mut self) {
        self.close_tail();
        if !self.tail.is_allocated() {
            self.tail = match self.spare.is_allocated() {
                true => mem::take(&mut self.spare),
                false => Segment::allocate(),
            };
        }
    }

    #[cold]
    fn put_long(&mut self, key: impl Into<Box<[u8]>>) {
        if self.max_bytes().is_some() {
            // Their memory may be needed for the key: freed before it is copied.
            self.spare = Segment::default();
        }
        self.close_tail();
        self.put_away(Cold::Long(key.into()));
        self.len += 1;
    }

    /// Moves the keys of the tail to the cold segments or the head. The tail is empty then, and may have no memory.
    fn close_tail(&mut self) {
        if self.is_head_idle() {
            self.turn();
        } else if self.tail.len() > 0 {
            let full = mem::take(&mut self.tail);
            self.put_away(Cold::Short(full));
        }
    }

    fn turn(&mut self) {
        mem::swap(&mut self.head, &mut self.tail);
        self.tail.clear();
        self.at = 0;
    }

    fn put_away(&mut self, cold: Cold) {
        if self.cold.len() == self.cold.capacity() {
            // Explicit, so that the bound holds while the list is moved.
            self.cold.reserve_exact(more_places(self.cold.len()));
        }
        self.cold_bytes += cold.held();
        self.cold.push_back(cold);
    }

    /// Fills the drained head with the next segment, or returns the next key if it is a long one. There must be a next one.
    #[cold]
    fn advance(&mut self) -> Option<Vec<u8>> {
        let Some(next) = self.cold.pop_front() else {
            self.turn();
            return None;
        };
        self.cold_bytes -= next.held();
        if self.cold.is_empty() && self.cold.capacity() > IDLE_PLACES {
            self.cold = VecDeque::new();
        }
        match next {
            Cold::Long(key) => return Some(key.into_vec()),
            Cold::Short(segment) => {
                let mut drained = mem::replace(&mut self.head, segment);
                if drained.is_allocated() {
                    drained.clear();
                    self.spare = drained;
                }
            }
        }
        self.at = 0;
        None
    }
}

impl<T> Default for PackedQueue<T> {
    fn default() -> Self {
        Self::new(Packing::default())
    }
}

impl<T> fmt::Debug for PackedQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackedQueue")
            .field("packing", &self.packing)
            .field("len", &self.len)
            .field("memory_bytes", &self.memory_bytes())
            .field("max_bytes", &self.max_bytes())
            .finish_non_exhaustive()
    }
}

impl<T> Queue for PackedQueue<T> {
    fn len(&self) -> usize {
        self.len
    }
}

impl Fifo for PackedQueue<String> {
    type Item = String;

    #[inline]
    fn pop(&mut self) -> Option<String> {
        // Only whole strings go in, so that the check never fails; about 5 ns for 80 bytes are not worth unsafe code.
        let text = String::from_utf8(self.hand_out()?);
        Some(text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

impl Fifo for PackedQueue<Vec<u8>> {
    type Item = Vec<u8>;

    #[inline]
    fn pop(&mut self) -> Option<Vec<u8>> {
        self.hand_out()
    }
}
