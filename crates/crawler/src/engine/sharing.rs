//! A crawl that several processes share: what the loop does with the others. In the order of a run:
//!
//! | call | from | what it does |
//! |---|---|---|
//! | `note_end` | `seeding.rs`, first of all | sets `is_over`: all had agreed on the end before this run |
//! | `look_what_is_left` | `seeding.rs`, last | sets `nothing_left`, before the first word to the others |
//! | `exchange` | `engine.rs`, each round | takes links of others; any clears `nothing_left` |
//! | `ended_before`, `end_with_others` | `plan.rs`, when nothing can be leased | sets `nothing_left`, and ends the run if all have agreed on it; a lease clears it |
//! | `tell_others` | `commits.rs` after each synced commit, and `plan.rs` each round | says how far all is synced, and whether nothing is left |
//!
//! Only what is synced is sent to the others: they forget their copy of a link that is here, and end if nothing is left anywhere. `is_told` is set
//! when the present state was sent. A change that is not synced clears it, and links and leases are such changes, so only `end_with_others` has to
//! clear it by itself.

use frontier::{CanonicalUrl, Leasing};
use tokio::sync::Notify;

use super::Run;
use super::plan::{Next, Wake};
use super::stop::Stop;
use crate::error::CrawlError;
use crate::event::Event;
use crate::fetch::Fetcher;
use crate::orders;
use crate::peers::Peers;
use crate::summary::Ending;

/// How many hosts of an order are named.
const HOSTS_NAMED: usize = 10;

/// The others, and what they were told.
pub(crate) struct Sharing {
    pub(crate) peers: Box<dyn Peers>,
    /// Why nothing is left here, since nothing is.
    pub(super) nothing_left: Option<Ending>,
    /// Whether the present state was sent to the others.
    is_told: bool,
    /// Whether the crawl had ended before this run: then nothing is fetched, though options allow more now.
    is_over: bool,
}

impl Sharing {
    pub(crate) fn new(peers: Box<dyn Peers>) -> Self {
        Self {
            peers,
            nothing_left: None,
            is_told: false,
            is_over: false,
        }
    }
}

impl<S: Fetcher> Run<S> {
    pub(super) fn is_own(&self, url: &CanonicalUrl) -> bool {
        let partition = self.config.options().frontier.partition;
        partition.is_none_or(|partition| partition.owns(url))
    }

    /// Takes what has come from others. Returns when there is more.
    pub(super) fn exchange(&mut self) -> Result<Wake, CrawlError> {
        let is_ending = self.is_ending();
        let Some(sharing) = self.sharing.as_mut().filter(|_| !is_ending) else {
            return Ok(Wake::Never);
        };
        let exchanged = sharing.peers.exchange(&mut self.frontier, self.clock.now())?;
        // Before any commit: it saves that they were received.
        for text in &exchanged.told {
            sharing.nothing_left = None;
            let urls = &self.config.options().canonicalizer;
            match orders::obey_told(&mut self.frontier, urls, text, self.clock.now()) {
                Ok(obeyed) => {
                    let hosts = obeyed.hosts.iter().map(|(host, _)| host.to_string()).take(HOSTS_NAMED);
                    let of: Vec<_> = obeyed
                        .crawl
                        .map(|_| "the crawl".to_owned())
                        .into_iter()
                        .chain(hosts)
                        .collect();
                    let more = if obeyed.hosts.len() > HOSTS_NAMED {
                        ", and more hosts"
                    } else {
                        ""
                    };
                    log::warn!(target: "crawler::orders", "an order that another partition was given: {}{more}", of.join(", "));
                }
                Err(error) => match orders::failure(&error) {
                    Some(failure) => return Err(failure),
                    None => log::warn!(
                        target: "crawler::orders",
                        "an order that another partition was given cannot be obeyed: give it to this one, too ({error})"
                    ),
                },
            }
        }
        let mut has_new_reach = false;
        for (links, verdicts) in &exchanged.offered {
            sharing.nothing_left = None;
            has_new_reach |= links.iter().any(|link| link.seed);
            self.observers.notify(&Event::Offered { links, verdicts });
        }
        if has_new_reach {
            self.offer_links_in_new_reach()?;
        }
        let is_asked = exchanged.stop || exchanged.pause.is_some();
        if is_asked {
            self.requested.send_modify(|requested| {
                if exchanged.stop {
                    requested.stop = requested.stop.max(Stop::Finish);
                }
                requested.pause = exchanged.pause.unwrap_or(requested.pause);
            });
        }
        Ok(if exchanged.has_more || is_asked {
            Wake::Now
        } else {
            Wake::Never
        })
    }

    /// Nothing is left here, or may be fetched: ends, unless others may still send links.
    pub(super) fn end_with_others(&mut self, ending: Ending) -> Next {
        let now = self.clock.now();
        match &mut self.sharing {
            Some(sharing) if !sharing.peers.has_ended(now) => {
                sharing.is_told &= sharing.nothing_left == Some(ending);
                sharing.nothing_left = Some(ending);
                Next::Continue(Wake::Never)
            }
            _ => Next::Break(ending),
        }
    }

    /// Begins a run. Returns whether the crawl had ended in all processes before.
    pub(super) fn note_end(&mut self) -> bool {
        self.sharing.as_mut().is_some_and(|sharing| {
            sharing.is_over = sharing.peers.knows_end();
            sharing.is_over
        })
    }

    /// Finds out before the first word of a run whether nothing is left. Others may have ended with what was said before: to them, the directory
    /// of a process that has more to do is an old copy.
    pub(super) fn look_what_is_left(&mut self) -> Result<(), CrawlError> {
        if self.sharing.is_none() || self.keeps_fresh() {
            return Ok(());
        }
        let ending = loop {
            match self.frontier.lease(self.clock.now(), 0)? {
                Leasing::Dropped(dropped) => self.report_dropped(dropped),
                Leasing::Drained => break Some(Ending::Drained),
                Leasing::BudgetSpent => break Some(Ending::BudgetSpent),
                _ => break None,
            }
        };
        if let Some(sharing) = &mut self.sharing {
            sharing.nothing_left = ending;
        }
        Ok(())
    }

    pub(super) fn ended_before(&self) -> Option<Ending> {
        self.sharing.as_ref().filter(|sharing| sharing.is_over)?;
        Some(match self.frontier.report().is_drained() {
            true => Ending::Drained,
            false => Ending::BudgetSpent,
        })
    }

    pub(super) fn tell_pause(&mut self, is_paused: bool) {
        if let Some(sharing) = &mut self.sharing {
            sharing.peers.pause(is_paused);
            sharing.is_told = false;
        }
    }

    /// Tells the others what is on the medium, if all is, and something has changed.
    pub(super) fn tell_others(&mut self, is_committed: bool) {
        if self.sharing.is_none() {
            return;
        }
        let is_synced = self
            .frontier
            .save_status()
            .is_some_and(|status| status.next_sync.is_none());
        let Some(sharing) = &mut self.sharing else { return };
        if !is_synced {
            sharing.is_told = false;
            return;
        }
        if std::mem::replace(&mut sharing.is_told, true) && !is_committed {
            return;
        }
        let (nothing_left, now) = (sharing.nothing_left, self.clock.now());
        // Of the summary only the counts are sent, so the ending does not matter.
        let summary = self.summary(Ending::Drained);
        let is_drained = match nothing_left {
            None => false,
            Some(Ending::BudgetSpent) => summary.report.leased == 0,
            Some(_) => summary.report.is_drained(),
        };
        if let Some(sharing) = &mut self.sharing {
            sharing.peers.synced(&self.frontier, is_drained, &summary, now);
        }
    }
}

/// Waits until something has come from others.
pub(super) async fn woken(by: Option<&Notify>) {
    match by {
        Some(notify) => notify.notified().await,
        None => std::future::pending().await,
    }
}
