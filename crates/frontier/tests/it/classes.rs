//! Classes: what comes first, within a host, among hosts and among those of an address, and that nothing starves.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use frontier::{
    Class, FailureKind, Frontier, FrontierConfig, Leasing, Link, OrderRule, Outcome, Purpose, ScopeConfig, Verdict, Why,
};
use proptest::prelude::*;

use crate::common::{self, START as NOW, at, commit, config, end, failing, link, one, url};

pub(crate) fn class(number: u8) -> Class {
    number.try_into().unwrap()
}

fn of_class(text: &str, number: u8) -> Link {
    link(text).with_class(class(number))
}

/// Leases and ends one after the other until nothing waits. Returns their URLs, without the scheme.
fn drained(frontier: &mut Frontier) -> Vec<String> {
    let mut urls = Vec::new();
    while !frontier.report().is_drained() {
        let lease = one(frontier, NOW);
        urls.push(lease.entry.url.trim_start_matches("http://").to_owned());
        commit(frontier, end(&lease, Outcome::Done), NOW);
    }
    urls
}

fn place(frontier: &Frontier, text: &str) -> (u64, Class, Option<String>) {
    match frontier.why(&url(text), NOW) {
        Why::Queued { place, rule, .. } => (place.ahead, place.class, rule),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_host_that_renews_what_comes_first_lets_the_last_class_through_after_eight_turns() {
    for is_other_host in [false, true] {
        let mut frontier = Frontier::in_memory(config()).unwrap();
        let last = if is_other_host {
            "http://b.example/"
        } else {
            "http://a.example/last"
        };
        let mut links: Vec<_> = (0..1000)
            .map(|n| of_class(&format!("http://a.example/{n}"), 0))
            .collect();
        links.push(of_class(last, 7));
        frontier.offer(&links, NOW).unwrap();
        let mut turns = 1;
        while let lease = one(&mut frontier, NOW)
            && &*lease.entry.url != last
        {
            turns += 1;
            assert!(turns < 100, "it starves");
            let next = of_class(&format!("http://a.example/next/{turns}"), 0);
            commit(&mut frontier, end(&lease, Outcome::Done).with_links(vec![next]), NOW);
        }
        assert_eq!(turns, 8, "on another host: {is_other_host}");
    }
}

#[test]
fn with_all_classes_in_use_each_has_a_turn_within_56() {
    for hosts in [1, 8] {
        let mut frontier = Frontier::in_memory(config()).unwrap();
        let page = |number: u8, n: usize| {
            let host = usize::from(number) % hosts;
            of_class(&format!("http://host{host}.example/{number}/{n}"), number)
        };
        let links: Vec<_> = (0..8)
            .flat_map(|number| (0..600).map(move |n| page(number, n)))
            .collect();
        frontier.offer(&links, NOW).unwrap();
        let mut last_turn = [0; 8];
        for turn in 1..=600 {
            let lease = one(&mut frontier, NOW);
            let served = usize::from(lease.entry.class.number());
            assert!(
                turn - last_turn[served] <= 56,
                "class {served} at turn {turn}, {hosts} hosts"
            );
            last_turn[served] = turn;
            commit(&mut frontier, end(&lease, Outcome::Done), NOW);
        }
        assert!(last_turn.iter().all(|turn| 600 - turn < 56), "{last_turn:?}");
        assert!(last_turn[1..].iter().all(|turn| *turn > 0));
    }
}

#[test]
fn a_page_of_a_better_class_takes_its_host_forward_which_then_waits_as_the_others_do() {
    let mut frontier = Frontier::in_memory(config()).unwrap();
    let links: Vec<_> = (0..5)
        .map(|n| of_class(&format!("http://host{n}.example/"), 5))
        .collect();
    frontier.offer(&links, NOW).unwrap();
    frontier
        .offer(&[of_class("http://host3.example/news", 1)], NOW)
        .unwrap();
    let expected = [
        "host3.example/news",
        "host0.example/",
        "host1.example/",
        "host2.example/",
    ];
    let urls = drained(&mut frontier);
    assert_eq!(urls[..4], expected);
    assert_eq!(urls.len(), 6);
}

#[test]
fn a_host_that_is_often_taken_forward_has_as_many_other_turns_as_the_others() {
    let mut frontier = Frontier::in_memory(config()).unwrap();
    let all = (0..5).flat_map(|host| (0..200).map(move |n| of_class(&format!("http://host{host}.example/{n}"), 5)));
    frontier.offer(&all.collect::<Vec<_>>(), NOW).unwrap();
    let mut turns = [0_u32; 5];
    for n in 0..400 {
        if n < 100 {
            let news = of_class(&format!("http://host3.example/news/{n}"), 1);
            frontier.offer(&[news], NOW).unwrap();
        }
        let lease = one(&mut frontier, NOW);
        let host = lease.entry.queue.as_str().as_bytes()[4] - b'0';
        turns[usize::from(host)] += u32::from(lease.entry.class == class(5));
        commit(&mut frontier, end(&lease, Outcome::Done), NOW);
    }
    assert!(turns.iter().all(|turns| (50..70).contains(turns)), "{turns:?}");
}

#[test]
fn the_origins_of_a_host_take_turns_within_each_class() {
    let mut frontier = Frontier::in_memory(config()).unwrap();
    let usual = (0..500).flat_map(|n| ["http", "https"].map(|scheme| link(&format!("{scheme}://a.example/{n}"))));
    frontier.offer(&usual.collect::<Vec<_>>(), NOW).unwrap();
    let mut served = [0_u32; 2];
    for turn in 0..800 {
        frontier
            .offer(&[of_class(&format!("https://a.example/news/{turn}"), 0)], NOW)
            .unwrap();
        let lease = one(&mut frontier, NOW);
        let is_usual = lease.entry.class == Class::default();
        served[usize::from(lease.entry.url.starts_with("https"))] += u32::from(is_usual);
        commit(&mut frontier, end(&lease, Outcome::Done), NOW);
    }
    assert_eq!(served, [50, 50]);
}

#[test]
fn a_host_that_was_forgotten_has_no_second_turn_when_it_returns() {
    let mut config = config();
    config.limits.max_hosts = 4;
    let mut frontier = Frontier::in_memory(config).unwrap();
    let pages = |name: char, path: &str| {
        (0..100)
            .map(|n| of_class(&format!("http://{name}.example/{path}{n}"), 5))
            .collect::<Vec<_>>()
    };
    frontier.offer(&[of_class("http://a.example/", 5)], NOW).unwrap();
    frontier.offer(&[pages('b', ""), pages('c', "")].concat(), NOW).unwrap();
    // It is taken forward, both of its pages are fetched, and its place in class 5 is left.
    frontier.offer(&[of_class("http://a.example/news", 0)], NOW).unwrap();
    let mut turns = [0_u32; 3];
    for turn in 0..150 {
        if turn == 10 {
            frontier.offer(&pages('a', "again/"), at(3_600)).unwrap();
        }
        let lease = one(&mut frontier, at(3_600));
        turns[usize::from(lease.entry.queue.as_str().as_bytes()[0] - b'a')] += u32::from(turn >= 10);
        commit(&mut frontier, end(&lease, Outcome::Done), at(3_600));
    }
    assert!(turns.iter().all(|turns| (45..50).contains(turns)), "{turns:?}");
}

#[test]
fn at_an_address_forbidden_pages_and_old_places_spend_no_turn_of_their_class() {
    let mut config = config();
    config.politeness.per_address = true;
    let mut frontier = Frontier::in_memory(config).unwrap();
    let all = (0..30).flat_map(|host| (0..20).map(move |n| of_class(&format!("http://host{host}.example/{n}"), 5)));
    frontier.offer(&all.collect::<Vec<_>>(), NOW).unwrap();
    frontier.offer(&[of_class("http://last.example/", 7)], NOW).unwrap();
    let (mut now, mut turns) = (NOW, 0);
    loop {
        let lease = common::next(&mut frontier, &mut now);
        if lease.entry.purpose == Purpose::Address {
            let address = lease.settle(Outcome::Done).with_address(Some([192, 0, 2, 1].into()));
            commit(&mut frontier, address.valid_for(Duration::from_secs(3600)), now);
            continue;
        }
        if &*lease.entry.url == "http://last.example/" {
            break;
        }
        turns += 1;
        assert!(turns < 60, "it starves");
        let next = of_class(&format!("http://host{}.example/news/{turns}", turns * 7 % 30), 0);
        commit(&mut frontier, end(&lease, Outcome::Done).with_links(vec![next]), now);
    }
}

#[test]
fn what_waits_and_what_is_dropped_says_its_class_and_the_best_is_dropped_first() {
    let mut frontier = Frontier::in_memory(config()).unwrap();
    let numbers = [5, 3, 0, 7];
    let links = numbers.map(|number| of_class(&format!("http://a.example/{number}"), number));
    frontier.offer(&links, NOW).unwrap();
    let mut waiting = Vec::new();
    let mut visit = |entry: frontier::Entry| {
        waiting.push((entry.url.to_string(), entry.class));
        std::ops::ControlFlow::Continue(())
    };
    frontier.visit_waiting(&mut visit).unwrap();
    waiting.sort();
    let expected = |numbers: [u8; 4]| numbers.map(|number| (format!("http://a.example/{number}"), class(number)));
    assert_eq!(waiting, expected([0, 3, 5, 7]));
    let closed = frontier::HostPolicy {
        closed: Some(true),
        ..frontier::HostPolicy::default()
    };
    frontier
        .set_policy(&url("http://a.example/").host(), &closed, NOW)
        .unwrap();
    let Leasing::Dropped(dropped) = frontier.lease(NOW, 9).unwrap() else {
        panic!("nothing was dropped");
    };
    let dropped: Vec<_> = dropped
        .into_iter()
        .map(|one| (one.entry.url.to_string(), one.entry.class))
        .collect();
    assert_eq!(dropped, expected([0, 3, 5, 7]));
}

#[test]
fn pages_that_are_not_requested_spend_no_turn_of_their_class() {
    for (other, most) in [("a", 8), ("b", 16)] {
        let mut config = config();
        config.politeness.ask_robots = true;
        let mut frontier = Frontier::in_memory(config).unwrap();
        let forbidden = (0..100).map(|n| of_class(&format!("http://{other}.example/none/{n}"), 7));
        let others = (0..500).map(|n| of_class(&format!("http://a.example/{n}"), 0));
        let last = format!("http://{other}.example/last");
        let all = forbidden.chain([of_class(&last, 7)]).chain(others);
        frontier.offer(&all.collect::<Vec<_>>(), NOW).unwrap();
        let mut turns = 0;
        loop {
            match frontier.lease(NOW, 1).unwrap() {
                Leasing::Dropped(_) => {}
                Leasing::Ready(leases) if *leases[0].entry.url == *last => break,
                Leasing::Ready(leases) if common::is_robots(&leases[0]) => {
                    common::give_rules(&mut frontier, &leases[0], common::Forbid::below("/none"), NOW);
                }
                Leasing::Ready(leases) => {
                    turns += 1;
                    assert!(turns < most, "{turns} turns before the last page of {other}");
                    commit(&mut frontier, end(&leases[0], Outcome::Done), NOW);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn what_comes_first_comes_first_among_the_hosts_of_an_address() {
    let mut config = config();
    config.politeness.per_address = true;
    config.politeness.delay = Duration::from_secs(1);
    let mut frontier = Frontier::in_memory(config).unwrap();
    let links: Vec<_> = (0..20)
        .map(|n| of_class(&format!("http://host{n}.example/"), 5))
        .collect();
    frontier.offer(&links, NOW).unwrap();
    let mut now = NOW;
    let mut served = Vec::new();
    while served.len() < 6 {
        let lease = common::next(&mut frontier, &mut now);
        if lease.entry.purpose == Purpose::Address {
            let address = lease.settle(Outcome::Done).with_address(Some([192, 0, 2, 1].into()));
            commit(&mut frontier, address.valid_for(Duration::from_secs(3600)), now);
            continue;
        }
        served.push(lease.entry.url.to_string());
        commit(&mut frontier, end(&lease, Outcome::Done), now);
        if served.len() == 2 {
            frontier
                .offer(&[of_class("http://host17.example/news", 0)], now)
                .unwrap();
        }
    }
    let at = served.iter().position(|url| url == "http://host17.example/news");
    assert_eq!(at, Some(2), "{served:?}");
}

#[test]
fn retries_are_behind_the_new_pages_of_their_class_and_before_other_classes() {
    let mut frontier = Frontier::in_memory(config()).unwrap();
    frontier.offer(&[of_class("http://a.example/first", 1)], NOW).unwrap();
    let failed = one(&mut frontier, NOW);
    commit(&mut frontier, end(&failed, failing(FailureKind::Status)), NOW);
    let others = [("http://a.example/1", 1), ("http://a.example/2", 2)].map(|(text, number)| of_class(text, number));
    frontier.offer(&others, at(3_600)).unwrap();
    for expected in ["http://a.example/1", "http://a.example/first", "http://a.example/2"] {
        let lease = one(&mut frontier, at(3_600));
        assert_eq!(&*lease.entry.url, expected);
        commit(&mut frontier, end(&lease, Outcome::Done), at(3_600));
    }
}

#[test]
fn a_redirect_keeps_the_class_and_links_of_the_page_do_not_get_it() {
    let mut frontier = Frontier::in_memory(config()).unwrap();
    frontier.offer(&[of_class("http://a.example/", 1)], NOW).unwrap();
    let moved = one(&mut frontier, NOW);
    let target = moved.entry.redirected(url("http://b.example/"));
    commit(
        &mut frontier,
        end(&moved, Outcome::Redirected).with_links(vec![target]),
        NOW,
    );
    let page = one(&mut frontier, NOW);
    assert_eq!((&*page.entry.url, page.entry.class), ("http://b.example/", class(1)));
    let links = page.entry.links([url("http://b.example/2")]);
    commit(&mut frontier, end(&page, Outcome::Done).with_links(links), NOW);
    assert_eq!(one(&mut frontier, NOW).entry.class, Class::default());
}

fn with_rules(rules: &[(&str, u8)]) -> FrontierConfig {
    let rule = |(pattern, number): &(&str, u8)| OrderRule {
        pattern: (*pattern).to_owned(),
        class: class(*number),
    };
    FrontierConfig {
        order: rules.iter().map(rule).collect(),
        ..config()
    }
}

#[test]
fn the_first_rule_that_matches_counts_unless_the_link_has_a_class() {
    let mut frontier = Frontier::in_memory(with_rules(&[("/news/", 0), ("/archive/", 7), ("2026", 2)])).unwrap();
    let text = |path: &str| format!("http://a.example/{path}");
    let paths = ["archive/2026", "other", "2026/news/", "2026/x"];
    let mut links: Vec<_> = paths.iter().map(|path| link(&text(path))).collect();
    links.push(of_class(&text("news/mine"), 5));
    frontier.offer(&links, NOW).unwrap();
    let rule = |pattern: &str| Some(pattern.to_owned());
    assert_eq!(place(&frontier, &text("2026/news/")), (0, class(0), rule("/news/")));
    assert_eq!(place(&frontier, &text("2026/x")), (1, class(2), rule("2026")));
    assert_eq!(place(&frontier, &text("other")), (2, class(3), None));
    assert_eq!(place(&frontier, &text("news/mine")), (3, class(5), None));
    assert_eq!(
        place(&frontier, &text("archive/2026")),
        (4, class(7), rule("/archive/"))
    );
    let expected = ["2026/news/", "2026/x", "other", "news/mine", "archive/2026"];
    assert_eq!(drained(&mut frontier), expected.map(|path| format!("a.example/{path}")));
}

#[test]
fn a_pattern_that_cannot_be_used_is_named() {
    let error = Frontier::in_memory(with_rules(&[("/news/", 0), ("(", 1)])).unwrap_err();
    assert!(error.to_string().contains("the order pattern `(`"), "{error}");
    let pattern = "x".repeat(1_000);
    let error = Frontier::in_memory(with_rules(&vec![(&*pattern, 0); 1_000])).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the order patterns are too large together"),
        "{error}"
    );
    assert!(
        Class::try_from(8)
            .unwrap_err()
            .to_string()
            .contains("0, which comes first, to 7")
    );
}

#[test]
fn postponed_pages_are_behind_all_classes_and_have_no_share_of_turns() {
    let config = FrontierConfig {
        scope: ScopeConfig::default(),
        traps: frontier::TrapConfig {
            max_queries_per_path: NonZeroU32::new(2),
            ..frontier::TrapConfig::default()
        },
        ..config()
    };
    let mut frontier = Frontier::in_memory(config).unwrap();
    frontier.add_seed(&url("http://a.example/"), NOW).unwrap();
    let queries = (0..4).map(|n| of_class(&format!("http://a.example/list?{n}"), 0));
    let last = (0..40).map(|n| of_class(&format!("http://a.example/{n}"), 7));
    let verdicts = frontier.offer(&queries.chain(last).collect::<Vec<_>>(), NOW).unwrap();
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Queued));
    assert_eq!(place(&frontier, "http://a.example/list?3").1, class(0));
    let urls = drained(&mut frontier);
    assert_eq!(urls[..2], ["a.example/list?0", "a.example/list?1"]);
    assert_eq!(urls[43..], ["a.example/list?2", "a.example/list?3"]);
}

/// An independent account of the order within a host.
#[derive(Default)]
struct Model {
    queues: [VecDeque<String>; 8],
    /// When each class was served last.
    served: [u64; 8],
    turn: u64,
    since: u8,
    counts: bool,
}

impl Model {
    fn next(&mut self) -> Option<String> {
        let waiting: Vec<usize> = (0..8).filter(|class| !self.queues[*class].is_empty()).collect();
        self.counts |= waiting.len() > 1;
        let first = *waiting.first()?;
        let longest = waiting.into_iter().min_by_key(|class| self.served[*class])?;
        let class = if self.since == 7 { longest } else { first };
        if self.counts {
            self.turn += 1;
            self.served[class] = self.turn;
            self.since = (self.since + 1) % 8;
        }
        self.queues[class].pop_front()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::cases(200), ..ProptestConfig::default() })]

    #[test]
    fn a_host_is_asked_in_the_order_of_the_classes_and_why_says_how_many_come_before(
        steps in prop::collection::vec(prop_oneof![3 => (0_u8..8).prop_map(Some), 2 => Just(None)], 1..150),
    ) {
        let mut frontier = Frontier::in_memory(config()).unwrap();
        let mut model = Model::default();
        for (n, step) in steps.into_iter().enumerate() {
            let text = format!("http://a.example/{n}");
            match step {
                Some(number) => {
                    frontier.offer(&[of_class(&text, number)], NOW).unwrap();
                    model.queues[usize::from(number)].push_back(text);
                }
                None => if let Some(expected) = model.next() {
                    let lease = one(&mut frontier, NOW);
                    prop_assert_eq!(&*lease.entry.url, &*expected);
                    commit(&mut frontier, end(&lease, Outcome::Done), NOW);
                }
            }
        }
        let waiting: Vec<String> = model.queues.iter().flatten().cloned().collect();
        let ahead: Vec<u64> = waiting.iter().map(|text| place(&frontier, text).0).collect();
        let mut order = Vec::new();
        while let Some(next) = model.next() {
            order.push(next);
        }
        for (text, ahead) in waiting.iter().zip(ahead) {
            prop_assert_eq!(order.iter().position(|other| other == text), Some(ahead as usize), "{}", text);
        }
        let drained = drained(&mut frontier);
        prop_assert_eq!(drained, order.iter().map(|text| text.trim_start_matches("http://").to_owned()).collect::<Vec<_>>());
    }
}
