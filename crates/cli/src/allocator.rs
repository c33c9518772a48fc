//! jemalloc, the allocator of shipped binaries (feature `jemalloc`). Users of the library choose their own.
//!
//! One thread allocates a body and another one frees it. With glibc's allocator, the threads spend an eighth of their time waiting
//! for its locks.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The options of jemalloc: all threads share one arena, and buffers of 1 MiB and more return to the system at once.
///
/// With an arena per thread, memory that one thread freed stays unused while another thread allocates: up to an eighth of the peak
/// memory of a crawl. Each thread has its own cache for blocks of up to 8 KiB, so two cores are not slower with one arena.
///
/// By default jemalloc keeps free buffers below 8 MiB for reuse. These were a third of the peak memory, and saved at most a twentieth
/// of the processor time.
#[expect(unsafe_code, reason = "jemalloc reads its options from the symbol of this name")]
// SAFETY: only jemalloc uses this name, and it is linked into this program once. It reads the symbol as a pointer to a string that
// ends with a NUL.
#[unsafe(export_name = "_rjem_malloc_conf")]
static OPTIONS: &[u8; 54] = b"narenas:1,lg_tcache_max:13,oversize_threshold:1048576\0";
