//! The bound of the packed queue, as the allocator sees it. One test, as the allocator counts for the whole process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use peak_alloc::PeakAlloc;
use sieve::{Accepts, Fifo, PackedQueue, Packing, Queue};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const PACKINGS: [Packing; 2] = [Packing::Plain, Packing::Prefix];

#[test]
fn the_allocator_sees_no_more_than_the_bound_and_nothing_new_at_a_constant_length() {
    turn_over();
    let keys = keys();
    for packing in PACKINGS {
        let least = PackedQueue::<String>::with_max_bytes(packing, 0).unwrap_err().least;
        for bound in [least, least + 1000, 400_000, 1_000_003, 3_000_000] {
            fill_and_drain(packing, bound, &keys);
        }
        // Where the list of segments grows just when the bound is reached.
        for bound in (16 * 30..24 * 30).map(|step| least + step / 30 * 65_472 + step % 30 * 24) {
            fill(packing, bound, &keys[700]);
        }
    }
}

/// At a constant length a push writes into memory that was drained. The thread of the test harness may allocate meanwhile, but not in each
/// of three rounds; a queue does the same in all.
fn turn_over() {
    for packing in PACKINGS {
        let rounds = [(); 3].map(|()| allocating_turn(packing));
        assert!(rounds.contains(&None), "{packing:?}: turns {rounds:?} allocate");
    }
}

/// Returns the first turn that allocates.
fn allocating_turn(packing: Packing) -> Option<usize> {
    let mut queue = PackedQueue::<String>::new(packing);
    let key = "x".repeat(1000) + "y";
    (0..1000).for_each(|_| queue.push(&key[queue.len()..]));
    (0..5000).find(|turn| {
        let popped = queue.pop().unwrap();
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        queue.push(popped.as_str());
        *turn >= 1000 && ALLOCATOR.peak_usage() != before
    })
}

fn fill(packing: Packing, bound: usize, key: &str) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut queue: PackedQueue = PackedQueue::with_max_bytes(packing, bound).unwrap();
    while queue.admit(&key).is_ok() {
        queue.push(key);
    }
    let peak = ALLOCATOR.peak_usage() - before + size_of::<PackedQueue>();
    assert!(peak <= bound, "{peak} of {bound}, {queue:?}");
}

fn fill_and_drain(packing: Packing, bound: usize, keys: &[String]) {
    let before = ALLOCATOR.current_usage();
    let mut queue: PackedQueue = PackedQueue::with_max_bytes(packing, bound).unwrap();
    let check = |queue: &PackedQueue, handed_out: usize, doing: &str| {
        let itself = size_of::<PackedQueue>();
        let peak = ALLOCATOR.peak_usage() - before + itself - handed_out;
        assert!(peak <= bound, "{doing}: {peak} of {bound}, {queue:?}");
        let now = ALLOCATOR.current_usage() - before + itself - handed_out;
        assert_eq!(now, queue.memory_bytes(), "{doing}: {queue:?}");
    };
    let mut pushed = 0;
    for round in 0..12 {
        for key in keys.iter().cycle().skip(round * 1009).take(keys.len()) {
            if queue.admit(&key.as_str()).is_ok() {
                ALLOCATOR.reset_peak_usage();
                queue.push(key.as_str());
                check(&queue, 0, "push");
                pushed += 1;
            }
        }
        // Sometimes to the end, sometimes a few only, so that every state of head and tail is met.
        let stay = if round % 3 == 0 { 0 } else { queue.len() * round / 12 };
        while queue.len() > stay {
            ALLOCATOR.reset_peak_usage();
            let key = queue.pop().unwrap();
            check(&queue, key.len(), "pop");
            drop(key);
        }
    }
    assert!(pushed > 1000);
    drop(queue);
    assert_eq!(ALLOCATOR.current_usage(), before);
}

/// Some megabytes: pages, some long keys, and some of which a segment has room for two only.
fn keys() -> Vec<String> {
    let mut state = 7_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut noise = |len: usize| -> String { (0..len).map(|_| char::from(b'!' + (next() % 90) as u8)).collect() };
    (0..20_000)
        .map(|n| match n % 2_000 {
            0 => noise(90_000),
            1 => "x".repeat(65_468),
            700..710 => noise(30_000),
            _ => format!("https://host-{}.example/{}/{n}.html", n % 11, noise(20)),
        })
        .collect()
}
