//! Stopping a crawl from outside.

use tokio::sync::watch;

/// Whether, and how, a crawl was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    Finish,
    Now,
}

/// Stops a crawl from outside. Clones stop the same crawl. After the crawl has ended, a handle does nothing.
#[derive(Debug, Clone)]
pub struct StopHandle(watch::Sender<Stop>);

impl StopHandle {
    pub(crate) fn new(stop: watch::Sender<Stop>) -> Self {
        Self(stop)
    }

    /// Ends the crawl once the requests in flight have finished. No new request starts.
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
