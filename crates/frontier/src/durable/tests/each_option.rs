//! Each option that is changed when a frontier is opened again, alone.

use std::num::NonZeroU32;
use std::time::Duration;

use sieve::OnSaturation;

use super::changed_options::good;
use super::common::{
    self, Orders as _, START, alike, answer, at, commit, end, give_rules, links, one, pages, ready, url,
};
use super::settlements::settlement;
use super::stores::{Recorder, open_store};
use crate::config::{FrontierConfig, SeenSetConfig};
use crate::scope::{Reach, Refusal, ScopeConfig};
use crate::settlement::{Outcome, Settled, Verdict};
use crate::{Fingerprint, Frontier, Lease, Leasing, NotFetched, OpenError, Time};

type Changing = fn(&mut FrontierConfig);

/// Opens a frontier in a store, lets it do something, and opens it again.
fn reopened(
    config: &FrontierConfig,
    work: impl FnOnce(&mut Frontier),
    change: impl FnOnce(&mut FrontierConfig),
    now: Time,
) -> Frontier {
    let recorder = Recorder::default();
    let mut frontier = open_store(recorder.clone(), config.clone(), START).unwrap().frontier;
    work(&mut frontier);
    frontier.persist(b"", now).unwrap();
    drop(frontier);
    let mut config = config.clone();
    change(&mut config);
    open_store(recorder, config, now).unwrap().frontier
}

fn fetch(frontier: &mut Frontier, lease: &Lease, now: Time) -> Settled {
    commit(frontier, settlement(lease, &good()), now)
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_shorter_delay_applies_at_once_and_a_longer_one_too() {
    for (was, is) in [(HOUR, Duration::from_secs(2)), (Duration::from_secs(2), HOUR)] {
        for per_host in [1, 2] {
            let mut config = common::config();
            config.politeness.delay = was;
            config.politeness.per_host = NonZeroU32::new(per_host).unwrap();
            let fetch_one = |frontier: &mut Frontier| {
                frontier.offer(&pages("http://a.example/", 5), START).unwrap();
                let lease = ready(frontier, START).remove(0);
                fetch(frontier, &lease, START);
            };
            let mut frontier = reopened(&config, fetch_one, |config| config.politeness.delay = is, at(1));
            assert_eq!(frontier.lease(at(1), 9).unwrap(), Leasing::NotUntil(START + is));
            assert_eq!(ready(&mut frontier, START + is).len(), 1);
        }
    }
}

#[test]
fn an_operators_delay_of_a_host_stays_where_the_delay_of_all_hosts_becomes_shorter() {
    let seconds = Duration::from_secs;
    let mut config = common::config();
    config.politeness.delay = seconds(5);
    // While pages wait, while none does, and with none ever.
    for queued in [2, 1, 0] {
        let set = |frontier: &mut Frontier| {
            frontier
                .set_delay(&url("http://a.example/").host(), seconds(3), START)
                .unwrap();
            frontier.offer(&pages("http://a.example/", queued), START).unwrap();
            if queued > 0 {
                let lease = ready(frontier, START).remove(0);
                fetch(frontier, &lease, START);
            }
        };
        let mut frontier = reopened(&config, set, |config| config.politeness.delay = seconds(1), at(100));
        frontier.offer(&pages("http://a.example/", 4), at(100)).unwrap();
        let lease = ready(&mut frontier, at(100)).remove(0);
        fetch(&mut frontier, &lease, at(100));
        assert_eq!(
            frontier.lease(at(100), 9).unwrap(),
            Leasing::NotUntil(at(103)),
            "{queued}"
        );
    }
}

#[test]
fn a_crawl_delay_is_cut_to_the_longest_that_is_obeyed_now() {
    let mut config = common::config();
    config.politeness.ask_robots = true;
    let read_rules = |frontier: &mut Frontier| {
        frontier.offer(&pages("http://a.example/", 5), START).unwrap();
        let robots = one(frontier, START);
        let rules = common::Forbid::below("/none 50000");
        give_rules(frontier, &robots, rules, START);
        let refused = frontier.lease(START, 1).unwrap();
        assert_eq!(refused, Leasing::NotUntil(at(50)));
    };
    for seconds in [10_u32, 0] {
        let cut = |config: &mut FrontierConfig| config.politeness.max_crawl_delay = Duration::from_secs(seconds.into());
        let mut frontier = reopened(&config, read_rules, cut, START);
        assert_eq!(ready(&mut frontier, at(seconds)).len(), 1);
    }
}

#[test]
fn without_robots_txt_the_pages_of_an_origin_that_waited_for_it_are_fetched() {
    let mut config = common::config();
    config.politeness.ask_robots = true;
    let fail = |frontier: &mut Frontier| {
        frontier
            .offer(&links(&["http://a.example/1", "http://a.example:81/2"]), START)
            .unwrap();
        // The robots.txt of one origin is retried later.
        let robots = one(frontier, START);
        let failed = Outcome::Failed {
            failure: common::failure(crate::FailureKind::Status),
            retry_after: Some(HOUR),
        };
        answer(frontier, &robots, failed, START);
    };
    let mut frontier = reopened(&config, fail, |config| config.politeness.ask_robots = false, at(1));
    let mut urls = Vec::new();
    for _ in 0..2 {
        let lease = ready(&mut frontier, at(1)).remove(0);
        urls.push(lease.entry.url.to_string());
        fetch(&mut frontier, &lease, at(1));
    }
    urls.sort();
    assert_eq!(urls, ["http://a.example/1", "http://a.example:81/2"]);
    assert_eq!(frontier.lease(at(1), 1).unwrap(), Leasing::Drained);
}

#[test]
fn a_lower_budget_of_a_host_drops_what_waits() {
    let fetch_some = |frontier: &mut Frontier| {
        frontier.offer(&pages("http://a.example/", 20), START).unwrap();
        for _ in 0..4 {
            let lease = ready(frontier, START).remove(0);
            fetch(frontier, &lease, START);
        }
        ready(frontier, START);
    };
    for most in [0, 3, 4] {
        let lower = |config: &mut FrontierConfig| config.limits.max_pages_per_host = Some(most);
        let mut frontier = reopened(&common::config(), fetch_some, lower, at(1));
        let Leasing::Dropped(dropped) = frontier.lease(at(1), 9).unwrap() else {
            panic!("{most}: {:?}", frontier.report());
        };
        assert_eq!(dropped.len(), 16);
        assert!(dropped.iter().all(|one| one.why == NotFetched::HostBudget));
        assert_eq!(frontier.lease(at(1), 9).unwrap(), Leasing::Drained);
        let verdicts = frontier.offer(&links(&["http://a.example/new"]), at(1)).unwrap();
        assert_eq!(verdicts, [Verdict::Refused(Refusal::HostBudget)]);
    }
}

#[test]
fn fewer_requests_per_address_at_a_time_hold_for_hosts_that_were_admitted() {
    let mut config = common::config();
    config.politeness.per_address = true;
    config.politeness.per_host = NonZeroU32::new(3).unwrap();
    let admit = |frontier: &mut Frontier| {
        let hosts = ["http://a.example/1", "http://b.example/1", "http://c.example/1"];
        frontier.offer(&links(&hosts), START).unwrap();
        for lease in ready(frontier, START) {
            let one = lease.settle(Outcome::Done).with_address(Some([192, 0, 2, 1].into()));
            frontier.settle(&[one], START).unwrap();
        }
    };
    let mut frontier = reopened(
        &config,
        admit,
        |config| config.politeness.per_host = NonZeroU32::MIN,
        at(1),
    );
    for _ in 0..3 {
        let leases = ready(&mut frontier, at(1));
        assert_eq!(leases.len(), 1, "at one address");
        fetch(&mut frontier, &leases[0], at(1));
    }
    assert_eq!(frontier.lease(at(1), 1).unwrap(), Leasing::Drained);
}

#[test]
fn fewer_fingerprints_are_the_bound_at_once() {
    let compare = |frontier: &mut Frontier, numbers: std::ops::Range<u64>, now| {
        for n in numbers {
            frontier
                .offer(&links(&[&format!("http://a.example/{n}")]), now)
                .unwrap();
            let lease = one(frontier, now);
            let simhash = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let fingerprint = Fingerprint::new(Some(u128::from(n).into()), Some(simhash.into()));
            commit(frontier, end(&lease, Outcome::Done).with_fingerprint(fingerprint), now);
        }
    };
    let mut config = common::config();
    config.traps.compare_one_of = NonZeroU32::MIN;
    let fewer = |config: &mut FrontierConfig| config.traps.max_fingerprints = 10;
    let mut frontier = reopened(&config, |frontier| compare(frontier, 0..100, START), fewer, at(1));
    compare(&mut frontier, 100..120, at(1));
    assert_eq!(frontier.report().resemblance.forgotten, 110);
}

#[test]
fn a_higher_limit_of_near_duplicates_opens_what_was_closed() {
    let mut config = common::config();
    config.traps.compare_one_of = NonZeroU32::MIN;
    (
        config.traps.max_near_duplicates,
        config.traps.max_near_duplicates_in_all,
    ) = (NonZeroU32::new(2), NonZeroU32::new(4));
    let close = |frontier: &mut Frontier| {
        frontier.offer(&pages("http://a.example/", 8), START).unwrap();
        while let Leasing::Ready(leases) = frontier.lease(START, 1).unwrap() {
            for lease in leases {
                let done = end(&lease, Outcome::Done).with_fingerprint(alike(&lease));
                commit(frontier, done, START);
            }
        }
        let verdicts = frontier.offer(&pages("http://a.example/", 30)[20..], START).unwrap();
        assert_eq!(verdicts[0], Verdict::Refused(Refusal::NearDuplicates));
    };
    for most in [None, NonZeroU32::new(100)] {
        let raise = |config: &mut FrontierConfig| {
            (
                config.traps.max_near_duplicates,
                config.traps.max_near_duplicates_in_all,
            ) = (most, most);
        };
        let mut frontier = reopened(&config, close, raise, at(1));
        let verdicts = frontier.offer(&pages("http://a.example/", 30)[20..], at(1)).unwrap();
        assert_eq!(verdicts, [Verdict::Queued; 10]);
    }
}

#[test]
fn a_seen_set_that_grows_takes_a_larger_capacity_and_another_names_a_new_directory() {
    for (exact, links, larger) in [
        (false, 0, 101),
        (false, 30, 5_000),
        (false, 900, 1_000),
        (true, 300, 400),
    ] {
        let mut config = common::config();
        config.seen_set.exact = exact;
        config.seen_set.capacity = 100;
        config.seen_set.on_saturation = OnSaturation::Grow;
        let with = |capacity| FrontierConfig {
            seen_set: SeenSetConfig {
                capacity,
                ..config.clone().seen_set
            },
            ..config.clone()
        };
        let recorder = Recorder::default();
        let mut frontier = open_store(recorder.clone(), with(100), START).unwrap().frontier;
        frontier.offer(&pages("http://a.example/", links), START).unwrap();
        frontier.persist(b"", START).unwrap();
        let refused = |capacity| {
            open_store(recorder.clone(), with(capacity), START)
                .unwrap_err()
                .to_string()
        };
        assert!(refused(99).contains("in a new directory"), "{}", refused(99));
        // Killed at once, and after more calls, which are made again.
        for more in [0, 700] {
            let mut opened = open_store(recorder.clone(), with(larger), START).unwrap();
            let again = opened
                .frontier
                .offer(&pages("http://a.example/", links), opened.now)
                .unwrap();
            assert!(
                again.iter().all(|verdict| *verdict == Verdict::Seen),
                "{links} of {larger}"
            );
            opened
                .frontier
                .offer(&pages("http://b.example/", more), opened.now)
                .unwrap();
            opened.frontier.persist(b"", opened.now).unwrap();
        }
        let report = open_store(recorder.clone(), with(larger), START)
            .unwrap()
            .frontier
            .report();
        assert!(
            report.queued as usize >= links + 690,
            "{} of {links} and 700",
            report.queued
        );
        assert_eq!(
            report.saturation.capacity,
            (!exact).then_some(larger),
            "what levels go by"
        );
        assert!(refused(100).contains("cannot become 100"));
    }
}

#[test]
fn links_that_a_full_seen_set_refused_are_missing_once_it_refuses_none() {
    let mut config = common::config();
    (config.seen_set.exact, config.seen_set.capacity) = (false, 100);
    config.seen_set.on_saturation = OnSaturation::Refuse;
    let fill = |frontier: &mut Frontier| {
        frontier.offer(&pages("http://a.example/", 400), START).unwrap();
    };
    for (is, is_missing) in [(OnSaturation::Warn, true), (OnSaturation::Refuse, false)] {
        let frontier = reopened(&config, fill, |config| config.seen_set.on_saturation = is, at(1));
        let refused = frontier.report().links.refused;
        assert!(refused.contains_key(&Refusal::Saturated), "{refused:?}");
        assert_eq!(frontier.report().refused_earlier, is_missing);
    }
}

#[test]
fn options_that_the_state_depends_on_are_refused_with_both_values() {
    for exact in [false, true] {
        refuses_what_the_state_depends_on(&FrontierConfig {
            seen_set: SeenSetConfig {
                exact,
                ..common::config().seen_set
            },
            ..common::config()
        });
    }
}

fn refuses_what_the_state_depends_on(config: &FrontierConfig) {
    let changes: [(&str, Changing); 7] = [
        ("exact", |config| config.seen_set.exact = !config.seen_set.exact),
        ("capacity", |config| config.seen_set.capacity += 1),
        ("false_positive_rate", |config| {
            config.seen_set.false_positive_rate /= 3.0;
        }),
        ("on_saturation", |config| {
            config.seen_set.on_saturation = OnSaturation::Grow;
        }),
        ("hash", |config| config.seen_set.hash = sieve::Hashing::Xxh3 { seed: 3 }),
        ("scope.reach", |config| config.scope.reach = Reach::Host),
        ("per_address", |config| config.politeness.per_address = true),
    ];
    let recorder = Recorder::default();
    open_store(recorder.clone(), config.clone(), START).unwrap();
    let before = recorder.image();
    for (name, change) in changes {
        let mut changed = config.clone();
        change(&mut changed);
        let error = open_store(recorder.clone(), changed, START).unwrap_err();
        assert!(
            matches!(&error, OpenError::Changed { option, .. } if *option == name),
            "{error}"
        );
        assert!(recorder.image() == before, "{name}: it was changed all the same");
    }
    // The secret of the hash is that of the first run. What happens when the filter is full may change, but not whether it grows.
    let other = FrontierConfig {
        seen_set: SeenSetConfig {
            hash: sieve::Hashing::random(),
            on_saturation: OnSaturation::Refuse,
            ..config.clone().seen_set
        },
        ..config.clone()
    };
    let opened = open_store(recorder.clone(), other.clone(), START).unwrap();
    assert_eq!(opened.config.seen_set.hash, config.seen_set.hash);
    assert!(opened.for_new_links.is_empty());
    let mut narrower = other;
    narrower.scope.max_depth = Some(1);
    narrower.scope.exclude = vec!["/b".to_owned()];
    let mut opened = open_store(recorder.clone(), narrower.clone(), START).unwrap();
    assert_eq!(opened.for_new_links, ["max_depth", "exclude"]);
    opened.frontier.persist(b"", START).unwrap();
    let opened = open_store(recorder.clone(), narrower.clone(), START).unwrap();
    assert!(opened.for_new_links.is_empty(), "it is said once");
    let mut reordered = narrower.clone();
    reordered.scope.exclude.push("/b".to_owned());
    let opened = open_store(recorder.clone(), reordered, START).unwrap();
    assert!(opened.for_new_links.is_empty(), "these are the same patterns");
    assert!(matches!(
        open_store(
            recorder,
            FrontierConfig {
                scope: ScopeConfig {
                    exclude: vec!["(".to_owned()],
                    ..config.scope.clone()
                },
                ..config.clone()
            },
            START
        ),
        Err(OpenError::Config(_))
    ));
}
