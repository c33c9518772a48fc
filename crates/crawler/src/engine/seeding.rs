//! What a crawl starts from: seeds, the sitemaps of their origins, and links that are known from elsewhere.

use std::sync::Arc;

use frontier::{CanonicalUrl, FrontierError, Link};

use super::Run;
use crate::engine::conclusions::sitemaps::well_known;
use crate::error::CrawlError;
use crate::event::Event;
use crate::fetch::Fetcher;

/// After how many links the crawl commits, so that those in memory are bounded.
const LINKS_PER_COMMIT: usize = 1024;

impl<S: Fetcher> Run<S> {
    /// Offers the seeds, sitemaps that no robots.txt names, and the known links that are in reach, unless an earlier run has done it. If they
    /// are many, it commits meanwhile, and a run after a kill offers all again.
    pub(super) fn begin(&mut self) -> Result<(), CrawlError> {
        // All have agreed on the end: nothing may begin anew. Before it, what is drained stays drained until links come.
        if self.note_end() {
            return Ok(());
        }
        if self.sharing.is_none() {
            // Before the seeds, which may be of origins that were given up.
            self.begin_retry()?;
        }
        if self.commits.saved.seeds != Some(self.commits.seeds) {
            self.offer_seeds()?;
            self.offer_well_known_sitemaps()?;
            // The other processes have the same links.
            let mut links = std::mem::take(&mut self.held_links);
            links.retain(|link| self.is_own(&link.url));
            self.held_links = links;
            self.offer_held_links(false)?;
        } else {
            self.held_links.clear();
        }
        self.queue_retried()?;
        self.look_what_is_left()
    }

    fn offer_seeds(&mut self) -> Result<(), CrawlError> {
        let config = Arc::clone(&self.config);
        for (at, seed) in config.seeds().iter().enumerate() {
            let verdict = self.frontier.add_seed(seed.clone(), self.clock.now())?;
            self.observers.notify(&Event::Offered {
                links: std::slice::from_ref(seed),
                verdicts: &[verdict],
            });
            if at % LINKS_PER_COMMIT == LINKS_PER_COMMIT - 1 {
                self.save()?;
            }
        }
        Ok(())
    }

    /// Offers more of the held links after a redirected seed has extended the reach.
    ///
    /// It runs before the target of the redirect is fetched, so that these pages are offered with their stored validators. Each call looks at all
    /// of them. So with many seeds it looks after redirects 1, 2, 4, 8 and so on only.
    pub(super) fn offer_links_in_new_reach(&mut self) -> Result<(), CrawlError> {
        self.reach_extensions += 1;
        match self.reach_extensions.is_power_of_two() && !self.held_links.is_empty() {
            true => self.offer_held_links(false),
            false => Ok(()),
        }
    }

    /// Offers the held links that are in reach, or all of them: the frontier refuses those out of reach, so that they are reported.
    pub(super) fn offer_held_links(&mut self, all: bool) -> Result<(), CrawlError> {
        let held = std::mem::take(&mut self.held_links).into_iter();
        let (offered, held): (Vec<_>, _) = held.partition(|link| all || self.frontier.reaches(&link.url));
        self.held_links = held;
        for links in offered.chunks(LINKS_PER_COMMIT) {
            self.offer(links)?;
            if links.len() == LINKS_PER_COMMIT {
                self.save()?;
            }
        }
        // A run that ends before the next commit leaves that to the next run.
        if self.held_links.is_empty() {
            self.commits.saved.seeds = Some(self.commits.seeds);
        }
        Ok(())
    }

    fn offer(&mut self, links: &[Link]) -> Result<(), FrontierError> {
        let verdicts = self.frontier.offer(links, self.clock.now())?;
        self.observers.notify(&Event::Offered {
            links,
            verdicts: &verdicts,
        });
        Ok(())
    }

    /// Offers the well-known sitemaps of the seeds' origins if robots.txt is off, because then no robots.txt can name
    /// any.
    fn offer_well_known_sitemaps(&mut self) -> Result<(), CrawlError> {
        let config = Arc::clone(&self.config);
        let options = config.options();
        if !options.pages.sitemaps || options.frontier.politeness.ask_robots {
            return Ok(());
        }
        for seeds in config.seeds().chunks(LINKS_PER_COMMIT) {
            let own = seeds.iter().map(|seed| &seed.url).filter(|url| self.is_own(url));
            let origins = own.map(CanonicalUrl::origin);
            let links: Vec<_> = origins
                .filter_map(|origin| well_known(&origin, 0, &options.canonicalizer))
                .collect();
            self.frontier.offer(&links, self.clock.now())?;
            if seeds.len() == LINKS_PER_COMMIT {
                self.save()?;
            }
        }
        Ok(())
    }
}
