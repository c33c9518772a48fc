//! Signals to all processes of a crawl: stop, pause, go on.

use serde::{Deserialize, Serialize};

/// What all processes of a crawl can be told at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// To stop, as by Ctrl-C.
    Stop,
    /// To pause.
    Pause,
    /// To go on after a pause.
    Unpause,
}

/// What was told, when by the clock of the log, and to which instances.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Signalled {
    pub(crate) what: Signal,
    pub(crate) at: u64,
    pub(crate) instances: Vec<u64>,
}

impl Signal {
    /// The fields in the log, beside the words: a pause does not take the place of a stop.
    pub(crate) const FIELDS: [&str; 2] = ["pause", "stop"];

    pub(crate) fn field(self) -> usize {
        usize::from(self == Self::Stop)
    }
}
