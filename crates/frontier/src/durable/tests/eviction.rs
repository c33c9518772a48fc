//! More hosts than may be in memory: answers are those of a frontier that has all of them there.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Duration;

use super::super::sizes::Sizes;
use super::common::{self, Orders as _, START, config, end, url};
use super::pair::picture;
use super::stores::{ALL_RESIDENT, Recorder, SMALL, open_sized, open_store, read_store};
use crate::link::Link;
use crate::store::{Batch, MemoryStore, Space, Store as _};
use crate::{Frontier, FrontierError, Lease, Leasing, OpenError, Outcome, StoreError, Time};

const HOSTS: usize = 300;
const PAGES: usize = 3;

fn pages() -> Vec<Link> {
    let page = |n: usize| format!("http://host{}.example/{n}", n % HOSTS);
    let link = |n| Link::found(url(&page(n)), 1, "http://host0.example/".into());
    (0..HOSTS * PAGES).map(link).collect()
}

/// A frontier with many hosts, of which few fit into memory, in a checkpoint; and one in memory.
fn many_hosts() -> (Recorder, Frontier, Frontier) {
    many_hosts_sized(SMALL)
}

fn many_hosts_sized(sizes: Sizes) -> (Recorder, Frontier, Frontier) {
    let recorder = Recorder::default();
    let opened = open_sized(recorder.clone(), config(), START, sizes);
    let mut durable = opened.unwrap().frontier;
    let mut model = common::frontier(config());
    for part in pages().chunks(50) {
        assert_eq!(durable.offer(part, START).unwrap(), model.offer(part, START).unwrap());
        durable.persist(b"", START).unwrap();
    }
    durable.checkpoint(b"", START).unwrap();
    (recorder, durable, model)
}

fn rows(recorder: &Recorder) -> usize {
    recorder.image().space(Space::Segment).len()
}

fn ready(frontier: &mut Frontier, now: Time) -> Vec<Lease> {
    match frontier.lease(now, 7).unwrap() {
        Leasing::Ready(leases) => leases,
        Leasing::Drained => Vec::new(),
        other => panic!("{other:?}"),
    }
}

fn settle(frontier: &mut Frontier, leases: &[Lease], now: Time) {
    let settlements: Vec<_> = leases.iter().map(|lease| end(lease, Outcome::Done)).collect();
    frontier.settle(&settlements, now).unwrap();
}

#[test]
fn hosts_that_were_evicted_are_leased_in_the_order_of_hosts_in_memory() {
    let (recorder, mut durable, mut model) = many_hosts();
    assert!(rows(&recorder) > HOSTS / 4, "{}", rows(&recorder));
    for round in 0.. {
        if round % 40 == 7 {
            durable.persist(b"", START).unwrap();
            drop(durable);
            durable = open_store(recorder.clone(), config(), START).unwrap().frontier;
        }
        let (leases, expected) = (ready(&mut durable, START), ready(&mut model, START));
        assert_eq!(leases, expected);
        settle(&mut durable, &leases, START);
        settle(&mut model, &leases, START);
        durable.persist(b"", START).unwrap();
        if leases.is_empty() {
            break;
        }
    }
    assert_eq!(picture(&durable), picture(&model));
    durable.checkpoint(b"", START).unwrap();
}

#[test]
fn rows_of_evicted_hosts_do_not_pile_up() {
    let sizes = Sizes {
        group_bytes: 3_000,
        resident_bytes: 20_000,
        ..SMALL
    };
    let (recorder, mut durable, mut model) = many_hosts_sized(sizes);
    // With a policy, a host takes more.
    for n in 0..HOSTS {
        let (host, delay) = (
            url(&format!("http://host{n}.example/")).host(),
            Duration::from_millis(1),
        );
        durable.set_delay(&host, delay, START).unwrap();
        model.set_delay(&host, delay, START).unwrap();
    }
    durable.checkpoint(b"", START).unwrap();
    durable.checkpoint(b"", START).unwrap();
    let before = rows(&recorder);
    // In each round one host of each row stays behind, and all others go on to new rows.
    for round in 0..19 {
        for host in (0..HOSTS).filter(|n| n % 20 > round) {
            let (host, delay) = (
                url(&format!("http://host{host}.example/")).host(),
                Duration::from_millis(round as u64 + 1),
            );
            durable.set_delay(&host, delay, START).unwrap();
            model.set_delay(&host, delay, START).unwrap();
        }
        durable.persist(b"", START).unwrap();
    }
    durable.checkpoint(b"", START).unwrap();
    durable.checkpoint(b"", START).unwrap();
    let after = rows(&recorder);
    assert!(after <= before * 3, "{before} rows, then {after}");
    assert_eq!(picture(&durable), picture(&model));
}

#[test]
fn rows_that_were_written_after_the_last_checkpoint_are_gone_with_the_first_after_a_crash() {
    let (recorder, mut durable, _) = many_hosts();
    let keys = |recorder: &Recorder| -> Vec<u64> { recorder.image().space(Space::Segment).keys().copied().collect() };
    let in_checkpoint = keys(&recorder);
    let is_new = |key: &u64| !in_checkpoint.contains(key);
    let host = |n: usize| url(&format!("http://host{n}.example/")).host();
    for n in 0..20 {
        durable.set_delay(&host(n), Duration::from_secs(1), START).unwrap();
    }
    durable.persist(b"", START).unwrap();
    assert!(keys(&recorder).iter().any(is_new));
    drop(durable);
    // This run evicts nothing.
    let opened = open_sized(recorder.clone(), config(), START, ALL_RESIDENT);
    opened.unwrap().frontier.checkpoint(b"", START).unwrap();
    assert!(!keys(&recorder).iter().any(is_new), "{:?}", keys(&recorder));
}

#[test]
fn a_frontier_that_is_only_read_shows_what_waits_at_evicted_hosts() {
    let (recorder, _, model) = many_hosts();
    let image = recorder.image();
    let read = read_store(image.clone()).unwrap().frontier;
    let mut waiting = HashSet::new();
    let mut visit = |entry: crate::entry::Entry| {
        waiting.insert(entry.url);
        ControlFlow::Continue(())
    };
    read.visit_waiting(&mut visit).unwrap();
    assert_eq!(waiting.len(), HOSTS * PAGES);
    assert_eq!(picture(&read), picture(&model));
    let why = read.why(&url("http://host17.example/17"), START);
    assert_eq!(why, model.why(&url("http://host17.example/17"), START));
    assert_eq!(recorder.image(), image, "nothing was written");
}

fn without_rows(image: &MemoryStore) -> Recorder {
    let (mut copy, mut batch) = (image.clone(), Batch::default());
    batch.delete(Space::Segment, 0..=u64::MAX);
    copy.commit(&batch, false).unwrap();
    Recorder::from(copy)
}

#[test]
fn a_row_of_hosts_that_is_missing_ends_the_call_that_needs_it_with_an_error() {
    let (recorder, ..) = many_hosts();
    let damaged = without_rows(&recorder.image());
    let mut opened = open_store(damaged, config(), START).unwrap().frontier;
    let error = opened.lease(START, HOSTS).unwrap_err();
    assert!(
        matches!(&error, FrontierError::Damaged(why) if why.contains("is missing")),
        "{error}"
    );
    assert_eq!(opened.lease(START, 1), Err(FrontierError::Poisoned));
}

#[test]
fn a_row_of_hosts_that_is_missing_for_the_journal_is_an_error_that_names_it() {
    let (recorder, mut durable, _) = many_hosts();
    let leases = ready(&mut durable, START);
    settle(&mut durable, &leases, START);
    durable.persist(b"", START).unwrap();
    let error = open_store(without_rows(&recorder.image()), config(), START).unwrap_err();
    let is_named = |what: &str| what.contains("segment") && what.contains("is missing");
    assert!(
        matches!(&error, OpenError::Store(StoreError::Damaged { what, .. }) if is_named(what)),
        "{error}"
    );
}

#[test]
fn bytes_that_are_no_row_of_hosts_are_an_error() {
    let (recorder, ..) = many_hosts();
    for rubbish in [&b""[..], &[0; 9], &[7; 900]] {
        let (mut image, mut batch) = (recorder.image(), Batch::default());
        let rows: Vec<u64> = image.space(Space::Segment).keys().copied().collect();
        for row in rows {
            batch.put(Space::Segment, row, rubbish);
        }
        image.commit(&batch, false).unwrap();
        let mut opened = open_store(Recorder::from(image), config(), START).unwrap().frontier;
        let error = opened.lease(START, HOSTS).unwrap_err();
        assert!(
            matches!(&error, FrontierError::Damaged(why) if why.contains("is not a group of hosts")),
            "{error}"
        );
    }
}
