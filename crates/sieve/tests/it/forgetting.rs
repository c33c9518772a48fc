//! A sieve with removals: what it counts, and what it refuses.

use std::collections::VecDeque;

use sieve::{CountingBloomFilter, OnSaturation, RefusedBy, SelfCheck, Sieve};

const CAPACITY: u64 = 2_000;

fn sieve() -> Sieve<CountingBloomFilter, VecDeque<String>> {
    Sieve::from_parts(CountingBloomFilter::new(CAPACITY, 0.01).unwrap(), VecDeque::new())
}

fn forget_all(sieve: &mut Sieve<CountingBloomFilter, VecDeque<String>>) {
    while let Some(key) = sieve.pop() {
        assert!(sieve.forget(key));
    }
}

#[test]
fn a_sieve_that_refuses_takes_keys_again_when_enough_are_forgotten() {
    let mut sieve = sieve().on_saturation(OnSaturation::Refuse);
    for round in 0..3 {
        let mut taken = 0;
        let refused = loop {
            match sieve.try_push(format!("{round} {taken}")) {
                Ok(_) => taken += 1,
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused.by, RefusedBy::Saturation);
        assert!((1_900..2_100).contains(&taken), "round {round}: {taken} keys");
        forget_all(&mut sieve);
        assert!(sieve.saturation().estimated < 1.0);
    }
    assert_eq!(sieve.counters().refused, 3);
}

#[test]
fn after_removals_the_loss_continues_at_the_lower_rate() {
    let mut sieve = sieve();
    sieve.extend((0..CAPACITY * 3).map(|n| n.to_string()));
    let before = sieve.saturation().lost;
    assert!((550.0..900.0).contains(&before), "about 12 % of 6000: {before}");
    forget_all(&mut sieve);
    sieve.extend((0..CAPACITY / 2).map(|n| format!("again {n}")));
    let more = sieve.saturation().lost - before;
    assert!(
        (0.0..2.0).contains(&more),
        "a filter that is half full loses next to nothing: {more}"
    );
    assert_eq!(sieve.saturation().check, SelfCheck::Unknown);
}
