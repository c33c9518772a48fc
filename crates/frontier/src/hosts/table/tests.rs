#![cfg(test)]

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use url::Url;

use super::workbench::BYTES_IN_LINE;
use super::*;
use crate::config::PolitenessConfig;
use crate::entry::{Entry, Purpose};
use crate::error::OpenError;
use crate::hosts::{HostConfig, HostsOnDisk, SegmentStore};
use crate::rules::ParseRules;
use crate::time::Time;

/// Segments that keep what a copy may name, and nothing else that was discarded.
#[derive(Debug, Default)]
struct TestSegments(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    next: u64,
    first_young: u64,
    rows: BTreeMap<u64, Box<[u8]>>,
}

impl SegmentStore for TestSegments {
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
    /// Begins another copy.
    Begin,
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
        2 => Just(Step::Begin),
    ]
}

fn config(segments: &Arc<TestSegments>) -> HostConfig {
    HostConfig {
        politeness: PolitenessConfig {
            ask_robots: false,
            ..PolitenessConfig::default()
        },
        segments: Some(Arc::clone(segments) as Arc<dyn SegmentStore>),
        ..HostConfig::default()
    }
}

fn page(host: u8, length: usize, n: u64) -> Entry {
    Entry {
        url: format!("http://{}/{n}{:0length$}", name(host).as_str(), 0).into(),
        ..Entry::new(name(host), "".into(), Purpose::Page)
    }
}

fn name(host: u8) -> HostKey {
    HostKey::of(&Url::parse(&format!("http://host{}.example", host % 24)).unwrap()).unwrap()
}

fn configured(mut table: HostTable, segments: &Arc<TestSegments>, most: u64) -> HostTable {
    let segments = Arc::clone(segments) as Arc<dyn SegmentStore>;
    let on_disk = HostsOnDisk {
        segments,
        parse: Arc::new(|_| unreachable!()),
        group_bytes: 1_000,
    };
    table.lie_on_disk(on_disk);
    table.set_most_resident(most);
    table
}

/// What a host is blocked until, its queue, and what is postponed.
type Content = BTreeMap<HostKey, (Time, Vec<String>)>;

fn content(table: &HostTable, config: &HostConfig) -> Content {
    let of_host = |(key, host): (&HostKey, HostRef<'_>)| {
        let mut waiting = Vec::new();
        let _ = host.visit_waiting(key, config, &mut |entry| {
            waiting.push(entry.url.into());
            ControlFlow::Continue(())
        });
        (key.clone(), (host.blocked_until(), waiting))
    };
    let all: Vec<_> = table.iter_if(|_, _| true).map(of_host).collect();
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

/// Reads a copy.
fn read(copy: &[u8], segments: &Arc<TestSegments>) -> Result<HostTable, OpenError> {
    let parse: ParseRules = Arc::new(|_| unreachable!());
    let mut reader = HostReader::new(&parse);
    copy.chunks(17).try_for_each(|part| reader.read(part))?;
    Ok(configured(reader.finish()?, segments, u64::MAX))
}

#[test]
fn hosts_that_have_ended_do_not_stay_in_memory() {
    let segments = Arc::new(TestSegments::default());
    let most = 400_000;
    let mut table = configured(HostTable::default(), &segments, most);
    let named = |n: usize| HostKey::of(&Url::parse(&format!("http://host{n}.example")).unwrap()).unwrap();
    // Each host is used five times until `life` others have come; then never again.
    let (hosts, life) = (60_000, 240);
    let mut peak = 0;
    for step in 0..hosts {
        for use_of in 0..5 {
            let age = life * use_of / 4;
            if let Some(host) = (step as usize).checked_sub(age) {
                table.change_or_insert(&named(host), |host| host.block(Time::from_millis(step)));
            }
        }
        peak = peak.max(table.resident_bytes());
    }
    assert!(peak < most + most / 20, "{peak} bytes of at most {most}");
}

#[test]
fn of_hosts_that_are_used_in_a_circle_about_as_many_stay_as_fit() {
    let segments = Arc::new(TestSegments::default());
    let config = config(&segments);
    let named = |n: usize| HostKey::of(&Url::parse(&format!("http://host{n}.example")).unwrap()).unwrap();
    let mut table = configured(HostTable::default(), &segments, u64::MAX);
    let (hosts, now) = (1_000, Time::from_millis(1));
    for n in 0..hosts {
        let entry = Entry::new(named(n), "http://host.example/".into(), Purpose::Page);
        table.change_or_insert(&named(n), |host| host.enqueue(entry, now, &config));
    }
    table.set_most_resident(table.resident_bytes() / 2);
    // Each host is a group, so that it comes back alone.
    table.on_disk.as_mut().unwrap().group_bytes = 1;
    let mut evicted = 0;
    for round in 0..6 {
        evicted = 0;
        for n in 0..hosts {
            evicted += usize::from(matches!(table.get(named(n).as_str()), Some(HostRef::Read(_))));
            table.change_or_insert(&named(n), |host| host.pace.start(now));
            table.change_or_insert(&named(n), |host| host.pace.end(now));
        }
        assert!(round == 0 || evicted > hosts / 3, "round {round}: {evicted}");
    }
    assert!(evicted < hosts * 2 / 3, "{evicted}");
}

#[test]
fn what_a_change_adds_is_counted_at_once() {
    let mut table = configured(HostTable::default(), &Arc::new(TestSegments::default()), u64::MAX);
    let named = |n: usize| HostKey::of(&Url::parse(&format!("http://host{n}.example")).unwrap()).unwrap();
    for n in 0..100 {
        table.change_or_insert(&named(n), |host| host.block(Time::from_millis(1)));
    }
    let taken: usize = table
        .iter_if(|_, _| true)
        .map(|(_, host)| host.bytes() + BYTES_IN_LINE)
        .sum();
    assert_eq!(table.resident_bytes(), taken as u64);
    // Hosts that come and go leave nothing behind.
    for n in 100..1_000 {
        table.change_or_insert(&named(n), |host| host.block(Time::from_millis(1)));
        table.remove(&named(n));
    }
    assert_eq!(table.workbench.residents, 100);
    assert_eq!(table.workbench.in_line(), 100);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::cases(256), ..ProptestConfig::default() })]

    #[test]
    fn a_copy_has_all_hosts_as_they_were_when_it_began(
        most in prop_oneof![Just(0_u64), 0_u64..6_000, 0_u64..60_000, Just(u64::MAX)],
        steps in prop::collection::vec(steps(), 0..240),
    ) {
        let segments = Arc::new(TestSegments::default());
        let config = config(&segments);
        let mut table = configured(HostTable::default(), &segments, most);
        let mut model: BTreeMap<HostKey, Expected> = BTreeMap::new();
        let begin = |table: &mut HostTable| {
            let mut rows = segments.0.lock().unwrap();
            rows.first_young = rows.next;
            table.begin_copy();
        };
        begin(&mut table);
        let mut at_begin = BTreeMap::new();
        let (mut copy, mut is_all) = (Vec::new(), false);
        let last = [Step::Copy(usize::MAX), Step::Begin, Step::Copy(usize::MAX)];
        for (now, step) in (1..).zip(steps.into_iter().chain(last)) {
            let time = Time::from_millis(now);
            match step {
                Step::Change(host) => {
                    table.change_or_insert(&name(host), |host| host.block(time));
                    model.entry(name(host)).or_default().blocked_until = time;
                }
                Step::Push(host, length) => {
                    let entry = page(host, length, now);
                    model.entry(name(host)).or_default().pages.push_back(entry.url.to_string());
                    table.change_or_insert(&name(host), |host| host.enqueue(entry, time, &config));
                }
                Step::Postpone(host, length) => {
                    let entry = page(host, length, now);
                    model.entry(name(host)).or_default().postponed.push(entry.url.to_string());
                    table.change_or_insert(&name(host), |host| host.postpone(&entry, &config));
                }
                Step::Pop(host) => {
                    let expected = model.get_mut(&name(host)).and_then(|host| host.pages.pop_front());
                    if let Some(expected) = expected {
                        let turn = table.change_or_insert(&name(host), |of| of.take(&name(host), time, &config));
                        let Some(Some((entry, _))) = turn else { panic!("{turn:?}") };
                        prop_assert_eq!(&*entry.url, expected);
                    }
                }
                Step::Remove(host) => {
                    table.remove(&name(host));
                    model.remove(&name(host));
                }
                Step::Copy(_) if is_all => {}
                Step::Copy(bytes) => {
                    let more;
                    (more, is_all) = table.copy_more(bytes).unwrap();
                    copy.extend(more);
                    if is_all {
                        let read = read(&copy, &segments).unwrap();
                        prop_assert_eq!(content(&read, &config), all_expected(&at_begin));
                    }
                }
                Step::Begin => {
                    at_begin.clone_from(&model);
                    begin(&mut table);
                    copy.clear();
                    is_all = false;
                }
            }
        }
        prop_assert_eq!(content(&table, &config), all_expected(&model));
    }
}
