//! The rules of robots.txt: a small trait, their lifetimes, and the bound of their memory.
//!
//! The fetching side parses robots.txt. The frontier stores the rules with the queue of their origin and checks them before it
//! leases a URL. When they expire, it leases the robots.txt again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::failure::Failure;
use crate::lease::NotFetched;
use crate::time::Time;

/// How long a robots.txt is valid before it is fetched again (RFC 9309, section 2.4).
pub const ROBOTS_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// How long an origin is closed after its robots.txt could not be fetched (RFC 9309, section 2.3.1.4). Then the robots.txt is fetched
/// again. Each further time in a row is twice as long, up to the lifetime of a robots.txt.
pub const FIRST_CLOSING: Duration = Duration::from_secs(10 * 60);

/// How long expired rules are extended if their robots.txt cannot be fetched (RFC 9309, section 2.4). Each further time in a row is
/// twice as long, up to the lifetime of a robots.txt.
pub const RULES_EXTENSION: Duration = Duration::from_secs(60 * 60);

/// The redirects of a robots.txt that are followed (RFC 9309, section 2.3.1.2).
pub const MAX_ROBOTS_REDIRECTS: u8 = 5;

/// The maximum size of all rules in memory, in bytes, as [`RobotsRules::bytes`] reports it.
///
/// A site with a wildcard in its DNS can have any number of hosts, each with rules of half a megabyte. Beyond this size, the oldest
/// rules are dropped; they are fetched again when they are needed.
pub const MAX_RULES_BYTES: usize = 64 * 1024 * 1024;

/// The rules of one robots.txt that apply to one crawler. `RobotsTxt` of the crate `crawl-page` implements it. To use another parser:
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
    /// Whether a URL of the origin may be fetched, given its path and query, as in `/a/b?c=d`.
    fn allows(&self, path: &str) -> bool;

    /// Returns the `Crawl-delay` of the file, if any. For a host, the longest delay of its origins applies, up to
    /// [`max_crawl_delay`](crate::PolitenessConfig::max_crawl_delay).
    fn crawl_delay(&self) -> Option<Duration> {
        None
    }

    /// Returns about how many bytes of memory the rules take. [`MAX_RULES_BYTES`] bounds the sum. The default is the size of the value
    /// itself; if it owns heap memory, add that: of a parser that does not say, twice the length of the text.
    fn bytes(&self) -> usize {
        // An `Arc` has two counts in front of the value.
        size_of_val(self) + 2 * size_of::<usize>()
    }

    /// Returns the text that a durable frontier stores, from which its [`ParseRules`] makes equal rules after a restart. The default is
    /// `None`: such rules cannot be settled in a durable frontier.
    fn text(&self) -> Option<&[u8]> {
        None
    }
}

/// Makes rules of a text that [`RobotsRules::text`] returned.
pub type ParseRules = Arc<dyn Fn(&[u8]) -> Arc<dyn RobotsRules> + Send + Sync>;

/// Rules that were read from a store, and that nobody has parsed yet.
#[derive(Debug)]
struct StoredRules(Vec<u8>);

impl RobotsRules for StoredRules {
    fn allows(&self, _path: &str) -> bool {
        false
    }

    fn text(&self) -> Option<&[u8]> {
        Some(&self.0)
    }
}

/// Rules as they are stored: by their text.
pub(crate) mod stored_rules {
    use std::sync::Arc;

    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{RobotsRules, StoredRules};

    pub(crate) fn of_text(text: Vec<u8>) -> Arc<dyn RobotsRules> {
        Arc::new(StoredRules(text))
    }

    pub(crate) fn serialize<S: Serializer>(rules: &Arc<dyn RobotsRules>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(rules.text().unwrap_or_default())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<dyn RobotsRules>, D::Error> {
        let text = serde_bytes::ByteBuf::deserialize(deserializer)?;
        Ok(of_text(text.into_vec()))
    }
}

/// What applies to an origin.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) enum Policy {
    /// Everything may be fetched: there is no robots.txt (RFC 9309, section 2.3.1.3).
    AllowAll,
    /// The robots.txt decides.
    Rules(#[serde(with = "stored_rules")] Arc<dyn RobotsRules>),
    /// Nothing may be fetched.
    Closed(NotFetched, Option<Arc<Failure>>),
}

impl Policy {
    /// Parses the rules that were read from a store.
    pub(crate) fn parse(&mut self, parse: &ParseRules) {
        if let Self::Rules(rules) = self
            && let Some(text) = rules.text()
        {
            *rules = parse(text);
        }
    }

    /// Why a path is not fetched, and the failure that is to blame.
    pub(crate) fn forbids(&self, path: &str) -> Option<(NotFetched, Option<Arc<Failure>>)> {
        match self {
            Self::AllowAll => None,
            Self::Rules(rules) => (!rules.allows(path)).then_some((NotFetched::RobotsForbid, None)),
            Self::Closed(why, cause) => Some((*why, cause.clone())),
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

/// A policy, and how long it is valid.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct KnownRules {
    pub(crate) policy: Policy,
    pub(crate) since: Time,
    pub(crate) until: Time,
}

/// Returns the policy for an origin whose robots.txt could not be fetched, and how long it is valid: the last rules, or closed.
pub(crate) fn without_robots(known: Option<&KnownRules>, cause: Arc<Failure>) -> (Policy, Duration) {
    let closed = Policy::Closed(NotFetched::RobotsUnreachable, Some(cause));
    let Some(known) = known else {
        return (closed, FIRST_CLOSING);
    };
    // It grows until it is longer than any delay between two requests to the host.
    let span = known.until.since(known.since);
    let longer = span.saturating_mul(2).min(ROBOTS_LIFETIME);
    match &known.policy {
        Policy::AllowAll | Policy::Rules(_) if span < ROBOTS_LIFETIME => (known.policy.clone(), longer),
        Policy::AllowAll | Policy::Rules(_) => (known.policy.clone(), RULES_EXTENSION),
        Policy::Closed(NotFetched::RobotsUnreachable, _) => (closed, longer),
        Policy::Closed(..) => (closed, FIRST_CLOSING),
    }
}
