//! What a crawl starts from: seeds, the sitemaps of their origins, and the pages of a previous crawl.

use std::sync::Arc;

use frontier::{CanonicalUrl, FrontierError, Link};

use super::Run;
use crate::engine::conclusions::sitemaps::well_known;
use crate::engine::stop::Stop;
use crate::error::CrawlError;
use crate::event::Event;
use crate::fetch::Fetcher;
use crate::recrawl::{PreviousCrawl, PreviousFile, RecrawlError, shared};

/// How many links to pages of a previous crawl are offered in one batch.
const LINKS_AT_ONCE: usize = 256;
/// After how many links the crawl commits, so that those in memory are bounded.
const LINKS_PER_COMMIT: usize = 1024;

/// Which pages of a previous crawl are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PreviousPages {
    /// Pages in the reach of a seed, or of the target of a redirected seed.
    InReach,
    /// All pages. The frontier refuses those out of reach, so that they are reported.
    All,
}

/// A previous crawl whose pages are fetched again.
#[derive(Debug)]
pub(super) struct Recrawl {
    previous: PreviousCrawl,
    /// Whether all its pages were offered.
    is_offered: bool,
    /// Whether each page was offered, by its position in the file.
    offered: Vec<bool>,
    /// How many redirected seeds have extended the reach so far.
    reach_extensions: u64,
}

impl Recrawl {
    pub(super) fn children_of(&self, url: &str) -> u64 {
        self.previous.children().of(url)
    }
}

impl<S: Fetcher> Run<S> {
    /// Fetches the pages of a previous crawl again. Earlier runs must have repeated the same one: the seen-set has most pages of another.
    pub(crate) fn repeat(&mut self, previous: PreviousCrawl) -> Result<(), RecrawlError> {
        let mut is_offered = false;
        if let Some(commits) = self.commits.as_ref().filter(|commits| commits.is_continued) {
            let path = || previous.path().to_owned();
            is_offered = match commits.saved.previous {
                None => return Err(RecrawlError::BegunWithoutFile(path())),
                Some(saved) if saved.hash != previous.hash() => return Err(RecrawlError::OtherFile(path())),
                Some(saved) => saved.is_offered,
            };
        }
        if let Some(commits) = &mut self.commits {
            let hash = previous.hash();
            commits.saved.previous = Some(PreviousFile { hash, is_offered });
        }
        self.recrawl = Some(Recrawl {
            previous,
            is_offered,
            offered: Vec::new(),
            reach_extensions: 0,
        });
        Ok(())
    }

    pub(super) fn has_previous_pages(&self) -> bool {
        self.recrawl.as_ref().is_some_and(|recrawl| !recrawl.is_offered)
    }

    /// Offers the seeds, the pages of the previous crawl that are in reach, and sitemaps that no robots.txt names, unless an earlier run
    /// has done it. If they are many, it commits meanwhile, and a run after a kill offers all again.
    pub(super) fn begin(&mut self) -> Result<(), CrawlError> {
        // All have agreed on the end: nothing may begin anew. Before it, what is drained stays drained until links come.
        if self.note_end() {
            return Ok(());
        }
        if self.sharing.is_none() {
            // Before the seeds, which may be of origins that were given up.
            self.begin_retry()?;
        }
        let config = Arc::clone(&self.config);
        let commits = self.commits.as_ref();
        let has_new_seeds = commits.is_none_or(|commits| commits.saved.seeds != Some(commits.seeds));
        for (at, seed) in config.seeds().iter().filter(|_| has_new_seeds).enumerate() {
            let verdict = self.frontier.add_seed(seed, self.clock.now())?;
            let link = [Link::seed(seed.clone())];
            self.observers.notify(&Event::Offered {
                links: &link,
                verdicts: &[verdict],
            });
            if at % LINKS_PER_COMMIT == LINKS_PER_COMMIT - 1 {
                self.save()?;
            }
        }
        self.offer_previous(PreviousPages::InReach)?;
        if has_new_seeds {
            self.offer_well_known_sitemaps()?;
            // A run that ends before the next commit leaves that to the next run.
            if let Some(commits) = &mut self.commits {
                commits.saved.seeds = Some(commits.seeds);
            }
        }
        self.queue_retried()
    }

    /// Offers more pages of the previous crawl after a redirected seed has extended the reach.
    ///
    /// It runs before the target of the redirect is fetched, so that these pages are offered with their stored
    /// validators. It commits if they are many. Each call reads the whole file. So with many seeds it runs after redirects 1, 2, 4, 8 and so on
    /// only.
    pub(super) fn offer_previous_in_new_reach(&mut self) -> Result<(), CrawlError> {
        let Some(recrawl) = &mut self.recrawl else {
            return Ok(());
        };
        recrawl.reach_extensions += 1;
        match recrawl.reach_extensions.is_power_of_two() {
            true => self.offer_previous(PreviousPages::InReach),
            false => Ok(()),
        }
    }

    /// Offers the pages of the previous crawl that were not offered yet.
    pub(super) fn offer_previous(&mut self, which: PreviousPages) -> Result<(), CrawlError> {
        if !self.has_previous_pages() {
            return Ok(());
        }
        let Some(mut recrawl) = self.recrawl.take() else {
            return Ok(());
        };
        let config = Arc::clone(&self.config);
        let canonicalizer = &config.options().canonicalizer;
        let mut referrer = None;
        let mut links = Vec::new();
        let (mut are_all_offered, mut uncommitted) = (true, 0);
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
                are_all_offered = false;
                continue;
            }
            *is_offered = true;
            referrer = shared(page.referrer.as_deref(), &referrer);
            let of_page = page.links(referrer.clone(), canonicalizer);
            // The other processes read the same file.
            links.extend(of_page.filter(|link| self.is_own(&link.url)));
            if links.len() >= LINKS_AT_ONCE {
                self.offer(&links)?;
                uncommitted += links.len();
                links.clear();
            }
            if uncommitted >= LINKS_PER_COMMIT {
                self.save()?;
                uncommitted = 0;
            }
            if self.orders.borrow().stop != Stop::No {
                // A later run of a crawl with a state directory offers the others.
                are_all_offered = false;
                break;
            }
        }
        self.offer(&links)?;
        recrawl.is_offered = are_all_offered;
        if are_all_offered {
            recrawl.offered = Vec::new();
            if let Some(previous) = self
                .commits
                .as_mut()
                .and_then(|commits| commits.saved.previous.as_mut())
            {
                previous.is_offered = true;
            }
        }
        self.recrawl = Some(recrawl);
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
        if !options.sitemaps || options.frontier.ask_robots {
            return Ok(());
        }
        for seeds in config.seeds().chunks(LINKS_PER_COMMIT) {
            let origins = seeds.iter().filter(|seed| self.is_own(seed)).map(CanonicalUrl::origin);
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
