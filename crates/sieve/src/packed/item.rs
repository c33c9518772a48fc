//! The items that a packed queue returns.

/// An item of a [`PackedQueue`](super::PackedQueue): a `String` or a `Vec<u8>`. The trait is sealed.
pub trait PackedItem: AsRef<[u8]> + FromPacked {}

impl PackedItem for String {}

impl PackedItem for Vec<u8> {}

/// Seals [`PackedItem`], so that a `String` is never made of bytes that were not one.
pub trait FromPacked {
    /// Builds the item from the bytes of a key that was pushed as such an item.
    fn from_packed(key: Vec<u8>) -> Self;
}

impl FromPacked for String {
    #[inline]
    fn from_packed(key: Vec<u8>) -> Self {
        // Only whole strings go in, so that the check never fails; about 5 ns for 80 bytes are not worth unsafe code.
        Self::from_utf8(key).unwrap_or_else(|error| Self::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

impl FromPacked for Vec<u8> {
    #[inline]
    fn from_packed(key: Vec<u8>) -> Self {
        key
    }
}
