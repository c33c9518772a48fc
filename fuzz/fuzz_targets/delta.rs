//! Reading a delta from any bytes and applying it: no panic, nothing changed on an error, and else no key lost.
//!
//! The first byte of the input says what is put right before reading, the second which filter the delta is applied to, the
//! rest is the delta's file.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sieve::snapshot::Snapshot;
use sieve::{BloomFilter, Delta};
use sieve_fuzz::allocated;
use sieve_fuzz::bases::{Base, bases};
use sieve_fuzz::seal::{self, SECRET};

#[global_allocator]
static ALLOCATOR: allocated::Counting = allocated::Counting;

static BASES: LazyLock<Vec<Base>> = LazyLock::new(bases);

fuzz_target!(init: LazyLock::force(&BASES), |input: &[u8]| {
    let [mode, which, file @ ..] = input else {
        return;
    };
    let base = &BASES[usize::from(*which) % BASES.len()];
    let mut file = file.to_vec();
    if mode & 1 == 1 {
        if mode & 2 == 2 {
            base.give_shape(&mut file);
        }
        let fingerprint = (mode & 4 == 4).then_some(base.fingerprint);
        seal::delta(&mut file, fingerprint, mode & 8 == 8);
    }

    let mut rest = file.as_slice();
    let limit = file.len() as u64;
    let (read, allocated) = allocated::peak(|| Delta::read_from(&mut rest, limit, Some(SECRET)));
    assert!(allocated <= file.len(), "{allocated} bytes for {}", file.len());
    let Ok(delta) = read else {
        return;
    };
    let used = &file[..file.len() - rest.len()];
    assert_eq!(delta.encoded_len(), used.len() as u64);
    assert!(written(&delta) == used, "what was read is not what is written");

    let mut filter = base.filter.clone();
    match filter.apply(&delta) {
        Ok(()) => check_applied(base, &delta, &filter),
        Err(_) => assert!(seal::file_of(&filter) == base.file, "a delta that was refused changed the filter"),
    }
});

fn check_applied(base: &Base, delta: &Delta, filter: &BloomFilter) {
    assert!(base.keys.iter().all(|key| filter.contains(key)), "a key was lost");
    assert_eq!(filter.ones(), base.filter.ones() + delta.added());
    // Reading counts the ones again, and refuses bits that no probe has.
    let file = seal::file_of(filter);
    let (again, _) = BloomFilter::read_from(&mut file.as_slice(), file.len() as u64, Some(SECRET)).unwrap();
    assert_eq!(again.ones(), filter.ones());
    // The same bits by the crate's own encoder.
    let own = filter.delta(&base.filter).unwrap();
    assert_eq!(own.added(), delta.added());
    let mut mirror = base.filter.clone();
    mirror.apply(&own).unwrap();
    assert!(seal::file_of(&mirror) == file);
}

fn written(delta: &Delta) -> Vec<u8> {
    let mut file = Vec::new();
    delta.write_to(&mut file).unwrap();
    file
}
