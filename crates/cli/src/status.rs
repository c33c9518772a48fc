//! The status line, which SIGUSR1 requests.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crawler::{Event, Observer};
use frontier::{Notice, Origin};

use crate::log_records;

/// A request for a status line, which is logged within a second. Several requests within that time get one line.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatusRequest(Arc<AtomicBool>);

impl StatusRequest {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Logs a status line if one was requested.
#[derive(Debug)]
pub(crate) struct StatusReporter {
    request: StatusRequest,
    /// The origins that are away now. The frontier limits the number of hosts.
    away: HashSet<Origin>,
}

impl StatusReporter {
    pub(crate) fn new(request: StatusRequest) -> Self {
        Self {
            request,
            away: HashSet::new(),
        }
    }
}

impl Observer for StatusReporter {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Notice(Notice::Away { origin, .. }) => {
                self.away.insert(origin.clone());
            }
            Event::Notice(Notice::Back { origin, .. } | Notice::GivenUp { origin, .. }) => {
                self.away.remove(origin);
            }
            Event::Tick(progress) if self.request.take() => log_records::status(progress, self.away.len()),
            _ => {}
        }
        Ok(())
    }
}
