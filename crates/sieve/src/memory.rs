//! The memory of a filter: zeroed, aligned to cache lines, on large pages where the system has them.
//!
//! Large filters are mapped, not allocated. Random access to hundreds of megabytes on pages of 4 KiB misses the TLB at every key. Pages of 2 MiB
//! make a filter for 100 million keys 1.1 to 1.3 times as fast. Mapped pages are zero without being touched, so that a large filter
//! costs nothing until it is used. Small pages are populated at once: a page that is read before it is written is mapped twice, and
//! the second mapping interrupts all processors. Small filters come from the allocator: a process may have some 65 000 mappings.

use std::io;

use memmap2::{MmapMut, MmapOptions};

use crate::sizing::{ConfigError, WORDS};

/// One block, a cache line.
pub(crate) type Block = [u64; WORDS];

/// A block as bytes.
pub(crate) type Line = [u8; size_of::<Block>()];

/// Smaller filters come from the allocator.
const LEAST_MAPPED_BYTES: usize = 256 << 10;

/// A large page, on most processors.
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// The least number of bytes for which a large page is used. A filter for a million keys would leave two fifths of one unused; on small pages
/// it is as fast.
const LEAST_LARGE_BYTES: usize = LARGE_PAGE_BYTES / 16 * 15;

/// Zeroed words.
#[derive(Debug)]
pub(crate) enum Memory {
    /// Words of the allocator, of which the first ones are left out: a block is a cache line.
    Heap { words: Vec<u64>, first: usize },
    /// Mapped memory, and how many bytes of it are used.
    Mapped { map: MmapMut, bytes: usize },
}

impl Memory {
    /// Allocates zeroed words. It returns an error where `vec!` would abort the process.
    pub(crate) fn zeroed(words: u64) -> Result<Self, ConfigError> {
        let refused = ConfigError::CannotAllocate {
            bytes: words.saturating_mul(8),
        };
        let bytes = words
            .checked_mul(8)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .filter(|&bytes| bytes <= isize::MAX as usize)
            .ok_or_else(|| refused.clone())?;
        if bytes >= LEAST_MAPPED_BYTES
            && let Ok(map) = mapped(bytes)
        {
            return Ok(Self::Mapped { map, bytes });
        }
        let mut words = Vec::new();
        words.try_reserve_exact(bytes / 8 + WORDS - 1).map_err(|_| refused)?;
        words.resize(bytes / 8 + WORDS - 1, 0);
        let first = words.as_ptr().align_offset(size_of::<Block>()).min(WORDS - 1);
        words.truncate(first + bytes / 8);
        Ok(Self::Heap { words, first })
    }

    #[inline]
    pub(crate) fn words(&self) -> &[u64] {
        match self {
            Self::Heap { words, first } => &words[*first..],
            Self::Mapped { map, bytes } => bytemuck::cast_slice(&map[..*bytes]),
        }
    }

    #[inline]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        match self {
            Self::Heap { words, first } => &mut words[*first..],
            Self::Mapped { map, bytes } => bytemuck::cast_slice_mut(&mut map[..*bytes]),
        }
    }

    #[inline]
    pub(crate) fn blocks(&self) -> &[Block] {
        self.words().as_chunks().0
    }

    #[inline]
    pub(crate) fn blocks_mut(&mut self) -> &mut [Block] {
        self.words_mut().as_chunks_mut().0
    }

    /// Returns the blocks as bytes, in the order of the platform. Unlike [`blocks_mut`](Self::blocks_mut), it does not check each time that
    /// they are aligned.
    #[inline]
    pub(crate) fn lines_mut(&mut self) -> &mut [Line] {
        let bytes: &mut [u8] = match self {
            Self::Heap { words, first } => bytemuck::cast_slice_mut(&mut words[*first..]),
            Self::Mapped { map, bytes } => &mut map[..*bytes],
        };
        bytes.as_chunks_mut().0
    }

    pub(crate) fn count_ones(&self) -> u64 {
        self.words().iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        match Self::zeroed(self.words().len() as u64) {
            Ok(mut copy) => {
                copy.words_mut().copy_from_slice(self.words());
                copy
            }
            // Out of memory: aborts, as the clone of any collection does.
            Err(_) => Self::Heap {
                words: self.words().to_vec(),
                first: 0,
            },
        }
    }
}

fn mapped(bytes: usize) -> io::Result<MmapMut> {
    let mut options = MmapOptions::new();
    if bytes < LEAST_LARGE_BYTES {
        return options.len(bytes).populate().map_anon();
    }
    // Linux, since 6.7, aligns a mapping to large pages if its length is a multiple of them.
    let map = options.len(bytes.next_multiple_of(LARGE_PAGE_BYTES)).map_anon()?;
    advise(&map, bytes);
    Ok(map)
}

/// Asks for large pages, and for small ones where a part of a large one would stay unused. Populates the last large page, if it is not used
/// whole, or the small ones in its place. Without large pages the filter is slower.
#[cfg(target_os = "linux")]
fn advise(map: &MmapMut, bytes: usize) {
    use memmap2::Advice;

    let rest = bytes % LARGE_PAGE_BYTES;
    let whole = bytes - rest;
    let large = if rest >= LEAST_LARGE_BYTES { map.len() } else { whole };
    let _ = map.advise_range(Advice::HugePage, 0, large);
    let _ = map.advise_range(Advice::NoHugePage, large, map.len() - large);
    let _ = map.advise_range(Advice::PopulateWrite, whole, rest);
}

#[cfg(not(target_os = "linux"))]
fn advise(_map: &MmapMut, _bytes: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_the_words_that_were_asked_for_on_pages_of_either_size() {
        for kib in [1, 4, 1_000, 1_024, 1_500, 2_048, 2_500, 3_500] {
            let words = kib * 1_024 / 8;
            let mut memory = Memory::zeroed(words).unwrap();
            assert!(memory.words().iter().all(|&word| word == 0), "{kib} KiB");
            memory.words_mut().fill(u64::MAX);
            assert_eq!(memory.count_ones(), words * 64, "{kib} KiB");
            assert_eq!(memory.clone().words(), memory.words(), "{kib} KiB");
            let blocks = words as usize / WORDS;
            assert_eq!(
                (memory.blocks().len(), memory.lines_mut().len()),
                (blocks, blocks),
                "{kib} KiB"
            );
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn many_small_filters_take_no_mapping_of_their_own() {
        let mappings = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
        for kib in [1, 4, 40, 100] {
            let before = mappings();
            let filters: Vec<_> = (0..500).map(|_| Memory::zeroed(kib * 128).unwrap()).collect();
            let aligned = |filter: &Memory| filter.words().as_ptr().addr().is_multiple_of(size_of::<Block>());
            assert!(filters.iter().all(aligned), "{kib} KiB: a block is a cache line");
            // Neighbours share a mapping, but none with a gap between them.
            let halves: Vec<_> = filters.into_iter().step_by(2).collect();
            let added = mappings().saturating_sub(before);
            assert!(added < 50, "{added} mappings of {} filters of {kib} KiB", halves.len());
        }
    }

    /// Returns the flags of the mapping that contains an address, from the system's list of mappings.
    #[cfg(target_os = "linux")]
    fn flags_of(address: *const u64) -> String {
        let mappings = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_inside = false;
        for line in mappings.lines() {
            let ends = line.split(' ').next().and_then(|range| range.split_once('-'));
            let ends = ends.map(|(from, to)| [from, to].map(|end| usize::from_str_radix(end, 16)));
            if let Some([Ok(from), Ok(to)]) = ends {
                is_inside = (from..to).contains(&address.addr());
            } else if is_inside && let Some(flags) = line.strip_prefix("VmFlags:") {
                return format!("{flags} ");
            }
        }
        panic!("{address:?} is not mapped")
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn large_pages_are_asked_for_unless_a_part_of_one_would_stay_unused() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return;
        }
        for (kib, first, last) in [
            (1_950, " hg ", " hg "),
            (2_048, " hg ", " hg "),
            (2_500, " hg ", " nh "),
            (3_500, " hg ", " nh "),
            (4_000, " hg ", " hg "),
        ] {
            let memory = Memory::zeroed(kib * 128).unwrap();
            let words = memory.words();
            for (word, expected) in [(words.first(), first), (words.last(), last)] {
                let flags = flags_of(word.unwrap());
                assert!(flags.contains(expected), "{kib} KiB: {flags}");
            }
        }
    }
}
