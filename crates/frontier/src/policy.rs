//! What one host is granted, beside what the crawl grants each; and what is ordered for the whole crawl while it runs.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::time::Time;

/// What one host is granted. What is `None` is as for all hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostPolicy {
    /// Its delay, shorter ones too; a longer `Crawl-delay` holds all the same. See [`PolitenessConfig::delay`](crate::PolitenessConfig::delay): with
    /// `per_address`, the stricter of both holds.
    pub delay: Option<Duration>,
    /// The longest `Crawl-delay` that is obeyed.
    pub max_crawl_delay: Option<Duration>,
    /// Requests that may be in flight to it.
    pub per_host: Option<NonZeroU32>,
    /// Pages to fetch of it: see [`LimitConfig::max_pages_per_host`](crate::LimitConfig::max_pages_per_host).
    pub max_pages: Option<u64>,
    /// The class of its links that neither have one nor match a [rule](crate::OrderRule).
    pub class: Option<Class>,
    /// Whether nothing of it is fetched: its links are refused ([`Refusal::ByOrder`](crate::Refusal::ByOrder)), and what waits is dropped.
    pub closed: Option<bool>,
    /// Nothing of it is requested before this time, and what waits stays.
    pub closed_until: Option<Time>,
}

/// A pattern names no hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no host: write one, such as example.com, or *.example.com for its subdomains")]
pub struct NoHosts(String);

impl HostPolicy {
    pub(crate) const NONE: Self = Self {
        delay: None,
        max_crawl_delay: None,
        per_host: None,
        max_pages: None,
        class: None,
        closed: None,
        closed_until: None,
    };

    /// Returns the usual spelling of a pattern of hosts, as [`FrontierConfig::hosts`](crate::FrontierConfig::hosts) has them.
    ///
    /// # Errors
    ///
    /// When it names none.
    pub fn pattern(text: &str) -> Result<String, NoHosts> {
        let (star, name) = match text.strip_prefix("*.") {
            Some(name) => ("*.", name),
            None => ("", text),
        };
        let host = url::Host::parse(name.trim_end_matches('.')).ok();
        let is_meant = |host: &url::Host| match host {
            url::Host::Domain(name) => !name.contains('*') && !name.split('.').any(str::is_empty),
            _ => star.is_empty(),
        };
        let host = host.filter(is_meant);
        host.map(|host| format!("{star}{host}"))
            .ok_or_else(|| NoHosts(text.to_owned()))
    }

    /// Returns what this one says, and where it says nothing, what `other` says.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            delay: self.delay.or(other.delay),
            max_crawl_delay: self.max_crawl_delay.or(other.max_crawl_delay),
            per_host: self.per_host.or(other.per_host),
            max_pages: self.max_pages.or(other.max_pages),
            class: self.class.or(other.class),
            closed: self.closed.or(other.closed),
            closed_until: self.closed_until.or(other.closed_until),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed == Some(true)
    }
}

/// What is ordered for the whole crawl: it counts before the configuration, also in later runs. What is `None` is as there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrawlPolicy {
    /// [`PolitenessConfig::delay`](crate::PolitenessConfig::delay).
    pub delay: Option<Duration>,
    /// [`LimitConfig::max_pages`](crate::LimitConfig::max_pages).
    pub max_pages: Option<u64>,
    /// [`LimitConfig::max_pages_per_host`](crate::LimitConfig::max_pages_per_host).
    pub max_pages_per_host: Option<u64>,
    /// [`ScopeConfig::max_depth`](crate::ScopeConfig::max_depth).
    pub max_depth: Option<u32>,
    /// [`ScopeConfig::include`](crate::ScopeConfig::include).
    pub include: Option<Vec<String>>,
    /// [`ScopeConfig::exclude`](crate::ScopeConfig::exclude).
    pub exclude: Option<Vec<String>>,
    /// [`FreshnessConfig::revisit_share`](crate::FreshnessConfig::revisit_share).
    pub revisit_share: Option<f64>,
    /// [`FreshnessConfig::min_age`](crate::FreshnessConfig::min_age).
    pub min_age: Option<Duration>,
    /// [`FreshnessConfig::max_age`](crate::FreshnessConfig::max_age).
    pub max_age: Option<Duration>,
    /// Regular expressions that are searched in the key of a link: what matches one is refused, and dropped at its turn if it waits.
    pub dropped: Vec<String>,
}

/// The policies of the configuration, by host or `*.` and the end of hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies(BTreeMap<String, HostPolicy>);

impl Policies {
    pub(crate) fn new(patterns: &BTreeMap<String, HostPolicy>) -> Result<Self, NoHosts> {
        let mut policies = BTreeMap::<_, HostPolicy>::new();
        for (pattern, policy) in patterns {
            let of_host = policies.entry(HostPolicy::pattern(pattern)?).or_default();
            *of_host = std::mem::take(of_host).or(policy.clone());
        }
        Ok(Self(policies))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the policy of a host: of each field, the most specific pattern that has it counts.
    pub(crate) fn of(&self, host: &str) -> HostPolicy {
        if self.is_empty() {
            return HostPolicy::default();
        }
        let mut policy = self.0.get(host).cloned().unwrap_or_default();
        let mut rest = host;
        while let Some((_, parent)) = rest.split_once('.') {
            if let Some(of_parent) = self.0.get(&format!("*.{parent}")) {
                policy = policy.or(of_parent.clone());
            }
            rest = parent;
        }
        policy
    }
}

/// The policy of one host that has some.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ResolvedPolicy {
    /// What was set for it while the crawl ran.
    pub(crate) own: HostPolicy,
    /// With that of the configuration.
    pub(crate) all: HostPolicy,
}
