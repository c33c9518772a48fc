//! What a host does at present: whether it is asked, and if not, since when, why, and until when.

use std::time::Duration;

use super::host::Host;
use super::jitter::with_jitter;
use super::origin_id::OriginId;
use super::origin_queue::OriginQueue;
use crate::config::RetryPolicy;
use crate::report::{Health, HostHealth};
use crate::rules::Policy;
use crate::time::Time;
use crate::url::HostKey;

impl Host {
    pub(super) fn deciding_origin(&self) -> Option<&OriginQueue> {
        match self.origins() {
            [only] => Some(only),
            origins => origins
                .iter()
                .max_by_key(|origin| (self.waits_for(origin), origin.state())),
        }
    }

    /// The state of the deciding origin, as far as it does not depend on the time. If nothing waits, there is nothing to hold up.
    pub(crate) fn settled_health(&self) -> Health {
        self.deciding_origin()
            .map_or(Health::Asked, |origin| self.state_of(origin))
    }

    fn state_of(&self, origin: &OriginQueue) -> Health {
        match self.queued() + self.postponed() + u64::from(self.pace.in_flight()) {
            0 if origin.state() < Health::Closed => Health::Asked,
            _ => origin.state(),
        }
    }

    fn waits_for(&self, origin: &OriginQueue) -> bool {
        origin.waiting_len() > 0 || self.delayed().any(|entry| OriginId::of(&entry.url) == origin.id)
    }

    /// Returns what it does. `oldest` is the start of its oldest request that hangs, and of which origin that is.
    pub(crate) fn health(
        &self,
        key: &HostKey,
        oldest: Option<(Time, OriginId)>,
        retries: &RetryPolicy,
        now: Time,
    ) -> HostHealth {
        let health = self
            .deciding_origin()
            .map_or_else(HostHealth::default, |origin| self.health_of(key, origin, retries, now));
        match oldest {
            Some((started, id)) if health.state < Health::Hanging => HostHealth {
                state: Health::Hanging,
                origin: id.origin(key),
                since: Some(started),
                ..HostHealth::default()
            },
            _ => health,
        }
    }

    fn health_of(&self, key: &HostKey, origin: &OriginQueue, retries: &RetryPolicy, now: Time) -> HostHealth {
        let state = self.state_of(origin);
        let is_ahead = |time: &Time| *time > now;
        let blocked = Some(self.blocked_until()).filter(is_ahead);
        let mut health = HostHealth {
            state,
            origin: origin.id.origin(key),
            until: blocked,
            ..HostHealth::default()
        };
        if let Some(trouble) = origin.trouble().filter(|_| state > Health::Asked) {
            health.since = Some(trouble.since);
            health.cause = Some(trouble.cause.clone());
            (health.asked_for, health.times) = (trouble.asked_for, trouble.times);
        }
        match health.state {
            // Another origin may throttle.
            Health::Asked if blocked.is_some() => health.state = Health::Resting,
            Health::RobotsFailing => {
                health.until = blocked.max(Some(origin.robots_due()).filter(is_ahead));
                // After its last attempt it is closed, unless it has rules to continue by.
                let attempts = health.times.max(origin.robots_attempts.into()) + 1
                    ..retries.max_robots_attempts.get().min(u8::MAX.into());
                let waits = attempts.map(|times| retries.wait_after(times));
                let known = origin.known.as_ref();
                let closes = known.is_none_or(|known| matches!(known.policy, Policy::Closed(..)));
                let waits = waits.fold(Duration::ZERO, Duration::saturating_add);
                let waits = with_jitter(waits, retries.retry_jitter, 1_000);
                health.given_up_at = closes.then(|| health.until.unwrap_or(now) + waits);
            }
            Health::Resting => {
                health.times = origin.throttles();
                health.given_up_at = Some(blocked.unwrap_or(now) + rests_after(&health, retries));
            }
            Health::Away => {
                let Some(outage) = origin.outage() else { return health };
                health.since = Some(outage.since);
                health.cause = Some(outage.cause.clone());
                health.until = Some(outage.next).filter(|next| !outage.is_probing && is_ahead(next));
                (health.times, health.asked_for) = (outage.probes, None);
                health.given_up_at = Some(outage.since + origin.patience(retries));
            }
            Health::Closed => {
                let Some(known) = &origin.known else { return health };
                health.since = Some(known.since);
                health.cause = match &known.policy {
                    Policy::Closed(_, cause) => cause.clone(),
                    Policy::AllowAll | Policy::Rules(_) => None,
                };
                health.until = Some(known.until).filter(is_ahead);
            }
            Health::GivenUp => health.until = None,
            _ => {}
        }
        health
    }
}

/// How long a host rests after its present rest, until it is given up because it throttles each time. A delay that is longer than a rest does not
/// count.
fn rests_after(health: &HostHealth, retries: &RetryPolicy) -> Duration {
    let left = retries
        .max_throttles
        .get()
        .saturating_sub(health.times.saturating_add(1));
    let rest = |more| retries.rest_after(health.times.saturating_add(more), health.asked_for);
    // They double, 31 times at most.
    let rests = (1..=left.min(32))
        .map(rest)
        .fold(Duration::ZERO, Duration::saturating_add);
    let rests = rests.saturating_add(rest(left).saturating_mul(left.saturating_sub(32)));
    with_jitter(rests, health.asked_for.map_or(retries.retry_jitter, |_| 0), 1_000)
}
