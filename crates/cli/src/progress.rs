//! The progress of the crawl: a view of two lines on a terminal, log lines elsewhere.

mod notices;
mod pace;
mod terminal;
mod text;

use std::io::{self, IsTerminal};
use std::num::NonZeroU32;
use std::time::Duration;

use crawler::{CrawlOptions, Event, FailureKind, Observer, PageRecord, Progress};
use frontier::Notice;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::notices::LineBudget;
use self::pace::Pace;
use self::terminal::Terminal;
use self::text::{Status, page_line};
use crate::log_records;

/// The interval of progress log lines where there is no terminal.
const LOG_LINE_EVERY: Duration = Duration::from_secs(5);

/// The maximum rate at which the view is drawn.
const DRAWS_PER_SECOND: u8 = 20;

/// The columns of the view without its text: the spinner or an indent, and a space.
const MARGIN: usize = 2;

/// The hint that politeness limits the rate appears after this time,
const HINT_AFTER: Duration = Duration::from_secs(10);
/// and with at least this many URLs in the queue.
const HINT_MIN_QUEUED: u64 = 20;

/// Makes the progress view. It is also hidden if standard error is not a terminal.
pub(crate) fn bar(is_hidden: bool) -> ProgressBar {
    let target = if is_hidden || !io::stderr().is_terminal() {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::term_like_with_hz(Box::new(Terminal::stderr()), DRAWS_PER_SECOND)
    };
    let bar = ProgressBar::with_draw_target(None, target);
    bar.set_style(style());
    bar
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {msg}\n  {prefix}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

pub(crate) struct Reporter {
    bar: ProgressBar,
    width: usize,
    pace: Pace,
    hint: Option<Hint>,
    last_line: Duration,
    has_logged_failure: bool,
    has_pages: bool,
    hosts: LineBudget,
    near_duplicates: LineBudget,
}

impl Reporter {
    pub(crate) fn new(bar: ProgressBar, options: &CrawlOptions) -> Self {
        Self {
            bar,
            width: usize::from(terminal::view_width()).saturating_sub(MARGIN),
            pace: Pace::new(options),
            hint: Hint::new(options),
            last_line: Duration::ZERO,
            has_logged_failure: false,
            has_pages: false,
            hosts: LineBudget::new("hosts that are away, back, closed or given up"),
            near_duplicates: LineBudget::new("near-duplicates"),
        }
    }

    /// Returns whether this is the first failure of the crawl, which is logged at once. Others log two kinds: `Away` notices report
    /// failed connections, and the fetcher reports a lack of file handles.
    fn is_first_failure(&mut self, kind: FailureKind) -> bool {
        use FailureKind::{Connect, OutOfHandles, Tls, Unresolved};
        !matches!(kind, OutOfHandles | Connect | Tls | Unresolved)
            && !std::mem::replace(&mut self.has_logged_failure, true)
    }

    fn notice(&mut self, notice: &Notice) {
        match notice {
            Notice::Postponed { .. } | Notice::PrefixClosed { .. } => self.near_duplicates.log(notice, false),
            _ => self.hosts.log(notice, !self.has_pages),
        }
    }

    fn tick(&mut self, progress: &Progress) {
        self.pace.add(progress);
        let status = Status::new(progress, &self.pace);
        if !self.bar.is_hidden() {
            self.width = usize::from(terminal::view_width()).saturating_sub(MARGIN);
            self.bar.set_message(status.line(self.width));
            self.bar.tick();
        } else if progress.elapsed >= self.last_line + LOG_LINE_EVERY {
            self.last_line = progress.elapsed;
            let level = progress.report.saturation.level;
            log_records::progress(progress, &format!("{}, seen-set {level}", status.line(usize::MAX)));
        }
        let hint = self.hint.take_if(|hint| hint.is_due(progress));
        if let Some(hint) = hint {
            log::info!(target: "crawler::progress", "{}", hint.text(self.pace.rate()));
        }
    }

    fn show_page(&self, page: &PageRecord) {
        if !self.bar.is_hidden() {
            self.bar.set_prefix(page_line(page.status, &page.url, self.width));
        }
    }
}

impl Observer for Reporter {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Tick(progress) => {
                self.tick(progress);
                self.hosts.tick(progress.elapsed);
                self.near_duplicates.tick(progress.elapsed);
            }
            Event::Notice(notice) => self.notice(notice),
            Event::Failed {
                url, why, kind, fate, ..
            } => {
                if self.is_first_failure(*kind) {
                    let line = format!("{url}: {why}; the summary counts further failures, and -v logs each");
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
            Event::Page(page) => {
                self.has_pages = true;
                self.show_page(page);
                log_records::page(page);
            }
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

/// For a crawl of one host, which is as fast as politeness allows, whatever `--concurrency` says.
struct Hint {
    delay: Duration,
}

impl Hint {
    /// Returns a hint if the options leave only politeness to one host as the limit.
    fn new(options: &CrawlOptions) -> Option<Self> {
        let frontier = &options.frontier;
        let is_limited = frontier.per_host == NonZeroU32::MIN && !frontier.delay.is_zero();
        (is_limited && options.concurrency.get() > 1).then_some(Self { delay: frontier.delay })
    }

    fn is_due(&self, progress: &Progress) -> bool {
        let report = &progress.report;
        // The rate is that of this run.
        let of_run = progress.elapsed.saturating_sub(progress.elapsed_before);
        of_run >= HINT_AFTER && report.hosts == 1 && report.queued >= HINT_MIN_QUEUED
    }

    /// `rate` is in pages per second.
    fn text(&self, rate: f64) -> String {
        format!(
            "one host, one request at a time, {:?} apart: about {:.0} pages per hour; --delay and --per-host change the rate, \
             --concurrency does not",
            self.delay,
            rate * 3600.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_of_a_site_is_logged_and_a_lack_of_file_handles_is_not() {
        let mut reporter = Reporter::new(bar(true), &CrawlOptions::default());
        assert!(!reporter.is_first_failure(FailureKind::OutOfHandles));
        assert!(!reporter.is_first_failure(FailureKind::Connect));
        assert!(reporter.is_first_failure(FailureKind::Timeout));
        assert!(!reporter.is_first_failure(FailureKind::Timeout));
        assert!(!reporter.is_first_failure(FailureKind::OutOfHandles));
    }

    #[test]
    fn a_crawl_limited_by_one_host_logs_a_hint_once() {
        let options = CrawlOptions::default();
        let report = frontier::Frontier::in_memory(options.frontier.clone())
            .unwrap()
            .report();
        let progress = |seconds, hosts, queued| {
            let mut progress = Progress::new(Duration::from_secs(seconds), report.clone());
            (progress.report.hosts, progress.report.queued) = (hosts, queued);
            progress
        };
        let hint = Hint::new(&options).unwrap();
        assert!(hint.is_due(&progress(10, 1, 20)));
        for (seconds, hosts, queued) in [(9, 1, 20), (10, 2, 20), (10, 1, 19)] {
            assert!(
                !hint.is_due(&progress(seconds, hosts, queued)),
                "{seconds} {hosts} {queued}"
            );
        }
        let mut continued = progress(30, 1, 20);
        continued.elapsed_before = Duration::from_secs(21);
        assert!(!hint.is_due(&continued), "there is no rate of this run yet");
        continued.elapsed_before = Duration::from_secs(20);
        assert!(hint.is_due(&continued));
        assert!(
            hint.text(0.95)
                .starts_with("one host, one request at a time, 1s apart: about 3420 pages per hour;")
        );
        let mut reporter = Reporter::new(bar(true), &options);
        reporter.tick(&progress(10, 1, 20));
        assert!(reporter.hint.is_none(), "it is logged once");
        let mut quick = options.clone();
        quick.frontier.delay = Duration::ZERO;
        assert!(Hint::new(&quick).is_none());
        let mut parallel = options;
        parallel.frontier.per_host = NonZeroU32::MIN.saturating_add(1);
        assert!(Hint::new(&parallel).is_none());
    }
}
