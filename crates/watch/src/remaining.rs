//! How many pages are left: an estimate from what the last pages led to.

use serde_json::{Value, json};

use crate::series::{Point, Series};

/// The fewest pages that an estimate is made of.
const FEWEST: u64 = 50;

/// What is left of a crawl: the pages that are queued, and those that they will lead to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Remaining {
    /// How many new pages each page led to: over the second half of the crawl so far, and over its last fifth.
    new_per_page: [f64; 2],
    /// At least so many pages.
    low: u64,
    /// At most so many, if pages go on to lead to as many new ones; `None` if they lead to ever more.
    high: Option<u64>,
}

impl Remaining {
    /// Estimates what is left; `None` for a crawl that has hardly begun.
    ///
    /// If each page leads to r new ones, q queued pages lead to q·r, and these to q·r², so q / (1 − r) are left in all: the mean of a
    /// branching process (Harris, The Theory of Branching Processes, 1963, section I.5). On most sites r falls while the crawl goes on. So the
    /// upper end takes the present r, and the lower end lets r fall on as it fell over the second half of the crawl.
    pub(crate) fn of(series: &Series) -> Option<Self> {
        let now = series.points().last()?;
        let (queued, settled) = (now.queued as f64, now.settled());
        let [long, short] = [settled / 2, settled / 5 * 4].map(|from| new_per_page(series, from, now));
        let (long, short) = (long?, short?);
        let steady = |rate: f64| (rate < 1.0).then(|| queued / (1.0 - rate));
        let low = if short < long {
            // These are the means over the pages around 0.75 and 0.9 of the settled ones.
            let fall = (long - short) / (0.15 * settled as f64);
            left_if_falling(queued, short - fall * 0.1 * settled as f64, fall)
        } else {
            steady(long).unwrap_or(queued)
        };
        Some(Self {
            new_per_page: [long, short],
            low: low as u64,
            high: steady(short).map(|high| high.ceil() as u64),
        })
    }

    pub(crate) fn to_json(self) -> Value {
        json!({ "low": self.low, "high": self.high, "new_per_page": self.new_per_page })
    }
}

/// Returns how many pages are left if the next one leads to `rate` new ones, and each one after it to `fall` fewer, down to none. The queue is
/// empty after t pages with q + ∫(rate − fall·t) dt = t.
fn left_if_falling(queued: f64, rate: f64, fall: f64) -> f64 {
    let rate = rate.max(0.0);
    let until_none = rate / fall;
    let missing = 1.0 - rate;
    let left = (missing.mul_add(missing, 2.0 * fall * queued).sqrt() - missing) / fall;
    if left <= until_none {
        left
    } else {
        queued + rate * until_none / 2.0
    }
}

/// Returns how many new pages each page has led to since `from` pages were settled.
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
        Remaining::of(&series)
    }

    #[test]
    fn a_queue_that_only_empties_has_just_its_pages_left() {
        let left = remaining(90, |second| (10 * second, 1000 - 10 * second)).unwrap();
        assert_eq!((left.low, left.high), (100, Some(100)), "{left:?}");
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
        let truth = known(1600.0) as u64 - 1200;
        assert!(
            left.low <= truth && left.high.is_none_or(|high| truth <= high),
            "{left:?}, {truth}"
        );
    }

    #[test]
    fn nothing_is_known_at_the_start_or_while_each_page_leads_to_more() {
        assert_eq!(remaining(4, |second| (10 * second, 100)), None);
        let growing = remaining(100, |second| (10 * second, 20 * second)).unwrap();
        assert_eq!((growing.low, growing.high), (2000, None));
    }
}
