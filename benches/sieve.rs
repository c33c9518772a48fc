//! The cost per URL of deduplicating and queueing: the sieve, a set with a queue, and the design of the source article.
//!
//! `cargo bench -p crawl-sieve`; as a test (`cargo test -p crawl-sieve --bench sieve`) it runs once with small sizes. All contenders of a row run in
//! one process, one after the other, on the same prepared URLs. Compare ratios within a row.

use std::collections::{HashSet, VecDeque};
use std::hint::black_box;
use std::time::Instant;

use sieve::{OnSaturation, Sieve};

fn main() {
    // `cargo bench` says so to what it runs.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let sizes: &[usize] = if is_bench {
        &[100_000, 1_000_000, 10_000_000]
    } else {
        &[2_000]
    };
    println!("push, ns per URL (in brackets: times as fast as the set); pop, ns per URL");
    println!(
        "{:>10} {:>10}  {:>16} {:>16} {:>16} {:>16}",
        "URLs", "duplicates", "set + queue", "article", "sieve", "push_all"
    );
    for &size in sizes {
        for percent in [0, 50, 90] {
            row(size, percent);
        }
    }
    println!("\ngrown 100 times: push of new URLs, ns, and bits per key; beside it a sieve of the whole capacity");
    for &size in sizes {
        grown_row(size);
    }
}

/// How many times its first capacity the filter of a grown sieve holds at the end.
const GROWN: usize = 100;

/// Pushes new URLs into a sieve whose filter grows from a hundredth of them, and into one that has room for all.
fn grown_row(size: usize) {
    let urls = urls(size, 0);
    let push = |sieve: &mut Sieve, url| sieve.push(url);
    let growing = || {
        let builder = Sieve::builder().capacity((size / GROWN) as u64);
        match builder.on_saturation(OnSaturation::Grow).build() {
            Ok(sieve) => sieve,
            Err(error) => panic!("{error}"),
        }
    };
    let (fresh, _) = time(&urls, new_sieve(size as u64), push, Sieve::pop);
    let (grown, _) = time(&urls, growing(), push, Sieve::pop);
    let (fresh_batches, _) = time_batches(&urls, new_sieve(size as u64));
    let (grown_batches, _) = time_batches(&urls, growing());
    let mut full: Sieve = growing();
    full.extend(urls);
    let seen = full.saturation();
    println!(
        "{size:>10}  push {fresh:.0}, grown {grown:.0} ({:.2}x); push_all {fresh_batches:.0}, grown {grown_batches:.0} ({:.2}x); {} layers, {:.1} bits per key, rate {:.4}",
        grown / fresh,
        grown_batches / fresh_batches,
        seen.layers,
        seen.bits as f64 / size as f64,
        seen.rate
    );
}

fn row(size: usize, percent: usize) {
    let urls = urls(size, percent);
    let distinct = (size * (100 - percent) / 100).max(1) as u64;
    let set = time(&urls, SetAndQueue::default(), SetAndQueue::push, SetAndQueue::pop);
    let article = time(&urls, Article::new(distinct, 0.01), Article::push, Article::pop);
    let single = time(&urls, new_sieve(distinct), |sieve, url| sieve.push(url), Sieve::pop);
    let batched = time_batches(&urls, new_sieve(distinct));
    let cell = |(push, pop): (f64, f64)| format!("{push:.0} ({:.1}x) {pop:.0}", set.0 / push);
    println!(
        "{size:>10} {percent:>8} %  {:>16} {:>16} {:>16} {:>16}",
        cell(set),
        cell(article),
        cell(single),
        cell(batched)
    );
}

fn new_sieve(capacity: u64) -> Sieve {
    match Sieve::new(capacity) {
        Ok(sieve) => sieve,
        Err(error) => panic!("{error}"),
    }
}

/// Returns nanoseconds per push and per pop. Making the `String` to push is part of neither.
fn time<T>(
    urls: &[String],
    mut contender: T,
    push: impl Fn(&mut T, String) -> bool,
    pop: impl Fn(&mut T) -> Option<String>,
) -> (f64, f64) {
    let owned = urls.to_vec();
    let start = Instant::now();
    for url in owned {
        black_box(push(&mut contender, url));
    }
    let pushed = start.elapsed();
    (
        pushed.as_nanos() as f64 / urls.len() as f64,
        drain(|| pop(&mut contender)),
    )
}

fn time_batches(urls: &[String], mut sieve: Sieve) -> (f64, f64) {
    let mut pages: Vec<Vec<String>> = urls.chunks(50).map(<[String]>::to_vec).collect();
    let start = Instant::now();
    for page in pages.drain(..) {
        black_box(sieve.push_all(page));
    }
    let pushed = start.elapsed();
    (pushed.as_nanos() as f64 / urls.len() as f64, drain(|| sieve.pop()))
}

fn drain(mut pop: impl FnMut() -> Option<String>) -> f64 {
    let start = Instant::now();
    let mut popped = 0_u64;
    while let Some(url) = pop() {
        black_box(url);
        popped += 1;
    }
    start.elapsed().as_nanos() as f64 / popped.max(1) as f64
}

/// URLs with few large hosts and many small ones, about 80 bytes each; duplicates are repeats of earlier ones.
fn urls(size: usize, percent: usize) -> Vec<String> {
    let mut random = Random(0x853c_49e6_748f_ea9b);
    let mut urls: Vec<String> = Vec::with_capacity(size);
    for n in 0..size {
        if n > 0 && random.below(100) < percent {
            urls.push(urls[random.below(n)].clone());
            continue;
        }
        let host = if random.below(100) < 39 {
            random.below(100)
        } else {
            random.below(57_684)
        };
        let query = if random.below(100) < 17 {
            format!("?id={}&page={n}", random.below(1 << 20))
        } else {
            String::new()
        };
        let section = "guide/reference/articles/2026/"
            .get(..random.below(30))
            .unwrap_or_default();
        urls.push(format!(
            "https://www.host-{host}.example.com/{section}entry-{n}-{:x}.html{query}",
            random.below(1 << 40)
        ));
    }
    urls
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

#[derive(Default)]
struct SetAndQueue {
    seen: HashSet<String>,
    queue: VecDeque<String>,
}

impl SetAndQueue {
    fn push(&mut self, url: String) -> bool {
        let new = self.seen.insert(url.clone());
        if new {
            self.queue.push_back(url);
        }
        new
    }

    fn pop(&mut self) -> Option<String> {
        self.queue.pop_front()
    }
}

/// The design of the article this project starts from: the textbook's shape, probes h1 + i * h2 modulo m, and a look-up
/// before each insertion, so that a new key is hashed twice and probed twice.
struct Article {
    bits: Vec<u64>,
    len: u64,
    hashes: u64,
    queue: VecDeque<String>,
}

impl Article {
    fn new(capacity: u64, rate: f64) -> Self {
        let ln2 = std::f64::consts::LN_2;
        let len = (-(capacity as f64) * rate.ln() / (ln2 * ln2)).ceil().max(64.0) as u64;
        let hashes = (-rate.ln() / ln2).ceil() as u64;
        Self {
            bits: vec![0; len.div_ceil(64) as usize],
            len,
            hashes,
            queue: VecDeque::new(),
        }
    }

    fn probes(&self, url: &str) -> impl Iterator<Item = u64> + use<> {
        let hash = fastmurmur3::murmur3_x64_128(url.as_bytes(), 0);
        let (first, second, len) = (hash as u64, (hash >> 64) as u64, self.len);
        (0..self.hashes).map(move |i| first.wrapping_add(i.wrapping_mul(second)) % len)
    }

    fn push(&mut self, url: String) -> bool {
        if self
            .probes(&url)
            .all(|at| self.bits[(at / 64) as usize] >> (at % 64) & 1 == 1)
        {
            return false;
        }
        for at in self.probes(&url) {
            self.bits[(at / 64) as usize] |= 1 << (at % 64);
        }
        self.queue.push_back(url);
        true
    }

    fn pop(&mut self) -> Option<String> {
        self.queue.pop_front()
    }
}
