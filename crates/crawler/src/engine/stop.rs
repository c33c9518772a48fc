//! How a crawl is stopped from outside.

use tokio::sync::watch;

/// How much longer a crawl may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    Finish,
    Now,
}

/// Stops a crawl from outside. It can be cloned, and outlives the crawl without harm.
#[derive(Debug, Clone)]
pub struct StopHandle(watch::Sender<Stop>);

impl StopHandle {
    pub(crate) fn new(stop: watch::Sender<Stop>) -> Self {
        Self(stop)
    }

    /// Ends the crawl once the requests in flight are finished; no request is started.
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
