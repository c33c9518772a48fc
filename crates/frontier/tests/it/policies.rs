//! Policies of hosts: from the configuration and by order, how they are resolved, and what a closed host means.

use std::num::NonZeroU32;
use std::time::Duration;

use frontier::{
    Class, CrawlPolicy, Dropped, FailureKind, Frontier, FrontierConfig, FrontierError, Health, HostKey, HostPolicy,
    Leasing, Link, NotFetched, Outcome, Purpose, Refusal, Verdict, Why,
};

use crate::common::{self, Orders as _, START as NOW, at, commit, config, end, link, one, pages, ready, url};

fn seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

fn with_hosts(hosts: &[(&str, HostPolicy)]) -> FrontierConfig {
    let hosts = hosts
        .iter()
        .map(|(pattern, policy)| ((*pattern).to_owned(), policy.clone()));
    let mut config = config();
    config.politeness.delay = Duration::from_secs(5);
    FrontierConfig {
        hosts: hosts.collect(),
        ..config
    }
}

fn host(name: &str) -> HostKey {
    url(&format!("http://{name}/")).host()
}

/// The delay of a host, as its first lease says.
fn delay_of(config: &FrontierConfig, host: &str) -> u64 {
    let mut frontier = common::with_pages(config.clone(), &[link(&format!("http://{host}/"))]);
    one(&mut frontier, NOW).delay.as_secs()
}

#[test]
fn of_each_field_the_most_specific_pattern_counts_and_a_star_means_subdomains() {
    let of = |delay, per_host| HostPolicy {
        delay,
        per_host: NonZeroU32::new(per_host),
        ..HostPolicy::default()
    };
    let config = with_hosts(&[
        ("*.example.org", of(seconds(1), 2)),
        ("*.de.example.org", of(seconds(9), 0)),
        ("shop.de.example.org", of(None, 3)),
        ("*.ÉCOLE.fr.", of(seconds(0), 0)),
        ("192.0.2.1", of(seconds(7), 0)),
    ]);
    let hosts = [
        ("example.org", 5),
        ("a.example.org", 1),
        ("b.a.example.org", 1),
        ("notexample.org", 5),
        ("x.de.example.org", 9),
        ("shop.de.example.org", 9),
        ("www.école.fr", 0),
        ("192.0.2.1", 7),
        ("192.0.2.2", 5),
    ];
    for (host, delay) in hosts {
        assert_eq!(delay_of(&config, host), delay, "{host}");
    }
    let mut frontier = common::with_pages(config, &pages("http://shop.de.example.org/", 9));
    let report = frontier.host_report(&host("shop.de.example.org"), NOW).unwrap();
    assert_eq!(report.per_host, 3);
    one(&mut frontier, NOW);
}

#[test]
fn a_pattern_that_names_no_host_is_refused() {
    for pattern in [
        "",
        "*",
        "*.",
        "a.*",
        "*.*.org",
        "a b",
        "*.192.0.2.1",
        "http://a.example/",
        "*a.example",
    ] {
        let error = Frontier::in_memory(with_hosts(&[(pattern, HostPolicy::default())])).unwrap_err();
        let says = format!("{pattern:?} names no host: write one, such as example.com, or *.example.com");
        assert!(error.to_string().starts_with(&says), "{pattern}: {error}");
    }
}

#[test]
fn a_host_may_be_asked_sooner_and_more_at_once_than_others_but_for_its_address() {
    let eager = HostPolicy {
        delay: Some(Duration::ZERO),
        per_host: NonZeroU32::new(3),
        ..HostPolicy::default()
    };
    for per_address in [false, true] {
        let mut config = with_hosts(&[("a.example", eager.clone())]);
        config.politeness.per_address = per_address;
        let mut frontier = common::with_pages(config, &pages("http://a.example/", 9));
        let first = ready(&mut frontier, NOW);
        let leases = match first[0].entry.purpose {
            Purpose::Address => {
                let address = first[0].settle(Outcome::Done).with_address(Some([192, 0, 2, 1].into()));
                commit(&mut frontier, address.valid_for(Duration::from_secs(3600)), NOW);
                ready(&mut frontier, NOW)
            }
            _ => first,
        };
        assert_eq!(leases.len(), if per_address { 1 } else { 3 });
    }
}

#[test]
fn the_budget_and_the_class_of_a_host_count_for_it_alone() {
    let one_page = HostPolicy {
        max_pages: Some(1),
        class: Some(Class::LAST),
        ..HostPolicy::default()
    };
    let mut links = pages("http://a.example/", 3);
    links.extend(pages("http://b.example/", 3));
    let mut config = with_hosts(&[("a.example", one_page)]);
    config.politeness.delay = Duration::ZERO;
    let mut frontier = common::with_pages(config, &links);
    let mut fetched = Vec::new();
    let mut dropped = 0;
    loop {
        match frontier.lease(NOW, 1).unwrap() {
            Leasing::Ready(leases) => {
                fetched.push(leases[0].entry.queue.as_str().to_owned());
                commit(&mut frontier, end(&leases[0], Outcome::Done), NOW);
            }
            Leasing::Dropped(entries) => dropped += entries.len(),
            Leasing::Drained => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(fetched, ["b.example", "b.example", "b.example", "a.example"]);
    assert_eq!(dropped, 2);
    assert_eq!(
        common::offer(&mut frontier, &["http://a.example/4"], NOW),
        [Verdict::Refused(Refusal::HostBudget)]
    );
}

fn closed(is_closed: bool) -> impl FnOnce(&mut HostPolicy) {
    move |policy| policy.closed = Some(is_closed)
}

fn dropped(frontier: &mut Frontier) -> Vec<Dropped> {
    match frontier.lease(NOW, 9).unwrap() {
        Leasing::Dropped(dropped) => dropped,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_waits_for_a_host_that_is_closed_is_dropped_and_what_is_in_flight_ends_but_is_not_retried() {
    let mut frontier = common::with_pages(config(), &pages("http://a.example/", 5));
    let leased = one(&mut frontier, NOW);
    frontier.order(&host("a.example"), closed(true), NOW).unwrap();
    assert_eq!(frontier.policy(&host("a.example")).closed, Some(true));
    let entries = dropped(&mut frontier);
    assert!(entries.iter().all(|one| one.why == NotFetched::ByOrder), "{entries:?}");
    assert_eq!(entries.len(), 4);
    let refused = Verdict::Refused(Refusal::ByOrder);
    assert_eq!(common::offer(&mut frontier, &["http://a.example/x"], NOW), [refused]);
    let why = frontier.why(&url("http://a.example/x"), NOW);
    assert_eq!(why, Why::Refused(Refusal::ByOrder));
    let links = vec![link("http://b.example/")];
    let failed = common::failing(FailureKind::Status);
    commit(&mut frontier, end(&leased, failed).with_links(links), NOW);
    assert_eq!(&*one(&mut frontier, NOW).entry.url, "http://b.example/");
    assert_eq!(dropped(&mut frontier)[0].why, NotFetched::ByOrder);
    // Opened again, it takes new pages; those that were dropped stay seen.
    frontier
        .order(&host("a.example"), |policy| *policy = HostPolicy::default(), NOW)
        .unwrap();
    let verdicts = common::offer(&mut frontier, &["http://a.example/x", "http://a.example/1"], at(60));
    assert_eq!(verdicts, [Verdict::Queued, Verdict::Seen]);
}

#[test]
fn a_host_that_the_configuration_closes_takes_no_link_and_is_never_asked() {
    let policy = HostPolicy {
        closed: Some(true),
        ..HostPolicy::default()
    };
    let mut frontier = Frontier::in_memory(with_hosts(&[("*.example", policy)])).unwrap();
    let refused = Verdict::Refused(Refusal::ByOrder);
    assert_eq!(
        common::offer(&mut frontier, &["http://a.example/", "http://b.test/"], NOW),
        [refused, Verdict::Queued]
    );
    // An order for one host comes before that.
    frontier.order(&host("a.example"), closed(false), NOW).unwrap();
    assert_eq!(
        common::offer(&mut frontier, &["http://a.example/"], NOW),
        [Verdict::Queued]
    );
    assert_eq!(ready(&mut frontier, NOW).len(), 2);
}

#[test]
fn a_shorter_delay_and_an_earlier_opening_hold_at_once() {
    let mut frontier = common::with_pages(with_hosts(&[]), &pages("http://a.example/", 3));
    let first = one(&mut frontier, NOW);
    commit(&mut frontier, end(&first, Outcome::Done), NOW);
    let a = host("a.example");
    assert_eq!(frontier.lease(NOW, 1), Ok::<_, FrontierError>(Leasing::NotUntil(at(5))));
    frontier.set_delay(&a, Duration::from_secs(2), NOW).unwrap();
    assert_eq!(frontier.lease(NOW, 1), Ok(Leasing::NotUntil(at(2))));
    frontier.block(&a, at(1000), NOW).unwrap();
    assert_eq!(frontier.lease(at(2), 1), Ok(Leasing::NotUntil(at(1000))));
    frontier.block(&a, at(3), at(2)).unwrap();
    assert_eq!(frontier.lease(at(2), 1), Ok(Leasing::NotUntil(at(3))));
    one(&mut frontier, at(3));
}

#[test]
fn a_closed_host_is_asked_for_nothing_whatever_becomes_of_what_was_in_flight() {
    for (kind, is_given_back) in [
        (FailureKind::Connect, false),
        (FailureKind::Timeout, false),
        (FailureKind::Status, true),
    ] {
        let mut config = config();
        config.politeness.ask_robots = true;
        let mut frontier = common::with_pages(config, &pages("http://a.example/", 1));
        let robots = one(&mut frontier, NOW);
        common::give_rules(&mut frontier, &robots, common::Forbid::nothing(), NOW);
        let page = one(&mut frontier, NOW);
        frontier.order(&host("a.example"), closed(true), NOW).unwrap();
        if is_given_back {
            frontier.give_back(&[page.id], NOW).unwrap();
        } else {
            commit(&mut frontier, end(&page, common::failing(kind)), NOW);
        }
        assert_eq!(dropped(&mut frontier).len(), 1);
        assert_eq!(frontier.lease(NOW, 9), Ok(Leasing::Drained), "{kind}");
    }
}

#[test]
fn a_robots_txt_is_not_followed_to_a_closed_host() {
    let policy = HostPolicy {
        closed: Some(true),
        ..HostPolicy::default()
    };
    let mut config = with_hosts(&[("closed.example", policy)]);
    config.politeness.ask_robots = true;
    let mut frontier = common::with_pages(config, &pages("http://a.example/", 1));
    let robots = one(&mut frontier, NOW);
    let target = robots.entry.redirected(url("http://closed.example/robots.txt"));
    commit(
        &mut frontier,
        robots.settle(Outcome::Redirected).with_links(vec![target]),
        NOW,
    );
    assert_eq!(&*one(&mut frontier, at(5)).entry.url, "http://a.example/0");
}

#[test]
fn a_budget_that_is_lowered_counts_for_what_is_in_flight() {
    let mut frontier = common::with_pages(config(), &pages("http://a.example/", 2));
    let lease = one(&mut frontier, NOW);
    frontier
        .order(&host("a.example"), |policy| policy.max_pages = Some(0), NOW)
        .unwrap();
    commit(&mut frontier, end(&lease, common::failing(FailureKind::Status)), NOW);
    let all = dropped(&mut frontier);
    assert!(all.iter().all(|one| one.why == NotFetched::HostBudget), "{all:?}");
    assert_eq!(all.len(), 2);
    assert_eq!(frontier.lease(at(60), 9), Ok(Leasing::Drained));
}

#[test]
fn who_waits_for_a_host_that_is_closed_until_a_time_is_told_so() {
    let mut frontier = common::with_pages(config(), &pages("http://a.example/", 2));
    frontier.block(&host("a.example"), at(60), NOW).unwrap();
    let told: Vec<_> = frontier
        .held_up(at(1))
        .into_iter()
        .map(|host| (host.health.state, host.health.until))
        .collect();
    assert_eq!(told, [(Health::Resting, Some(at(60)))]);
    assert!(frontier.held_up(at(61)).is_empty());
}

#[test]
fn an_order_changes_the_longest_crawl_delay_and_the_class_and_the_budget_at_once() {
    let mut config = config();
    config.politeness.ask_robots = true;
    let mut frontier = common::with_pages(config, &pages("http://a.example/", 3));
    let robots = one(&mut frontier, NOW);
    let rules = common::Forbid {
        delay: seconds(30),
        ..common::Forbid::nothing()
    };
    common::give_rules(&mut frontier, &robots, rules, NOW);
    assert_eq!(frontier.lease(NOW, 1), Ok(Leasing::NotUntil(at(30))));
    let change = |policy: &mut HostPolicy| {
        (policy.max_crawl_delay, policy.class) = (seconds(10), Some(Class::FIRST));
    };
    frontier.order(&host("a.example"), change, NOW).unwrap();
    assert_eq!(frontier.lease(NOW, 1), Ok(Leasing::NotUntil(at(10))));
    common::offer(&mut frontier, &["http://a.example/new"], NOW);
    let page = one(&mut frontier, at(10));
    assert_eq!(
        (&*page.entry.url, page.entry.class),
        ("http://a.example/new", Class::FIRST)
    );
    commit(&mut frontier, end(&page, Outcome::Done), at(10));
    frontier
        .order(&host("a.example"), |policy| policy.max_pages = Some(1), at(10))
        .unwrap();
    assert_eq!(dropped(&mut frontier).len(), 3);
}

#[test]
fn an_order_does_not_shorten_the_rest_that_a_host_has_asked_for() {
    let mut frontier = common::with_pages(config(), &pages("http://a.example/", 2));
    let page = one(&mut frontier, NOW);
    let throttled = Outcome::Failed {
        failure: common::failure(FailureKind::Throttled),
        retry_after: seconds(100),
    };
    commit(&mut frontier, end(&page, throttled), NOW);
    frontier.block(&host("a.example"), at(5), NOW).unwrap();
    assert_eq!(frontier.lease(NOW, 1), Ok(Leasing::NotUntil(at(100))));
}

#[test]
fn what_is_ordered_for_the_crawl_holds_until_it_is_taken_back() {
    let mut config = config();
    config.politeness.delay = Duration::from_secs(1);
    let mut links = pages("http://a.example/", 2);
    links.extend(pages("http://a.example/x", 3));
    let mut frontier = common::with_pages(config, &links);
    let ordered = CrawlPolicy {
        delay: seconds(7),
        max_depth: Some(1),
        exclude: Some(vec!["/private".to_owned()]),
        dropped: vec!["/x".to_owned()],
        ..CrawlPolicy::default()
    };
    frontier.set_crawl_policy(&ordered, NOW).unwrap();
    assert_eq!(frontier.crawl_policy(), &ordered);
    let refused = [
        ("http://a.example/x9", 1, Refusal::ByOrder),
        ("http://a.example/deep", 2, Refusal::TooDeep),
        ("http://a.example/private", 1, Refusal::Excluded),
    ];
    let found = |(text, depth, _): (&str, u32, Refusal)| Link::found(url(text), depth, "http://a.example/".into());
    for case in refused {
        let verdicts = frontier.offer(&[found(case)], NOW).unwrap();
        assert_eq!(verdicts, [Verdict::Refused(case.2)], "{case:?}");
    }
    for n in 0..2 {
        let lease = one(&mut frontier, at(8 * n));
        assert_eq!(
            (lease.delay.as_secs(), &*lease.entry.url),
            (7, &*links[n as usize].url.url().to_string())
        );
        commit(&mut frontier, end(&lease, Outcome::Done), at(8 * n));
    }
    assert!(matches!(frontier.lease(at(8), 9), Ok(Leasing::NotUntil(time)) if time == at(15)));
    let Ok(Leasing::Dropped(dropped)) = frontier.lease(at(15), 9) else {
        panic!("nothing was dropped");
    };
    assert!(dropped.len() == 3 && dropped.iter().all(|one| one.why == NotFetched::ByOrder));
    assert!(!frontier.report().refused_earlier);

    let bad = CrawlPolicy {
        dropped: vec!["(".to_owned()],
        ..CrawlPolicy::default()
    };
    let error = frontier.set_crawl_policy(&bad, at(15)).unwrap_err();
    assert!(
        matches!(error, FrontierError::Pattern(_)) && error.to_string().contains("drop pattern `(`"),
        "{error}"
    );
    assert_eq!(frontier.crawl_policy(), &ordered, "nothing has changed");

    frontier.set_crawl_policy(&CrawlPolicy::default(), at(15)).unwrap();
    assert!(frontier.report().refused_earlier, "they are not offered again");
    for case in refused {
        assert_eq!(
            frontier.offer(&[found(case)], at(15)).unwrap(),
            [Verdict::Queued],
            "{case:?}"
        );
    }
    assert_eq!(one(&mut frontier, at(15)).delay.as_secs(), 1);
}

#[test]
fn an_order_counts_at_once_for_hosts_that_wait() {
    let mut config = config();
    config.politeness.delay = Duration::from_secs(60);
    let mut frontier = common::with_pages(config, &pages("http://a.example/", 9));
    for _ in 0..2 {
        let lease = one(&mut frontier, NOW);
        commit(&mut frontier, end(&lease, Outcome::Done), NOW);
        if frontier.crawl_policy().delay.is_none() {
            assert_eq!(frontier.lease(NOW, 9), Ok(Leasing::NotUntil(at(60))));
        }
        let delay = CrawlPolicy {
            delay: seconds(0),
            ..CrawlPolicy::default()
        };
        frontier.set_crawl_policy(&delay, NOW).unwrap();
    }
    let most = CrawlPolicy {
        max_pages_per_host: Some(2),
        ..CrawlPolicy::default()
    };
    frontier.set_crawl_policy(&most, NOW).unwrap();
    let dropped = frontier.lease(NOW, 9).unwrap();
    assert!(
        matches!(dropped, Leasing::Dropped(entries) if entries.len() == 7 && entries[0].why == NotFetched::HostBudget)
    );
}
