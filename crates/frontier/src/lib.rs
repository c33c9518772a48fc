//! A crawl frontier: what to fetch next, and never a thing twice.
//!
//! [`Frontier`] takes [links](Link), drops those it has seen (a [`sieve`] stands in front of its queues), refuses those
//! out of [scope](scope::Scope), and hands the rest out as [leases](Lease), politely: no host is asked for more than
//! [`per_host`](FrontierConfig::per_host) things at once, nor sooner than its delay after the end of the last request.
//!
//! # It is, it is not
//!
//! It decides; it does not act. It fetches nothing, parses no HTML, reads no clock, never sleeps and has no runtime: time
//! is an argument of every call, and a refusal says when to come back. Hours of politeness are tested in microseconds.
//!
//! # What it promises
//!
//! 1. A link is marked as seen only when it is queued: every refusal is decided before the filter is touched.
//! 2. A URL is handed out once. A retry goes back to its host's queue, past the filter; so does a redirect that changes
//!    nothing but the spelling.
//! 3. At most `per_host` leases of a host are out; with the default of one, overlapping requests are impossible.
//! 4. Every lease is settled once; a second settlement is answered [`Stale`](Fate::Stale) and changes nothing.
//! 5. A page is done only together with its links: [`Frontier::settle`] takes both.
//! 6. [`Drained`](Leasing::Drained) means that nothing is queued and nothing is leased; "nothing now" is another answer.
//! 7. Everything that grows has a bound: [`max_queued`](FrontierConfig::max_queued),
//!    [`max_hosts`](FrontierConfig::max_hosts), the filter's fixed size, the URL length of the scope.
//!
//! The one permitted error is the seen-set's: a new URL that is taken for a seen one, at the stated rate, counted in
//! [`Report::saturation`].

mod addresses;
pub mod admission;
mod budgets;
pub mod canonical;
pub mod config;
pub mod entry;
pub mod fingerprint;
mod frontier;
mod host;
mod hosts;
mod jitter;
mod lane;
pub mod lease;
pub mod link;
mod near_duplicates;
mod pace;
mod repeats;
pub mod report;
pub mod scope;
mod sitemaps;
mod tally;
pub mod time;
pub mod url;

pub use canonical::{Canonicalizer, NotCrawlable};
pub use config::{ConfigError, FrontierConfig, RetryPolicy};
pub use entry::{Entry, Metadata, Purpose};
pub use fingerprint::{ContentHash, Fingerprint, NEAR_BITS, SimHash};
pub use frontier::{Frontier, FrontierError};
pub use lease::{Fate, Lease, LeaseId, Leasing, NotFetched, Outcome, Settled, Settlement, Verdict};
pub use link::{Earlier, Link, Validators};
#[doc(hidden)]
pub use near_duplicates::Clusters;
pub use near_duplicates::{Resemblance, ResemblanceCounts};
pub use repeats::{Repeat, path_prefix};
pub use report::{HostReceipt, Report, Why};
pub use scope::{Reach, Refusal, ScopeConfig};
pub use time::Time;
pub use url::{CanonicalUrl, HostKey, Origin};
