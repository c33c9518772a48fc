//! The bytes of rules of robots.txt after a repair: those of the hosts that are left.

use super::common::{Forbid, START, config, url};
use super::damage::{changed_by, manifest};
use super::repair::mend;
use super::stores::{ALL_RESIDENT, Recorder, open_sized, read_store};
use crate::config::FrontierConfig;
use crate::rules::RobotsRules as _;
use crate::store::Space;
use crate::{Leasing, Link, RobotsOutcome, Task};

#[test]
fn rules_of_hosts_that_were_lost_do_not_count() {
    let recorder = Recorder::default();
    let asking = FrontierConfig {
        ask_robots: true,
        ..config()
    };
    let mut frontier = open_sized(recorder.clone(), asking, START, ALL_RESIDENT)
        .unwrap()
        .frontier;
    let rules = Forbid::below(&format!("/{:0600}", 0));
    let pages = ["http://a.example/", "http://b.example/"].map(|text| Link::found(url(text), 1, "".into()));
    frontier.offer(&pages, START).unwrap();
    let Leasing::Ready(leases) = frontier.lease(START, 2).unwrap() else {
        panic!("both are ready")
    };
    for lease in &leases {
        let Task::Robots(robots) = lease.task() else {
            panic!("{lease:?}")
        };
        let known = robots.settle(RobotsOutcome::known(rules.clone()));
        frontier.settle(&[known], START).unwrap();
    }
    frontier.checkpoint(b"", START).unwrap();
    let of_one = rules.bytes() as u64;
    assert_eq!(frontier.report().rules_bytes, 2 * of_one);
    drop(frontier);

    let image = recorder.image();
    let mut left = Vec::new();
    for part in manifest(&image).hosts().flat_map(|copy| copy.keys()) {
        let gap = changed_by(&image, |batch| batch.delete(Space::Checkpoint, part..=part));
        let report = read_store(mend(&gap, &image).store).unwrap().frontier.report();
        assert_eq!(report.rules_bytes, report.queued_pages * of_one);
        left.push(report.queued_pages);
    }
    assert!(left.contains(&1), "each page waits for its host: {left:?}");
}
