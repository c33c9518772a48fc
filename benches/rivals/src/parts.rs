//! What the parts of a push cost by themselves, on the same URLs: nobody who needs them all can be faster than their sum.
//! On a busy machine a median can, because a part takes milliseconds and a contender seconds.

use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;

use cpu_time::ThreadTime;
use memmap2::MmapMut;
use siphasher::sip128::{Hasher128, SipHasher24};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

use crate::chunk::Chunk;
use crate::workload::Random;

pub(crate) const LINE_BYTES: usize = 64;
/// How many lines are asked for before the first is needed.
const AHEAD: usize = 32;
const LINES: u64 = 1_000_000;
/// A large page of x86-64; what is mapped is a whole number of them.
const PAGE_BYTES: usize = 2 << 20;

/// The hashes that are compared.
pub(crate) const HASHES: [&str; 6] = [
    "fastmurmur3, 128 bit",
    "xxh3, 64 bit, seeded",
    "xxh3, 128 bit, seeded",
    "SipHash-2-4, 128 bit",
    "SipHash-1-3, 64 bit (the standard library)",
    "foldhash, 64 bit",
];

/// Nanoseconds per URL.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    pub(crate) hashes: [f64; HASHES.len()],
    /// A prefetched read-modify-write of a random cache line.
    pub(crate) line: f64,
    pub(crate) copy: f64,
}

impl Parts {
    /// Measures each part once. The hashes evict the lines, so that these are as far away at first as after a chunk of URLs.
    pub(crate) fn measure(chunk: &Chunk, lines: &mut Lines) -> Self {
        Self {
            hashes: time_hashes(chunk),
            line: lines.time(),
            copy: time_copy(chunk),
        }
    }

    /// Sums up measurements, each part by `pick`.
    pub(crate) fn of(measured: &[Self], pick: fn(Vec<f64>) -> f64) -> Self {
        let figures = |of: &dyn Fn(&Self) -> f64| pick(measured.iter().map(of).collect());
        Self {
            hashes: std::array::from_fn(|hash| figures(&|parts| parts.hashes[hash])),
            line: figures(&|parts| parts.line),
            copy: figures(&|parts| parts.copy),
        }
    }

    pub(crate) fn murmur3(&self) -> f64 {
        self.hashes[0]
    }

    pub(crate) fn xxh3(&self) -> f64 {
        self.hashes[1]
    }

    /// The sum for a hash and a share of new URLs; only new ones are copied.
    pub(crate) fn sum(&self, hash: f64, new_share: f64) -> f64 {
        hash + self.line + self.copy * new_share
    }
}

fn time_hashes(chunk: &Chunk) -> [f64; HASHES.len()] {
    let foldhash = foldhash::fast::FixedState::with_seed(1);
    let sip13 = std::hash::RandomState::new();
    let sip24 = |url: &[u8]| {
        let mut hasher = SipHasher24::new_with_key(&[7; 16]);
        hasher.write(url);
        hasher.finish128().h1
    };
    [
        per_link(chunk, murmur3),
        per_link(chunk, |url| xxh3_64_with_seed(url, 0x5eed)),
        per_link(chunk, xxh3_128),
        per_link(chunk, sip24),
        per_link(chunk, |url| sip13.hash_one(url)),
        per_link(chunk, |url| foldhash.hash_one(url)),
    ]
}

fn murmur3(url: &[u8]) -> u64 {
    let hash = fastmurmur3::murmur3_x64_128(url, 0);
    hash as u64 ^ (hash >> 64) as u64
}

fn xxh3_128(url: &[u8]) -> u64 {
    let hash = xxh3_128_with_seed(url, 0x5eed);
    hash as u64 ^ (hash >> 64) as u64
}

fn per_link(chunk: &Chunk, hash: impl Fn(&[u8]) -> u64) -> f64 {
    let start = ThreadTime::now();
    let all = chunk.links().fold(0, |all, link| all ^ hash(link.as_bytes()));
    black_box(all);
    start.elapsed().as_nanos() as f64 / chunk.len() as f64
}

/// Copies each URL end to end into memory that was touched before.
fn time_copy(chunk: &Chunk) -> f64 {
    let mut buffer: Vec<u8> = vec![1; 1 << 16];
    let start = ThreadTime::now();
    buffer.clear();
    for link in chunk.links() {
        if buffer.len() + link.len() > 1 << 16 {
            black_box(&buffer);
            buffer.clear();
        }
        buffer.extend_from_slice(link.as_bytes());
    }
    black_box(&buffer);
    start.elapsed().as_nanos() as f64 / chunk.len() as f64
}

/// Memory of a filter's size, on large pages.
pub(crate) struct Lines {
    memory: MmapMut,
    count: u64,
}

impl Lines {
    pub(crate) fn new(bytes: u64) -> Self {
        let bytes = (bytes as usize).next_multiple_of(LINE_BYTES);
        let mut memory = on_large_pages(bytes);
        memory.fill(1);
        Self {
            memory,
            count: (bytes / LINE_BYTES) as u64,
        }
    }

    fn time(&mut self) -> f64 {
        let mut random = Random(LINES);
        let start = ThreadTime::now();
        for _ in 0..LINES / AHEAD as u64 {
            let mut places = [0; AHEAD];
            for place in &mut places {
                *place = random.below(self.count) as usize * LINE_BYTES;
                prefetch(&self.memory[*place]);
            }
            for place in places {
                self.memory[place] |= 1 << (place % 8);
            }
        }
        start.elapsed().as_nanos() as f64 / LINES as f64
    }
}

/// Maps memory of at least this size, on large pages if the system has them.
pub(crate) fn on_large_pages(bytes: usize) -> MmapMut {
    let memory = MmapMut::map_anon(bytes.next_multiple_of(PAGE_BYTES)).expect("the memory is there");
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    memory
}

#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "the instruction is reachable through a raw pointer only")
)]
fn prefetch(place: &u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint that never faults, at the address of a live reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
