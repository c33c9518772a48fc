//! Looking at a frontier: its numbers, its hosts, and what decides about a URL.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::Frontier;
use crate::entry::Entry;
use crate::error::FrontierError;
use crate::notice::Notice;
use crate::report::{Health, HostReport, Report, Why};
use crate::time::Time;
use crate::url::{CanonicalUrl, HostKey};

impl Frontier {
    /// Returns whether a URL is in reach of a seed or of the target of a redirected seed.
    pub fn reaches(&self, url: &CanonicalUrl) -> bool {
        self.state.reaches(url)
    }

    /// Says what decides about a URL now: the rule that refuses it, what it waits for, or that it is in flight. The URL is one that a
    /// [`Canonicalizer`](crate::Canonicalizer) made by the same rules; [`Entry::canonical_url`](crate::Entry::canonical_url) makes
    /// one from an entry.
    ///
    /// It has no memory of what has ended: a URL that was fetched, failed, or dropped is [`Seen`](Why::Seen), whichever it was. The
    /// [records](crate::StoredPage) of a directory say it (`Directory::visit_pages`). In memory, record that yourself as it happens, from
    /// [`Settled`](crate::Settled) and [`Leasing::Dropped`](crate::Leasing::Dropped). The URL of a robots.txt is no page: the answer is that
    /// of a page with this URL.
    ///
    /// Cost: the length of its host's queue.
    pub fn why(&self, url: &CanonicalUrl, now: Time) -> Why {
        self.state.why(url, now)
    }

    /// Returns the numbers. Cost: O(1).
    pub fn report(&self) -> Report {
        self.state.report()
    }

    /// Returns the [`pages_left`](Report::pages_left) of the report, in a fraction of its time.
    pub fn pages_left(&self) -> u64 {
        self.state.pages_left()
    }

    /// Iterates over the hosts that are remembered: what each was asked, how politely, and what it does now. Cost: a look at each lease and
    /// each host; those on disk are read. Which host takes longest, if an answer takes a second and none fails:
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use frontier::{Frontier, FrontierConfig, Time};
    /// # let (frontier, now) = (Frontier::in_memory(FrontierConfig::default())?, Time::EPOCH);
    /// let left = frontier.host_reports(now).filter_map(|host| Some((host.time_left(Duration::from_secs(1), 1.0, now)?, host.host)));
    /// let last = left.max(); // None: nothing waits
    /// # assert_eq!(last, None);
    /// # Ok::<(), frontier::FrontierConfigError>(())
    /// ```
    pub fn host_reports(&self, now: Time) -> impl Iterator<Item = HostReport> {
        self.state.host_reports(now)
    }

    /// Returns what one host was asked, how politely, and what it does now; `None` if it is not remembered. Cost: a look at each lease; for
    /// a host on disk, a look there.
    pub fn host_report(&self, host: &HostKey, now: Time) -> Option<HostReport> {
        self.state.host_report(host, now)
    }

    /// Returns the hosts that rest, hang, are away or whose robots.txt fails, in no particular order. One that is asked may take longer: see
    /// [`host_reports`](Self::host_reports). Cost: a look at each host and each lease; these hosts are read if they lie on disk.
    pub fn held_up(&self, now: Time) -> Vec<HostReport> {
        self.state.held_up(now)
    }

    /// Returns how many hosts do what. Cost: a look at each host and each lease.
    pub fn hosts_by_health(&self, now: Time) -> BTreeMap<Health, u64> {
        self.state.hosts_by_health(now)
    }

    /// Returns a notice for each host of which a request hangs now, and none hung at `since`: the time of the last such call. Cost: a look
    /// at each lease.
    pub fn began_to_hang(&self, since: Time, now: Time) -> Vec<Notice> {
        self.state.began_to_hang(since, now)
    }

    /// Visits every entry that waits, until the visitor breaks: pages, the postponed ones included, retries, sitemaps, and robots.txt
    /// files that redirects led to. The order is none in particular.
    ///
    /// Cost: a copy of each entry, one after the other. The memory is that of one segment of a queue, about 4 KiB.
    ///
    /// # Errors
    ///
    /// [`FrontierError::NotRead`] if a part of a queue cannot be read. The visitor has met all others.
    pub fn visit_waiting(&self, visit: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<(), FrontierError> {
        self.state.visit_waiting(visit)
    }
}
