//! Sitemaps: leased once each, after robots.txt, in turn with pages, without the seen-set and the budgets.

use frontier::{
    FailureKind, Fate, Frontier, FrontierConfig, Lease, Leasing, Link, Outcome, Purpose, Reach, Refusal, ScopeConfig,
    Time, Verdict,
};

use crate::common::{self, Forbid, START, at, commit, end, failing, one, url};

/// A sitemap of a.example, named by its robots.txt.
fn named(text: &str) -> Link {
    let referrer = "https://a.example/robots.txt";
    Link::sitemap(url(text), url(referrer).origin(), 0, Some(referrer.into()))
}

/// A sitemap of a.example, named by an index.
fn indexed(text: &str, index: &str, indexes: u32) -> Link {
    Link::sitemap(
        url(text),
        url("https://a.example/").origin(),
        indexes,
        Some(index.into()),
    )
}

fn config() -> FrontierConfig {
    FrontierConfig {
        scope: ScopeConfig::default(),
        ..common::config()
    }
}

fn frontier(config: FrontierConfig) -> Frontier {
    let mut frontier = Frontier::in_memory(config).unwrap();
    frontier.add_seed(&url("https://a.example/"), START).unwrap();
    frontier
}

#[track_caller]
fn settle(
    frontier: &mut Frontier,
    lease: &Lease,
    outcome: Outcome,
    links: Vec<Link>,
    now: Time,
) -> (Fate, Vec<Verdict>) {
    let settled = commit(frontier, end(lease, outcome).with_links(links), now);
    (settled.fate, settled.verdicts)
}

#[test]
fn sitemaps_come_first_and_pages_get_every_second_turn() {
    let mut frontier = frontier(config());
    let pages = (1..3).map(|n| Link::found(url(&format!("https://a.example/{n}")), 1, "".into()));
    let sitemaps = (1..5).map(|n| named(&format!("https://a.example/{n}.xml")));
    frontier
        .offer(&pages.chain(sitemaps).collect::<Vec<_>>(), START)
        .unwrap();
    let report = frontier.report();
    assert_eq!((report.queued, report.queued_pages), (7, 3), "sitemaps are no pages");
    let mut order = Vec::new();
    while let Leasing::Ready(leases) = frontier.lease(START, 1).unwrap() {
        order.push(leases[0].entry.url.trim_start_matches("https://a.example/").to_owned());
        settle(&mut frontier, &leases[0], Outcome::Done, Vec::new(), START);
    }
    assert_eq!(order, ["1.xml", "", "2.xml", "1", "3.xml", "2", "4.xml"]);
}

#[test]
fn a_sitemap_is_asked_for_once_and_counted_apart_from_pages() {
    let mut config = config();
    config.limits.max_pages = Some(1);
    config.limits.max_pages_per_host = Some(1);
    let mut frontier = frontier(config);
    let sitemap = named("https://a.example/sitemap.xml");
    let twice = [sitemap.clone(), sitemap.clone()];
    let verdicts = frontier.offer(&twice, START).unwrap();
    assert_eq!(verdicts, [Verdict::Queued, Verdict::Seen]);
    let lease = one(&mut frontier, START);
    assert_eq!(
        lease.entry.purpose,
        Purpose::Sitemap(url("https://a.example/").origin())
    );
    let (fate, verdicts) = settle(&mut frontier, &lease, Outcome::Done, vec![sitemap], START);
    assert_eq!((fate, verdicts), (Fate::Final, vec![Verdict::Seen]));
    assert_eq!(
        one(&mut frontier, START).entry.purpose,
        Purpose::Page,
        "the page budget is untouched"
    );
    let report = frontier.report();
    assert_eq!((report.sitemaps.queued, report.sitemaps.seen), (1, 2));
    assert_eq!((report.links.offered(), report.pages.done), (1, 0));
}

#[test]
fn a_page_with_the_url_of_a_sitemap_is_fetched_separately() {
    let mut frontier = frontier(config());
    let address = "https://a.example/feed.xml";
    let links = [named(address), Link::found(url(address), 1, "".into())];
    assert_eq!(
        frontier.offer(&links, START).unwrap(),
        [Verdict::Queued, Verdict::Queued]
    );
}

#[test]
fn sitemaps_beyond_the_limit_are_refused() {
    let mut config = config();
    config.limits.max_sitemaps = 2;
    let mut frontier = frontier(config);
    let sitemaps: Vec<_> = (1..5).map(|n| named(&format!("https://a.example/{n}.xml"))).collect();
    let many = Verdict::Refused(Refusal::TooManySitemaps);
    let expected = [Verdict::Queued, Verdict::Queued, many, many];
    assert_eq!(frontier.offer(&sitemaps, START).unwrap(), expected);
    assert_eq!(frontier.report().sitemaps.refused[&Refusal::TooManySitemaps], 2);
}

#[test]
fn a_sitemap_may_lie_where_its_robots_txt_says_and_what_an_index_names_must_lie_beside_it() {
    let mut frontier = frontier(config());
    let elsewhere = Verdict::Refused(Refusal::OtherHost);
    let cdn = "https://cdn.example/index.xml";
    for (link, expected) in [
        (named(cdn), Verdict::Queued),
        (indexed("https://cdn.example/1.xml", cdn, 1), Verdict::Queued),
        (indexed("https://a.example/1.xml", cdn, 1), Verdict::Queued),
        (indexed("https://victim.example/1.xml", cdn, 1), elsewhere),
        (indexed("https://a.example/3.xml", cdn, 3), Verdict::Queued),
        (
            indexed("https://a.example/4.xml", cdn, 4),
            Verdict::Refused(Refusal::TooDeep),
        ),
        (
            Link::sitemap(
                url("https://a.example/b.xml"),
                url("https://b.example/").origin(),
                0,
                None,
            ),
            elsewhere,
        ),
    ] {
        let verdicts = frontier.offer(std::slice::from_ref(&link), START).unwrap();
        assert_eq!(verdicts, [expected], "{}", link.url);
    }
}

#[test]
fn a_crawl_below_a_directory_reads_the_sitemaps_of_the_whole_host() {
    let mut config = config();
    config.scope = ScopeConfig {
        reach: Reach::Prefix,
        ..ScopeConfig::default()
    };
    let mut frontier = Frontier::in_memory(config).unwrap();
    frontier.add_seed(&url("https://a.example/docs/"), START).unwrap();
    let verdicts = frontier
        .offer(&[named("https://a.example/sitemap.xml")], START)
        .unwrap();
    assert_eq!(verdicts, [Verdict::Queued]);
}

#[test]
fn a_sitemap_on_another_host_waits_for_the_robots_txt_there() {
    let mut config = config();
    config.politeness.ask_robots = true;
    let mut frontier = frontier(config);
    let robots = one(&mut frontier, START);
    let known = robots.settle(Outcome::Done).with_rules(Forbid::nothing());
    let settled = commit(
        &mut frontier,
        known.with_links(vec![named("https://cdn.example/1.xml")]),
        START,
    );
    assert_eq!(settled.verdicts, [Verdict::Queued]);
    let page = one(&mut frontier, START);
    settle(&mut frontier, &page, Outcome::Done, Vec::new(), START);
    let lease = one(&mut frontier, START);
    assert_eq!(&*lease.entry.url, "https://cdn.example/robots.txt");
}

#[test]
fn a_sitemap_that_is_redirected_stays_a_sitemap() {
    let mut frontier = frontier(config());
    frontier
        .offer(&[named("https://a.example/sitemap.xml")], START)
        .unwrap();
    let lease = one(&mut frontier, START);
    let target = lease.entry.redirected(url("https://a.example/sitemaps/all.xml"));
    assert_eq!(
        settle(&mut frontier, &lease, Outcome::Redirected, vec![target], START).1,
        [Verdict::Queued]
    );
    let page = one(&mut frontier, START);
    settle(&mut frontier, &page, Outcome::Done, Vec::new(), START);
    let again = one(&mut frontier, START);
    assert_eq!((&again.entry.purpose, again.entry.hops), (&lease.entry.purpose, 1));
}

#[test]
fn a_sitemap_that_fails_is_asked_for_again_and_blocks_no_page() {
    let mut frontier = frontier(config());
    frontier
        .offer(&[named("https://a.example/sitemap.xml")], START)
        .unwrap();
    for (seconds, attempt) in [(0, 1), (1, 2), (3, 3)] {
        let lease = one(&mut frontier, at(seconds));
        assert_eq!(
            (&*lease.entry.url, lease.entry.attempts),
            ("https://a.example/sitemap.xml", attempt)
        );
        let retry = failing(FailureKind::Status);
        let (fate, _) = settle(&mut frontier, &lease, retry, Vec::new(), at(seconds));
        assert_eq!(fate == Fate::GaveUp, attempt == 3);
        if attempt == 1 {
            let page = one(&mut frontier, at(seconds));
            assert_eq!(page.entry.purpose, Purpose::Page);
            settle(&mut frontier, &page, Outcome::Done, Vec::new(), at(seconds));
        }
    }
    assert_eq!(frontier.report().pages.retries, 0, "it is no page");
    assert_eq!(frontier.lease(at(9), 1).unwrap(), Leasing::Drained);
}

#[test]
fn the_lastmod_of_a_sitemap_stays_with_its_page() {
    let mut frontier = frontier(config());
    let link = Link {
        lastmod: Some(at(0)),
        ..Link::found(url("https://a.example/1"), 1, "https://a.example/sitemap.xml".into())
    };
    frontier.offer(&[link], START).unwrap();
    let seed = one(&mut frontier, START);
    settle(&mut frontier, &seed, Outcome::Done, Vec::new(), START);
    let page = one(&mut frontier, START);
    assert_eq!(page.entry.metadata.lastmod, Some(at(0)));
    let moved = page.entry.redirected(url("https://a.example/2"));
    assert_eq!((moved.lastmod, moved.sitemap_of), (Some(at(0)), None));
}
