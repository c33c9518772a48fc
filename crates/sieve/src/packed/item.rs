//! What a packed queue hands out.

/// What a [`PackedQueue`](super::PackedQueue) hands out: a `String` or a `Vec<u8>`. It cannot be implemented elsewhere.
pub trait PackedItem: AsRef<[u8]> + FromPacked {}

impl PackedItem for String {}

impl PackedItem for Vec<u8> {}

/// What keeps [`PackedItem`] to these two: a `String` must never be made of bytes that were not one.
pub trait FromPacked {
    /// Makes the item of the bytes of a key that was taken in as such an item.
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
