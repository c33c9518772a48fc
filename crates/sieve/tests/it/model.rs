//! The sieve against the obvious model: a set in front of a queue.

use std::collections::{HashSet, VecDeque};

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use sieve::{BloomFilter, ExactFilter, Filter, Hashing, Layout, SeenSet, Sieve, Sizing};

/// What the sieve is an approximation of.
#[derive(Default)]
struct Model {
    seen: HashSet<String>,
    queue: VecDeque<String>,
}

impl Model {
    fn push(&mut self, key: String) -> bool {
        let new = self.seen.insert(key.clone());
        if new {
            self.queue.push_back(key);
        }
        new
    }
}

#[derive(Debug, Clone)]
enum Step {
    Push(u16),
    PushAll(Vec<u16>),
    Pop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Few distinct keys, so that duplicates are common.
    let key = 0_u16..300;
    let step = prop_oneof![
        3 => key.clone().prop_map(Step::Push),
        1 => prop::collection::vec(key, 0..80).prop_map(Step::PushAll),
        2 => Just(Step::Pop),
    ];
    prop::collection::vec(step, 0..200)
}

fn key(n: u16) -> String {
    format!("https://host{}.example/{n}", n % 7)
}

fn is_the_model<F: Filter>(filter: F, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut model = Model::default();
    let mut sieve: Sieve<F, VecDeque<String>> = Sieve::from_parts(filter, VecDeque::new());
    for step in steps {
        match step {
            Step::Push(n) => prop_assert_eq!(sieve.push(key(*n)), model.push(key(*n))),
            Step::PushAll(all) => {
                let expected = all.iter().filter(|&&n| model.push(key(n))).count();
                prop_assert_eq!(sieve.push_all(all.iter().map(|&n| key(n))), expected);
            }
            Step::Pop => prop_assert_eq!(sieve.pop(), model.queue.pop_front()),
        }
        prop_assert_eq!(sieve.len(), model.queue.len());
    }
    prop_assert!(model.seen.iter().all(|key| sieve.contains(key)));
    prop_assert_eq!(sieve.counters().accepted, model.seen.len() as u64);
    prop_assert!(sieve.saturation().lost <= 0.0);
    prop_assert_eq!(sieve.saturation().capacity, None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))), ..ProptestConfig::default() })]

    #[test]
    fn with_the_exact_filter_a_sieve_is_the_model(steps in steps()) {
        is_the_model(ExactFilter::new(), &steps)?;
    }

    #[test]
    fn with_the_exact_seen_set_a_sieve_is_the_model(steps in steps()) {
        is_the_model(SeenSet::exact(), &steps)?;
    }

    #[test]
    fn with_the_bloom_filter_a_sieve_only_ever_misses_keys(steps in steps(), seed: u64) {
        let mut model = Model::default();
        // Far past its capacity, so that it does miss some.
        let mut sieve = Sieve::builder().capacity(40).seed(seed).build().unwrap();
        let (mut out, mut order) = (Vec::new(), Vec::new());
        for step in steps {
            let pushed = match step {
                Step::Push(n) => vec![n],
                Step::PushAll(all) => all,
                Step::Pop => {
                    out.extend(sieve.pop());
                    continue;
                }
            };
            for n in &pushed {
                if model.push(key(*n)) {
                    order.push(key(*n));
                }
            }
            sieve.push_all(pushed.into_iter().map(key));
        }
        out.extend(sieve.drain());
        // A subsequence of the order of first arrival: nothing made up, nothing twice, nothing out of order.
        let mut arrivals = order.iter();
        for key in &out {
            prop_assert!(arrivals.any(|arrival| arrival == key), "{} came out of turn", key);
        }
    }

    #[test]
    fn batches_and_single_pushes_do_the_same(keys in prop::collection::vec(0_u16..500, 0..300), seed: u64) {
        let build = || Sieve::builder().capacity(100).seed(seed).build().unwrap();
        let (mut single, mut batched) = (build(), build());
        for n in &keys {
            single.push(key(*n));
        }
        batched.push_all(keys.into_iter().map(key));
        prop_assert_eq!(single.counters().seen, batched.counters().seen);
        prop_assert_eq!(single.saturation(), batched.saturation());
        prop_assert!(single.drain().eq(batched.drain()));
    }
}

#[test]
fn a_key_that_was_inserted_is_always_found() {
    for layout in [Layout::Blocks, Layout::Classic] {
        let sizing = Sizing::in_layout(layout, 1000, 0.01).unwrap();
        let mut filter = BloomFilter::with_hashing(sizing, Hashing::default()).unwrap();
        for n in 0_u32..5000 {
            filter.insert(n.to_le_bytes());
        }
        assert!((0_u32..5000).all(|n| filter.contains(n.to_le_bytes())), "{layout:?}");
    }
}

#[test]
fn a_retry_goes_past_the_filter() {
    let mut sieve = Sieve::new(100).unwrap();
    sieve.push("a");
    let item = sieve.pop().unwrap();
    assert!(!sieve.push(item.clone()), "a push would drop it");
    sieve.requeue(item).unwrap();
    assert_eq!(sieve.pop().as_deref(), Some("a"));
    assert_eq!(sieve.counters().accepted, 1);
}

#[test]
fn extend_and_drain_work_like_those_of_a_collection() {
    let mut sieve = Sieve::new(100).unwrap();
    sieve.extend(["a", "b", "a", "c"].map(String::from));
    assert_eq!(sieve.drain().take(2).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(sieve.len(), 1, "what was not taken stays");
}
