//! The progress of the crawl: a view of two lines on a terminal, log lines elsewhere and for SIGUSR1. All have one text.

mod notices;
mod pace;

use std::collections::HashSet;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crawler::{CrawlOptions, Event, FailureKind, Observer, Progress, SitemapEnd, SitemapRecord};
use frontier::{Notice, Origin};
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use sieve::Level;

use self::notices::LineBudget;
use self::pace::Pace;
use crate::log_records;
use crate::logging;

/// The interval of progress log lines where there is no terminal.
const LOG_LINE_EVERY: Duration = Duration::from_secs(5);

/// The maximum rate at which the view is drawn.
const DRAWS_PER_SECOND: u8 = 20;

/// The view: the progress, and below it the last page, cut at the edge of the terminal.
const TEMPLATE: &str = "{spinner} {prefix}\n  {wide_msg}";

/// Makes the progress view. It is also hidden if standard error is not a terminal.
pub(crate) fn bar(is_hidden: bool) -> ProgressBar {
    let target = if is_hidden || !io::stderr().is_terminal() {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND)
    };
    let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::with_draw_target(None, target).with_style(style)
}

/// A request for a progress line in the log, which comes within a second. Several requests within that time get one line.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatusRequest(Arc<AtomicBool>);

impl StatusRequest {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

pub(crate) struct Reporter {
    bar: ProgressBar,
    request: StatusRequest,
    pace: Pace,
    last_line: Duration,
    has_logged_failure: bool,
    has_logged_sitemap: bool,
    has_pages: bool,
    /// The origins that are away now. The frontier limits the number of hosts.
    away: HashSet<Origin>,
    hosts: LineBudget,
    near_duplicates: LineBudget,
}

impl Reporter {
    pub(crate) fn new(bar: ProgressBar, options: &CrawlOptions, request: StatusRequest) -> Self {
        Self {
            bar,
            request,
            pace: Pace::new(options),
            last_line: Duration::ZERO,
            has_logged_failure: false,
            has_logged_sitemap: false,
            has_pages: false,
            away: HashSet::new(),
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
            Notice::Away { origin, .. } => _ = self.away.insert(origin.clone()),
            Notice::Back { origin, .. } | Notice::GivenUp { origin, .. } => _ = self.away.remove(origin),
            _ => {}
        }
        match notice {
            Notice::Postponed { .. } | Notice::PrefixClosed { .. } => self.near_duplicates.log(notice, false),
            _ => self.hosts.log(notice, !self.has_pages),
        }
    }

    fn tick(&mut self, progress: &Progress) {
        self.pace.add(progress);
        let text = self.text(progress);
        if self.request.take() {
            log_records::progress(logging::STATUS, progress, self.away.len(), &text);
        }
        let is_due = progress.elapsed >= self.last_line + LOG_LINE_EVERY;
        if !self.bar.is_hidden() {
            self.bar.set_prefix(text);
            self.bar.tick();
        } else if is_due {
            self.last_line = progress.elapsed;
            log_records::progress("crawler::progress", progress, self.away.len(), &text);
        }
    }

    /// Returns the progress as a line. The remaining time is an estimate.
    fn text(&self, progress: &Progress) -> String {
        let report = &progress.report;
        let (rate, bytes) = (self.pace.rate(), HumanBytes(progress.bytes));
        let away = match self.away.len() {
            0 => String::new(),
            origins => format!(", {origins} origins away"),
        };
        let seen_set = match report.saturation.level {
            Level::HEALTHY => String::new(),
            level => format!(", seen-set {level}"),
        };
        let remaining = match self.pace.remaining() {
            Some(time) => format!(", ETA {:#}", HumanDuration(time)),
            None => String::new(),
        };
        format!(
            "{} pages in {:#}, {rate:.1}/s, {} queued, {} in flight, {} failed{away}, {bytes}{seen_set}{remaining}",
            progress.pages,
            HumanDuration(progress.elapsed),
            report.queued,
            report.leased,
            progress.failed,
        )
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
                let line = format!("{url}: {why} ({fate:?})");
                log_records::failure(log::Level::Debug, url, *kind, *fate, &line);
            }
            Event::Sitemap(SitemapRecord {
                url,
                end: SitemapEnd::Failed(why),
                ..
            }) => {
                let level = match std::mem::replace(&mut self.has_logged_sitemap, true) {
                    true => log::Level::Debug,
                    false => log::Level::Warn,
                };
                log_records::sitemap(level, url, why);
            }
            Event::NotFetched { url, why, cause, .. } => log_records::not_fetched(url, *why, *cause),
            Event::Page(page) => {
                self.has_pages = true;
                if !self.bar.is_hidden() {
                    self.bar.set_message(format!("{} {}", page.status, page.url));
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_of_a_site_is_logged_and_a_lack_of_file_handles_is_not() {
        let mut reporter = Reporter::new(bar(true), &CrawlOptions::default(), StatusRequest::default());
        assert!(!reporter.is_first_failure(FailureKind::OutOfHandles));
        assert!(!reporter.is_first_failure(FailureKind::Connect));
        assert!(reporter.is_first_failure(FailureKind::Timeout));
        assert!(!reporter.is_first_failure(FailureKind::Timeout));
        assert!(!reporter.is_first_failure(FailureKind::OutOfHandles));
    }

    #[test]
    fn the_progress_line_has_the_origins_that_are_away_and_the_remaining_time() {
        let mut options = CrawlOptions::default();
        let report = frontier::Frontier::in_memory(options.frontier.clone())
            .unwrap()
            .report();
        options.max_time = Some(Duration::from_secs(600));
        let mut reporter = Reporter::new(bar(true), &options, StatusRequest::default());
        let progress = Progress::new(Duration::from_secs(60), report);
        let line = reporter.text(&progress);
        assert_eq!(line, "0 pages in 60s, 0.0/s, 0 queued, 0 in flight, 0 failed, 0 B");
        reporter
            .pace
            .add(&Progress::new(Duration::ZERO, progress.report.clone()));
        reporter.pace.add(&progress);
        let origin = Origin::of(&url::Url::parse("http://a.example/").unwrap()).unwrap();
        reporter.away.insert(origin);
        let line = reporter.text(&progress);
        assert!(
            line.contains(", 1 origins away, ") && line.ends_with(", ETA 9m"),
            "{line}"
        );
    }
}
