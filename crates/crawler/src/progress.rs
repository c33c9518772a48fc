//! How far the crawl is: a line that moves on a terminal, plain log lines elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use crawler::{Event, FailureKind, Observer, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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
}

impl Reporter {
    pub(crate) fn new(bar: ProgressBar) -> Self {
        Self {
            bar,
            last_line: None,
            has_told_failure: false,
        }
    }

    /// One failure is worth knowing at once; of a site that is down there are many. A want of file handles is no site's
    /// failure, and the fetcher has told of it.
    fn shall_tell(&mut self, kind: FailureKind) -> bool {
        kind != FailureKind::OutOfHandles && !std::mem::replace(&mut self.has_told_failure, true)
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
            log::info!("{line}");
        }
    }
}

impl Observer for Reporter {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Tick(progress) => self.show(progress),
            Event::Failed {
                url, why, kind, fate, ..
            } => {
                if self.shall_tell(*kind) {
                    log::warn!("{url}: {why}; further failures are in the summary, and told one by one with -v");
                }
                log::debug!("{url}: {why} ({fate:?})");
            }
            Event::NotFetched { url, why, .. } => log::debug!("{url}: {why}"),
            Event::Page(page) => log::debug!("{} {}, {} new links", page.status, page.url, page.links_new),
            Event::PrefixClosed { prefix, repeated } => {
                log::warn!(
                    "{prefix} is closed: too many pages there are near-duplicates of {repeated}; if they are honest, raise --max-near-duplicates"
                );
            }
            Event::Finished(_) => self.bar.finish_and_clear(),
            _ => {}
        }
        Ok(())
    }
}

fn line(progress: &Progress) -> String {
    let report = &progress.report;
    let rate = progress.pages as f64 / progress.elapsed.as_secs_f64().max(0.001);
    let refused: u64 = report.links.refused.values().sum();
    format!(
        "{} pages, {rate:.1} per second, {} queued, {} out, {} links refused, seen-set {}",
        progress.pages, report.queued, report.leased, refused, report.saturation.level
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_of_a_site_is_told_and_a_want_of_handles_is_not() {
        let mut reporter = Reporter::new(bar(true));
        assert!(!reporter.shall_tell(FailureKind::OutOfHandles));
        assert!(reporter.shall_tell(FailureKind::Timeout));
        assert!(!reporter.shall_tell(FailureKind::Timeout));
        assert!(!reporter.shall_tell(FailureKind::OutOfHandles));
    }
}
