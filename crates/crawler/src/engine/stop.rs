//! Stopping a crawl from outside.

use tokio::sync::watch;

/// Whether, and how, a crawl was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    Finish,
    Now,
}

impl Stop {
    /// Returns what handles of a crawl send their requests through.
    pub(super) fn sender() -> watch::Sender<Self> {
        watch::Sender::new(Self::No)
    }
}

/// Stops a crawl from outside. Clones stop the same crawl. After the crawl has ended, a handle does nothing.
///
/// After 100 pages, or on Ctrl-C (tokio's feature `signal`):
///
/// ```no_run
/// use crawler::{Crawl, CrawlOptions, Event};
///
/// # async fn ctrl_c() {} // stands for tokio::signal::ctrl_c, a feature that this crate does without
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let options = CrawlOptions { seeds: vec!["example.com".to_owned()], ..CrawlOptions::default() };
/// let crawl = Crawl::new(options)?;
/// let (on_page, on_signal) = (crawl.stop_handle(), crawl.stop_handle());
/// tokio::spawn(async move {
///     ctrl_c().await; // tokio::signal::ctrl_c()
///     on_signal.now();
/// });
/// let mut pages = 0;
/// let crawl = crawl.on_event(move |event| {
///     pages += u32::from(matches!(event, Event::Page(_)));
///     if pages == 100 {
///         on_page.finish(); // those in flight are fetched, too
///     }
/// });
/// println!("{}", crawl.run().await?);
/// # Ok(())
/// # }
/// ```
///
/// For a limit known before the start, [`FrontierConfig::max_pages`](frontier::FrontierConfig::max_pages) is exact.
#[derive(Debug, Clone)]
pub struct StopHandle(watch::Sender<Stop>);

impl StopHandle {
    pub(crate) fn new(stop: watch::Sender<Stop>) -> Self {
        Self(stop)
    }

    /// Ends the crawl once the requests in flight have finished. Nothing is leased any more; a lease whose task was started is in flight.
    pub fn finish(&self) {
        self.0.send_if_modified(|stop| {
            let is_first = *stop == Stop::No;
            if is_first {
                *stop = Stop::Finish;
            }
            is_first
        });
    }

    /// Ends the crawl now, and aborts the requests in flight.
    pub fn now(&self) {
        self.0.send_replace(Stop::Now);
    }
}
