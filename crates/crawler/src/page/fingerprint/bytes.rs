//! Eight bytes at once, in one register (H. Warren, "Hacker's Delight", 2nd edition, section 6-1).

/// The same byte eight times.
pub(super) const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The highest bit of each byte.
pub(super) const HIGH: u64 = each(0x80);

/// Returns the place of the first byte whose highest bit is set; 8 if there is none. The other bits must be zero.
#[inline]
pub(super) fn first(marked: u64) -> usize {
    marked.trailing_zeros() as usize / 8
}

/// Returns ones for the first bytes, as many as said, up to eight.
#[inline]
pub(super) fn below(length: usize) -> u64 {
    u64::MAX.checked_shr(64 - 8 * length as u32).unwrap_or(0)
}

/// Marks ASCII letters, and all bytes that are not ASCII.
#[inline]
pub(super) fn letters(bytes: u64) -> u64 {
    let lower = (bytes | each(0x20)) & !HIGH;
    let from_a = lower + each(0x80 - b'a');
    let behind_z = lower + each(0x80 - b'z' - 1);
    (from_a & !behind_z | bytes) & HIGH
}

/// Marks ASCII digits.
#[inline]
pub(super) fn digits(bytes: u64) -> u64 {
    let low = bytes & !HIGH;
    let from_0 = low + each(0x80 - b'0');
    let behind_9 = low + each(0x80 - b'9' - 1);
    from_0 & !behind_9 & !bytes & HIGH
}

/// Marks bytes that an ideograph or a kana begins with, U+3000 to U+9FFF in UTF-8: 0xE3 to 0xE9.
#[inline]
pub(super) fn ideographs(bytes: u64) -> u64 {
    let low = bytes & !HIGH;
    let from_first = low + each(0x80 - 0x63);
    let behind_last = low + each(0x80 - 0x69 - 1);
    from_first & !behind_last & bytes & HIGH
}

/// Puts the highest bits of the bytes side by side. The others must be zero.
#[inline]
pub(super) fn side_by_side(high: u64) -> u64 {
    (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_are_marked_one_by_one(bytes: [u8; 8]) {
            let number = u64::from_le_bytes(bytes);
            let marked = |is: fn(u8) -> bool| u64::from_le_bytes(bytes.map(|byte| if is(byte) { 0x80 } else { 0 }));
            prop_assert_eq!(letters(number), marked(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii()));
            prop_assert_eq!(digits(number), marked(|byte| byte.is_ascii_digit()));
            prop_assert_eq!(ideographs(number), marked(|byte| matches!(byte, 0xE3..=0xE9)));
            let bits = (0..8).map(|at| u64::from(bytes[at] >> 7) << at).sum::<u64>();
            prop_assert_eq!(side_by_side(number & HIGH), bits);
        }
    }
}
