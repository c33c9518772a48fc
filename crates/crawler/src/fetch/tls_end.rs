//! The end of a TLS connection without `close_notify`, the alert that announces it.
//!
//! A body that neither a `Content-Length` nor chunks delimit ends with its connection. RFC 9112, section 9.8, calls it complete only if the
//! alert came: otherwise somebody on the way may have cut it, or the server broke off. But some servers never send the alert. All of their
//! bodies would be incomplete, robots.txt included, as often as they are requested, and nothing of the site would be crawled. So such an
//! end is taken for the end of the body, as Chromium does, and as over plain http, where nothing announces the end either. The price is
//! that a body that was cut there counts as whole. The first one that may be is logged.
//!
//! What delimits itself is checked as before: a body that is shorter than its `Content-Length`, lacks its last chunk or ends within its
//! gzip stream is incomplete. HTTP/2 delimits all bodies.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use frontier::Origin;
use url::Url;

use super::TruncationReason;

/// Whether one connection has ended so, shared with those who read its answers.
#[derive(Debug, Clone, Default)]
pub(super) struct UnannouncedEnd(Arc<AtomicBool>);

impl UnannouncedEnd {
    /// Takes the error of an unannounced end for the end of the file.
    pub(super) fn or_end(&self, read: io::Result<()>) -> io::Result<()> {
        match read {
            // After the handshake, rustls returns this kind for nothing else.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.0.store(true, Ordering::Relaxed);
                Ok(())
            }
            read => read,
        }
    }

    /// Returns why a body that ends here is not whole if its codings lack their end: then the connection was cut.
    pub(super) fn of_codings(&self) -> TruncationReason {
        match self.0.load(Ordering::Relaxed) {
            true => TruncationReason::Connection,
            false => TruncationReason::Coding,
        }
    }

    /// Logs that a body has ended so, the first time. `is_logged` says whether one was.
    pub(super) fn log_first(&self, url: &Url, is_logged: &AtomicBool) {
        if self.0.load(Ordering::Relaxed) && !is_logged.swap(true, Ordering::Relaxed) {
            let origin = Origin::of(url).map_or_else(String::new, |origin| origin.to_string());
            log::warn!(
                target: "crawler::fetch",
                "{origin} ends bodies without a length by closing the connection, and does not announce that (TLS close_notify). They count \
                 as whole; if one was cut on its way, nothing shows it. Other origins that do so are not logged"
            );
        }
    }
}
