//! The canonicalization suite: the key and the URL for each case of the URL standard.
//!
//! `data/canonical/oracle_check.py` checks the same data with other implementations of the standard, including a browser. A case with
//! "fails" is a known failure, with its reason. When it passes, the note must be removed.

use std::collections::{BTreeSet, HashMap};

use frontier::canonical::{Canonicalizer, NotCrawlable, Rules};
use frontier::url::CanonicalUrl;
use serde_json::Value;

fn data() -> Value {
    serde_json::from_str(include_str!("../data/canonical/cases.json")).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// A text of an entry; `PAD` in it stands for as many letters as the entry says.
fn text(entry: &Value, key: &str) -> Option<String> {
    let pad = entry["pad"].as_u64().map_or(0, |pad| usize::try_from(pad).unwrap());
    Some(entry[key].as_str()?.replace("PAD", &"x".repeat(pad)))
}

/// The canonicalizer that an entry asks for.
fn canonicalizer(entry: &Value) -> Canonicalizer {
    let rules = entry
        .get("rules")
        .map_or_else(Rules::default, |rules| serde_json::from_value(rules.clone()).unwrap());
    Canonicalizer::new(rules)
}

fn parse(case: &Value) -> Result<CanonicalUrl, NotCrawlable> {
    canonicalizer(case).parse(&text(case, "in").unwrap())
}

/// The data's name for a reason.
fn reason(why: &NotCrawlable) -> &'static str {
    match why {
        NotCrawlable::NotAUrl(_) => "not_a_url",
        NotCrawlable::Scheme { .. } => "scheme",
        NotCrawlable::NoHost => "no_host",
    }
}

/// What a case gets wrong, in words; nothing if it holds.
fn complaint(case: &Value) -> Option<String> {
    let expected = (text(case, "key"), text(case, "why"));
    let (found, url) = match parse(case) {
        Ok(url) => ((Some(url.key().to_owned()), None), Some(url.url().to_string())),
        Err(why) => ((None, Some(reason(&why).to_owned())), None),
    };
    let url_as_said = text(case, "url").is_none_or(|expected| url.as_ref() == Some(&expected));
    (found != expected || !url_as_said).then(|| format!("{case}\n  found {found:?}, {url:?}"))
}

/// All cases, those that are refused among them.
fn cases(data: &Value) -> impl Iterator<Item = &Value> {
    list(&data["cases"]).iter().chain(list(&data["refused"]))
}

#[test]
fn every_case_has_the_key_and_the_url_or_the_refusal_that_it_says() {
    let data = data();
    assert!(cases(&data).count() > 700);
    let complaints: Vec<String> = cases(&data)
        .filter_map(|case| match (complaint(case), case.get("fails")) {
            (Some(_), Some(_)) | (None, None) => None,
            (Some(complaint), None) => Some(complaint),
            (None, Some(_)) => Some(format!("{case}\n  is right by now: take the note away")),
        })
        .collect();
    assert!(
        complaints.is_empty(),
        "{}:\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}

#[test]
fn the_canonical_form_of_a_canonical_form_is_itself() {
    for case in list(&data()["cases"]) {
        let canonicalizer = canonicalizer(case);
        let url = parse(case).unwrap();
        let again = canonicalizer.parse(url.key()).unwrap();
        assert_eq!(again.key(), url.key(), "{case}");
        assert_eq!(canonicalizer.parse(url.url().as_str()).unwrap(), url, "{case}");
    }
}

#[test]
fn urls_that_a_server_may_tell_apart_keep_two_keys() {
    let canonicalizer = Canonicalizer::default();
    for pair in list(&data()["distinct"]) {
        let key = |at: usize| canonicalizer.parse(pair[at].as_str().unwrap()).unwrap();
        assert_ne!(key(0).key(), key(1).key(), "{pair}");
    }
}

#[test]
fn spellings_of_one_url_share_a_key() {
    for group in list(&data()["same"]) {
        let canonicalizer = canonicalizer(group);
        let keys: BTreeSet<String> = list(&group["urls"])
            .iter()
            .map(|url| canonicalizer.parse(url.as_str().unwrap()).unwrap().key().to_owned())
            .collect();
        assert_eq!(keys.len(), 1, "{keys:?}");
    }
}

/// What a server can tell apart in a URL as it is sent: characters and escaped bytes. Only what RFC 3986, section 2.3,
/// calls unreserved is the same escaped and plain.
fn meaning(url: &str) -> Vec<(bool, u8)> {
    let bytes = url.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let digits = url
            .get(at + 1..at + 3)
            .filter(|digits| bytes[at] == b'%' && !digits.starts_with('+'));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
                found.push((!unreserved, byte));
                at += 3;
            }
            None => {
                found.push((false, bytes[at]));
                at += 1;
            }
        }
    }
    found
}

#[test]
fn without_rules_urls_that_share_a_key_are_equivalent() {
    let data = data();
    let canonicalizer = Canonicalizer::default();
    let pairs = list(&data["distinct"]).iter().flat_map(list);
    let groups = list(&data["same"]).iter().flat_map(|group| list(&group["urls"]));
    let texts = pairs
        .chain(groups)
        .map(|text| text.as_str().unwrap().to_owned())
        .chain(cases(&data).map(|case| text(case, "in").unwrap()));
    let mut first: HashMap<String, String> = HashMap::new();
    let mut shared = 0;
    for url in texts.filter_map(|text| canonicalizer.parse(&text).ok()) {
        let sent = url.url().to_string();
        let other = first.entry(url.key().to_owned()).or_insert_with(|| sent.clone());
        shared += usize::from(*other != sent);
        assert_eq!(meaning(other), meaning(&sent), "{other} and {sent} share {}", url.key());
    }
    assert!(
        shared > 20,
        "only {shared} URLs shared a key with another spelling: nothing was tried"
    );
}
