//! A Bloom filter in front of a to-visit queue.
//!
//! ```
//! use sieve::Sieve;
//!
//! let mut to_visit = Sieve::new(1_000_000)?; // sized for a million keys
//! assert!(to_visit.push("https://example.com/")); // new: queued
//! assert!(!to_visit.push("https://example.com/")); // seen: dropped
//! assert_eq!(to_visit.pop().as_deref(), Some("https://example.com/"));
//! assert_eq!(to_visit.pop(), None);
//! # Ok::<(), sieve::ConfigError>(())
//! ```
//!
//! A crawler, a job scheduler or any graph traversal asks two questions of every key: *was it seen?* and *what comes next?* A
//! [`Sieve`] answers both. [`push`](Sieve::push) drops keys that were seen and queues new ones. [`pop`](Sieve::pop) returns the next.
//!
//! # The contract
//!
//! Every new key that is pushed is popped once, in the order of arrival. The one permitted error: a **new key is treated as seen**
//! at a stated rate. The sieve counts and logs this loss. Keys are compared byte by byte, so make equal URLs equal texts, without their
//! fragments. The rules of the filter:
//!
//! 1. A key can be added, but not removed.
//! 2. "Not seen" is certain.
//! 3. "Seen" is wrong at the false-positive rate, which rises as the filter fills.
//! 4. The capacity is chosen before use. Beyond it nothing breaks, but more and more new keys are dropped. [`Saturation`] says how
//!    many.
//!
//! # What it is, and what it is not
//!
//! It is synchronous, owned by one task, and independent of URLs, hosts, time and files. It is not a cache: nothing is evicted. It is
//! not a set: keys cannot be listed. If no key may be lost, use a [`SeenSet::exact`] in the same [`Sieve`]; it stores the keys
//! themselves.
//!
//! # With several tasks
//!
//! One task owns the sieve. Fetch tasks return their links, so there is no lock and no channel. An empty queue is not the end while a
//! task runs (in edition 2024, with the features `rt` and `macros` of tokio):
//!
//! ```
//! use sieve::Sieve;
//! use tokio::task::JoinSet;
//!
//! /// Stands for your request, and the links of the page.
//! async fn fetch(url: String) -> Vec<String> {
//!     vec![url + "a"].into_iter().filter(|link| link.len() < 30).collect()
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let (mut to_visit, mut tasks) = (Sieve::new(100_000)?, JoinSet::new());
//!     to_visit.push("https://example.com/");
//!     loop {
//!         while tasks.len() < 16
//!             && let Some(url) = to_visit.pop()
//!         {
//!             tasks.spawn(fetch(url));
//!         }
//!         match tasks.join_next().await {
//!             Some(links) => to_visit.push_all(links?),
//!             None => break, // nothing queued, nothing in flight
//!         };
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Threads may share one sieve as an `Arc<Mutex<Sieve>>`, with one lock for the links of a page, or have a queue each in front of a
//! [`ConcurrentBloomFilter`], which logs nothing.
//!
//! With delays per host, `join_next` returns `None` while pages wait. Then the end is `tasks.is_empty() && to_visit.is_empty()`, and the
//! loop waits for a task or a timer until then.
//!
//! The queue has no URL that is in flight: to save a crawl on Ctrl-C, keep these in a list of your own. So does the loop of
//! `cargo run -p crawl-sieve --example tokio_snapshot`, which [saves and resumes](guide#save-and-resume).
//!
//! # What it costs
//!
//! | | cost |
//! |---|---|
//! | memory | 10.1 bits per key at a false-positive rate of 1 %, and the queue |
//! | [`push`](Sieve::push) | one hash, one cache miss, and a copy of a new key: 75 to 210 ns for a URL of 80 bytes |
//! | [`push_all`](Sieve::push_all) | the same with overlapping cache misses: 41 to 95 ns |
//! | [`pop`](Sieve::pop) | 20 to 50 ns, depending on the queue |
//!
//! # Where to go next
//!
//! | to … | read |
//! |---|---|
//! | choose a filter, its size and its hash; copy a recipe | the [`guide`] |
//! | save a filter and resume from it | [`snapshot`], and the [recipes](guide#recipes) |
//! | alert on saturation | [`saturation`] |
//! | bound the memory of the queue | [`PackedQueue`] |
//! | use your own queue, such as one per host | the example of [`Queue`] |
//! | check the formulas and the attackers | [`sizing`], [`hash`], [`sources`] |
//! | crawl URLs politely | the crate `crawl-frontier` |
//!
//! # Saturation in the log
//!
//! The sieve logs each level of fill once, with target `sieve::saturation`: `info` at 0.8 times the capacity, `warn` above the
//! capacity, then `warn` at 1.5, 2, 3, 5, 10, 20 … times. A record has the estimated number of keys, the present false-positive rate
//! and the number of keys lost so far, in its text and as key-values. Your logger must let it through: with `env_logger`, set
//! `RUST_LOG=sieve=info`.
//!
//! * Below 0.8 times the capacity nothing is logged, though a few keys may be lost: [`Saturation::may_have_lost`] says so.
//! * A sieve that is resumed does not log again what was logged: log [`Sieve::saturation`] once after [`Sieve::resume`].
//! * That the bits set and the accepted keys disagree ([`SelfCheck`]) is said by the record of a level that is due then, or by a `warn` of its own.
//!
//! # A filter without a queue
//!
//! A filter alone helps wherever most answers are "no" and the exact answer is expensive. These examples run on files that a Debian
//! system or a Rust toolchain provides, as in `cargo run -p crawl-sieve --example blacklist`:
//!
//! | example | it shows | methods |
//! |---|---|---|
//! | `blacklist` | a URL blacklist that is checked before a page load | [`Snapshot::write_to`], [`Snapshot::read_from`] |
//! | `cache_shield` | a filter in front of a slow store: too small, and growing | [`Filter`], [`ScalableBloomFilter`] |
//! | `spell_checker` | a dictionary in two bytes per word, and the misspellings that it accepts | [`BloomFilter::contains`] |
//! | `duplicate_titles` | exact duplicates by two passes over two filters | [`BloomFilter::insert`] |
//! | `exchange_deltas` | two crawlers that exchange what they have fetched | [`BloomFilter::delta`], [`BloomFilter::union`] |
//!
//! More uses of the same kind:
//!
//! * Longest-prefix routing: one filter per prefix length. Only tables whose filter contains the prefix of the address are searched.
//! * Leaked passwords: a password that the filter of leaked ones contains is refused. At 1 %, so is one good password in a hundred.
//!   Keep such a filter secret: whoever has it can test passwords offline as often as they like, and its file contains the seed.
//! * Column stores and LSM trees: a filter per block or file of keys. A look-up reads only those that may contain the key.
//! * Cache digests: proxies exchange filters of their content, and ask the neighbour whose filter contains the page.
//!
//! # Features
//!
//! `serde`, off by default, adds `Serialize` for the reports, and `Serialize` and `Deserialize` for [`Hashing`], [`OnSaturation`] and
//! [`Counters`].

mod algebra;
mod bloom;
mod builder;
mod concurrent;
mod counting;
mod delta;
mod exact;
mod filter;
#[doc = include_str!("../GUIDE.md")]
///
/// # What the guide names
///
/// [`Sieve`]: [`new`](Sieve::new), [`save_filter`](Sieve::save_filter), [`resume`](Sieve::resume),
/// [`on_saturation`](Sieve::on_saturation), [`try_push`](Sieve::try_push), [`push_all`](Sieve::push_all),
/// [`try_push_all`](Sieve::try_push_all), [`set_now`](Sieve::set_now), [`with_counters`](Sieve::with_counters).
/// Filters: [`BloomFilter`], [`ScalableBloomFilter`], [`SeenSet::exact`], [`ExactFilter`], [`CountingBloomFilter`],
/// [`RotatingBloomFilter`], [`ConcurrentBloomFilter`], [`Layout`], [`sizing`].
/// Queues: [`PackedQueue`], [`Queue`], [`Accepts`], [`RefusedBy`].
/// Hashes: [`hash`], [`Hashing`].
/// Past the capacity: [`OnSaturation`], [`Saturation::lost_at_least`].
pub mod guide {
    #[cfg(doc)]
    use super::*;
}
pub mod hash;
mod lines;
mod loss;
mod memory;
mod on_saturation;
mod packed;
mod prefetch;
mod probes;
mod queue;
mod rotating;
pub mod saturation;
mod scalable;
mod seen_set;
mod sieve;
pub mod sizing;
pub mod snapshot;
#[doc = include_str!("../SOURCES.md")]
pub mod sources {}
mod sync;

pub use algebra::AlgebraError;
pub use bloom::BloomFilter;
pub use builder::{DEFAULT_FALSE_POSITIVE_RATE, SieveBuilder};
pub use concurrent::ConcurrentBloomFilter;
pub use counting::{CountingBloomFilter, MAX_COUNT};
pub use delta::Delta;
pub use exact::ExactFilter;
pub use filter::{Filter, Load};
#[doc(inline)]
pub use hash::{Digest, Hashing};
pub use on_saturation::OnSaturation;
pub use packed::{BoundTooSmall, PackedQueue, Packing, QueueFull};
pub use queue::{Accepts, Fifo, Queue};
pub use rotating::RotatingBloomFilter;
#[doc(inline)]
pub use saturation::{Level, Saturation, SelfCheck};
pub use scalable::{GROWTH, ScalableBloomFilter, TIGHTENING};
pub use seen_set::SeenSet;
pub use sieve::{Counters, Refused, RefusedBy, Sieve};
#[doc(inline)]
pub use sizing::{ConfigError, Layout, Sizing};
#[doc(inline)]
pub use snapshot::{Snapshot, SnapshotError};
