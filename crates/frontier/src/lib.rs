//! A crawl frontier: which URL to fetch next, and when.
//!
//! A [`Frontier`] takes [links](Link) and hands out [leases](Lease). It drops links that it has seen, refuses those outside the
//! [scope](scope::Scope), and queues the rest by host. It obeys robots.txt, keeps a delay between two requests to a host, retries
//! what failed, and ends a crawl that a site would make endless. Fetching, parsing and sleeping are yours.
//!
//! ```
//! use std::time::Duration;
//! use frontier::{Canonicalizer, Frontier, FrontierConfig, Leasing, Outcome, RobotsOutcome, RobotsRules, Task, Time};
//!
//! /// The rules of a robots.txt, as your parser has read them.
//! #[derive(Debug)]
//! struct Disallow(&'static str);
//!
//! impl RobotsRules for Disallow {
//!     fn allows(&self, path: &str) -> bool {
//!         !path.starts_with(self.0)
//!     }
//! }
//!
//! let urls = Canonicalizer::default();
//! let mut frontier = Frontier::in_memory(FrontierConfig::default())?;
//! let mut now = Time::from_millis(1_700_000_000_000); // your clock
//! frontier.add_seed(&urls.parse("https://example.com/")?, now)?;
//!
//! let (mut fetched, mut dropped) = (Vec::new(), Vec::new());
//! loop {
//!     match frontier.lease(now, 10)? {
//!         Leasing::Ready(leases) => {
//!             for lease in leases {
//!                 // Fetch `lease.entry.url` here. A task can only be settled by what can come of it.
//!                 let settlement = match lease.task() {
//!                     Task::Robots(robots) => robots.settle(RobotsOutcome::known(Disallow("/private/"))),
//!                     Task::Page(page) => {
//!                         let found = [urls.parse("https://example.com/a")?, urls.parse("https://example.com/private/b")?];
//!                         let referrer = (*lease.entry.url).into();
//!                         let link = |url| lease.entry.link(url, &referrer);
//!                         fetched.push(lease.entry.url.clone());
//!                         page.settle(Outcome::Done).with_links(found.map(link).into())
//!                     }
//!                     // Handed out only if links to sitemaps are offered, and if requests count by address.
//!                     Task::Sitemap(sitemap) => sitemap.settle(Outcome::Rejected),
//!                     Task::Address(address) => address.settle(None, Duration::MAX),
//!                 };
//!                 frontier.settle(&[settlement], now)?;
//!             }
//!         }
//!         // They were queued, and are not fetched: each says why.
//!         Leasing::Dropped(entries) => dropped.extend(entries.into_iter().map(|one| (one.entry.url, one.why.name()))),
//!         Leasing::NotUntil(time) => now = time, // sleep until then
//!         Leasing::AllLeased => unreachable!("all leases are settled at once here; otherwise wait for one"),
//!         Leasing::BudgetSpent | Leasing::Drained => break,
//!     }
//! }
//! assert_eq!(fetched, ["https://example.com/".into(), "https://example.com/a".into()]);
//! assert_eq!(dropped, [("https://example.com/private/b".into(), "robots_forbid")]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/drive_frontier.rs` adds a real clock, redirects, and what each HTTP status and failure means.
//!
//! # It is
//!
//! - a state machine of one owner: [`offer`](Frontier::offer), [`lease`](Frontier::lease) and [`settle`](Frontier::settle) are plain
//!   calls, and each is done when it returns;
//! - the place of all decisions: which links are followed, when a host is asked, what is retried, when a host is given up, what
//!   robots.txt forbids, and which pages are too much alike;
//! - quick to test: time is an argument of every call, so hours of politeness pass in microseconds.
//!
//! # It is not
//!
//! - a crawler: it makes no request and parses no HTML and no robots.txt. The crate `crawler` does;
//! - a clock or a runtime: it never sleeps and has no threads. [`NotUntil`](Leasing::NotUntil) says when to come back;
//! - durable: it lives in memory, and ends with its process.
//!
//! # What it promises
//!
//! 1. A URL is queued once. It is handed out again only to retry it. A redirect that changes nothing but the spelling is followed.
//! 2. A link is marked as seen only when it is queued: every [refusal](scope::Refusal) is decided before.
//! 3. At most [`per_host`](FrontierConfig::per_host) requests to a host are in flight; with the default of one they cannot overlap.
//!    The delay counts from the end of a request to the start of the next.
//! 4. A page is leased only if robots.txt allows it, unless [`ask_robots`](FrontierConfig::ask_robots) is off. Its robots.txt is
//!    leased first, and only a [`RobotsOutcome`] settles it. A page that is forbidden comes out as
//!    [`Dropped`](Leasing::Dropped), with its reason.
//! 5. Every lease is settled once, together with its links: both are one step. A second settlement is answered
//!    [`Stale`](Fate::Stale) and changes nothing.
//! 6. What was queued comes out, as a lease or as [`Dropped`](Leasing::Dropped), unless the page budget ends the crawl.
//!    [`AllLeased`](Leasing::AllLeased) means that something is leased, and [`Drained`](Leasing::Drained) that nothing is left.
//! 7. A host that is away costs no page until it is given up: see [`failure`] for what each failure counts against. What an
//!    operator should know is told once, as a [`Notice`].
//! 8. Near-duplicates are postponed before they are refused: pages in a place with too many of them wait behind everything else,
//!    and only far too many close it.
//! 9. Everything that grows has a bound: [`max_queued`](FrontierConfig::max_queued), [`max_hosts`](FrontierConfig::max_hosts),
//!    the size of the seen-set, the length of a URL, the bytes of [all rules](rules::MAX_RULES_BYTES).
//!
//! One error is allowed: the seen-set may take a new URL for a seen one, at the
//! [rate](FrontierConfig::false_positive_rate) that you set. [`Report::saturation`] estimates how many were lost.
//! With [`exact`](FrontierConfig::exact) none is.
//!
//! # Modules
//!
//! | module | what it has |
//! |---|---|
//! | [`mod@reference`] | from the text of a reference to a URL |
//! | [`canonical`], [`url`] | when two spellings are one URL; hosts, origins, URLs |
//! | [`link`], [`entry`] | what comes in, and what waits |
//! | [`config`], [`scope`] | what a frontier is built from; what may be crawled |
//! | [`lease`], [`settlement`] | what is handed out, and how it ends |
//! | [`notice`] | what an operator should know |
//! | [`rules`] | what robots.txt files say |
//! | [`failure`] | what follows from each failure |
//! | [`fingerprint`] | what pages are compared by |
//! | [`report`] | counts, and why a URL was or was not fetched |
//! | [`time`] | points in time |

pub mod canonical;
pub mod config;
pub mod entry;
pub mod failure;
pub mod fingerprint;
mod frontier;
mod hosts;
mod keyed_hash;
pub mod lease;
pub mod link;
pub mod notice;
pub mod reference;
pub mod report;
pub mod rules;
pub mod scope;
pub mod settlement;
mod sitemaps;
pub mod time;
mod traps;
pub mod url;

pub use canonical::{Canonicalizer, NotCrawlable};
pub use config::{ConfigError, FrontierConfig, RetryPolicy};
pub use entry::{Entry, Metadata, Purpose};
pub use failure::{Failure, FailureKind};
pub use fingerprint::{ContentHash, Fingerprint, SimHash};
pub use frontier::{Frontier, FrontierError};
pub use lease::{AddressTask, Dropped, Lease, LeaseId, Leasing, NotFetched, PageTask, RobotsTask, SitemapTask, Task};
pub use link::{Link, PreviousFetch, Validators};
pub use notice::Notice;
pub use report::{HostReport, Report, Why};
pub use rules::RobotsRules;
pub use scope::{Reach, Refusal, ScopeConfig};
pub use settlement::{Fate, Outcome, RobotsOutcome, Settled, Settlement, Verdict};
pub use time::Time;
pub use traps::{ResemblanceCounts, path_prefix};
pub use url::{CanonicalUrl, HostKey, Origin};
