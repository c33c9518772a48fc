//! The course of a crawl: some numbers at regular times.

use std::time::Duration;

use crawler::summary::Summary;
use serde_json::{Value, json};

/// The most points. When there are as many, every second one goes, and new ones come half as often.
const POINTS: usize = 1000;

/// The numbers at one time.
#[derive(Debug, Clone, Copy)]
struct Point {
    elapsed: Duration,
    pages: u64,
    failed: u64,
    queued: u64,
    bytes: u64,
    estimated: f64,
    lost: f64,
}

/// The numbers of a crawl each second at first, and less often the longer it takes. Memory: 56 kB at most.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    points: Vec<Point>,
    /// The distance of the points, in seconds of the crawl.
    every: u64,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            points: Vec::new(),
            every: 1,
        }
    }
}

impl Series {
    pub(crate) fn add(&mut self, summary: &Summary, is_last: bool) {
        let last = self.points.last().map(|point| point.elapsed);
        let is_due =
            |last: Duration| summary.elapsed.saturating_sub(last) >= Duration::from_secs(self.every).mul_f64(0.99);
        if !is_last && !last.is_none_or(is_due) {
            return;
        }
        if self.points.len() >= POINTS {
            let mut is_even = false;
            self.points.retain(|_| {
                is_even = !is_even;
                is_even
            });
            self.every *= 2;
        }
        self.points.push(Point {
            elapsed: summary.elapsed,
            pages: summary.pages,
            failed: summary.failed_pages(),
            queued: summary.report.queued_pages,
            bytes: summary.bytes,
            estimated: summary.report.saturation.estimated,
            lost: summary.lost(),
        });
    }

    /// Returns one list per number, each with the values in order.
    pub(crate) fn to_json(&self) -> Value {
        let list = |of: fn(&Point) -> Value| self.points.iter().map(of).collect::<Vec<_>>();
        json!({
            "elapsed_seconds": list(|point| point.elapsed.as_secs_f64().into()),
            "pages": list(|point| point.pages.into()),
            "failed": list(|point| point.failed.into()),
            "queued": list(|point| point.queued.into()),
            "bytes": list(|point| point.bytes.into()),
            "estimated": list(|point| point.estimated.into()),
            "lost": list(|point| point.lost.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use crawler::Ending;
    use crawler::summary::Counts;
    use frontier::{Frontier, FrontierConfig};

    use super::*;

    #[test]
    fn a_series_of_days_has_few_points_from_the_first_second_to_the_last() {
        let report = Frontier::in_memory(FrontierConfig::default()).unwrap().report();
        let mut summary = Summary::new(Ending::Drained, Counts::default(), report);
        let mut series = Series::default();
        for second in 1..=100_000 {
            // Ticks are not exact.
            summary.elapsed = Duration::from_millis(second * 1000 + second % 7);
            series.add(&summary, false);
        }
        summary.elapsed += Duration::from_millis(300);
        series.add(&summary, true);
        let seconds: Vec<_> = series.points.iter().map(|point| point.elapsed.as_secs()).collect();
        assert!((POINTS / 2..=POINTS).contains(&seconds.len()), "{}", seconds.len());
        assert_eq!((seconds[0], seconds[seconds.len() - 1]), (1, 100_000));
        let steps: Vec<_> = seconds.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let all_but_last = &steps[..steps.len() - 1];
        assert!(all_but_last.iter().all(|step| (126..=130).contains(step)), "{steps:?}");
    }
}
