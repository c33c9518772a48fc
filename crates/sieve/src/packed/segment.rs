//! A segment of fixed size that stores keys one after the other, and the format of its records.
//!
//! A record is `[shared: u8]` when front-coded, the length of what follows as a varint (LEB128), and the bytes.

use super::prefix::Previous;

/// The size of a segment, with the allocator's overhead within 64 KiB. Sizes from 16 to 256 KiB make no measurable difference.
pub(super) const SEGMENT_BYTES: usize = 64 * 1024 - 64;

/// The most bytes a record adds to its key: the shared length, and a varint of a number below 2²¹.
const OVERHEAD: usize = 4;

/// The longest key that a segment takes.
pub(super) const MAX_KEY: usize = SEGMENT_BYTES - OVERHEAD;

/// The shortest key that is copied by [`copy_usual`], and the length of its pieces.
const PIECE_BYTES: usize = 32;

/// Keys below this length have a length of one byte, and consist of at most four pieces.
const ONE_BYTE: usize = 0x80;

/// The bytes that are initialized at once, for keys that [`copy_usual`] copies. While they are in the first cache, that costs next to nothing.
const INITIALIZED_BYTES: usize = 4096;

/// A segment of records. It has no memory until it is needed.
#[derive(Default)]
pub(super) struct Segment {
    /// The memory, as far as it is initialized. The capacity is the size of the segment: it never grows.
    bytes: Vec<u8>,
    /// The records are before this place.
    used: usize,
}

impl Clone for Segment {
    /// Keeps the capacity, which the clone of a vector loses.
    fn clone(&self) -> Self {
        let mut bytes = Vec::with_capacity(self.bytes.capacity());
        bytes.extend_from_slice(&self.bytes[..self.used]);
        Self { bytes, used: self.used }
    }
}

impl Segment {
    pub(super) fn allocate() -> Self {
        Self {
            bytes: Vec::with_capacity(SEGMENT_BYTES),
            used: 0,
        }
    }

    /// The bytes of memory it holds, used or not.
    pub(super) fn held(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn is_allocated(&self) -> bool {
        self.bytes.capacity() > 0
    }

    /// The length of the records.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    /// Returns whether a key of this length fits, without a shared prefix.
    #[inline]
    pub(super) fn has_room(&self, key_len: usize) -> bool {
        key_len <= MAX_KEY && self.used + key_len + OVERHEAD <= self.bytes.capacity()
    }

    /// Writes a key that has room.
    #[inline]
    pub(super) fn write_plain(&mut self, key: &[u8]) {
        let record = self
            .bytes
            .get_mut(self.used..)
            .and_then(|free| free.get_mut(..=key.len()));
        match record.and_then(<[u8]>::split_first_mut) {
            Some((length, to)) if is_usual(key) => {
                *length = key.len() as u8;
                copy_usual(key, to);
                self.used += 1 + key.len();
            }
            _ => self.write_with_care(key),
        }
    }

    /// Writes a key of any length, to memory that may not be initialized yet.
    #[inline(never)]
    fn write_with_care(&mut self, key: &[u8]) {
        self.write_varint(key.len());
        self.write(key);
        if is_usual(key) && self.used == self.bytes.len() {
            let initialized = self.used + INITIALIZED_BYTES;
            self.bytes.resize(initialized.min(self.bytes.capacity()), 0);
        }
    }

    #[inline]
    pub(super) fn write_front_coded(&mut self, key: &[u8], previous: &mut Previous) {
        let shared = previous.replace(key);
        self.write(&[shared]);
        self.write_plain(&key[usize::from(shared)..]);
    }

    /// Returns the plain record at `at`, and moves `at` to the next one.
    #[inline]
    pub(super) fn read_plain(&self, at: &mut usize) -> Vec<u8> {
        self.read_slice(at).to_vec()
    }

    /// Returns the front-coded record at `at`, and moves `at` to the next one.
    #[inline]
    pub(super) fn read_front_coded(&self, at: &mut usize, previous: &mut Previous) -> Vec<u8> {
        let shared = self.bytes[*at];
        *at += 1;
        previous.join(shared, self.read_slice(at))
    }

    #[inline]
    fn read_slice(&self, at: &mut usize) -> &[u8] {
        let len = self.read_varint(at);
        let slice = &self.bytes[*at..*at + len];
        *at += len;
        slice
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let end = self.used + bytes.len();
        if let Some(to) = self.bytes.get_mut(self.used..end) {
            to.copy_from_slice(bytes);
        } else {
            self.bytes.truncate(self.used);
            self.bytes.extend_from_slice(bytes);
        }
        self.used = end;
    }

    #[inline]
    fn write_varint(&mut self, number: usize) {
        match number {
            0..ONE_BYTE => self.write(&[number as u8]),
            ONE_BYTE..0x4000 => self.write(&[number as u8 | 0x80, (number >> 7) as u8]),
            // A segment has room for no number of more than three bytes.
            _ => self.write(&[number as u8 | 0x80, (number >> 7) as u8 | 0x80, (number >> 14) as u8]),
        }
    }

    #[inline]
    fn read_varint(&self, at: &mut usize) -> usize {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let byte = self.bytes[*at];
            *at += 1;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return number;
            }
            shift += 7;
        }
    }
}

/// Returns whether [`copy_usual`] copies a key.
#[inline]
fn is_usual(key: &[u8]) -> bool {
    (PIECE_BYTES..ONE_BYTE).contains(&key.len())
}

/// Copies a key of at least [`PIECE_BYTES`] and less than [`ONE_BYTE`] bytes to a place of the same length, in four pieces that overlap. So
/// there is no branch on the length, which no processor can predict where lengths vary.
#[inline]
fn copy_usual(key: &[u8], to: &mut [u8]) {
    let to = &mut to[..key.len()];
    let last = key.len() - PIECE_BYTES;
    let [second, third] = [last.min(PIECE_BYTES), last.min(2 * PIECE_BYTES)];
    for at in [0, second, third, last] {
        to[at..at + PIECE_BYTES].copy_from_slice(&key[at..at + PIECE_BYTES]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_key_fits_into_an_empty_segment_and_no_longer_one() {
        let segment = Segment::allocate();
        assert!(segment.has_room(MAX_KEY));
        assert!(!segment.has_room(MAX_KEY + 1));
        assert!(!segment.has_room(usize::MAX));
        assert!(!Segment::default().has_room(0));
    }

    #[test]
    fn records_of_every_length_come_back() {
        let short = 0..=PIECE_BYTES * 4 + 8;
        let lengths: Vec<usize> = short.chain([255, 256, 16_383, 16_384, 18_000]).collect();
        // Each byte differs from those near to it.
        let key = |len: usize| (0..len).map(|at| (at * 7 + len) as u8).collect::<Vec<u8>>();
        let mut reused = Segment::allocate();
        reused.write_plain(&[1; MAX_KEY]);
        reused.clear();
        for mut segment in [Segment::allocate(), reused] {
            for len in &lengths {
                segment.write_plain(&key(*len));
            }
            let mut at = 0;
            for len in &lengths {
                assert_eq!(segment.read_plain(&mut at), key(*len), "{len} bytes");
            }
            assert_eq!(at, segment.len());
            segment.clear();
            let mut written = Previous::new(true);
            for len in &lengths {
                segment.write_front_coded(&vec![7; *len], &mut written);
            }
            let (mut at, mut read) = (0, Previous::new(true));
            for len in &lengths {
                let key = segment.read_front_coded(&mut at, &mut read);
                assert_eq!(key, vec![7; *len]);
                assert_eq!(key.capacity(), *len);
            }
            assert_eq!(at, segment.len());
        }
    }

    #[test]
    fn a_key_that_has_room_can_be_written() {
        for len in [0, 127, 128, 16_383, 16_384, MAX_KEY] {
            for left in len..=len + OVERHEAD {
                let mut segment = Segment::allocate();
                segment.used = SEGMENT_BYTES - left;
                assert_eq!(segment.has_room(len), left == len + OVERHEAD);
                if segment.has_room(len) {
                    segment.write_front_coded(&vec![b'x'; len], &mut Previous::new(true));
                    assert_eq!(segment.held(), SEGMENT_BYTES, "it never grows");
                }
            }
        }
    }

    #[test]
    fn a_record_of_the_longest_key_is_within_the_overhead() {
        let mut segment = Segment::allocate();
        segment.write_front_coded(&vec![b'x'; MAX_KEY], &mut Previous::new(true));
        assert_eq!(segment.len(), SEGMENT_BYTES);
    }
}
