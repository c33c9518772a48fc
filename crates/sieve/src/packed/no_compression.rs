//! The stub of compression without the feature `compressed-queue`: nothing is compressed.

use super::segment::Segment;

/// A compressed segment, which cannot exist.
#[derive(Clone)]
pub(super) enum CompressedSegment {}

impl CompressedSegment {
    pub(super) fn held(&self) -> usize {
        match *self {}
    }

    pub(super) fn expand(&self, _segment: &mut Segment) {
        match *self {}
    }
}

/// A compressor that compresses nothing.
#[derive(Clone, Default)]
pub(super) struct Compressor;

impl Compressor {
    pub(super) fn new(_works: bool) -> Self {
        Self
    }

    pub(super) fn held(&self) -> usize {
        0
    }

    pub(super) fn compress(&mut self, _segment: &Segment) -> Option<CompressedSegment> {
        None
    }
}
