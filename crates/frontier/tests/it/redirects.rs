//! Redirects: no page is lost by one.

use frontier::canonical::Rules;
use frontier::{
    Canonicalizer, Frontier, FrontierConfig, Lease, LimitConfig, Link, Outcome, Refusal, ScopeConfig, Settled, Verdict,
};

use crate::common::{self, START as NOW, commit, config, end};

#[track_caller]
fn one(frontier: &mut Frontier) -> Lease {
    common::only(frontier, NOW)
}

fn settle(frontier: &mut Frontier, lease: &Lease, outcome: Outcome, links: Vec<Link>) -> Vec<Verdict> {
    commit(frontier, end(lease, outcome).with_links(links), NOW).verdicts
}

/// Answers a lease by a redirect.
fn redirect(frontier: &mut Frontier, lease: &Lease, rules: &Canonicalizer, to: &str) -> Vec<Verdict> {
    let target = lease.entry.redirected(rules.parse(to).unwrap());
    settle(frontier, lease, Outcome::Redirected, vec![target])
}

#[test]
fn a_redirect_to_another_spelling_of_the_same_url_is_followed() {
    let slashes = Rules {
        drop_trailing_slash: true,
        ..Rules::default()
    };
    let schemes = Rules {
        ignore_scheme: true,
        ..Rules::default()
    };
    for (rules, from, to) in [
        (Rules::default(), "https://a.example/%7Eann", "https://a.example/~ann"),
        (Rules::default(), "https://a.example/%c3%a9", "https://a.example/%C3%A9"),
        (slashes, "https://a.example/docs", "https://a.example/docs/"),
        (schemes, "http://a.example/", "https://a.example/"),
    ] {
        let rules = Canonicalizer::new(rules);
        let mut frontier = Frontier::in_memory(config()).unwrap();
        let link = Link::found(rules.parse(from).unwrap(), 1, "https://a.example/".into());
        frontier.offer(&[link], NOW).unwrap();
        let first = one(&mut frontier);
        assert_eq!(&*first.entry.url, from);
        assert_eq!(redirect(&mut frontier, &first, &rules, to), [Verdict::Queued], "{to}");
        let second = one(&mut frontier);
        assert_eq!((&*second.entry.url, second.entry.hops), (to, 1));
        settle(&mut frontier, &second, Outcome::Done, Vec::new());
        let report = frontier.report();
        assert_eq!((report.pages.redirected, report.pages.done), (1, 1));
        assert_eq!((report.links.queued, report.links.offered()), (2, 2));
        assert!(frontier.report().is_drained());
    }
}

#[test]
fn spellings_that_redirect_to_each_other_end_with_too_many_hops() {
    let rules = Canonicalizer::default();
    let spellings = ["https://a.example/%7E", "https://a.example/~"];
    for (max_redirects, followed) in [(10, 10), (254, 254), (255, 254)] {
        let mut config = config();
        config.scope.max_redirects = max_redirects;
        let mut frontier = Frontier::in_memory(config).unwrap();
        frontier.add_seed(&rules.parse(spellings[0]).unwrap(), NOW).unwrap();
        let mut asked = 0;
        let last = loop {
            let lease = one(&mut frontier);
            asked += 1;
            assert!(asked <= 256, "more redirects are followed than {max_redirects}");
            let verdicts = redirect(&mut frontier, &lease, &rules, spellings[asked % 2]);
            if verdicts != [Verdict::Queued] {
                break verdicts;
            }
        };
        assert_eq!(last, [Verdict::Refused(Refusal::TooManyHops)]);
        assert_eq!(
            asked,
            followed + 1,
            "redirects in a row are followed up to {max_redirects}"
        );
        assert!(frontier.report().is_drained());
    }
}

#[test]
fn a_chain_of_redirects_remembers_its_first_url_and_keeps_depth_and_referrer() {
    let rules = Canonicalizer::default();
    let mut frontier = Frontier::in_memory(config()).unwrap();
    let link = Link::found(
        rules.parse("https://a.example/1").unwrap(),
        3,
        "https://a.example/".into(),
    );
    frontier.offer(&[link], NOW).unwrap();
    for to in ["https://a.example/2", "https://b.example/3"] {
        let lease = one(&mut frontier);
        assert_eq!(redirect(&mut frontier, &lease, &rules, to), [Verdict::Queued]);
    }
    let third = one(&mut frontier).entry;
    assert_eq!(&*third.url, "https://b.example/3");
    assert_eq!((third.depth, third.hops), (3, 2));
    assert_eq!(third.metadata.redirected_from.as_deref(), Some("https://a.example/1"));
    assert_eq!(third.metadata.referrer.as_deref(), Some("https://a.example/"));
    assert!(!third.metadata.seed);
}

#[test]
fn a_redirect_to_the_very_same_url_is_not_followed() {
    let rules = Canonicalizer::default();
    let mut frontier = Frontier::in_memory(config()).unwrap();
    let seed = "https://a.example/?cookies=please";
    frontier.add_seed(&rules.parse(seed).unwrap(), NOW).unwrap();
    let lease = one(&mut frontier);
    assert_eq!(redirect(&mut frontier, &lease, &rules, seed), [Verdict::Seen]);
    assert!(frontier.report().is_drained());
}

#[test]
fn a_redirect_spends_no_page_of_its_hosts_budget() {
    let rules = Canonicalizer::default();
    let mut frontier = Frontier::in_memory(FrontierConfig {
        limits: LimitConfig {
            max_pages_per_host: Some(1),
            ..config().limits
        },
        ..config()
    })
    .unwrap();
    let seed = rules.parse("http://a.example/").unwrap();
    frontier.add_seed(&seed, NOW).unwrap();
    let lease = one(&mut frontier);
    let verdicts = redirect(&mut frontier, &lease, &rules, "https://a.example/");
    assert_eq!(verdicts, [Verdict::Queued], "the one page of the host is still to come");
    let page = one(&mut frontier);
    let more = Link::found(rules.parse("https://a.example/more").unwrap(), 1, "".into());
    let verdicts = settle(&mut frontier, &page, Outcome::Done, vec![more]);
    assert_eq!(verdicts, [Verdict::Refused(Refusal::HostBudget)]);
}

#[test]
fn a_redirected_seed_is_crawled_though_no_include_pattern_names_it() {
    let scope = ScopeConfig {
        include: vec!["/docs/".to_owned()],
        exclude: vec!["/login".to_owned()],
        max_depth: Some(0),
        ..ScopeConfig::default()
    };
    let rules = Canonicalizer::default();
    for (target, expected) in [
        ("https://www.a.example/", Verdict::Queued),
        ("https://www.a.example/login", Verdict::Refused(Refusal::Excluded)),
    ] {
        let mut frontier = Frontier::in_memory(FrontierConfig {
            scope: scope.clone(),
            ..config()
        })
        .unwrap();
        frontier
            .add_seed(&rules.parse("https://a.example/").unwrap(), NOW)
            .unwrap();
        let seed = one(&mut frontier);
        assert_eq!(redirect(&mut frontier, &seed, &rules, target), [expected], "{target}");
    }
}

/// Answers a lease by a redirect, and returns the loop that it closes.
fn closes(frontier: &mut Frontier, lease: &Lease, to: &str) -> Vec<String> {
    let target = lease.entry.redirected(common::url(to));
    let moved = end(lease, Outcome::Redirected).with_links(vec![target]);
    let Settled { redirect_loop, .. } = commit(frontier, moved, NOW);
    redirect_loop.iter().map(ToString::to_string).collect()
}

#[test]
fn a_redirect_loop_is_reported_when_it_closes() {
    let mut frontier = Frontier::in_memory(config()).unwrap();
    let [a, b, c] = ["https://a.example/a", "https://a.example/b", "https://b.example/c"];
    frontier.add_seed(&common::url(a), NOW).unwrap();
    for to in [b, c] {
        let lease = one(&mut frontier);
        assert_eq!(closes(&mut frontier, &lease, to), [""; 0]);
    }
    let lease = one(&mut frontier);
    assert_eq!(closes(&mut frontier, &lease, a), [c, a, b]);
    // What leads into the loop is lost with it, and is no part of it.
    frontier.add_seed(&common::url("https://a.example/d"), NOW).unwrap();
    let lease = one(&mut frontier);
    assert_eq!(closes(&mut frontier, &lease, a), ["https://a.example/d"]);
    assert!(frontier.report().is_drained());
}
