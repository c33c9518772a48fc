//! What a durable frontier reads back, of any bytes: no panic, no endless work, and no memory beyond some times the bytes.
//!
//! The first byte of the input says what the rest is: a row of the journal, a state, a seen-set, or records.

#![no_main]

use frontier::fuzzing;
use libfuzzer_sys::fuzz_target;
use sieve_fuzz::allocated;

#[global_allocator]
static ALLOCATOR: allocated::Counting = allocated::Counting;

/// A collection reserves at most a mebibyte for what it claims to have, before it has read it. A few may be open at a time.
const CLAIMED: usize = 8 << 20;
/// A seen-set without keys takes up to 2 048 times its bytes in memory, and other small things on disk, such as an empty queue, hundreds of times.
const TIMES: usize = 3000;

fuzz_target!(|input: &[u8]| {
    let Some((&what, bytes)) = input.split_first() else {
        return;
    };
    let read = match what % 4 {
        0 => fuzzing::read_row,
        1 => fuzzing::read_state,
        2 => fuzzing::read_seen_set,
        _ => fuzzing::read_page,
    };
    let (_, allocated) = allocated::peak(|| read(bytes));
    let most = CLAIMED + TIMES * bytes.len();
    assert!(allocated <= most, "{allocated} bytes for {}", bytes.len());
});
