//! robots.txt (RFC 9309): which URLs of an origin may be fetched.

mod lines;

use std::borrow::Cow;
use std::time::Duration;

use frontier::RobotsRules;
use url::{Position, Url};

/// Bytes of memory that any rules take, besides their text, and as much for the rules in it.
const RULES_BYTES: usize = 256;

/// The rules of one robots.txt that apply to one crawler.
#[derive(Debug, Clone)]
pub struct RobotsTxt {
    rules: robotxt::Robots,
    /// The file as the rules were read from it: normalized.
    text: Box<[u8]>,
}

impl RobotsTxt {
    /// Reads the rules for the crawler with this user agent: its [`product_token`] selects the groups of the file. Never fails. Bytes
    /// beyond 500 KiB are ignored.
    ///
    /// ```
    /// use crawler::page::robots::RobotsTxt;
    ///
    /// let rules = RobotsTxt::parse(b"User-agent: my-bot\nDisallow: /private", "my-bot/1.0 (+https://a.example)");
    /// assert!(!rules.allows_url(&url::Url::parse("https://b.example/private")?));
    /// # Ok::<(), url::ParseError>(())
    /// ```
    pub fn parse(body: &[u8], user_agent: &str) -> Self {
        let token = selector(user_agent);
        Self::of_text(lines::normalize(body, token).into(), token)
    }

    /// Makes the rules again of the [`text`](RobotsRules::text) of earlier rules for the same user agent.
    pub fn of_text(text: Box<[u8]>, user_agent: &str) -> Self {
        Self {
            rules: robotxt::Robots::parse(&text, selector(user_agent)),
            text,
        }
    }

    /// Returns whether a URL may be fetched. [`RobotsRules::allows`] takes path and query instead.
    pub fn allows_url(&self, url: &Url) -> bool {
        self.rules.is_allowed(&path_of(url))
    }

    /// Returns the `Crawl-delay` for this crawler, if the file has one.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.rules.crawl_delay()
    }

    /// Returns the sitemaps that the file names. They belong to no group.
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
        2 * self.text.len() + RULES_BYTES
    }

    fn text(&self) -> Option<&[u8]> {
        Some(&self.text)
    }
}

/// Returns the part of a URL that patterns are matched with.
fn path_of(url: &Url) -> Cow<'_, str> {
    lines::escaped(&url[Position::BeforePath..Position::AfterQuery])
}

/// Returns what selects the groups: the product token. Without one, as with `*`, only the groups for all crawlers match.
fn selector(user_agent: &str) -> &str {
    let user_agent = user_agent.trim();
    product_token(user_agent).unwrap_or(user_agent)
}

/// Returns the product token of a user agent: its leading letters, `-` and `_` (RFC 9309, section 2.2.1).
///
/// It selects the groups of a robots.txt. `None` if the user agent starts with another character.
pub fn product_token(user_agent: &str) -> Option<&str> {
    let is_token = |c: char| c.is_ascii_alphabetic() || c == '-' || c == '_';
    let end = user_agent.find(|c| !is_token(c)).unwrap_or(user_agent.len());
    user_agent.get(..end).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_text_gives_the_same_rules_again() {
        let file = b"\xef\xbb\xbfUser-agent: other\nDisallow: /\n\nuser agent: My-Bot/2 (x)\nCrawl-delay: 2.5\nUser-agent: third\n\
            Disallow: /caf\xc3\xa9$x\nAllow: /a*b$\nDisallow: private\nno colon\nSitemap: https://a.example/map.xml\n";
        let rules = RobotsTxt::parse(file, "my-bot");
        let again = RobotsTxt::of_text(rules.text().unwrap().into(), "my-bot");
        assert_eq!(again.text(), rules.text());
        assert_eq!(again.crawl_delay(), Some(Duration::from_millis(2_500)));
        assert_eq!(again.sitemaps(), rules.sitemaps());
        for path in ["/", "/caf%C3%A9%24x", "/cafe", "/axb", "/axbc", "/private"] {
            assert_eq!(
                RobotsRules::allows(&again, path),
                RobotsRules::allows(&rules, path),
                "{path}"
            );
        }
        assert!(!RobotsRules::allows(&again, "/caf%C3%A9%24x"));
    }

    #[test]
    fn a_whole_user_agent_selects_the_group_of_its_product_token() {
        let file = b"User-agent: my-bot\nDisallow: /private\n\nUser-agent: *\nDisallow: /all\n";
        for agent in ["my-bot", "My-Bot/1.0", " my-bot/1.0 (+https://a.example/)", "my-bot;x"] {
            let rules = RobotsTxt::parse(file, agent);
            let again = RobotsTxt::of_text(rules.text().unwrap().into(), agent);
            for rules in [rules, again] {
                assert!(!RobotsRules::allows(&rules, "/private"), "{agent}");
                assert!(RobotsRules::allows(&rules, "/all"), "{agent}");
            }
        }
        for agent in ["*", "", "1bot", "other/2"] {
            let rules = RobotsTxt::parse(file, agent);
            assert!(!RobotsRules::allows(&rules, "/all"), "{agent}");
            assert!(RobotsRules::allows(&rules, "/private"), "{agent}");
        }
    }

    #[test]
    fn the_product_token_is_the_start_of_the_user_agent() {
        assert_eq!(
            product_token("sieve-crawler/0.1 (+https://example.com)"),
            Some("sieve-crawler")
        );
        assert_eq!(product_token("Mozilla"), Some("Mozilla"));
        assert_eq!(product_token("1bot"), None);
        assert_eq!(product_token(""), None);
    }
}
