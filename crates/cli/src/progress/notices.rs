//! Log lines about hosts and traps, at a bounded rate.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use crawler::summary::remedy;
use frontier::{Notice, Origin};

use crate::flag;
use crate::log_records;

/// Logs a burst of twenty lines, then one every two seconds; of an origin that flaps one pair, away and back, after a minute, and then after
/// pauses that grow to ten minutes; of one that throttles, hangs, or whose robots.txt fails, the first time after an hour without. It counts the other omitted lines, and logs their number every minute.
pub(super) struct LineBudget {
    about: &'static str,
    left: u32,
    omitted: u64,
    last_refill: Duration,
    last_logged: Duration,
    elapsed: Duration,
    /// The origins that were away lately: when that was logged last, the pause before it is again, and the notice of an outage in it that has
    /// not ended.
    away: HashMap<Origin, (Duration, Duration, Option<Notice>)>,
    /// The last time that an origin throttled, hung, or its robots.txt failed, in the last hour.
    troubled: HashMap<(Origin, Discriminant<Notice>), Duration>,
}

impl LineBudget {
    const BURST: u32 = 20;
    const REFILL_EVERY: Duration = Duration::from_secs(2);
    const LOG_OMITTED_EVERY: Duration = Duration::from_secs(60);
    const FIRST_PAUSE: Duration = Duration::from_secs(60);
    const LONGEST_PAUSE: Duration = Duration::from_secs(600);
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
        let mut text = line_of(notice);
        let is_again = self.is_again(notice);
        let is_left = self.left > 0 && !is_again;
        let is_known = self.is_in_known_trouble(notice, is_left);
        if let Notice::Away { origin, .. } = notice
            && !is_left
        {
            // Then its end has no line either; and it has one if it lasts.
            self.away
                .entry(origin.clone())
                .and_modify(|(.., later)| *later = Some(notice.clone()));
        }
        if is_alone && let Notice::Away { cause, .. } = notice {
            if !text.contains("; try ") {
                text = format!("{text}; {}", remedy(cause.kind, flag::of));
            }
            text += "; Ctrl-C stops";
        }
        let is_logged = is_left && !is_known;
        self.left -= u32::from(is_logged);
        self.omitted += u64::from(!is_left && !is_known);
        let level = if is_logged { log::Level::Warn } else { log::Level::Debug };
        log_records::notice(level, notice, &text);
    }

    /// Notes an origin that goes or comes back. Returns whether the pause since it was logged is not over.
    fn is_again(&mut self, notice: &Notice) -> bool {
        match notice {
            Notice::Away { origin, .. } => {
                let (logged, pause, _) = self.away.entry(origin.clone()).or_default();
                let is_again = self.elapsed < *logged + *pause;
                if !is_again {
                    *logged = self.elapsed;
                    *pause = (*pause * 2).clamp(Self::FIRST_PAUSE, Self::LONGEST_PAUSE);
                }
                is_again
            }
            Notice::Back { origin, .. } => {
                let later = self.away.get_mut(origin).and_then(|(.., later)| later.take());
                later.is_some()
            }
            Notice::GivenUp { origin, .. } | Notice::Closed { origin, .. } => {
                self.away.remove(origin);
                false
            }
            _ => false,
        }
    }

    /// Notes an origin that throttles, hangs, or whose robots.txt fails, if that is logged or was. Returns whether it was in the last hour.
    fn is_in_known_trouble(&mut self, notice: &Notice, is_left: bool) -> bool {
        match notice {
            Notice::Throttled { origin, .. }
            | Notice::Hanging { origin, .. }
            | Notice::RobotsFailing { origin, .. } => {
                let trouble = (origin.clone(), discriminant(notice));
                let is_known = self.troubled.contains_key(&trouble);
                if is_known || is_left {
                    self.troubled.insert(trouble, self.elapsed);
                }
                is_known
            }
            _ => false,
        }
    }

    /// Logs who has gone again in the pause that is over, and is not back. Forgets who was not away for as long again.
    fn forget_away(&mut self) {
        let since = |logged: Duration| self.elapsed.saturating_sub(logged);
        self.away
            .retain(|_, (logged, pause, later)| later.is_some() || since(*logged) < *pause * 2);
        let over = self
            .away
            .values_mut()
            .filter(|(logged, pause, _)| since(*logged) >= *pause);
        let later: Vec<_> = over.filter_map(|(.., later)| later.take()).collect();
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

fn line_of(notice: &Notice) -> String {
    let text = flag::in_text(&notice.to_string());
    let advice = match notice {
        Notice::Throttled { .. } => format!("; {} asks less often", flag::of("delay")),
        Notice::Hanging { .. } => format!("; it is given up after {}", flag::of("timeout")),
        Notice::GivenUp { cause, .. } if !text.contains("; try ") => format!(" ({})", remedy(cause.kind, flag::of)),
        Notice::Postponed { .. } => "; raise --set max-near-duplicates to fetch them in turn".to_owned(),
        Notice::PrefixClosed { .. } => "; raise --set max-near-duplicates-in-all to fetch them".to_owned(),
        _ => String::new(),
    };
    text + &advice
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
        assert_eq!((budget.left, budget.omitted), (0, 980));
        (1..=60).for_each(|second| budget.tick(Duration::from_secs(second)));
        assert_eq!((budget.left, budget.omitted), (20, 0));
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
        assert_eq!((budget.left, budget.omitted), (19, 0), "one line each");
        budget.tick(Duration::from_secs(7200));
        budget.log(&notice("http://a.example/"), false);
        assert_eq!(budget.left, 19, "after a quiet hour");
        budget.left = 0;
        budget.log(&notice("http://c.example/"), false);
        budget.left = 1;
        budget.log(&notice("http://c.example/"), false);
        assert_eq!(budget.left, 0, "omitted at first, it has its line later");
    }

    #[test]
    fn an_origin_that_flaps_has_ever_fewer_pairs_of_lines_and_the_last_outage_has_its_line() {
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
        let back = Notice::Back {
            origin: origin.clone(),
            after,
        };
        let given_up = Notice::GivenUp {
            origin,
            cause: std::sync::Arc::new(frontier::Failure::new(frontier::FailureKind::Connect, "refused")),
            after,
            lost: 1,
        };
        let mut budget = LineBudget::new("hosts");
        for second in 0..20 {
            budget.tick(Duration::from_secs(second));
            budget.log(&away, false);
            budget.log(&back, false);
        }
        assert_eq!(budget.omitted, 38);
        budget.log(&away, false);
        budget.tick(Duration::from_secs(59));
        assert_eq!((budget.left, budget.omitted), (20, 39));
        // It is still away.
        budget.tick(Duration::from_secs(60));
        assert_eq!((budget.left, budget.omitted), (19, 0));
        budget.log(&back, false);
        assert_eq!((budget.left, budget.omitted), (18, 0));
        // Without a line left, an outage has neither line.
        budget.tick(Duration::from_secs(200));
        budget.left = 0;
        budget.log(&away, false);
        budget.left = 1;
        budget.log(&back, false);
        assert_eq!((budget.left, budget.omitted), (1, 2));

        let mut pairs = Vec::new();
        for second in (1000..5000).step_by(10) {
            budget.tick(Duration::from_secs(second));
            let before = budget.left;
            budget.log(&away, false);
            budget.log(&back, false);
            assert!(matches!(before - budget.left, 0 | 2), "a pair or nothing");
            if budget.left < before {
                pairs.push(second);
            }
        }
        budget.left = 0;
        budget.log(&away, false);
        (budget.left, budget.omitted) = (2, 0);
        budget.log(&given_up, false);
        assert_eq!((budget.left, budget.omitted), (1, 0));
        budget.tick(Duration::from_secs(9000));
        assert_eq!(budget.left, 2, "no line says that it is away after it was given up");
        assert_eq!(pairs, [1000, 1060, 1180, 1420, 1900, 2500, 3100, 3700, 4300, 4900]);
    }

    #[test]
    fn no_line_says_that_an_origin_is_away_that_was_closed_since() {
        let origin = frontier::Origin::of(&url::Url::parse("http://a.example/").unwrap()).unwrap();
        let cause = std::sync::Arc::new(frontier::Failure::new(frontier::FailureKind::Connect, "refused"));
        let after = Duration::from_secs(1);
        let away = Notice::Away {
            origin: origin.clone(),
            cause: cause.clone(),
            patience: after,
        };
        let back = Notice::Back {
            origin: origin.clone(),
            after,
        };
        let closed = Notice::Closed {
            origin,
            cause,
            rest: Duration::from_secs(600),
        };
        let mut budget = LineBudget::new("hosts");
        budget.log(&away, false);
        budget.log(&back, false);
        budget.log(&away, false);
        budget.log(&closed, false);
        budget.tick(Duration::from_secs(59));
        let left = budget.left;
        budget.tick(Duration::from_secs(60));
        assert_eq!(budget.left, left, "it is closed, and not away");
    }
}
