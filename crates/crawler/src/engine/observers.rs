//! The observers of a crawl, and the counts of what they observe.

use std::io;

use crate::error::CrawlError;
use crate::event::{Event, Observer};
use crate::saved_output::SavedOutput;
use crate::summary::Counts;

/// The observers. The first error of one ends the crawl, and it gets no further events.
#[derive(Default)]
pub(crate) struct Observers {
    all: Vec<Box<dyn Observer>>,
    pub(crate) counts: Counts,
    error: Option<io::Error>,
}

impl Observers {
    pub(crate) fn add(&mut self, observer: impl Observer + 'static) {
        self.all.push(Box::new(observer));
    }

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
        self.error
            .take()
            .map_or(Ok(()), |error| Err(CrawlError::Observer(error)))
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
