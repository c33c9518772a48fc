//! When a page is worth another visit.
//!
//! A page of importance `w` that changes at rate `d` (a Poisson process) is fresh with the chance e^(−d·t) at age `t`. Its **crawl value**
//! is `V(t) = w/d · (1 − (1 + d·t)·e^(−d·t))`: what a visit then adds to the share of time in which the copy is right. For a budget of visits it is optimal
//! to visit each page when its value reaches one threshold (Azar et al., "Tractable near-optimal policies for crawling", PNAS 2018; Kolobov et al., NeurIPS
//! 2019). So a visit sets the next: at the age at which the value has that threshold.
//!
//! The rate is learned from what each visit saw, and intervals differ: see [`Observed::rate`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::class::Class;

/// No sitemap is read again sooner.
const SHORTEST_OF_SITEMAPS: Duration = Duration::from_secs(60);

/// A page that was never fetched is asked again after this time, and an origin that was given up, doubling to a day.
pub(crate) const SHORTEST_REST: Duration = Duration::from_secs(3600);
pub(crate) const LONGEST_REST: Duration = Duration::from_secs(24 * 3600);

/// One visit that saw a change, in the unit of [`Observed::changes`].
const ONE: u32 = 10_000;

/// A tenth of what was seen is forgotten with each change that was to be expected, as rates change, and at least a hundredth with each visit. Otherwise
/// visits that are more frequent than changes would forget all changes.
const FORGOTTEN: u64 = 10;
const LEAST_EXPECTED: u64 = (ONE / 10) as u64;

/// Before the first visits a page is taken to change once in 20 days, and then as others do: the logarithm of that rate, per millisecond.
pub(crate) const USUAL: f64 = -21.27;

/// The standard deviation of the logarithm of the rates of pages.
const SPREAD: f64 = 2.0;

/// How pages are kept fresh: each is visited again when that is worth most, within what politeness and this allow. A part of [`FrontierConfig`](crate::FrontierConfig).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FreshnessConfig {
    /// Whether pages get a time of their next visit as they end: [`Refetch::Due`](crate::Refetch::Due) queues them then. By default they do not.
    /// A change counts for pages that have ended before, too. Without a directory it has no effect.
    pub keeps_fresh: bool,
    /// Of the requests that politeness allows a host, the share that may be revisits: by default a tenth. While new pages wait it is at most a quarter.
    pub revisit_share: f64,
    /// Revisits per second, of all hosts; `None`, the default, for what the hosts allow.
    pub revisits_per_second: Option<f64>,
    /// No page is visited again sooner: by default an hour.
    pub min_age: Duration,
    /// Every page is visited again after this time, if hosts and budget allow: by default 60 days.
    pub max_age: Duration,
}

impl Default for FreshnessConfig {
    fn default() -> Self {
        Self {
            keeps_fresh: false,
            revisit_share: 0.1,
            revisits_per_second: None,
            min_age: Duration::from_secs(3600),
            max_age: Duration::from_secs(60 * 24 * 3600),
        }
    }
}

impl FreshnessConfig {
    /// How long after its last reading a sitemap is read again.
    pub(crate) fn sitemaps_after(&self) -> Option<Duration> {
        self.keeps_fresh.then(|| self.min_age.max(SHORTEST_OF_SITEMAPS))
    }

    /// One request of this many may be a revisit: at least 1.
    pub(crate) fn turns(&self) -> u32 {
        (1.0 / self.revisit_share.clamp(1e-6, 1.0)).round().max(1.0) as u32
    }
}

/// What the visits of a page saw, the older ones with less weight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Observed {
    /// Visits that saw a change, in ten thousandths.
    pub(crate) changes: u32,
    /// The milliseconds before those.
    pub(crate) changed_over: u64,
    /// The milliseconds before the others.
    pub(crate) unchanged_over: u64,
}

impl Observed {
    /// What is known after another visit, so long after the one before.
    pub(crate) fn with(self, gap: Duration, is_changed: bool) -> Self {
        let gap = u64::try_from(gap.as_millis()).unwrap_or(u64::MAX);
        let seen_over = self.changed_over.saturating_add(self.unchanged_over).max(1);
        let expected = match is_changed {
            true => ONE.into(),
            false => (gap.saturating_mul(self.changes.into()) / seen_over).clamp(LEAST_EXPECTED, ONE.into()),
        };
        let kept = |amount: u64| amount - amount.saturating_mul(expected) / (FORGOTTEN * u64::from(ONE));
        let [changed, unchanged] = if is_changed { [gap, 0] } else { [0, gap] };
        Self {
            changes: kept(self.changes.into()) as u32 + u32::from(is_changed) * ONE,
            changed_over: kept(self.changed_over).saturating_add(changed),
            unchanged_over: kept(self.unchanged_over).saturating_add(unchanged),
        }
    }

    /// The most likely rate of changes, per millisecond: the maximum of `n·ln(1 − e^(−d·C/n)) − d·U − (ln d − usual)²/(2σ²)` for `n` visits that saw a change
    /// over times that sum to `C`, and times without one that sum to `U`. Where the derivative by ln d is zero, by bisection: it falls.
    pub(crate) fn rate(self, usual: f64) -> f64 {
        let changes = f64::from(self.changes) / f64::from(ONE);
        let between = match self.changes {
            0 => 0.0,
            _ => self.changed_over as f64 / changes,
        };
        let slope = |log: f64| {
            let rate = log.exp();
            let expected = rate * between;
            let of_changes = if expected > 0.0 {
                expected / expected.exp_m1()
            } else {
                1.0
            };
            changes * of_changes - rate * self.unchanged_over as f64 - (log - usual) / (SPREAD * SPREAD)
        };
        let (mut low, mut high) = (usual - 12.0, usual + 18.0);
        for _ in 0..24 {
            let middle = f64::midpoint(low, high);
            if slope(middle) > 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        low.exp()
    }
}

/// How important pages of a class are: a class is worth twice the next.
pub(crate) fn importance(class: Class) -> f64 {
    2_f64.powi(i32::from(Class::default().number()) - i32::from(class.number()))
}

/// A page as the policy sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    pub(crate) importance: f64,
    /// Changes per millisecond.
    pub(crate) rate: f64,
}

impl Page {
    /// The chance that the copy is right at an age in milliseconds.
    pub(crate) fn fresh_at(self, age: f64) -> f64 {
        (-self.rate * age).exp()
    }
}

/// The inverse of `1 − (1 + x)·e^(−x)`, by a table.
#[derive(Debug)]
pub(crate) struct Ages(Vec<(f64, f64)>);

impl Ages {
    pub(crate) fn new() -> Self {
        let changes = (0..1400).map(|step| 1e-5 * 1.011_f64.powi(step));
        // Without cancellation: 1 − e^(−x) − x·e^(−x).
        Self(changes.map(|x| (-(-x).exp_m1() - x * (-x).exp(), x)).collect())
    }

    /// The age in milliseconds at which the value of a page reaches a threshold; infinite if it never does.
    pub(crate) fn of(&self, page: Page, threshold: f64) -> f64 {
        let wanted = threshold * page.rate / page.importance;
        let at = self.0.partition_point(|(value, _)| *value < wanted);
        let changes = match (at.checked_sub(1).and_then(|before| self.0.get(before)), self.0.get(at)) {
            // The value begins as x²/2.
            (None, _) => (2.0 * wanted).sqrt(),
            (Some((below, x)), Some((above, next))) => x + (next - x) * (wanted - below) / (above - below),
            (Some(_), None) => return f64::INFINITY,
        };
        changes / page.rate
    }
}

/// The threshold, `at_least` this, from which a demand that falls with it is at most a budget: by bisection of its logarithm.
pub(crate) fn threshold(demand: impl Fn(f64) -> f64, most: f64, at_least: f64) -> f64 {
    if demand(at_least) <= most {
        return at_least;
    }
    let (mut low, mut high) = (at_least.ln().max(-80.0), 80.0);
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        if demand(middle.exp()) > most {
            low = middle;
        } else {
            high = middle;
        }
    }
    high.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: f64 = 86_400_000.0;

    fn days(days: f64) -> Duration {
        Duration::from_secs_f64(days * 86_400.0)
    }

    fn after(visits: u32, gap: f64, is_changed: impl Fn(u32) -> bool) -> Observed {
        let all = 0..visits;
        all.fold(Observed::default(), |seen, visit| {
            seen.with(days(gap), is_changed(visit))
        })
    }

    /// The rate whose likelihood is the greatest of many, by the formula itself.
    fn most_likely(seen: Observed, usual: f64) -> f64 {
        let changes = f64::from(seen.changes) / f64::from(ONE);
        let likelihood = |log: f64| {
            let of_changes = match seen.changes {
                0 => 0.0,
                _ => changes * (-(-log.exp() * seen.changed_over as f64 / changes).exp_m1()).ln(),
            };
            of_changes - log.exp() * seen.unchanged_over as f64 - (log - usual).powi(2) / (2.0 * SPREAD * SPREAD)
        };
        let logs = (0..24_000).map(|step| usual - 10.0 + 0.001 * f64::from(step));
        logs.max_by(|one, other| likelihood(*one).total_cmp(&likelihood(*other)))
            .unwrap()
            .exp()
    }

    #[test]
    fn the_rate_is_the_most_likely_one_after_what_each_visit_saw() {
        for gap in [1e-4, 1.0 / 24.0, 1.0, 7.0] {
            for usual in [USUAL, USUAL + 6.0] {
                let cases = [
                    after(0, gap, |_| true),
                    after(1, gap, |_| true),
                    after(1, gap, |_| false),
                    after(40, gap, |visit| visit % 2 == 0),
                    after(40, gap, |_| true),
                    after(40, gap, |_| false),
                ];
                for seen in cases {
                    let (found, expected) = (seen.rate(usual), most_likely(seen, usual));
                    assert!(
                        (found / expected - 1.0).abs() < 0.005,
                        "{gap} {usual} {seen:?}: {found} {expected}"
                    );
                }
            }
        }
        let changed_later = after(80, 1.0, |visit| visit >= 60).rate(USUAL) * DAY;
        assert!(
            (0.5..6.0).contains(&changed_later),
            "what was seen long ago is forgotten: {changed_later}"
        );
    }

    #[test]
    fn visits_that_are_more_frequent_than_changes_forget_none() {
        // A change each day, among fifty visits; others change once in 20 days.
        let seen = after(975, 0.02, |visit| visit % 50 == 49);
        let found = seen.rate(USUAL) * DAY;
        assert!((0.6..1.4).contains(&found), "{found}");
    }

    #[test]
    fn an_age_is_the_one_whose_value_is_the_threshold() {
        let ages = Ages::new();
        let value = |page: Page, age: f64| {
            let x = page.rate * age;
            page.importance / page.rate * (1.0 - (1.0 + x) * (-x).exp())
        };
        for rate in [0.001, 0.1, 3.0] {
            for importance in [0.0625, 1.0, 8.0] {
                let page = Page {
                    importance,
                    rate: rate / DAY,
                };
                for share in [1e-8, 0.01, 0.5, 0.99] {
                    let threshold = share * importance / page.rate;
                    let found = value(page, ages.of(page, threshold));
                    assert!(
                        (found / threshold - 1.0).abs() < 0.01,
                        "{rate} {importance} {share}: {found} {threshold}"
                    );
                }
                let never = ages.of(page, 1.01 * importance / page.rate);
                assert!(never.is_infinite(), "it changes too often");
                assert!(ages.of(page, 0.0) <= 0.0);
            }
        }
    }

    #[test]
    fn a_threshold_spends_the_budget() {
        let ages = Ages::new();
        let pages: Vec<_> = (1..100)
            .map(|n| Page {
                importance: 1.0,
                rate: f64::from(n) / (50.0 * DAY),
            })
            .collect();
        let demand = |threshold: f64| pages.iter().map(|page| 1.0 / ages.of(*page, threshold)).sum::<f64>();
        let budget = 20.0 / DAY;
        let found = threshold(demand, budget, 0.0);
        assert!((demand(found) / budget - 1.0).abs() < 0.02);
        let seconds = 1.0 / 8_000.0;
        let often = threshold(demand, 99.0 * seconds, 0.0);
        assert!(
            (demand(often) / (99.0 * seconds) - 1.0).abs() < 0.02,
            "also for a visit every eight seconds: {often}"
        );
        let larger = threshold(demand, budget, 2.0 * found);
        assert!((larger / found - 2.0).abs() < 1e-9, "it may not be lower");
    }
}
