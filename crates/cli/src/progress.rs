//! How far the crawl is: a line that moves on a terminal, plain log lines elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use crawler::{Event, FailureKind, Observer, Progress};
use frontier::Notice;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::log_records;

/// How often a plain line is written where there is no terminal.
const PLAIN_LINE_EVERY: Duration = Duration::from_secs(5);

/// Makes the bar, hidden where standard error is no terminal.
pub(crate) fn bar(quiet: bool) -> ProgressBar {
    let bar = ProgressBar::no_length();
    if quiet || !io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
        bar.set_style(style);
    }
    bar
}

pub(crate) struct Reporter {
    bar: ProgressBar,
    last_line: Option<Duration>,
    has_told_failure: bool,
    hosts: LineBudget,
    near_duplicates: LineBudget,
}

impl Reporter {
    pub(crate) fn new(bar: ProgressBar) -> Self {
        Self {
            bar,
            last_line: None,
            has_told_failure: false,
            hosts: LineBudget::new("hosts that are away, back, closed or given up"),
            near_duplicates: LineBudget::new("near-duplicates"),
        }
    }

    /// One failure is worth knowing at once; of a site that fails there are many. Of hosts that are away there is a line of its own,
    /// and a want of file handles is no site's failure: the fetcher has logged it.
    fn shall_log(&mut self, kind: FailureKind) -> bool {
        use FailureKind::{Connect, OutOfHandles, Tls, Unresolved};
        !matches!(kind, OutOfHandles | Connect | Tls | Unresolved)
            && !std::mem::replace(&mut self.has_told_failure, true)
    }

    fn notice(&mut self, notice: &Notice) {
        match notice {
            Notice::Postponed { .. } | Notice::PrefixClosed { .. } => self.near_duplicates.log(notice),
            _ => self.hosts.log(notice),
        }
    }

    fn show(&mut self, progress: &Progress) {
        let line = line(progress);
        if !self.bar.is_hidden() {
            self.bar.set_message(line);
            self.bar.tick();
        } else if self
            .last_line
            .is_none_or(|last| progress.elapsed >= last + PLAIN_LINE_EVERY)
        {
            self.last_line = Some(progress.elapsed);
            log_records::progress(progress, &line);
        }
    }
}

impl Observer for Reporter {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Tick(progress) => {
                self.show(progress);
                self.hosts.tick(progress.elapsed);
                self.near_duplicates.tick(progress.elapsed);
            }
            Event::Notice(notice) => self.notice(notice),
            Event::Failed {
                url, why, kind, fate, ..
            } => {
                if self.shall_log(*kind) {
                    let line =
                        format!("{url}: {why}; further failures are in the summary, and logged one by one with -v");
                    log_records::failure(log::Level::Warn, url, *kind, *fate, &line);
                }
                log_records::failure(
                    log::Level::Debug,
                    url,
                    *kind,
                    *fate,
                    &format!("{url}: {why} ({fate:?})"),
                );
            }
            Event::NotFetched { url, why, cause, .. } => log_records::not_fetched(url, *why, *cause),
            Event::Page(page) => log_records::page(page),
            Event::Finished(_) => {
                self.hosts.close();
                self.near_duplicates.close();
                self.bar.finish_and_clear();
            }
            _ => {}
        }
        Ok(())
    }
}

/// Lets a handful of lines through, then one every two seconds; what is left out is counted in one line a minute.
struct LineBudget {
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

    fn new(about: &'static str) -> Self {
        Self {
            about,
            left: Self::HANDFUL,
            left_out: 0,
            last_refill: Duration::ZERO,
            last_count: Duration::ZERO,
        }
    }

    fn log(&mut self, notice: &Notice) {
        let (level, text) = line_of(notice);
        if self.left > 0 {
            self.left -= 1;
            log_records::notice(level, notice, &text);
        } else {
            self.left_out += 1;
            log_records::notice(log::Level::Debug, notice, &text);
        }
    }

    fn tick(&mut self, elapsed: Duration) {
        if elapsed >= self.last_refill + Self::REFILL_EVERY {
            self.last_refill = elapsed;
            self.left = (self.left + 1).min(Self::HANDFUL);
        }
        if elapsed >= self.last_count + Self::COUNT_EVERY {
            self.last_count = elapsed;
            self.close();
        }
    }

    /// Says how many lines were left out, if any.
    fn close(&mut self) {
        let (left_out, about) = (std::mem::take(&mut self.left_out), self.about);
        if left_out > 0 {
            log_records::omitted(left_out, about);
        }
    }
}

/// What a notice says, how loud, and by which option it can be changed.
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

fn line(progress: &Progress) -> String {
    let report = &progress.report;
    let rate = progress.pages as f64 / progress.elapsed.as_secs_f64().max(0.001);
    let refused: u64 = report.links.refused.values().sum();
    format!(
        "{} pages, {rate:.1} per second, {} queued, {} in flight, {} links refused, seen-set {}",
        progress.pages, report.queued, report.leased, refused, report.saturation.level
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_of_a_site_is_logged_and_a_want_of_handles_is_not() {
        let mut reporter = Reporter::new(bar(true));
        assert!(!reporter.shall_log(FailureKind::OutOfHandles));
        assert!(!reporter.shall_log(FailureKind::Connect));
        assert!(reporter.shall_log(FailureKind::Timeout));
        assert!(!reporter.shall_log(FailureKind::Timeout));
        assert!(!reporter.shall_log(FailureKind::OutOfHandles));
    }

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
