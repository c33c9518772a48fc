//! Helpers of the frontier's tests: times, links, and short ways to lease and settle.

use std::sync::Arc;
use std::time::Duration;

use super::frontier::{
    CanonicalUrl, Canonicalizer, Failure, FailureKind, Fingerprint, Frontier, FrontierConfig, FrontierError, HostKey,
    HostPolicy, Lease, Leasing, Link, Notice, Origin, Outcome, PolitenessConfig, Purpose, Reach, RetryPolicy,
    RobotsRules, ScopeConfig, SeenSetConfig, Settled, Settlement, Time, Verdict,
};

pub(crate) const START: Time = Time::from_millis(1_700_000_000_000);

/// The time at a number of seconds after the start.
pub(crate) fn at(seconds: impl Into<f64>) -> Time {
    START + Duration::from_secs_f64(seconds.into())
}

/// Seconds since the start.
pub(crate) fn seconds(time: Time) -> f64 {
    time.since(START).as_secs_f64()
}

pub(crate) fn url(text: &str) -> CanonicalUrl {
    Canonicalizer::default().parse(text).unwrap()
}

pub(crate) fn origin(text: &str) -> Origin {
    url(text).origin()
}

pub(crate) fn link(text: &str) -> Link {
    Link::found(url(text), 1, "https://a.example/".into())
}

pub(crate) fn links(urls: &[&str]) -> Vec<Link> {
    urls.iter().map(|text| link(text)).collect()
}

/// Numbered pages with a common prefix.
pub(crate) fn pages(prefix: &str, count: usize) -> Vec<Link> {
    (0..count).map(|n| link(&format!("{prefix}{n}"))).collect()
}

/// Everything may be crawled, without delay, robots.txt and jitter. The seen-set is exact.
pub(crate) fn config() -> FrontierConfig {
    FrontierConfig {
        scope: ScopeConfig {
            reach: Reach::Any,
            ..ScopeConfig::default()
        },
        retries: RetryPolicy {
            retry_jitter: 0,
            ..RetryPolicy::default()
        },
        seen_set: SeenSetConfig {
            exact: true,
            capacity: 100,
            on_saturation: sieve::OnSaturation::Warn,
            hash: sieve::Hashing::Murmur3 { seed: 7 },
            ..SeenSetConfig::default()
        },
        politeness: PolitenessConfig {
            delay: Duration::ZERO,
            ask_robots: false,
            ..PolitenessConfig::default()
        },
        ..FrontierConfig::default()
    }
}

/// As [`config`], with or without robots.txt.
pub(crate) fn asking(ask_robots: bool) -> FrontierConfig {
    FrontierConfig {
        politeness: PolitenessConfig {
            ask_robots,
            ..config().politeness
        },
        ..config()
    }
}

pub(crate) fn frontier(config: FrontierConfig) -> Frontier {
    Frontier::in_memory(config).unwrap()
}

/// A frontier with some pages.
pub(crate) fn with_pages(config: FrontierConfig, pages: &[Link]) -> Frontier {
    let mut frontier = frontier(config);
    let verdicts = frontier.offer(pages, START).unwrap();
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Queued));
    frontier
}

pub(crate) fn offer(frontier: &mut Frontier, urls: &[&str], now: Time) -> Vec<Verdict> {
    frontier.offer(&links(urls), now).unwrap()
}

#[track_caller]
pub(crate) fn ready(frontier: &mut Frontier, now: Time) -> Vec<Lease> {
    match frontier.lease(now, 100).unwrap() {
        Leasing::Ready(leases) => leases,
        other => panic!("something should be ready, not {other:?}"),
    }
}

/// The one lease that is ready.
#[track_caller]
pub(crate) fn only(frontier: &mut Frontier, now: Time) -> Lease {
    let mut leases = ready(frontier, now);
    assert_eq!(leases.len(), 1, "{leases:?}");
    leases.remove(0)
}

/// The first lease that is ready.
#[track_caller]
pub(crate) fn one(frontier: &mut Frontier, now: Time) -> Lease {
    match frontier.lease(now, 1).unwrap() {
        Leasing::Ready(mut leases) => leases.remove(0),
        other => panic!("something should be ready, not {other:?}"),
    }
}

/// The next lease, after waiting for it.
#[track_caller]
pub(crate) fn next(frontier: &mut Frontier, now: &mut Time) -> Lease {
    loop {
        match frontier.lease(*now, 1).unwrap() {
            Leasing::Ready(mut leases) => return leases.remove(0),
            Leasing::NotUntil(time) => *now = time,
            other => panic!("something should be ready, not {other:?}"),
        }
    }
}

/// The end of a page or a sitemap.
pub(crate) fn end(lease: &Lease, outcome: Outcome) -> Settlement {
    let is_page = matches!(lease.entry.purpose, Purpose::Page | Purpose::Sitemap(_));
    assert!(is_page, "{lease:?} is no page");
    lease.settle(outcome)
}

pub(crate) fn settle(frontier: &mut Frontier, lease: &Lease, outcome: Outcome, now: Time) -> Settled {
    commit(frontier, end(lease, outcome), now)
}

pub(crate) fn commit(frontier: &mut Frontier, settlement: Settlement, now: Time) -> Settled {
    frontier.settle(&[settlement], now).unwrap().remove(0)
}

/// Settles a request for a robots.txt that brings no rules.
pub(crate) fn answer(frontier: &mut Frontier, lease: &Lease, outcome: Outcome, now: Time) -> Settled {
    assert!(is_robots(lease), "{lease:?} asks for no robots.txt");
    commit(frontier, lease.settle(outcome), now)
}

/// Settles a request for a robots.txt by its rules.
pub(crate) fn give_rules(
    frontier: &mut Frontier,
    lease: &Lease,
    rules: impl RobotsRules + 'static,
    now: Time,
) -> Settled {
    assert!(is_robots(lease), "{lease:?} asks for no robots.txt");
    commit(frontier, lease.settle(Outcome::Done).with_rules(rules), now)
}

/// Settles a request for a robots.txt by rules without any effect, which are valid for some time.
pub(crate) fn allow_for(frontier: &mut Frontier, lease: &Lease, lifetime: Duration, now: Time) -> Settled {
    assert!(is_robots(lease), "{lease:?} asks for no robots.txt");
    let known = lease.settle(Outcome::Done).with_rules(Forbid::nothing());
    commit(frontier, known.valid_for(lifetime), now)
}

/// Settles a request for a robots.txt that is redirected.
pub(crate) fn redirect(frontier: &mut Frontier, lease: &Lease, to: &str, now: Time) -> Settled {
    assert!(is_robots(lease), "{lease:?} asks for no robots.txt");
    let target = lease.entry.redirected(url(to));
    commit(
        frontier,
        lease.settle(Outcome::Redirected).with_links(vec![target]),
        now,
    )
}

/// A request that fails.
pub(crate) fn failing(kind: FailureKind) -> Outcome {
    Outcome::failed(failure(kind))
}

pub(crate) fn failure(kind: FailureKind) -> Failure {
    Failure::new(kind, format!("it is {kind}"))
}

pub(crate) fn is_robots(lease: &Lease) -> bool {
    matches!(lease.entry.purpose, Purpose::Robots(_))
}

/// The fingerprint of a page with its own bytes, and nearly the same text as all others.
pub(crate) fn alike(lease: &Lease) -> Fingerprint {
    Fingerprint::new(Some(u128::from(lease.id.as_u64()).into()), Some(0xABCD.into()))
}

/// Names the notices, each by one word.
pub(crate) fn names(notices: &[Notice]) -> Vec<&'static str> {
    let name = |notice: &Notice| match notice {
        Notice::Away { .. } => "away",
        Notice::Back { .. } => "back",
        Notice::Throttled { .. } => "throttled",
        Notice::RobotsFailing { .. } => "robots failing",
        Notice::Hanging { .. } => "hanging",
        Notice::GivenUp { .. } => "given up",
        Notice::Closed { .. } => "closed",
        Notice::RulesExtended { .. } => "extended",
        Notice::Postponed { .. } => "postponed",
        Notice::PrefixClosed { .. } => "prefix closed",
        _ => "unknown",
    };
    notices.iter().map(name).collect()
}

/// Rules that forbid what begins with a path, and may ask for a delay and take memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Forbid {
    /// The path, and a delay in milliseconds behind a space.
    pub(crate) text: String,
    pub(crate) delay: Option<Duration>,
    pub(crate) bytes: usize,
}

impl Forbid {
    pub(crate) fn nothing() -> Self {
        Self::below("nothing begins with this")
    }

    pub(crate) fn below(text: &str) -> Self {
        let millis = text.split_once(' ').and_then(|(_, millis)| millis.parse().ok());
        Self {
            text: text.to_owned(),
            delay: millis.map(Duration::from_millis),
            bytes: 0,
        }
    }
}

impl RobotsRules for Forbid {
    fn allows(&self, path: &str) -> bool {
        !path.starts_with(self.text.split(' ').next().unwrap_or_default())
    }

    fn crawl_delay(&self) -> Option<Duration> {
        self.delay
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn text(&self) -> Option<&[u8]> {
        Some(self.text.as_bytes())
    }
}

/// Makes the rules of a text that a frontier has stored.
#[cfg_attr(not(feature = "durable"), allow(dead_code, reason = "only a directory stores rules"))]
pub(crate) fn parse(text: &[u8]) -> Arc<dyn RobotsRules> {
    Arc::new(Forbid::below(&String::from_utf8_lossy(text)))
}

/// Short ways to change the policy of a host.
pub(crate) trait Orders {
    /// Changes what was set for a host.
    fn order(&mut self, host: &HostKey, change: impl FnOnce(&mut HostPolicy), now: Time) -> Result<(), FrontierError>;

    /// Sets its delay; zero for that of all hosts.
    fn set_delay(&mut self, host: &HostKey, delay: Duration, now: Time) -> Result<(), FrontierError> {
        self.order(
            host,
            |policy| policy.delay = Some(delay).filter(|delay| !delay.is_zero()),
            now,
        )
    }

    /// Lets it rest until a time.
    fn block(&mut self, host: &HostKey, until: Time, now: Time) -> Result<(), FrontierError> {
        self.order(host, |policy| policy.closed_until = Some(until), now)
    }
}

impl Orders for Frontier {
    fn order(&mut self, host: &HostKey, change: impl FnOnce(&mut HostPolicy), now: Time) -> Result<(), FrontierError> {
        let mut policy = self.policy(host);
        change(&mut policy);
        self.set_policy(host, &policy, now)
    }
}
