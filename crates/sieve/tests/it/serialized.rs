//! Serialized configurations are read back unchanged.

#![cfg(feature = "serde")]
use sieve::{Hashing, OnSaturation, Sieve};

#[test]
fn a_hash_comes_back_with_its_secret() {
    let cases = [
        (Hashing::default(), r#"{"murmur3":{"seed":0}}"#),
        (
            Hashing::Xxh3 { seed: u64::MAX },
            r#"{"xxh3":{"seed":18446744073709551615}}"#,
        ),
        (
            Hashing::Hardened { key: [7; 16] },
            r#"{"hardened":{"key":[7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7]}}"#,
        ),
    ];
    for (hashing, written) in cases {
        assert_eq!(serde_json::to_string(&hashing).unwrap(), written);
        assert_eq!(serde_json::from_str::<Hashing>(written).unwrap(), hashing);
    }
    for hashing in [Hashing::random(), Hashing::random_hardened()] {
        let written = serde_json::to_string(&hashing).unwrap();
        assert_eq!(serde_json::from_str::<Hashing>(&written).unwrap(), hashing);
    }
}

#[test]
fn a_key_of_another_length_is_refused() {
    let short = r#"{"hardened":{"key":[7,7,7]}}"#;
    assert!(serde_json::from_str::<Hashing>(short).is_err());
}

#[test]
fn a_policy_comes_back() {
    let cases = [
        (OnSaturation::Warn, r#""warn""#),
        (OnSaturation::Grow, r#""grow""#),
        (OnSaturation::Refuse, r#""refuse""#),
    ];
    for (policy, written) in cases {
        assert_eq!(serde_json::to_string(&policy).unwrap(), written);
        assert_eq!(serde_json::from_str::<OnSaturation>(written).unwrap(), policy);
    }
}

#[test]
fn counters_that_cannot_be_never_make_a_push_hang() {
    let mut to_visit: Sieve = Sieve::new(100).unwrap();
    to_visit.push("https://example.com/");
    let mut counters = serde_json::to_value(to_visit.counters()).unwrap();
    assert_eq!(counters["watch"]["check_at"], 1024);
    counters["watch"]["check_at"] = 0.into();
    let counters = serde_json::from_value(counters).unwrap();
    let mut again = to_visit.with_counters(counters);
    again.push("https://example.com/next");
    assert_eq!(again.len(), 2);
}

#[test]
fn the_numbers_of_a_measurement_lie_side_by_side() {
    let to_visit: Sieve = Sieve::new(100).unwrap();
    let measured = serde_json::to_value(to_visit.saturation()).unwrap();
    let keys: Vec<_> = measured.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "accepted",
        "bits",
        "capacity",
        "check",
        "estimate_noise",
        "estimated",
        "fill",
        "grown_capacity",
        "hashes",
        "layers",
        "level",
        "lost",
        "lost_by_difference",
        "lost_noise",
        "memory_bytes",
        "ones",
        "rate",
    ];
    assert_eq!(keys, expected);
}
