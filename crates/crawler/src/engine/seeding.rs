//! What a crawl starts from: its seeds, sitemaps that nobody names, and the pages of an earlier crawl, as they come in reach.

use std::sync::Arc;

use frontier::{CanonicalUrl, FrontierError, Link};

use super::Crawl;
use crate::engine::conclusions::sitemaps::well_known;
use crate::engine::stop::Stop;
use crate::error::CrawlError;
use crate::event::Event;
use crate::fetch::Fetcher;
use crate::recrawl::{PreviousCrawl, shared};

/// Links to pages of a previous crawl that are offered at once.
const LINKS_AT_ONCE: usize = 256;

/// Which pages of a previous crawl are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PreviousPages {
    /// Those that belong to a seed, or to where one was redirected.
    InReach,
    /// All, so that the others are refused and reported.
    All,
}

/// A previous crawl whose pages are fetched again.
#[derive(Debug)]
pub(super) struct Recrawl {
    previous: PreviousCrawl,
    /// Of each page, whether it was offered.
    offered: Vec<bool>,
    /// How often a seed was redirected.
    growths: u64,
}

impl Recrawl {
    pub(super) fn new(previous: PreviousCrawl) -> Self {
        Self {
            previous,
            offered: Vec::new(),
            growths: 0,
        }
    }
}

impl<S: Fetcher> Crawl<S> {
    /// Offers the seeds, the pages of an earlier crawl, and the sitemaps that nobody will name.
    pub(super) fn begin(&mut self) -> Result<(), CrawlError> {
        let config = Arc::clone(&self.config);
        for seed in config.seeds() {
            let verdict = self.frontier.add_seed(seed, self.clock.now())?;
            self.notify(&Event::Offered {
                links: &[Link::seed(seed.clone())],
                verdicts: &[verdict],
            });
        }
        self.offer_previous(PreviousPages::InReach)?;
        self.look_for_sitemaps()?;
        Ok(())
    }

    /// A seed was redirected, so that more is in reach: earlier pages are offered before those where it leads to are read.
    ///
    /// With many seeds the file is not read for each of them, but for the first, the second, the fourth and so on.
    pub(super) fn offer_previous_in_new_reach(&mut self) -> Result<(), CrawlError> {
        let Some(recrawl) = &mut self.recrawl else {
            return Ok(());
        };
        recrawl.growths += 1;
        if recrawl.growths.is_power_of_two() {
            self.offer_previous(PreviousPages::InReach)?;
        }
        Ok(())
    }

    /// Offers the pages of an earlier crawl that were not offered before.
    pub(super) fn offer_previous(&mut self, which: PreviousPages) -> Result<(), CrawlError> {
        let Some(mut recrawl) = self.recrawl.take() else {
            return Ok(());
        };
        let config = Arc::clone(&self.config);
        let canonicalizer = &config.options().canonicalizer;
        let mut referrer = None;
        let mut links = Vec::new();
        let mut left = 0_u64;
        for (at, page) in recrawl.previous.pages()?.enumerate() {
            let page = page?;
            if recrawl.offered.len() <= at {
                recrawl.offered.push(false);
            }
            let Some(is_offered) = recrawl.offered.get_mut(at).filter(|is_offered| !**is_offered) else {
                continue;
            };
            let is_in_reach = || {
                canonicalizer
                    .parse(&page.url)
                    .is_ok_and(|url| self.frontier.reaches(&url))
            };
            if which == PreviousPages::InReach && !is_in_reach() {
                left += 1;
                continue;
            }
            *is_offered = true;
            referrer = shared(page.referrer.as_deref(), &referrer);
            links.extend(page.links(referrer.clone(), canonicalizer));
            if links.len() >= LINKS_AT_ONCE {
                self.offer(&std::mem::take(&mut links))?;
            }
            if *self.stop.borrow() != Stop::No {
                return Ok(());
            }
        }
        self.offer(&links)?;
        if left > 0 {
            self.recrawl = Some(recrawl);
        }
        Ok(())
    }

    fn offer(&mut self, links: &[Link]) -> Result<(), FrontierError> {
        let verdicts = self.frontier.offer(links, self.clock.now())?;
        self.notify(&Event::Offered {
            links,
            verdicts: &verdicts,
        });
        Ok(())
    }

    /// Where robots.txt is not asked for, it can name no sitemap: those of the seeds are looked for where they use to be.
    fn look_for_sitemaps(&mut self) -> Result<(), FrontierError> {
        let config = Arc::clone(&self.config);
        let options = config.options();
        if !options.sitemaps || options.frontier.ask_robots {
            return Ok(());
        }
        let origins = config.seeds().iter().map(CanonicalUrl::origin);
        let links: Vec<_> = origins
            .filter_map(|origin| well_known(&origin, 0, &options.canonicalizer))
            .collect();
        self.frontier.offer(&links, self.clock.now())?;
        Ok(())
    }
}
