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

/// The clients that listen to events: each has a receiver, to which nothing is sent.
#[derive(Debug, Default)]
pub(super) struct Listeners(watch::Sender<()>);

/// What a connection has asked for: its place among those that listen, or metrics, with the time at which they were true.
#[derive(Debug, Default)]
pub(super) struct Place {
    listener: OnceLock<watch::Receiver<()>>,
    metrics: OnceLock<f64>,
}

impl Place {
    pub(super) fn is_taken(&self) -> bool {
        self.listener.get().is_some()
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

impl Listeners {
    /// Lets a connection listen: returns the body of its answer, or `None` if there are too many.
    pub(super) fn add(
        &self,
        place: &Place,
        watch: Watch,
        text: impl Fn(&Status) -> String + Send + 'static,
    ) -> Option<Channel<Bytes, Infallible>> {
        if self.0.receiver_count() >= CONNECTIONS {
            return None;
        }
        // A connection has one request, so its place was free.
        let _ = place.listener.set(self.0.subscribe());
        let (sender, body) = Channel::new(1);
        tokio::spawn(send(sender, watch, text));
        Some(body)
    }

    /// Waits until no client listens.
    pub(super) async fn all_gone(&self) {
        self.0.closed().await;
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
