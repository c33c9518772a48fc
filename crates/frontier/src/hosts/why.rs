//! Why a URL is queued: what it waits for.

use super::HostQueues;
use super::origin_queue::OriginId;
use crate::lease::NotFetched;
use crate::report::{Wait, Why};
use crate::time::Time;
use crate::traps::Screening;
use crate::url::CanonicalUrl;

impl HostQueues {
    /// Returns what a URL waits for, if it is queued. Cost: a scan of the queue of its host.
    pub(crate) fn why_waiting(&self, url: &CanonicalUrl, now: Time) -> Option<Why> {
        let (key, id) = (url.host(), OriginId::of(url.url().as_str()));
        let host = self.get(&key)?;
        let entry = host.find_queued(&key, url.key())?;
        let queued = |wait| Why::Queued {
            host: key.clone(),
            wait,
        };
        let Some(origin) = host.find(id) else {
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
        if screening == Screening::Postpone || origin.is_postponed(&key, url.key()) {
            return Some(queued(Wait::EverythingElse));
        }
        let free = host.free_from(&self.rules).max(entry.due);
        Some(queued(if origin.is_asking {
            Wait::Robots
        } else if host.pace.in_flight() >= self.rules.per_host {
            Wait::InFlight
        } else if free > now {
            Wait::Until(free)
        } else if known.is_none() && self.rules.ask_robots {
            Wait::Robots
        } else {
            Wait::Turn
        }))
    }
}
