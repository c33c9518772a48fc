//! Why a URL is queued: what it waits for.
//!
//! It reads, and changes nothing. Where a lease decides, it asks the same functions: `OriginQueue::turn` (a probe, robots.txt or an entry),
//! `HostQueues::screen` (rules, near-duplicates), `Host::free_at` (delays, rests, requests in flight) and `Host::holds_pages` (the page
//! budget of the host); `state/inspect.rs` adds the budget of the crawl. The order of its questions is its
//! own: the first that says no is what the URL waits for. A random walk checks it before each lease. The text of a [`Wait`] is in `report.rs`, its word
//! in the command's `state/why.rs`.

use super::HostQueues;
use super::host::{Host, HostState};
use super::origin_id::OriginId;
use super::origin_queue::Turn;
use crate::report::{QueuePlace, Wait, Why};
use crate::time::Time;
use crate::traps::Screening;
use crate::url::CanonicalUrl;

impl HostQueues {
    /// Says what a URL waits for, if it waits. Cost: a look at the whole queue of its host.
    pub(crate) fn why_waiting(&self, url: &CanonicalUrl, now: Time) -> Option<Why> {
        let (key, id) = (url.host(), OriginId::of(url.url().as_str()));
        let host = self.get(&key)?;
        let (entry, ahead, is_postponed) = host.find_queued(&key, id, url.key(), &self.rules)?;
        let place = QueuePlace {
            ahead,
            others_of_host: (host.queued() + host.postponed()).saturating_sub(1),
            in_flight: host.pace.in_flight(),
        };
        let queued = |wait| Why::Queued {
            host: key.clone(),
            wait,
            place,
        };
        let Some(origin) = host.find(id) else {
            return Some(queued(Wait::Robots));
        };
        let screening = self.screen(Some(origin).filter(|origin| origin.knows_robots(now)), &entry);
        if let Screening::Drop(why, _) = screening {
            return Some(Why::WillBeDropped(why));
        }
        let turn = origin.turn(now, self.rules.politeness.ask_robots);
        if let Turn::Probe(away) = turn {
            return Some(queued(Wait::Away {
                since: away.since,
                cause: away.cause.message.clone(),
            }));
        }
        if screening == Screening::Postpone || is_postponed {
            return Some(queued(Wait::EverythingElse));
        }
        let free = host.free_at(&self.rules).filter(|_| !host.holds_pages(&self.rules));
        Some(queued(match free.map(|free| free.max(entry.due)) {
            _ if origin.is_asking => Wait::Robots,
            None => Wait::InFlight,
            _ if self.is_behind_others(&host, now) => Wait::SharedAddress,
            Some(time) if time > now => Wait::Until(time),
            Some(_) if matches!(turn, Turn::Robots) => Wait::Robots,
            Some(_) if self.rules.politeness.per_address && !host.knows_address(now) => Wait::AddressLookup,
            Some(_) => Wait::Turn,
        }))
    }

    /// Whether other hosts of its address come first.
    fn is_behind_others(&self, host: &Host, now: Time) -> bool {
        let is_kept_back = |address| !self.addresses.is_free(address, now, &self.rules);
        host.state == HostState::WaitingForAddress || host.admitted_by().is_some_and(is_kept_back)
    }
}
