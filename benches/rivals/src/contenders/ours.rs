//! The sieve in its variants.

use std::collections::VecDeque;

use sieve::{Accepts, Fifo, Filter, Hashing, Layout, PackedQueue, Packing, SeenSet, Sieve};

use super::{Contender, RATE};
use crate::chunk::Chunk;

const MURMUR3: Hashing = Hashing::Murmur3 { seed: 0 };
/// A seed other than 0: xxh3 has a faster way for that, which a crawler that keeps its seed secret cannot go.
const XXH3: Hashing = Hashing::Xxh3 { seed: 0x5eed };

type Build = fn(u64) -> Box<dyn Contender>;

pub(super) const ALL: [(&str, Build); 7] = [
    ("sieve `push`, murmur3 + `VecDeque<String>`", |n| {
        Box::new(OneByOne(sieve(n, MURMUR3, None, VecDeque::<String>::new())))
    }),
    ("sieve `push_all`, murmur3 + `VecDeque<String>`", |n| {
        Box::new(Batched(sieve(n, MURMUR3, None, VecDeque::<String>::new())))
    }),
    ("sieve `push_all`, murmur3 + packed queue", |n| {
        Box::new(Batched(sieve(n, MURMUR3, None, packed())))
    }),
    ("sieve `push_all`, murmur3, classic layout + packed queue", |n| {
        Box::new(Batched(sieve(n, MURMUR3, Some(Layout::Classic), packed())))
    }),
    ("sieve `push`, xxh3 + `VecDeque<String>`", |n| {
        Box::new(OneByOne(sieve(n, XXH3, None, VecDeque::<String>::new())))
    }),
    ("sieve `push_all`, xxh3 + `VecDeque<String>`", |n| {
        Box::new(Batched(sieve(n, XXH3, None, VecDeque::<String>::new())))
    }),
    ("sieve `push_all`, xxh3 + packed queue", |n| {
        Box::new(Batched(sieve(n, XXH3, None, packed())))
    }),
];

fn packed() -> PackedQueue {
    PackedQueue::new(Packing::Plain)
}

fn sieve<Q: Fifo>(capacity: u64, hashing: Hashing, layout: Option<Layout>, queue: Q) -> Sieve<SeenSet, Q> {
    let mut builder = Sieve::builder()
        .capacity(capacity)
        .false_positive_rate(RATE)
        .hashing(hashing);
    if let Some(layout) = layout {
        builder = builder.layout(layout);
    }
    builder.build_with(queue).expect("the memory is there")
}

struct OneByOne<Q>(Sieve<SeenSet, Q>);

impl<Q: Fifo + for<'a> Accepts<&'a str>> Contender for OneByOne<Q> {
    fn push(&mut self, chunk: &Chunk) -> u64 {
        let before = self.0.len();
        for url in chunk.links() {
            self.0.push(url);
        }
        (self.0.len() - before) as u64
    }

    fn drain(&mut self) -> u64 {
        drain(&mut self.0)
    }

    fn knows(&self, url: &str) -> bool {
        self.0.contains(url)
    }

    fn bits(&self) -> u64 {
        self.0.filter().load().memory_bytes * 8
    }
}

struct Batched<Q>(Sieve<SeenSet, Q>);

impl<Q: Fifo + for<'a> Accepts<&'a str>> Contender for Batched<Q> {
    fn push(&mut self, chunk: &Chunk) -> u64 {
        let before = self.0.len();
        for page in chunk.pages() {
            self.0.push_all(page);
        }
        (self.0.len() - before) as u64
    }

    fn drain(&mut self) -> u64 {
        drain(&mut self.0)
    }

    fn knows(&self, url: &str) -> bool {
        self.0.contains(url)
    }

    fn bits(&self) -> u64 {
        self.0.filter().load().memory_bytes * 8
    }
}

fn drain<Q: Fifo>(sieve: &mut Sieve<SeenSet, Q>) -> u64 {
    let mut popped = 0;
    while let Some(url) = sieve.pop() {
        std::hint::black_box(url);
        popped += 1;
    }
    popped
}
