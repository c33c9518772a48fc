//! A host counts once among those of its site, wherever it is, and however often its frontier is opened.

use std::num::NonZeroU32;

use super::super::sizes::Sizes;
use super::common::{self, START, answer, config, one, redirect, settle};
use super::stores::{Recorder, SMALL, open_sized};
use crate::config::{FrontierConfig, PolitenessConfig, TrapConfig};
use crate::{Frontier, Outcome, Refusal, Verdict};

fn asking_robots() -> FrontierConfig {
    FrontierConfig {
        politeness: PolitenessConfig {
            ask_robots: true,
            ..config().politeness
        },
        traps: TrapConfig {
            max_hosts_per_site: NonZeroU32::new(3),
            ..config().traps
        },
        ..config()
    }
}

/// Opens a store whose hosts are evicted whenever that is possible.
fn open(recorder: &Recorder) -> Frontier {
    let sizes = Sizes {
        resident_bytes: 1,
        ..SMALL
    };
    open_sized(recorder.clone(), asking_robots(), START, sizes)
        .unwrap()
        .frontier
}

fn offer(frontier: &mut Frontier, urls: &[&str]) -> Vec<Verdict> {
    common::offer(frontier, urls, START)
}

#[test]
fn a_host_counts_once_also_on_disk_and_after_opening_and_not_before_its_first_page() {
    for is_in_checkpoint in [false, true] {
        let recorder = Recorder::default();
        let mut frontier = open(&recorder);
        offer(&mut frontier, &["http://w1.site.example/"]);
        let robots = one(&mut frontier, START);
        redirect(&mut frontier, &robots, "http://w2.site.example/robots.txt", START);
        let robots = one(&mut frontier, START);
        answer(&mut frontier, &robots, Outcome::Rejected, START);
        let page = one(&mut frontier, START);
        settle(&mut frontier, &page, Outcome::Done, START);
        let reopened = |mut frontier: Frontier, round: usize| {
            // Others take their place in memory.
            for n in 0..8 {
                offer(&mut frontier, &[&format!("http://other{n}.example/{round}")]);
            }
            if is_in_checkpoint {
                frontier.checkpoint(b"", START).unwrap();
            } else {
                frontier.persist(b"", START).unwrap();
            }
            drop(frontier);
            let frontier = open(&recorder);
            let evicted = frontier.report().memory.unwrap().hosts_on_disk;
            assert!(evicted > 2, "{evicted}");
            frontier
        };
        frontier = reopened(frontier, 1);
        assert_eq!(
            offer(&mut frontier, &["http://w1.site.example/2", "http://w2.site.example/2"]),
            [Verdict::Queued; 2]
        );
        frontier = reopened(frontier, 2);
        let further = [
            "http://w2.site.example/3",
            "http://w3.site.example/",
            "http://w4.site.example/",
        ];
        assert_eq!(
            offer(&mut frontier, &further),
            [
                Verdict::Queued,
                Verdict::Queued,
                Verdict::Refused(Refusal::TooManySubdomains)
            ]
        );
        frontier = reopened(frontier, 3);
        assert_eq!(
            offer(&mut frontier, &["http://w3.site.example/2", "http://w5.site.example/"]),
            [Verdict::Queued, Verdict::Refused(Refusal::TooManySubdomains)]
        );
    }
}
