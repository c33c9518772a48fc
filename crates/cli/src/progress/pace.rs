//! The estimate of the remaining time of the crawl.

use std::collections::VecDeque;
use std::time::Duration;

use crawler::{CrawlOptions, Summary};

/// The time over which the rate is measured.
const WINDOW: Duration = Duration::from_secs(20);

/// The minimum time over which the queue must shrink before its end is estimated.
const MIN_SHRINKING: Duration = Duration::from_secs(10);

/// By how many pages it must shrink in the window: fewer say nothing of the next minutes.
const MIN_SHRUNK: u64 = 20;

/// The last samples, one per second.
#[derive(Debug)]
pub(super) struct Pace {
    samples: VecDeque<Sample>,
    max_pages: Option<u64>,
    max_time: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    elapsed: Duration,
    /// The time of this run, which `max_time` limits.
    of_run: Duration,
    /// Pages that count for `--max-pages`.
    finished: u64,
    queued: u64,
}

impl Pace {
    pub(super) fn new(options: &CrawlOptions) -> Self {
        Self {
            samples: VecDeque::new(),
            max_pages: options.frontier.limits.max_pages,
            max_time: options.max_time,
        }
    }

    pub(super) fn add(&mut self, summary: &Summary) {
        let pages = &summary.report.pages;
        self.samples.push_back(Sample {
            elapsed: summary.elapsed,
            of_run: summary.elapsed.saturating_sub(summary.elapsed_before),
            finished: pages.done + pages.rejected + pages.gave_up,
            queued: summary.report.queued,
        });
        let is_old = |sample: &Sample| sample.elapsed + WINDOW < summary.elapsed;
        // One older sample stays, so that the window is full.
        while self.samples.get(1).is_some_and(is_old) {
            self.samples.pop_front();
        }
    }

    /// Estimates the time until the page budget is spent at this rate, the queue is empty if it keeps shrinking, or the time is up. The queue
    /// is not empty before what waits for the host is fetched that takes longest: `held_up`. Returns `None` if the queue grows, or stays while
    /// pages are fetched, there is no limit, and `held_up` is not what all that may come takes at most. Says, too, whether it is the time limit.
    pub(super) fn remaining(&self, held_up: Option<Duration>, is_bound: bool) -> Option<(Duration, bool)> {
        let (first, last) = self.ends()?;
        let window = last.elapsed - first.elapsed;
        // A time that `Duration` cannot hold gives no estimate.
        let at_rate = |left: u64, done: u64| {
            let seconds = window.as_secs_f64() * left as f64 / done as f64;
            Duration::try_from_secs_f64(seconds).ok()
        };
        let budget = self.max_pages.and_then(|max| {
            let left = max.saturating_sub(last.finished);
            at_rate(left, last.finished - first.finished)
        });
        let shrunk = first.queued.saturating_sub(last.queued);
        let drain = at_rate(last.queued, shrunk).filter(|_| window >= MIN_SHRINKING && shrunk >= MIN_SHRUNK);
        let is_growing = last.queued > first.queued || last.queued == first.queued && last.finished > first.finished;
        let drain = drain.max(held_up.filter(|_| is_bound || !is_growing));
        let limit = self.max_time.map(|max| max.saturating_sub(last.of_run));
        let left = budget.into_iter().chain(drain).min();
        match limit {
            Some(limit) if left.is_none_or(|left| limit < left) => Some((limit, true)),
            _ => Some((left?, false)),
        }
    }

    fn ends(&self) -> Option<(Sample, Sample)> {
        let (first, last) = (*self.samples.front()?, *self.samples.back()?);
        (first.elapsed < last.elapsed).then_some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use crawler::Ending;
    use crawler::summary::Counts;

    use super::*;

    /// Returns the pace of a crawl. `at` returns the numbers of finished and of queued pages at a second.
    fn pace(options: &CrawlOptions, seconds: u64, at: impl Fn(u64) -> (u64, u64)) -> Pace {
        let mut pace = Pace::new(options);
        let report = frontier::Frontier::in_memory(options.frontier.clone())
            .unwrap()
            .report();
        for second in 0..=seconds {
            let mut summary = Summary::new(Ending::Drained, Counts::default(), report.clone());
            summary.elapsed = Duration::from_secs(second);
            (summary.report.pages.done, summary.report.queued) = at(second);
            pace.add(&summary);
        }
        pace
    }

    fn options(max_pages: Option<u64>, max_time: Option<u64>) -> CrawlOptions {
        let mut options = CrawlOptions::default();
        options.frontier.limits.max_pages = max_pages;
        options.max_time = max_time.map(Duration::from_secs);
        options
    }

    /// An estimate that is not the time limit.
    fn estimate(seconds: u64) -> Option<(Duration, bool)> {
        Some((Duration::from_secs(seconds), false))
    }

    #[test]
    fn a_growing_queue_gives_no_estimate() {
        let growing = pace(&options(None, None), 100, |second| (5 * second, 100 + second));
        assert_eq!(growing.remaining(None, false), None);
    }

    #[test]
    fn a_shrinking_queue_gives_the_time_until_it_is_empty() {
        let shrinking = pace(&options(None, None), 100, |second| (5 * second, 1000 - 2 * second));
        assert_eq!(shrinking.remaining(None, false), estimate(400));
        let too_short = pace(&options(None, None), 5, |second| (5 * second, 1000 - 2 * second));
        assert_eq!(too_short.remaining(None, false), None);
    }

    #[test]
    fn a_queue_that_hardly_shrinks_takes_as_long_as_its_slowest_host() {
        let hardly = pace(&options(None, None), 100, |second| (5 * second, 1000 - second / 2));
        assert_eq!(hardly.remaining(None, false), None);
        let slowest = Some(Duration::from_secs(90));
        assert_eq!(hardly.remaining(slowest, false), estimate(90));
    }

    #[test]
    fn the_queue_is_not_empty_before_the_host_that_takes_longest() {
        let shrinking = pace(&options(None, None), 100, |second| (5 * second, 1000 - 2 * second));
        let remaining = |seconds| {
            shrinking
                .remaining(Some(Duration::from_secs(seconds)), false)
                .unwrap()
                .0
                .as_secs()
        };
        assert_eq!([399, 720].map(remaining), [400, 720]);
        let still = pace(&options(None, None), 100, |_| (0, 4));
        assert_eq!(still.remaining(Some(Duration::from_secs(720)), false), estimate(720));
    }

    #[test]
    fn a_queue_that_stays_while_pages_are_fetched_has_no_end_unless_that_is_bounded() {
        let calendar = pace(&options(None, None), 100, |second| (5 * second, 2));
        let bound = Some(Duration::from_secs(90));
        assert_eq!(
            [false, true].map(|is_bound| calendar.remaining(bound, is_bound)),
            [None, estimate(90)]
        );
    }

    #[test]
    fn a_budget_is_spent_at_the_current_rate_and_a_time_limit_is_an_upper_bound() {
        // Ten pages per second in the first minute, then one.
        let slowed = |second: u64| (second.min(60) * 10 + second.saturating_sub(60), 1000);
        let budget = pace(&options(Some(1000), None), 100, slowed);
        assert_eq!(budget.remaining(None, false), estimate(360));
        let time_limit = Some((Duration::from_secs(50), true));
        let limit = pace(&options(Some(1000), Some(150)), 100, slowed);
        assert_eq!(limit.remaining(None, false), time_limit);
        let only_limit = pace(&options(None, Some(150)), 100, slowed);
        assert_eq!(only_limit.remaining(None, false), time_limit);
    }

    #[test]
    fn a_page_budget_beyond_all_time_has_no_known_end() {
        let endless = pace(&options(Some(u64::MAX), None), 30, |second| (second, 100 + second));
        assert_eq!(endless.remaining(None, false), None);
    }
}
