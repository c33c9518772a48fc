//! The scaling of a shared filter: one and two threads deduplicate URLs, half of them duplicates, into their own queues.
//!
//! `cargo bench -p crawl-sieve --bench threads`; as a test it runs once with small sizes. Each thread has the same work in every cell, so the
//! ideal is twice the rate with two threads.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Instant;

use sieve::{BloomFilter, ConcurrentBloomFilter, ConfigError, Hashing, Layout, Sizing};

/// A page's links, which are handed over at once.
const PAGE: usize = 50;
const ROUNDS: usize = 3;

fn main() -> Result<(), ConfigError> {
    // `cargo bench` says so to what it runs.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (sizes, rounds): (&[usize], _) = if is_bench {
        (&[1_000_000, 10_000_000], ROUNDS)
    } else {
        (&[2_000], 1)
    };
    println!(
        "million URLs per second on one and on two threads, the best of {rounds}; half of the URLs are duplicates"
    );
    println!(
        "{:>10} {:>14} {:>22} {:>22} {:>22} {:>22}",
        "capacity", "hash", "mutex per URL", "mutex per page", "shared, insert", "shared, insert_all"
    );
    for &capacity in sizes {
        for (name, hashing) in [
            ("murmur3", Hashing::Murmur3 { seed: 1 }),
            ("xxh3", Hashing::Xxh3 { seed: 1 }),
        ] {
            let shape = Sizing::in_layout(Layout::Blocks, capacity as u64, 0.01)?;
            let cells = [locked_each, locked_pages, shared_each, shared_pages].map(|way| {
                let [one, two] =
                    [1, 2].map(|threads| best(rounds, || way(&streams(capacity, threads), shape, hashing)));
                format!("{one:.1} -> {two:.1} ({:.2}x)", two / one)
            });
            let [a, b, c, d] = cells;
            println!("{capacity:>10} {name:>14} {a:>22} {b:>22} {c:>22} {d:>22}");
        }
    }
    Ok(())
}

fn best(rounds: usize, run: impl Fn() -> f64) -> f64 {
    (0..rounds).map(|_| run()).fold(0.0, f64::max)
}

/// What each thread is given: pages of URLs, every second of which some thread has been given before.
fn streams(capacity: usize, threads: usize) -> Vec<Vec<Vec<String>>> {
    let per_thread = capacity / 2;
    let page = |thread: usize, at: usize| {
        let number = |n: usize| {
            if n.is_multiple_of(2) {
                n / 2 * threads + thread
            } else {
                n / 4
            }
        };
        (at..at + PAGE).map(|n| url(number(n))).collect()
    };
    (0..threads)
        .map(|thread| (0..per_thread).step_by(PAGE).map(|at| page(thread, at)).collect())
        .collect()
}

fn url(n: usize) -> String {
    let spread = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
    format!("https://www.host-{spread}.example.com/guide/reference/articles/entry-{n:012}.html")
}

fn locked_each(streams: &[Vec<Vec<String>>], shape: Sizing, hashing: Hashing) -> f64 {
    let seen = filter(shape, hashing);
    rate(streams, |page, queue| {
        let fresh = page
            .iter()
            .filter(|url| seen.lock().unwrap_or_else(PoisonError::into_inner).insert(url));
        queue.extend(fresh.cloned());
    })
}

fn locked_pages(streams: &[Vec<Vec<String>>], shape: Sizing, hashing: Hashing) -> f64 {
    let seen = filter(shape, hashing);
    rate(streams, |page, queue| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        queue.extend(page.iter().filter(|url| seen.insert(url)).cloned());
    })
}

fn shared_each(streams: &[Vec<Vec<String>>], shape: Sizing, hashing: Hashing) -> f64 {
    let seen = shared(shape, hashing);
    rate(streams, |page, queue| {
        queue.extend(page.iter().filter(|url| seen.insert(url)).cloned());
    })
}

fn shared_pages(streams: &[Vec<Vec<String>>], shape: Sizing, hashing: Hashing) -> f64 {
    let seen = shared(shape, hashing);
    rate(streams, |page, queue| {
        let mut urls = page.iter();
        seen.insert_all(page.iter().map(String::as_bytes), |_, is_new| {
            let url = urls.next();
            queue.extend(url.filter(|_| is_new).cloned());
        });
    })
}

fn filter(shape: Sizing, hashing: Hashing) -> Mutex<BloomFilter> {
    match BloomFilter::with_hashing(shape, hashing) {
        Ok(filter) => Mutex::new(filter),
        Err(error) => panic!("{error}"),
    }
}

fn shared(shape: Sizing, hashing: Hashing) -> ConcurrentBloomFilter {
    match ConcurrentBloomFilter::with_hashing(shape, hashing) {
        Ok(filter) => filter,
        Err(error) => panic!("{error}"),
    }
}

/// Returns million URLs per second, all threads together, from the first start to the last end.
fn rate(streams: &[Vec<Vec<String>>], push: impl Fn(&[String], &mut VecDeque<String>) + Sync) -> f64 {
    let urls: usize = streams.iter().flatten().map(Vec::len).sum();
    let barrier = Barrier::new(streams.len());
    let fill = |pages: &[Vec<String>]| {
        let mut queue = VecDeque::with_capacity(pages.len() * PAGE);
        barrier.wait();
        let start = Instant::now();
        pages.iter().for_each(|page| push(page, &mut queue));
        let end = Instant::now();
        // Freeing the queue is no part of it.
        black_box(queue);
        (start, end)
    };
    let times: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = streams.iter().map(|pages| scope.spawn(|| fill(pages))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let start = times.iter().map(|(start, _)| *start).min();
    let end = times.iter().map(|(_, end)| *end).max();
    let elapsed = start.zip(end).map(|(start, end)| end - start).unwrap_or_default();
    urls as f64 / elapsed.as_secs_f64() / 1e6
}
