//! Policies of hosts, in a directory.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use frontier::{
    CanonicalUrl, Class, CrawlPolicy, Entry, Frontier, HostPolicy, Leasing, Link, NotFetched, OrderRule, Outcome,
    Refetch,
};

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

/// Leases until nothing is dropped or ready, and returns how often each page was leased.
fn drained(frontier: &mut Frontier) -> (BTreeMap<String, u32>, usize) {
    let (mut leased, mut dropped) = (BTreeMap::new(), 0);
    loop {
        match frontier.lease(NOW, 50).unwrap() {
            Leasing::Ready(leases) => {
                for lease in leases {
                    *leased.entry(lease.entry.url.to_string()).or_default() += 1;
                    commit(frontier, end(&lease, Outcome::Done), NOW);
                }
            }
            Leasing::Dropped(entries) => dropped += entries.len(),
            other => {
                assert_eq!(other, Leasing::Drained);
                return (leased, dropped);
            }
        }
    }
}

#[test]
fn what_was_dropped_is_queued_again_once_it_is_allowed_and_each_page_once() {
    const PAGES: usize = 2_500;
    let dir = TemporaryDir::new();
    let mut config = config();
    config.politeness.delay = Duration::ZERO;
    let mut frontier = dir.open(config.clone(), NOW).frontier;
    let first = |link: Link| link.with_class(Class::FIRST);
    let of_a: Vec<_> = pages("http://a.example/", PAGES).into_iter().map(first).collect();
    frontier.offer(&of_a, NOW).unwrap();
    frontier.offer(&pages("http://b.example/", 3), NOW).unwrap();
    let ordered = CrawlPolicy {
        dropped: vec!["a.example/1".to_owned()],
        ..CrawlPolicy::default()
    };
    let closed = HostPolicy {
        closed: Some(true),
        ..HostPolicy::default()
    };
    let host = url("http://a.example/").host();
    frontier.set_crawl_policy(&ordered, NOW).unwrap();
    frontier.set_policy(&host, &closed, NOW).unwrap();
    assert_eq!(drained(&mut frontier).1, PAGES);
    frontier.persist(b"", NOW).unwrap();
    drop(frontier);

    let mut frontier = dir.open(config.clone(), NOW).frontier;
    let is_meant = |url: &CanonicalUrl| url.host() == host;
    assert_eq!(frontier.queue_dropped(is_meant, NOW), Ok((0, 0)), "it is still closed");
    frontier.set_policy(&host, &HostPolicy::default(), NOW).unwrap();
    // What a pattern drops stays away.
    let kept = (0..PAGES).filter(|n| !n.to_string().starts_with('1')).count();
    let barred = (PAGES - kept) as u64;
    assert_eq!(frontier.queue_dropped(is_meant, NOW), Ok((kept as u64, 0)));
    let mut has_class = |entry: Entry| {
        assert_eq!(entry.class, Class::FIRST, "as before");
        ControlFlow::Continue(())
    };
    frontier.visit_waiting(&mut has_class).unwrap();
    frontier.persist(b"", NOW).unwrap();
    common::ready(&mut frontier, NOW);
    assert_eq!(
        frontier.queue_dropped(is_meant, NOW),
        Ok((0, 0)),
        "they wait, or are in flight"
    );
    frontier.persist(b"", NOW).unwrap();
    drop(frontier);

    let mut frontier = dir.open(config.clone(), NOW).frontier;
    assert_eq!(frontier.report().not_fetched[&NotFetched::ByOrder], barred);
    let (leased, dropped) = drained(&mut frontier);
    assert!(dropped == 0 && leased.len() == kept && leased.values().all(|times| *times == 1));
    frontier.persist(b"", NOW).unwrap();
    frontier.set_crawl_policy(&CrawlPolicy::default(), NOW).unwrap();
    let by_pattern = |url: &CanonicalUrl| url.key().contains("a.example/1");
    assert_eq!(frontier.queue_dropped(by_pattern, NOW), Ok((barred, 0)));
    assert_eq!(drained(&mut frontier).0.len() as u64, barred);
    assert_eq!(frontier.report().not_fetched.get(&NotFetched::ByOrder), None);
}

#[test]
fn pages_that_have_ended_are_queued_again_by_their_urls() {
    let dir = TemporaryDir::new();
    let mut frontier = dir.open(config(), NOW).frontier;
    frontier.offer(&pages("http://a.example/", 3), NOW).unwrap();
    let lease = common::one(&mut frontier, NOW);
    commit(&mut frontier, end(&lease, Outcome::Done), NOW);
    frontier.persist(b"", NOW).unwrap();
    let urls = ["0", "1", "never"].map(|page| url(&format!("http://a.example/{page}")));
    let queued = frontier.queue_ended(&urls, at(100)).unwrap();
    assert_eq!(queued, [true, false, false], "one waits, one was never met");
    assert_eq!(
        frontier.queue_ended(&urls, at(100)).unwrap(),
        [false; 3],
        "now it waits"
    );
    assert_eq!(frontier.report().queued_pages, 3);
}
