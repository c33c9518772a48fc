//! What earlier runs have offered: seeds, and the pages of a previous crawl.

use crate::engine::Crawl;
use crate::fetch::Fetcher;
use crate::recrawl::{PreviousCrawl, RecrawlError};

impl<S: Fetcher> Crawl<S> {
    /// Returns whether earlier runs have offered any seeds.
    pub(in crate::engine) fn has_offered_some_seeds(&self) -> bool {
        self.is_continued()
    }

    /// Returns whether earlier runs have offered the seeds.
    pub(in crate::engine) fn has_offered_seeds(&self) -> bool {
        let saving = self.saving.as_ref();
        saving.is_some_and(|saving| saving.offered_seeds == Some(saving.seeds))
    }

    /// Notes that all seeds were offered. A run that ends before the next commit leaves that to the next run.
    pub(in crate::engine) fn note_offered_seeds(&mut self) {
        if let Some(saving) = &mut self.saving {
            saving.offered_seeds = Some(saving.seeds);
        }
    }

    /// Returns whether earlier runs have offered all pages of the crawl that this one repeats.
    pub(in crate::engine) fn has_offered_previous(&self) -> bool {
        let saved = self.saving.as_ref().and_then(|saving| saving.previous);
        saved.is_some_and(|previous| previous.is_offered)
    }

    /// Checks that earlier runs have repeated the same crawl. The seen-set has most pages of another one.
    pub(in crate::engine) fn check_previous(&self, previous: &PreviousCrawl) -> Result<(), RecrawlError> {
        let Some(saving) = self.saving.as_ref().filter(|saving| saving.is_continued) else {
            return Ok(());
        };
        let path = || previous.path().to_owned();
        match saving.previous {
            None => Err(RecrawlError::BegunWithoutFile(path())),
            Some(saved) if saved.hash != previous.previous_file().hash => Err(RecrawlError::OtherFile(path())),
            Some(_) => Ok(()),
        }
    }
}
