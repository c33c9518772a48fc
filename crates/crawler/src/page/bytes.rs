//! Eight bytes at once, in one register (H. Warren, "Hacker's Delight", 2nd edition, section 6-1), and sixteen or
//! more, where the processor has registers for them.

use wide::u8x16;

/// The same byte eight times.
pub(crate) const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The highest bit of each byte.
pub(crate) const HIGH: u64 = each(0x80);

/// Returns the place of the first byte whose highest bit is set; 8 if there is none. The other bits must be zero.
#[inline]
pub(crate) fn first(marked: u64) -> usize {
    marked.trailing_zeros() as usize / 8
}

/// Returns ones for the first bytes, as many as said, up to eight.
#[inline]
pub(crate) fn below(length: usize) -> u64 {
    u64::MAX.checked_shr(64 - 8 * length as u32).unwrap_or(0)
}

/// Marks ASCII letters, and all bytes that are not ASCII.
#[inline]
pub(crate) fn letters(bytes: u64) -> u64 {
    let lower = (bytes | each(0x20)) & !HIGH;
    let from_a = lower + each(0x80 - b'a');
    let behind_z = lower + each(0x80 - b'z' - 1);
    (from_a & !behind_z | bytes) & HIGH
}

/// Marks ASCII digits.
#[inline]
pub(crate) fn digits(bytes: u64) -> u64 {
    let low = bytes & !HIGH;
    let from_0 = low + each(0x80 - b'0');
    let behind_9 = low + each(0x80 - b'9' - 1);
    from_0 & !behind_9 & !bytes & HIGH
}

/// Sixteen bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sixteen(u8x16);

impl Sixteen {
    #[inline]
    pub(crate) fn of(bytes: &[u8; 16]) -> Self {
        Self(u8x16::new(*bytes))
    }

    /// Returns the place of the first byte that is one of these.
    #[inline]
    pub(crate) fn first_of(self, [one, other]: [u8; 2]) -> Option<usize> {
        place_of_first(self.0.simd_eq(u8x16::splat(one)) | self.0.simd_eq(u8x16::splat(other)))
    }

    /// Returns the place of the first byte that is one of these, or a space or any other byte below it.
    #[inline]
    pub(crate) fn first_of_or_space<const COUNT: usize>(self, bytes: [u8; COUNT]) -> Option<usize> {
        let spaces = between(self.0, 0, b' ');
        place_of_first(
            bytes
                .iter()
                .fold(spaces, |found, byte| found | self.0.simd_eq(u8x16::splat(*byte))),
        )
    }

    /// Returns a bit for each byte: whether it is an ASCII letter, or not ASCII.
    #[inline]
    pub(crate) fn letters(self) -> u64 {
        (self.ascii_letters() | self.0).to_bitmask().into()
    }

    /// Returns a bit for each byte: whether it is an ASCII digit.
    #[inline]
    pub(crate) fn digits(self) -> u64 {
        between(self.0, b'0', b'9').to_bitmask().into()
    }

    /// Returns a bit for each byte: whether an ideograph or a kana begins with it, U+3000 to U+9FFF in UTF-8.
    #[inline]
    pub(crate) fn ideographs(self) -> u64 {
        between(self.0, 0xE3, 0xE9).to_bitmask().into()
    }

    /// Returns a bit for each byte: whether it has this one, which must be a power of two.
    #[inline]
    pub(crate) fn with(self, bit: u8) -> u64 {
        let bit = u8x16::splat(bit);
        (self.0 & bit).simd_eq(bit).to_bitmask().into()
    }

    /// Returns the letters, ASCII ones in lower case, and zeros for all other bytes.
    #[inline]
    pub(crate) fn folded(self) -> [u64; 2] {
        let ascii = self.ascii_letters();
        let others = between(self.0, 0x80, 0xFF);
        let folded = (self.0 | ascii & u8x16::splat(0x20)) & (ascii | others);
        let folded = u128::from_le_bytes(folded.to_array());
        [folded as u64, (folded >> 64) as u64]
    }

    #[inline]
    fn ascii_letters(self) -> u8x16 {
        between(self.0 | u8x16::splat(0x20), b'a', b'z')
    }
}

/// Returns the place of the first of 32 bytes that is this one.
#[inline]
pub(crate) fn first_in(bytes: &[u8; 32], byte: u8) -> Option<usize> {
    let (sixteens, _) = bytes.as_chunks();
    let bits = sixteens.iter().rev().fold(0, |bits, sixteen| {
        bits << 16 | u8x16::new(*sixteen).simd_eq(u8x16::splat(byte)).to_bitmask()
    });
    (bits != 0).then(|| bits.trailing_zeros() as usize)
}

#[inline]
fn place_of_first(marked: u8x16) -> Option<usize> {
    let bits = marked.to_bitmask();
    (bits != 0).then(|| bits.trailing_zeros() as usize)
}

/// Returns ones in the bytes that are in a range, with its ends.
#[inline]
fn between(bytes: u8x16, from: u8, to: u8) -> u8x16 {
    let above = bytes - u8x16::splat(from);
    above.min(u8x16::splat(to - from)).simd_eq(above)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample;

    use super::*;

    proptest! {
        #[test]
        fn bytes_are_marked_one_by_one(bytes: [u8; 8]) {
            let number = u64::from_le_bytes(bytes);
            let marked = |is: fn(u8) -> bool| u64::from_le_bytes(bytes.map(|byte| if is(byte) { 0x80 } else { 0 }));
            prop_assert_eq!(letters(number), marked(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii()));
            prop_assert_eq!(digits(number), marked(|byte| byte.is_ascii_digit()));
        }

        #[test]
        fn the_first_byte_of_a_kind_is_found(bytes in proptest::array::uniform16(sample::select(b"\0\t !=>a\xFF".to_vec()))) {
            let sixteen = Sixteen::of(&bytes);
            let first = |is: &dyn Fn(u8) -> bool| bytes.iter().position(|byte| is(*byte));
            prop_assert_eq!(sixteen.first_of([b'=', b'>']), first(&|byte| matches!(byte, b'=' | b'>')));
            prop_assert_eq!(sixteen.first_of_or_space([b'>', 0xFF]), first(&|byte| matches!(byte, 0..=b' ' | b'>' | 0xFF)));
        }

        #[test]
        fn the_first_of_32_bytes_is_found(bytes in proptest::array::uniform32(sample::select(b"aaaaaaa>".to_vec()))) {
            prop_assert_eq!(first_in(&bytes, b'>'), bytes.iter().position(|byte| *byte == b'>'));
        }

        #[test]
        fn sixteen_bytes_are_marked_one_by_one(bytes: [u8; 16]) {
            let sixteen = Sixteen::of(&bytes);
            let bits = |is: &dyn Fn(u8) -> bool| (0..16).map(|at| u64::from(is(bytes[at])) << at).sum::<u64>();
            let is_letter = |byte: u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
            prop_assert_eq!(sixteen.letters(), bits(&is_letter));
            prop_assert_eq!(sixteen.digits(), bits(&|byte| byte.is_ascii_digit()));
            prop_assert_eq!(sixteen.ideographs(), bits(&|byte| matches!(byte, 0xE3..=0xE9)));
            for bit in [1, 2, 128] {
                prop_assert_eq!(sixteen.with(bit), bits(&|byte| byte & bit != 0));
            }
            let folded = bytes.map(|byte| if is_letter(byte) { byte.to_ascii_lowercase() } else { 0 });
            let [low, high] = sixteen.folded();
            prop_assert_eq!(u128::from(low) | u128::from(high) << 64, u128::from_le_bytes(folded));
        }
    }
}
