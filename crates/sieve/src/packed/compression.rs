//! Compression of whole segments with LZ4. The only file that names its crate.

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};

use super::segment::{SEGMENT_BYTES, Segment};

/// The bytes of LZ4's own table for inputs below 64 KiB: 4096 places of 16 bits.
const TABLE_BYTES: usize = 4096 * 2;

impl Segment {
    /// Fills the memory by `fill`, which returns the number of bytes that it wrote.
    fn fill(&mut self, fill: impl FnOnce(&mut [u8]) -> usize) {
        self.bytes.resize(self.bytes.capacity(), 0);
        self.used = fill(&mut self.bytes).min(self.bytes.len());
    }
}

/// A compressed segment.
#[derive(Clone)]
pub(super) struct CompressedSegment(Box<[u8]>);

impl CompressedSegment {
    pub(super) fn held(&self) -> usize {
        self.0.len()
    }
}

/// The working memory of compression. A queue that does not compress has none.
#[derive(Default)]
pub(super) struct Compressor(Option<(CompressTable, Box<[u8]>)>);

impl Compressor {
    pub(super) fn new(works: bool) -> Self {
        let space = || vec![0; get_maximum_output_size(SEGMENT_BYTES)].into_boxed_slice();
        Self(works.then(|| (CompressTable::small(), space())))
    }

    pub(super) fn held(&self) -> usize {
        self.0.as_ref().map_or(0, |(_, space)| TABLE_BYTES + space.len())
    }

    /// `None` if it would not be smaller.
    pub(super) fn compress(&mut self, segment: &Segment) -> Option<CompressedSegment> {
        let (table, space) = self.0.as_mut()?;
        let len = compress_into_with_table(segment.used(), space, table).ok()?;
        (len < segment.held()).then(|| CompressedSegment(space[..len].into()))
    }
}

impl CompressedSegment {
    /// Decompresses into a segment that has memory, and replaces its content.
    pub(super) fn expand(&self, segment: &mut Segment) {
        segment.fill(|bytes| match decompress_into(&self.0, bytes) {
            Ok(len) => len,
            Err(error) => unreachable!("what was compressed in memory has changed there: {error}"),
        });
    }
}

impl Clone for Compressor {
    fn clone(&self) -> Self {
        Self::new(self.0.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_does_not_shrink_is_not_compressed() {
        let mut noise = Segment::allocate();
        let mut state = 1_u64;
        noise.fill(|bytes| {
            for byte in bytes.iter_mut() {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                *byte = state as u8;
            }
            bytes.len()
        });
        assert!(Compressor::new(true).compress(&noise).is_none());
    }

    #[test]
    fn the_table_stays_the_small_one_whose_bytes_are_counted() {
        let mut full = Segment::allocate();
        full.fill(|bytes| bytes.len());
        let mut compress = Compressor::new(true);
        let compressed_segment = compress.compress(&full).unwrap();
        assert!(matches!(compress.0, Some((CompressTable::Small(_), _))));
        let mut back = Segment::allocate();
        compressed_segment.expand(&mut back);
        assert_eq!(back.used(), full.used());
    }
}
