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
        for one in self.due(&summary.missing(), summary.report.saturation.is_full(), summary.elapsed) {
            log_records::loss(one, &summary.report);
        }
    }

    /// Logs at the end of the crawl what was not logged as it is now, also what is only possibly lost.
    pub(super) fn close(&self, summary: &Summary) {
        for one in &summary.missing() {
            let logged = self.logged.get(one.kind);
            let is_logged = logged.is_some_and(|(lost, ..)| *lost == one.lost);
            if one.kind != Missing::INTERRUPTED && !is_logged {
                log_records::loss(one, &summary.report);
            }
        }
    }

    fn due<'m>(&mut self, missing: &'m [Missing], is_full: bool, elapsed: Duration) -> Vec<&'m Missing> {
        let mut due = Vec::new();
        for one in missing {
            let lost = one.lost;
            // A full seen-set drops more, and cannot count them.
            let is_full = is_full && one.kind == Missing::SEEN_SET;
            let is_due = match self.logged.get(one.kind) {
                None => lost > 0 || is_full,
                Some((before, was_full, at)) => {
                    let goes_on = lost > *before || is_full;
                    let is_news = lost >= 2 * before || is_full && !was_full;
                    goes_on && (is_news || elapsed >= *at + Self::REPEAT_EVERY)
                }
            };
            if is_due {
                self.logged.insert(one.kind, (lost, is_full, elapsed));
                due.push(one);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds at which a loss is logged that has a size at each second, and of the seen-set, which may be full.
    fn logged_at(kind: &'static str, seconds: u64, size: impl Fn(u64) -> (u64, bool)) -> Vec<u64> {
        let mut losses = Losses::default();
        let is_due = |second: &u64| {
            let (lost, is_full) = size(*second);
            let mut one = Missing::default();
            (one.kind, one.lost) = (kind, lost);
            !losses.due(&[one], is_full, Duration::from_secs(*second)).is_empty()
        };
        (0..seconds).filter(is_due).collect()
    }

    #[test]
    fn a_loss_is_logged_at_its_first_page_at_each_doubling_and_every_ten_minutes_while_it_goes_on() {
        let seen_set = |seconds, size: fn(u64) -> (u64, bool)| logged_at(Missing::SEEN_SET, seconds, size);
        assert_eq!(seen_set(300, |second| (second / 10, false)), [10, 20, 40, 80, 160]);
        let slow = |second| (100 + second / 60, false);
        assert_eq!(seen_set(1900, slow), [0, 600, 1200, 1800]);
        assert_eq!(seen_set(1900, |_| (7, false)), [0], "it does not go on");
        assert_eq!(seen_set(1900, |_| (0, false)), [0; 0], "none is surely lost");
        let full = |second| (9, second >= 30);
        assert_eq!(seen_set(1900, full), [0, 30, 630, 1230, 1830], "it goes on, uncounted");
        for kind in ["no_whole_answer", "queue_full"] {
            assert_eq!(logged_at(kind, 10, |second| (second, true)), [1, 2, 4, 8]);
        }
        let interrupted = |_| (0, false);
        assert_eq!(
            logged_at(Missing::INTERRUPTED, 10, interrupted),
            [0; 0],
            "a later run fetches these"
        );
    }
}
