//! What the robots.txt of an origin allows: a small trait, how long its answer holds, and how much of it is kept.
//!
//! Parsing is the fetching side's business. The frontier keeps the rules beside the queue of their origin, asks them before it
//! hands a URL out, and asks for robots.txt again when they expire.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::failure::Failure;
use crate::lease::NotFetched;
use crate::time::Time;

/// How long a robots.txt holds before it is asked for again (RFC 9309, section 2.4).
pub const ROBOTS_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// How long nothing of an origin is fetched whose robots.txt could not be fetched (RFC 9309, section 2.3.1.4), the first time; then
/// it is asked for again. Each further time in a row is twice as long, up to the lifetime of a robots.txt.
pub const FIRST_CLOSING: Duration = Duration::from_secs(10 * 60);

/// How long expired rules are extended when their robots.txt cannot be fetched (RFC 9309, section 2.4), the first time. Each further
/// time in a row is twice as long, up to the lifetime of a robots.txt.
pub const RULES_EXTENSION: Duration = Duration::from_secs(60 * 60);

/// How many redirects of a robots.txt are followed (RFC 9309, section 2.3.1.2).
pub const MAX_ROBOTS_REDIRECTS: u8 = 5;

/// The most bytes of rules that are kept at a time, by the word of [`RobotsRules::bytes`]. A site with a wildcard in its DNS can
/// have any number of hosts, each with half a megabyte. Beyond, the oldest are dropped and asked for again.
pub const MAX_RULES_BYTES: usize = 64 * 1024 * 1024;

/// The rules of one robots.txt that apply to one crawler.
///
/// ```
/// use frontier::RobotsRules;
///
/// /// Forbids one directory.
/// #[derive(Debug)]
/// struct NotBelow(&'static str);
///
/// impl RobotsRules for NotBelow {
///     fn allows(&self, path: &str) -> bool {
///         !path.starts_with(self.0)
///     }
/// }
/// assert!(!NotBelow("/private/").allows("/private/a?b=c"));
/// ```
pub trait RobotsRules: fmt::Debug + Send + Sync {
    /// Says whether a URL of the origin may be fetched, by its path and query, as in `/a/b?c=d`.
    fn allows(&self, path: &str) -> bool;

    /// Returns the delay between two requests that the file asks for, if it does. The longest of a host's origins holds, up to
    /// [`max_crawl_delay`](crate::FrontierConfig::max_crawl_delay).
    fn crawl_delay(&self) -> Option<Duration> {
        None
    }

    /// Returns about how many bytes of memory the rules take, for the bound of all of them together. By default what the value
    /// itself takes; count what it points to as well.
    fn bytes(&self) -> usize {
        // Two counts stand before it where it is shared.
        size_of_val(self) + 2 * size_of::<usize>()
    }
}

/// What holds for an origin.
#[derive(Debug, Clone)]
pub(crate) enum Policy {
    /// Everything may be fetched: it has no robots.txt (RFC 9309, section 2.3.1.3).
    AllowAll,
    /// Its robots.txt decides.
    Rules(Arc<dyn RobotsRules>),
    /// Nothing may be fetched.
    Closed(NotFetched, Option<Arc<Failure>>),
}

impl Policy {
    /// Says why a URL may not be fetched, by its path and query.
    pub(crate) fn forbids(&self, path: &str) -> Option<NotFetched> {
        match self {
            Self::AllowAll => None,
            Self::Rules(rules) => (!rules.allows(path)).then_some(NotFetched::RobotsForbid),
            Self::Closed(why, _) => Some(*why),
        }
    }

    /// Returns what went wrong where an origin is closed.
    pub(crate) fn cause(&self) -> Option<Arc<Failure>> {
        match self {
            Self::Closed(_, cause) => cause.clone(),
            Self::AllowAll | Self::Rules(_) => None,
        }
    }

    pub(crate) fn crawl_delay(&self) -> Duration {
        match self {
            Self::Rules(rules) => rules.crawl_delay().unwrap_or_default(),
            Self::AllowAll | Self::Closed(..) => Duration::ZERO,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Rules(rules) => rules.bytes(),
            Self::AllowAll | Self::Closed(..) => 0,
        }
    }
}

/// A policy, and how long it holds.
#[derive(Debug, Clone)]
pub(crate) struct KnownRules {
    pub(crate) policy: Policy,
    pub(crate) since: Time,
    pub(crate) until: Time,
}

/// Returns what holds for an origin whose robots.txt could not be fetched, and for how long: its last rules, or nothing.
pub(crate) fn without_robots(known: Option<&KnownRules>, cause: Arc<Failure>) -> (Policy, Duration) {
    let closed = Policy::Closed(NotFetched::RobotsUnreachable, Some(cause));
    let Some(known) = known else {
        return (closed, FIRST_CLOSING);
    };
    // It grows, so that in the end it is longer than any delay between two requests to the host.
    let span = known.until.since(known.since);
    let longer = span.saturating_mul(2).min(ROBOTS_LIFETIME);
    match &known.policy {
        Policy::AllowAll | Policy::Rules(_) if span < ROBOTS_LIFETIME => (known.policy.clone(), longer),
        Policy::AllowAll | Policy::Rules(_) => (known.policy.clone(), RULES_EXTENSION),
        Policy::Closed(NotFetched::RobotsUnreachable, _) => (closed, longer),
        Policy::Closed(..) => (closed, FIRST_CLOSING),
    }
}
