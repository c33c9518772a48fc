//! A Bloom filter in front of a to-visit queue.
//!
//! A crawler, a job scheduler or any walk over a graph asks the same two questions of every key it meets: *have I had
//! this one?* and *what comes next?* A [`Sieve`] answers both: [`push`](Sieve::push) drops what was seen and queues what
//! is new, [`pop`](Sieve::pop) hands out the next.
//!
//! ```
//! use sieve::Sieve;
//!
//! let mut to_visit = Sieve::new(1_000_000)?;
//! assert!(to_visit.push("https://example.com/".to_owned())); // new: queued
//! assert!(!to_visit.push("https://example.com/".to_owned())); // seen: dropped
//! assert_eq!(to_visit.pop().as_deref(), Some("https://example.com/"));
//! assert_eq!(to_visit.pop(), None);
//! # Ok::<(), sieve::ConfigError>(())
//! ```
//!
//! # The contract
//!
//! Every key that is pushed and was not seen comes out; only keys that were pushed come out; each comes out at most
//! once, in the order of first arrival. The one permitted error is that a **new key is taken for a seen one**, at a
//! stated rate, which is counted and reported. The rules of the filter behind it:
//!
//! 1. A key can be added and not removed.
//! 2. "Not seen" is certain.
//! 3. "Seen" is wrong at the false-positive rate, which grows with the fill.
//! 4. The capacity must be chosen before use. Past it nothing breaks, but more and more new keys are dropped: see
//!    [`Saturation`], which says how many.
//!
//! # It is, it is not
//!
//! It is synchronous, owned by one task, and knows nothing of URLs, hosts, time or files. It is not a cache (nothing is
//! evicted), and not a set (keys cannot be listed). For a small crawl in which not one key may be lost, put an
//! [`ExactFilter`] into the same [`Sieve`], or a [`SeenSet::exact`]; it costs the keys themselves in memory.
//!
//! # Uses
//!
//! A filter alone, without a queue, stands wherever most questions are answered by "no", and the true answer is far away. Five examples
//! run on what a Debian system or a Rust toolchain has installed (`cargo run -p sieve --example blacklist`, and so on):
//!
//! | example | it shows | methods |
//! |---|---|---|
//! | `examples/blacklist.rs` | a URL blacklist asked before a page load | [`Snapshot::write_to`], [`Snapshot::read_from`] |
//! | `examples/cache_shield.rs` | a shield in front of a slow store, too small, and growing | [`Filter`], [`ScalableBloomFilter`] |
//! | `examples/spell_checker.rs` | a dictionary in two bytes per word, and the misspellings that it passes | [`BloomFilter::contains`] |
//! | `examples/duplicate_titles.rs` | duplicates found exactly, by two passes over two filters | [`BloomFilter::insert`] |
//! | `examples/exchange_deltas.rs` | two crawlers that tell each other what they have fetched | [`BloomFilter::delta`], [`BloomFilter::union`] |
//!
//! More of the same kind, a line each:
//!
//! * Longest-prefix routing: a filter per prefix length; only tables whose filter knows the address's prefix are asked, the longest first.
//! * Password blacklist: a password that the filter of leaked ones knows is refused; one good password in a hundred is too, at 1 %.
//! * Inventory check: an article that the filter does not know is answered without the database.
//! * Column stores and LSM trees: a filter per block or per file of keys; a look-up reads only those that may hold the key.
//! * Cache digests: proxies send each other the filter of what they hold, and ask the neighbour whose filter knows the page.
//!
//! # The rest of the book
//!
//! The [`guide`] says which filter, how large, under which hash and at what cost, and has recipes; [`sizing`] has the formulas, [`saturation`] what is
//! measured and said, [`hash`] the attackers, [`snapshot`] the file, [`sources`] where every figure comes from.
//!
//! # Saturation
//!
//! Each level of fill is reported once, with target `sieve::saturation`: an `info` line at 0.8 of the capacity, a `warn`
//! line above the capacity and one each at 1.5, 2, 3, 5, 10, 20, … times. Every line names the estimated number of keys,
//! the present false-positive rate and the number of keys lost so far, also as key-values of the `log` record. See
//! [`saturation`]. They are seen only through a logger that lets them pass: `env_logger`, for one, wants `RUST_LOG=sieve=info`.
//!
//! # Features
//!
//! Both are off by default. `serde`: `Serialize` for the reports, and both ways for what is configured ([`Hashing`], [`OnSaturation`]). `compressed-queue`: `Packing::Compressed`, by the crate
//! `lz4_flex` (no dependencies of its own, half a second to build).

mod algebra;
mod bloom;
mod builder;
mod concurrent;
mod counting;
mod delta;
mod exact;
mod filter;
#[doc = include_str!("../GUIDE.md")]
pub mod guide {}
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
pub use hash::{Digest, Hashing};
pub use on_saturation::OnSaturation;
pub use packed::{BoundTooSmall, PackedItem, PackedQueue, Packing, QueueFull};
pub use queue::{Accepts, Fifo, Queue};
pub use rotating::RotatingBloomFilter;
pub use saturation::{Level, Saturation, SelfCheck};
pub use scalable::{GROWTH, ScalableBloomFilter, TIGHTENING};
pub use seen_set::SeenSet;
pub use sieve::{Drain, Refused, RefusedBy, Sieve, Tally};
pub use sizing::{ConfigError, Layout, Sizing};
pub use snapshot::{Snapshot, SnapshotError};
