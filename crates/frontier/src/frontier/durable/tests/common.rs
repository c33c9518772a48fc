//! What the random calls need, as the folder `tests/it/common` has it.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{FrontierConfig, RetryPolicy};
use crate::rules::RobotsRules;
use crate::scope::{Reach, ScopeConfig};
use crate::url::CanonicalUrl;
use crate::{Canonicalizer, Failure, FailureKind, Frontier, Time};

pub(crate) const START: Time = Time::from_millis(1_700_000_000_000);

pub(crate) fn url(text: &str) -> CanonicalUrl {
    Canonicalizer::default().parse(text).unwrap()
}

pub(crate) fn config() -> FrontierConfig {
    FrontierConfig {
        exact: true,
        capacity: 100,
        hashing: sieve::Hashing::Murmur3 { seed: 7 },
        delay: Duration::ZERO,
        ask_robots: false,
        scope: ScopeConfig {
            reach: Reach::Any,
            ..ScopeConfig::default()
        },
        retries: RetryPolicy {
            jitter_percent: 0,
            ..RetryPolicy::default()
        },
        ..FrontierConfig::default()
    }
}

pub(crate) fn frontier(config: FrontierConfig) -> Frontier {
    Frontier::in_memory(config).unwrap()
}

pub(crate) fn failure(kind: FailureKind) -> Failure {
    Failure::new(kind, format!("it is {kind}"))
}

/// Rules that forbid what begins with a path, with a delay in milliseconds behind a space.
#[derive(Debug, Clone)]
pub(crate) struct Forbid(String);

impl Forbid {
    pub(crate) fn nothing() -> Self {
        Self::below("nothing begins with this")
    }

    pub(crate) fn below(path: &str) -> Self {
        Self(path.to_owned())
    }
}

impl RobotsRules for Forbid {
    fn allows(&self, path: &str) -> bool {
        !path.starts_with(self.0.split(' ').next().unwrap_or_default())
    }

    fn crawl_delay(&self) -> Option<Duration> {
        let (_, millis) = self.0.split_once(' ')?;
        Some(Duration::from_millis(millis.parse().ok()?))
    }

    fn text(&self) -> Option<&[u8]> {
        Some(self.0.as_bytes())
    }
}

pub(crate) fn parse(text: &[u8]) -> Arc<dyn RobotsRules> {
    Arc::new(Forbid(String::from_utf8_lossy(text).into_owned()))
}
