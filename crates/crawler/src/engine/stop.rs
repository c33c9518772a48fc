//! Stopping and pausing a crawl from outside.

use tokio::sync::watch;

use crate::event::Phase;

/// Whether, and how, a crawl was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Stop {
    #[default]
    No,
    Finish,
    Now,
}

/// What a crawl was asked for from outside, besides orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Requested {
    pub(super) stop: Stop,
    pub(super) pause: bool,
}

/// Stops or pauses a crawl from outside. Clones serve the same crawl. After the crawl has ended, a handle does nothing.
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
/// For a limit known before the start, [`LimitConfig::max_pages`](frontier::LimitConfig::max_pages) is exact.
#[derive(Debug, Clone)]
pub struct StopHandle {
    requested: watch::Sender<Requested>,
    phase: watch::Receiver<Phase>,
}

impl StopHandle {
    pub(crate) fn new(requested: watch::Sender<Requested>, phase: watch::Receiver<Phase>) -> Self {
        Self { requested, phase }
    }

    /// Ends the crawl once the requests in flight have finished. Nothing is leased any more; a lease whose task was started is in flight.
    pub fn finish(&self) {
        _ = self.order(|requested| {
            if requested.stop == Stop::No {
                requested.stop = Stop::Finish;
            }
        });
    }

    /// Ends the crawl now, and aborts the requests in flight.
    pub fn now(&self) {
        _ = self.order(|requested| requested.stop = Stop::Now);
    }

    /// Pauses the crawl: no request starts, those in flight finish, and the state is committed. Events of ticks go on. A pause counts neither
    /// for [`max_time`](crate::CrawlOptions::max_time) nor for the duration of the crawl. It does count for delays that hosts are owed, and
    /// for the time that a host may be away. Returns false if it was paused before.
    pub fn pause(&self) -> bool {
        self.order(|requested| requested.pause = true)
    }

    /// Ends a pause. Returns false if there was none.
    pub fn resume(&self) -> bool {
        self.order(|requested| requested.pause = false)
    }

    /// Returns what the crawl does; [`Phase::Running`] before it runs.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Waits until the crawl is paused, or ends, or is to go on.
    pub async fn paused(&self) {
        let is_still = |phase: &Phase| matches!(phase, Phase::Paused | Phase::Stopping);
        let (mut phase, mut requested) = (self.phase.clone(), self.requested.subscribe());
        // An error means that the crawl has ended.
        tokio::select! {
            _ = phase.wait_for(is_still) => {}
            _ = requested.wait_for(|requested| !requested.pause) => {}
        }
    }

    fn order(&self, change: impl FnOnce(&mut Requested)) -> bool {
        self.requested.send_if_modified(|requested| {
            let before = *requested;
            change(requested);
            *requested != before
        })
    }
}
