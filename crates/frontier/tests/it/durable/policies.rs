//! Policies of hosts, in a directory.

use std::time::Duration;

use frontier::{HostPolicy, Leasing, NotFetched, Outcome};

use super::TemporaryDir;
use crate::common::{self, Orders as _, START as NOW, at, commit, config, end, pages, url};
use crate::shared::pair::Place as _;

#[test]
fn an_order_outlives_a_kill_and_comes_before_a_configuration_that_has_changed() {
    let dir = TemporaryDir::new();
    let host = url("http://a.example/").host();
    let mut frontier = dir.open(config(), NOW).frontier;
    frontier.offer(&pages("http://a.example/", 3), NOW).unwrap();
    frontier.set_delay(&host, Duration::from_secs(10), NOW).unwrap();
    frontier.persist(b"", NOW).unwrap();
    drop(frontier);
    let mut changed = config();
    let policy = HostPolicy {
        delay: Some(Duration::from_secs(1)),
        max_pages: Some(1),
        ..HostPolicy::default()
    };
    changed.hosts.insert("*.example".to_owned(), policy);
    let mut frontier = dir.open(changed.clone(), NOW).frontier;
    let lease = common::one(&mut frontier, NOW);
    assert_eq!(lease.delay, Duration::from_secs(10));
    commit(&mut frontier, end(&lease, Outcome::Done), NOW);
    assert!(matches!(frontier.lease(NOW, 9).unwrap(), Leasing::Dropped(entries) if entries.len() == 2));
    frontier.persist(b"", NOW).unwrap();
    drop(frontier);
    // A configuration that closes the host drops what waits there.
    let mut frontier = dir.open(config(), at(60)).frontier;
    frontier.offer(&pages("http://a.example/more/", 3), at(60)).unwrap();
    frontier.persist(b"", at(60)).unwrap();
    drop(frontier);
    let mut closed = config();
    let policy = HostPolicy {
        closed: Some(true),
        ..HostPolicy::default()
    };
    closed.hosts.insert("a.example".to_owned(), policy);
    let mut frontier = dir.open(closed, at(60)).frontier;
    let Leasing::Dropped(entries) = frontier.lease(at(60), 9).unwrap() else {
        panic!("nothing was dropped");
    };
    assert_eq!(entries.len(), 3);
    assert!(entries.iter().all(|one| one.why == NotFetched::ByOrder));
}
