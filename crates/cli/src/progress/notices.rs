//! Log lines about hosts and traps, at a bounded rate.

use std::time::Duration;

use crawler::summary::remedy;
use frontier::Notice;

use crate::flag;
use crate::log_records;

/// Logs a burst of five lines, then one every two seconds. It counts the omitted lines, and logs their number every minute.
pub(super) struct LineBudget {
    about: &'static str,
    left: u32,
    omitted: u64,
    last_refill: Duration,
    last_logged: Duration,
}

impl LineBudget {
    const BURST: u32 = 5;
    const REFILL_EVERY: Duration = Duration::from_secs(2);
    const LOG_OMITTED_EVERY: Duration = Duration::from_secs(60);

    pub(super) fn new(about: &'static str) -> Self {
        Self {
            about,
            left: Self::BURST,
            omitted: 0,
            last_refill: Duration::ZERO,
            last_logged: Duration::ZERO,
        }
    }

    /// Logs a notice. `is_alone` says that nothing was fetched so far.
    pub(super) fn log(&mut self, notice: &Notice, is_alone: bool) {
        let (level, mut text) = line_of(notice);
        if is_alone && let Notice::Away { cause, .. } = notice {
            if !text.contains("; try ") {
                text = format!("{text}; {}", remedy(cause.kind, flag::of));
            }
            text += "; Ctrl-C stops";
        }
        if self.left > 0 {
            self.left -= 1;
            log_records::notice(level, notice, &text);
        } else {
            self.omitted += 1;
            log_records::notice(log::Level::Debug, notice, &text);
        }
    }

    pub(super) fn tick(&mut self, elapsed: Duration) {
        if elapsed >= self.last_refill + Self::REFILL_EVERY {
            self.last_refill = elapsed;
            self.left = (self.left + 1).min(Self::BURST);
        }
        if elapsed >= self.last_logged + Self::LOG_OMITTED_EVERY {
            self.last_logged = elapsed;
            self.close();
        }
    }

    /// Logs the number of omitted lines, if any.
    pub(super) fn close(&mut self) {
        let (omitted, about) = (std::mem::take(&mut self.omitted), self.about);
        if omitted > 0 {
            log_records::omitted(omitted, about);
        }
    }
}

/// Returns the level and the text of a notice, with the option that prevents the event.
fn line_of(notice: &Notice) -> (log::Level, String) {
    let text = flag::in_text(&notice.to_string());
    let advice = match notice {
        Notice::Back { .. } => return (log::Level::Info, text),
        Notice::GivenUp { cause, .. } if !text.contains("; try ") => format!(" ({})", remedy(cause.kind, flag::of)),
        Notice::Postponed { .. } => "; raise --set max-near-duplicates to fetch them in turn".to_owned(),
        Notice::PrefixClosed { .. } => "; raise --set max-near-duplicates-in-all to fetch them".to_owned(),
        _ => String::new(),
    };
    (log::Level::Warn, text + &advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_burst_are_omitted_and_counted() {
        let mut budget = LineBudget::new("hosts");
        let origin = frontier::Origin::of(&url::Url::parse("http://a.example/").unwrap()).unwrap();
        let notice = Notice::Back {
            origin,
            after: Duration::ZERO,
        };
        (0..1000).for_each(|_| budget.log(&notice, false));
        assert_eq!((budget.left, budget.omitted), (0, 995));
        (1..=60).for_each(|second| budget.tick(Duration::from_secs(second)));
        assert_eq!((budget.left, budget.omitted), (5, 0));
    }
}
