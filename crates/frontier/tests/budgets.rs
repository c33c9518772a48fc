//! What one site may spend: queries of a path, hosts of a domain, pages that repeat one another.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use std::num::NonZeroU32;
use std::time::Duration;

use frontier::{
    CanonicalUrl, Canonicalizer, Frontier, FrontierConfig, Lease, Leasing, Link, NotFetched, Outcome, Reach, Refusal,
    Repeat, ScopeConfig, Settlement, Time, Verdict, Why,
};
use sieve::ExactFilter;

const NOW: Time = Time::from_millis(1_000_000);

type Exact = Frontier<ExactFilter>;

fn frontier(change: impl FnOnce(&mut FrontierConfig)) -> Exact {
    let mut config = FrontierConfig {
        delay: Duration::ZERO,
        ask_robots: false,
        scope: ScopeConfig {
            reach: Reach::Any,
            ..ScopeConfig::default()
        },
        ..FrontierConfig::default()
    };
    change(&mut config);
    Frontier::with_filter(config, ExactFilter::new()).unwrap()
}

fn at_most(n: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(n)
}

fn url(text: &str) -> CanonicalUrl {
    Canonicalizer::default().parse(text).unwrap()
}

fn link(text: &str) -> Link {
    Link::found(url(text), 1, "http://a.example/".into())
}

fn offer(frontier: &mut Exact, urls: &[&str]) -> Vec<Verdict> {
    let links: Vec<_> = urls.iter().map(|url| link(url)).collect();
    frontier.offer(&links, NOW).unwrap()
}

fn lease(frontier: &mut Exact) -> Lease {
    match frontier.lease(NOW, 1).unwrap() {
        Leasing::Ready(leases) => leases.into_iter().next().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Settles a lease as a page of a cluster, with links.
fn settle(frontier: &mut Exact, lease: &Lease, cluster: u64, links: &[&str]) -> (Repeat, Vec<Verdict>) {
    let repeat = frontier.near_duplicate(lease.id, cluster, 1).unwrap();
    let settlement = Settlement {
        lease: lease.id,
        outcome: Outcome::Done,
        links: links.iter().map(|url| link(url)).collect(),
    };
    let settled = frontier.settle(&[settlement], NOW).unwrap();
    (repeat, settled.into_iter().next().unwrap().verdicts)
}

const QUERIES: Verdict = Verdict::Refused(Refusal::TooManyQueries);
const SUBDOMAINS: Verdict = Verdict::Refused(Refusal::TooManySubdomains);
const REPEATS: Verdict = Verdict::Refused(Refusal::NearDuplicates);

#[test]
fn a_path_has_as_many_queries_as_one_may_have_also_among_the_links_of_one_page() {
    let mut frontier = frontier(|config| config.max_queries_per_path = at_most(3));
    let many: Vec<String> = (0..100).map(|n| format!("http://a.example/list?page={n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let verdicts = offer(&mut frontier, &many);
    assert_eq!(verdicts[..3], [Verdict::Queued; 3]);
    assert_eq!(verdicts[3..], [QUERIES; 97]);
    assert_eq!(frontier.report().links.refused[&Refusal::TooManyQueries], 97);
    assert_eq!(
        offer(
            &mut frontier,
            &[
                "http://a.example/list",
                "http://a.example/other?page=1",
                "http://b.example/list?page=1"
            ]
        ),
        [Verdict::Queued; 3],
        "only that path is full"
    );
    assert_eq!(
        frontier.why(&url("http://a.example/list?page=50")),
        Why::Refused(Refusal::TooManyQueries),
        "it was not marked as seen"
    );
}

#[test]
fn a_query_that_comes_again_and_again_uses_up_nothing() {
    let mut frontier = frontier(|config| config.max_queries_per_path = at_most(3));
    for _ in 0..100 {
        offer(&mut frontier, &["http://a.example/list?page=1"]);
    }
    assert_eq!(
        offer(
            &mut frontier,
            &["http://a.example/list?page=2", "http://a.example/list?page=3"]
        ),
        [Verdict::Queued; 2]
    );
    assert_eq!(
        offer(
            &mut frontier,
            &["http://a.example/list?page=1", "http://a.example/list?page=4"]
        ),
        [Verdict::Seen, QUERIES]
    );
}

#[test]
fn what_the_user_names_is_in_no_budget() {
    let mut frontier = frontier(|config| {
        config.max_queries_per_path = at_most(1);
        config.max_hosts_per_site = at_most(1);
        config.max_near_duplicates = at_most(1);
    });
    for n in 0..10 {
        let seed = url(&format!("http://{n}.a.example/?q={n}"));
        assert_eq!(frontier.add_seed(&seed, NOW), Ok(Verdict::Queued));
        let seed = url(&format!("http://{n}.a.example/?q={}", n + 100));
        assert_eq!(frontier.add_seed(&seed, NOW), Ok(Verdict::Queued));
    }
    for n in 0..20 {
        let Leasing::Ready(leases) = frontier.lease(NOW, 1).unwrap() else {
            panic!("20 seeds wait");
        };
        let next = format!("http://0.a.example/page-{n}/");
        let (repeat, verdicts) = settle(&mut frontier, &leases[0], 1, &[&next]);
        if !leases[0].entry.metadata.seed {
            continue;
        }
        assert_eq!((repeat, verdicts), (Repeat::Counted, vec![Verdict::Queued]));
    }
}

#[test]
fn a_site_has_as_many_hosts_as_one_may_have() {
    let mut frontier = frontier(|config| config.max_hosts_per_site = at_most(2));
    assert_eq!(
        offer(
            &mut frontier,
            &[
                "http://1.a.co.uk/",
                "http://2.a.co.uk/",
                "http://3.a.co.uk/",
                "http://2.a.co.uk/page",
                "http://b.co.uk/",
                "http://10.0.0.1/",
                "http://11.0.0.1/",
                "http://12.0.0.1/",
            ]
        ),
        [
            Verdict::Queued,
            Verdict::Queued,
            SUBDOMAINS,
            Verdict::Queued,
            Verdict::Queued,
            Verdict::Queued,
            Verdict::Queued,
            Verdict::Queued
        ],
        "addresses are not each other's subdomains"
    );
}

#[test]
fn a_prefix_with_too_many_near_duplicates_is_closed_also_for_what_waits() {
    let mut frontier = frontier(|config| config.max_near_duplicates = at_most(3));
    let month = |n: usize| format!("http://a.example/calendar/{}/{}/", 2026 + n / 12, n % 12);
    let months: Vec<String> = (0..6).map(month).collect();
    let months: Vec<&str> = months.iter().map(String::as_str).collect();
    offer(&mut frontier, &months);
    for _ in 0..3 {
        let lease = lease(&mut frontier);
        assert_eq!(settle(&mut frontier, &lease, 7, &[]).0, Repeat::Counted);
    }
    let fourth = lease(&mut frontier);
    let (repeat, verdicts) = settle(&mut frontier, &fourth, 7, &["http://a.example/about", months[0]]);
    assert_eq!(
        repeat,
        Repeat::PrefixClosed("http://a.example/calendar/#/#/".to_owned())
    );
    assert_eq!(verdicts, [REPEATS, Verdict::Seen], "its new links are not followed");
    assert_eq!(frontier.report().closed_prefixes, 1);

    let fifth = lease(&mut frontier);
    assert_eq!(frontier.second_thought(&fifth), Some(NotFetched::NearDuplicates));
    assert_eq!(
        offer(
            &mut frontier,
            &[
                &month(7),
                "http://a.example/about",
                "http://a.example/calendar/",
                "http://b.example/calendar/1/1/"
            ]
        ),
        [REPEATS, Verdict::Queued, Verdict::Queued, Verdict::Queued],
        "the rest of the site is open, and that page too if it is found elsewhere"
    );
}

#[test]
fn a_page_repeated_too_often_on_a_site_leads_nowhere_whatever_its_path() {
    let mut frontier = frontier(|config| config.max_near_duplicates = at_most(3));
    offer(&mut frontier, &["http://a.example/x/"]);
    let mut path = "http://a.example/x/".to_owned();
    for n in 0..4 {
        let lease = lease(&mut frontier);
        path.push_str(&format!("{}/", char::from(b'a' + n)));
        let (repeat, verdicts) = settle(&mut frontier, &lease, 7, &[&path]);
        let (expected, verdict) = if n < 3 {
            (Repeat::Counted, Verdict::Queued)
        } else {
            (Repeat::LinksRefused, REPEATS)
        };
        assert_eq!((repeat, verdicts), (expected, vec![verdict]));
    }
    assert!(frontier.is_drained());
    offer(&mut frontier, &["http://b.example/"]);
    let elsewhere = lease(&mut frontier);
    let (repeat, _) = settle(&mut frontier, &elsewhere, 7, &[]);
    assert_eq!(repeat, Repeat::Counted, "each site has a count of its own");
}

#[test]
fn without_limits_nothing_is_refused() {
    let mut frontier = frontier(|config| {
        config.max_queries_per_path = None;
        config.max_hosts_per_site = None;
        config.max_near_duplicates = None;
    });
    for n in 0..20_000 {
        let page = format!("http://h{n}.a.example/?q={n}");
        let again = format!("http://a.example/?q={n}");
        assert_eq!(offer(&mut frontier, &[&page, &again]), [Verdict::Queued; 2]);
    }
    for _ in 0..5_000 {
        let lease = lease(&mut frontier);
        assert_eq!(settle(&mut frontier, &lease, 1, &[]).0, Repeat::Counted);
    }
}

#[test]
fn a_site_that_repeats_a_page_is_suspect_and_its_neighbours_are_not() {
    let mut frontier = frontier(|config| config.max_near_duplicates = at_most(8));
    for n in 0..8 {
        let page = url(&format!("http://{n}.a.example/{n}"));
        assert!(!frontier.is_suspect(&page.host()));
        offer(&mut frontier, &[page.key()]);
        let lease = lease(&mut frontier);
        settle(&mut frontier, &lease, 7, &[]);
    }
    assert!(frontier.is_suspect(&url("http://elsewhere.a.example/").host()));
    assert!(!frontier.is_suspect(&url("http://b.example/").host()));
}

#[test]
fn a_page_that_stands_for_others_makes_its_site_suspect_sooner_and_closes_nothing() {
    let mut frontier = frontier(|config| config.max_near_duplicates = at_most(20));
    let mut repeat = |n: u32, stands_for| {
        let page = url(&format!("http://a.example/{n}"));
        let is_suspect = frontier.is_suspect(&page.host());
        offer(&mut frontier, &[page.key()]);
        let lease = lease(&mut frontier);
        let repeat = frontier.near_duplicate(lease.id, 7, stands_for).unwrap();
        let settlement = Settlement {
            lease: lease.id,
            outcome: Outcome::Done,
            links: Vec::new(),
        };
        frontier.settle(&[settlement], NOW).unwrap();
        (is_suspect, repeat)
    };
    assert_eq!(repeat(1, 12), (false, Repeat::Counted));
    assert_eq!(repeat(2, 12), (false, Repeat::Counted));
    for n in 3..=20 {
        assert_eq!(repeat(n, 12), (true, Repeat::Counted), "{n}");
    }
    assert!(matches!(repeat(21, 1), (true, Repeat::PrefixClosed(_))));
}
