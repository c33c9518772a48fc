//! A seen-set that grows: its layers become one, which has all keys at the stated rate, over kills and at the bound of its memory.

use sieve::{Filter as _, OnSaturation};

use super::super::sizes::Sizes;
use super::common::{START, config, parse, url};
use super::stores::{Recorder, SMALL};
use crate::config::FrontierConfig;
use crate::link::Link;
use crate::rules::ParseRules;
use crate::{Frontier, Opened, Verdict};
use std::sync::Arc;

const RATE: f64 = 0.02;

/// Slices of some hundred digests, and checkpoints that are rare.
const SIZES: Sizes = Sizes {
    min_journal_bytes: 100_000,
    part_bytes: 10_000,
    parts_at_once: 1,
    keys: super::super::keys::KeySizes {
        digests_of_part: 50,
        fresh_digests: 500,
        parts_at_once: 4,
    },
    ..super::stores::SMALL
};

fn growing() -> FrontierConfig {
    FrontierConfig {
        exact: false,
        capacity: 700,
        false_positive_rate: RATE,
        on_saturation: OnSaturation::Grow,
        max_queued: u64::MAX,
        ..config()
    }
}

fn open(recorder: &Recorder, config: FrontierConfig, sizes: Sizes) -> Frontier {
    let parse: ParseRules = Arc::new(parse);
    let opened: Opened = super::super::open::open(Box::new(recorder.clone()), config, START, &parse, sizes).unwrap();
    opened.frontier
}

fn link(number: usize) -> Link {
    Link::found(
        url(&format!("http://site.example/{number}")),
        1,
        "http://site.example/".into(),
    )
}

/// Offers new links in rows, and returns the numbers of those that were accepted.
fn offer(frontier: &mut Frontier, numbers: std::ops::Range<usize>) -> Vec<usize> {
    let mut accepted = Vec::new();
    for row in numbers.collect::<Vec<_>>().chunks(40) {
        let links: Vec<_> = row.iter().copied().map(link).collect();
        let verdicts = frontier.offer(&links, START).unwrap();
        let new = row
            .iter()
            .zip(&verdicts)
            .filter(|(_, verdict)| **verdict == Verdict::Queued);
        accepted.extend(new.map(|(number, _)| *number));
        frontier.persist(b"", START).unwrap();
    }
    accepted
}

fn knows(frontier: &Frontier, number: usize) -> bool {
    frontier.sieve.contains(format!("http://site.example/{number}"))
}

#[test]
fn merged_layers_have_all_keys_at_the_stated_rate_and_all_counts() {
    let recorder = Recorder::default();
    let mut frontier = open(&recorder, growing(), SIZES);
    let (mut accepted, mut merges, mut offered) = (Vec::new(), 0, 0);
    while offered < 24_000 {
        let before = frontier.report().saturation;
        accepted.extend(offer(&mut frontier, offered..offered + 400));
        offered += 400;
        let seen = frontier.report().saturation;
        assert!(seen.layers <= 4, "{seen:?}");
        if seen.layers < before.layers {
            merges += 1;
            assert_eq!(seen.capacity, Some(700), "levels are still those of the first capacity");
            assert!(seen.grown_capacity.unwrap() as f64 > seen.estimated);
        }
        if offered % 5_200 == 0 {
            drop(frontier);
            frontier = open(&recorder, growing(), SIZES);
            let again = frontier.report().saturation;
            assert_eq!(
                (again.bits, again.ones, again.layers),
                (seen.bits, seen.ones, seen.layers)
            );
            // The journal has the new links only, so the rate is not computed anew at the same ones.
            assert!(
                (again.lost - seen.lost).abs() < 1e-3 * seen.lost.max(1.0),
                "{again:?} {seen:?}"
            );
            assert_eq!(again.accepted, seen.accepted);
        }
    }
    assert_eq!(
        merges, 2,
        "700, 1400, 2800 become 4900; these, 9800 and 19 600 become 34 300"
    );
    assert!(
        accepted.iter().all(|number| knows(&frontier, *number)),
        "a key was lost"
    );

    let seen = frontier.report().saturation;
    assert_eq!(seen.accepted, accepted.len() as u64);
    // Seven standard deviations of what is measured.
    let asked = 30_000;
    let wrong = (1_000_000..1_000_000 + asked)
        .filter(|number| knows(&frontier, *number))
        .count() as f64;
    let expected = seen.rate * asked as f64;
    assert!(
        (wrong - expected).abs() < 7.0 * expected.sqrt() + 1.0,
        "{wrong} of {expected}"
    );
    assert!(seen.rate < RATE, "{}", seen.rate);
    let lost = (offered - accepted.len()) as f64;
    assert!(
        (lost - seen.lost).abs() < 7.0 * seen.lost.sqrt() + 1.0,
        "{lost} lost, {}",
        seen.lost
    );
    let off = (seen.estimated - offered as f64) / seen.loss_noise();
    assert!(off.abs() < 7.0, "{off} standard deviations");
    assert_eq!(seen.check, sieve::SelfCheck::Consistent);
}

#[test]
fn a_kill_in_the_middle_of_a_merge_changes_no_answer() {
    let recorder = Recorder::default();
    let mut frontier = open(&recorder, growing(), SMALL);
    let mut accepted = offer(&mut frontier, 0..2_000);
    let is_building = |frontier: &Frontier| frontier.sieve.filter().keys().unwrap().lock().is_building();
    let mut killed = 0;
    for row in 50..120 {
        if is_building(&frontier) && row % 3 == 0 {
            drop(frontier);
            frontier = open(&recorder, growing(), SMALL);
            killed += 1;
        }
        accepted.extend(offer(&mut frontier, row * 40..row * 40 + 40));
    }
    assert!(killed > 3, "{killed}");
    assert!(
        accepted.iter().all(|number| knows(&frontier, *number)),
        "a key was lost"
    );
}

#[test]
fn a_merge_that_was_recorded_is_made_again_with_the_same_bits() {
    let recorder = Recorder::default();
    // No checkpoint follows.
    let sizes = Sizes {
        min_journal_bytes: u64::MAX,
        ..SIZES
    };
    let mut frontier = open(&recorder, growing(), sizes);
    offer(&mut frontier, 0..9_000);
    let seen = frontier.report().saturation;
    assert!(seen.layers < 4 && seen.grown_capacity.unwrap() > 9_000, "{seen:?}");
    let known: Vec<_> = (0..40_000).filter(|number| knows(&frontier, *number)).collect();
    drop(frontier);
    let frontier = open(&recorder, growing(), sizes);
    assert_eq!(frontier.report().saturation.ones, seen.ones);
    assert_eq!(
        known,
        (0..40_000)
            .filter(|number| knows(&frontier, *number))
            .collect::<Vec<_>>()
    );
}

#[test]
fn at_the_bound_of_its_memory_the_seen_set_neither_grows_nor_merges() {
    let config = FrontierConfig {
        max_seen_set_bytes: Some(3 * 4096),
        ..growing()
    };
    let recorder = Recorder::default();
    let mut frontier = open(&recorder, config.clone(), SIZES);
    for first in [0, 6_000] {
        offer(&mut frontier, first..first + 6_000);
        let seen = frontier.report().saturation;
        assert!(seen.memory_bytes <= 3 * 4096, "{seen:?}");
        assert!(seen.estimated > seen.grown_capacity.unwrap() as f64, "{seen:?}");
        drop(frontier);
        frontier = open(&recorder, config.clone(), SIZES);
    }
    assert!(frontier.report().saturation.lost > 1_000.0);

    // More memory, and it grows again.
    drop(frontier);
    let mut frontier = open(&recorder, growing(), SIZES);
    offer(&mut frontier, 20_000..22_000);
    let seen = frontier.report().saturation;
    assert!(seen.rate < 0.9 && seen.memory_bytes > 3 * 4096, "{seen:?}");
}

#[test]
fn a_frontier_in_memory_has_the_same_bound() {
    let config = FrontierConfig {
        max_seen_set_bytes: Some(2 * 4096),
        ..growing()
    };
    let mut frontier = Frontier::in_memory(config).unwrap();
    let links: Vec<_> = (0..6_000).map(link).collect();
    frontier.offer(&links, START).unwrap();
    assert_eq!(frontier.sieve.filter().layers(), 2);
}
