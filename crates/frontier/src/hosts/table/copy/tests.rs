#![cfg(test)]

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use url::Url;

use super::super::HostRef;
use super::*;
use crate::entry::{Entry, Purpose};
use crate::hosts::host::HostTurn;
use crate::hosts::{HostRules, RowSizes, Shelf};
use crate::rules::ParseRules;
use crate::time::Time;

/// A shelf that keeps what a copy may name, and nothing else that was discarded.
#[derive(Debug, Default)]
struct TestShelf(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    next: u64,
    first_young: u64,
    rows: BTreeMap<u64, Box<[u8]>>,
}

impl Shelf for TestShelf {
    fn put(&self, row: Box<[u8]>) -> u64 {
        let mut rows = self.0.lock().unwrap();
        let number = rows.next;
        rows.next += 1;
        rows.rows.insert(number, row);
        number
    }

    fn discard(&self, number: u64) {
        let mut rows = self.0.lock().unwrap();
        if number >= rows.first_young {
            rows.rows.remove(&number);
        }
    }

    fn set_damaged(&self, number: u64) {
        panic!("row {number} is damaged");
    }

    fn is_broken(&self) -> bool {
        false
    }

    fn read(&self, number: u64) -> Option<Box<[u8]>> {
        self.0.lock().unwrap().rows.get(&number).cloned()
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Changes a host, or makes it.
    Change(u8),
    /// Queues a page, whose path has this length.
    Push(u8, usize),
    Postpone(u8, usize),
    Pop(u8),
    Remove(u8),
    Copy(usize),
    /// Begins another copy, which is whole or may continue the one before.
    Begin(bool),
}

fn steps() -> impl Strategy<Value = Step> {
    let length = || prop_oneof![1_usize..60, 800_usize..2_000];
    prop_oneof![
        4 => any::<u8>().prop_map(Step::Change),
        6 => (any::<u8>(), length()).prop_map(|(host, length)| Step::Push(host, length)),
        1 => (any::<u8>(), length()).prop_map(|(host, length)| Step::Postpone(host, length)),
        4 => any::<u8>().prop_map(Step::Pop),
        3 => any::<u8>().prop_map(Step::Remove),
        3 => (1_usize..2_000).prop_map(Step::Copy),
        2 => Just(Step::Copy(usize::MAX)),
        1 => any::<bool>().prop_map(Step::Begin),
        2 => Just(Step::Begin(false)),
    ]
}

fn rules(shelf: &Arc<TestShelf>) -> HostRules {
    HostRules {
        shelf: Some(Arc::clone(shelf) as Arc<dyn Shelf>),
        ..HostRules::default()
    }
}

fn page(host: u8, length: usize, n: u64) -> Entry {
    Entry {
        url: format!("http://{}/{n}{:0length$}", name(host).as_str(), 0).into(),
        ..Entry::prerequisite(name(host), "".into(), Purpose::Page)
    }
}

fn name(host: u8) -> HostKey {
    HostKey::of(&Url::parse(&format!("http://host{}.example", host % 24)).unwrap()).unwrap()
}

fn configured(mut table: HostTable, shelf: &Arc<TestShelf>, most: u64) -> HostTable {
    let sizes = RowSizes {
        row_bytes: 1_000,
        holes: 2,
    };
    let shelf = Arc::clone(shelf) as Arc<dyn Shelf>;
    table.configure(HostRules::default(), shelf, Arc::new(|_| unreachable!()), sizes);
    table.set_most_resident(most);
    table
}

/// What a host is blocked until, its queue, and what is postponed.
type Content = BTreeMap<HostKey, (Time, Vec<String>)>;

fn content(table: &HostTable, rules: &HostRules) -> Content {
    let of_host = |(key, host): (&HostKey, HostRef<'_>)| {
        let mut waiting = Vec::new();
        let _ = host.visit_waiting(key, rules, &mut |entry| {
            waiting.push(entry.url.into());
            ControlFlow::Continue(())
        });
        (key.clone(), (host.blocked_until(), waiting))
    };
    let all: Vec<_> = table.iter().map(of_host).collect();
    assert_eq!(all.len(), table.len(), "each host is met once");
    all.into_iter().collect()
}

/// A host as it should be.
#[derive(Debug, Clone, Default)]
struct Expected {
    blocked_until: Time,
    pages: VecDeque<String>,
    postponed: Vec<String>,
}

fn all_expected(model: &BTreeMap<HostKey, Expected>) -> Content {
    let of_host = |host: &Expected| {
        let waiting = host.pages.iter().chain(&host.postponed).cloned().collect();
        (host.blocked_until, waiting)
    };
    model.iter().map(|(key, host)| (key.clone(), of_host(host))).collect()
}

/// Reads a whole copy and those that continue it.
fn read(copies: &[Vec<u8>], shelf: &Arc<TestShelf>) -> Result<HostTable, HostsError> {
    let parse: ParseRules = Arc::new(|_| unreachable!());
    let mut reader = HostReader::new(&parse);
    for (at, copy) in copies.iter().enumerate() {
        if at > 0 {
            reader.next_copy()?;
        }
        copy.chunks(17).try_for_each(|part| reader.read(part))?;
    }
    Ok(configured(reader.finish()?, shelf, u64::MAX))
}

#[test]
fn hosts_that_have_ended_do_not_stay_in_memory() {
    let shelf = Arc::new(TestShelf::default());
    let most = 400_000;
    let mut table = configured(HostTable::default(), &shelf, most);
    let named = |n: usize| HostKey::of(&Url::parse(&format!("http://host{n}.example")).unwrap()).unwrap();
    // Each host is used five times until `life` others have come; then never again.
    let (hosts, life) = (60_000, 240);
    let mut peak = 0;
    for step in 0..hosts {
        for use_of in 0..5 {
            let age = life * use_of / 4;
            if let Some(host) = (step as usize).checked_sub(age) {
                table.change(&named(host), |host| host.block(Time::from_millis(step)));
            }
        }
        peak = peak.max(table.memory().residents);
    }
    assert!(peak < most + most / 20, "{peak} bytes of at most {most}");
}

#[test]
fn what_a_change_adds_is_counted_at_once() {
    let mut table = configured(HostTable::default(), &Arc::new(TestShelf::default()), u64::MAX);
    let named = |n: usize| HostKey::of(&Url::parse(&format!("http://host{n}.example")).unwrap()).unwrap();
    for n in 0..100 {
        table.change(&named(n), |host| host.block(Time::from_millis(1)));
    }
    let taken: usize = table.iter().map(|(_, host)| host.bytes()).sum();
    assert_eq!(table.memory().residents, taken as u64);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::cases(256), ..ProptestConfig::default() })]

    #[test]
    fn a_copy_has_all_hosts_as_they_were_when_it_began(
        most in prop_oneof![Just(0_u64), 0_u64..6_000, 0_u64..60_000, Just(u64::MAX)],
        steps in prop::collection::vec(steps(), 0..240),
    ) {
        let shelf = Arc::new(TestShelf::default());
        let rules = rules(&shelf);
        let mut table = configured(HostTable::default(), &shelf, most);
        let mut model: BTreeMap<HostKey, Expected> = BTreeMap::new();
        let begin = |table: &mut HostTable, is_whole| {
            let mut rows = shelf.0.lock().unwrap();
            rows.first_young = rows.next;
            table.begin_copy(is_whole)
        };
        prop_assert!(begin(&mut table, false), "there is none to continue");
        let mut at_begin = BTreeMap::new();
        // The copies up to the last one, which is not complete.
        let (mut copies, mut is_all) = (vec![Vec::new()], false);
        let last = [Step::Copy(usize::MAX), Step::Begin(false), Step::Copy(usize::MAX)];
        for (now, step) in (1..).zip(steps.into_iter().chain(last)) {
            let time = Time::from_millis(now);
            match step {
                Step::Change(host) => {
                    table.change(&name(host), |host| host.block(time));
                    model.entry(name(host)).or_default().blocked_until = time;
                }
                Step::Push(host, length) => {
                    let entry = page(host, length, now);
                    model.entry(name(host)).or_default().pages.push_back(entry.url.to_string());
                    table.change(&name(host), |host| host.enqueue(entry, time, &rules));
                }
                Step::Postpone(host, length) => {
                    let entry = page(host, length, now);
                    model.entry(name(host)).or_default().postponed.push(entry.url.to_string());
                    table.change(&name(host), |host| host.postpone(&entry, &rules));
                }
                Step::Pop(host) => {
                    let expected = model.get_mut(&name(host)).and_then(|host| host.pages.pop_front());
                    if let Some(expected) = expected {
                        let turn = table.change(&name(host), |of| of.take(&name(host), time, &rules));
                        let Some(Some(HostTurn::Fetch { entry, .. })) = turn else { panic!("{turn:?}") };
                        prop_assert_eq!(&*entry.url, expected);
                    }
                }
                Step::Remove(host) => {
                    table.remove(&name(host));
                    model.remove(&name(host));
                }
                Step::Copy(_) if is_all => {}
                Step::Copy(bytes) => {
                    let more = table.copy_more(bytes).unwrap();
                    copies.last_mut().unwrap().extend(more.hosts);
                    is_all = more.is_all;
                    if is_all {
                        let read = read(&copies, &shelf).unwrap();
                        prop_assert_eq!(content(&read, &rules), all_expected(&at_begin));
                    }
                }
                Step::Begin(is_whole) => {
                    at_begin.clone_from(&model);
                    let began_whole = begin(&mut table, is_whole);
                    prop_assert_eq!(began_whole, is_whole || !is_all);
                    if began_whole {
                        copies.clear();
                    }
                    copies.push(Vec::new());
                    is_all = false;
                }
            }
        }
        prop_assert_eq!(content(&table, &rules), all_expected(&model));
    }
}

#[test]
fn a_copy_that_continues_another_has_what_has_changed() {
    let shelf = Arc::new(TestShelf::default());
    let rules = rules(&shelf);
    let mut table = configured(HostTable::default(), &shelf, u64::MAX);
    for n in 0..24 * 20 {
        let entry = page((n % 24) as u8, 100, n);
        table.change(&entry.queue.clone(), |host| host.enqueue(entry, Time::EPOCH, &rules));
    }
    let mut copy = || {
        table.begin_copy(false);
        let copied = table.copy_more(usize::MAX).unwrap();
        assert!(copied.is_all);
        for host in [3, 5] {
            let entry = page(host, 100, 1_000);
            table.change(&name(host), |host| host.enqueue(entry, Time::EPOCH, &rules));
        }
        copied.hosts
    };
    let copies = [copy(), copy(), copy()];
    let [whole, _, third] = &copies;
    assert!(whole.len() > 24 * 20 * 100, "{} bytes", whole.len());
    assert!((200..600).contains(&third.len()), "{} bytes for two pages", third.len());
    // Without the second copy the third one does not fit: it continues hosts of another length.
    assert!(read(&copies, &shelf).is_ok());
    let without = [whole.clone(), third.clone()];
    assert!(matches!(read(&without, &shelf), Err(HostsError::Disagree)));
}

#[test]
fn hosts_that_are_read_take_no_more_memory_than_they_did() {
    let shelf = Arc::new(TestShelf::default());
    let rules = rules(&shelf);
    let mut table = configured(HostTable::default(), &shelf, u64::MAX);
    let mut copy = |pages: u64| {
        for n in 0..24 * pages {
            let entry = page((n % 24) as u8, 100, n);
            table.change(&entry.queue.clone(), |host| host.enqueue(entry, Time::EPOCH, &rules));
        }
        table.begin_copy(false);
        (table.copy_more(usize::MAX).unwrap().hosts, table.memory().residents)
    };
    let [(whole, _), (next, before)] = [copy(20), copy(1)];
    assert!(next.len() < whole.len() / 4, "it has only what was added");
    let after = read(&[whole, next], &shelf).unwrap().memory().residents;
    assert!(after <= before, "{after} bytes instead of {before}");
}
