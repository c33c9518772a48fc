//! What robots.txt files say, and how much memory all that may take.

use super::HostQueues;
use super::origin_queue::OriginId;
use crate::rules::{KnownRules, MAX_RULES_BYTES, Policy};
use crate::time::Time;
use crate::url::{HostKey, Origin};

/// How much memory the rules of all origins take.
#[derive(Debug, Default)]
pub(super) struct RulesMemory {
    bytes: usize,
}

impl RulesMemory {
    fn forget(&mut self, known: Option<&KnownRules>) {
        let bytes = known.map_or(0, |known| known.policy.bytes());
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl HostQueues {
    /// The robots.txt of an origin is known, or what holds without it: its pages may be handed out, or are dropped, until a time.
    pub(crate) fn robots_known(&mut self, origin: &Origin, policy: Policy, until: Time, now: Time) {
        let (key, id) = (origin.host().clone(), OriginId::of(origin.as_str()));
        let bytes = policy.bytes();
        let most = self.rules.max_crawl_delay;
        let known = KnownRules {
            policy,
            since: now,
            until,
        };
        let old = self.change_origin(&key, id, now, |host| {
            let origin = host.origin(id);
            let old = origin.known.replace(known);
            origin.is_asking = false;
            origin.rules_are_fresh = true;
            origin.robots_attempts = 0;
            host.update_crawl_delay(most);
            old
        });
        self.rules_memory.forget(old.flatten().as_ref());
        self.rules_memory.bytes += bytes;
        if self.rules_memory.bytes > MAX_RULES_BYTES {
            self.make_room(now);
        }
    }

    /// What holds for an origin was decided without its answer: whether it is away makes no difference any longer, and is not asked. (If it
    /// were, by a robots.txt that may not be asked for, that would have no end.)
    pub(crate) fn decided_without(&mut self, origin: &Origin, policy: Policy, until: Time, now: Time) {
        let (key, id) = (origin.host().clone(), OriginId::of(origin.as_str()));
        self.change_origin(&key, id, now, |host| {
            if let Some(health) = host.origin(id).health() {
                health.outage = None;
            }
        });
        self.robots_known(origin, policy, until, now);
    }

    /// The robots.txt of an origin was asked for in vain, and is asked for again at a time.
    pub(crate) fn ask_robots_again(&mut self, origin: &Origin, attempts: u32, due: Time, now: Time) {
        let (key, id) = (origin.host().clone(), OriginId::of(origin.as_str()));
        self.change_origin(&key, id, now, |host| {
            let origin = host.origin(id);
            origin.is_asking = false;
            origin.robots_attempts = u8::try_from(attempts).unwrap_or(u8::MAX);
            origin.set_robots_due(due);
        });
    }

    /// The robots.txt of an origin is asked for at another place: its pages wait for that.
    pub(crate) fn robots_redirected(&mut self, origin: &Origin, now: Time) {
        let (key, id) = (origin.host().clone(), OriginId::of(origin.as_str()));
        self.change_origin(&key, id, now, |host| host.origin(id).is_asking = true);
    }

    /// What is known of the robots.txt of an origin, also if it has expired.
    pub(crate) fn known(&self, origin: &Origin) -> Option<&KnownRules> {
        let host = self.hosts.get(origin.host())?;
        host.find(OriginId::of(origin.as_str()))?.known.as_ref()
    }

    /// Forgets a host; its rules give their memory back.
    pub(super) fn forget(&mut self, key: &HostKey) {
        let Some(host) = self.hosts.remove(key) else { return };
        for origin in host.origins() {
            self.rules_memory.forget(origin.known.as_ref());
        }
    }

    /// Drops rules until all take three quarters of what they may: first those that were used, the oldest first, then those that
    /// were not, the youngest first, but for the oldest of them. They are asked for again before anything else of their origins
    /// is fetched; the oldest is used at its next turn, so that the crawl goes on.
    ///
    /// Costs a look at all hosts, paid for by as many bytes of rules that came since the last time.
    fn make_room(&mut self, now: Time) {
        let (mut used, mut fresh) = (Vec::new(), Vec::new());
        for (key, host) in &self.hosts {
            for origin in host.origins() {
                let Some(known) = origin.known.as_ref().filter(|known| known.policy.bytes() > 0) else {
                    continue;
                };
                let group = if origin.rules_are_fresh { &mut fresh } else { &mut used };
                group.push((known.since, key.clone(), origin.id));
            }
        }
        used.sort_unstable();
        fresh.sort_unstable_by(|one, other| other.cmp(one));
        fresh.pop();
        for (_, key, id) in used.into_iter().chain(fresh) {
            if self.rules_memory.bytes <= MAX_RULES_BYTES / 4 * 3 {
                break;
            }
            let old = self.change_origin(&key, id, now, |host| host.origin(id).known.take());
            self.rules_memory.forget(old.flatten().as_ref());
        }
    }

    /// Returns the bytes that the rules of all origins take.
    pub(crate) fn rules_bytes(&self) -> usize {
        self.rules_memory.bytes
    }
}
