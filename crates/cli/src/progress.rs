//! The progress of the crawl: a view of at most four lines on a terminal, log lines elsewhere and for SIGUSR1.
//!
//! The lines are the pace; the pages; the seen-set, with the worst host; and the last page. The first two are the text of log lines, too. A
//! seen-set beyond its capacity has the third line for itself, in colour unless `NO_COLOR` is set. A text that a site chooses comes last in its
//! line, and is cut. A terminal that cannot move its cursor (`TERM=dumb`) gets log lines.

mod losses;
mod notices;
mod pace;

use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crawler::summary::{HostFigures, duration, grouped, rounded_down, size};
use crawler::{CrawlOptions, Event, FailureKind, Observer, Phase, SitemapEnd, SitemapRecord, StopHandle, Summary};
use frontier::{Health, Notice};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use sieve::{Level, Saturation};

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

/// The view: the pace and the pages, the seen-set, and the last page, which is cut at the edge of the terminal.
const TEMPLATE: &str = "{spinner} {prefix}\n  {seen_set}\n  {wide_msg}";

/// The view when the seen-set is full. indicatif leaves the colour out as `NO_COLOR` or `CLICOLOR` say.
const WARNING: &str = "{spinner} {prefix}\n  {seen_set:.yellow}\n  {wide_msg}";

/// What is said of a process that [waits for others](Summary::waits_for_others).
pub(crate) const WAITS_FOR_OTHERS: &str =
    "nothing is left to fetch here, and it waits for the other partitions: `crawler cluster status` says for which";

/// The columns of a line beside its indent: 80 in all.
const COLUMNS: usize = 78;

/// Makes the progress view. It is also hidden if standard error is not a terminal.
pub(crate) fn bar(is_hidden: bool) -> ProgressBar {
    let target = if is_hidden || !io::stderr().is_terminal() {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND)
    };
    ProgressBar::with_draw_target(None, target).with_style(style(TEMPLATE, String::new()))
}

fn style(template: &str, seen_set: String) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    let write = move |_: &ProgressState, to: &mut dyn fmt::Write| _ = to.write_str(&seen_set);
    style.with_key("seen_set", write)
}

pub(crate) struct Reporter {
    bar: ProgressBar,
    /// Whether the signal asks for a progress line in the log, which comes within a second. Several within that time get one line.
    sigusr1: Arc<AtomicBool>,
    pace: Pace,
    last_line: Duration,
    has_logged_failure: bool,
    has_logged_sitemap: bool,
    has_pages: bool,
    /// What the crawl does.
    stop: StopHandle,
    hosts: LineBudget,
    near_duplicates: LineBudget,
    losses: Losses,
}

impl Reporter {
    pub(crate) fn new(bar: ProgressBar, options: &CrawlOptions, sigusr1: Arc<AtomicBool>, stop: StopHandle) -> Self {
        Self {
            bar,
            sigusr1,
            pace: Pace::new(options),
            last_line: Duration::ZERO,
            has_logged_failure: false,
            has_logged_sitemap: false,
            has_pages: false,
            stop,
            hosts: LineBudget::new("hosts in trouble, or back"),
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
            Notice::Postponed { .. } | Notice::PrefixClosed { .. } => self.near_duplicates.log(notice, false),
            _ => self.hosts.log(notice, !self.has_pages),
        }
    }

    fn tick(&mut self, summary: &Summary) {
        self.pace.add(summary);
        let mut texts = self.texts(summary).to_vec();
        let table = &summary.host_table;
        let is_running = self.stop.phase() == Phase::Running;
        let held_up_by = table.held_up_by().filter(|host| is_running && is_named(host, summary));
        texts.extend(held_up_by.map(|host| {
            let explained = host.explained(table.as_of, &flag::of);
            format!("held up by {}: {explained}", host.host)
        }));
        texts.extend((is_running && summary.waits_for_others()).then(|| WAITS_FOR_OTHERS.to_owned()));
        let log = |target| log_records::progress(target, summary, &texts.join(", "));
        if self.sigusr1.swap(false, Ordering::Relaxed) {
            log(logging::STATUS);
        }
        if !self.bar.is_hidden() {
            let (template, [pace, pages, seen_set]) = self.view(summary, self.stop.phase());
            self.bar.set_style(style(template, seen_set));
            self.bar.set_prefix(format!("{pace}\n  {pages}"));
            self.bar.tick();
        } else if summary.elapsed >= self.last_line + LOG_LINE_EVERY {
            log("crawler::progress");
            self.last_line = summary.elapsed;
        }
        self.losses.tick(summary);
        self.hosts.tick(summary.elapsed);
        self.near_duplicates.tick(summary.elapsed);
    }

    /// Returns the progress as two texts, each of which fits into a line of a terminal. The remaining time is an estimate.
    fn texts(&self, summary: &Summary) -> [String; 2] {
        let (mut pages, lost) = (pages(summary), lost(summary));
        match summary.report.saturation.level {
            Level::HEALTHY => pages.extend(lost),
            level => pages.push(lost.unwrap_or_else(|| format!("seen-set {level}"))),
        }
        [self.pace(summary, self.stop.phase()), pages.join(", ")]
    }

    /// Returns the template and the first three lines of the view. A crawl that does not just run has its phase instead of its end.
    fn view(&self, summary: &Summary, phase: Phase) -> (&'static str, [String; 3]) {
        let mut pages = pages(summary);
        pages.extend(lost(summary));
        let (level, seen_set) = seen_set(&summary.report.saturation, worst_host(summary));
        let template = if level < Level::FULL { TEMPLATE } else { WARNING };
        let seen_set = seen_set.chars().take(COLUMNS).collect();
        (template, [self.pace(summary, phase), pages.join(", "), seen_set])
    }

    fn pace(&self, summary: &Summary, phase: Phase) -> String {
        let mut pace = vec![
            format!("{} pages in {}", grouped(summary.pages), duration(summary.elapsed)),
            format!("{:.1}/s recent", summary.recent_pages_per_second()),
            format!("{:.1}/s mean", summary.mean_pages_per_second()),
        ];
        let hosts = &summary.host_table;
        pace.extend(match phase {
            Phase::Running if summary.waits_for_others() => Some("waits for others".to_owned()),
            Phase::Running if let Some(freshness) = &summary.freshness => {
                Some(format!("{:.1} % fresh", freshness.fresh * 100.0))
            }
            Phase::Running => {
                // Each of those that look alike may lead to more, up to a limit; others lead to more without one.
                let holding_up = hosts.hosts.iter().filter(|host| host.left.is_some());
                let is_bound = holding_up.map(|host| host.alike).min() > Some(0);
                let (left, is_limit) = self.pace.remaining(hosts.left(), is_bound).unzip();
                let (at_most, at_least) = match left == hosts.left() {
                    _ if is_bound || is_limit == Some(true) => ("<", ""),
                    // What hangs has spent attempts, so it takes less.
                    true if hosts.held_up_by().is_some_and(|host| host.health.pages_hang()) => ("<", ""),
                    true => ("", "+"),
                    false => ("", ""),
                };
                left.map(|left| format!("ETA {at_most}{}{at_least}", duration(left)))
            }
            phase => Some(phase.name().to_owned()),
        });
        pace.push(size(summary.answers.bytes).to_string());
        pace.join(", ")
    }
}

fn pages(summary: &Summary) -> Vec<String> {
    let report = &summary.report;
    let mut pages = vec![
        format!("{} queued", grouped(report.queued)),
        format!("{} in flight", report.leased),
        format!("{} failed", grouped(summary.failed_pages())),
    ];
    match summary.host_table.away() {
        0 => {}
        away => pages.push(format!("{away} away")),
    }
    pages
}

/// A host that is asked is worth a name only if there are others, or if it may go on for long.
fn is_named(host: &HostFigures, summary: &Summary) -> bool {
    host.health.state > Health::Asked || host.alike > 0 || summary.report.hosts > 1
}

/// `None` if nothing waits.
fn worst_host(summary: &Summary) -> Option<String> {
    let host = summary
        .host_table
        .held_up_by()
        .filter(|host| summary.report.pages_left() > 0 && is_named(host, summary))?;
    let left = host.left_in_words()?;
    Some(format!("{}, {left}: {}", host.state_in_words(), host.host))
}

/// `None` if none is.
fn lost(summary: &Summary) -> Option<String> {
    let lost = summary.missing().iter().map(|one| one.lost).sum::<u64>();
    match (summary.lost_at_least(), lost) {
        (0, 0) => None,
        (0, lost) => Some(format!("~{} LOST", grouped(rounded_down(lost)))),
        (lost, _) => Some(format!("{}+ LOST", grouped(rounded_down(lost)))),
    }
}

/// Returns the level of the seen-set, and a line about it and a host. A full one leaves no room for the host.
fn seen_set(saturation: &Saturation, host: Option<String>) -> (Level, String) {
    let keys = saturation.estimated as u64;
    let host = host.map(|host| format!("; {host}"));
    let Some(capacity) = saturation.grown_capacity.or(saturation.capacity) else {
        let (keys, host) = (grouped(keys), host.unwrap_or_default());
        return (Level::HEALTHY, format!("seen-set: {keys} keys{host}"));
    };
    let ratio = saturation.estimated / capacity as f64;
    let level = Level::of(ratio);
    let name = match level {
        Level::HEALTHY => "seen-set".to_owned(),
        level => format!("seen-set {level}"),
    };
    let (keys, capacity, percent) = (grouped(rounded_down(keys)), grouped(capacity), 100.0 * ratio);
    let text = match host {
        _ if level >= Level::FULL => {
            let dropped = 100.0 * saturation.rate;
            format!("{name}: {keys} of {capacity} keys, {dropped:.1} % of new keys dropped")
        }
        Some(host) => format!("{name} {percent:.0} %{host}"),
        None => format!("{name}: {keys} of {capacity} keys ({percent:.0} %)"),
    };
    (level, text)
}

impl Observer for Reporter {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Tick(summary) => self.tick(summary),
            Event::Notice(notice) => self.notice(notice),
            Event::Failed { entry, failure, fate } => {
                let (url, kind, why) = (&entry.url, failure.kind, flag::in_text(&failure.message));
                if self.is_first_failure(kind) {
                    let line = format!("{url}: {why}; the summary counts further failures, and -v logs each");
                    log_records::failure(log::Level::Warn, url, kind, *fate, &line);
                }
                let line = format!("{url}: {why} ({fate:?})");
                log_records::failure(log::Level::Debug, url, kind, *fate, &line);
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
            Event::NotFetched { entry, why, cause } => log_records::not_fetched(&entry.url, *why, *cause),
            Event::Page(page) => {
                self.has_pages = true;
                if !self.bar.is_hidden() {
                    self.bar.set_message(format!("{} {}", page.status, page.url));
                }
                log_records::page(page);
            }
            Event::Finished(summary) => {
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
    use frontier::Time;

    use super::*;

    fn reporter(options: &CrawlOptions) -> Reporter {
        let seeds = vec!["http://a.example/".to_owned()];
        let crawl = crawler::Crawl::new(CrawlOptions {
            seeds,
            ..CrawlOptions::default()
        });
        let stop = crawl.unwrap().stop_handle();
        Reporter::new(bar(true), options, Arc::default(), stop)
    }

    #[test]
    fn the_first_failure_of_a_site_is_logged_and_a_lack_of_file_handles_is_not() {
        let mut reporter = reporter(&CrawlOptions::default());
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
        let mut reporter = reporter(&options);
        let mut summary = Summary::new(Ending::Drained, Counts::default(), report);
        reporter.pace.add(&summary);
        summary.elapsed = Duration::from_secs(6_000);
        let pace = "0 pages in 1.7 h, 0.0/s recent, 0.0/s mean, 0 B";
        assert_eq!(reporter.texts(&summary), [pace, "0 queued, 0 in flight, 0 failed"]);
        reporter.pace.add(&summary);
        Arc::make_mut(&mut summary.host_table)
            .by_health
            .insert(Health::Away, 12);
        (summary.counts.pages, summary.counts.answers.bytes) = (1_234_567, 1 << 45);
        summary.counts.failures.by_kind.insert(FailureKind::Timeout, 12_345);
        (summary.report.queued, summary.report.leased) = (12_345_678, 1000);
        summary.report.pages.gave_up = 45_678;
        let texts = reporter.texts(&summary);
        let pace = "1 234 567 pages in 1.7 h, 205.8/s recent, 205.8/s mean, ETA <9.0 min, ";
        assert!(texts[0].starts_with(pace), "{texts:?}");
        assert!(texts[1].ends_with("12 345 failed, 12 away, 45 600+ LOST"), "{texts:?}");
        assert!(texts.iter().all(|text| text.len() <= 78), "{texts:?}");
        let (_, view) = reporter.view(&summary, Phase::Running);
        assert_eq!(view[..2], texts);
        let (_, view) = reporter.view(&summary, Phase::Pausing);
        assert!(view[0].contains("/s mean, pausing, "), "{view:?}");
        assert_eq!(view[1], texts[1]);
        let mut endless = figures("d.example", false);
        (endless.report.alike, endless.left) = (2, Some(Duration::MAX));
        Arc::make_mut(&mut summary.host_table).hosts = vec![endless];
        let texts = reporter.texts(&summary);
        assert!(
            texts[0].contains(", ETA <9.0 min, "),
            "each may lead to more: {texts:?}"
        );
        let mut slow = figures("slow.example", false);
        slow.left = Some(Duration::from_secs(60));
        Arc::make_mut(&mut summary.host_table).hosts = vec![slow];
        let texts = reporter.texts(&summary);
        assert!(texts[0].contains(", ETA 60.0 s+, "), "it may lead to more: {texts:?}");
        summary.report.partition = frontier::Partition::new(1, 4).ok();
        assert!(!summary.waits_for_others(), "no host of the table waits, but pages do");
        summary.report.is_budget_spent = true;
        assert!(reporter.texts(&summary)[0].contains("waits for others"));
    }

    /// The figures of a host with a page that waits, after one was answered or refused.
    fn figures(host: &str, is_away: bool) -> HostFigures {
        let (mut config, now) = (frontier::FrontierConfig::default(), Time::from_millis(1));
        config.politeness.ask_robots = false;
        config.retries.retry_jitter = 0;
        let mut frontier = frontier::Frontier::in_memory(config).unwrap();
        let url = |page| frontier::Canonicalizer::default().parse(&format!("http://{host}/{page}"));
        let seeds = [1, 2].map(|page| frontier::Link::seed(url(page).unwrap()));
        frontier.offer(&seeds, now).unwrap();
        let frontier::Leasing::Ready(leases) = frontier.lease(now, 1).unwrap() else {
            panic!("a page is ready")
        };
        let refused = frontier::Failure::new(FailureKind::Connect, "refused");
        match is_away {
            true => drop(frontier.settle(&[leases[0].failed(refused)], now).unwrap()),
            false => drop(frontier.release_leases(now).unwrap()),
        }
        let report = frontier.host_report(&url(1).unwrap().host(), now);
        HostFigures::new(report.unwrap(), now)
    }

    #[test]
    fn the_third_line_of_the_view_has_the_seen_set_and_the_host_that_holds_the_crawl_up() {
        let options = CrawlOptions::default();
        let report = frontier::Frontier::in_memory(options.frontier.clone());
        let mut summary = Summary::new(Ending::Drained, Counts::default(), report.unwrap().report());
        (summary.report.queued_pages, summary.report.hosts) = (7, 2);
        let million = Some(1_000_000);
        let long = vec!["a".repeat(60); 3].join(".");
        let cut = format!(" 1 %; away, at least 3.0 s left: {}", &long[..37]);
        let full = " 1.5x: 1 600 000 of 1 000 000 keys, 3.2 % of new keys dropped";
        let (fixed, exact, grown) = ((million, None), (None, None), (million, Some(4_000_000)));
        let (asked, away) = (Some(("d.example", false)), Some(("b.example", true)));
        let cases = [
            // Host, capacity, keys.
            (None, fixed, 12_345.6, ": 12 300 of 1 000 000 keys (1 %)"),
            (
                asked,
                exact,
                12_345.0,
                ": 12 345 keys; asked, at least 2.0 s left: d.example",
            ),
            (None, fixed, 850e3, " filling: 850 000 of 1 000 000 keys (85 %)"),
            (None, grown, 2e6, ": 2 000 000 of 4 000 000 keys (50 %)"),
            (away, exact, 9.0, ": 9 keys; away, at least 3.0 s left: b.example"),
            (
                away,
                fixed,
                850e3,
                " filling 85 %; away, at least 3.0 s left: b.example",
            ),
            (Some((&long, true)), fixed, 12_345.6, cut.as_str()),
            (away, fixed, 1.6e6, full),
        ];
        for (host, (capacity, grown), keys, expected) in cases {
            let reporter = reporter(&options);
            let hosts = host.map(|(host, is_away)| figures(host, is_away));
            Arc::make_mut(&mut summary.host_table).hosts = hosts.into_iter().collect();
            let saturation = &mut summary.report.saturation;
            (saturation.load.capacity, saturation.load.grown_capacity) = (capacity, grown);
            (saturation.load.estimated, saturation.load.rate) = (keys, 0.032);
            saturation.level = Level::of(keys / 1e6);
            let (template, [_, pages, shown]) = reporter.view(&summary, Phase::Running);
            assert_eq!(shown, format!("seen-set{expected}"));
            assert!(shown.len() <= COLUMNS && !pages.contains("seen-set"), "{shown}");
            assert_eq!(template == WARNING, expected == full, "{shown}");
        }
        // The only host of a crawl is named if its pages may have no end.
        let mut endless = figures("d.example", false);
        summary.report.hosts = 1;
        for (alike, is_named) in [(0, false), (3, true)] {
            endless.report.alike = alike;
            Arc::make_mut(&mut summary.host_table).hosts = vec![endless.clone()];
            assert_eq!(worst_host(&summary).is_some(), is_named);
        }
    }
}
