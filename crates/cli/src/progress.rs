//! The progress of the crawl: a view of two lines on a terminal, log lines elsewhere and for SIGUSR1. All have one text.

mod losses;
mod notices;
mod pace;

use std::collections::HashSet;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crawler::summary::{duration, grouped, rounded_down, size};
use crawler::{CrawlOptions, Event, FailureKind, Missing, Observer, SitemapEnd, SitemapRecord, Summary};
use frontier::{Notice, Origin};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sieve::Level;

use self::losses::Losses;
use self::notices::LineBudget;
use self::pace::Pace;
use crate::flag;
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
    losses: Losses,
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
            losses: Losses::default(),
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

    fn tick(&mut self, summary: &Summary) {
        self.pace.add(summary);
        let texts = self.texts(summary);
        let log = |target| log_records::progress(target, summary, self.away.len(), &texts.join(", "));
        if self.request.take() {
            log(logging::STATUS);
        }
        if !self.bar.is_hidden() {
            self.bar.set_prefix(texts.join("\n  "));
            self.bar.tick();
        } else if summary.elapsed >= self.last_line + LOG_LINE_EVERY {
            log("crawler::progress");
            self.last_line = summary.elapsed;
        }
        log_records::busiest(&summary.busiest);
        self.losses.tick(summary);
        self.hosts.tick(summary.elapsed);
        self.near_duplicates.tick(summary.elapsed);
    }

    /// Returns the progress as two texts, each of which fits into a line of a terminal. The remaining time is an estimate.
    fn texts(&self, summary: &Summary) -> [String; 2] {
        let report = &summary.report;
        let mut pace = vec![
            format!("{} pages in {}", grouped(summary.pages), duration(summary.elapsed)),
            format!("{:.1}/s recent", summary.recent_pages_per_second()),
            format!("{:.1}/s mean", summary.mean_pages_per_second()),
        ];
        pace.extend(self.pace.remaining().map(|time| format!("ETA {}", duration(time))));
        pace.push(size(summary.bytes).to_string());
        let mut pages = vec![
            format!("{} queued", grouped(report.queued)),
            format!("{} in flight", report.leased),
            format!("{} failed", grouped(summary.failed_pages())),
        ];
        if !self.away.is_empty() {
            pages.push(format!("{} away", self.away.len()));
        }
        let lost = summary.missing().iter().map(Missing::lost).sum::<u64>();
        match (summary.lost_at_least(), lost, report.saturation.level) {
            (0, 0, Level::HEALTHY) => {}
            (0, 0, level) => pages.push(format!("seen-set {level}")),
            (0, lost, _) => pages.push(format!("~{} LOST", grouped(rounded_down(lost)))),
            (lost, _, _) => pages.push(format!("{}+ LOST", grouped(rounded_down(lost)))),
        }
        [pace, pages].map(|parts| parts.join(", "))
    }
}

impl Observer for Reporter {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Tick(summary) => self.tick(summary),
            Event::Notice(notice) => self.notice(notice),
            Event::Failed {
                url, why, kind, fate, ..
            } => {
                let why = flag::in_text(why);
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
            Event::Finished(summary) => {
                log_records::busiest(&summary.busiest);
                self.losses.close(summary);
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
    use crawler::Ending;
    use crawler::summary::Counts;

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
    fn the_progress_has_the_rates_what_is_away_and_lost_and_the_remaining_time_in_lines_of_80_columns() {
        let mut options = CrawlOptions::default();
        let report = frontier::Frontier::in_memory(options.frontier.clone())
            .unwrap()
            .report();
        options.max_time = Some(Duration::from_secs(6_540));
        let mut reporter = Reporter::new(bar(true), &options, StatusRequest::default());
        let mut summary = Summary::new(Ending::Drained, Counts::default(), report);
        reporter.pace.add(&summary);
        summary.elapsed = Duration::from_secs(6_000);
        let pace = "0 pages in 1.7 h, 0.0/s recent, 0.0/s mean, 0 B";
        assert_eq!(reporter.texts(&summary), [pace, "0 queued, 0 in flight, 0 failed"]);
        reporter.pace.add(&summary);
        let origin = |host: u32| Origin::of(&url::Url::parse(&format!("http://{host}.example/")).unwrap()).unwrap();
        reporter.away.extend((0..12).map(origin));
        (summary.counts.pages, summary.counts.bytes) = (1_234_567, 1 << 45);
        summary.counts.failed.insert(FailureKind::Timeout, 12_345);
        (summary.report.queued, summary.report.leased) = (12_345_678, 1000);
        summary.report.pages.gave_up = 45_678;
        let texts = reporter.texts(&summary);
        let pace = "1 234 567 pages in 1.7 h, 205.8/s recent, 205.8/s mean, ETA 9.0 min, ";
        assert!(texts[0].starts_with(pace), "{texts:?}");
        assert!(texts[1].ends_with("12 345 failed, 12 away, 45 600+ LOST"), "{texts:?}");
        assert!(texts.iter().all(|text| text.len() <= 78), "{texts:?}");
    }
}
