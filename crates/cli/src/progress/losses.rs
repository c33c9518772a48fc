//! Warnings about missing pages, while they get more.

use std::collections::HashMap;
use std::time::Duration;

use crawler::{Missing, Summary};

use crate::log_records;

/// Logs each reason why pages are missing: at the first that is lost, at each doubling, and every ten minutes while more are lost.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Of each kind: how much was lost when it was logged last, whether the seen-set was full, and when that was.
    logged: HashMap<&'static str, (u64, bool, Duration)>,
}

impl Losses {
    const REPEAT_EVERY: Duration = Duration::from_secs(600);

    /// Logs the reasons that are due.
    pub(super) fn tick(&mut self, summary: &Summary) {
        for one in self.due(&summary.missing(), summary.elapsed) {
            log_records::loss(one, &summary.report);
        }
    }

    /// Logs at the end of the crawl what was not logged as it is now, also what is only possibly lost.
    pub(super) fn close(&self, summary: &Summary) {
        let is_lost = |one: &&Missing| !matches!(one, Missing::Interrupted { .. });
        let is_logged = |one: &Missing| {
            let logged = self.logged.get(one.kind());
            logged.is_some_and(|(lost, ..)| *lost == one.lost())
        };
        for one in summary.missing().iter().filter(is_lost).filter(|one| !is_logged(one)) {
            log_records::loss(one, &summary.report);
        }
    }

    fn due<'m>(&mut self, missing: &'m [Missing], elapsed: Duration) -> Vec<&'m Missing> {
        let mut due = Vec::new();
        for one in missing {
            let lost = one.lost();
            // A full seen-set drops more, and cannot count them.
            let is_full = matches!(one, Missing::Dropped { is_full: true, .. });
            let is_due = match self.logged.get(one.kind()) {
                None => lost > 0 || is_full,
                Some((before, was_full, at)) => {
                    let goes_on = lost > *before || is_full;
                    let is_news = lost >= 2 * before || is_full && !was_full;
                    goes_on && (is_news || elapsed >= *at + Self::REPEAT_EVERY)
                }
            };
            if is_due {
                self.logged.insert(one.kind(), (lost, is_full, elapsed));
                due.push(one);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds at which a loss is logged that has a size at each second.
    fn logged_at(seconds: u64, size: impl Fn(u64) -> Missing) -> Vec<u64> {
        let mut losses = Losses::default();
        let is_due = |second: &u64| !losses.due(&[size(*second)], Duration::from_secs(*second)).is_empty();
        (0..seconds).filter(is_due).collect()
    }

    #[test]
    fn a_loss_is_logged_at_its_first_page_at_each_doubling_and_every_ten_minutes_while_it_goes_on() {
        let dropped = |at_least, is_full| Missing::Dropped {
            at_least,
            enough: 9,
            is_full,
            is_kept: false,
        };
        let seen_set = |at_least| dropped(at_least, false);
        assert_eq!(logged_at(300, |second| seen_set(second / 10)), [10, 20, 40, 80, 160]);
        let slow = |second: u64| seen_set(100 + second / 60);
        assert_eq!(logged_at(1900, slow), [0, 600, 1200, 1800]);
        assert_eq!(logged_at(1900, |_| seen_set(7)), [0], "it does not go on");
        assert_eq!(logged_at(1900, |_| seen_set(0)), [0; 0], "none is surely lost");
        let full = |second: u64| dropped(9, second >= 30);
        assert_eq!(logged_at(1900, full), [0, 30, 630, 1230, 1830], "it goes on, uncounted");
        let failed = |second: u64| Missing::Failed {
            pages: second,
            timed_out: false,
        };
        assert_eq!(logged_at(10, failed), [1, 2, 4, 8]);
        let refused = |second: u64| Missing::Limited {
            kind: "queue_full",
            why: "queue full".to_owned(),
            number: second * 100,
            unit: "link",
            fate: "refused",
            option: "max_queued",
            lifted: false,
            is_kept: false,
        };
        assert_eq!(logged_at(10, refused), [1, 2, 4, 8]);
        let interrupted = |_| Missing::Interrupted {
            ending: crawler::Ending::Stopped,
            left: 9,
        };
        assert_eq!(logged_at(10, interrupted), [0; 0], "a later run fetches these");
    }
}
