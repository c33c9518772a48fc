//! The keys of the target `operations`: short and long ones, made once.

use std::sync::LazyLock;

/// The longest key that shares a segment of a packed queue with others.
pub const LONGEST_SHARING: usize = 65_468;

/// How many of the keys, from the first, are not long.
pub const NOT_LONG: usize = 1012;

/// Many short keys, some that share more than a byte can count, a few about as long as a segment; no two are the same.
pub static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let short = (0..960).map(|n| format!("https://host{}.example/{n}", n % 5));
    // The shared part ends around the 255th byte, also within an "é".
    let shared = (960..NOT_LONG).map(|n| format!("{}{}{n}", "-".repeat(n % 2), "é".repeat(n / 8)));
    let long = [20_000, 30_000, 65_467, LONGEST_SHARING, LONGEST_SHARING + 1, 70_000];
    let alike = long.map(|length| "x".repeat(length));
    let unlike = long.map(noise);
    short.chain(shared).chain(alike).chain(unlike).collect()
});

/// Letters that do not compress.
fn noise(length: usize) -> String {
    let mut state = length as u64;
    let letters = (0..length).map(|_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        char::from(b'0' + (state >> 58) as u8)
    });
    letters.collect()
}
