//! The file of a filter: what is saved comes back, and what is damaged does not.

use std::collections::VecDeque;

use sieve::snapshot::SnapshotCounts;
use sieve::{
    BloomFilter, CountingBloomFilter, Delta, Filter, Hashing, Layout, ScalableBloomFilter, SeenSet, Sieve, Sizing,
    Snapshot, SnapshotError,
};

const KEY: [u8; 16] = *b"sixteen byte key";
const COUNTS: SnapshotCounts = SnapshotCounts {
    accepted: 123,
    lost: 0.75,
};

fn hashings() -> [Hashing; 3] {
    [
        Hashing::Murmur3 { seed: 5 },
        Hashing::Xxh3 { seed: 6 },
        Hashing::Hardened { key: KEY },
    ]
}

fn fill(filter: &mut impl Filter, keys: u32) {
    for n in 0..keys {
        filter.insert(&n.to_le_bytes());
    }
}

fn bytes(filter: &impl Snapshot) -> Vec<u8> {
    let mut file = Vec::new();
    filter.write_to(&COUNTS, &mut file).unwrap();
    file
}

fn read<F: Snapshot>(file: &[u8]) -> Result<(F, SnapshotCounts), SnapshotError> {
    F::read_from(&mut &*file, file.len() as u64, Some(KEY))
}

#[track_caller]
fn comes_back<F: Snapshot + Filter>(filter: &F) {
    let file = bytes(filter);
    assert_eq!(filter.snapshot_bytes(), file.len() as u64);
    let (again, counts) = read::<F>(&file).unwrap();
    assert_eq!(counts, COUNTS);
    assert_eq!(again.load(), filter.load());
    for n in 0_u32..2_000 {
        let key = n.to_le_bytes();
        assert_eq!(again.contains(&key), filter.contains(&key), "{n}");
    }
    assert_eq!(bytes(&again), file);
}

#[test]
fn every_kind_comes_back_as_it_was_in_every_layout_and_hash() {
    for hashing in hashings() {
        for layout in [Layout::Classic, Layout::Blocks] {
            for capacity in [1, 70, 1_000, 20_000] {
                let sizing = Sizing::in_layout(layout, capacity, 0.01).unwrap();
                let mut standard = BloomFilter::with_hashing(sizing, hashing).unwrap();
                fill(&mut standard, 1_000);
                comes_back(&standard);
                comes_back(&SeenSet::Fixed(standard));
                let mut counting = CountingBloomFilter::with_hashing(sizing, hashing).unwrap();
                fill(&mut counting, 1_000);
                counting.remove(7_u32.to_le_bytes());
                comes_back(&counting);
            }
        }
        let mut scalable = ScalableBloomFilter::with_hashing(50, 0.01, hashing).unwrap();
        fill(&mut scalable, 1_000);
        comes_back(&scalable);
        comes_back(&SeenSet::Growing(scalable));
    }
}

#[test]
fn an_exact_seen_set_says_that_it_cannot_be_saved_and_writes_nothing() {
    let mut file = Vec::new();
    let error = SeenSet::exact()
        .write_to(&SnapshotCounts::default(), &mut file)
        .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
    assert!(file.is_empty());
    assert_eq!(SeenSet::exact().snapshot_bytes(), 0);
}

#[test]
fn a_loaded_filter_continues_as_the_saved_one() {
    let build = || Sieve::builder().capacity(300).seed(3).build().unwrap();
    let (mut whole, mut first) = (build(), build());
    let keys = |from: u32, to: u32| (from..to).map(|n| n.to_string());
    whole.extend(keys(0, 900));
    first.extend(keys(0, 400));
    let mut file = Vec::new();
    first.save_filter(&mut file).unwrap();
    let mut second: Sieve = Sieve::resume(&mut &*file, file.len() as u64, None, VecDeque::new()).unwrap();
    let (mut came_back, before) = (second.saturation(), first.saturation());
    assert!(
        came_back.lost_at_least() <= before.lost_at_least(),
        "the file has no variance: it is bounded from above"
    );
    assert!((before.lost_noise..2.0 * before.lost_noise).contains(&came_back.lost_noise));
    came_back.lost_noise = before.lost_noise;
    assert_eq!(came_back, before);
    second.extend(keys(0, 900));
    assert_eq!(second.filter().load(), whole.filter().load());
    let (lost, expected) = (second.saturation().lost, whole.saturation().lost);
    assert!((lost / expected - 1.0).abs() < 0.02, "{lost} instead of {expected}");
}

#[test]
fn every_truncation_and_every_flipped_bit_is_an_error() {
    let mut standard = BloomFilter::with_hashing(Sizing::explicit(700, 5).unwrap(), hashings()[0]).unwrap();
    let mut blocks = BloomFilter::new(100, 0.01).unwrap();
    let mut counting = CountingBloomFilter::new(20, 0.01).unwrap();
    fill(&mut standard, 60);
    fill(&mut blocks, 60);
    fill(&mut counting, 20);
    let older = blocks.clone();
    fill(&mut blocks, 90);
    let mut delta = Vec::new();
    blocks.delta(&older).unwrap().write_to(&mut delta).unwrap();

    spoils_everywhere(&bytes(&standard), |file| read::<BloomFilter>(file).is_err());
    spoils_everywhere(&bytes(&blocks), |file| read::<SeenSet>(file).is_err());
    spoils_everywhere(&bytes(&counting), |file| read::<CountingBloomFilter>(file).is_err());
    spoils_everywhere(&delta, |file| {
        Delta::read_from(&mut &*file, file.len() as u64, None).is_err()
    });
}

#[track_caller]
fn spoils_everywhere(file: &[u8], fails: impl Fn(&[u8]) -> bool) {
    assert!(!fails(file));
    for length in 0..file.len() {
        assert!(fails(&file[..length]), "cut to {length} of {} bytes", file.len());
    }
    for bit in 0..file.len() * 8 {
        let mut spoilt = file.to_vec();
        spoilt[bit / 8] ^= 1 << (bit % 8);
        assert!(fails(&spoilt), "bit {bit} flipped");
    }
}

#[test]
fn layers_that_are_cut_or_flipped_are_an_error_too() {
    let mut scalable = ScalableBloomFilter::new(50, 0.01).unwrap();
    fill(&mut scalable, 130);
    let file = bytes(&scalable);
    assert!(read::<ScalableBloomFilter>(&file).is_ok());
    for length in (0..file.len()).step_by(61).chain([file.len() - 1]) {
        assert!(read::<ScalableBloomFilter>(&file[..length]).is_err(), "cut to {length}");
    }
    for bit in (0..file.len() * 8).step_by(37) {
        let mut spoilt = file.clone();
        spoilt[bit / 8] ^= 1 << (bit % 8);
        assert!(read::<SeenSet>(&spoilt).is_err(), "bit {bit} flipped");
    }
}

#[test]
fn a_file_that_claims_to_be_huge_is_refused_before_memory_is_allocated() {
    // A filter of 8 GiB whose memory is never touched: its file's first bytes are a true header.
    struct HeaderOnly(Vec<u8>);
    impl std::io::Write for HeaderOnly {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.extend_from_slice(bytes);
            if self.0.len() > 96 {
                Err(std::io::ErrorKind::StorageFull.into())
            } else {
                Ok(bytes.len())
            }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let huge = BloomFilter::with_hashing(Sizing::explicit(1 << 36, 7).unwrap(), Hashing::default()).unwrap();
    let mut file = HeaderOnly(Vec::new());
    assert!(huge.write_to(&COUNTS, &mut file).is_err(), "a full disk is an error");
    let file = &file.0[..200];
    assert!(matches!(
        read::<BloomFilter>(file),
        Err(SnapshotError::TooLong { needed, limit: 200 }) if needed > 1 << 33
    ));
}

#[test]
fn what_is_wrong_is_said() {
    let mut filter = BloomFilter::with_hashing(Sizing::for_rate(50, 0.01).unwrap(), hashings()[2]).unwrap();
    fill(&mut filter, 50);
    let file = bytes(&filter);
    let len = file.len() as u64;
    let with = |secret| {
        BloomFilter::read_from(&mut &*file, len, secret)
            .map(|_| ())
            .unwrap_err()
    };
    assert!(matches!(with(None), SnapshotError::SecretMissing));
    assert!(matches!(with(Some([1; 16])), SnapshotError::SecretWrong));
    assert!(!file.windows(16).any(|part| part == KEY), "the key is not in the file");
    assert!(matches!(
        read::<CountingBloomFilter>(&file),
        Err(SnapshotError::Kind {
            wanted: "counting filter",
            found: "standard filter"
        })
    ));
    assert!(matches!(read::<BloomFilter>(&[0; 500]), Err(SnapshotError::NotAFilter)));
    let mut newer = file.clone();
    newer[8] = 2;
    assert!(matches!(read::<BloomFilter>(&newer), Err(SnapshotError::Version(2))));
    for error in [with(None), with(Some([1; 16]))] {
        assert!(error.to_string().contains("give"), "{error}");
    }
}

/// The same file on every platform: these bytes were written once and must be read for ever.
#[test]
fn a_golden_file_stays_readable() {
    let mut filter = BloomFilter::with_hashing(Sizing::explicit(64, 3).unwrap(), Hashing::Murmur3 { seed: 1 }).unwrap();
    for key in ["a", "b", "c"] {
        filter.insert(key.as_bytes());
    }
    let file = bytes(&filter);
    let hex: String = file.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, GOLDEN);
}

const GOLDEN: &str = "53494556450d0a1a010001010101000003000000000000004000000000000000\
                      0e00000000000000010000000000000009000000000000007b00000000000000\
                      000000000000e83f00000000000000000000000000000000fb4fb08548b8da81\
                      220a24000010800826ae56e5fe51dd9e";

/// The checksum at the end of a file covers its words: another rule from keys to bits would lose every key of every file.
#[test]
fn the_mapping_from_keys_to_bits_is_stable_in_every_layout() {
    let shapes = [
        (Sizing::explicit_blocks(7, 5), GOLDEN_5),
        (Sizing::explicit_blocks(7, 8), GOLDEN_8),
        (Sizing::explicit_blocks(7, 11), GOLDEN_11),
        (Sizing::explicit(3_000, 9), GOLDEN_CLASSIC),
    ];
    for (sizing, golden) in shapes {
        let sums = hashings().map(|hashing| {
            let mut filter = BloomFilter::with_hashing(sizing.clone().unwrap(), hashing).unwrap();
            fill(&mut filter, 100);
            let file = bytes(&filter);
            u64::from_le_bytes(*file.last_chunk().unwrap())
        });
        assert_eq!(sums, golden, "{sizing:?}: {sums:x?}");
    }
}

const GOLDEN_5: [u64; 3] = [0x18ca_047d_4eaa_e37f, 0x0bf0_12bd_6c10_0746, 0x550b_a107_c83b_0a28];
const GOLDEN_8: [u64; 3] = [0x6931_6c06_2edf_f15c, 0x5939_fe79_f4f3_6161, 0xf12b_0436_ede3_7ecd];
const GOLDEN_11: [u64; 3] = [0x3127_10f7_a5b2_e288, 0xf6de_602b_9e3e_6b92, 0x80f8_f6e6_8bbf_03c1];
const GOLDEN_CLASSIC: [u64; 3] = [0x8eca_3c44_0a47_1792, 0xb217_e5d8_5459_19f9, 0x9d0c_2cb0_2681_4da9];
