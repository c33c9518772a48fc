//! The rules of robots.txt of all origins, and the bound of their memory.

use std::sync::Arc;

use super::HostQueues;
use super::origin_id::OriginId;
use crate::failure::Failure;
use crate::notice::Notice;
use crate::report::Health;
use crate::rules::{KnownRules, MAX_RULES_BYTES, Policy};
use crate::time::Time;
use crate::url::{HostKey, Origin};

impl HostQueues {
    /// Sets the policy of an origin, which is valid until a time. Its pages can be leased or dropped then.
    pub(crate) fn robots_known(&mut self, origin: &Origin, policy: Policy, until: Time, now: Time) {
        let (key, id) = (origin.host(), OriginId::of(origin.as_str()));
        let most = self.config.politeness.max_crawl_delay;
        let known = KnownRules {
            policy,
            since: now,
            until,
        };
        self.rules_bytes += known.policy.bytes();
        let old = self.change_origin(key, id, now, |host| {
            let origin = host.origin(id);
            let old = origin.known.replace(known);
            origin.is_asking = false;
            origin.rules_are_fresh = true;
            origin.robots_attempts = 0;
            if let Some(health) = origin.health() {
                health.trouble.take_if(|trouble| trouble.state == Health::RobotsFailing);
            }
            host.update_crawl_delay(most);
            old
        });
        self.forget_rules(old.flatten().as_ref());
        if self.rules_bytes > MAX_RULES_BYTES {
            self.make_room(now);
        }
    }

    /// Sets the policy of an origin that did not answer. Its outage ends, so that it is not probed: probes by a robots.txt that may not
    /// be requested would never end.
    pub(crate) fn decided_without(&mut self, origin: &Origin, policy: Policy, until: Time, now: Time) {
        let (key, id) = (origin.host(), OriginId::of(origin.as_str()));
        self.change_origin(key, id, now, |host| {
            if let Some(health) = host.origin(id).health() {
                health.end_outage(now);
            }
        });
        self.robots_known(origin, policy, until, now);
    }

    /// Schedules a retry of the robots.txt of an origin.
    pub(crate) fn ask_robots_again(&mut self, origin: &Origin, attempts: u32, due: Time, now: Time) {
        let (key, id) = (origin.host(), OriginId::of(origin.as_str()));
        self.change_origin(key, id, now, |host| {
            let origin = host.origin(id);
            origin.is_asking = false;
            origin.robots_attempts = u8::try_from(attempts).unwrap_or(u8::MAX);
            origin.set_robots_due(due);
        });
    }

    /// Records that the robots.txt of an origin fails, and is requested again at a time. Returns a notice if that is its first failure in
    /// a row.
    pub(crate) fn robots_fails(
        &mut self,
        origin: &Origin,
        cause: &Arc<Failure>,
        due: Time,
        now: Time,
    ) -> Option<Notice> {
        let (key, id) = (origin.host(), OriginId::of(origin.as_str()));
        let is_first = self.change_origin(key, id, now, |host| {
            let queue = host.origin(id);
            queue.set_robots_due(due);
            queue.health_mut().note(Health::RobotsFailing, cause, None, now)
        });
        (is_first == Some(true)).then(|| Notice::RobotsFailing {
            origin: origin.clone(),
            cause: Arc::clone(cause),
            next: due.since(now),
        })
    }

    /// Records that the robots.txt of an origin waits as an entry of its own: fetched from another URL, or deferred. Its pages wait for it.
    pub(crate) fn robots_wait_as_entry(&mut self, origin: &Origin, now: Time) {
        let (key, id) = (origin.host(), OriginId::of(origin.as_str()));
        self.change_origin(key, id, now, |host| host.origin(id).is_asking = true);
    }

    pub(crate) fn known(&self, origin: &Origin) -> Option<KnownRules> {
        let host = self.hosts.get(origin.host().as_str())?;
        host.find(OriginId::of(origin.as_str()))?.known.clone()
    }

    fn forget_rules(&mut self, known: Option<&KnownRules>) {
        let bytes = known.map_or(0, |known| known.policy.bytes());
        self.rules_bytes = self.rules_bytes.saturating_sub(bytes);
    }

    /// Forgets a host and its rules.
    pub(super) fn forget(&mut self, key: &HostKey) {
        let Some(host) = self.hosts.remove(key) else { return };
        for origin in host.origins() {
            self.forget_rules(origin.known.as_ref());
        }
    }

    /// Drops rules until the rest takes three quarters of the bound.
    ///
    /// Rules that were used go first, the oldest first. Then go unused rules, the newest first, except the oldest: it is used at its
    /// next turn, so that the crawl makes progress. Dropped rules are fetched again before anything else of their origins.
    ///
    /// Cost: a scan of all hosts, and a look at those with rules, amortised over the bytes of new rules.
    fn make_room(&mut self, now: Time) {
        let (mut used, mut fresh) = (Vec::new(), Vec::new());
        for (key, host) in self.hosts.iter_if(|_, facts| facts.has_rules) {
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
            if self.rules_bytes <= MAX_RULES_BYTES / 4 * 3 {
                break;
            }
            let old = self.change_origin(&key, id, now, |host| host.origin(id).known.take());
            self.forget_rules(old.flatten().as_ref());
        }
    }
}
