//! What is in the queue before the first request.

use std::sync::Arc;

use frontier::{CanonicalUrl, FrontierError, Link};
use sieve::Filter;

use super::Crawl;
use crate::earlier::{EarlierCrawl, shared};
use crate::error::CrawlError;
use crate::event::Event;
use crate::fetch::Fetcher;
use crate::settling::sitemaps::well_known;
use crate::stop::Stop;

/// Pages of an earlier crawl that are offered at once.
const PAGES_AT_ONCE: usize = 256;

impl<S: Fetcher, F: Filter> Crawl<S, F> {
    /// Offers the seeds, the pages of an earlier crawl, and the sitemaps that nobody will name.
    pub(super) fn begin(&mut self) -> Result<(), CrawlError> {
        let config = Arc::clone(&self.config);
        for seed in config.seeds() {
            let verdict = self.frontier.add_seed(seed, self.clock.now())?;
            self.tell(&Event::Offered {
                links: &[Link::seed(seed.clone())],
                verdicts: &[verdict],
            });
        }
        if let Some(earlier) = self.earlier.take() {
            self.offer_earlier(earlier)?;
        }
        self.look_for_sitemaps()?;
        Ok(())
    }

    fn offer_earlier(&mut self, earlier: EarlierCrawl) -> Result<(), CrawlError> {
        let config = Arc::clone(&self.config);
        let canonicalizer = &config.options().canonicalizer;
        // Where a seed is redirected to is in scope, which is known before the seed is asked for.
        for (from, to) in earlier.moved_seeds() {
            if let (Ok(from), Ok(to)) = (canonicalizer.parse(from), canonicalizer.parse(to))
                && config.seeds().iter().any(|seed| seed.key() == from.key())
            {
                self.frontier.add_territory(&to)?;
            }
        }
        let mut pages = earlier.into_pages().peekable();
        let mut referrer = None;
        while pages.peek().is_some() && *self.stop.borrow() == Stop::No {
            let mut links = Vec::new();
            for page in pages.by_ref().take(PAGES_AT_ONCE) {
                let page = page?;
                referrer = shared(page.referrer.as_deref(), &referrer);
                links.extend(page.links(referrer.clone(), canonicalizer));
            }
            let verdicts = self.frontier.offer(&links, self.clock.now())?;
            self.tell(&Event::Offered {
                links: &links,
                verdicts: &verdicts,
            });
        }
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
