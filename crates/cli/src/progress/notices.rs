//! Log lines about hosts and traps, at a bounded rate.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use crawler::summary::remedy;
use frontier::{Notice, Origin};

use crate::flag;
use crate::log_records;

/// Logs a burst of five lines, then one every two seconds; of an origin that flaps one pair a minute, away and back; of one that throttles,
/// hangs, or whose robots.txt fails, the first time after an hour without. It counts the other omitted lines, and logs their number every minute.
pub(super) struct LineBudget {
    about: &'static str,
    left: u32,
    omitted: u64,
    last_refill: Duration,
    last_logged: Duration,
    elapsed: Duration,
    /// The origins that were away in the last minute, and since when; with the notice of a later outage in it that has not ended.
    away: HashMap<Origin, (Duration, Option<Notice>)>,
    /// The last time that an origin throttled, hung, or its robots.txt failed, in the last hour.
    troubled: HashMap<(Origin, Discriminant<Notice>), Duration>,
}

impl LineBudget {
    const BURST: u32 = 5;
    const REFILL_EVERY: Duration = Duration::from_secs(2);
    const LOG_OMITTED_EVERY: Duration = Duration::from_secs(60);
    const TROUBLE_ENDS_AFTER: Duration = Duration::from_secs(3600);

    pub(super) fn new(about: &'static str) -> Self {
        Self {
            about,
            left: Self::BURST,
            omitted: 0,
            last_refill: Duration::ZERO,
            last_logged: Duration::ZERO,
            elapsed: Duration::ZERO,
            away: HashMap::new(),
            troubled: HashMap::new(),
        }
    }

    /// Logs a notice. `is_alone` says that nothing was fetched so far.
    pub(super) fn log(&mut self, notice: &Notice, is_alone: bool) {
        let (mut level, mut text) = line_of(notice);
        if self.is_in_known_trouble(notice) {
            level = log::Level::Debug;
        }
        let is_again = self.is_again(notice);
        let is_left = self.left > 0 && !is_again;
        if let Notice::Away { origin, .. } = notice
            && !is_left
        {
            // Then its end has no line either; and it has one if it lasts.
            self.away
                .entry(origin.clone())
                .and_modify(|(_, later)| *later = Some(notice.clone()));
        }
        if is_alone && let Notice::Away { cause, .. } = notice {
            if !text.contains("; try ") {
                text = format!("{text}; {}", remedy(cause.kind, flag::of));
            }
            text += "; Ctrl-C stops";
        }
        if level == log::Level::Debug {
            log_records::notice(level, notice, &text);
        } else if is_left {
            self.left -= 1;
            log_records::notice(level, notice, &text);
        } else {
            self.omitted += 1;
            log_records::notice(log::Level::Debug, notice, &text);
        }
    }

    /// Notes an origin that goes or comes back. Returns whether it has done so in the last minute.
    fn is_again(&mut self, notice: &Notice) -> bool {
        match notice {
            Notice::Away { origin, .. } => {
                let is_known = self.away.contains_key(origin);
                self.away.entry(origin.clone()).or_insert((self.elapsed, None));
                is_known
            }
            Notice::Back { origin, .. } => {
                let later = self.away.get_mut(origin).and_then(|(_, later)| later.take());
                later.is_some()
            }
            _ => false,
        }
    }

    /// Notes an origin that throttles, hangs, or whose robots.txt fails. Returns whether it has done so in the last hour.
    fn is_in_known_trouble(&mut self, notice: &Notice) -> bool {
        match notice {
            Notice::Throttled { origin, .. }
            | Notice::Hanging { origin, .. }
            | Notice::RobotsFailing { origin, .. } => {
                let trouble = (origin.clone(), discriminant(notice));
                self.troubled.insert(trouble, self.elapsed).is_some()
            }
            _ => false,
        }
    }

    /// Forgets who was away a minute ago, and logs who has gone again since then and is not back.
    fn forget_away(&mut self) {
        let is_over = |since: Duration| self.elapsed >= since + Self::LOG_OMITTED_EVERY;
        let over = self.away.extract_if(|_, (since, _)| is_over(*since));
        let later: Vec<_> = over.filter_map(|(_, (_, later))| later).collect();
        later.iter().for_each(|notice| self.log(notice, false));
    }

    pub(super) fn tick(&mut self, elapsed: Duration) {
        self.elapsed = elapsed;
        self.forget_away();
        self.troubled
            .retain(|_, last| elapsed < *last + Self::TROUBLE_ENDS_AFTER);
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

fn line_of(notice: &Notice) -> (log::Level, String) {
    let text = flag::in_text(&notice.to_string());
    let advice = match notice {
        Notice::RobotsFailing { is_of_seed: false, .. } => return (log::Level::Debug, text),
        Notice::Throttled { .. } => format!("; {} asks less often", flag::of("delay")),
        Notice::Hanging { .. } => format!("; it is given up after {}", flag::of("timeout")),
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

    #[test]
    fn a_host_that_goes_on_to_throttle_has_one_line_and_leaves_the_lines_of_others() {
        let notice = |host: &str| Notice::Throttled {
            origin: frontier::Origin::of(&url::Url::parse(host).unwrap()).unwrap(),
            cause: std::sync::Arc::new(frontier::Failure {
                kind: frontier::FailureKind::Status,
                message: "status 429".into(),
            }),
            asked_for: None,
            rest: Duration::from_secs(5),
        };
        let mut budget = LineBudget::new("hosts");
        for second in (0..3600).step_by(5) {
            budget.tick(Duration::from_secs(second));
            budget.log(&notice("http://a.example/"), false);
        }
        budget.log(&notice("http://b.example/"), false);
        assert_eq!((budget.left, budget.omitted), (4, 0), "one line each");
        budget.tick(Duration::from_secs(7200));
        budget.log(&notice("http://a.example/"), false);
        assert_eq!(budget.left, 4, "after a quiet hour");
    }

    #[test]
    fn an_origin_that_flaps_has_a_pair_of_lines_a_minute_at_one_level_and_the_last_outage_has_its_line() {
        let origin = frontier::Origin::of(&url::Url::parse("http://a.example/").unwrap()).unwrap();
        let away = Notice::Away {
            origin: origin.clone(),
            cause: std::sync::Arc::new(frontier::Failure {
                kind: frontier::FailureKind::Connect,
                message: "refused".into(),
            }),
            patience: Duration::from_secs(3600),
        };
        let after = Duration::from_secs(1);
        let back = Notice::Back { origin, after };
        assert_eq!(line_of(&away).0, line_of(&back).0);
        let mut budget = LineBudget::new("hosts");
        for second in 0..20 {
            budget.tick(Duration::from_secs(second));
            budget.log(&away, false);
            budget.log(&back, false);
        }
        assert_eq!(budget.omitted, 38);
        budget.log(&away, false);
        budget.tick(Duration::from_secs(59));
        assert_eq!((budget.left, budget.omitted), (5, 39));
        // It is still away.
        budget.tick(Duration::from_secs(60));
        assert_eq!((budget.left, budget.omitted), (4, 0));
        budget.log(&back, false);
        assert_eq!((budget.left, budget.omitted), (3, 0));
        // Without a line left, an outage has neither line.
        budget.tick(Duration::from_secs(200));
        budget.left = 0;
        budget.log(&away, false);
        budget.left = 1;
        budget.log(&back, false);
        assert_eq!((budget.left, budget.omitted), (1, 2));
    }
}
