//! The observers of a crawl, and the counts of what they observe.

use std::io;

use frontier::{FailureKind, Fate, NotFetched};

use crate::error::CrawlError;
use crate::event::{Event, Observer};
use crate::saved_output::SavedOutput;
use crate::summary::Counts;

/// The observers. The first error of one ends the crawl, and it gets no further events.
#[derive(Default)]
pub(crate) struct Observers {
    pub(crate) all: Vec<Box<dyn Observer>>,
    pub(crate) counts: Counts,
    error: Option<io::Error>,
}

impl Observers {
    pub(super) fn notify(&mut self, event: &Event<'_>) {
        self.counts.count(event);
        self.all.retain_mut(|observer| match observer.on(event) {
            Ok(()) => true,
            Err(error) => {
                self.error.get_or_insert(error);
                false
            }
        });
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    pub(super) fn check(&mut self) -> Result<(), CrawlError> {
        let error = self.error.take();
        error.map_or(Ok(()), |error| Err(CrawlError::Observer(error)))
    }

    /// Writes out what they have buffered, and notes in `outputs` what a later run needs to continue. What an output lacks must not be committed, so an
    /// error ends the crawl at once.
    pub(super) fn save(&mut self, sync: bool, outputs: &mut Vec<SavedOutput>) -> Result<(), CrawlError> {
        self.check()?;
        for observer in &mut self.all {
            let Some(saved) = observer.save(sync).map_err(CrawlError::Observer)? else {
                continue;
            };
            match outputs.iter_mut().find(|output| output.name == saved.name) {
                Some(output) => *output = saved,
                None => outputs.push(saved),
            }
        }
        Ok(())
    }
}

impl Counts {
    pub(crate) fn count(&mut self, event: &Event<'_>) {
        match event {
            Event::Page(record) => self.count_page(record),
            Event::Sitemap(record) => self.sitemaps.count(record),
            Event::Requested(request) => {
                let least = &mut self.answers.least_slack_seconds;
                *least = request.slack_seconds().into_iter().chain(*least).reduce(f64::min);
            }
            Event::Failed { entry, failure, fate } => {
                let kind = failure.kind;
                match (fate, kind) {
                    (Fate::Requeued { .. }, _) => *self.failures.retried.entry(kind).or_default() += 1,
                    (Fate::Stale, _) => {}
                    // Counted with its answer, as every status that is an error.
                    (Fate::GaveUp, FailureKind::Status) => self.failures.gave_up_answered += 1,
                    (Fate::GaveUp, FailureKind::Throttled) => self.failures.gave_up_throttled += 1,
                    (_, FailureKind::Status | FailureKind::Throttled) => {}
                    // An answer, too: the page was counted with its first one.
                    (Fate::Final, FailureKind::Redirect) if entry.is_refresh() => {
                        self.refreshed.pages += 1;
                        self.refreshed.failed += 1;
                    }
                    (Fate::Final | Fate::GaveUp, _) => *self.failures.by_kind.entry(kind).or_default() += 1,
                }
                let is_weak = kind == FailureKind::OutOfHandles;
                self.failures
                    .note_first(is_weak, || format!("{}: {failure}", entry.url));
            }
            Event::NotFetched { entry, why, cause } => {
                if *why == NotFetched::HostDown {
                    let kind = cause.map_or(FailureKind::HostDown, |cause| cause.kind);
                    *self.failures.by_kind.entry(kind).or_default() += 1;
                }
                self.failures.note_first(false, || match cause {
                    Some(cause) => format!("{}: {why}: {cause}", entry.url),
                    None => format!("{}: {why}", entry.url),
                });
            }
            Event::Notice(notice) => self.failures.count_notice(notice),
            Event::Offered { links, verdicts } => self.note_offered(links, verdicts),
            Event::Tick(summary) => self.recent.note(summary.elapsed, summary.pages),
            _ => {}
        }
    }
}
