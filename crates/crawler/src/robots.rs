//! robots.txt by RFC 9309: what an origin lets us fetch.

use std::collections::HashMap;
use std::time::Duration;

use frontier::{HostKey, NotFetched, Origin, Time};
use url::{Position, Url};

/// How long a robots.txt holds before it is asked for again (RFC 9309, section 2.4).
pub const ROBOTS_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Policies that are not worth a sweep.
const FEW_POLICIES: usize = 64;

/// How many redirects of a robots.txt are followed (RFC 9309, section 2.3.1.2).
pub const MAX_ROBOTS_HOPS: u8 = 5;

/// The rules of one robots.txt that apply to one crawler.
#[derive(Debug, Clone)]
pub struct RobotsRules(robotxt::Robots);

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
        Self(robotxt::Robots::parse(body, product_token))
    }

    /// The rules of an origin that has none: its robots.txt is missing (RFC 9309, section 2.3.1.3).
    pub fn allow_all() -> Self {
        Self(robotxt::Robots::allow_all())
    }

    /// Says whether a URL may be fetched, and by which rule.
    pub fn verdict(&self, url: &Url) -> RobotsVerdict {
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let rule = self.0.matching_rule(path).map(|rule| {
            let name = if rule.is_allow() { "Allow" } else { "Disallow" };
            format!("{name}: {}", rule.pattern())
        });
        RobotsVerdict {
            allowed: self.0.is_url_allowed(url),
            rule,
        }
    }

    /// Says whether a URL may be fetched.
    pub fn allows(&self, url: &Url) -> bool {
        self.0.is_url_allowed(url)
    }

    /// Returns the delay that the file asks for between requests.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.0.crawl_delay()
    }

    /// Returns the sitemaps that the file names, whomever its groups are for.
    pub fn sitemaps(&self) -> &[Url] {
        self.0.sitemaps()
    }
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

/// The policies of all origins whose robots.txt holds, by host.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    hosts: HashMap<HostKey, HashMap<Origin, Known>>,
    len: usize,
    /// With so many policies those that have expired are thrown away.
    sweep_at: usize,
}

#[derive(Debug)]
struct Known {
    policy: Policy,
    until: Time,
}

impl Policies {
    /// Takes note of a policy, and forgets what has expired.
    ///
    /// The frontier hands out nothing of an origin whose robots.txt has expired, so what is forgotten is not missed. A look
    /// at all is paid for by as many insertions since the last one.
    pub(crate) fn insert(&mut self, origin: Origin, policy: Policy, until: Time, now: Time) {
        if self.len >= self.sweep_at {
            self.hosts.retain(|_, origins| {
                origins.retain(|_, known| known.until > now);
                !origins.is_empty()
            });
            self.len = self.hosts.values().map(HashMap::len).sum();
            self.sweep_at = 2 * self.len + FEW_POLICIES;
        }
        let origins = self.hosts.entry(origin.host().clone()).or_default();
        let known = Known { policy, until };
        self.len += usize::from(origins.insert(origin, known).is_none());
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
        match &self.hosts.get(origin.host())?.get(&origin)?.policy {
            Policy::Rules(rules) => (!rules.allows(url)).then_some(NotFetched::RobotsForbid),
            Policy::Closed(why) => Some(*why),
        }
    }
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

    #[test]
    fn a_policy_is_kept_as_long_as_its_robots_txt_holds_and_no_longer() {
        let origin = |n: u64| Origin::of(&Url::parse(&format!("http://host{n}.example/")).unwrap()).unwrap();
        let page = |n: u64| origin(n).robots_url().join("/page").unwrap();
        let closed = || Policy::Closed(NotFetched::RobotsUnreachable);
        let mut policies = Policies::default();
        for n in 0..10_000 {
            let now = Time::from_millis(n * 1_000);
            policies.insert(origin(n), closed(), now + Duration::from_secs(100), now);
            assert!(policies.forbids(&page(n.saturating_sub(99))).is_some(), "{n}");
        }
        let kept: usize = policies.hosts.values().map(HashMap::len).sum();
        assert!(kept < 1_000, "{kept} policies are kept, 100 of which hold");
        assert_eq!(kept, policies.len);
    }
}
