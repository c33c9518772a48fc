//! The cost of a queued URL in each kind of queue: bytes, and nanoseconds to push and to pop.
//!
//! `cargo bench -p crawl-sieve --bench queue`; as a test (`cargo test -p crawl-sieve --bench queue`) it runs once with
//! small sizes. All queues run in one process, one after the other, on the same URLs, which are `&str`, as from a parser. "Fill" pushes
//! all, "drain" pops all. "Steady" pushes and pops at a constant length of a tenth, which shows the reuse of memory.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant;

use sieve::{Accepts, Fifo, PackedQueue, Packing};

/// The hosts of a million URLs of a broad crawl.
const HOSTS: usize = 57_684;

fn main() {
    // `cargo bench` says so to what it runs.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let size = if is_bench { 10_000_000 } else { 2_000 };
    row("", "bytes", "fill ns", "drain ns", "steady ns");
    for (order, run) in [("scattered over all hosts", 1), ("in runs of 40 of one page", 40)] {
        let urls = Urls::new(size, run);
        println!(
            "{size} URLs of {:.1} bytes, {order}",
            urls.text.len() as f64 / size as f64
        );
        measure("VecDeque<String>", &urls, VecDeque::new, deque_bytes);
        for packing in [Packing::Plain, Packing::Prefix] {
            let new = || PackedQueue::<String>::new(packing);
            measure(&format!("{packing:?}"), &urls, new, PackedQueue::memory_bytes);
        }
    }
}

fn measure<Q>(name: &str, urls: &Urls, new: impl Fn() -> Q, bytes: impl Fn(&Q) -> usize)
where
    Q: for<'a> Accepts<&'a str> + Fifo<Item = String>,
{
    let per_url = |start: Instant, count: usize| start.elapsed().as_nanos() as f64 / count.max(1) as f64;

    let mut queue = new();
    let start = Instant::now();
    for url in urls.iter() {
        queue.push(url);
    }
    let fill = per_url(start, urls.len());
    let bytes = bytes(&queue) as f64 / urls.len() as f64;
    let start = Instant::now();
    while let Some(url) = queue.pop() {
        black_box(url);
    }
    let drain = per_url(start, urls.len());

    let mut queue = new();
    let length = urls.len() / 10;
    for url in urls.iter().take(length) {
        queue.push(url);
    }
    let start = Instant::now();
    for url in urls.iter().skip(length) {
        queue.push(url);
        black_box(queue.pop());
    }
    let steady = per_url(start, urls.len() - length);

    let cell = |number: f64| format!("{number:.1}");
    row(name, &cell(bytes), &cell(fill), &cell(drain), &cell(steady));
}

fn row(name: &str, bytes: &str, fill: &str, drain: &str, steady: &str) {
    println!("{name:>18} {bytes:>9} {fill:>9} {drain:>9} {steady:>9}");
}

/// As glibc's allocator lays strings out: 8 bytes before each, in steps of 16, 32 at least. The list is not counted
/// beyond its length, though doubling leaves up to half of it unused.
fn deque_bytes(queue: &VecDeque<String>) -> usize {
    let text: usize = queue
        .iter()
        .map(|url| (url.capacity() + 8).next_multiple_of(16).max(32))
        .sum();
    text + queue.len() * size_of::<String>()
}

/// URLs end to end, so that reading them costs little and no allocation.
struct Urls {
    text: String,
    ends: Vec<usize>,
}

impl Urls {
    /// Few large hosts and many small ones, 17 % with a query; each host and section is kept for `run` URLs.
    fn new(size: usize, run: usize) -> Self {
        let mut random = Random(0x853c_49e6_748f_ea9b);
        let mut urls = Self {
            text: String::with_capacity(size * 81),
            ends: Vec::with_capacity(size),
        };
        let (mut host, mut section) = (0, "");
        for n in 0..size {
            if n % run == 0 {
                let hosts = if random.below(100) < 39 { 100 } else { HOSTS };
                host = random.below(hosts);
                section = "guide/reference/articles/2026/"
                    .get(..random.below(30))
                    .unwrap_or_default();
            }
            let page = random.below(1 << 40);
            urls.text += &format!("https://www.host-{host}.example.com/{section}entry-{n}-{page:x}.html");
            if random.below(100) < 17 {
                urls.text += &format!("?id={}&page={n}", random.below(1 << 20));
            }
            urls.ends.push(urls.text.len());
        }
        urls
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let url = &self.text[start..end];
            start = end;
            url
        })
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
