//! Why a URL is queued: what it waits for.
//!
//! It reads, and changes nothing. Where a lease decides, it asks the same functions: `OriginQueue::turn` (a probe, robots.txt or an entry),
//! `HostQueues::screen` (policy, rules, near-duplicates), `Host::free_at` (delays, rests, requests in flight) and `Host::holds_pages` (the page
//! budget of the host); `state/inspect.rs` adds the budget of the crawl. The first of these questions that is answered with yes decides. What can last
//! longest comes first, so that the answer does not change while it is read:
//!
//! | is… | it waits for |
//! |---|---|
//! | its origin one that was asked for nothing? | [`Robots`](Wait::Robots) |
//! | its host closed, it forbidden by known rules, or one near-duplicate too many? | nothing: it will be dropped |
//! | its origin away? | [`Away`](Wait::Away) |
//! | it postponed, or will it be at its turn? | [`EverythingElse`](Wait::EverythingElse) |
//! | robots.txt being asked for? | [`Robots`](Wait::Robots) |
//! | its host busy, or its page budget in flight? | [`InFlight`](Wait::InFlight) |
//! | another host of its address first? | [`SharedAddress`](Wait::SharedAddress) |
//! | it too early for the host, or for a retry? | [`Until`](Wait::Until) |
//! | robots.txt due? | [`Robots`](Wait::Robots) |
//! | the address of its host unknown? | [`AddressLookup`](Wait::AddressLookup) |
//! | none of these | its [`Turn`](Wait::Turn) |
//!
//! `tests/it/random_walks.rs` compares `Turn` and `Until` with the next lease. The text of a [`Wait`] is in `report.rs`, its word in the command's
//! `state/why.rs`.

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
        let (entry, ahead, is_postponed) = host.find_queued(&key, id, url.key(), &self.config)?;
        let place = QueuePlace {
            ahead,
            others_of_host: (host.queued() + host.postponed()).saturating_sub(1),
            in_flight: host.pace.in_flight(),
            class: entry.class,
            attempts: entry.attempts,
        };
        let rule = self.config.order.rule_of(entry.key());
        let rule = rule
            .filter(|rule| rule.class == entry.class)
            .map(|rule| rule.pattern.clone());
        let queued = |wait| Why::Queued {
            host: key.clone(),
            wait,
            place,
            rule: rule.clone(),
        };
        let Some(origin) = host.find(id) else {
            return Some(queued(Wait::Robots));
        };
        let screening = self.screen(Some(&host), origin.knows_robots(now), &entry);
        if let Screening::Drop(why, _) = screening {
            return Some(Why::WillBeDropped(why));
        }
        let turn = origin.turn(now, self.config.politeness.ask_robots);
        if let Turn::Probe(away) = turn {
            return Some(queued(Wait::Away {
                since: away.since,
                cause: away.cause.message.clone(),
            }));
        }
        if screening == Screening::Postpone || is_postponed {
            return Some(queued(Wait::EverythingElse));
        }
        if origin.is_asking {
            return Some(queued(Wait::Robots));
        }
        let Some(free) = host.free_at(&self.config).filter(|_| !host.holds_pages(&self.config)) else {
            return Some(queued(Wait::InFlight));
        };
        Some(queued(match free.max(entry.due) {
            _ if self.is_behind_others(&host, now) => Wait::SharedAddress,
            time if time > now => Wait::Until(time),
            _ if matches!(turn, Turn::Robots) => Wait::Robots,
            _ if self.config.politeness.per_address && !host.knows_address(now) => Wait::AddressLookup,
            _ => Wait::Turn,
        }))
    }

    /// Whether other hosts of its address come first.
    fn is_behind_others(&self, host: &Host, now: Time) -> bool {
        let is_kept_back = |address| !self.addresses.is_free(address, now, &self.config);
        matches!(host.state, HostState::WaitingForAddress(_)) || host.admitted_by().is_some_and(is_kept_back)
    }
}
