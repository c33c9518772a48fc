//! Log lines about hosts and traps, at a bounded rate.

use std::time::Duration;

use crawler::FailureKind;
use frontier::Notice;

use crate::log_records;

/// Logs the first few lines, then one every two seconds. The others are counted in one line a minute.
pub(super) struct LineBudget {
    about: &'static str,
    left: u32,
    left_out: u64,
    last_refill: Duration,
    last_count: Duration,
}

impl LineBudget {
    const HANDFUL: u32 = 5;
    const REFILL_EVERY: Duration = Duration::from_secs(2);
    const COUNT_EVERY: Duration = Duration::from_secs(60);

    pub(super) fn new(about: &'static str) -> Self {
        Self {
            about,
            left: Self::HANDFUL,
            left_out: 0,
            last_refill: Duration::ZERO,
            last_count: Duration::ZERO,
        }
    }

    pub(super) fn log(&mut self, notice: &Notice) {
        let (level, text) = line_of(notice);
        if self.left > 0 {
            self.left -= 1;
            log_records::notice(level, notice, &text);
        } else {
            self.left_out += 1;
            log_records::notice(log::Level::Debug, notice, &text);
        }
    }

    pub(super) fn tick(&mut self, elapsed: Duration) {
        if elapsed >= self.last_refill + Self::REFILL_EVERY {
            self.last_refill = elapsed;
            self.left = (self.left + 1).min(Self::HANDFUL);
        }
        if elapsed >= self.last_count + Self::COUNT_EVERY {
            self.last_count = elapsed;
            self.close();
        }
    }

    /// Logs how many lines were left out, if any.
    pub(super) fn close(&mut self) {
        let (left_out, about) = (std::mem::take(&mut self.left_out), self.about);
        if left_out > 0 {
            log_records::omitted(left_out, about);
        }
    }
}

/// Returns the level and the text of a notice, with the option that changes what happened.
fn line_of(notice: &Notice) -> (log::Level, String) {
    let text = notice.to_string();
    match notice {
        Notice::Back { .. } => (log::Level::Info, text),
        Notice::GivenUp { cause, .. } if cause.kind == FailureKind::Throttled => {
            (log::Level::Warn, text + " (--max-throttles)")
        }
        Notice::GivenUp { .. } => (log::Level::Warn, text + " (--max-host-downtime, --max-first-downtime)"),
        Notice::Postponed { .. } => (
            log::Level::Warn,
            text + "; raise --max-near-duplicates if they are honest",
        ),
        Notice::PrefixClosed { .. } => (
            log::Level::Warn,
            text + "; raise --max-near-duplicates-in-all if they are honest",
        ),
        _ => (log::Level::Warn, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_hosts_that_are_away_a_few_are_named_and_the_rest_is_counted() {
        let mut budget = LineBudget::new("hosts");
        let origin = frontier::Origin::of(&url::Url::parse("http://a.example/").unwrap()).unwrap();
        let notice = Notice::Back {
            origin,
            after: Duration::ZERO,
        };
        (0..1000).for_each(|_| budget.log(&notice));
        assert_eq!((budget.left, budget.left_out), (0, 995));
        (1..=60).for_each(|second| budget.tick(Duration::from_secs(second)));
        assert_eq!((budget.left, budget.left_out), (5, 0));
    }
}
