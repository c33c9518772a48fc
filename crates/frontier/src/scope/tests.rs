//! The scope: what is in reach, and the reasons for refusals.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::canonical::{Canonicalizer, Rules};

fn url(text: &str) -> CanonicalUrl {
    Canonicalizer::default().parse(text).unwrap()
}

fn found(text: &str, depth: u32) -> Link {
    Link::found(url(text), depth, "http://example.com/".into())
}

/// The link that a frontier makes of a redirect.
fn redirected(from: &Link, to: &str) -> Link {
    Link {
        url: url(to),
        hops: from.hops + 1,
        ..from.clone()
    }
}

fn scope(config: ScopeConfig, seeds: &[&str]) -> Scope {
    let mut scope = Scope::new(config).unwrap();
    for seed in seeds {
        scope.add_seed(&url(seed));
    }
    scope
}

fn reaching(reach: Reach, seeds: &[&str]) -> Scope {
    scope(
        ScopeConfig {
            reach,
            ..ScopeConfig::default()
        },
        seeds,
    )
}

fn anywhere(config: ScopeConfig) -> Scope {
    scope(
        ScopeConfig {
            reach: Reach::Any,
            ..config
        },
        &[],
    )
}

fn verdict(scope: &Scope, text: &str) -> &'static str {
    scope.judge(&found(text, 1)).map_or_else(Refusal::name, |()| "ok")
}

fn patterns(patterns: &[&str]) -> Vec<String> {
    patterns.iter().map(|&pattern| pattern.to_owned()).collect()
}

#[test]
fn every_reach_opens_what_the_data_says() {
    let data: Value = serde_json::from_str(include_str!("../../tests/data/scope.json")).unwrap();
    let mut wrong = Vec::new();
    for group in data.as_array().unwrap() {
        let reach: Reach = serde_json::from_value(group["reach"].clone()).unwrap();
        let seed = group["seed"].as_str().unwrap();
        let scope = reaching(reach, &[seed]);
        for case in group["verdicts"].as_array().unwrap() {
            let (link, expected) = (case[0].as_str().unwrap(), case[1].as_str().unwrap());
            let verdict = verdict(&scope, link);
            if verdict != expected {
                wrong.push(format!("{reach:?} of {seed}: {link} is {verdict}, not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn without_seeds_nothing_is_in_reach() {
    for reach in [Reach::Host, Reach::Site, Reach::Prefix] {
        assert_ne!(verdict(&reaching(reach, &[]), "http://example.com/"), "ok", "{reach:?}");
    }
}

#[test]
fn each_seed_opens_its_own_place() {
    for reach in [Reach::Host, Reach::Site, Reach::Prefix] {
        let scope = reaching(reach, &["http://a.example/", "http://b.example/"]);
        assert_eq!(verdict(&scope, "http://a.example/x"), "ok", "{reach:?}");
        assert_eq!(verdict(&scope, "http://b.example/x"), "ok", "{reach:?}");
        assert_ne!(verdict(&scope, "http://c.example/x"), "ok", "{reach:?}");
    }
}

#[test]
fn a_wider_directory_replaces_those_inside_in_any_order() {
    let seeds = [
        "http://a.example/x/y/",
        "http://a.example/x/",
        "http://a.example/x/z/w/",
        "http://a.example/v/",
    ];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 0, 3, 1]] {
        let scope = reaching(Reach::Prefix, &order.map(|at| seeds[at]));
        for inside in ["/x/", "/x/a", "/x/y/a", "/x/z/a", "/x/zz", "/v/a"] {
            assert_eq!(
                verdict(&scope, &format!("http://a.example{inside}")),
                "ok",
                "{inside} in order {order:?}"
            );
        }
        for outside in ["/", "/x", "/w/", "/xx/", "/y/", "/v"] {
            assert_eq!(
                verdict(&scope, &format!("http://a.example{outside}")),
                "outside_prefix",
                "{outside}"
            );
        }
    }
}

#[test]
fn the_directory_of_a_seed_follows_the_rules_of_canonical_urls() {
    let (drop_slash, lower_case) = (
        Rules {
            drop_trailing_slash: true,
            ..Rules::default()
        },
        Rules {
            lower_case_path: true,
            ..Rules::default()
        },
    );
    for (rules, seed, link, expected) in [
        (&drop_slash, "/docs/", "/docs/", Ok(())),
        (&drop_slash, "/docs/", "/docs/a", Ok(())),
        (&drop_slash, "/docs/", "/other", Err(Refusal::OutsidePrefix)),
        (&lower_case, "/Docs/", "/docs/A", Ok(())),
    ] {
        let canonicalizer = Canonicalizer::new(rules.clone());
        let url = |path: &str| canonicalizer.parse(&format!("http://a.example{path}")).unwrap();
        let mut scope = reaching(Reach::Prefix, &[]);
        scope.add_seed(&url(seed));
        assert_eq!(scope.judge(&Link::found(url(link), 1, "x".into())), expected, "{link}");
    }
}

#[test]
fn patterns_see_the_key_and_an_exclude_pattern_wins_over_an_include_pattern() {
    let scope = anywhere(ScopeConfig {
        include: patterns(&["/docs/", r"\.html$", "~"]),
        exclude: patterns(&["/docs/old/", r"\?", "/~user/"]),
        ..ScopeConfig::default()
    });
    for (path, expected) in [
        ("docs/a", "ok"),
        ("b.html", "ok"),
        ("b", "not_included"),
        ("docs/old/b.html", "excluded"),
        ("docs/?a", "excluded"),
        ("b?c", "excluded"),
        ("%7Euser/", "excluded"),
        ("%7Eother/", "ok"),
    ] {
        assert_eq!(verdict(&scope, &format!("http://a.example/{path}")), expected, "{path}");
    }
}

#[test]
fn patterns_widen_no_reach() {
    let config = ScopeConfig {
        include: patterns(&["."]),
        ..ScopeConfig::default()
    };
    let scope = scope(config, &["http://a.example/"]);
    assert_eq!(verdict(&scope, "http://b.example/"), "other_host");
}

#[test]
fn patterns_that_cannot_be_used_are_named_with_their_list_and_their_fault() {
    for (list, exclude, expected) in [
        (
            patterns(&["fine", "(open"]),
            true,
            ["the exclude pattern `(open`", "unclosed"],
        ),
        (
            patterns(&[r"(\w{200}){200}"]),
            false,
            ["the include pattern", "size limit"],
        ),
        (
            vec!["(?-u:[a-z]{1000})".to_owned(); 400],
            false,
            ["the include patterns", "too large together"],
        ),
    ] {
        let mut config = ScopeConfig::default();
        *(if exclude {
            &mut config.exclude
        } else {
            &mut config.include
        }) = list;
        let message = Scope::new(config).unwrap_err().to_string();
        assert!(expected.iter().all(|part| message.contains(part)), "{message}");
    }
}

#[test]
fn links_are_followed_up_to_the_maximum_depth() {
    let scope = anywhere(ScopeConfig {
        max_depth: Some(2),
        ..ScopeConfig::default()
    });
    assert_eq!(scope.judge(&found("http://a.example/", 2)), Ok(()));
    assert_eq!(scope.judge(&found("http://a.example/", 3)), Err(Refusal::TooDeep));
    let unlimited = anywhere(ScopeConfig::default());
    assert_eq!(unlimited.judge(&found("http://a.example/", u32::MAX)), Ok(()));
}

#[test]
fn only_what_is_in_reach_is_called_too_deep() {
    let config = ScopeConfig {
        max_depth: Some(0),
        ..ScopeConfig::default()
    };
    let scope = scope(config, &["http://a.example/"]);
    assert_eq!(verdict(&scope, "http://a.example/x"), "too_deep");
    assert_eq!(verdict(&scope, "http://b.example/x"), "other_host");
}

#[test]
fn a_url_longer_than_the_limit_is_refused() {
    let scope = anywhere(ScopeConfig::default());
    let of_length = |bytes: usize| format!("http://a.example/{}", "a".repeat(bytes - "http://a.example/".len()));
    assert_eq!(verdict(&scope, &of_length(2048)), "ok");
    assert_eq!(verdict(&scope, &of_length(2049)), "url_too_long");
    let seed = |bytes| Link::seed(url(&of_length(bytes)));
    assert_eq!(scope.judge(&seed(2048)), Ok(()));
    assert_eq!(scope.judge(&seed(2049)), Err(Refusal::UrlTooLong));
}

#[test]
fn length_is_checked_before_anything_more_expensive() {
    let config = ScopeConfig {
        exclude: patterns(&["."]),
        ..ScopeConfig::default()
    };
    let scope = scope(config, &["http://a.example/"]);
    let huge = format!("http://b.example/{}", "a/".repeat(500_000));
    assert_eq!(
        scope.judge(&Link {
            hops: 255,
            ..found(&huge, 1)
        }),
        Err(Refusal::UrlTooLong)
    );
}

#[test]
fn a_path_that_repeats_a_segment_too_often_is_a_trap() {
    for (most, path, is_trap) in [
        (5, "/a/a/a/a/a", false),
        (5, "/a/a/a/a/a/", false),
        (5, "/a/a/a/a/a/a", true),
        (5, "/a/b/a/b/a/b/a/b/a/b", false),
        (5, "/a/b/a/b/a/b/a/b/a/b/a", true),
        (5, "/a/%61/a/%61/a/%61", true),
        (5, "/1/2/3/4/5/6/7/8/9/10", false),
        (5, "/a/aa/aaa/aaaa/aaaaa/aaaaaa", false),
        (5, "///////x", true),
        (5, "/?a/a/a/a/a/a/a/a", false),
        (1, "/", false),
        (1, "/a/b", false),
        (1, "/a/a", true),
    ] {
        let scope = anywhere(ScopeConfig {
            max_path_repeats: most,
            ..ScopeConfig::default()
        });
        let expected = if is_trap { "repeated_segments" } else { "ok" };
        assert_eq!(verdict(&scope, &format!("http://a.example{path}")), expected, "{path}");
    }
}

#[test]
fn redirects_are_followed_up_to_the_limit_even_from_a_seed() {
    let scope = anywhere(ScopeConfig {
        max_redirects: 2,
        ..ScopeConfig::default()
    });
    for start in [Link::seed(url("http://a.example/")), found("http://a.example/", 1)] {
        let mut link = start;
        for hop in ["http://a.example/1", "http://a.example/2"] {
            link = redirected(&link, hop);
            assert_eq!(scope.judge(&link), Ok(()), "{hop}");
        }
        assert_eq!(
            scope.judge(&redirected(&link, "http://a.example/3")),
            Err(Refusal::TooManyHops)
        );
    }
}

#[test]
fn a_seed_is_crawled_whatever_its_reach_patterns_and_path() {
    let config = ScopeConfig {
        include: patterns(&["nothing"]),
        exclude: patterns(&["."]),
        max_depth: Some(0),
        ..ScopeConfig::default()
    };
    let scope = scope(config, &[]);
    assert_eq!(scope.judge(&Link::seed(url("http://a.example/a/a/a/a/a/a/a/"))), Ok(()));
}

#[test]
fn the_target_of_a_redirected_seed_needs_to_join_the_scope() {
    let mut scope = reaching(Reach::Host, &["http://a.example/"]);
    let target = redirected(&Link::seed(url("http://a.example/")), "http://www.a.example/");
    assert_eq!(scope.judge(&target), Err(Refusal::OtherHost));
    scope.add_seed(&target.url);
    assert_eq!(scope.judge(&target), Ok(()));
    assert_eq!(verdict(&scope, "http://www.a.example/x"), "ok");
}

#[test]
fn every_refusal_has_a_name_for_machines_and_a_reason_for_people_of_its_own() {
    // The error lists the names of all.
    let error = serde_json::from_str::<Refusal>("\"none\"").unwrap_err().to_string();
    let names: Vec<_> = error.split('`').skip(3).step_by(2).collect();
    assert!(names.len() > 15, "{error}");
    let mut reasons = HashSet::new();
    for name in &names {
        let refusal: Refusal = serde_json::from_value((*name).into()).unwrap();
        assert_eq!(refusal.name(), *name);
        assert!(reasons.insert(refusal.to_string()), "{refusal}");
    }
    assert_eq!(Refusal::OtherHost.to_string(), "outside the host");
}

proptest! {
    /// Against the naive way: try every seed's directory in turn.
    #[test]
    fn a_path_is_in_the_prefix_exactly_when_some_seed_s_directory_begins_it(
        seeds in prop::collection::vec("(/[ab-]{0,2}){1,4}", 0..8),
        links in prop::collection::vec("(/[ab-]{0,2}){1,5}", 16),
    ) {
        let mut scope = reaching(Reach::Prefix, &[]);
        for seed in &seeds {
            scope.add_seed(&url(&format!("http://a.example{seed}")));
        }
        for link in links {
            let begins = |seed: &String| link.starts_with(&seed[..=seed.rfind('/').unwrap()]);
            let verdict = verdict(&scope, &format!("http://a.example{link}"));
            prop_assert_eq!(verdict == "ok", seeds.iter().any(begins), "{}", link);
        }
    }

    /// Against the naive way: count each segment by looking at all others.
    #[test]
    fn a_path_repeats_itself_exactly_when_some_segment_occurs_too_often(
        segments in prop::collection::vec("[abc]{0,1}", 1..24), most in 1_usize..6,
    ) {
        let scope = anywhere(ScopeConfig { max_path_repeats: most, ..ScopeConfig::default() });
        let nothing_after_last_slash = segments.last().is_some_and(String::is_empty);
        let counted = &segments[..segments.len() - usize::from(nothing_after_last_slash)];
        let occurs = |one: &String| counted.iter().filter(|other| *other == one).count();
        let naive = counted.iter().any(|one| occurs(one) > most);
        let verdict = verdict(&scope, &format!("http://a.example/{}", segments.join("/")));
        prop_assert_eq!(verdict == "repeated_segments", naive);
    }
}
