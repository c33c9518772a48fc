//! How the keys lie in their segments.

/// How a [`PackedQueue`](super::PackedQueue) keeps its keys; chosen once, at construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Packing {
    /// Each key is copied as it is, with its length before it.
    Plain,
    /// Each key without what it shares with the key before it, up to 255 bytes.
    #[default]
    Prefix,
    /// As [`Prefix`](Self::Prefix), and what lies between the first and the last segment is compressed with LZ4.
    #[cfg(feature = "compressed-queue")]
    Compressed,
}

impl Packing {
    pub(super) fn is_front_coded(self) -> bool {
        !matches!(self, Self::Plain)
    }

    pub(super) fn is_compressed(self) -> bool {
        !matches!(self, Self::Plain | Self::Prefix)
    }
}
