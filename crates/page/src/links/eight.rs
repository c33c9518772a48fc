//! Eight bytes at once, in one register (H. Warren, "Hacker's Delight", 2nd edition, section 6-1). The first one is lowest.

/// The same byte eight times.
pub(crate) const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Returns ones for the first bytes, as many as said, up to eight.
#[inline]
pub(super) fn below(length: usize) -> u64 {
    u64::MAX.checked_shr(64 - 8 * length as u32).unwrap_or(0)
}

/// Returns the place of the first byte that is one of these.
#[inline]
pub(crate) fn first_of<const COUNT: usize>(eight: u64, bytes: [u8; COUNT]) -> Option<usize> {
    place_of_first(marked(eight, bytes))
}

/// Returns the place of the first byte that is one of these, or a space or any other byte below it.
#[inline]
pub(super) fn first_of_or_space<const COUNT: usize>(eight: u64, bytes: [u8; COUNT]) -> Option<usize> {
    place_of_first(marked(eight, bytes) | eight.wrapping_sub(each(b' ' + 1)) & !eight & each(0x80))
}

/// Sets the highest bit of the first byte that is one of these. Beyond it other bytes may be marked, because the subtraction borrows.
#[inline]
fn marked<const COUNT: usize>(eight: u64, bytes: [u8; COUNT]) -> u64 {
    bytes.into_iter().fold(0, |marked, byte| {
        let zero = eight ^ each(byte);
        marked | zero.wrapping_sub(each(1)) & !zero & each(0x80)
    })
}

#[inline]
fn place_of_first(marked: u64) -> Option<usize> {
    (marked != 0).then(|| marked.trailing_zeros() as usize / 8)
}
