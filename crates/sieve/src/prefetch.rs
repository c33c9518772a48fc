//! Prefetching of cache lines.
//!
//! The `unsafe` line makes batches faster: marking 32 keys in a filter of 120 MB costs 32 ns per key with
//! prefetching, 44 ns if the lines are read instead, and 92 ns without either (xxh3, pages of 2 MiB).

/// Starts to fetch the cache line of `place`. It never faults, and does nothing on platforms without such an instruction.
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
