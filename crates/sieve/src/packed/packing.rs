//! The packing of keys into segments.

/// How a [`PackedQueue`](super::PackedQueue) stores its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Packing {
    /// Each key with its length.
    Plain,
    /// Each key without the prefix that it shares with the previous key, up to 255 bytes.
    #[default]
    Prefix,
    /// As [`Prefix`](Self::Prefix), and segments between the first and the last one are compressed with LZ4.
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
