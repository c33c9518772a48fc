//! Writes the seeds of the targets: `cargo run --example seeds`. They are small and of every kind.

use std::fs;
use std::path::Path;

use sieve::snapshot::Snapshot;
use sieve::{BloomFilter, CountingBloomFilter, Hashing, Sizing};
use sieve_fuzz::bases::bases;
use sieve_fuzz::seal::{self, Repairs, SECRET};

const HASHINGS: [Hashing; 3] = [
    Hashing::Murmur3 { seed: 7 },
    Hashing::Xxh3 { seed: 7 },
    Hashing::Hardened { key: SECRET },
];

fn shapes() -> [Sizing; 4] {
    [
        Sizing::explicit_blocks(1, 8).unwrap(),
        Sizing::explicit_blocks(2, 11).unwrap(),
        Sizing::explicit(100, 3).unwrap(),
        Sizing::explicit(1024, 25).unwrap(),
    ]
}

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    filter_files(&corpus.join("filter_file"));
    deltas(&corpus.join("delta"));
    operations(&corpus.join("operations"));
    #[cfg(feature = "stored")]
    stored(&corpus.join("stored"));
}

/// Rows, states, seen-sets and records of a small crawl. They need `RUSTFLAGS="--cfg fuzzing"`.
#[cfg(feature = "stored")]
fn stored(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let kinds = ["row", "state", "seen-set", "records"];
    for ((what, kind), seeds) in (0_u8..).zip(kinds).zip(frontier::fuzzing::seeds().unwrap()) {
        for (number, seed) in seeds.into_iter().enumerate() {
            fs::write(folder.join(format!("{kind}-{number}")), [vec![what], seed].concat()).unwrap();
        }
    }
}

/// Any bytes are operations: the first four say on which filter, so that each is there from the start.
fn operations(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 56) as u8
    };
    for number in 0..18_u8 {
        let filter = [0, 0, 0, number % 6 * 43 + 5];
        let rest: Vec<u8> = (0..252).map(|_| random()).collect();
        fs::write(
            folder.join(format!("random-{number}")),
            [&filter, rest.as_slice()].concat(),
        )
        .unwrap();
    }
}

fn deltas(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for (number, base) in bases().into_iter().enumerate() {
        for keys in [0, 1, 8, 100] {
            let mut newer = base.filter.clone();
            for key in 0..keys {
                newer.insert(format!("new {key}").as_bytes());
            }
            let mut input = vec![15, number as u8];
            newer.delta(&base.filter).unwrap().write_to(&mut input).unwrap();
            fs::write(folder.join(format!("base-{number}-keys-{keys}")), input).unwrap();
        }
    }
}

fn filter_files(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    // Everything is put right, so that whatever is changed reaches the deepest checks.
    let write = |name: String, file: Vec<u8>| fs::write(folder.join(name), [vec![7], file].concat()).unwrap();
    let mut layers = Vec::new();
    for (number, sizing) in shapes().into_iter().enumerate() {
        for hashing in HASHINGS {
            let mut standard = BloomFilter::with_hashing(sizing, hashing).unwrap();
            let mut counting = CountingBloomFilter::with_hashing(sizing, hashing).unwrap();
            for key in 0..10_u32 {
                standard.insert(&key.to_le_bytes());
                counting.insert(&key.to_le_bytes());
            }
            counting.remove(&1_u32.to_le_bytes());
            write(
                format!("standard-{number}-{}", hashing.name()),
                seal::file_of(&standard),
            );
            write(
                format!("counting-{number}-{}", hashing.name()),
                seal::file_of(&counting),
            );
            if hashing == HASHINGS[0] {
                layers.push(seal::file_of(&standard));
            }
        }
    }
    write("scalable".to_owned(), scalable(&layers));
}

/// A scalable filter of these layers. The crate makes no layer as small as these.
fn scalable(layers: &[Vec<u8>]) -> Vec<u8> {
    let mut file = layers[layers.len() - 1][..seal::HEADER_BYTES].to_vec();
    file[10] = 3;
    file[20] = layers.len() as u8;
    seal::put(&mut file, 72, 0.01_f64.to_bits());
    layers.iter().for_each(|layer| file.extend_from_slice(layer));
    seal::filter(&mut file, Repairs { ones: true, longest: 0 });
    assert!(sieve::ScalableBloomFilter::read_from(&mut file.as_slice(), file.len() as u64, None).is_ok());
    file
}
