//! robots.txt (RFC 9309): which URLs of an origin may be fetched.

mod lines;

use std::time::Duration;

use frontier::RobotsRules;
use frontier::reference::resolve;
use url::{Position, Url};

/// The spellings of the name of a sitemap's line.
const SITEMAP: [&str; 3] = ["sitemap", "site-map", "site map"];

/// Bytes of memory that any rules take, besides their text, and as much for the rules in it.
const RULES_BYTES: usize = 256;

/// The rules of one robots.txt that apply to one crawler, with the [`text`](RobotsRules::text) that a durable frontier stores.
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
    /// use page::robots::RobotsTxt;
    ///
    /// let rules = RobotsTxt::parse(b"User-agent: my-bot\nDisallow: /private", "my-bot/1.0 (+https://a.example)");
    /// assert!(!rules.allows_url(&url::Url::parse("https://b.example/private")?));
    /// # Ok::<(), url::ParseError>(())
    /// ```
    pub fn parse(body: &[u8], user_agent: &str) -> Self {
        let token = selector(user_agent);
        Self::of_text(lines::normalize(body, token).into(), token)
    }

    /// Makes the rules again of the [`text`](RobotsRules::text) of earlier rules for the same user agent, or its product token.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use frontier::ParseRules; // for `Frontier::open`
    /// use page::robots::RobotsTxt;
    ///
    /// const AGENT: &str = "my-bot/1.0";
    /// let parse: ParseRules = Arc::new(|text| Arc::new(RobotsTxt::of_text(text.into(), AGENT)));
    /// assert!(!parse(b"User-agent: my-bot\nDisallow: /private").allows("/private"));
    /// ```
    pub fn of_text(text: Box<[u8]>, user_agent: &str) -> Self {
        Self {
            rules: robotxt::Robots::parse(&text, selector(user_agent)),
            text,
        }
    }

    /// Returns whether a URL may be fetched. [`RobotsRules::allows`] takes path and query instead.
    pub fn allows_url(&self, url: &Url) -> bool {
        self.allows(&url[Position::BeforePath..Position::AfterQuery])
    }

    /// Returns the sitemaps that the file at `url` names, or what it says instead of a URL. They belong to no group.
    ///
    /// The protocol asks for whole URLs. Others are resolved as links are.
    pub fn sitemaps(&self, url: &Url) -> Vec<Result<Url, String>> {
        let lines = self.text.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
        let named = lines.filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let is_sitemap = SITEMAP.iter().any(|known| name.eq_ignore_ascii_case(known));
            (is_sitemap && !value.is_empty()).then(|| resolve(Some(url), value, None).map_err(|_| value.to_owned()))
        });
        named.collect()
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

/// What selects the groups without a product token: only those for all crawlers match.
const ANY: &str = "*";

/// Words in the user agents of browsers, which crawlers put before their own name.
const OF_BROWSERS: &str = "Mozilla compatible AppleWebKit KHTML like Gecko Version Mobile Safari Chrome \
    HeadlessChrome Chromium CriOS Firefox FxiOS Edge Edg EdgA OPR Opera Presto Trident MSIE Build Linux";

fn selector(user_agent: &str) -> &str {
    product_token(user_agent).unwrap_or(ANY)
}

/// Returns the product token of a user agent: letters, `-` and `_` (RFC 9309, section 2.2.1). It selects the groups of a robots.txt.
///
/// It is what the user agent starts with, as in `bot/1.0 (+https://a.example/)`. In one that starts as those of browsers do, it is what
/// follows `compatible;`, or the first other product, or what stands before a link: `Mozilla/5.0 (compatible; bot/1.0; +https://a.example/)`.
/// `None` if there is no such name.
pub fn product_token(user_agent: &str) -> Option<&str> {
    let user_agent = user_agent.trim();
    if let Some(whole) = leading_name(user_agent).filter(|name| *name == user_agent) {
        return Some(whole);
    }
    let own =
        |text| leading_name(text).filter(|name| !OF_BROWSERS.split(' ').any(|other| name.eq_ignore_ascii_case(other)));
    let parts = || user_agent.split(['(', ')', ';', ',']).map(str::trim);
    let mut pairs = parts().zip(parts().skip(1));
    let compatible = |(mark, name): (&str, _)| mark.eq_ignore_ascii_case("compatible").then(|| own(name))?;
    let product = |word| own(word).filter(|name| word[name.len()..].starts_with('/'));
    let linked = |(name, link): (_, &str)| own(name).filter(|own| *own == name && link.contains("://"));
    own(user_agent)
        .or_else(|| pairs.clone().find_map(compatible))
        .or_else(|| user_agent.split([' ', '(', ')', ';', ',']).find_map(product))
        .or_else(|| pairs.find_map(linked))
}

/// The letters, `-` and `_` that a text starts with, unless it is a link or a mail address.
fn leading_name(text: &str) -> Option<&str> {
    let is_token = |c: char| c.is_ascii_alphabetic() || c == '-' || c == '_';
    let (name, rest) = text.split_at(text.find(|c| !is_token(c)).unwrap_or(text.len()));
    (!name.is_empty() && name != "www" && !rest.starts_with([':', '@'])).then_some(name)
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
        let at = Url::parse("https://b.example/robots.txt").unwrap();
        assert_eq!(
            again.sitemaps(&at),
            [Ok(Url::parse("https://a.example/map.xml").unwrap())]
        );
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
    fn the_product_token_is_found_in_the_usual_forms_of_a_user_agent() {
        let found = [
            ("sieve-crawler/0.1 (+https://example.com)", "sieve-crawler"),
            ("Mozilla", "Mozilla"),
            ("Mozilla/5.0 (compatible; mybot/1.0; +https://a.example/bot)", "mybot"),
            ("Mozilla/5.0 (compatible;my-bot;+https://a.example)", "my-bot"),
            ("Mozilla/5.0 (compatible; my_bot +https://a.example)", "my_bot"),
            ("mozilla/5.0 (Compatible; mybot 2; me@a.example)", "mybot"),
            (
                "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; mybot/2.0; +http://a.example/b) Chrome/103.0 Safari/537.36",
                "mybot",
            ),
            (
                "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/99 Mobile \
                 Safari/537.36 (compatible; mybot/2.1; +http://a.example/)",
                "mybot",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) Version/13.1 Safari/605.1 (mybot/0.1; +http://a.example)",
                "mybot",
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Gecko/20100101 Firefox/115.0 mybot/1.0",
                "mybot",
            ),
            ("Mozilla/5.0 (mybot; +https://a.example/)", "mybot"),
            ("(mybot/1.0)", "mybot"),
        ];
        for (user_agent, token) in found {
            assert_eq!(product_token(user_agent), Some(token), "{user_agent}");
        }
        for user_agent in [
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36",
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:120.0) Gecko/20100101 Firefox/120.0",
            "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)",
            "Mozilla/5.0 (compatible; +https://a.example/bot/1.0; me@a.example)",
            "1bot",
            "",
        ] {
            assert_eq!(product_token(user_agent), None, "{user_agent}");
        }
    }
}
