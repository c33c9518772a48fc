//! robots.txt by RFC 9309: what an origin lets us fetch.

mod lines;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use frontier::{HostKey, NotFetched, Origin, Time};
use url::{Position, Url};

/// How long a robots.txt holds before it is asked for again (RFC 9309, section 2.4).
pub const ROBOTS_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// How long nothing of an origin is fetched whose robots.txt could not be had (RFC 9309, section 2.3.1.4), the first time; then
/// it is asked for again. Each further time in a row is twice as long, up to the lifetime of a robots.txt.
pub const FIRST_CLOSING: Duration = Duration::from_secs(10 * 60);

/// How long rules that have expired hold on when their robots.txt cannot be had (RFC 9309, section 2.4), the first time; then it is
/// asked for again. Each further time in a row is twice as long, up to the lifetime of a robots.txt.
pub const RULES_EXTENSION: Duration = Duration::from_secs(60 * 60);

/// The most bytes of robots.txt files whose rules are kept at a time; their rules take up to five times as much memory. A
/// site with a wildcard in its DNS can have any number of hosts, each with half a megabyte.
const MAX_POLICY_BYTES: usize = 64 * 1024 * 1024;

/// Bytes that a policy takes whatever its file says.
const POLICY_BYTES: usize = 256;

/// Policies that are not worth a sweep.
const FEW_POLICIES: usize = 64;

/// How many redirects of a robots.txt are followed (RFC 9309, section 2.3.1.2).
pub const MAX_ROBOTS_HOPS: u8 = 5;

/// The rules of one robots.txt that apply to one crawler.
#[derive(Debug, Clone)]
pub struct RobotsRules {
    rules: robotxt::Robots,
    /// Of the file they were read from.
    bytes: usize,
}

/// What the rules say of one URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsVerdict {
    /// Whether it may be fetched.
    pub allowed: bool,
    /// The rule that decided, as a line of the file; `None` when no rule matches.
    pub rule: Option<String>,
}

impl RobotsRules {
    /// Reads a robots.txt for the crawler with this product token. Any bytes are a robots.txt; at most 500 KiB are read.
    pub fn parse(body: &[u8], product_token: &str) -> Self {
        Self {
            rules: robotxt::Robots::parse(&lines::tidy(body), product_token),
            bytes: body.len(),
        }
    }

    /// The rules of an origin that has none: its robots.txt is missing (RFC 9309, section 2.3.1.3).
    pub fn allow_all() -> Self {
        Self {
            rules: robotxt::Robots::allow_all(),
            bytes: 0,
        }
    }

    /// Says whether a URL may be fetched, and by which rule.
    pub fn verdict(&self, url: &Url) -> RobotsVerdict {
        let path = path_of(url);
        let rule = self.rules.matching_rule(&path).map(|rule| {
            let name = if rule.is_allow() { "Allow" } else { "Disallow" };
            format!("{name}: {}", rule.pattern())
        });
        RobotsVerdict {
            allowed: self.rules.is_allowed(&path),
            rule,
        }
    }

    /// Says whether a URL may be fetched.
    pub fn allows(&self, url: &Url) -> bool {
        self.rules.is_allowed(&path_of(url))
    }

    /// Returns the delay that the file asks for between requests.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.rules.crawl_delay()
    }

    /// Returns the sitemaps that the file names, whomever its groups are for.
    pub fn sitemaps(&self) -> &[Url] {
        self.rules.sitemaps()
    }
}

/// What the patterns of a file are compared with.
fn path_of(url: &Url) -> Cow<'_, str> {
    lines::escaped(&url[Position::BeforePath..Position::AfterQuery])
}

/// Returns the product token of a user agent: its leading letters, `-` and `_` (RFC 9309, section 2.2.1).
///
/// It is what the groups of a robots.txt are matched with; `None` when the user agent starts otherwise.
pub fn product_token(user_agent: &str) -> Option<&str> {
    let is_token = |c: char| c.is_ascii_alphabetic() || c == '-' || c == '_';
    let end = user_agent.find(|c| !is_token(c)).unwrap_or(user_agent.len());
    user_agent.get(..end).filter(|token| !token.is_empty())
}

/// What is known of an origin.
#[derive(Debug, Clone)]
pub(crate) enum Policy {
    /// Its robots.txt says.
    Rules(RobotsRules),
    /// Nothing may be fetched.
    Closed(NotFetched),
}

/// The policies of the origins whose robots.txt holds, by host; the youngest of them, if all would be too much.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    hosts: HashMap<HostKey, HashMap<Origin, Known>>,
    /// Origins in the order in which their policies came, each with the number of its policy.
    arrivals: VecDeque<(u64, Origin)>,
    next_number: u64,
    bytes: usize,
    /// With so many arrivals those that have expired are thrown away.
    sweep_at: usize,
}

#[derive(Debug)]
struct Known {
    policy: Policy,
    since: Time,
    until: Time,
    number: u64,
}

impl Policies {
    /// Takes note of a policy, and forgets what has expired. Returns the origins whose policies had to make room, though they
    /// hold: they must be asked for again before anything else of theirs is fetched.
    ///
    /// A look at all policies is paid for by as many insertions since the last one.
    pub(crate) fn insert(&mut self, origin: Origin, policy: Policy, until: Time, now: Time) -> Vec<Origin> {
        if self.arrivals.len() >= self.sweep_at {
            self.sweep(now);
        }
        self.next_number += 1;
        let number = self.next_number;
        self.forget(&origin);
        self.bytes += weight(&policy);
        self.arrivals.push_back((number, origin.clone()));
        let origins = self.hosts.entry(origin.host().clone()).or_default();
        let known = Known {
            policy,
            since: now,
            until,
            number,
        };
        origins.insert(origin, known);
        self.make_room(now)
    }

    /// What holds for an origin whose robots.txt could not be had, and for how long.
    pub(crate) fn without_robots(&self, origin: &Origin) -> (Policy, Duration) {
        let closed = Policy::Closed(NotFetched::RobotsUnreachable);
        let Some(known) = self.get(origin) else {
            return (closed, FIRST_CLOSING);
        };
        // It grows, so that in the end it is longer than any delay between two requests to the host.
        let span = known.until.since(known.since);
        let longer = span.saturating_mul(2).min(ROBOTS_LIFETIME);
        match &known.policy {
            Policy::Rules(rules) if span < ROBOTS_LIFETIME => (Policy::Rules(rules.clone()), longer),
            Policy::Rules(rules) => (Policy::Rules(rules.clone()), RULES_EXTENSION),
            Policy::Closed(NotFetched::RobotsUnreachable) => (closed, longer),
            Policy::Closed(_) => (closed, FIRST_CLOSING),
        }
    }

    fn make_room(&mut self, now: Time) -> Vec<Origin> {
        let mut evicted = Vec::new();
        while self.bytes > MAX_POLICY_BYTES && self.arrivals.len() > 1 {
            let Some((number, origin)) = self.arrivals.pop_front() else {
                break;
            };
            let Some(known) = self.get(&origin).filter(|known| known.number == number) else {
                continue;
            };
            let holds = known.until > now;
            self.forget(&origin);
            if holds {
                evicted.push(origin);
            }
        }
        evicted
    }

    fn sweep(&mut self, now: Time) {
        let arrivals = std::mem::take(&mut self.arrivals);
        for (number, origin) in arrivals {
            match self.get(&origin) {
                // Rules may hold on beyond their time, if their robots.txt cannot be had.
                Some(known) if known.number == number && known.until + grace(&known.policy) > now => {
                    self.arrivals.push_back((number, origin));
                }
                Some(known) if known.number == number => self.forget(&origin),
                _ => {}
            }
        }
        self.sweep_at = 2 * self.arrivals.len() + FEW_POLICIES;
    }

    fn get(&self, origin: &Origin) -> Option<&Known> {
        self.hosts.get(origin.host())?.get(origin)
    }

    fn forget(&mut self, origin: &Origin) {
        let Some(origins) = self.hosts.get_mut(origin.host()) else {
            return;
        };
        if let Some(known) = origins.remove(origin) {
            self.bytes -= weight(&known.policy);
        }
        if origins.is_empty() {
            self.hosts.remove(origin.host());
        }
    }

    /// Returns the longest delay that any origin of a host asks for: politeness is owed to the host.
    pub(crate) fn crawl_delay(&self, host: &HostKey) -> Option<Duration> {
        let rules = self.hosts.get(host)?.values().filter_map(|known| match &known.policy {
            Policy::Rules(rules) => rules.crawl_delay(),
            Policy::Closed(_) => None,
        });
        rules.max()
    }

    /// Says why a URL must not be fetched. An origin that was never asked about is one whose robots.txt is ignored.
    pub(crate) fn forbids(&self, url: &Url) -> Option<NotFetched> {
        let origin = Origin::of(url)?;
        match &self.get(&origin)?.policy {
            Policy::Rules(rules) => (!rules.allows(url)).then_some(NotFetched::RobotsForbid),
            Policy::Closed(why) => Some(*why),
        }
    }
}

/// How long a policy is kept beyond its time: as long as its origin may be asked for another in vain.
fn grace(policy: &Policy) -> Duration {
    match policy {
        Policy::Rules(_) => ROBOTS_LIFETIME,
        // A lease of the very instant in which it ends must not find nothing, which would allow everything.
        Policy::Closed(_) => Duration::from_secs(60),
    }
}

/// Bytes that a policy counts for.
fn weight(policy: &Policy) -> usize {
    let of_file = match policy {
        Policy::Rules(rules) => rules.bytes,
        Policy::Closed(_) => 0,
    };
    of_file + POLICY_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_token_is_what_a_user_agent_starts_with() {
        assert_eq!(
            product_token("sieve-crawler/0.1 (+https://example.com)"),
            Some("sieve-crawler")
        );
        assert_eq!(product_token("Mozilla"), Some("Mozilla"));
        assert_eq!(product_token("1bot"), None);
        assert_eq!(product_token(""), None);
    }

    fn origin(n: u64) -> Origin {
        Origin::of(&Url::parse(&format!("http://host{n}.example/")).unwrap()).unwrap()
    }

    fn forbidden(policies: &Policies, n: u64) -> bool {
        let page = origin(n).robots_url().join("/page").unwrap();
        policies.forbids(&page).is_some()
    }

    fn kept(policies: &Policies) -> usize {
        policies.hosts.values().map(HashMap::len).sum()
    }

    #[test]
    fn a_policy_is_kept_as_long_as_its_robots_txt_holds_and_no_longer() {
        let closed = || Policy::Closed(NotFetched::RobotsUnreachable);
        let mut policies = Policies::default();
        for n in 0..10_000 {
            let now = Time::from_millis(n * 1_000);
            let evicted = policies.insert(origin(n), closed(), now + Duration::from_secs(100), now);
            assert_eq!(evicted, []);
            assert!(forbidden(&policies, n.saturating_sub(99)), "{n}");
        }
        assert!(
            kept(&policies) < 1_000,
            "{} policies are kept, 100 of which hold",
            kept(&policies)
        );
    }

    #[test]
    fn large_robots_txt_files_of_many_hosts_do_not_fill_the_memory() {
        let large = || {
            let body = b"User-agent: *\nDisallow: /\n";
            Policy::Rules(RobotsRules {
                bytes: 500 * 1024,
                ..RobotsRules::parse(body, "bot")
            })
        };
        let now = Time::from_millis(0);
        let mut policies = Policies::default();
        let mut evicted = Vec::new();
        for n in 0..1_000 {
            // One of them is asked about again and again, and so always among the youngest.
            evicted.extend(policies.insert(origin(5_000), large(), now + ROBOTS_LIFETIME, now));
            evicted.extend(policies.insert(origin(n), large(), now + ROBOTS_LIFETIME, now));
            assert!(forbidden(&policies, n) && forbidden(&policies, 5_000));
        }
        assert!((100..=131).contains(&kept(&policies)), "{}", kept(&policies));
        assert_eq!(evicted.len() + kept(&policies), 1_001, "whoever is forgotten is told");
        assert_eq!(evicted[0], origin(0), "the oldest goes first");
    }
}
