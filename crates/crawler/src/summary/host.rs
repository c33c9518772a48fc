//! One host of a crawl: its figures, its state in words, and what to do about it.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use frontier::{Health, HostReport, Time};
use serde_json::{Value, json};

use super::remedy::remedy;
use super::rows::{duration, grouped};

/// The most characters of the cause of a state.
const CAUSE_CHARACTERS: usize = 120;

/// A longer delay, or time to answer, explains why a host takes long.
const LONG: Duration = Duration::from_secs(1);

/// Takes how far the clock of the frontier is ahead of the time of day from a time.
pub(crate) fn less_ahead(time: Time, ahead: Duration) -> Time {
    Time::EPOCH + time.since(Time::EPOCH + ahead)
}

/// The hosts of a crawl at one time.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HostTable {
    /// The hosts on which the crawl has spent most time, up to 256, and up to 256 that hold it up, the worst first.
    pub hosts: Vec<HostFigures>,
    /// How many hosts did what.
    pub by_health: BTreeMap<Health, u64>,
    /// When that was; [`Time::EPOCH`] if nobody has looked yet.
    pub as_of: Time,
}

impl HostTable {
    /// Returns the host that holds the crawl up longest, if anything waits.
    pub fn held_up_by(&self) -> Option<&HostFigures> {
        self.hosts.first().filter(|host| host.left.is_some())
    }

    /// Returns how long what waits takes: at the host that takes longest, and then at the one that takes longest of those whose pages wait
    /// behind all others. `None` if nothing waits.
    pub fn left(&self) -> Option<Duration> {
        let longest = |is_behind| {
            let hosts = self.hosts.iter().filter(|host| host.is_behind() == is_behind);
            hosts.filter_map(|host| host.left).max()
        };
        let left = [longest(false), longest(true)].into_iter().flatten();
        left.reduce(Duration::saturating_add)
    }

    /// Returns how many hosts are away.
    pub fn away(&self) -> u64 {
        self.by_health.get(&Health::Away).copied().unwrap_or_default()
    }
}

/// A host: what the frontier reports of it, how it answers, and how long it takes. The times of answers are from the start of the request to
/// the end of the body; pauses are from the end of a request to the lease of the next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostFigures {
    /// The report of the frontier. Its fields are fields of the figures, too.
    pub report: HostReport,
    /// Requests that failed: no whole answer, or a page with a status of 400 or more. They count from when the host came into the table of
    /// the 256 hosts on which the crawl spends most time.
    pub failures: u64,
    /// Answers, counted as failures are.
    pub answers: u64,
    /// The median time of its last 31 answers; `None` before the first.
    pub median: Option<Duration>,
    /// The longest time of an answer; `None` before the first.
    pub longest: Option<Duration>,
    /// The median of its last 31 pauses; `None` before the second request.
    pub median_pause: Option<Duration>,
    /// How long what waits for it takes, as [`HostReport::time_left`] says: at least, with one request for each page, which takes the mean of the last 31
    /// with a whole answer; at most, with all attempts, if its pages [hang](frontier::HostHealth::pages_hang). `None` if nothing waits.
    pub left: Option<Duration>,
    /// The same at least, also for a host whose pages hang: if it answers again.
    pub answering: Option<Duration>,
}

impl Deref for HostFigures {
    type Target = HostReport;

    fn deref(&self) -> &HostReport {
        &self.report
    }
}

impl HostFigures {
    /// Takes how far the clock of the frontier is ahead of the time of day from all its times.
    pub(crate) fn less_ahead(mut self, ahead: Duration) -> Self {
        // The two clocks were read one after the other.
        let ahead = Duration::from_secs(ahead.as_secs());
        let health = &mut self.report.health;
        for time in [
            &mut health.since,
            &mut health.until,
            &mut health.given_up_at,
            &mut self.report.robots_at,
        ] {
            *time = time.map(|time| less_ahead(time, ahead));
        }
        self
    }

    /// Compares hosts: the one that holds the crawl up longest comes first, and those whose pages wait behind all others come after others.
    pub fn worst_first(&self, other: &Self) -> Ordering {
        let rank = |one: &Self| {
            Reverse((
                one.left.is_some() && !one.is_behind(),
                one.left,
                one.health.state,
                one.requests,
            ))
        };
        rank(self).cmp(&rank(other)).then_with(|| self.host.cmp(&other.host))
    }
}

impl HostFigures {
    /// Returns them as one JSON object, with times in seconds. `name` returns the name of an option by its field.
    pub fn to_json(&self, as_of: Time, name: &dyn Fn(&str) -> String) -> Value {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let text = |time: Option<Time>| time.map(|time| time.to_string());
        let health = &self.health;
        let mut host = json!({
            "host": self.host,
            "state": health.state,
            "explanation": self.explained(as_of, name),
            "origin": health.origin.as_ref().map(ToString::to_string),
            "since": text(health.since),
            "until": text(health.until),
            "given_up_at": text(health.given_up_at),
            "kind": health.cause.as_ref().map(|cause| cause.kind.name()),
            "cause": self.cause(),
            "retry_after_seconds": seconds(health.asked_for),
            "times": health.times,
            "advice": self.advice(name),
            "waiting": self.queued,
            "postponed": self.postponed,
            "alike": self.alike,
            "in_flight": self.in_flight,
            "left": self.left_in_words(),
            "left_seconds": seconds(self.left),
            "requests": self.requests,
            "failures": self.failures,
            "median_seconds": seconds(self.median),
            "longest_seconds": seconds(self.longest),
            "delay_seconds": self.delay.as_secs_f64(),
            "shortest_pause_seconds": seconds(self.shortest_gap),
            "median_pause_seconds": seconds(self.median_pause),
            "robots_fetched_at": text(self.robots_at),
        });
        if self.is_dropped() {
            host["dropped"] = true.into();
        }
        host
    }

    /// Says what the host does, since when, why and until when, how long what waits for it takes, and what to do.
    pub fn explained(&self, as_of: Time, name: &dyn Fn(&str) -> String) -> String {
        let health = &self.health;
        let mut text = self.state_in_words();
        // How one is for which nothing waits is not known.
        let is_known = self.left.is_some() || health.state >= Health::Closed;
        match health.since {
            Some(since) if is_known => text += &format!(" for {}", duration(as_of.since(since))),
            Some(_) if !self.is_dropped() => text += " when it was last asked",
            _ => {}
        }
        if let Some(cause) = self.cause() {
            text += &format!(": {cause}");
        }
        if let Some(asked_for) = health.asked_for {
            text += &format!("; Retry-After: {}", duration(asked_for));
        }
        if health.times > 1 {
            text += &format!("; {} times in a row", health.times);
        }
        if let Some(until) = health.until.filter(|_| self.left.is_some()) {
            text += &format!("; asked again in {}, at {until}", duration(until.since(as_of)));
            if self.is_blocked_by_policy() {
                text += ", as its closed-until says";
            }
        }
        if self.is_dropped() {
            return text + "; nothing of it is fetched, by order";
        }
        if let Some(end) = health.given_up_at.filter(|end| self.left.is_some() && *end > as_of) {
            // An outage lasts until then; of rests, the longest that may come were counted.
            let at = if health.state == Health::Away { "at" } else { "by" };
            text += &format!("; given up {at} {end} if this continues");
        }
        let Some(left) = self.left_in_words() else {
            return format!("{text}; {}", self.without_end(name));
        };
        let waiting = self.queued + u64::from(self.in_flight);
        let alike = match self.postponed {
            0 => String::new(),
            alike => format!(", {} of them behind all other pages as they look alike", grouped(alike)),
        };
        text += &format!("; {} waiting{alike}, {left}", grouped(waiting));
        if let Some(budget) = self.budget.filter(|budget| (1..waiting).contains(budget)) {
            let own = self.policy.max_pages.map(|_| "its max-pages".to_owned());
            let limit = own.unwrap_or_else(|| name("max_pages_per_host"));
            text += &format!(", as {limit} lets {} be fetched", grouped(budget));
        }
        if self.alike > waiting {
            let limit = name("max_near_duplicates_in_all");
            text += &format!("; lower {limit} to end it sooner");
        }
        let advice = self.advice(name).filter(|_| !text.contains("; try "));
        text + &advice.map(|advice| format!("; {advice}")).unwrap_or_default()
    }

    /// Returns how it is with a host for which nothing waits that has its turn, as a phrase.
    fn without_end(&self, name: &dyn Fn(&str) -> String) -> String {
        let until = match (self.health.state, self.health.until) {
            (Health::Closed, Some(until)) => format!("pages of it that are found until {until} are dropped; "),
            (Health::Closed, None) => "asked again once a page of it waits; ".to_owned(),
            _ => String::new(),
        };
        until
            + &match self.advice(name).filter(|_| self.health.state >= Health::Closed) {
                Some(advice) => advice,
                None if self.is_budget_spent && self.queued > 0 => {
                    format!("{} waiting, the page budget is spent", grouped(self.queued))
                }
                None if self.budget == Some(0) => "its page budget is spent".to_owned(),
                None => "nothing waits".to_owned(),
            }
    }

    /// Returns how long what waits takes, as a phrase: at least so long, because more pages may be found; if the trouble of the host
    /// [lasts](frontier::HostHealth::lasts), until it is given up. `None` if nothing waits.
    pub fn left_in_words(&self) -> Option<String> {
        let left = duration(self.left?);
        let alike = match self.alike > self.queued + u64::from(self.in_flight) {
            true => format!(", if up to {} follow that look alike", grouped(self.alike)),
            false => String::new(),
        };
        Some(match self.health.lasts() {
            true if self.left == Some(Duration::ZERO) => "given up if its request in flight fails".to_owned(),
            true => format!("{left} left if this continues"),
            false if self.is_behind() => format!("{left} left after all other pages{alike}"),
            false if self.alike > 0 => format!("{left} left{alike}"),
            // Some have spent attempts.
            false if self.health.pages_hang() => {
                let answering = duration(self.answering.unwrap_or_default());
                format!("up to {left} left if no more follow, {answering} if it answers again")
            }
            false if self.health.state == Health::Hanging => format!("at least {left} left if it answers again"),
            false => format!("at least {left} left"),
        })
    }

    fn is_dropped(&self) -> bool {
        self.policy.closed == Some(true)
    }

    /// Whether it rests for no other reason than its policy.
    fn is_blocked_by_policy(&self) -> bool {
        let until = self.policy.closed_until;
        self.health.state == Health::Resting && until.is_some() && until == self.health.until
    }

    fn cause(&self) -> Option<String> {
        let cause = self.health.cause.as_ref()?;
        Some(cause.message.chars().take(CAUSE_CHARACTERS).collect())
    }

    /// Returns the state as people say it.
    pub fn state_in_words(&self) -> String {
        match self.health.state {
            _ if self.is_dropped() => "dropped".to_owned(),
            Health::RobotsFailing => "robots.txt failing".to_owned(),
            state => state.name().replace('_', " "),
        }
    }

    /// Returns what an operator can do about the state.
    pub fn advice(&self, name: &dyn Fn(&str) -> String) -> Option<String> {
        Some(match self.health.state {
            Health::Resting if self.is_blocked_by_policy() => "an earlier closed-until opens it sooner".to_owned(),
            // No delay is as long as an hour.
            Health::Resting if self.health.asked_for > Some(Duration::from_secs(3600)) => {
                let (state, sooner) = (name("state"), name("max_throttles"));
                format!(
                    "once all else is fetched, a later run with {state} asks it again: lower {sooner} to give it up sooner in this one"
                )
            }
            Health::Resting => format!(
                "it asks for less traffic: raise {}, or lower {} to give it up sooner",
                name("delay"),
                name("max_throttles")
            ),
            Health::RobotsFailing | Health::Closed => {
                "look at its robots.txt: nothing is fetched without it".to_owned()
            }
            Health::Hanging => format!("{} and {} bound that", name("max_attempts"), name("timeout")),
            Health::Away | Health::GivenUp => remedy(self.health.cause.as_ref()?.kind, name),
            _ if self.delay > LONG && Some(self.delay) > self.median => {
                let from = match self.crawl_delay < self.delay {
                    true if self.policy.delay.is_some() => "its policy".to_owned(),
                    true => name("delay"),
                    false => format!("its robots.txt, up to {}", name("max_crawl_delay")),
                };
                format!("its delay is {}, from {from}", duration(self.delay))
            }
            _ => {
                let median = self.median.filter(|median| *median > LONG)?;
                format!(
                    "it answers in {}: {} allows more at once",
                    duration(median),
                    name("per_host")
                )
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use frontier::{Canonicalizer, Failure, FailureKind, Frontier, FrontierConfig};

    use super::*;

    /// Explains a host after a change of its report.
    fn explained(change: impl FnOnce(&mut HostFigures)) -> String {
        let seed = Canonicalizer::default().parse("http://a.example/").unwrap();
        let mut frontier = Frontier::in_memory(FrontierConfig::default()).unwrap();
        frontier.add_seed(&seed, Time::EPOCH).unwrap();
        let report = frontier.host_report(&seed.host(), Time::EPOCH).unwrap();
        let mut figures = HostFigures::new(report, Time::EPOCH);
        (figures.report.queued, figures.left) = (37, Some(Duration::from_secs(370)));
        change(&mut figures);
        figures.explained(Time::EPOCH, &|field| field.to_uppercase())
    }

    #[test]
    fn it_is_said_what_makes_a_host_take_long_and_until_when() {
        let second = Duration::from_secs(1);
        let cases = [
            (
                explained(|host| host.report.delay = second / 2),
                "asked; 37 waiting, at least 6.2 min left",
            ),
            (
                explained(|host| host.report.delay = 10 * second),
                "asked; 37 waiting, at least 6.2 min left; its delay is 10.0 s, from DELAY",
            ),
            (
                explained(|host| (host.report.delay, host.report.crawl_delay) = (10 * second, 10 * second)),
                "asked; 37 waiting, at least 6.2 min left; its delay is 10.0 s, from its robots.txt, up to MAX_CRAWL_DELAY",
            ),
            (
                explained(|host| {
                    host.report.health.state = Health::Hanging;
                    host.report.health.cause =
                        Some(Arc::new(Failure::new(FailureKind::Incomplete, "the body broke off")));
                }),
                "hanging: the body broke off; 37 waiting, at least 6.2 min left if it answers again; MAX_ATTEMPTS and TIMEOUT bound that",
            ),
            (
                explained(|host| host.median = Some(2 * second)),
                "asked; 37 waiting, at least 6.2 min left; it answers in 2.0 s: PER_HOST allows more at once",
            ),
            (
                explained(|host| {
                    (host.report.health.state, host.report.health.times) = (Health::Resting, 3);
                    host.report.health.until = Some(Time::EPOCH + 20 * second);
                    host.report.health.given_up_at = Some(Time::EPOCH + 900 * second);
                }),
                "resting; 3 times in a row; asked again in 20.0 s, at 1970-01-01T00:00:20.000Z; given up by 1970-01-01T00:15:00.000Z if this continues; \
                 37 waiting, 6.2 min left if this continues; it asks for less traffic: raise DELAY, or lower MAX_THROTTLES to give it up sooner",
            ),
            (
                explained(|host| {
                    (host.report.health.state, host.report.health.times) = (Health::Away, 2);
                    (host.report.health.given_up_at, host.left) = (Some(Time::EPOCH), Some(Duration::ZERO));
                }),
                "away; 2 times in a row; 37 waiting, given up if its request in flight fails",
            ),
            (
                explained(|host| {
                    (host.report.health.state, host.report.health.asked_for) = (Health::Resting, Some(86_400 * second));
                }),
                "resting; Retry-After: 24.0 h; 37 waiting, at least 6.2 min left; once all else is fetched, a later run with STATE asks it again: \
                 lower MAX_THROTTLES to give it up sooner in this one",
            ),
            (
                explained(|host| {
                    host.report.health.state = Health::Closed;
                    (host.report.health.until, host.left) = (Some(Time::EPOCH + second), None);
                }),
                "closed; pages of it that are found until 1970-01-01T00:00:01.000Z are dropped; look at its robots.txt: nothing is fetched without it",
            ),
            (
                explained(|host| (host.report.queued, host.left) = (0, None)),
                "asked; nothing waits",
            ),
            (
                explained(|host| {
                    (host.report.queued, host.left) = (0, None);
                    (host.report.health.state, host.report.health.since) = (Health::Hanging, Some(Time::EPOCH));
                }),
                "hanging when it was last asked; nothing waits",
            ),
            (
                explained(|host| (host.report.budget, host.report.queued, host.left) = (Some(0), 0, None)),
                "asked; its page budget is spent",
            ),
            (
                explained(|host| host.report.budget = Some(20)),
                "asked; 37 waiting, at least 6.2 min left, as MAX_PAGES_PER_HOST lets 20 be fetched",
            ),
            (
                explained(|host| {
                    (host.report.health.state, host.report.health.times) = (Health::Hanging, 4);
                    host.answering = Some(37 * second);
                }),
                "hanging; 4 times in a row; 37 waiting, up to 6.2 min left if no more follow, 37.0 s if it answers again; MAX_ATTEMPTS and TIMEOUT bound that",
            ),
            (
                explained(|host| {
                    host.report.policy.max_pages = Some(20);
                    host.report.budget = Some(20);
                }),
                "asked; 37 waiting, at least 6.2 min left, as its max-pages lets 20 be fetched",
            ),
            (
                explained(|host| {
                    let until = Some(Time::EPOCH + 60 * second);
                    (host.report.health.state, host.report.health.until) = (Health::Resting, until);
                    host.report.policy.closed_until = until;
                }),
                "resting; asked again in 60.0 s, at 1970-01-01T00:01:00.000Z, as its closed-until says; 37 waiting, at least 6.2 min left; \
                 an earlier closed-until opens it sooner",
            ),
            (
                explained(|host| host.report.policy.closed = Some(true)),
                "dropped; nothing of it is fetched, by order",
            ),
            (
                explained(|host| (host.report.is_budget_spent, host.left) = (true, None)),
                "asked; 37 waiting, the page budget is spent",
            ),
            (
                explained(|host| (host.report.postponed, host.report.alike) = (37, 4000)),
                "asked; 37 waiting, 37 of them behind all other pages as they look alike, 6.2 min left after all other pages, if up to 4000 follow that look alike; \
                 lower MAX_NEAR_DUPLICATES_IN_ALL to end it sooner",
            ),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
    }
}
