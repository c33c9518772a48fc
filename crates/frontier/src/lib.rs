//! A crawl frontier: which URL to fetch next, and when.
//!
//! ```
//! use frontier::{Canonicalizer, Frontier, FrontierConfig, Leasing, Outcome, Purpose, Time};
//!
//! let urls = Canonicalizer::default();
//! let mut frontier = Frontier::in_memory(FrontierConfig::default())?;
//! let mut now = Time::from_millis(1_700_000_000_000); // from your clock
//! frontier.add_seed(&urls.parse("https://example.com/")?, now)?;
//!
//! let mut fetched = Vec::new();
//! loop {
//!     match frontier.lease(now, 10)? {
//!         Leasing::Ready(leases) => {
//!             for lease in leases {
//!                 let settlement = match lease.entry.purpose {
//!                     Purpose::Page => {
//!                         // Your HTTP request and link extraction.
//!                         fetched.push(lease.entry.url.clone());
//!                         let about = urls.parse("https://example.com/about")?;
//!                         let link = lease.entry.link(about, &"https://example.com/".into());
//!                         lease.settle(Outcome::Done).with_links(vec![link])
//!                     }
//!                     // Your request for robots.txt. This site has none; `with_rules` adds those of another.
//!                     Purpose::Robots(_) => lease.settle(Outcome::Rejected),
//!                     // Only if you offer sitemaps, and with `per_address`.
//!                     Purpose::Sitemap(_) | Purpose::Address => lease.settle(Outcome::Rejected),
//!                 };
//!                 frontier.settle(&[settlement], now)?;
//!             }
//!         }
//!         Leasing::Dropped(entries) => eprintln!("not fetched: {entries:?}"),
//!         Leasing::NotUntil(time) => now = time, // sleep until then
//!         Leasing::AllLeased => unreachable!("this loop settles each lease at once; with several tasks, see below"),
//!         Leasing::BudgetSpent | Leasing::Drained => break,
//!     }
//! }
//! assert_eq!(fetched, ["https://example.com/".into(), "https://example.com/about".into()]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Frontier`] takes [links](Link) and returns [leases](Lease). It drops links that were seen, refuses links outside the
//! [scope](mod@scope), and queues the rest per host. It obeys robots.txt, keeps a delay between two requests to a host, retries
//! failed requests, and ends a crawl that a site would make endless. You fetch, parse and sleep.
//!
//! # With several tasks
//!
//! One task owns the frontier, and fetch tasks return what it settles: no lock, no channel. [`AllLeased`](Leasing::AllLeased) is not the
//! end: it waits for one of them.
//!
//! ```
//! use std::time::{Duration, SystemTime, UNIX_EPOCH};
//! use frontier::{Canonicalizer, Failure, FailureKind, Frontier, FrontierConfig, Lease, Leasing, Settlement, Time};
//! use tokio::{task::JoinSet, time::Instant};
//!
//! /// Stands for your request.
//! async fn fetch(lease: Lease) -> Settlement {
//! #   tokio::time::sleep(Duration::from_millis(1)).await;
//!     lease.failed(Failure::new(FailureKind::Unresolved, "no network"))
//! }
//!
//! /// A panic costs an attempt of one page.
//! async fn settlement(lease: Lease) -> Settlement {
//!     let ended = tokio::spawn(fetch(lease.clone())).await;
//!     ended.unwrap_or_else(|panic| lease.failed(Failure::new(FailureKind::Panic, panic.to_string())))
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let (epoch, start) = (SystemTime::now().duration_since(UNIX_EPOCH)?, Instant::now());
//!     let now = || Time::since_epoch(epoch + start.elapsed());
//!     let config = FrontierConfig::default();
//! #   let mut config = config;
//! #   config.retries.max_first_downtime = Duration::ZERO;
//!     let mut frontier = Frontier::in_memory(config)?;
//!     frontier.add_seed(&Canonicalizer::default().parse("https://example.com/")?, now())?;
//!     let mut tasks = JoinSet::new();
//!     loop {
//!         let mut wait = Duration::MAX;
//!         if tasks.len() < 16 { // of 16 hosts: each has one at a time, unless you raise `per_host`
//!             wait = match frontier.lease(now(), 16 - tasks.len())? {
//!                 Leasing::Ready(leases) => {
//!                     leases.into_iter().for_each(|lease| drop(tasks.spawn(settlement(lease))));
//!                     continue;
//!                 }
//!                 Leasing::Dropped(entries) => {
//!                     eprintln!("not fetched: {entries:?}");
//!                     continue;
//!                 }
//!                 Leasing::NotUntil(time) => time.since(now()),
//!                 Leasing::AllLeased => Duration::MAX,
//!                 Leasing::BudgetSpent | Leasing::Drained => break,
//!             };
//!         }
//!         tokio::select! {
//!             Some(settlement) = tasks.join_next() => drop(frontier.settle(&[settlement?], now())?),
//!             () = tokio::time::sleep(wait) => {}
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! To test such a loop in simulated time, pass the fetch in (a trait) and a fixed `epoch`: tokio's `Instant` and `sleep` take no time under
//! `#[tokio::test(start_paused = true)]` (its feature `test-util`).
//!
//! # In a directory
//!
//! With `features = ["durable"]`, `Frontier::open` takes the place of `in_memory`, and `persist` commits what has changed. Call it after you
//! have settled, and before you send the requests of new leases. `examples/durable_frontier.rs` in the repository is a whole program:
//!
//! ```
//! # #[cfg(feature = "durable")] {
//! # use std::{fs::File, sync::Arc, time::Instant};
//! # use frontier::{Frontier, FrontierConfig, RobotsRules, Time};
//! # #[derive(Debug)]
//! # struct RobotsTxt(Box<[u8]>);
//! # impl RobotsTxt {
//! #     fn of_text(text: Box<[u8]>, _: &str) -> Self { Self(text) }
//! # }
//! # impl RobotsRules for RobotsTxt {
//! #     fn allows(&self, _path: &str) -> bool { true }
//! #     fn text(&self) -> Option<&[u8]> { Some(&self.0) }
//! # }
//! # const AGENT: &str = "my-bot/1.0";
//! # let (config, clock) = (FrontierConfig::default(), Time::from_millis(1_700_000_000_000));
//! # let dir = std::env::temp_dir().join(format!("frontier-lib-{}", std::process::id()));
//! // `page::robots::RobotsTxt`, or your `RobotsRules` with a `text`, from which they are made again.
//! let parse = Arc::new(|text: &[u8]| Arc::new(RobotsTxt::of_text(text.into(), AGENT)) as _);
//! let opened = Frontier::open(&dir, config, clock, parse)?;
//! // Its time is later than yours if the clock was set back.
//! let (mut frontier, from, start) = (opened.frontier, opened.now, Instant::now());
//! let now = || from + start.elapsed();
//! # let pages = File::create(dir.join("pages.txt"))?;
//! // Each time, with the length of your own file:
//! let at = now();
//! if frontier.save_status().is_some_and(|status| status.is_sync_due(at)) {
//!     pages.sync_data()?;
//! }
//! frontier.persist(&pages.metadata()?.len().to_le_bytes(), at)?;
//! # drop(frontier);
//! # std::fs::remove_dir_all(&dir)?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Write the line of a page when it [has ended](Fate), before the next `persist`. After a kill, cut the file back to
//! [that length](Opened::attachment): what was in flight, or has ended since, is fetched again. After a power cut, the file may be shorter:
//! `Directory::unsynced` says what to do before `open`. A program that waits persists at [`next_sync`](SaveStatus::next_sync), too. The
//! directory itself records how each page ended: `Directory::visit_pages` visits these [`StoredPage`]s.
//!
//! To stop, abort the tasks, sync the file, and call [`checkpoint`](Frontier::checkpoint) with its length. The next `open` queues again what
//! was in flight, and no attempt is counted: [`release_leases`](Frontier::release_leases) is not needed.
//!
//! # What it is
//!
//! - A state machine with one owner. [`offer`](Frontier::offer), [`lease`](Frontier::lease) and [`settle`](Frontier::settle) are plain
//!   calls; the work is done when they return.
//! - The place of all decisions: which links are followed, when a host is requested, what is retried, when an origin is given up,
//!   what robots.txt forbids, and which pages are near-duplicates.
//! - Fast to test. Time is an argument of every call, so a test of hours of politeness takes microseconds. The feature `simulation` has a
//!   directory in memory that loses power.
//!
//! # What it is not
//!
//! - Not a crawler: it makes no request and parses neither HTML nor robots.txt. The crate `crawler` does.
//! - Not a clock or a runtime: it never sleeps and has no threads. [`NotUntil`](Leasing::NotUntil) says when to call again.
//! - Not bound to memory: `Frontier::open` (feature `durable`) keeps it in a directory, where it survives a crash.
//! - Not a cluster: with a [`partition`](FrontierConfig::partition) it has a share of the sites, and hands out links to others in numbered
//!   batches ([`exchange`]). Something else carries them, such as the crate `crawl-cluster`.
//!
//! # What it costs
//!
//! | | cost |
//! |---|---|
//! | a queued URL of 80 bytes | 67 bytes on one site, 118 on 60 000 hosts, these included |
//! | a seen URL | 10.1 bits at a false-positive rate of 1 %, 14 and more once the seen-set has grown; the whole key if [`exact`](SeenSetConfig::exact) |
//! | a host with rules of robots.txt | about 700 bytes |
//! | [`offer`](Frontier::offer), per link | the scope, one hash, one cache miss in the seen-set, one look-up of the host |
//! | [`lease`](Frontier::lease), per lease | one look-up of the host; O(log hosts) if the host then waits for its delay |
//! | [`report`](Frontier::report) | O(1) |
//! | [`why`](Frontier::why) | the length of the host's queue |
//!
//! # What it guarantees
//!
//! 1. **Once.** A URL is queued once, and ends once. It is leased again only as a retry, after a kill before its end was persisted, or if you
//!    ask for that:
//!    [`has_new_cookies`](Link::has_new_cookies), [`queue_again`](Frontier::queue_again). A redirect to another spelling of the same key is
//!    followed: both end, the first as redirected.
//! 2. **Marked means queued.** A link is marked as seen only when it is queued. Every [refusal](scope::Refusal) is decided before.
//! 3. **Politeness.** At most [`per_host`](PolitenessConfig::per_host) requests to a host are in flight, one by default. The delay counts
//!    from the end of a request to the start of the next.
//! 4. **robots.txt.** A page is leased only if robots.txt allows it. The robots.txt is leased first, and only its
//!    [rules](Settlement::with_rules), or that there is none, let a page through. Forbidden pages are returned as [`Dropped`](Leasing::Dropped). [`ask_robots`](PolitenessConfig::ask_robots) turns
//!    this off.
//! 5. **One commit.** A lease is settled once, together with the links of its page. A second settlement is
//!    [`Stale`](Fate::Stale) and changes nothing.
//! 6. **Nothing is lost silently.** Every queued URL is returned as a lease or as [`Dropped`](Leasing::Dropped), unless the page
//!    budget ends the crawl. [`AllLeased`](Leasing::AllLeased) means that leases are in flight, [`Drained`](Leasing::Drained) that
//!    nothing is left.
//! 7. **Outages cost no page** until the origin is given up: see [`failure`]. Each event for the operator is reported once, as a
//!    [`Notice`].
//! 8. **Near-duplicates wait before they are refused.** Where pages are too similar, further ones wait behind everything else of the
//!    crawl. Only far too many close a path.
//! 9. **Bounds.** Everything that grows has one: [`max_queued`](LimitConfig::max_queued), [`max_hosts`](LimitConfig::max_hosts),
//!    the seen-set, the length of a URL, the bytes of [all rules](rules::MAX_RULES_BYTES).
//!
//! One error is permitted: the seen-set may treat a new URL as seen, at the
//! [rate](SeenSetConfig::false_positive_rate) that you set. [`Report::saturation`] estimates how many URLs were lost. With
//! [`exact`](SeenSetConfig::exact) none are lost.
//!
//! # Words for what became of it
//!
//! | word | who says it | what it says |
//! |---|---|---|
//! | [`Outcome`] | you | what came back from a request, whatever was asked for; [`Failure`]: what went wrong |
//! | [`Settlement`] | you | the outcome of a lease, with all that was found: links, rules, an address |
//! | [`Settled`] | [`settle`](Frontier::settle) | what follows from a settlement; [`Fate`]: whether its entry is leased again |
//! | [`Verdict`] | [`offer`](Frontier::offer), [`Settled`] | what became of one link; [`Refusal`]: why it is not crawled |
//! | [`Leasing`] | [`lease`](Frontier::lease) | what can be fetched now, or until when nothing can |
//! | [`Dropped`] | [`Leasing`] | an entry that left its queue without a request; [`NotFetched`]: why |
//! | [`Notice`] | [`Settled`], [`began_to_hang`](Frontier::began_to_hang) | what an operator should know of an origin or a site, once |
//! | [`Why`] | [`why`](Frontier::why) | what decides about a URL now; [`Wait`]: what a queued one waits for |
//! | [`PageEnd`] | the pages of a directory | how a page has ended |
//!
//! [`Failure`], [`Refusal`], [`NotFetched`], [`Notice`], [`Why`] and [`Wait`] are displayed as texts for people. [`FailureKind`], [`Refusal`],
//! [`NotFetched`] and [`PageEnd`] have names for files.
//!
//! # Where to go next
//!
//! Which HTTP status and which failure has which outcome is in [`answer`]; [`Lease::answered`] applies it. In the
//! repository, `examples/embed_frontier.rs` has a whole loop with an HTTP client, and `examples/drive_frontier.rs` one with links,
//! redirects, failures and rules of its own, and `examples/durable_frontier.rs` one in a directory, with several requests at a time.
//!
//! | module | contents |
//! |---|---|
//! | [`mod@reference`] | from the text of a reference to a URL |
//! | [`canonical`], [`url`] | when two spellings are one URL; hosts, origins, URLs |
//! | [`config`], [`scope`] | the configuration; what may be crawled |
//! | [`link`], [`entry`] | what you offer, and what is queued |
//! | [`lease`], [`settlement`] | what is leased, and how a lease ends |
//! | [`answer`] | from an HTTP answer to the settlement |
//! | [`rules`] | the rules of robots.txt |
//! | [`failure`] | the failure policy |
//! | [`partition`], [`mod@exchange`] | sites shared out over processes, and the links between them |
//! | [`fingerprint`] | how pages are compared |
//! | [`notice`], [`report`] | events for the operator; counts, and what a URL waits for |
//! | [`time`] | points in time |

#![cfg_attr(
    not(feature = "durable"),
    allow(dead_code, reason = "only the store of the feature makes a frontier durable")
)]

pub mod answer;
mod appended;
pub mod canonical;
#[cfg(test)]
#[path = "../tests/shared/cases.rs"]
mod cases;
mod class;
pub mod config;
#[cfg(feature = "durable")]
pub mod directory;
pub mod durable;
pub mod entry;
mod error;
pub mod exchange;
pub mod failure;
pub mod fingerprint;
pub(crate) mod freshness;
mod frontier;
mod hosts;
mod keyed_hash;
pub mod lease;
pub mod link;
pub mod notice;
pub mod partition;
mod policy;
pub mod reference;
pub mod report;
pub mod rules;
pub mod scope;
pub mod settlement;
#[cfg(any(test, feature = "simulation"))]
#[path = "../tests/shared/simulation.rs"]
pub mod simulation;
mod sitemaps;
#[cfg(feature = "durable")]
mod sqlite;
mod state;
mod store;
mod stored_page;
pub mod time;
mod traps;
pub mod url;

#[doc(inline)]
pub use answer::Answer;
#[doc(inline)]
pub use canonical::{Canonicalizer, NotCrawlable};
#[doc(inline)]
pub use class::{Class, NoClass, OrderRule};
#[doc(inline)]
pub use config::{
    FrontierConfig, FrontierConfigError, LimitConfig, PolitenessConfig, RetryPolicy, SeenSetConfig, TrapConfig,
};
#[cfg(feature = "durable")]
#[doc(inline)]
pub use directory::Directory;
#[doc(inline)]
pub use durable::{
    FreshnessReport, HostFreshness, OwnPlan, PageEnd, QueuedAgain, Refetch, SaveStatus, StoredAnswer, StoredPage,
    Visits,
};
#[doc(inline)]
pub use entry::{Entry, Metadata, Purpose};
#[doc(inline)]
pub use error::{FrontierError, OpenError};
#[doc(inline)]
pub use failure::{Failure, FailureKind};
#[doc(inline)]
pub use fingerprint::{ContentHash, Fingerprint, SimHash};
#[doc(inline)]
pub use freshness::FreshnessConfig;
#[cfg(fuzzing)]
#[doc(hidden)]
pub use frontier::fuzzing;
#[doc(inline)]
pub use frontier::{Frontier, Opened};
#[doc(inline)]
pub use lease::{Dropped, Lease, LeaseId, Leasing, NotFetched};
#[doc(inline)]
pub use link::{Link, OwnData, OwnDataTooLong, PreviousFetch, Validators};
#[doc(inline)]
pub use notice::Notice;
#[doc(inline)]
pub use partition::Partition;
#[doc(inline)]
pub use policy::{CrawlPolicy, HostPolicy, NoHosts};
#[doc(inline)]
pub use report::{Health, HostHealth, HostReport, MemoryReport, QueuePlace, Report, Wait, Why};
#[doc(inline)]
pub use rules::{ParseRules, RobotsRules};
#[doc(inline)]
pub use scope::{Reach, Refusal, ScopeConfig};
#[doc(inline)]
pub use settlement::{Fate, Outcome, Settled, Settlement, Verdict};
pub use sieve::{Hashing, OnSaturation, Saturation};
#[doc(inline)]
pub use store::{LockHolder, StoreError};
#[doc(inline)]
pub use time::Time;
#[doc(inline)]
pub use traps::ResemblanceCounts;
#[doc(inline)]
pub use url::{CanonicalUrl, HostKey, Origin};
