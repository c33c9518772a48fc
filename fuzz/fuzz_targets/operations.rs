//! Any sequence of operations on a sieve of each filter and queue, against a model: a list of what is marked, and a queue.

#![no_main]

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sieve::{
    BloomFilter, CountingBloomFilter, ExactFilter, Hashing, OnSaturation, PackedQueue, Packing, Refused, RefusedBy,
    RotatingBloomFilter, ScalableBloomFilter, SeenSet, Sieve, Sizing,
};
use sieve_fuzz::keys::{KEYS, LONGEST_SHARING, NOT_LONG};
use sieve_fuzz::logging;
use sieve_fuzz::subject::{GENERATIONS, Subject, ToVisit};

#[derive(Debug, Arbitrary)]
struct Input {
    filter: FilterKind,
    refuses: bool,
    queue: QueueKind,
    operations: Vec<Operation>,
}

#[derive(Debug, Arbitrary)]
enum FilterKind {
    Exact,
    Blocks,
    Classic { bits: u8 },
    Growing,
    Counting { bits: u8 },
    Rotating,
}

#[derive(Debug, Arbitrary)]
enum QueueKind {
    List,
    Packed(Form),
    /// With so many times 8 KiB more than the least bound.
    Bounded(Form, u8),
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Form {
    Plain,
    Prefix,
}

/// What is done. Keys are numbers in [`KEYS`].
#[derive(Debug, Arbitrary)]
enum Operation {
    Push {
        key: u16,
        owned: bool,
    },
    PushAll {
        first: u16,
        count: u8,
    },
    Pop {
        count: u8,
    },
    /// Long ones often: they fill many segments of a packed queue, without the cost of hashing them.
    Requeue {
        key: u16,
        times: u8,
    },
    Contains {
        key: u16,
    },
    Forget {
        key: u16,
    },
    SaveAndResume,
    Unite {
        first: u16,
        count: u8,
    },
    Copy,
    CatchUp,
    Rotate,
}

/// Few keys fill them. Made once, as finding their size takes longer than a whole run; of eight probes, whose rate has the fewest
/// terms.
static GROWING: LazyLock<SeenSet> = LazyLock::new(|| SeenSet::Growing(ScalableBloomFilter::new(4, 0.1).unwrap()));
static ROTATING: LazyLock<RotatingBloomFilter> =
    LazyLock::new(|| RotatingBloomFilter::new(12, 0.01, NonZeroU32::new(GENERATIONS).unwrap()).unwrap());

fuzz_target!(init: logging::format_all(), |input: Input| {
    let seed = Hashing::Murmur3 { seed: 7 };
    match input.filter {
        FilterKind::Exact => with_queue(ExactFilter::new(), &input),
        FilterKind::Blocks => {
            let sizing = Sizing::explicit_blocks(1, 8).unwrap();
            with_queue(BloomFilter::with_hashing(sizing, seed).unwrap(), &input);
        }
        FilterKind::Classic { bits } => {
            let sizing = Sizing::explicit(8 + u64::from(bits), 3).unwrap();
            with_queue(BloomFilter::with_hashing(sizing, Hashing::Xxh3 { seed: 7 }).unwrap(), &input);
        }
        FilterKind::Growing => with_queue(GROWING.clone(), &input),
        FilterKind::Counting { bits } => {
            let sizing = Sizing::explicit(8 + u64::from(bits), 3).unwrap();
            with_queue(CountingBloomFilter::with_hashing(sizing, seed).unwrap(), &input);
        }
        FilterKind::Rotating => with_queue(ROTATING.clone(), &input),
    }
});

fn with_queue<F: Subject>(filter: F, input: &Input) {
    let packing = |form| match form {
        Form::Plain => Packing::Plain,
        Form::Prefix => Packing::Prefix,
    };
    match input.queue {
        QueueKind::List => run(filter, VecDeque::<String>::new(), input),
        QueueKind::Packed(form) => run(filter, PackedQueue::new(packing(form)), input),
        QueueKind::Bounded(form, more) => {
            let least = PackedQueue::<String>::with_max_bytes(packing(form), 0)
                .unwrap_err()
                .least;
            let most = least + usize::from(more) * 8 * 1024;
            run(filter, PackedQueue::with_max_bytes(packing(form), most).unwrap(), input);
        }
    }
}

fn run<F: Subject, Q: ToVisit>(filter: F, queue: Q, input: &Input) {
    let policy = if input.refuses {
        OnSaturation::Refuse
    } else {
        OnSaturation::Warn
    };
    let mut run = Run {
        sieve: Sieve::from_parts(filter, queue).on_saturation(policy),
        policy,
        copy: None,
        marked: vec![None; KEYS.len()],
        waiting: VecDeque::new(),
        accepted: 0,
    };
    for operation in &input.operations {
        run.step(operation);
        run.check();
    }
    run.finish();
}

struct Run<F, Q> {
    sieve: Sieve<F, Q>,
    policy: OnSaturation,
    copy: Option<F>,
    /// The generation in which each key was marked.
    marked: Vec<Option<u64>>,
    waiting: VecDeque<usize>,
    accepted: u64,
}

impl<F: Subject, Q: ToVisit> Run<F, Q> {
    fn step(&mut self, operation: &Operation) {
        match *operation {
            Operation::Push { key, owned } => {
                let (number, key) = pick(key);
                let generation = self.sieve.filter().generation();
                let outcome = if owned {
                    self.sieve
                        .try_push(key.to_owned())
                        .map_err(|refused| same_item(&refused, key))
                } else {
                    self.sieve.try_push(key).map_err(|refused| same_item(&refused, key))
                };
                self.settle(number, generation, outcome);
            }
            Operation::PushAll { first, count } => {
                let generation = self.sieve.filter().generation();
                let mut outcomes = Vec::new();
                let keys = range(first, count).map(|(_, key)| key);
                self.sieve.try_push_all(keys, |outcome| outcomes.push(outcome));
                assert_eq!(outcomes.len(), range(first, count).count());
                for ((number, key), outcome) in range(first, count).zip(outcomes) {
                    self.settle(number, generation, outcome.map_err(|refused| same_item(&refused, key)));
                }
            }
            Operation::Pop { count } => {
                for _ in 0..count {
                    let expected = self.waiting.pop_front();
                    assert!(
                        self.sieve.pop().as_ref() == expected.map(|number| &KEYS[number]),
                        "out of turn"
                    );
                    if expected.is_none() {
                        break;
                    }
                }
            }
            Operation::Requeue { key, times } => {
                let (number, key) = if key & 3 == 0 { pick_long(key >> 2) } else { pick(key) };
                for _ in 0..=times % 16 {
                    match self.sieve.requeue(key) {
                        Ok(()) => self.waiting.push_back(number),
                        Err(refused) => self.check_refusal(number, same_item(&refused, key)),
                    }
                    self.check();
                }
            }
            Operation::Contains { key } => {
                let (number, key) = pick(key);
                let contained = self.sieve.contains(key);
                assert!(contained || !self.is_known(number), "a marked key looks new");
                assert!(
                    !contained || !F::EXACT || self.is_known(number),
                    "an exact filter made up a key"
                );
            }
            Operation::Forget { key } => {
                let (number, key) = pick(key);
                // Only what was accepted may be taken out.
                if self.is_known(number)
                    && let Some(forgotten) = F::forget(&mut self.sieve, key)
                {
                    assert!(forgotten, "an accepted key was not there");
                    self.marked[number] = None;
                }
            }
            Operation::SaveAndResume => {
                F::save_and_resume(&mut self.sieve, self.policy);
            }
            Operation::Unite { first, count } => {
                let mut keys = range(first, count).map(|(_, key)| key);
                if self.change_filter(|filter| filter.unite(&mut keys)) {
                    range(first, count).for_each(|(number, _)| self.marked[number] = Some(0));
                }
            }
            Operation::Copy => self.copy = Some(self.sieve.filter().clone()),
            Operation::CatchUp => {
                if let Some(copy) = &mut self.copy {
                    self.sieve.filter().catch_up(copy);
                }
            }
            Operation::Rotate => {
                self.change_filter(F::rotate);
            }
        }
    }

    /// Compares what became of an offered key with the model.
    fn settle(&mut self, number: usize, generation: u64, outcome: Result<bool, RefusedBy<()>>) {
        let known = self.is_known(number);
        match outcome {
            Ok(true) => {
                assert!(!known, "a key was accepted twice");
                self.marked[number] = Some(generation);
                self.waiting.push_back(number);
                self.accepted += 1;
            }
            Ok(false) => assert!(known || !F::EXACT, "an exact filter made up a key"),
            Err(by) => {
                assert!(!known, "a seen key was refused instead of dropped");
                self.check_refusal(number, by);
            }
        }
    }

    fn check_refusal(&self, number: usize, by: RefusedBy<()>) {
        if by == RefusedBy::Saturation {
            assert!(self.policy == OnSaturation::Refuse && !F::EXACT);
            return;
        }
        assert!(self.sieve.queue().bound().is_some(), "a queue without a bound was full");
        assert!(
            !self.waiting.is_empty() || KEYS[number].len() > LONGEST_SHARING,
            "an empty queue was full"
        );
    }

    fn is_known(&self, number: usize) -> bool {
        self.marked[number].is_some_and(|generation| self.sieve.filter().remembers(generation))
    }

    /// Has the filter changed behind the sieve's back: a sieve never does so, whoever saves and loads may.
    fn change_filter(&mut self, change: impl FnOnce(&mut F) -> bool) -> bool {
        let mut filter = self.sieve.filter().clone();
        let changed = change(&mut filter);
        if changed {
            let queue = std::mem::take(self.sieve.queue_mut());
            self.sieve = Sieve::from_parts(filter, queue).on_saturation(self.policy);
            self.accepted = 0;
        }
        changed
    }

    fn check(&self) {
        assert_eq!(self.sieve.len(), self.waiting.len());
        assert_eq!(self.sieve.is_empty(), self.waiting.is_empty());
        assert_eq!(self.sieve.counters().accepted, self.accepted);
        if let Some((most, held)) = self.sieve.queue().bound() {
            assert!(held <= most, "{held} bytes, {most} allowed");
        }
    }

    fn finish(mut self) {
        for (number, key) in KEYS.iter().enumerate() {
            if self.is_known(number) {
                assert!(self.sieve.contains(key), "a marked key looks new");
            }
        }
        assert!(self.sieve.saturation().estimated.is_finite());
        assert!(
            self.sieve
                .drain()
                .eq(self.waiting.iter().map(|&number| KEYS[number].clone()))
        );
        self.waiting.clear();
        self.check();
    }
}

fn pick(number: u16) -> (usize, &'static str) {
    let number = usize::from(number) % KEYS.len();
    (number, &KEYS[number])
}

fn pick_long(number: u16) -> (usize, &'static str) {
    let number = NOT_LONG + usize::from(number) % (KEYS.len() - NOT_LONG);
    (number, &KEYS[number])
}

/// Up to 79 keys, which is more than two batches, none of them long.
fn range(first: u16, count: u8) -> impl Iterator<Item = (usize, &'static str)> {
    let numbers = (0..u16::from(count % 80)).map(move |more| usize::from(first.wrapping_add(more)) % NOT_LONG);
    numbers.map(|number| (number, KEYS[number].as_str()))
}

/// Who refused it; which words the queue has for that is not looked at.
fn same_item<T: AsRef<str>, R>(refused: &Refused<T, R>, key: &str) -> RefusedBy<()> {
    assert!(refused.item.as_ref() == key, "another item was handed back");
    match refused.by {
        RefusedBy::Queue(_) => RefusedBy::Queue(()),
        RefusedBy::Saturation => RefusedBy::Saturation,
    }
}
