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
}

impl Packing {
    pub(super) fn is_front_coded(self) -> bool {
        self == Self::Prefix
    }
}
