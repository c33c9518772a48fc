//! Canonicalization: names, errors, and properties of generated URLs. The cases are in `canonical_suite.rs`.

use std::collections::HashMap;

use frontier::canonical::{Canonicalizer, Rules};
use frontier::url::{CanonicalUrl, HostKey, Origin};
use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use proptest::string::string_regex;
use proptest::test_runner::FileFailurePersistence;
use url::Url;

fn parse(text: &str) -> CanonicalUrl {
    Canonicalizer::default()
        .parse(text)
        .unwrap_or_else(|why| panic!("{text:?}: {why}"))
}

fn key(text: &str) -> String {
    parse(text).key().to_owned()
}

fn web_url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[test]
fn a_password_in_a_link_is_stored_nowhere() {
    let rules = Rules {
        keep_fragment: true,
        ..Rules::default()
    };
    let url = Canonicalizer::new(rules)
        .parse("https://alice:s3cret@example.com/%41#x")
        .unwrap();
    let everything = format!(
        "{url:?} {url} {:?} {:?} {}",
        url.origin(),
        url.host(),
        url.origin().robots_url()
    );
    assert!(
        !everything.contains("s3cret") && !everything.contains("alice"),
        "{everything}"
    );
}

#[test]
fn origins_of_urls_with_credentials_show_none_and_are_equal_to_those_without() {
    let with = Origin::of(&web_url("https://alice:s3cret@example.com/")).unwrap();
    assert_eq!(with, Origin::of(&web_url("https://example.com/a?b#c")).unwrap());
    assert_eq!(with.robots_url().as_str(), "https://example.com/robots.txt");
}

#[test]
fn an_error_says_how_to_fix_it() {
    let refuse = |text: &str| Canonicalizer::default().parse(text).unwrap_err().to_string();
    for text in ["example.com", "example.com:8080/", "http://./"] {
        let message = refuse(text);
        assert!(message.contains("https://example.com/page"), "{message}");
    }
    assert!(refuse("localhost:8080/").contains("`localhost:`"));
}

#[test]
fn an_error_about_a_scheme_stays_short_however_long_the_scheme_is() {
    let message = Canonicalizer::default()
        .parse(&format!("{}:x", "a".repeat(1 << 20)))
        .unwrap_err()
        .to_string();
    assert!(message.len() < 300, "{} bytes", message.len());
}

#[test]
fn rules_with_a_misspelt_name_are_an_error() {
    assert!(serde_json::from_str::<Rules>(r#"{"sort_querry": true}"#).is_err());
}

#[test]
fn ports_schemes_and_root_dots_do_not_change_the_host_we_owe_politeness() {
    let spellings = [
        "http://example.com/",
        "https://EXAMPLE.com:8443/a",
        "http://u@example.com./",
        "http://example.com../",
    ];
    for spelling in spellings {
        assert_eq!(
            HostKey::of(&web_url(spelling)).unwrap().as_str(),
            "example.com",
            "{spelling}"
        );
        assert_eq!(parse(spelling).host().to_string(), "example.com", "{spelling}");
    }
    assert_eq!(
        parse("http://[2001:DB8::0:1]:8080/").host().to_string(),
        "[2001:db8::1]"
    );
}

#[test]
fn urls_of_other_schemes_have_neither_host_nor_origin() {
    for other in [
        "ftp://example.com/",
        "foo://EXAMPLE/",
        "mailto:a@example.com",
        "http://./",
    ] {
        assert_eq!(HostKey::of(&web_url(other)), None, "{other}");
        assert_eq!(Origin::of(&web_url(other)), None, "{other}");
    }
}

#[test]
fn schemes_and_ports_have_their_own_robots_txt_and_paths_have_not() {
    let origin = |text: &str| parse(text).origin();
    assert_eq!(origin("http://example.com/a/b?c"), origin("http://example.com:80/"));
    assert_ne!(origin("http://example.com/"), origin("https://example.com/"));
    assert_ne!(origin("http://example.com/"), origin("http://example.com:8080/"));
    let origin = origin("http://example.com:8080/a/b?c");
    assert_eq!(origin.to_string(), "http://example.com:8080");
    assert_eq!(origin.robots_url().as_str(), "http://example.com:8080/robots.txt");
    assert_eq!(origin.host().as_str(), "example.com");
    assert_eq!(
        parse("https://example.com:443/").origin().to_string(),
        "https://example.com"
    );
}

#[test]
fn names_are_padded_in_tables_and_strings_in_json() {
    let url = parse("https://example.com/");
    assert_eq!(
        format!("{:>13}|{:<20}|", url.host(), url.origin()),
        "  example.com|https://example.com |"
    );
    assert_eq!(
        serde_json::to_string(&(url.host(), url.origin())).unwrap(),
        r#"["example.com","https://example.com"]"#
    );
}

#[test]
fn the_path_of_the_key_ends_where_the_query_begins() {
    for (text, path) in [
        ("http://example.com", "/"),
        ("http://example.com/a/b?c/d", "/a/b"),
        ("http://example.com/%41?c/d", "/A"),
        ("http://[::1]:8080/%41", "/A"),
        ("http://example.com/%41?a://b/c", "/A"),
    ] {
        assert_eq!(parse(text).key_path(), path, "{text}");
    }
    let rules = Rules {
        keep_fragment: true,
        ..Rules::default()
    };
    assert_eq!(
        Canonicalizer::new(rules)
            .parse("http://example.com/%41#/b?c")
            .unwrap()
            .key_path(),
        "/A"
    );
}

#[test]
fn the_key_is_stored_only_where_it_differs_from_the_url() {
    assert_eq!(parse("http://example.com/a%2Fb#c").into_parts().1, None);
    assert_eq!(
        parse("http://example.com/%61").into_parts().1.as_deref(),
        Some("http://example.com/a")
    );
}

/// Every path of up to six of these characters: all ways in which escapes, halves of escapes and
/// dots can meet.
#[test]
fn urls_of_different_path_bytes_never_share_a_key() {
    const ALPHABET: [char; 5] = ['%', '2', '3', 'e', '.'];
    let mut keys: HashMap<String, (String, Vec<u8>)> = HashMap::new();
    let mut paths = vec![String::new()];
    let mut shared = 0;
    for _ in 0..6 {
        paths = paths
            .iter()
            .flat_map(|path| ALPHABET.map(|next| format!("{path}{next}")))
            .collect();
        for path in &paths {
            let url = parse(&format!("http://a.example/{path}"));
            let sent = url.url().path();
            let bytes: Vec<u8> = percent_decode_str(sent).collect();
            let (first, expected) = keys
                .entry(url.key().to_owned())
                .or_insert_with(|| (sent.to_owned(), bytes.clone()));
            assert_eq!(*expected, bytes, "{first} and {sent} share {}", url.key());
            shared += usize::from(first != sent);
        }
    }
    assert!(
        shared > 500,
        "only {shared} URLs shared a key with another spelling: nothing was tried"
    );
}

/// A piece of a path that means one thing, however it is spelt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// Means the same plain and escaped.
    Unreserved(u8),
    /// Plain: has its special meaning.
    Reserved(u8),
    /// Escaped: a byte like any other.
    Escaped(u8),
}

impl Piece {
    fn spell(self, escape: bool, upper: bool) -> String {
        let (byte, escape) = match self {
            Self::Unreserved(byte) => (byte, escape),
            Self::Reserved(byte) => (byte, false),
            Self::Escaped(byte) => (byte, true),
        };
        match (escape, upper) {
            (false, _) => char::from(byte).to_string(),
            (true, true) => format!("%{byte:02X}"),
            (true, false) => format!("%{byte:02x}"),
        }
    }
}

const RESERVED: &[u8] = b"/:@!$&'()*+,;=[]|";

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        // No dot: two in a row would be another path.
        prop::sample::select(b"abfzABFZ0149-_~".as_slice()).prop_map(Piece::Unreserved),
        prop::sample::select(RESERVED).prop_map(Piece::Reserved),
        any::<u8>()
            .prop_filter("unreserved", |byte| !byte.is_ascii_alphanumeric()
                && !b"-._~".contains(byte))
            .prop_map(Piece::Escaped),
    ]
}

fn spell(pieces: &[Piece], choices: &[(bool, bool)]) -> String {
    let spelt = pieces
        .iter()
        .zip(choices)
        .map(|(piece, (escape, upper))| piece.spell(*escape, *upper));
    format!("http://a.example/{}", spelt.collect::<String>())
}

fn choices() -> impl Strategy<Value = Vec<(bool, bool)>> {
    prop::collection::vec(any::<(bool, bool)>(), 12)
}

fn rules() -> impl Strategy<Value = Rules> {
    let patterns = prop::collection::vec(prop::sample::select(["*", "a*", "a", "b", "%2A", ""].as_slice()), 0..2);
    (any::<[bool; 7]>(), patterns).prop_map(|(on, patterns)| Rules {
        drop_empty_query: on[0],
        sort_query: on[1],
        drop_query_params: patterns.into_iter().map(str::to_owned).collect(),
        drop_trailing_slash: on[2],
        ignore_scheme: on[3],
        ignore_www: on[4],
        keep_fragment: on[5],
        lower_case_path: on[6],
    })
}

/// Texts that are mostly URLs, thick with what the rules look at.
fn url_text() -> impl Strategy<Value = String> {
    let host = r"(w{2,3}\.){0,3}[a-z0-9.]{1,6}(:(80|443|8080))?";
    let rest = r"[/\\][a-cA-C0-9%.?&=+/#~ü\\ ^|]{0,24}";
    prop_oneof![
        4 => string_regex(&format!("https?://{host}({rest})?")).unwrap(),
        1 => r"[a-z]{0,5}:?/{0,3}[\PC]{0,30}",
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4096,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_key_is_a_url_and_its_own_key(text in url_text(), rules in rules()) {
        let canonicalizer = Canonicalizer::new(rules);
        if let Ok(url) = canonicalizer.parse(&text) {
            let again = canonicalizer.parse(url.key());
            prop_assert_eq!(again.as_ref().map(CanonicalUrl::key), Ok(url.key()));
            let again = again.unwrap();
            prop_assert_eq!(again.key_path(), url.key_path());
            let fetched = canonicalizer.parse(url.url().as_str());
            prop_assert_eq!(fetched, Ok(url));
        }
    }

    #[test]
    fn two_spellings_of_one_path_share_a_key(
        pieces in prop::collection::vec(piece(), 0..12), one in choices(), other in choices(),
    ) {
        prop_assert_eq!(key(&spell(&pieces, &one)), key(&spell(&pieces, &other)));
    }

    #[test]
    fn changing_one_piece_of_a_path_changes_the_key(
        pieces in prop::collection::vec(piece(), 1..12),
        at in any::<prop::sample::Index>(),
        new in piece(),
        one in choices(),
        other in choices(),
    ) {
        let at = at.index(pieces.len());
        prop_assume!(pieces[at] != new);
        let mut changed = pieces.clone();
        changed[at] = new;
        prop_assert_ne!(key(&spell(&pieces, &one)), key(&spell(&changed, &other)));
    }

    #[test]
    fn escaping_a_reserved_character_changes_the_key(
        pieces in prop::collection::vec(piece(), 0..12), at in any::<prop::sample::Index>(),
        reserved in prop::sample::select(RESERVED), same in choices(),
    ) {
        let at = at.index(pieces.len() + 1).min(11);
        let (mut plain, mut escaped) = (pieces.clone(), pieces);
        plain.insert(at, Piece::Reserved(reserved));
        escaped.insert(at, Piece::Escaped(reserved));
        prop_assert_ne!(key(&spell(&plain, &same)), key(&spell(&escaped, &same)));
    }
}
