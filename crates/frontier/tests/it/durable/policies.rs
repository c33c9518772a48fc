//! Policies of hosts, in a directory.

use std::time::Duration;

use frontier::{Class, HostPolicy, Leasing, NotFetched, OrderRule, Outcome, Refetch};

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

#[test]
fn a_page_is_fetched_again_by_the_rules_and_not_from_a_host_that_is_closed_now() {
    let dir = TemporaryDir::new();
    let mut before = config();
    before.order = vec![OrderRule {
        pattern: "/0".to_owned(),
        class: Class::FIRST,
    }];
    let mut frontier = dir.open(before.clone(), NOW).frontier;
    frontier.offer(&pages("http://a.example/", 2), NOW).unwrap();
    for lease in common::ready(&mut frontier, NOW) {
        commit(&mut frontier, end(&lease, Outcome::Done), NOW);
    }
    frontier.persist(b"", NOW).unwrap();
    let (old, later) = (Refetch::OlderThan(Duration::from_secs(60)), at(1_000_000));
    frontier.queue_again(old, 9, later).unwrap();
    let again = common::one(&mut frontier, later);
    assert_eq!(
        (&*again.entry.url, again.entry.class),
        ("http://a.example/0", Class::FIRST)
    );
    frontier.persist(b"", later).unwrap();
    drop(frontier);
    let closed = HostPolicy {
        closed: Some(true),
        ..HostPolicy::default()
    };
    before.hosts.insert("a.example".to_owned(), closed);
    let mut frontier = dir.open(before, later).frontier;
    frontier.lease(later, 9).unwrap();
    frontier.queue_again(old, 9, later).unwrap();
    assert_eq!(frontier.lease(later, 9), Ok(Leasing::Drained));
}

#[test]
fn only_a_policy_that_refuses_less_may_have_refused_what_counts_now() {
    let closed = |closed| HostPolicy {
        closed: Some(closed),
        delay: Some(Duration::from_secs(u64::from(closed))),
        ..HostPolicy::default()
    };
    for (is, is_widened) in [
        (closed(true), false),
        (closed(false), true),
        (HostPolicy::default(), true),
    ] {
        let dir = TemporaryDir::new();
        let mut config = config();
        config.hosts.insert("a.example".to_owned(), closed(true));
        let mut frontier = dir.open(config.clone(), NOW).frontier;
        common::offer(&mut frontier, &["http://a.example/", "http://b.example/"], NOW);
        frontier.persist(b"", NOW).unwrap();
        drop(frontier);
        config.hosts.insert("a.example".to_owned(), is);
        config.hosts.insert("b.example".to_owned(), closed(true));
        let frontier = dir.open(config, NOW).frontier;
        assert_eq!(frontier.report().refused_earlier, is_widened);
    }
}
