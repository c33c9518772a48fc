//! Server-sent events: one client each.

use std::convert::Infallible;
use std::sync::OnceLock;

use http_body_util::channel::{Channel, Sender};
use hyper::body::Bytes;
use tokio::sync::watch;
use tokio::time::timeout;

use super::PATIENCE;
use crate::recorder::Watch;
use crate::status::Status;

/// What a connection has asked for. It has one request.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// That of a client that listens to events. Nothing is sent to it.
    pub(super) listener: OnceLock<watch::Receiver<()>>,
    /// When the metrics were true that it gets.
    pub(super) metrics: OnceLock<f64>,
}

pub(super) fn body(watch: Watch, text: impl Fn(&Status) -> String + Send + 'static) -> Channel<Bytes, Infallible> {
    let (sender, body) = Channel::new(1);
    tokio::spawn(send(sender, watch, text));
    body
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
