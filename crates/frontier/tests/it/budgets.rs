//! Budgets of a site: queries of a path, hosts of a domain. For near-duplicates see `near_duplicates`.

use std::num::NonZeroU32;
use std::time::Duration;

use frontier::canonical::Rules;
use frontier::{Canonicalizer, Fingerprint, Frontier, FrontierConfig, Leasing, Link, Outcome, Refusal, Verdict, Why};

use crate::common::{self, Orders as _, START as NOW, answer, commit, end, links, one, redirect, url};

fn frontier(change: impl FnOnce(&mut FrontierConfig)) -> Frontier {
    let mut config = common::config();
    change(&mut config);
    common::frontier(config)
}

fn at_most(n: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(n)
}

fn offer(frontier: &mut Frontier, urls: &[&str]) -> Vec<Verdict> {
    common::offer(frontier, urls, NOW)
}

const QUERIES: Verdict = Verdict::Refused(Refusal::TooManyQueries);
const SUBDOMAINS: Verdict = Verdict::Refused(Refusal::TooManySubdomains);

#[test]
fn queries_over_the_budget_of_their_path_wait_behind_everything_else() {
    let mut frontier = frontier(|config| config.traps.max_queries_per_path = at_most(3));
    let many: Vec<String> = (0..100).map(|n| format!("http://a.example/list?page={n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(offer(&mut frontier, &many), [Verdict::Queued; 100]);
    assert_eq!(frontier.report().postponed, 97);
    // A repeated query spends nothing, and other paths have budgets of their own.
    assert_eq!(offer(&mut frontier, &many), [Verdict::Seen; 100]);
    let others = ["http://a.example/list", "http://a.example/other?page=1"];
    assert_eq!(offer(&mut frontier, &others), [Verdict::Queued; 2]);
    let order: Vec<_> = (0..102).map(|_| fetch(&mut frontier, &[]).0).collect();
    let last = order.iter().rposition(|url| others.contains(&url.as_str())).unwrap();
    assert_eq!(last, 4, "{order:?}");
    assert_eq!(frontier.lease(NOW, 1), Ok(Leasing::Drained));
}

/// Fetches the next page, which has these links.
fn fetch(frontier: &mut Frontier, found: &[&str]) -> (String, Vec<Verdict>) {
    let lease = one(frontier, NOW);
    let settled = commit(frontier, end(&lease, Outcome::Done).with_links(links(found)), NOW);
    (lease.entry.url.to_string(), settled.verdicts)
}

#[test]
fn what_postponed_pages_lead_to_is_refused_beyond_four_budgets() {
    let mut frontier = frontier(|config| config.traps.max_queries_per_path = at_most(3));
    offer(&mut frontier, &["http://a.example/list?n=0"]);
    let mut fetched = 0;
    let refused = loop {
        let (url, verdicts) = fetch(&mut frontier, &[&format!("http://a.example/list?n={}", fetched + 1)]);
        assert_eq!(url, format!("http://a.example/list?n={fetched}"));
        fetched += 1;
        if verdicts != [Verdict::Queued] || fetched == 1_000 {
            break verdicts;
        }
    };
    assert_eq!((fetched, refused), (16, vec![QUERIES]));
    assert_eq!(frontier.report().links.refused[&Refusal::TooManyQueries], 1);
    assert_eq!(
        frontier.why(&url("http://a.example/list?n=16"), NOW),
        Why::Refused(Refusal::TooManyQueries),
        "it was not marked as seen"
    );
    // What others lead to is never refused.
    assert_eq!(offer(&mut frontier, &["http://a.example/list?n=16"]), [Verdict::Queued]);
}

#[test]
fn a_path_ends_also_if_other_pages_lead_from_one_query_to_the_next() {
    for outcome in [Outcome::Done, Outcome::Redirected] {
        let mut frontier = frontier(|config| config.traps.max_queries_per_path = at_most(3));
        offer(&mut frontier, &["http://a.example/month?n=0"]);
        let mut fetched = 0;
        let verdict = loop {
            let month = one(&mut frontier, NOW);
            let day = links(&[&format!("http://a.example/day/{fetched}")]);
            commit(&mut frontier, end(&month, outcome.clone()).with_links(day), NOW);
            fetched += 1;
            let verdicts = fetch(&mut frontier, &[&format!("http://a.example/month?n={fetched}")]).1;
            if verdicts != [Verdict::Queued] || fetched == 100 {
                break verdicts;
            }
        };
        assert_eq!((fetched, verdict), (16, vec![QUERIES]), "{outcome:?}");
    }
}

#[test]
fn seeds_are_exempt_from_budgets() {
    let mut frontier = frontier(|config| {
        config.traps.max_queries_per_path = at_most(1);
        config.traps.max_hosts_per_site = at_most(1);
        config.traps.max_near_duplicates = at_most(1);
        config.traps.max_near_duplicates_in_all = at_most(1);
    });
    for n in 0..10 {
        let seed = url(&format!("http://{n}.a.example/?q={n}"));
        assert_eq!(frontier.add_seed(&seed, NOW), Ok(Verdict::Queued));
        let seed = url(&format!("http://{n}.a.example/?q={}", n + 100));
        assert_eq!(frontier.add_seed(&seed, NOW), Ok(Verdict::Queued));
    }
    for n in 0..20 {
        let lease = one(&mut frontier, NOW);
        let next = format!("http://0.a.example/page-{n}/");
        let page = end(&lease, Outcome::Done).with_links(links(&[&next]));
        let settled = commit(
            &mut frontier,
            page.with_fingerprint(Fingerprint::new(None, Some(1.into()))),
            NOW,
        );
        if lease.entry.metadata.seed {
            assert_eq!((settled.verdicts, settled.notices.len()), (vec![Verdict::Queued], 0));
        }
    }
}

#[test]
fn a_site_has_as_many_hosts_as_one_may_have() {
    let mut frontier = frontier(|config| config.traps.max_hosts_per_site = at_most(2));
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

/// A site whose every robots.txt leads to that of its next host, and whose every page links there.
#[test]
fn a_host_that_is_known_by_a_redirected_robots_txt_counts_with_its_first_page() {
    let mut frontier = frontier(|config| {
        config.traps.max_hosts_per_site = at_most(2);
        config.politeness.ask_robots = true;
    });
    offer(&mut frontier, &["http://w1.a.example/"]);
    let mut verdicts = Vec::new();
    for host in 2..4 {
        let next = format!("http://w{host}.a.example/");
        let robots = one(&mut frontier, NOW);
        redirect(&mut frontier, &robots, &format!("{next}robots.txt"), NOW);
        let redirected = one(&mut frontier, NOW);
        assert_eq!(redirected.entry.queue, url(&next).host());
        answer(&mut frontier, &redirected, Outcome::Rejected, NOW);
        let page = one(&mut frontier, NOW);
        let settled = commit(
            &mut frontier,
            end(&page, Outcome::Done).with_links(links(&[&next])),
            NOW,
        );
        verdicts.extend(settled.verdicts);
    }
    assert_eq!(verdicts, [Verdict::Queued, SUBDOMAINS]);
    assert_eq!(frontier.lease(NOW, 1), Ok(Leasing::Drained));
}

#[test]
fn a_host_with_a_delay_or_a_block_of_its_own_counts_with_its_first_page() {
    let mut frontier = frontier(|config| config.traps.max_hosts_per_site = at_most(2));
    let pages = ["http://w1.a.example/", "http://w2.a.example/", "http://w3.a.example/"];
    for page in pages {
        let host = url(page).host();
        frontier.set_delay(&host, Duration::from_secs(1), NOW).unwrap();
        frontier.block(&host, NOW, NOW).unwrap();
    }
    assert_eq!(
        offer(&mut frontier, &pages),
        [Verdict::Queued, Verdict::Queued, SUBDOMAINS]
    );
    assert_eq!(
        frontier.why(&url(pages[2]), NOW),
        Why::Refused(Refusal::TooManySubdomains)
    );
}

#[test]
fn sitemaps_on_further_hosts_of_a_site_are_refused_and_those_before_count_their_hosts() {
    let mut frontier = frontier(|config| config.traps.max_hosts_per_site = at_most(2));
    offer(&mut frontier, &["http://w1.a.example/"]);
    let sitemap = |text: &str| Link::sitemap(url(text), url("http://w1.a.example/").origin(), 0, None);
    let sitemaps = [
        "http://w1.a.example/1.xml",
        "http://w2.a.example/1.xml",
        "http://w3.a.example/1.xml",
        "http://w2.a.example/2.xml",
    ];
    assert_eq!(
        frontier.offer(&sitemaps.map(sitemap), NOW).unwrap(),
        [Verdict::Queued, Verdict::Queued, SUBDOMAINS, Verdict::Queued]
    );
    assert_eq!(frontier.report().sitemaps.refused[&Refusal::TooManySubdomains], 1);
    assert_eq!(
        offer(&mut frontier, &["http://w2.a.example/", "http://w3.a.example/"]),
        [Verdict::Queued, SUBDOMAINS]
    );
}

#[test]
fn a_host_that_a_page_redirects_to_under_the_same_key_counts() {
    let mut frontier = frontier(|config| config.traps.max_hosts_per_site = at_most(2));
    let rules = Rules {
        ignore_www: true,
        ..Rules::default()
    };
    let urls = Canonicalizer::new(rules);
    let page = urls.parse("http://www.a.example/").unwrap();
    frontier.offer(&[Link::found(page, 1, "".into())], NOW).unwrap();
    let lease = one(&mut frontier, NOW);
    let target = lease.entry.redirected(urls.parse("http://a.example/").unwrap());
    let settled = commit(
        &mut frontier,
        end(&lease, Outcome::Redirected).with_links(vec![target]),
        NOW,
    );
    assert_eq!(settled.verdicts, [Verdict::Queued]);
    assert_eq!(
        offer(&mut frontier, &["http://a.example/1", "http://w3.a.example/"]),
        [Verdict::Queued, SUBDOMAINS]
    );
}

#[test]
fn without_limits_no_link_is_refused() {
    let mut frontier = frontier(|config| {
        config.traps.max_queries_per_path = None;
        config.traps.max_hosts_per_site = None;
        config.traps.max_near_duplicates = None;
        config.traps.max_near_duplicates_in_all = None;
    });
    for n in 0..20_000 {
        let page = format!("http://h{n}.a.example/?q={n}");
        let again = format!("http://a.example/?q={n}");
        assert_eq!(offer(&mut frontier, &[&page, &again]), [Verdict::Queued; 2]);
    }
    for _ in 0..6_000 {
        let lease = one(&mut frontier, NOW);
        let page = end(&lease, Outcome::Done).with_fingerprint(Fingerprint::new(None, Some(1.into())));
        assert_eq!(commit(&mut frontier, page, NOW).notices, []);
    }
    assert_eq!(frontier.report().postponed, 0);
}

#[test]
fn what_waits_beyond_the_budget_of_a_host_takes_no_time() {
    let mut frontier = frontier(|config| config.limits.max_pages_per_host = Some(5));
    let all: Vec<String> = (0..20).map(|n| format!("http://a.example/{n}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    offer(&mut frontier, &all);
    let left = |frontier: &Frontier| {
        let report = frontier.host_report(&url(all[0]).host(), NOW).unwrap();
        (report.budget, report.time_left(Duration::from_secs(1), 0.0, NOW))
    };
    assert_eq!(left(&frontier), (Some(5), Some(Duration::from_secs(5))));
    for left_after in (1..5).rev() {
        fetch(&mut frontier, &[]);
        let expected = (Some(left_after), Some(Duration::from_secs(left_after)));
        assert_eq!(left(&frontier), expected);
    }
    fetch(&mut frontier, &[]);
    assert_eq!(left(&frontier), (Some(0), None));
}
