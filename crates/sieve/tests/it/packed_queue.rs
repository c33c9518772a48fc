//! The packed queue against a `VecDeque`, at its bounds, and at its promised size.

use std::collections::VecDeque;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use sieve::{Accepts, BoundTooSmall, Fifo, PackedQueue, Packing, Queue, QueueFull, RefusedBy, Sieve};

const KIB: usize = 1024;

/// The longest key that shares a segment with others.
const MAX_SHORT: usize = 65_468;

const PACKINGS: [Packing; 2] = [Packing::Plain, Packing::Prefix];

#[derive(Debug, Clone)]
enum Step {
    Push(String),
    PushUrls(usize),
    Pop(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = prop_oneof![
        4 => "\\PC{0,40}",
        // Around the 255 bytes that can be shared, and around the size of a segment, also in the middle of an "é".
        2 => (200_usize..300, 0_usize..4).prop_map(|(shared, rest)| "é".repeat(shared) + &"z".repeat(rest)),
        1 => (MAX_SHORT - 3..MAX_SHORT + 70).prop_map(|len| "x".repeat(len)),
        1 => (0..200 * KIB).prop_map(|len| noise(len as u64, len)),
    ];
    let step = prop_oneof![
        5 => key.prop_map(Step::Push),
        2 => (0..2_500_usize).prop_map(Step::PushUrls),
        3 => (0..3_000_usize).prop_map(Step::Pop),
    ];
    prop::collection::vec(step, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))), ..ProptestConfig::default() })]

    #[test]
    fn without_a_bound_every_packing_is_a_queue(steps in steps()) {
        for packing in PACKINGS {
            follow(PackedQueue::new(packing), &steps)?;
        }
    }

    #[test]
    fn within_a_bound_every_packing_is_a_queue_and_keeps_the_bound(steps in steps(), more in 0..600 * KIB) {
        for packing in PACKINGS {
            follow(PackedQueue::with_max_bytes(packing, least(packing) + more).unwrap(), &steps)?;
        }
    }

    #[test]
    fn any_bytes_come_out_as_they_went_in(keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 0..400)) {
        for packing in PACKINGS {
            let mut queue: PackedQueue<Vec<u8>> = PackedQueue::new(packing);
            for key in &keys {
                // Each twice, so that all of it is shared.
                queue.push(key.as_slice());
                queue.push(key.clone());
            }
            for key in &keys {
                prop_assert_eq!(queue.pop(), Some(key.clone()));
                prop_assert_eq!(queue.pop(), Some(key.clone()));
            }
            prop_assert_eq!(queue.pop(), None);
        }
    }
}

/// Takes the steps with a queue and with a `VecDeque` side by side, then empties both.
fn follow(mut queue: PackedQueue, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut model: VecDeque<String> = VecDeque::new();
    let mut urls = Urls::default();
    let everything = [Step::Pop(usize::MAX)];
    for step in steps.iter().chain(&everything) {
        match step {
            Step::Push(key) => offer(&mut queue, &mut model, key.clone()),
            Step::PushUrls(count) => (0..*count).for_each(|_| offer(&mut queue, &mut model, urls.next())),
            Step::Pop(count) => {
                for _ in 0..(*count).min(model.len() + 1) {
                    let popped = queue.pop();
                    prop_assert_eq!(&popped, &model.pop_front());
                    prop_assert!(popped.is_none_or(|key| key.capacity() == key.len()));
                }
            }
        }
        prop_assert_eq!(queue.len(), model.len());
        prop_assert!(queue.memory_bytes() <= queue.max_bytes().unwrap_or(usize::MAX));
    }
    prop_assert!(
        queue.admit(&"x".repeat(MAX_SHORT).as_str()).is_ok(),
        "an empty queue is full"
    );
    Ok(())
}

fn offer(queue: &mut PackedQueue, model: &mut VecDeque<String>, key: String) {
    if queue.admit(&key).is_ok() {
        queue.push(key.as_str());
        model.push_back(key);
    }
}

#[test]
fn keys_of_ten_megabytes_and_empty_keys_keep_their_order() {
    for packing in PACKINGS {
        let lengths = [0, 10_000_000, 0, 1, MAX_SHORT, MAX_SHORT + 1, 70_000, 10_000_000, 5, 0];
        let mut queue = PackedQueue::<String>::new(packing);
        for round in 0..3 {
            for len in lengths {
                queue.push("k".repeat(len));
                queue.push("k".repeat(len).as_str());
            }
            for len in lengths {
                for _ in 0..2 {
                    let key = queue.pop().unwrap();
                    assert_eq!((key.len(), key.capacity()), (len, len), "{packing:?}, round {round}");
                    assert!(key.bytes().all(|byte| byte == b'k'));
                }
            }
            assert_eq!(queue.pop(), None);
        }
        assert!(queue.memory_bytes() < 500 * KIB, "long keys are not kept: {queue:?}");
    }
}

#[test]
fn a_prefix_is_shared_even_if_it_ends_within_a_character() {
    for packing in PACKINGS {
        let mut queue = PackedQueue::<String>::new(packing);
        // U+00E9 and U+00E8, U+20AC and U+20AD differ in their last byte only.
        let keys = ["caf\u{e9}", "caf\u{e8}", "\u{20ac}", "\u{20ad}", "\u{20ad}\u{20ad}"];
        for key in keys {
            queue.push(key);
        }
        for key in keys {
            assert_eq!(queue.pop().as_deref(), Some(key));
        }
    }
}

#[test]
fn memory_does_not_grow_while_the_length_stays_the_same() {
    for packing in PACKINGS {
        for length in [1, 700, 20_000] {
            let mut queue = PackedQueue::<String>::new(packing);
            let mut urls = Urls::default();
            (0..length).for_each(|_| queue.push(urls.next()));
            let mut turn = |queue: &mut PackedQueue| {
                queue.push(urls.next());
                queue.pop().unwrap();
                queue.memory_bytes()
            };
            let first = (0..30_000).map(|_| turn(&mut queue)).max();
            let later = (0..150_000).map(|_| turn(&mut queue)).max();
            // One segment more or less may be full.
            let slack = if length < 20_000 { 0 } else { 66 * KIB };
            assert!(
                later <= first.map(|bytes| bytes + slack),
                "{packing:?}, {length}: {first:?}, {later:?}"
            );
        }
    }
}

#[test]
fn an_empty_queue_frees_its_memory() {
    for packing in PACKINGS {
        let mut queue = PackedQueue::<String>::new(packing);
        let mut urls = Urls::default();
        (0..200_000).for_each(|_| queue.push(urls.next()));
        let full = queue.memory_bytes();
        while queue.pop().is_some() {}
        // The head, the tail, a spare one.
        assert!(queue.memory_bytes() < 195 * KIB, "{queue:?}");
        assert!(full > 10 * queue.memory_bytes(), "{full} before, {queue:?}");
    }
}

#[test]
fn urls_take_the_promised_bytes() {
    // The packing, its bytes per URL when hosts alternate, and in runs of 40 of one page. The text itself is 79 bytes.
    let promised = [("Plain", 80.6, 80.8), ("Prefix", 64.4, 24.0)];
    for packing in PACKINGS {
        let name = format!("{packing:?}");
        let (_, scattered, in_runs) = promised.into_iter().find(|row| row.0 == name).unwrap();
        for (run, promised) in [(1, scattered), (40, in_runs)] {
            let mut queue = PackedQueue::<String>::new(packing);
            let mut urls = Urls { run, ..Urls::default() };
            (0..300_000).for_each(|_| queue.push(urls.next()));
            let per_url = queue.memory_bytes() as f64 / 300_000.0;
            assert!(
                (promised * 0.97..promised * 1.03).contains(&per_url),
                "{packing:?}, runs of {run}: {per_url}, promised {promised}"
            );
        }
    }
}

#[test]
fn a_bound_is_used_and_not_exceeded() {
    for packing in PACKINGS {
        let bound = 4 << 20;
        let mut queue: PackedQueue = PackedQueue::with_max_bytes(packing, bound).unwrap();
        let mut urls = Urls::default();
        for round in 0..4 {
            let refused = loop {
                let url = urls.next();
                if queue.admit(&url).is_err() {
                    break url;
                }
                queue.push(url);
                assert!(queue.memory_bytes() <= bound);
            };
            let used = queue.memory_bytes();
            assert!(
                used > bound - 140 * KIB,
                "{packing:?}, round {round}: {used} of {bound}"
            );
            let len = queue.len();
            assert!(queue.admit(&refused).is_err(), "asking changes nothing");
            assert!((0..len / 2).all(|_| queue.pop().is_some()));
            assert!(queue.admit(&refused).is_ok(), "{packing:?}: half of it is free");
        }
    }
}

#[test]
fn at_the_smallest_bound_two_segments_take_turns() {
    let mut queue: PackedQueue = PackedQueue::with_max_bytes(Packing::Plain, least(Packing::Plain)).unwrap();
    let key = "x".repeat(30_000);
    (0..2).for_each(|_| queue.push(key.as_str()));
    for _ in 0..10 {
        // The tail becomes the head, two keys are written behind it, and then it must be read to its end.
        assert!(queue.pop().is_some());
        while queue.admit(&key).is_ok() {
            queue.push(key.as_str());
        }
        assert_eq!(queue.len(), 3);
        assert!(queue.pop().is_some());
        assert!(queue.admit(&key).is_ok());
    }
}

#[test]
fn a_long_key_needs_room_of_its_own_and_may_take_that_of_a_spare_segment() {
    for packing in PACKINGS {
        let bound = 1 << 20;
        let mut queue: PackedQueue = PackedQueue::with_max_bytes(packing, bound).unwrap();
        assert!(queue.admit(&"x".repeat(bound)).is_err());
        let mut urls = Urls::default();
        while queue.admit(&urls.next()).is_ok() {
            queue.push(urls.next());
        }
        assert!(queue.admit(&"x".repeat(100 * KIB)).is_err());
        while queue.pop().is_some() {}
        let long = "x".repeat(700 * KIB);
        assert!(queue.admit(&long).is_ok(), "{queue:?}");
        queue.push(long.as_str());
        assert!(queue.memory_bytes() <= bound, "{queue:?}");
        assert_eq!(queue.pop(), Some(long));
    }
}

#[test]
fn a_bound_that_is_too_small_is_an_error_that_names_the_least() {
    for packing in PACKINGS {
        let least = least(packing);
        assert!((128 * KIB..132 * KIB).contains(&least), "{least}");
        let error = PackedQueue::<String>::with_max_bytes(packing, least - 1).unwrap_err();
        let max_bytes = least - 1;
        assert_eq!(error, BoundTooSmall { max_bytes, least });
        assert!(error.to_string().contains(&format!("at least {least}")));
        assert!(PackedQueue::<String>::with_max_bytes(packing, least).is_ok());
    }
}

#[test]
fn an_item_that_the_queue_refuses_is_not_marked() {
    let queue: PackedQueue = PackedQueue::with_max_bytes(Packing::Prefix, 200 * KIB).unwrap();
    let mut sieve = Sieve::builder().capacity(100_000).build_with(queue).unwrap();
    let mut urls = Urls::default();
    let refused = loop {
        if let Err(refused) = sieve.try_push(urls.next()) {
            break refused;
        }
    };
    assert_eq!(refused.by, RefusedBy::Queue(QueueFull));
    assert!(sieve.len() > 1000);
    while sieve.pop().is_some() {}
    assert_eq!(sieve.try_push(refused.item), Ok(true));
}

#[test]
fn a_clone_goes_its_own_way() {
    for packing in PACKINGS {
        let mut queue = PackedQueue::<String>::new(packing);
        let mut urls = Urls::default();
        (0..5_000).for_each(|_| queue.push(urls.next()));
        queue.push("x".repeat(100 * KIB));
        (0..1_000).for_each(|_| drop(queue.pop()));
        let mut clone = queue.clone();
        clone.push("only here");
        (0..4_000).for_each(|_| assert_eq!(clone.pop(), queue.pop()));
        assert_eq!(clone.pop().map(|key| key.len()), Some(100 * KIB));
        assert_eq!(clone.pop().as_deref(), Some("only here"));
        assert_eq!((clone.len(), queue.len()), (0, 1));
        for url in std::iter::repeat_with(|| urls.next()).take(10_000) {
            clone.push(url.as_str());
            queue.push(url);
        }
        let apart = clone.memory_bytes().abs_diff(queue.memory_bytes());
        assert!(apart < 300 * KIB, "{clone:?} is kept otherwise than {queue:?}");
    }
}

#[test]
fn what_it_says_of_itself_is_short() {
    let mut queue: PackedQueue = PackedQueue::default();
    queue.push("a");
    let shown = format!("{queue:?}");
    assert!(
        shown.starts_with("PackedQueue { packing: Prefix, len: 1, memory_bytes: 66"),
        "{shown}"
    );
    assert!(shown.len() < 100, "{shown}");
}

#[test]
fn it_can_be_sent_to_another_thread() {
    fn send(_: impl Send + Sync) {}
    send(PackedQueue::<String>::default());
    send(PackedQueue::<Vec<u8>>::default());
}

/// The smallest bound, as the error names it.
fn least(packing: Packing) -> usize {
    PackedQueue::<String>::with_max_bytes(packing, 0).unwrap_err().least
}

/// Letters without a pattern.
fn noise(seed: u64, len: usize) -> String {
    let mut random = Random(seed | 1);
    (0..len).map(|_| char::from(b'!' + random.below(90) as u8)).collect()
}

/// URLs with few large hosts and many small ones; each host is kept for `run` URLs.
struct Urls {
    random: Random,
    run: usize,
    made: usize,
    host: usize,
    section: &'static str,
}

impl Default for Urls {
    fn default() -> Self {
        Self {
            random: Random(0x853c_49e6_748f_ea9b),
            run: 1,
            made: 0,
            host: 0,
            section: "",
        }
    }
}

impl Urls {
    fn next(&mut self) -> String {
        if self.made.is_multiple_of(self.run) {
            let hosts = if self.random.below(100) < 39 { 100 } else { 57_684 };
            self.host = self.random.below(hosts);
            self.section = "guide/reference/articles/2026/"
                .get(..self.random.below(30))
                .unwrap_or_default();
        }
        self.made += 1;
        let (host, section, n) = (self.host, self.section, self.made);
        let page = self.random.below(1 << 40);
        let query = if self.random.below(100) < 17 {
            format!("?id={}&page={n}", self.random.below(1 << 20))
        } else {
            String::new()
        };
        format!("https://www.host-{host}.example.com/{section}entry-{n}-{page:x}.html{query}")
    }
}

/// xorshift64, G. Marsaglia, 2003: reproducible everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
