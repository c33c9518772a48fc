//! `why`: the state of a URL at every moment.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::time::Duration;

use frontier::report::Wait;
use frontier::{
    Entry, FailureKind, Frontier, FrontierConfig, Health, Leasing, LimitConfig, Link, NotFetched, Outcome,
    PolitenessConfig, Purpose, Reach, Refusal, ScopeConfig, SeenSetConfig, Time, Why,
};

use crate::common::{
    self, Forbid, Orders as _, START, alike, at, commit, config, end, failing, failure, give_rules, links, one, pages,
    settle, url, with_pages,
};

/// What a queued URL waits for.
#[track_caller]
fn wait(frontier: &Frontier, text: &str, now: Time) -> Wait {
    match frontier.why(&url(text), now) {
        Why::Queued { host, wait, .. } => {
            assert_eq!(host, url(text).host());
            wait
        }
        other => panic!("it should be queued, not {other:?}"),
    }
}

#[test]
fn why_names_what_decided() {
    let scope = ScopeConfig {
        reach: Reach::Host,
        ..ScopeConfig::default()
    };
    let mut frontier = common::frontier(FrontierConfig {
        scope,
        seen_set: SeenSetConfig {
            exact: false,
            ..config().seen_set
        },
        politeness: PolitenessConfig {
            delay: Duration::from_secs(2),
            ..config().politeness
        },
        ..config()
    });
    let seed = url("https://a.example/");
    frontier.add_seed(&seed, START).unwrap();
    assert_eq!(wait(&frontier, "https://a.example/", START), Wait::Turn);
    let lease = one(&mut frontier, START);
    assert_eq!(frontier.why(&seed, START), Why::Leased { attempt: 1 });
    let found = links(&["https://a.example/next"]);
    commit(&mut frontier, end(&lease, Outcome::Done).with_links(found), at(1));
    assert!(matches!(frontier.why(&seed, at(1)), Why::Seen { false_positive_rate } if false_positive_rate < 1e-9));
    assert_eq!(
        wait(&frontier, "https://a.example/next", at(1)),
        Wait::Until(at(3)),
        "its delay"
    );
    assert_eq!(wait(&frontier, "https://a.example/next", at(3)), Wait::Turn);
    let refused = frontier.why(&url("https://b.example/"), at(1));
    assert_eq!(refused, Why::Refused(Refusal::OtherHost));
    let never = frontier.why(&url("https://a.example/never"), at(1));
    assert_eq!(never, Why::NeverOffered);
}

#[test]
fn why_says_that_a_page_waits_for_robots_txt_or_that_it_is_forbidden() {
    let mut all = pages("https://a.example/private/", 1);
    all.extend(pages("https://a.example/public/", 1));
    let [private, public] = ["https://a.example/private/0", "https://a.example/public/0"];
    let mut config = config();
    config.politeness.ask_robots = true;
    config.politeness.delay = Duration::from_secs(2);
    let mut frontier = with_pages(config, &all);
    assert_eq!(wait(&frontier, public, START), Wait::Robots, "it is to be asked for");
    let robots = one(&mut frontier, START);
    assert_eq!(wait(&frontier, public, START), Wait::Robots, "it is asked for");
    give_rules(&mut frontier, &robots, Forbid::below("/private/"), START);
    assert_eq!(
        frontier.why(&url(private), START),
        Why::WillBeDropped(NotFetched::RobotsForbid)
    );
    assert_eq!(wait(&frontier, public, START), Wait::Until(at(2)));
    assert_eq!(&*one(&mut frontier, at(2)).entry.url, public);
    assert_eq!(
        frontier.why(&url(private), at(2)),
        Why::WillBeDropped(NotFetched::RobotsForbid),
        "it was dropped on the way, and is to be handed over"
    );
    assert!(matches!(frontier.lease(at(2), 1).unwrap(), Leasing::Dropped(dropped) if dropped.len() == 1));
    assert!(matches!(frontier.why(&url(private), at(2)), Why::Seen { .. }));
}

#[test]
fn a_page_waits_for_requests_in_flight_and_a_retry_for_its_time() {
    let mut frontier = with_pages(config(), &pages("https://a.example/", 2));
    let first = one(&mut frontier, START);
    assert_eq!(wait(&frontier, "https://a.example/1", START), Wait::InFlight);
    settle(&mut frontier, &first, failing(FailureKind::Status), START);
    assert_eq!(wait(&frontier, "https://a.example/0", START), Wait::Until(at(1)));
    assert_eq!(wait(&frontier, "https://a.example/1", START), Wait::Turn);
    assert_eq!(wait(&frontier, "https://a.example/0", at(1)), Wait::Turn);
    frontier.block(&first.entry.queue, at(60), at(1)).unwrap();
    assert_eq!(wait(&frontier, "https://a.example/0", at(1)), Wait::Until(at(60)));
}

#[test]
fn a_page_waits_for_an_origin_that_is_away_and_is_refused_once_it_is_given_up() {
    let mut frontier = with_pages(config(), &pages("https://a.example/", 3));
    let first = one(&mut frontier, START);
    settle(&mut frontier, &first, failing(FailureKind::Connect), at(0.5));
    let away = Wait::Away {
        since: at(0.5),
        cause: failure(FailureKind::Connect).message,
    };
    for n in 0..3 {
        assert_eq!(wait(&frontier, &format!("https://a.example/{n}"), at(0.5)), away);
    }
    let mut now = at(0.5);
    while frontier.report().origins_given_up == 0 {
        let probe = common::next(&mut frontier, &mut now);
        settle(&mut frontier, &probe, failing(FailureKind::Connect), now);
    }
    assert!(matches!(
        frontier.why(&url("https://a.example/1"), now),
        Why::Seen { .. }
    ));
    let new = frontier.why(&url("https://a.example/new"), now);
    assert_eq!(new, Why::Refused(Refusal::HostDown));
}

#[test]
fn a_page_among_too_many_near_duplicates_waits_for_everything_else_or_will_be_dropped() {
    let mut config = config();
    config.traps.max_near_duplicates = NonZeroU32::new(1);
    config.traps.max_near_duplicates_in_all = NonZeroU32::new(2);
    let mut frontier = with_pages(config, &pages("https://a.example/list/", 9));
    let fetch = |frontier: &mut Frontier| {
        let lease = one(frontier, START);
        let done = end(&lease, Outcome::Done).with_fingerprint(alike(&lease));
        commit(frontier, done, START);
    };
    for _ in 0..3 {
        fetch(&mut frontier);
    }
    let last = "https://a.example/list/8";
    assert_eq!(
        wait(&frontier, last, START),
        Wait::EverythingElse,
        "its turn has not come yet"
    );
    offer_late(&mut frontier);
    assert_eq!(
        wait(&frontier, "https://a.example/list/99", START),
        Wait::EverythingElse
    );
    fetch(&mut frontier);
    assert_eq!(
        frontier.why(&url(last), START),
        Why::WillBeDropped(NotFetched::NearDuplicates)
    );
    let new = frontier.why(&url("https://a.example/list/100"), START);
    assert_eq!(new, Why::Refused(Refusal::NearDuplicates));
}

fn offer_late(frontier: &mut Frontier) {
    frontier.offer(&links(&["https://a.example/list/99"]), START).unwrap();
}

/// Two hosts of one address: what `why` says that can be asked now is what is handed out.
#[test]
fn a_page_waits_for_the_address_of_its_host_and_for_other_hosts_of_that_address() {
    let mut config = config();
    config.politeness.per_address = true;
    config.politeness.delay = Duration::from_secs(2);
    let [a, b] = ["https://a.example/", "https://b.example/"];
    let mut frontier = with_pages(config, &links(&[a, b]));
    for _ in 0..2 {
        assert_eq!(wait(&frontier, b, START), Wait::AddressLookup);
        let lease = one(&mut frontier, START);
        assert_eq!(lease.entry.purpose, Purpose::Address);
        let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        let known = lease.settle(Outcome::Done).with_address(Some(address));
        commit(&mut frontier, known, START);
    }
    assert_eq!(wait(&frontier, a, START), Wait::Turn);
    assert_eq!(
        wait(&frontier, b, START),
        Wait::SharedAddress,
        "a.example is asked first"
    );
    let first = one(&mut frontier, START);
    assert_eq!(&*first.entry.url, a);
    assert_eq!(wait(&frontier, b, START), Wait::SharedAddress);
    settle(&mut frontier, &first, Outcome::Done, START);
    assert_eq!(
        wait(&frontier, b, at(1)),
        Wait::SharedAddress,
        "the delay of the address"
    );
    assert_eq!(frontier.lease(at(1), 1).unwrap(), Leasing::NotUntil(at(2)));
    assert_eq!(&*one(&mut frontier, at(2)).entry.url, b);
}

#[test]
fn a_page_waits_for_those_in_flight_that_may_spend_the_budget_of_its_host() {
    let mut config = config();
    config.politeness.per_host = NonZeroU32::new(5).unwrap();
    config.limits.max_pages_per_host = Some(2);
    let mut frontier = with_pages(config, &pages("https://a.example/", 4));
    let (first, second) = (one(&mut frontier, START), one(&mut frontier, START));
    assert_eq!(wait(&frontier, "https://a.example/2", START), Wait::InFlight);
    assert_eq!(frontier.lease(START, 1).unwrap(), Leasing::AllLeased);
    settle(&mut frontier, &first, Outcome::Redirected, START);
    assert_eq!(wait(&frontier, "https://a.example/2", START), Wait::Turn);
    settle(&mut frontier, &second, Outcome::Done, START);
    let third = one(&mut frontier, START);
    settle(&mut frontier, &third, Outcome::Done, START);
    assert_eq!(
        frontier.why(&url("https://a.example/3"), START),
        Why::WillBeDropped(NotFetched::HostBudget)
    );
}

#[test]
fn a_page_is_not_said_to_be_next_once_the_page_budget_is_spent() {
    let mut config = config();
    config.limits.max_pages = Some(1);
    let mut frontier = with_pages(config, &pages("https://a.example/", 2));
    let mut hosts = with_pages(
        FrontierConfig {
            limits: LimitConfig {
                max_pages: Some(1),
                ..common::config().limits
            },
            ..common::config()
        },
        &links(&["https://a.example/", "https://b.example/"]),
    );
    let redirect = one(&mut hosts, START);
    let waiting = "https://b.example/";
    assert_eq!(
        wait(&hosts, waiting, START),
        Wait::PagesInFlight,
        "a redirect spends no budget"
    );
    assert_eq!(hosts.lease(START, 1).unwrap(), Leasing::AllLeased);
    settle(&mut hosts, &redirect, Outcome::Redirected, START);
    assert_eq!(wait(&hosts, waiting, START), Wait::Turn);

    let first = one(&mut frontier, START);
    settle(&mut frontier, &first, Outcome::Done, START);
    assert_eq!(wait(&frontier, "https://a.example/1", START), Wait::PageBudget);
    assert_eq!(frontier.lease(START, 1).unwrap(), Leasing::BudgetSpent);
}

#[test]
fn the_chance_that_the_seen_set_is_wrong_is_named_where_there_is_one() {
    let seen = |false_positive_rate| Why::Seen { false_positive_rate }.to_string();
    assert_eq!(
        seen(0.0),
        "seen, and no longer queued: it was fetched, failed or dropped"
    );
    assert!(
        seen(0.01).ends_with("(The seen-set says so of a share of 1.0e-2 of the URLs that it never met.)"),
        "{}",
        seen(0.01)
    );
}

#[test]
fn a_text_names_the_time_and_what_is_ahead() {
    let mut frontier = with_pages(config(), &pages("https://a.example/", 2));
    let first = one(&mut frontier, START);
    settle(&mut frontier, &first, failing(FailureKind::Status), START);
    let why = frontier.why(&url("https://a.example/0"), at(0.25));
    assert_eq!(
        why.to_string(),
        "queued at a.example: its host can be asked from 2023-11-14T22:13:21.000Z on (class 3, 1 ahead of it; its host has 1 more waiting, 0 in flight)"
    );
}

#[test]
fn why_takes_the_url_of_an_entry_back() {
    let mut frontier = with_pages(config(), &links(&["https://a.example/b/?y=1&x=2"]));
    let lease = one(&mut frontier, START);
    let url = lease.entry.canonical_url().unwrap();
    assert_eq!((url.url().as_str(), url.key()), (&*lease.entry.url, lease.entry.key()));
    assert_eq!(frontier.why(&url, START), Why::Leased { attempt: 1 });
}

#[test]
fn a_url_that_a_full_seen_set_refuses_is_said_to_be_refused() {
    let mut config = config();
    config.seen_set.exact = false;
    config.seen_set.capacity = 50;
    config.seen_set.hash = sieve::Hashing::Murmur3 { seed: 1 };
    config.seen_set.on_saturation = sieve::OnSaturation::Refuse;
    let mut frontier = with_pages(config, &pages("https://a.example/", 10));
    let new = url("https://a.example/new");
    assert_eq!(frontier.why(&new, START), Why::NeverOffered);
    frontier.offer(&pages("https://a.example/more/", 100), START).unwrap();
    assert_eq!(frontier.why(&new, START), Why::Refused(Refusal::Saturated));
}

#[test]
fn everything_that_waits_is_visited_once_and_an_origin_that_is_away_says_why() {
    let mut frontier = common::frontier(config());
    frontier.offer(&pages("https://a.example/", 300), START).unwrap();
    frontier.offer(&pages("https://b.example/", 3), START).unwrap();
    let leases = [one(&mut frontier, START), one(&mut frontier, START)];
    let lost = leases
        .iter()
        .find(|lease| lease.entry.queue.as_str() == "b.example")
        .unwrap();
    commit(&mut frontier, end(lost, failing(FailureKind::Connect)), at(1));

    let mut met = Vec::new();
    let mut visit = |entry: frontier::Entry| {
        met.push(entry.url.to_string());
        std::ops::ControlFlow::Continue(())
    };
    frontier.visit_waiting(&mut visit).unwrap();
    assert_eq!(met.len() as u64, frontier.report().queued);
    assert!(
        met.contains(&lost.entry.url.to_string()),
        "the retry, which is not due yet"
    );
    met.sort();
    met.dedup();
    assert_eq!(met.len(), 302);

    let mut count = 0;
    let mut visit = |_| {
        count += 1;
        if count == 7 {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    };
    frontier.visit_waiting(&mut visit).unwrap();
    assert_eq!(count, 7);

    let held_up: Vec<_> = frontier.held_up(at(1)).into_iter().map(|host| host.health).collect();
    assert_eq!(held_up.len(), 1);
    assert_eq!(held_up[0].origin, Some(common::origin("https://b.example/")));
    assert_eq!((held_up[0].state, held_up[0].since), (Health::Away, Some(at(1))));
    assert!(held_up[0].until > Some(at(1)));
}

#[test]
fn the_place_in_the_queue_is_the_number_of_leases_before_it() {
    let mut frontier = with_pages(config(), &pages("http://site.example/", 12));
    let origin = common::origin("http://site.example/");
    let sitemap = |n| {
        Link::sitemap(
            url(&format!("http://site.example/map-{n}.xml")),
            origin.clone(),
            0,
            None,
        )
    };
    frontier.offer(&[0, 1, 2].map(sitemap), START).unwrap();
    let host = url("http://site.example/").host();
    for failed in 0..3 {
        let lease = one(&mut frontier, START);
        let outcome = if failed == 0 {
            failing(FailureKind::Broken)
        } else {
            Outcome::Done
        };
        settle(&mut frontier, &lease, outcome, START);
    }
    let mut waiting = Vec::new();
    let mut visit = |entry: Entry| {
        waiting.push(entry);
        ControlFlow::Continue(())
    };
    frontier.visit_waiting(&mut visit).unwrap();
    let retry = waiting.iter().find(|entry| entry.attempts > 0).unwrap();
    let place = |frontier: &Frontier, entry: &Entry, now| {
        let why = frontier.why(&entry.canonical_url().unwrap(), now);
        if let Why::Queued { place, .. } = why {
            Some(place)
        } else {
            None
        }
    };
    let others = waiting.len() as u64 - 1;
    let of_retry = place(&frontier, retry, START).unwrap();
    assert_eq!(
        (of_retry.ahead, of_retry.others_of_host, of_retry.attempts),
        (others, others, 1),
        "it is not due"
    );

    // Now it is.
    let now = at(1000);
    frontier.set_delay(&host, Duration::ZERO, now).unwrap();
    assert!(matches!(frontier.lease(now, 0).unwrap(), Leasing::Ready(_)));
    let ahead: HashMap<_, _> = waiting
        .iter()
        .map(|entry| (entry.url.clone(), place(&frontier, entry, now).unwrap().ahead))
        .collect();
    for position in 0..=others {
        let lease = one(&mut frontier, now);
        assert_eq!(ahead[&lease.entry.url], position, "{}", lease.entry.url);
        assert_eq!(place(&frontier, &lease.entry, now), None);
        settle(&mut frontier, &lease, Outcome::Done, now);
    }
}
