//! Pages whose record is old become due again: each once for each fetch, whatever is killed between.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use super::super::record;
use super::common::{START, config, end, failure, url};
use super::queued_again;
use super::stores::{Recorder, open_store};
use crate::config::{FrontierConfig, PolitenessConfig};
use crate::{
    ContentHash, Entry, FailureKind, Frontier, Lease, Leasing, Link, NotFetched, Outcome, Refetch, Settlement, Time,
    Validators,
};

const DAY: Duration = Duration::from_secs(86_400);

fn on_day(days: u32) -> Time {
    START + DAY * days
}

fn config_of_many() -> FrontierConfig {
    FrontierConfig {
        politeness: PolitenessConfig {
            per_host: NonZeroU32::new(100).unwrap(),
            ..config().politeness
        },
        ..config()
    }
}

fn open(recorder: &Recorder, now: Time) -> Frontier {
    open_store(recorder.clone(), config_of_many(), now).unwrap().frontier
}

fn page(n: usize) -> String {
    format!("http://site.example/{n}")
}

fn offer(frontier: &mut Frontier, pages: std::ops::Range<usize>, now: Time) {
    let link = |n| Link::found(url(&page(n)), 2, "http://site.example/".into());
    frontier.offer(&pages.map(link).collect::<Vec<_>>(), now).unwrap();
}

fn lease_all(frontier: &mut Frontier, now: Time) -> Vec<Lease> {
    match frontier.lease(now, 100).unwrap() {
        Leasing::Ready(leases) => leases,
        Leasing::Drained => Vec::new(),
        other => panic!("{other:?}"),
    }
}

fn done(lease: &Lease) -> Settlement {
    let validators = Validators {
        etag: Some(format!("{:?}", lease.entry.url)),
        last_modified: None,
    };
    end(lease, Outcome::Done).with_version(validators, Some(7.into()))
}

/// Leases all pages and settles them as done. Returns their entries.
fn fetch_all(frontier: &mut Frontier, now: Time) -> Vec<Entry> {
    let leases = lease_all(frontier, now);
    for lease in &leases {
        frontier.settle(&[done(lease)], now).unwrap();
    }
    frontier.persist(b"", now).unwrap();
    leases.into_iter().map(|lease| Entry::clone(&lease.entry)).collect()
}

#[test]
fn a_page_of_age_is_leased_again_once_with_its_version_and_place() {
    let recorder = Recorder::default();
    let mut frontier = open(&recorder, START);
    offer(&mut frontier, 0..3, START);
    fetch_all(&mut frontier, START);
    offer(&mut frontier, 3..5, on_day(1));
    fetch_all(&mut frontier, on_day(1));

    let refreshed = frontier
        .queue_again(Refetch::OlderThan(DAY * 2), 100, on_day(1))
        .unwrap();
    assert_eq!((refreshed.pages.queued, refreshed.next), (0, Some(on_day(2))));
    let refreshed = frontier
        .queue_again(Refetch::OlderThan(DAY * 2), 100, on_day(2))
        .unwrap();
    assert_eq!((refreshed.pages.queued, refreshed.next), (3, Some(on_day(3))));
    let again = fetch_all(&mut frontier, on_day(2));
    let mut urls: Vec<_> = again.iter().map(|entry| entry.url.to_string()).collect();
    urls.sort();
    assert_eq!(urls, [page(0), page(1), page(2)]);
    for entry in &again {
        assert!(entry.is_refresh());
        assert_eq!(
            (entry.depth, entry.metadata.referrer.as_deref()),
            (2, Some("http://site.example/"))
        );
        let previous = entry.metadata.previous.as_deref().unwrap();
        assert_eq!(previous.validators.etag, Some(format!("{:?}", entry.url)));
        assert_eq!(previous.content, Some(ContentHash::from(7)));
    }
    assert_eq!(
        queued_again(&mut frontier, Refetch::OlderThan(DAY * 2), 100, on_day(2)),
        0,
        "a second time"
    );
    let report = frontier.report();
    assert_eq!((report.pages.done, report.pages.refreshed), (5, 3));
    // Their second fetch comes of age, too.
    assert_eq!(
        queued_again(&mut frontier, Refetch::OlderThan(DAY * 2), 100, on_day(3)),
        2
    );
    let refreshed = frontier
        .queue_again(Refetch::OlderThan(DAY * 2), 100, on_day(4))
        .unwrap();
    assert_eq!((refreshed.pages.queued, refreshed.next), (3, None));
}

#[test]
fn each_page_is_fetched_again_once_for_each_fetch_over_kills() {
    let recorder = Recorder::default();
    let mut frontier = open(&recorder, START);
    offer(&mut frontier, 0..60, START);
    while !fetch_all(&mut frontier, START).is_empty() {}
    let mut kills = 0;
    let now = on_day(1);
    for round in 0.. {
        if round % 3 != 1 {
            // A crash at different moments.
            frontier = open(&recorder, now);
            kills += 1;
        }
        let refreshed = frontier.queue_again(Refetch::OlderThan(DAY), 7, now).unwrap();
        if round % 2 == 0 {
            frontier.persist(b"", now).unwrap();
        }
        let leases = lease_all(&mut frontier, now);
        if leases.is_empty() && refreshed.next != Some(now) {
            break;
        }
        for lease in leases.iter().take(5) {
            frontier.settle(&[done(lease)], now).unwrap();
        }
        if round % 4 != 3 {
            frontier.persist(b"", now).unwrap();
        }
        frontier.release_leases(now).unwrap();
    }
    assert!(kills > 5);
    let mut fetched = BTreeMap::new();
    let mut count = |record: crate::StoredPage<'_>| *fetched.entry(record.url.to_string()).or_insert(0) += 1;
    record::visit(&recorder.image(), &mut count).unwrap();
    assert_eq!(fetched.len(), 60);
    assert!(fetched.values().all(|times| *times == 2), "{fetched:?}");
    assert_eq!(open(&recorder, now).report().pages.refreshed, 60);
}

#[test]
fn what_is_gone_or_failed_is_asked_again_and_what_was_never_asked_is_not() {
    let recorder = Recorder::default();
    let mut frontier = open(&recorder, START);
    offer(&mut frontier, 0..4, START);
    let outcomes = [
        Outcome::Rejected,
        Outcome::NotFetched(NotFetched::AddressForbidden),
        Outcome::failed(failure(FailureKind::Redirect)),
        Outcome::Redirected,
    ];
    for lease in lease_all(&mut frontier, START) {
        let number: usize = lease.entry.path()[1..].parse().unwrap();
        let mut settlement = end(&lease, outcomes[number].clone());
        if outcomes[number] == Outcome::Redirected {
            settlement = settlement.with_links(vec![lease.entry.redirected(url("http://site.example/target"))]);
        }
        frontier.settle(&[settlement], START).unwrap();
    }
    while !fetch_all(&mut frontier, START).is_empty() {}
    frontier.persist(b"", START).unwrap();
    let before = frontier.report().pages;
    frontier.queue_again(Refetch::OlderThan(DAY), 100, on_day(1)).unwrap();
    let again = fetch_all(&mut frontier, on_day(1));
    let mut paths: Vec<_> = again.iter().map(|entry| entry.path().to_owned()).collect();
    paths.sort();
    paths.dedup();
    assert!(
        paths.contains(&"/0".to_owned()) && paths.contains(&"/3".to_owned()),
        "{paths:?}"
    );
    assert!(
        paths.contains(&"/target".to_owned()) && !paths.contains(&"/1".to_owned()),
        "{paths:?}"
    );
    assert_eq!(paths.len(), again.len(), "one of them twice");
    let after = frontier.report().pages;
    // The page that had failed is fetched for the first time now.
    assert_eq!(
        (after.done, after.rejected, after.redirected, after.gave_up),
        (before.done + 1, before.rejected, before.redirected, before.gave_up - 1)
    );
}

#[test]
fn a_page_that_redirected_to_another_spelling_of_itself_is_fetched_again_once() {
    let recorder = Recorder::default();
    let mut frontier = open(&recorder, START);
    let seed = url("http://site.example/%7Eann");
    frontier.add_seed(&seed, START).unwrap();
    let lease = lease_all(&mut frontier, START).remove(0);
    let target = lease.entry.redirected(url("http://site.example/~ann"));
    assert_eq!(target.url.key(), seed.key());
    frontier
        .settle(&[end(&lease, Outcome::Redirected).with_links(vec![target])], START)
        .unwrap();
    assert_eq!(fetch_all(&mut frontier, START).len(), 1);
    frontier.queue_again(Refetch::OlderThan(DAY), 100, on_day(1)).unwrap();
    let again = fetch_all(&mut frontier, on_day(1));
    assert_eq!(
        again.iter().map(|entry| &*entry.url).collect::<Vec<_>>(),
        ["http://site.example/~ann"]
    );
}

#[test]
fn pages_that_are_fetched_again_spend_no_budget_and_wait_while_the_queue_is_full() {
    let recorder = Recorder::default();
    let mut config = config_of_many();
    config.limits.max_pages = Some(4);
    config.limits.max_pages_per_host = Some(3);
    config.limits.max_queued = 3;
    let mut frontier = open_store(recorder, config, START).unwrap().frontier;
    offer(&mut frontier, 0..3, START);
    fetch_all(&mut frontier, START);
    for day in 1..4 {
        for (up_to, expected) in [(2, (2, Some(on_day(day)))), (100, (1, None)), (100, (0, None))] {
            let again = frontier
                .queue_again(Refetch::OlderThan(DAY), up_to, on_day(day))
                .unwrap();
            assert_eq!((again.pages.queued, again.next), expected);
            assert_eq!(again.pages.refused, 0);
        }
        assert_eq!(fetch_all(&mut frontier, on_day(day)).len(), 3);
    }
    assert_eq!(frontier.report().pages.refreshed, 9);
}
