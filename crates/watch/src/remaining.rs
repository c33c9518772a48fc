//! How many pages are left: an estimate from what the last pages led to.

use crawler::summary::HostFigures;
use serde_json::{Value, json};

use crate::series::{Point, Series};

/// The fewest pages that an estimate is made of.
const FEWEST: u64 = 50;

/// The most new pages of each page with which an estimate means something: ten times those that wait. Nearer to one, a small error makes it
/// arbitrary.
const MOST_NEW: f64 = 0.9;

/// What is left of a crawl: the pages that are queued, and those that they will lead to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Remaining {
    /// How many new pages each page led to: over the second half of the crawl so far, and over its last fifth.
    new_per_page: [f64; 2],
    /// At least so many pages: those that are queued or in flight.
    at_least: u64,
    /// About so many, if pages go on to lead to as many new ones, with all that may follow that look alike; `None` if they lead to ever more, or to nearly as many.
    about: Option<u64>,
}

impl Remaining {
    /// Estimates what is left; `None` for a crawl that has hardly begun.
    ///
    /// If each page leads to r new ones, q queued pages lead to q·r, and these to q·r², so q / (1 − r) are left in all: the mean of a
    /// branching process (Harris, The Theory of Branching Processes, 1963, section I.5). Of the two r, the greater one counts. Nothing can
    /// foresee a page that leads to thousands.
    pub(crate) fn of(series: &Series, hosts: &[HostFigures]) -> Option<Self> {
        let now = series.points().last()?;
        let [long, short] = [now.settled() / 2, now.settled() / 5 * 4].map(|from| new_per_page(series, from, now));
        let (long, short) = (long?, short?);
        let (at_least, most) = (now.queued + now.in_flight, long.max(short));
        let more = |host: &HostFigures| host.alike.saturating_sub(host.queued + u64::from(host.in_flight));
        let alike: u64 = hosts.iter().filter(|host| host.left.is_some()).map(more).sum();
        Some(Self {
            new_per_page: [long, short],
            at_least,
            about: (most <= MOST_NEW).then(|| (at_least as f64 / (1.0 - most)).ceil() as u64 + alike),
        })
    }

    pub(crate) fn to_json(self) -> Value {
        json!({ "at_least": self.at_least, "about": self.about, "new_per_page": self.new_per_page })
    }
}

fn new_per_page(series: &Series, from: u64, now: &Point) -> Option<f64> {
    let earlier = series.points().iter().rfind(|point| point.settled() <= from)?;
    let settled = now.settled().saturating_sub(earlier.settled());
    let is_enough = settled >= FEWEST / 5 && now.settled() >= FEWEST;
    is_enough.then(|| now.links_new.saturating_sub(earlier.links_new) as f64 / settled as f64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crawler::summary::Counts;
    use crawler::{Ending, Summary};
    use frontier::{Frontier, FrontierConfig};

    use super::*;

    /// Returns the estimate after some seconds of a crawl. `at` returns the numbers of settled and of queued pages at a second.
    fn remaining(seconds: u64, at: impl Fn(u64) -> (u64, u64)) -> Option<Remaining> {
        remaining_of(&[], seconds, at)
    }

    fn remaining_of(hosts: &[HostFigures], seconds: u64, at: impl Fn(u64) -> (u64, u64)) -> Option<Remaining> {
        let report = Frontier::in_memory(FrontierConfig::default()).unwrap().report();
        let mut summary = Summary::new(Ending::Drained, Counts::default(), report);
        let mut series = Series::default();
        for second in 1..=seconds {
            let (settled, queued) = at(second);
            summary.elapsed = Duration::from_secs(second);
            summary.report.queued_pages = queued;
            summary.report.links.queued = settled + queued;
            series.add(&summary, false);
        }
        Remaining::of(&series, hosts)
    }

    #[test]
    fn a_queue_that_only_empties_has_just_its_pages_left() {
        let left = remaining(90, |second| (10 * second, 1000 - 10 * second)).unwrap();
        assert_eq!((left.at_least, left.about), (100, Some(100)), "{left:?}");
    }

    #[test]
    fn all_that_may_follow_that_looks_alike_is_left_while_some_of_it_waits() {
        let mut frontier = Frontier::in_memory(FrontierConfig::default()).unwrap();
        let url = frontier::Canonicalizer::default()
            .parse("http://calendar.example/")
            .unwrap();
        let (host, now) = (url.host(), frontier::Time::EPOCH);
        frontier.offer(&[frontier::Link::seed(url)], now).unwrap();
        let mut calendar = HostFigures::new(frontier.host_report(&host, now).unwrap(), now);
        (calendar.report.alike, calendar.left) = (500, Some(Duration::from_secs(500)));
        let waits = |calendar: HostFigures| remaining_of(&[calendar], 90, |second| (10 * second, 1000 - 10 * second));
        assert_eq!(waits(calendar.clone()).unwrap().about, Some(100 + 499));
        calendar.left = None;
        assert_eq!(waits(calendar).unwrap().about, Some(100));
    }

    #[test]
    fn pages_that_lead_to_fewer_and_fewer_new_ones_leave_a_range() {
        // A site of 2 000 pages with two links on each, to pages at random.
        let known = |settled: f64| 2000.0 * (1.0 - (-settled / 1000.0).exp());
        let at = |second: u64| {
            (
                10 * second,
                (known(10.0 * second as f64) as u64).saturating_sub(10 * second),
            )
        };
        let left = remaining(120, at).unwrap();
        // It ends when all known pages are settled: 1 594 = 2 000 · (1 − exp(−1.594)).
        let truth = 1594 - 1200;
        assert!(left.at_least < truth, "{left:?}");
        assert!(
            left.about.is_some_and(|about| (truth..3 * truth).contains(&about)),
            "{left:?}"
        );
    }

    #[test]
    fn nothing_is_known_at_the_start_or_while_each_page_leads_to_more() {
        assert_eq!(remaining(4, |second| (10 * second, 100)), None);
        let growing = remaining(100, |second| (10 * second, 20 * second)).unwrap();
        assert_eq!((growing.at_least, growing.about), (2000, None));
        let barely_shrinking = remaining(100, |second| (10 * second, 1000 - second / 2)).unwrap();
        assert_eq!(
            barely_shrinking.about, None,
            "twenty times as many, or all that there is"
        );
    }
}
