//! Server-sent events: one client each.

use std::convert::Infallible;
use std::sync::OnceLock;

use http_body_util::channel::{Channel, Sender};
use hyper::body::Bytes;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{CONNECTIONS, PATIENCE};
use crate::recorder::Watch;
use crate::status::Status;

/// The number of clients that listen to events.
#[derive(Debug, Clone)]
pub(super) struct Listeners(watch::Sender<usize>);

/// What a connection has asked for: its place among those that listen, or metrics, with the time at which they were true.
#[derive(Debug, Default)]
pub(super) struct Place {
    listeners: OnceLock<Listeners>,
    metrics: OnceLock<f64>,
}

impl Place {
    pub(super) fn is_taken(&self) -> bool {
        self.listeners.get().is_some()
    }

    /// Notes that the connection gets metrics.
    pub(super) fn gets_metrics(&self, as_of: f64) {
        // A connection has one request.
        let _ = self.metrics.set(as_of);
    }

    pub(super) fn metrics(&self) -> Option<f64> {
        self.metrics.get().copied()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(listeners) = self.listeners.get() {
            listeners.0.send_modify(|clients| *clients -= 1);
        }
    }
}

impl Default for Listeners {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Listeners {
    /// Lets a connection listen: returns the body of its answer, or `None` if there are too many.
    pub(super) fn add(
        &self,
        place: &Place,
        watch: Watch,
        text: impl Fn(&Status) -> String + Send + 'static,
    ) -> Option<Channel<Bytes, Infallible>> {
        let is_added = self.0.send_if_modified(|clients| {
            let has_room = *clients < CONNECTIONS;
            *clients += usize::from(has_room);
            has_room
        });
        is_added.then(|| {
            // A connection has one request, so its place was free.
            let _ = place.listeners.set(self.clone());
            let (sender, body) = Channel::new(1);
            tokio::spawn(send(sender, watch, text));
            body
        })
    }

    /// Waits until no client listens.
    pub(super) async fn all_gone(&self) {
        // The sender lives as long as this, so there is no error.
        let _ = self.0.subscribe().wait_for(|clients| *clients == 0).await;
    }
}

/// Sends the status now and each time it changes, up to the end of the crawl. A client that is not ready misses what is out of date by then.
async fn send(mut sender: Sender<Bytes, Infallible>, mut watch: Watch, text: impl Fn(&Status) -> String) {
    let mut status = Some(watch.status());
    while let Some(present) = status {
        let event = Bytes::from(format!("data: {}\n\n", text(&present)));
        let sent = timeout(PATIENCE, sender.send_data(event)).await;
        if present.is_finished || !sent.is_ok_and(|sent| sent.is_ok()) {
            return;
        }
        status = watch.changed().await;
    }
}
