//! A batch against its items, one by one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use sieve::{Filter, OnSaturation, PackedQueue, Packing, Sieve};

const CAPACITY: u64 = 20_000;

fn sieve(policy: OnSaturation) -> Sieve {
    Sieve::builder()
        .capacity(CAPACITY)
        .on_saturation(policy)
        .build()
        .unwrap()
}

/// New keys, keys from long before, and keys that are twice on the same page.
fn pages() -> Vec<Vec<String>> {
    let page = |n: u64| (0..1 + n % 90).map(move |link| key(if link % 3 == 2 { n / 2 } else { 100 * n + link / 2 }));
    (0..1_500).map(|n| page(n).collect()).collect()
}

fn key(n: u64) -> String {
    format!("https://example.com/{n}")
}

#[test]
fn a_batch_meets_the_fate_that_its_items_would_meet_one_by_one() {
    for policy in [OnSaturation::Warn, OnSaturation::Grow, OnSaturation::Refuse] {
        let (mut batched, mut single) = (sieve(policy), sieve(policy));
        for page in pages() {
            let mut outcomes = Vec::new();
            batched.try_push_all(page.clone(), |outcome| outcomes.push(outcome));
            let expected: Vec<_> = page.into_iter().map(|key| single.try_push(key)).collect();
            assert_eq!(outcomes, expected, "{policy:?}");
        }
        assert!(
            batched.saturation().estimated > CAPACITY as f64,
            "the levels were passed"
        );
        assert_eq!(batched.tally(), single.tally());
        assert_eq!(batched.filter().ones(), single.filter().ones());
        let (lost, expected) = (batched.saturation().lost, single.saturation().lost);
        assert!((lost - expected).abs() <= expected * 1e-3, "{lost} is not {expected}");
        assert!(batched.drain().eq(single.drain()), "in the same order");
    }
}

#[test]
fn a_queue_with_a_bound_is_asked_for_every_item_of_a_batch() {
    let queue = || PackedQueue::<String>::with_max_bytes(Packing::Plain, 200_000).unwrap();
    let [mut batched, mut single] = [(), ()].map(|()| Sieve::builder().build_with(queue()).unwrap());
    for page in pages() {
        let page: Vec<&str> = page.iter().map(String::as_str).collect();
        let new = page.iter().filter(|&&key| single.push(key)).count();
        assert_eq!(batched.push_all(page), new);
    }
    assert!(batched.tally().refused > 0);
    assert_eq!(batched.tally(), single.tally());
    assert!(batched.drain().eq(single.drain()));
}
