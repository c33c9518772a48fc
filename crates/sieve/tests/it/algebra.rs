//! Union, intersection and deltas against plain sets.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use sieve::{AlgebraError, BloomFilter, Delta, Hashing, Layout, Sizing};

fn filter(layout: Layout, capacity: u64, keys: impl IntoIterator<Item = u32>) -> BloomFilter {
    let sizing = Sizing::in_layout(layout, capacity, 0.01).unwrap();
    let mut filter = BloomFilter::with_hashing(sizing, Hashing::default()).unwrap();
    for key in keys {
        filter.insert(key.to_le_bytes());
    }
    filter
}

fn file(delta: &Delta) -> Vec<u8> {
    let mut file = Vec::new();
    delta.write_to(&mut file).unwrap();
    assert_eq!(file.len() as u64, delta.encoded_len());
    file
}

const LAYOUTS: [Layout; 2] = [Layout::Classic, Layout::Blocks];

#[test]
fn a_union_equals_a_filter_with_the_keys_of_both() {
    for layout in LAYOUTS {
        let mut one = filter(layout, 5_000, 0..2_000);
        let two = filter(layout, 5_000, 1_000..4_000);
        one.union(&two).unwrap();
        let both = filter(layout, 5_000, 0..4_000);
        assert_eq!(one.ones(), both.ones());
        assert_eq!(one.delta(&both).unwrap().added(), 0);
    }
}

#[test]
fn the_sizes_of_union_and_intersection_are_estimated() {
    for layout in LAYOUTS {
        let one = filter(layout, 100_000, 0..60_000);
        let two = filter(layout, 100_000, 40_000..90_000);
        let union = one.estimated_union(&two).unwrap();
        let intersection = one.estimated_intersection(&two).unwrap();
        assert!((union / 90_000.0 - 1.0).abs() < 0.01, "{union}");
        assert!((intersection / 20_000.0 - 1.0).abs() < 0.05, "{intersection}");
        let far = filter(layout, 100_000, 200_000..210_000);
        assert!(one.estimated_intersection(&far).unwrap() < 600.0);
    }
}

#[test]
fn filters_that_differ_are_refused_with_what_differs() {
    let build = |layout, capacity, hashing| {
        BloomFilter::with_hashing(Sizing::in_layout(layout, capacity, 0.01).unwrap(), hashing).unwrap()
    };
    let murmur = |seed| Hashing::Murmur3 { seed };
    let mut ours = build(Layout::Blocks, 1_000, murmur(1));
    ours.insert(b"key");
    for (other, what) in [
        (build(Layout::Classic, 1_000, murmur(1)), "layout"),
        (build(Layout::Blocks, 2_000, murmur(1)), "number of bits"),
        (build(Layout::Blocks, 1_000, Hashing::Xxh3 { seed: 1 }), "hash"),
        (build(Layout::Blocks, 1_000, murmur(2)), "seed or key"),
    ] {
        let mismatch = AlgebraError::Mismatch { what };
        let refused = Err(mismatch.clone());
        let before = ours.ones();
        assert_eq!(ours.union(&other), refused);
        assert_eq!(ours.estimated_union(&other).map(|_| ()), refused);
        assert_eq!(ours.delta(&other).map(|_| ()), refused);
        let delta = other.delta(&other.clone()).unwrap();
        assert_eq!(ours.apply(&delta), refused);
        assert_eq!(ours.ones(), before);
        assert!(mismatch.to_string().contains(what));
    }
}

#[test]
fn a_delta_brings_a_mirror_up_to_date_and_is_near_the_least_possible_size() {
    for layout in LAYOUTS {
        let older = filter(layout, 200_000, 0..150_000);
        for (new_keys, most_share) in [(150, 0.006), (1_500, 0.04), (15_000, 0.25)] {
            let newer = filter(layout, 200_000, 0..150_000 + new_keys);
            let delta = newer.delta(&older).unwrap();
            let share = delta.encoded_len() as f64 / newer.sizing().memory_bytes() as f64;
            assert!(share < most_share, "{layout:?}, {new_keys} new keys: {share}");
            // The entropy of which of the zero bits became ones.
            let (added, zeros) = (delta.added() as f64, (older.sizing().bits() - older.ones()) as f64);
            let p = added / zeros;
            let least = -(zeros * (p * p.log2() + (1.0 - p) * (1.0 - p).log2())) / 8.0;
            let over = (delta.encoded_len() - 112) as f64 / least;
            assert!(
                (0.98..1.06).contains(&over),
                "{layout:?}, {new_keys} new keys: {over} of the least"
            );

            let mut mirror = older.clone();
            let file = file(&delta);
            let read = Delta::read_from(&mut &*file, file.len() as u64, None).unwrap();
            assert_eq!(read, delta);
            mirror.apply(&read).unwrap();
            assert_eq!(mirror.ones(), newer.ones());
            assert!(
                (0..150_000 + new_keys).all(|n| mirror.contains(n.to_le_bytes()) == newer.contains(n.to_le_bytes()))
            );
            assert_eq!(mirror.apply(&read), Err(AlgebraError::WrongBase), "once is enough");
        }
        assert_eq!(
            older.delta(&filter(layout, 200_000, 0..150_001)).map(|_| ()),
            Err(AlgebraError::NotOlder)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))), ..ProptestConfig::default() })]

    #[test]
    fn any_delta_of_any_two_states_applies(old in 0_u32..400, new in 0_u32..400, classic: bool) {
        let layout = if classic { Layout::Classic } else { Layout::Blocks };
        let mut mirror = filter(layout, 100, 0..old);
        let newer = filter(layout, 100, 0..old + new);
        mirror.apply(&newer.delta(&mirror).unwrap()).unwrap();
        prop_assert_eq!(mirror.ones(), newer.ones());
        prop_assert_eq!(newer.delta(&mirror).unwrap().added(), 0);
    }
}
