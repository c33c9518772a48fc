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

    /// Asks the crawl to start nothing more and to end when what is out has come back.
    pub fn finish(&self) {
        self.0.send_if_modified(|stop| {
            let is_first = *stop == Stop::No;
            if is_first {
                *stop = Stop::Finish;
            }
            is_first
        });
    }

    /// Asks the crawl to end now, and to drop what is out.
    pub fn now(&self) {
        self.0.send_replace(Stop::Now);
    }
}
