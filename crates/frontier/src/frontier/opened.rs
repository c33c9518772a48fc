//! A frontier that was opened in a directory.

use super::Frontier;
use crate::config::FrontierConfig;
use crate::durable::open::Opening;
use crate::time::Time;

/// A frontier that was opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The frontier.
    pub frontier: Frontier,
    /// The caller's own text of the last [`persist`](Frontier::persist); `None` if there was none yet, or it was empty.
    pub attachment: Option<Vec<u8>>,
    /// Entries that were in flight when the last run ended, and are queued again. 0 when only read.
    pub released: u64,
    /// Options of the scope that differ from those of the last run: they hold for links from now on. What is queued is not checked again, and what was refused is not looked at again.
    pub for_new_links: Vec<&'static str>,
    /// The time of opening, or the latest time of the last run if that is later: the clock was set back. Later calls must not be earlier.
    pub now: Time,
    /// The configuration, with the secret of the hash.
    pub config: FrontierConfig,
}

impl From<Opening> for Opened {
    fn from(opening: Opening) -> Self {
        Self {
            frontier: Frontier {
                state: opening.state,
                durable: opening.durable,
                is_poisoned: false,
            },
            attachment: Some(opening.attachment).filter(|attachment| !attachment.is_empty()),
            released: opening.released,
            for_new_links: opening.for_new_links,
            now: opening.now,
            config: opening.config,
        }
    }
}
