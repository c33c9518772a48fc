//! How far away the caches and the memory are before each round.
//!
//! The virtual machines of a host share its last cache (L3): a filter can be in it in one minute and in memory in the next. So the tables
//! say how long reads took.

use cpu_time::ThreadTime;
use memmap2::MmapMut;

use crate::parts::{LINE_BYTES, on_large_pages};
use crate::run::{best, median};
use crate::workload::Random;

/// Within the second cache of most processors, within their last one, and beyond it, in KiB.
const SIZES: [usize; 4] = [512, 4 << 10, 16 << 10, 128 << 10];
/// It takes up to a fifth of a second for each size.
const READS: u32 = 500_000;

/// Nanoseconds per read, for each size.
pub(crate) type Latencies = [f64; SIZES.len()];

/// Memory of each size whose lines lead from one to the next, through all of them in random order.
pub(crate) struct Chains([MmapMut; SIZES.len()]);

impl Chains {
    pub(crate) fn new() -> Self {
        Self(SIZES.map(|kib| chain(kib << 10)))
    }

    /// Follows each chain: every read needs the result of the one before. As many reads before bring into the caches what fits.
    pub(crate) fn time(&self) -> Latencies {
        std::array::from_fn(|size| {
            let follow = |from| (0..READS).fold(from, |line, _| next(&self.0[size], line));
            let from = follow(0);
            let start = ThreadTime::now();
            std::hint::black_box(follow(from));
            start.elapsed().as_nanos() as f64 / f64::from(READS)
        })
    }
}

/// Describes the latencies of all rounds.
pub(crate) fn describe(rounds: &[Latencies]) -> String {
    let sizes = SIZES.iter().enumerate().map(|(size, kib)| {
        let all: Vec<f64> = rounds.iter().map(|round| round[size]).collect();
        let most = all.iter().copied().fold(0.0, f64::max);
        let unit = if *kib < 1 << 10 {
            format!("{kib} KiB")
        } else {
            format!("{} MiB", kib >> 10)
        };
        format!("{unit} {:.0} · {:.0} · {most:.0}", best(all.clone()), median(all))
    });
    let sizes: Vec<String> = sizes.collect();
    format!(
        "Latency of random reads in ns, by the size of the memory (least · median · most, measured before each round): {}.",
        sizes.join(", ")
    )
}

/// Links all lines into one cycle (S. Sattolo, Information Processing Letters 22(6), 1986).
fn chain(bytes: usize) -> MmapMut {
    let mut memory = on_large_pages(bytes);
    let mut random = Random(bytes as u64);
    let mut order: Vec<u32> = (0..(bytes / LINE_BYTES) as u32).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at as u64) as usize);
    }
    for (line, to) in order.into_iter().enumerate() {
        memory[line * LINE_BYTES..][..4].copy_from_slice(&to.to_ne_bytes());
    }
    memory
}

fn next(memory: &MmapMut, line: u32) -> u32 {
    let start = &memory[line as usize * LINE_BYTES..];
    start.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}
