//! A clock that was set back between two runs.

use std::time::Duration;

use frontier::Leasing;

use super::TemporaryDir;
use crate::common::{self, START, at};
use crate::shared::pair::Place as _;

#[test]
fn a_host_is_not_asked_too_early_after_the_clock_was_set_back() {
    let mut config = common::config();
    config.politeness.delay = Duration::from_secs(10);
    let dir = TemporaryDir::new();
    let mut frontier = dir.open(config.clone(), START).frontier;
    frontier
        .offer(&common::pages("http://site.example/", 3), at(100))
        .unwrap();
    assert_eq!(common::ready(&mut frontier, at(100)).len(), 1);
    frontier.persist(b"", at(100)).unwrap();
    drop(frontier);

    let mut opened = dir.open(config, at(5));
    assert_eq!((opened.released, opened.now), (1, at(100)));
    let next = opened.frontier.lease(opened.now, 1).unwrap();
    assert_eq!(next, Leasing::NotUntil(at(110)), "the request ended when it was opened");
}
