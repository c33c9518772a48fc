//! A crawl before it runs: its parts, what an earlier run has left of it, and who observes it.

mod builder;

use std::path::Path;

use frontier::{CrawlPolicy, Report};

use crate::config::{CrawlConfig, CrawlOptions, CrawlOptionsError};
use crate::engine::{Run, Sharing, StopHandle};
use crate::error::{CrawlError, StartError};
use crate::event::{Event, Observer};
use crate::fetch::{Fetcher, HttpFetcher};
use crate::orders::Orders;
use crate::peers::Peers;
use crate::saved_output::SavedOutput;
use crate::summary::{Ending, Summary};

pub use self::builder::CrawlBuilder;

/// One crawl. [`run`](Self::run) runs it until it ends; [`on_event`](Self::on_event) shows what happens, and a
/// [`StopHandle`] ends it earlier.
///
/// ```no_run
/// use crawler::{Crawl, CrawlOptions, Event};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let options = CrawlOptions { seeds: vec!["example.com".to_owned()], ..CrawlOptions::default() };
/// let crawl = Crawl::builder(options)?.state_dir("state").build()?;
/// let summary = crawl.on_event(|event| if let Event::Page(page) = event { println!("{}", page.url) }).run().await?;
/// println!("{} pages; {}", summary.pages, summary.ending);
/// # Ok(())
/// # }
/// ```
pub struct Crawl<S = HttpFetcher> {
    run: Run<S>,
}

impl<S> std::fmt::Debug for Crawl<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crawl")
            .field("config", &self.run.config)
            .finish_non_exhaustive()
    }
}

impl Crawl {
    /// Prepares a crawl over HTTP, with the defaults of the [builder](Self::builder).
    ///
    /// # Errors
    ///
    /// Fails if the options are not valid, or if the frontier or the HTTP client cannot be set up.
    pub fn new(options: CrawlOptions) -> Result<Self, StartError> {
        Self::builder(options)?.build()
    }

    /// Checks the options of a crawl, to build it with a state directory, options for HTTP, or another fetcher.
    ///
    /// # Errors
    ///
    /// As [`CrawlConfig::new`].
    pub fn builder(options: CrawlOptions) -> Result<CrawlBuilder, CrawlOptionsError> {
        CrawlConfig::new(options).map(CrawlBuilder::new)
    }
}

impl<S: Fetcher> Crawl<S> {
    /// Runs the crawl until the queue is empty, a budget is spent, or a stop is requested.
    ///
    /// With a state directory, each commit blocks the thread that polls this future: once a second for as long as the disk takes to sync,
    /// which is seconds on a slow one. Other tasks of a current-thread runtime wait meanwhile. In a program that has some, give the crawl a
    /// thread and a runtime of its own: call `runtime.block_on(crawl.run())` in [`std::thread::spawn`].
    ///
    /// # Errors
    ///
    /// Fails if an observer fails; the requests in flight finish first, unless the crawl has a state directory. Fails if the
    /// state directory cannot be written.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, and in one without timers: build it with `enable_time` or `enable_all`. The HTTP fetcher needs
    /// `enable_io`, too.
    pub async fn run(self) -> Result<Summary, CrawlError> {
        self.run.finish().await
    }

    /// Adds a closure that receives the events. It moves what it uses: send data out by a channel.
    ///
    /// ```no_run
    /// use std::sync::mpsc;
    ///
    /// use crawler::{Crawl, CrawlOptions, Event};
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let options = CrawlOptions { seeds: vec!["example.com".to_owned()], ..CrawlOptions::default() };
    /// let (titles, received) = mpsc::channel();
    /// let crawl = Crawl::new(options)?.on_event(move |event| {
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
        self.run.observers.all.push(Box::new(observer));
        self
    }

    /// Shares the crawl with other processes. It needs a state directory, and the [partition](frontier::FrontierConfig::partition) of this one.
    /// Call it before outputs are attached.
    ///
    /// # Errors
    ///
    /// [`CrawlError::Peers`] if the directory does not [fit](Peers::check) to the other processes.
    pub fn share(mut self, peers: impl Peers + 'static) -> Result<Self, CrawlError> {
        peers.check(&self.run.frontier)?;
        self.run.sharing = Some(Sharing::new(Box::new(peers)));
        Ok(self)
    }

    /// Returns what an earlier run has [kept](Peers::unsaved) of the other processes; nothing before the first.
    pub fn kept_of_peers(&self) -> &[u8] {
        &self.run.commits.saved.peers
    }

    /// Returns the checked options.
    pub fn config(&self) -> &CrawlConfig {
        &self.run.config
    }

    /// Returns the report of the frontier, before the crawl runs.
    pub fn report(&self) -> Report {
        self.run.frontier.report()
    }

    /// Returns a handle that stops the crawl while it runs.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle::new(self.run.requested.clone(), self.run.phase.subscribe())
    }

    /// Returns a handle that gives orders to the crawl while it runs.
    pub fn orders(&self) -> Orders {
        self.run.orders.clone()
    }

    /// Returns what an operator has ordered for the whole crawl, and for how many hosts more, in earlier runs.
    pub fn ordered(&self) -> (&CrawlPolicy, u64) {
        (self.run.frontier.crawl_policy(), self.run.frontier.hosts_with_orders())
    }

    /// Returns whether the crawl continues one that an earlier run began.
    pub fn is_continued(&self) -> bool {
        self.run.commits.is_continued
    }

    /// Returns the options that differ from those of the last run and hold for links that are found from now on, by the names of their
    /// fields: pages that are queued are not checked again, and links that were refused are not offered again.
    pub fn options_for_new_links(&self) -> &[&'static str] {
        &self.run.commits.for_new_links
    }

    /// Returns whether pages got no answer in earlier runs, or no whole one. They are tried again if [nothing is left](Report::is_drained).
    pub fn has_unanswered(&self) -> bool {
        self.run.summary(Ending::Drained).has_unanswered()
    }

    /// Returns the outputs that the earlier runs have saved.
    pub fn saved_outputs(&self) -> &[SavedOutput] {
        &self.run.commits.saved.outputs
    }

    /// Begins an output anew that earlier runs have saved, and that is no longer as they left it: in the next file of its series whose name is
    /// free. What it has stays. Its lines count as [missing](crate::Summary::missing). `first` is where the series is now.
    pub fn begin_output_anew(&mut self, name: &str, first: &Path) {
        let mut outputs = self.run.commits.saved.outputs.iter_mut();
        if let Some(output) = outputs.find(|output| output.name == name) {
            output.file = output.file.begun_anew(first);
            self.count_lost_output();
        }
    }

    /// Counts an output that lacks what earlier runs have written: the crawl is incomplete.
    pub fn count_lost_output(&mut self) {
        self.run.observers.counts.outputs.lost += 1;
    }

    /// Gives up an output that earlier runs have saved: this run and later ones need not attach it.
    pub fn give_up_output(&mut self, name: &str) {
        self.run.commits.saved.outputs.retain(|output| output.name != name);
    }

    /// Returns what an earlier run has saved of the output with this name.
    pub fn saved_output(&self, name: &str) -> Option<&SavedOutput> {
        self.saved_outputs().iter().find(|output| output.name == name)
    }
}
