//! Batches against single pushes; and batches with a panic or refusals.

use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sieve::{
    Accepts, BloomFilter, Filter, Hashing, Layout, OnSaturation, PackedQueue, Packing, Queue, QueueFull, Refused,
    RefusedBy, ScalableBloomFilter, SeenSet, Sieve, Sizing,
};

const CAPACITY: u64 = 20_000;

fn sieve(policy: OnSaturation) -> Sieve {
    Sieve::builder()
        .capacity(CAPACITY)
        .on_saturation(policy)
        .build()
        .unwrap()
}

/// The items that were accepted, seen and refused.
fn counted<Q: Queue>(sieve: &Sieve<impl Filter, Q>) -> (u64, u64, u64) {
    let counters = sieve.counters();
    (counters.accepted, counters.seen, counters.refused)
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
fn a_batch_has_the_results_of_single_pushes() {
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
        assert_eq!(counted(&batched), counted(&single));
        assert_eq!(batched.filter().ones(), single.filter().ones());
        let (lost, expected) = (batched.saturation().lost, single.saturation().lost);
        assert!((lost - expected).abs() <= expected * 1e-3, "{lost} is not {expected}");
        assert!(batched.drain().eq(single.drain()), "in the same order");
    }
}

/// Marks the same keys one by one and in batches, and compares what was new.
#[track_caller]
fn batches_do_the_same<F: Filter + Clone>(filter: &F, what: &str) {
    let (mut batched, mut single) = (filter.clone(), filter.clone());
    for page in pages() {
        let keys: Vec<&[u8]> = page.iter().map(String::as_bytes).collect();
        let mut left = keys.iter().copied();
        let room = keys.len() / 2;
        let taken = batched.digest_batch(left.by_ref(), &mut vec![F::Digest::default(); room]);
        assert_eq!(
            (taken, left.len()),
            (room, keys.len() - room),
            "{what}: no key is taken without room"
        );
        let mut digests = vec![F::Digest::default(); keys.len()];
        assert_eq!(batched.digest_batch(keys.iter().copied(), &mut digests), keys.len());
        let mut is_new = vec![false; keys.len()];
        batched.insert_batch(keys.iter().copied(), &digests, &mut is_new);
        let expected: Vec<bool> = keys.iter().map(|key| single.insert(key)).collect();
        assert_eq!(is_new, expected, "{what}");
    }
    assert!(single.ones() > 0);
    assert_eq!(batched.ones(), single.ones(), "{what}");
}

#[test]
fn every_filter_with_a_road_of_its_own_marks_in_a_batch_what_it_marks_one_by_one() {
    let hashes = [
        Hashing::Murmur3 { seed: 7 },
        Hashing::Xxh3 { seed: 7 },
        Hashing::Hardened { key: [7; 16] },
    ];
    for hashing in hashes {
        // With 8, with fewer and with more probes, and past the capacity.
        for (rate, is_usual) in [(0.01, true), (0.2, false), (0.000_1, false)] {
            for layout in [Layout::Blocks, Layout::Classic] {
                let sizing = Sizing::in_layout(layout, CAPACITY, rate).unwrap();
                if layout == Layout::Blocks {
                    assert_eq!(sizing.hashes() == 8, is_usual, "both roads");
                }
                let what = format!("{layout:?} {} {}", hashing.name(), sizing.hashes());
                batches_do_the_same(&BloomFilter::with_hashing(sizing, hashing).unwrap(), &what);
            }
        }
        batches_do_the_same(
            &SeenSet::Growing(ScalableBloomFilter::with_hashing(CAPACITY / 10, 0.01, hashing).unwrap()),
            "growing",
        );
    }
    batches_do_the_same(&SeenSet::exact(), "exact");
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
    assert!(batched.counters().refused > 0);
    assert_eq!(counted(&batched), counted(&single));
    assert!(batched.drain().eq(single.drain()));
}

const KEYS: u64 = 100;

fn keys() -> impl Iterator<Item = String> {
    (0..KEYS).map(|n| n.to_string())
}

/// Invariant: marked seen ⇒ queued. What is neither can be offered again.
#[track_caller]
fn nothing_is_lost(mut sieve: Sieve) {
    let accepted = sieve.counters().accepted;
    assert_eq!(accepted, sieve.len() as u64);
    let queued: HashSet<String> = sieve.drain().collect();
    for key in keys() {
        assert_eq!(sieve.contains(&key), queued.contains(&key), "{key}");
    }
    let fresh = sieve.push_all(keys());
    assert_eq!(fresh as u64 + accepted, KEYS);
}

#[test]
fn a_panic_of_the_closure_marks_nothing_that_is_not_queued() {
    for at in [0, 1, 30, 31, 32, 33, 63, 64, 99] {
        let mut sieve = Sieve::new(10_000).unwrap();
        let mut reported = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            sieve.try_push_all(keys(), |_| {
                assert!(reported != at, "the closure has had enough");
                reported += 1;
            });
        }));
        assert!(outcome.is_err());
        assert!(sieve.counters().accepted > at, "the last reported key is queued");
        nothing_is_lost(sieve);
    }
}

#[test]
fn a_panic_of_the_iterator_marks_nothing_that_is_not_queued() {
    for at in [0, 1, 31, 32, 33, 64, 99] {
        let mut sieve = Sieve::new(10_000).unwrap();
        let items = keys().inspect(|key| assert!(*key != at.to_string(), "the iterator has had enough"));
        let outcome = catch_unwind(AssertUnwindSafe(|| sieve.push_all(items)));
        assert!(outcome.is_err());
        assert_eq!(sieve.counters().accepted, at / 32 * 32, "whole batches only");
        nothing_is_lost(sieve);
    }
}

#[test]
fn each_item_of_a_batch_has_one_result_and_refused_ones_are_returned_in_order() {
    let mut sieve = Sieve::builder()
        .capacity(50)
        .on_saturation(OnSaturation::Refuse)
        .build()
        .unwrap();
    let (mut new, mut seen, mut refused) = (0, 0, Vec::new());
    // Each key twice: after the first refusal, keys that are in are still taken for seen.
    let twice = keys().flat_map(|key| [key.clone(), key]).chain(keys());
    sieve.try_push_all(twice, |outcome| match outcome {
        Ok(true) => new += 1,
        Ok(false) => seen += 1,
        Err(Refused { item, .. }) => refused.push(item),
    });
    assert_eq!(counted(&sieve), (new, seen, refused.len() as u64));
    assert_eq!(new + seen + refused.len() as u64, KEYS * 3);
    assert_eq!(sieve.len() as u64, new);
    let first = refused[0].parse::<u64>().unwrap();
    assert!((45..=55).contains(&first), "{first}");
    let order: Vec<u64> = refused.iter().take(80).map(|key| key.parse().unwrap()).collect();
    assert!(order.is_sorted());
    assert!(
        refused.iter().all(|key| !sieve.contains(key)),
        "what is refused is not marked"
    );
}

#[test]
fn a_retry_that_a_full_queue_refuses_is_returned() {
    let queue: PackedQueue = PackedQueue::with_max_bytes(Packing::Plain, 400_000).unwrap();
    let mut sieve = Sieve::builder().build_with(queue).unwrap();
    let mut n = 0_u64;
    let last = loop {
        n += 1;
        if let Err(refused) = sieve.try_push(format!("{n:01000}")) {
            assert_eq!(refused.by, RefusedBy::Queue(QueueFull));
            break refused.item;
        }
    };
    let (waiting, before) = (sieve.len(), counted(&sieve));
    let refused = sieve.requeue(last.clone()).unwrap_err();
    assert_eq!((refused.item, refused.by), (last, RefusedBy::Queue(QueueFull)));
    assert_eq!((sieve.len(), counted(&sieve)), (waiting, before));
    let first = sieve.drain().next().unwrap();
    while sieve.pop().is_some() {}
    assert_eq!(sieve.requeue(first), Ok(()));
    assert_eq!(sieve.len(), 1);
}

/// A queue that has its own reasons, and writes down how often it is asked.
#[derive(Default)]
struct Choosy {
    items: Vec<String>,
    room: usize,
    asked: Cell<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Because {
    TooLong,
    NoRoom,
}

impl Queue for Choosy {
    fn len(&self) -> usize {
        self.items.len()
    }
}

impl Accepts<String> for Choosy {
    type Refusal = Because;

    fn admit(&self, item: &String) -> Result<(), Because> {
        self.asked.set(self.asked.get() + 1);
        if item.len() > 10 {
            Err(Because::TooLong)
        } else if self.items.len() == self.room {
            Err(Because::NoRoom)
        } else {
            Ok(())
        }
    }

    fn push(&mut self, item: String) {
        self.items.push(item);
    }
}

#[test]
fn a_queue_names_its_own_refusal_and_is_asked_once_for_each_item() {
    let choosy = Choosy {
        room: 40,
        ..Choosy::default()
    };
    let mut sieve = Sieve::builder().build_with(choosy).unwrap();
    let long = "x".repeat(11);
    let items = [long.clone()].into_iter().chain(keys());
    let mut refusals = Vec::new();
    sieve.try_push_all(items, |outcome| {
        refusals.extend(outcome.err().map(|refused| (refused.item, refused.by)));
    });
    let expected: Vec<_> = [(long, RefusedBy::Queue(Because::TooLong))]
        .into_iter()
        .chain(keys().skip(40).map(|key| (key, RefusedBy::Queue(Because::NoRoom))))
        .collect();
    assert_eq!(refusals, expected);
    assert_eq!(sieve.queue().asked.get(), 101);
}

/// Says of a whole batch that it will fit; panics if it is asked of a single item while it could have said so.
struct Roomy {
    items: Vec<String>,
    room: usize,
}

impl Queue for Roomy {
    fn len(&self) -> usize {
        self.items.len()
    }
}

impl Accepts<String> for Roomy {
    type Refusal = Because;

    fn admit(&self, _item: &String) -> Result<(), Because> {
        assert!(!self.admits_next(32), "it was asked of one item in a batch that fits");
        (self.items.len() < self.room).then_some(()).ok_or(Because::NoRoom)
    }

    fn push(&mut self, item: String) {
        assert!(self.items.len() < self.room, "more than it admitted");
        self.items.push(item);
    }

    fn admits_next(&self, count: usize) -> bool {
        self.items.len() + count <= self.room
    }
}

#[test]
fn a_queue_that_has_room_for_a_batch_is_not_asked_one_by_one() {
    for room in [0, 1, 31, 32, 33, 63, 64, 65, 95, 96, 97, 100, 200] {
        let items = Vec::new();
        // Large enough that no line is due, which would be looked for after each item.
        let mut sieve = Sieve::builder().build_with(Roomy { items, room }).unwrap();
        let new = sieve.push_all(keys());
        assert_eq!(new, room.min(100));
        assert_eq!(sieve.counters().refused, 100 - new as u64);
        assert!(sieve.queue().items.iter().cloned().eq(keys().take(new)), "in order");
    }
}
