//! What a crawl is made of, before it runs.

use std::num::NonZeroU32;
use std::sync::Arc;

use frontier::{Frontier, FrontierConfig, Report};

use super::Crawl;
use super::clock::Clock;
use super::ledger::Ledger;
use super::open_seeds::OpenSeeds;
use super::seeding::Recrawl;
use super::stop::{Stop, StopHandle};
use crate::config::CrawlConfig;
use crate::error::StartError;
use crate::event::{Event, Observer};
use crate::fetch::{Fetcher, HttpFetcher, HttpOptions};
use crate::recrawl::{Children, PreviousCrawl, PreviousFile, RecrawlError};
use crate::summary::Counts;

impl Crawl {
    /// Prepares a crawl over HTTP with the default [`HttpOptions`].
    ///
    /// # Errors
    ///
    /// Fails if the frontier or the HTTP client cannot be set up.
    pub fn new(config: CrawlConfig) -> Result<Self, StartError> {
        Self::with_http(config, &HttpOptions::default())
    }

    /// Prepares a crawl over HTTP.
    ///
    /// # Errors
    ///
    /// Fails if an HTTP option cannot be used, or if the frontier or the HTTP client cannot be set up.
    pub fn with_http(config: CrawlConfig, http: &HttpOptions) -> Result<Self, StartError> {
        let fetcher = HttpFetcher::new(&config, http)?;
        Self::with_fetcher(config, fetcher)
    }
}

impl<S: Fetcher> Crawl<S> {
    /// Prepares a crawl with a fetcher of your own.
    ///
    /// # Errors
    ///
    /// Fails if the frontier cannot be set up, or if [`max_memory`](crate::CrawlOptions::max_memory) is set.
    pub fn with_fetcher(config: CrawlConfig, fetcher: S) -> Result<Self, StartError> {
        if config.options().max_memory.is_some() {
            return Err(StartError::MemoryWithoutState);
        }
        let frontier = Frontier::in_memory(Self::frontier_options(&config))?;
        Ok(Self::with_parts(config, frontier, fetcher))
    }

    pub(super) fn frontier_options(config: &CrawlConfig) -> FrontierConfig {
        let mut options = config.options().frontier.clone();
        if config.options().fingerprints {
            options.compare_one_of = NonZeroU32::MIN;
        }
        if let Some(most) = config.options().max_memory {
            options.max_memory = Some(most.saturating_sub(config.memory_beside_frontier()));
        }
        options
    }

    /// Prepares a crawl with a frontier and a fetcher of your own.
    ///
    /// The frontier brings its own configuration. Set [`CrawlOptions::frontier`](crate::CrawlOptions::frontier) to the
    /// same one, because the crawl reads its settings for robots.txt and sitemaps there. It must be one
    /// [in memory](Frontier::in_memory): a crawl with a state directory opens its frontier itself, and one that the caller has opened is an
    /// error of [`run`](Self::run).
    pub fn with_parts(config: CrawlConfig, frontier: Frontier, fetcher: S) -> Self {
        Self {
            config: Arc::new(config),
            fetcher: Arc::new(fetcher),
            frontier,
            seen_links: Arc::default(),
            open_seeds: OpenSeeds::default(),
            previous_children: Children::default(),
            ledger: Ledger::default(),
            recrawl: None,
            previous_file: None,
            observers: Vec::new(),
            counts: Counts::default(),
            clock: Clock::start(),
            stop: Stop::sender(),
            ending: None,
            observer_error: None,
            held_leases: Vec::new(),
            uncommitted: 0,
            saving: None,
        }
    }

    /// Adds a closure that receives the events. It moves what it uses: send data out by a channel.
    ///
    /// ```no_run
    /// use std::sync::mpsc;
    ///
    /// use crawler::{Crawl, CrawlConfig, CrawlOptions, Event};
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let options = CrawlOptions { seeds: vec!["example.com".to_owned()], ..CrawlOptions::default() };
    /// let (titles, received) = mpsc::channel();
    /// let crawl = Crawl::new(CrawlConfig::new(options)?)?.on_event(move |event| {
    ///     if let Event::Page(page) = event {
    ///         let _ = titles.send(page.title.clone()); // an error if nobody receives any more
    ///     }
    /// });
    /// crawl.run().await?; // drops the closure, and with it the sender
    /// let titles: Vec<_> = received.into_iter().flatten().collect();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_event(self, observer: impl FnMut(&Event<'_>) + Send + 'static) -> Self {
        self.observe(observer)
    }

    /// Adds an observer. [`on_event`](Self::on_event) adds a closure.
    #[must_use]
    pub fn observe(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Fetches all pages of a previous crawl again, besides the pages that links from the seeds reach.
    ///
    /// Requests are conditional, so a server sends only changed pages. If the previous crawl was interrupted, pages with links to URLs
    /// that it did not fetch are requested whole. Pages outside the scope or over a budget are
    /// refused, as links to them are.
    ///
    /// # Errors
    ///
    /// [`OtherFile`](RecrawlError::OtherFile) if the crawl continues one of a state directory that was begun with another file, and
    /// [`BegunWithoutFile`](RecrawlError::BegunWithoutFile) if that was begun without one: their pages would not be fetched, because the
    /// crawl has seen their URLs. A file with the same bytes is the same file.
    pub fn recrawl(mut self, previous: PreviousCrawl) -> Result<Self, RecrawlError> {
        self.check_previous(&previous)?;
        self.previous_file = Some(PreviousFile {
            is_offered: self.has_offered_previous(),
            ..previous.previous_file()
        });
        let (previous, children) = previous.split_children();
        self.previous_children = children;
        self.recrawl = Some(Recrawl::new(previous));
        Ok(self)
    }

    /// Returns the checked options.
    pub fn config(&self) -> &CrawlConfig {
        &self.config
    }

    /// Returns the report of the frontier, before the crawl runs.
    pub fn report(&self) -> Report {
        self.frontier.report()
    }

    /// Returns a handle that stops the crawl while it runs.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle::new(self.stop.clone())
    }
}
