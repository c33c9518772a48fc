//! Configurations can be compared and serialized, and the secrets of two frontiers differ.

use std::num::NonZeroU32;
use std::time::Duration;

use frontier::{
    Fate, FrontierConfig, LeaseId, LimitConfig, Outcome, PolitenessConfig, Reach, RetryPolicy, ScopeConfig,
    SeenSetConfig, Settlement, TrapConfig,
};

use crate::common::{START, at, commit, config, frontier, one, pages, with_pages};

#[test]
fn a_configuration_comes_back_from_json_as_it_was() {
    let changed = FrontierConfig {
        scope: ScopeConfig {
            reach: Reach::Prefix,
            exclude: vec!["/private/".to_owned()],
            ..ScopeConfig::default()
        },
        retries: RetryPolicy {
            max_host_downtime: Duration::from_secs(7),
            ..RetryPolicy::default()
        },
        seen_set: SeenSetConfig {
            capacity: 77,
            exact: true,
            ..SeenSetConfig::default()
        },
        politeness: PolitenessConfig {
            per_host: NonZeroU32::new(3).unwrap(),
            delay: Duration::from_millis(1_234),
            ..PolitenessConfig::default()
        },
        limits: LimitConfig {
            max_pages: Some(5),
            ..LimitConfig::default()
        },
        traps: TrapConfig {
            max_near_duplicates: None,
            ..TrapConfig::default()
        },
        ..FrontierConfig::default()
    };
    for config in [FrontierConfig::default(), changed] {
        let json = serde_json::to_string(&config).unwrap();
        let back: FrontierConfig = serde_json::from_str(&json).unwrap();
        assert_eq!(back, config);
    }
}

#[test]
fn by_default_the_seen_set_grows() {
    let config = FrontierConfig {
        scope: config().scope,
        seen_set: SeenSetConfig {
            capacity: 1_000,
            ..SeenSetConfig::default()
        },
        ..FrontierConfig::default()
    };
    assert_eq!(config.seen_set.on_saturation, sieve::OnSaturation::Grow);
    let mut frontier = frontier(config);
    frontier.offer(&pages("https://a.example/", 20_000), START).unwrap();
    let saturation = frontier.report().saturation;
    assert!(saturation.grown_capacity > Some(20_000), "{saturation}");
    assert!(saturation.lost < 200.0, "{saturation}");
}

#[test]
fn what_a_written_configuration_leaves_out_is_the_default() {
    let read: FrontierConfig = serde_json::from_str(r#"{"max_pages": 9, "retries": {"max_attempts": 2}}"#).unwrap();
    let expected = FrontierConfig {
        retries: RetryPolicy {
            max_attempts: NonZeroU32::new(2).unwrap(),
            ..RetryPolicy::default()
        },
        limits: LimitConfig {
            max_pages: Some(9),
            ..LimitConfig::default()
        },
        seen_set: SeenSetConfig {
            hash: read.seen_set.hash,
            ..SeenSetConfig::default()
        },
        ..FrontierConfig::default()
    };
    assert_eq!(read, expected);
}

#[test]
fn a_configuration_is_read_under_the_names_that_its_fields_had_before() {
    let config = FrontierConfig {
        scope: ScopeConfig {
            max_path_repeats: 2,
            max_redirects: 1,
            ..ScopeConfig::default()
        },
        retries: RetryPolicy {
            retry_wait: Duration::from_secs(7),
            max_retry_wait: Duration::from_secs(8),
            throttle_wait: Duration::from_secs(9),
            retry_jitter: 3,
            ..RetryPolicy::default()
        },
        ..FrontierConfig::default()
    };
    let mut json = serde_json::to_string(&config).unwrap();
    for (name, before) in [
        ("hash", "hashing"),
        ("max_path_repeats", "max_segment_repeats"),
        ("max_redirects", "max_hops"),
        ("retry_wait", "first_wait"),
        ("max_retry_wait", "longest_wait"),
        ("throttle_wait", "first_throttle"),
        ("retry_jitter", "jitter_percent"),
    ] {
        let renamed = json.replace(&format!("{name:?}"), &format!("{before:?}"));
        assert_ne!(renamed, json, "{name}");
        json = renamed;
    }
    assert_eq!(serde_json::from_str::<FrontierConfig>(&json).unwrap(), config);
}

#[test]
fn two_configurations_by_default_have_different_secrets() {
    let [first, second] = [FrontierConfig::default(), FrontierConfig::default()];
    assert_ne!(first.seen_set.hash, second.seen_set.hash);
    assert_ne!(first, second);
    let same = FrontierConfig {
        seen_set: SeenSetConfig {
            hash: first.seen_set.hash,
            ..second.seen_set
        },
        ..second
    };
    assert_eq!(first, same);
}

#[test]
fn a_secret_is_not_shown() {
    let config = FrontierConfig::default();
    let json = serde_json::to_value(&config).unwrap();
    let hashing = json["hash"].to_string();
    let secret: Vec<_> = hashing
        .split(|c: char| !c.is_ascii_digit())
        .filter(|part| part.len() > 9)
        .collect();
    assert!(!secret.is_empty(), "it is written down: {hashing}");
    let shown = format!("{config:?}");
    assert!(secret.iter().all(|part| !shown.contains(part)), "{shown}");
}

#[test]
fn lease_ids_are_unique_across_restarts_and_can_be_stored() {
    let mut before = with_pages(config(), &pages("https://a.example/", 3));
    let first = one(&mut before, START);
    let mut after = with_pages(config(), &pages("https://a.example/", 3));
    let second = one(&mut after, at(0.001));
    assert_ne!(first.id, second.id);
    assert_eq!(LeaseId::from_u64(first.id.as_u64()), first.id);
    let json = serde_json::to_string(&first.id).unwrap();
    assert_eq!(serde_json::from_str::<LeaseId>(&json).unwrap(), first.id);

    let late = Settlement::new(LeaseId::from_u64(first.id.as_u64()), Outcome::Done);
    assert_eq!(
        commit(&mut after, late, at(1)).fate,
        Fate::Stale,
        "it is of the frontier before"
    );
    let settled = Settlement::new(LeaseId::from_u64(second.id.as_u64()), Outcome::Done);
    assert_eq!(
        commit(&mut after, settled, at(1)).fate,
        Fate::Final,
        "whoever has written it down may settle it"
    );
}
