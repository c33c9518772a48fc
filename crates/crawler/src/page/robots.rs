//! robots.txt by RFC 9309: what an origin lets us fetch.

mod lines;

use std::borrow::Cow;
use std::time::Duration;

use frontier::RobotsRules;
use url::{Position, Url};

/// Bytes that rules take whatever their file says.
const RULES_BYTES: usize = 256;

/// The rules of one robots.txt that apply to one crawler.
#[derive(Debug, Clone)]
pub struct RobotsTxt {
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

impl RobotsTxt {
    /// Reads a robots.txt for the crawler with this product token. Any bytes are a robots.txt; at most 500 KiB are read.
    pub fn parse(body: &[u8], product_token: &str) -> Self {
        Self {
            rules: robotxt::Robots::parse(&lines::tidy(body, product_token), product_token),
            bytes: body.len(),
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

impl RobotsRules for RobotsTxt {
    fn allows(&self, path: &str) -> bool {
        self.rules.is_allowed(&lines::escaped(path))
    }

    fn crawl_delay(&self) -> Option<Duration> {
        self.rules.crawl_delay()
    }

    fn bytes(&self) -> usize {
        self.bytes + RULES_BYTES
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
}
