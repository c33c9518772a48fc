//! The other processes of a crawl that several share, as the loop sees them. The crate `crawl-cluster` has them over Redis.

use std::error::Error;
use std::sync::Arc;

use frontier::{Frontier, Link, Time, Verdict};
use tokio::sync::Notify;

use crate::summary::Summary;

/// Exchanges links with the other processes of a crawl. The loop owns it as it owns the frontier, and calls it between two of its own steps:
/// no call may wait.
///
/// Each process needs a frontier with a [partition](frontier::FrontierConfig::partition), and a state directory.
pub trait Peers: Send {
    /// Checks, before the outputs are opened, that the frontier fits to what the others know of it.
    ///
    /// # Errors
    ///
    /// It does not. The text says what to do.
    fn check(&self, _frontier: &Frontier) -> Result<(), PeersError> {
        Ok(())
    }

    /// Does with the frontier what has come from others, or a part of it.
    ///
    /// # Errors
    ///
    /// The crawl cannot continue. The text says what to do.
    fn exchange(&mut self, frontier: &mut Frontier, now: Time) -> Result<Exchanged, PeersError>;

    /// What it keeps from one run to the next, for the next commit; `None` if it is as at the last call.
    fn unsaved(&mut self) -> Option<Vec<u8>>;

    /// All is on the medium as it is now: the frontier, and what the last [`unsaved`](Self::unsaved) returned. Only this may be told to
    /// others. `is_drained` says, from the first call of a run on, whether the seeds are in, and nothing is left to fetch or may be fetched any
    /// more. The summary is as of `now`.
    fn synced(&mut self, frontier: &Frontier, is_drained: bool, summary: &Summary, now: Time);

    /// The crawl pauses, or goes on: of the next state that is synced, people are told so.
    fn pause(&mut self, _is_paused: bool) {}

    /// Whether it is known that the crawl has ended in all processes, maybe from an earlier run: then nothing begins anew.
    fn knows_end(&self) -> bool;

    /// Whether the crawl has ended in all processes, and the others know it.
    fn has_ended(&self, now: Time) -> bool;

    /// Whether links of any process were lost, so that the crawl is incomplete.
    fn has_lost(&self) -> bool;

    /// How many batches of links this process has sent again.
    fn repeated(&self) -> u64;

    /// What wakes the loop when something has come.
    fn woken(&self) -> Arc<Notify>;

    /// This run ends, and all is on the medium.
    fn leave(&mut self);
}

/// Why a crawl cannot continue with the others.
pub type PeersError = Box<dyn Error + Send + Sync>;

/// What an exchange has brought.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Exchanged {
    /// The links of each batch, with the verdicts on them.
    pub offered: Vec<(Vec<Link>, Vec<Verdict>)>,
    /// What others have [told](Frontier::tell).
    pub told: Vec<Box<[u8]>>,
    /// Whether more has come already.
    pub has_more: bool,
    /// Whether all processes are to stop.
    pub stop: bool,
    /// Whether all are to pause, or to go on; `None` as before.
    pub pause: Option<bool>,
}
