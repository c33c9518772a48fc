//! Asks the processor to fetch a cache line that will be needed soon.
//!
//! The one file with `unsafe` code. What it buys: marking a batch of 32 keys in a filter of 120 MB costs 32 ns per key with
//! it, 44 ns when the lines are read instead of prefetched, 92 ns without either (xxh3, pages of 2 MiB).

/// Starts to fetch the line of `place`; never faults, and does nothing where the platform has no such instruction.
#[inline]
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "the instruction is reachable through a raw pointer only")
)]
pub(crate) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is a hint that never faults on any address, and this one comes from a live reference. SSE, which
        // it belongs to, is part of every x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
