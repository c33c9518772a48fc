//! How fresh the pages are, by the sample of the [`Planner`].

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Planner, millis};
use crate::time::Time;
use crate::url::HostKey;

/// The most hosts that are named.
const STALEST: usize = 5;

/// How fresh the pages are that were fetched, by a sample of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FreshnessReport {
    /// The share of pages that have not changed since their last visit, by their importance: Σ w·e^(−d·t) / Σ w.
    pub fresh: f64,
    /// The standard deviation of that, if the rates are right.
    pub spread: f64,
    /// The age of the page that was visited longest ago.
    pub oldest: Duration,
    /// The age at which each page is visited: [`FreshnessConfig::max_age`](crate::FreshnessConfig::max_age), or the one that the budget can meet.
    pub max_age: Duration,
    /// The hosts with the most pages that have changed since, by their importance: at most five.
    pub stalest: Vec<HostFreshness>,
}

/// How fresh the pages of a host are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostFreshness {
    /// The host.
    pub host: HostKey,
    /// As [`FreshnessReport::fresh`].
    pub fresh: f64,
}

impl Planner {
    /// What the sample says of all pages.
    pub(in crate::durable) fn report(&self, now: Time) -> FreshnessReport {
        let mut report = FreshnessReport::default();
        let (mut all, mut spread) = (0.0, 0.0);
        let mut hosts = HashMap::<&HostKey, (f64, f64)>::new();
        for one in self.sample.values() {
            let (weight, age) = (one.page.importance, millis(now.since(one.last)));
            let fresh = one.page.fresh_at(age);
            all += weight;
            report.fresh += weight * fresh;
            let of_host = hosts.entry(&one.host).or_default();
            *of_host = (of_host.0 + weight, of_host.1 + weight * fresh);
            spread += weight * weight * fresh * (1.0 - fresh);
            report.oldest = report.oldest.max(now.since(one.last));
        }
        if all > 0.0 {
            report.fresh /= all;
            report.spread = spread.sqrt() / all;
        }
        let longest = self.hosts.values().map(|plan| plan.max_age);
        report.max_age = Duration::from_millis(longest.fold(self.all.max_age, f64::max) as u64);
        let mut hosts: Vec<_> = hosts.into_iter().collect();
        let stale = |(_, (all, fresh)): &(&HostKey, (f64, f64))| all - fresh;
        hosts.sort_unstable_by(|one, other| stale(other).total_cmp(&stale(one)).then(one.0.cmp(other.0)));
        let worst = hosts.into_iter().take(STALEST);
        report.stalest = worst
            .map(|(host, (all, fresh))| HostFreshness {
                host: host.clone(),
                fresh: fresh / all,
            })
            .collect();
        report
    }
}
