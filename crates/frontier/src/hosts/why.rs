//! Why a URL is queued: what it waits for.

use super::HostQueues;
use super::host::{Host, HostState};
use super::origin_queue::OriginId;
use crate::lease::NotFetched;
use crate::report::{QueuePlace, Wait, Why};
use crate::time::Time;
use crate::traps::Screening;
use crate::url::CanonicalUrl;

impl HostQueues {
    /// Says what a URL waits for, if it waits. Cost: a look at the whole queue of its host.
    pub(crate) fn why_waiting(&self, url: &CanonicalUrl, now: Time) -> Option<Why> {
        let (key, id) = (url.host(), OriginId::of(url.url().as_str()));
        let host = self.get(&key)?;
        let entry = host.find_queued(&key, url.key(), &self.rules)?;
        let origin = host.find(id);
        let ahead = origin.and_then(|origin| origin.ahead_of(&key, url.key(), self.rules.segments()));
        let place = QueuePlace {
            // A retry that is not due is behind all that wait.
            ahead: ahead
                .or_else(|| Some(origin?.waiting_len() - origin?.postponed_len()))
                .unwrap_or(0),
            others_of_host: (host.queued() + host.postponed()).saturating_sub(1),
            in_flight: host.pace.in_flight(),
        };
        let queued = |wait| Why::Queued {
            host: key.clone(),
            wait,
            place,
        };
        let Some(origin) = origin else {
            return Some(queued(Wait::Robots));
        };
        let known = origin
            .known
            .as_ref()
            .filter(|_| self.rules.ask_robots && origin.knows_robots(now));
        let path = crate::entry::path_of(url.url().as_str());
        if let Some(why) = known.and_then(|known| known.policy.forbids(path)) {
            return Some(Why::WillBeDropped(why));
        }
        let screening = self.traps.screen(&entry);
        if screening == Screening::Drop {
            return Some(Why::WillBeDropped(NotFetched::NearDuplicates));
        }
        if let Some(away) = origin.outage() {
            return Some(queued(Wait::Away {
                since: away.since,
                cause: away.cause.message.clone(),
            }));
        }
        if screening == Screening::Postpone || origin.is_postponed(&key, url.key(), self.rules.segments()) {
            return Some(queued(Wait::EverythingElse));
        }
        let free = host.free_from(&self.rules).max(entry.due);
        Some(queued(if origin.is_asking {
            Wait::Robots
        } else if host.pace.in_flight() >= self.rules.per_host || host.holds_pages(&self.rules) {
            Wait::InFlight
        } else if free > now {
            Wait::Until(free)
        } else if known.is_none() && self.rules.ask_robots {
            Wait::Robots
        } else {
            self.wait_at_address(&host, now)
        }))
    }

    /// Says what a page waits for whose host could be asked by its own rules.
    fn wait_at_address(&self, host: &Host, now: Time) -> Wait {
        if !self.rules.per_address {
            return Wait::Turn;
        }
        let is_kept_back = |address| !self.addresses.is_free(address, now);
        match (host.state, host.admitted_by()) {
            (HostState::WaitingForAddress, _) => Wait::SharedAddress,
            (_, Some(address)) if is_kept_back(address) => Wait::SharedAddress,
            _ if host.knows_address(now) => Wait::Turn,
            _ => Wait::AddressLookup,
        }
    }
}
