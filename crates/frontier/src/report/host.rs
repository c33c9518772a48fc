//! One host: what it was asked, and what it does at present.

use std::sync::Arc;
use std::time::Duration;

use crate::failure::{Failure, SILENT_PAGES};
use crate::policy::HostPolicy;
use crate::time::Time;
use crate::url::{HostKey, Origin};

/// The requests to one host, with their politeness.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct HostReport {
    /// The host.
    pub host: HostKey,
    /// Requests that have ended, those for robots.txt included.
    pub requests: u64,
    /// The delay that was owed to it.
    pub delay: Duration,
    /// The `Crawl-delay` of its robots.txt among that, up to [`PolitenessConfig::max_crawl_delay`](crate::PolitenessConfig::max_crawl_delay).
    pub crawl_delay: Duration,
    /// The shortest time between the end of a request and the start of the next that the frontier handed out.
    pub shortest_gap: Option<Duration>,
    /// When its robots.txt was read, or its rules were extended because it did not answer; the earliest time, if it has several
    /// origins. `None` if no rules are known.
    pub robots_at: Option<Time>,
    /// Entries that wait for it.
    pub queued: u64,
    /// How many of them wait behind all other pages of the crawl, because pages like them look alike.
    pub postponed: u64,
    /// Requests to it that are in flight.
    pub in_flight: u32,
    /// The most requests to it that may be in flight: [`PolitenessConfig::per_host`](crate::PolitenessConfig::per_host).
    pub per_host: u32,
    /// The most requests for one of its pages: [`RetryPolicy::max_attempts`](crate::RetryPolicy::max_attempts).
    pub max_attempts: u32,
    /// How many more pages may come that look alike, if some wait behind all other pages, or did: up to
    /// [`TrapConfig::max_near_duplicates_in_all`](crate::TrapConfig::max_near_duplicates_in_all).
    pub alike: u64,
    /// Whether the page budget of the crawl is spent: nothing that waits is asked for.
    pub is_budget_spent: bool,
    /// How many more of its pages may be fetched until all others are dropped:
    /// [`LimitConfig::max_pages_per_host`](crate::LimitConfig::max_pages_per_host). `None` without a limit.
    pub budget: Option<u64>,
    /// Whether it, or one of its ports, was away for too long and was given up.
    pub given_up: bool,
    /// What it is granted in particular.
    pub policy: HostPolicy,
    /// What it does at present.
    pub health: HostHealth,
}

impl HostReport {
    /// Whether all that waits for it waits behind all other pages of the crawl.
    pub fn is_behind(&self) -> bool {
        self.postponed > 0 && self.queued == self.postponed && self.in_flight == 0
    }

    /// Estimates how long what waits for the host takes, if each entry takes so many `requests`, one at least, and each of them `answer`: its
    /// rest first, then its delay and an answer for each, up to its [budget](Self::budget). One whose trouble [lasts](HostHealth::lasts) takes until it is
    /// given up. What else goes wrong, but a rest, continues for as long again, but not after that. All that may come that looks [alike](Self::alike) counts.
    /// `None` if nothing waits or is in flight, or the page budget is spent.
    pub fn time_left(&self, answer: Duration, requests: f64, now: Time) -> Option<Duration> {
        let waiting = self.queued + u64::from(self.in_flight);
        // What waits although the budget is spent does not count for it.
        let waiting = waiting.min(self.budget.filter(|left| *left > 0).unwrap_or(u64::MAX));
        let health = &self.health;
        let rest = health.until.map_or(Duration::ZERO, |until| until.since(now));
        // How long silent pages take is known from them, how long a host rests from its answer, and a closing is over once it is asked.
        let since = health
            .since
            .filter(|_| !health.pages_hang() && !matches!(health.state, Health::Resting | Health::Closed));
        let lasted = since.map_or(Duration::ZERO, |since| now.since(since));
        let end = health.given_up_at.map_or(Duration::MAX, |end| end.since(now));
        let rest = rest.max(if health.lasts() { end } else { lasted });
        let each = self.delay.max(self.delay.saturating_add(answer) / self.per_host.max(1));
        let all = each.saturating_mul((waiting.max(self.alike) as f64 * requests.max(1.0)) as u32);
        (waiting > 0 && !self.is_budget_spent).then(|| rest.saturating_add(all).min(end))
    }
}

/// What a host does at present, in one word. The greater one is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Health {
    /// It is asked, as fast as it may be.
    #[default]
    Asked,
    /// It rests, because it throttled (429, or 503 with `Retry-After`) or is [blocked](crate::HostPolicy::closed_until).
    Resting,
    /// Its robots.txt fails, and is asked for again before anything else.
    RobotsFailing,
    /// Requests get no whole answer, or one is in flight for [ten seconds](Self::HANGING) or longer.
    Hanging,
    /// No request reaches it: it is probed.
    Away,
    /// Its robots.txt could not be fetched: nothing of it is fetched for a while.
    Closed,
    /// It was away for too long, or throttled too often.
    GivenUp,
}

impl Health {
    /// How long a request is in flight until it hangs. If your timeout is not longer, none does: it fails.
    pub const HANGING: Duration = Duration::from_secs(10);

    /// All of them, the best first.
    #[rustfmt::skip]
    pub const ALL: [Self; 7] = [Self::Asked, Self::Resting, Self::RobotsFailing, Self::Hanging, Self::Away, Self::Closed, Self::GivenUp];

    /// Returns the name as one word in snake case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Resting => "resting",
            Self::RobotsFailing => "robots_failing",
            Self::Hanging => "hanging",
            Self::Away => "away",
            Self::Closed => "closed",
            Self::GivenUp => "given_up",
        }
    }
}

/// What a host does at present. If it has several origins, the worst for which something waits decides.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct HostHealth {
    /// In one word.
    pub state: Health,
    /// The origin that decides; `None` if it has none yet.
    pub origin: Option<Origin>,
    /// Since when. `None` for a host that is asked.
    pub since: Option<Time>,
    /// When it is asked next; `None` if that is now, never, or once a request in flight has ended.
    pub until: Option<Time>,
    /// When it is given up if this continues, or closed because its robots.txt fails, once its last request has ended: what waits for it is
    /// lost then. `None` if that is not to come.
    pub given_up_at: Option<Time>,
    /// What went wrong last; `None` if nothing did, or a first request hangs.
    pub cause: Option<Arc<Failure>>,
    /// What the last `Retry-After` of a host that rests asked for. Its rests grow all the same if it throttles again and again.
    pub asked_for: Option<Duration>,
    /// How often in a row it throttled, failed or was silent.
    pub times: u32,
}

impl HostHealth {
    /// Whether its trouble is taken to last until it is given up: it went wrong twice in a row, or the host asked for a longer rest.
    pub fn lasts(&self) -> bool {
        let rests_until = self
            .asked_for
            .zip(self.since)
            .map(|(asked_for, since)| since + asked_for);
        self.given_up_at.is_some() && (self.times > 1 || rests_until > self.given_up_at)
    }

    /// Whether its last pages got no whole answer, though the probe after the third did: so will the others, and it may
    /// [never be given up](crate::failure#outages).
    pub fn pages_hang(&self) -> bool {
        self.state == Health::Hanging && self.times > SILENT_PAGES as u32
    }
}
