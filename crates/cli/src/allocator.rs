//! jemalloc, the allocator of shipped binaries (feature `jemalloc`). Users of the library choose their own.
//!
//! What one thread reads another frees: with glibc's allocator, threads spend an eighth of their time waiting for its locks.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// All threads share an arena, and bodies and texts of a mebibyte and more go back to the system at once.
///
/// With an arena for each thread, what one thread has freed lies idle while another asks for more: up to an eighth of the
/// peak memory of a crawl. Each thread has a cache of its own before the arena, of blocks of up to 8 KiB, so that two cores
/// are no slower with one.
/// Large buffers, kept for the next one as jemalloc keeps them below 8 MiB, were a third of the peak, and saved a twentieth
/// of the processor time at the most.
#[expect(
    unsafe_code,
    reason = "jemalloc reads its options from a symbol of this name, which nothing else may have"
)]
// SAFETY: the name belongs to jemalloc, which is linked into this program once and takes it for a pointer to a string that
// ends in a NUL.
#[unsafe(export_name = "_rjem_malloc_conf")]
static OPTIONS: &[u8; 54] = b"narenas:1,lg_tcache_max:13,oversize_threshold:1048576\0";
