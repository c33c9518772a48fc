//! Runs `RobotsTxt` against the table of robots.txt cases in `tests/data/robots.json`.
//!
//! The table follows RFC 9309 and Google's reference parser. Its port to Rust is checked here, too, and Protego by
//! `tests/data/robots_check.py`, which is run by hand.
//!
//! Where our parser deviates, the case has an `expected_failure` with the reason. Such a case fails the test as soon as
//! it passes, so that the list stays current.

use std::collections::HashSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;
use std::time::Duration;

use data_encoding::BASE64;
use frontier::RobotsRules as _;
use page::robots::RobotsTxt;
use robotstxt::DefaultMatcher;
use serde::{Deserialize, Deserializer};
use url::Url;

const REPEAT_MARK: &str = "@REPEAT@";
const MIN_CASES: usize = 80;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(rename = "about")]
    _about: Vec<String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    robots: Option<String>,
    robots_base64: Option<String>,
    repeat: Option<Repeat>,
    agent: String,
    #[serde(deserialize_with = "url")]
    url: Url,
    allowed: bool,
    /// The outer `None` means: not compared. The inner `None` means: there must be no delay.
    #[serde(default, deserialize_with = "present")]
    crawl_delay_ms: Option<Option<u64>>,
    sitemaps: Option<Vec<String>>,
    expected_failure: Option<String>,
    google_differs: Option<String>,
    #[serde(rename = "protego_differs")]
    _protego_differs: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeat {
    text: String,
    times: usize,
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    let text = String::deserialize(deserializer)?;
    Url::parse(&text).map_err(serde::de::Error::custom)
}

/// Distinguishes a field that is `null` from a missing one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl Case {
    fn body(&self) -> Vec<u8> {
        match (&self.robots, &self.robots_base64, &self.repeat) {
            (Some(text), None, None) => text.clone().into_bytes(),
            (Some(text), None, Some(repeat)) => text
                .replace(REPEAT_MARK, &repeat.text.repeat(repeat.times))
                .into_bytes(),
            (None, Some(encoded), None) => BASE64.decode(encoded.as_bytes()).unwrap(),
            _ => panic!("{}: one of robots and robots_base64 is needed", self.name),
        }
    }

    /// Lists the differences between `RobotsTxt` and the table, one line each.
    fn differences(&self) -> Vec<String> {
        let rules = RobotsTxt::parse(&self.body(), &self.agent);
        let mut found = Vec::new();

        if rules.allows_url(&self.url) != self.allowed {
            found.push(format!("allowed is {}", !self.allowed));
        }
        let delay = rules.crawl_delay();
        if let Some(expected) = self.crawl_delay_ms
            && delay != expected.map(Duration::from_millis)
        {
            found.push(format!("the delay is {delay:?}, not {expected:?} ms"));
        }
        let sitemaps = rules.sitemaps(&self.url);
        if let Some(expected) = &self.sitemaps
            && !sitemaps.iter().flatten().map(Url::as_str).eq(expected)
        {
            found.push(format!("the sitemaps are {sitemaps:?}"));
        }
        found
    }
}

/// Returns the verdict of Google's parser, in its port to Rust. It takes text, so the body is decoded lossily. `None`
/// if it panics.
fn google(case: &Case) -> Option<bool> {
    let text = String::from_utf8_lossy(&case.body()).into_owned();
    let (agent, url) = (case.agent.clone(), case.url.to_string());
    catch_unwind(move || DefaultMatcher::default().one_agent_allowed_by_robots(&text, &agent, &url)).ok()
}

fn table() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/robots.json");
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str::<Table>(&text).unwrap().cases
}

#[test]
fn every_case_has_the_verdict_of_the_table() {
    let cases = table();
    let mut failures = Vec::new();
    for case in &cases {
        let mut found = case.differences();
        match &case.expected_failure {
            Some(_) if found.is_empty() => found.push("passes now, so remove its expected_failure".to_owned()),
            Some(_) => found.clear(),
            None => {}
        }
        failures.extend(found.iter().map(|found| format!("{}: {found}", case.name)));
    }
    assert!(failures.is_empty(), "\n{}\n", failures.join("\n"));
    let names: HashSet<&String> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len(), "each name once");
    assert!(names.len() >= MIN_CASES);
}

#[test]
fn google_s_parser_agrees_except_where_the_table_gives_a_reason() {
    for case in table() {
        let is_known = case.google_differs.is_some();
        assert_eq!(
            google(&case) != Some(case.allowed),
            is_known,
            "{}: {:?}",
            case.name,
            google(&case)
        );
    }
}
