//! Near-duplicates: many of them are postponed, and only far too many are refused.

use std::num::NonZeroU32;
use std::time::Duration;

use frontier::{
    FailureKind, Fingerprint, Frontier, FrontierConfig, Lease, Leasing, Link, NotFetched, Notice, Outcome,
    PolitenessConfig, Refusal, Settled, Time, TrapConfig, Verdict,
};

use crate::common::{
    self, START, alike, commit, config, end, failing, link, links, names, next, offer, one, pages, settle, url,
    with_pages,
};

const REFUSED: Verdict = Verdict::Refused(Refusal::NearDuplicates);

/// Postpones beyond the first number of near-duplicates, and refuses beyond the second. 0 is no limit.
fn limits(postponed: u32, refused: u32) -> FrontierConfig {
    FrontierConfig {
        traps: TrapConfig {
            max_near_duplicates: NonZeroU32::new(postponed),
            max_near_duplicates_in_all: NonZeroU32::new(refused),
            compare_one_of: NonZeroU32::MIN,
            ..config().traps
        },
        ..config()
    }
}

/// Settles a page with what it is compared by and what it leads to.
fn seen(frontier: &mut Frontier, lease: &Lease, fingerprint: Fingerprint, links: Vec<Link>) -> Settled {
    let done = end(lease, Outcome::Done)
        .with_fingerprint(fingerprint)
        .with_links(links);
    commit(frontier, done, START)
}

/// Fetches the next page, which leads nowhere.
fn fetch(frontier: &mut Frontier, fingerprint: impl Fn(&Lease) -> Fingerprint) -> Settled {
    let lease = one(frontier, START);
    seen(frontier, &lease, fingerprint(&lease), Vec::new())
}

/// Fetches all pages, those of the catalogue all alike. Returns their URLs in order, and the notices.
fn fetch_all(frontier: &mut Frontier, catalogue: &str) -> (Vec<String>, Vec<Notice>) {
    let (mut order, mut notices) = (Vec::new(), Vec::new());
    loop {
        match frontier.lease(START, 1).unwrap() {
            Leasing::Ready(leases) => {
                let lease = &leases[0];
                order.push(lease.entry.url.to_string());
                let settled = if lease.entry.url.contains(catalogue) {
                    seen(frontier, lease, alike(lease), Vec::new())
                } else {
                    settle(frontier, lease, Outcome::Done, START)
                };
                notices.extend(settled.notices);
            }
            Leasing::Dropped(dropped) => {
                assert!(dropped.iter().all(|one| one.why == NotFetched::NearDuplicates));
            }
            Leasing::Drained => return (order, notices),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn near_duplicates_below_the_second_limit_are_all_fetched_after_everything_else() {
    let mut all = pages("https://a.example/catalogue/", 4_000);
    all.extend(pages("https://a.example/docs/", 50));
    all.extend(pages("https://b.example/", 50));
    let mut frontier = with_pages(config(), &all);
    let (order, notices) = fetch_all(&mut frontier, "/catalogue/");
    assert_eq!(order.len(), 4_100, "with the limits by default");
    let last_other = order.iter().rposition(|url| !url.contains("/catalogue/")).unwrap();
    assert!(last_other < 700, "what is else there waits for {last_other} pages");
    assert_eq!(names(&notices), ["postponed"], "once");
    let Notice::Postponed { place, first } = &notices[0] else {
        unreachable!()
    };
    assert_eq!(
        (&**place, &**first),
        ("https://a.example/catalogue/#", "https://a.example/catalogue/0")
    );
    let report = frontier.report();
    assert_eq!(
        (report.postponed_prefixes, report.closed_prefixes, report.postponed),
        (1, 0, 0)
    );
}

#[test]
fn near_duplicates_beyond_the_second_limit_are_refused_and_queued_ones_dropped() {
    let mut all = pages("https://a.example/calendar/", 20);
    all.push(link("https://a.example/about"));
    let mut frontier = with_pages(limits(3, 8), &all);
    let (order, notices) = fetch_all(&mut frontier, "/calendar/");
    assert_eq!(names(&notices), ["postponed", "prefix closed"]);
    assert_eq!(order.len(), 10 + 1, "the ninth that resembles the first closes it");
    assert_eq!(order[5], "https://a.example/about", "the fourth postpones it");
    let report = frontier.report();
    assert_eq!(report.not_fetched[&NotFetched::NearDuplicates], 10);
    assert_eq!((report.postponed_prefixes, report.closed_prefixes), (1, 1));
    let verdicts = offer(
        &mut frontier,
        &[
            "https://a.example/calendar/99",
            "https://a.example/calendar/",
            "https://a.example/calendar/99/1",
            "https://b.example/calendar/99",
        ],
        START,
    );
    assert_eq!(verdicts, [REFUSED, Verdict::Queued, Verdict::Queued, Verdict::Queued]);
}

#[test]
fn pages_that_were_in_flight_when_a_prefix_was_closed_are_no_further_notice() {
    let config = FrontierConfig {
        politeness: PolitenessConfig {
            per_host: NonZeroU32::new(9).unwrap(),
            ..limits(2, 4).politeness
        },
        ..limits(2, 4)
    };
    let mut frontier = with_pages(config, &pages("https://a.example/list/", 9));
    let mut notices = Vec::new();
    for lease in common::ready(&mut frontier, START) {
        notices.extend(seen(&mut frontier, &lease, alike(&lease), Vec::new()).notices);
    }
    assert_eq!(names(&notices), ["postponed", "prefix closed"]);
}

#[test]
fn postponed_pages_wait_behind_retries_too() {
    let mut all = pages("https://a.example/list/", 8);
    all.push(link("https://a.example/flaky"));
    let mut frontier = with_pages(limits(2, 100), &all);
    let (mut order, mut now) = (Vec::new(), START);
    while !frontier.report().is_drained() {
        let lease = next(&mut frontier, &mut now);
        let name = lease.entry.url.trim_start_matches("https://a.example/").to_owned();
        if name == "flaky" && lease.entry.attempts < 3 {
            settle(&mut frontier, &lease, failing(FailureKind::Status), now);
        } else {
            let done = end(&lease, Outcome::Done).with_fingerprint(alike(&lease));
            commit(&mut frontier, done, now);
        }
        order.push(name);
    }
    let expected = [
        "list/0", "list/1", "list/2", "list/3", "flaky", "flaky", "flaky", "list/4", "list/5",
    ];
    assert_eq!(order[..9], expected);
}

#[test]
fn new_links_come_before_postponed_pages() {
    let mut frontier = with_pages(limits(1, 100), &pages("https://a.example/list/", 600));
    for _ in 0..3 {
        fetch(&mut frontier, alike);
    }
    let lease = one(&mut frontier, START);
    assert_eq!(&*lease.entry.url, "https://a.example/list/3");
    assert!(lease.entry.postponed);
    assert!(
        frontier.report().postponed > 500,
        "only some are brought back at a time"
    );
    seen(
        &mut frontier,
        &lease,
        alike(&lease),
        links(&["https://a.example/about", "https://a.example/list/9999"]),
    );
    assert_eq!(frontier.report().links.queued, 602);
    let mut before_it = 0;
    loop {
        let lease = one(&mut frontier, START);
        settle(&mut frontier, &lease, Outcome::Done, START);
        if lease.entry.url.ends_with("/about") {
            break;
        }
        before_it += 1;
    }
    assert!(before_it < 600, "{before_it}");
}

/// The link of a page in a chain that leads deeper and deeper, into directories with names of letters.
fn deeper(lease: &Lease) -> Vec<Link> {
    let depth = u8::try_from(lease.entry.url.matches('/').count()).unwrap();
    let name = [depth / 26, depth % 26].map(|letter| char::from(b'a' + letter));
    links(&[&format!("{}{}{}/", lease.entry.url, name[0], name[1])])
}

/// Follows a chain of pages to its end. Returns how many there are, and the notices.
fn chain(config: FrontierConfig, fingerprint: impl Fn(&Lease) -> Fingerprint) -> (u32, Vec<Notice>) {
    let mut frontier = with_pages(config, &[link("https://a.example/")]);
    let (mut asked, mut notices) = (0, Vec::new());
    while let Leasing::Ready(leases) = frontier.lease(START, 1).unwrap() {
        asked += 1;
        if asked == 100 {
            break;
        }
        notices.extend(seen(&mut frontier, &leases[0], fingerprint(&leases[0]), deeper(&leases[0])).notices);
    }
    (asked, notices)
}

#[test]
fn links_of_a_page_repeated_all_over_a_site_are_postponed_and_then_refused() {
    let (asked, notices) = chain(limits(3, 8), alike);
    assert_eq!(
        (asked, names(&notices)),
        (10, vec!["postponed", "prefix closed"]),
        "the first is no duplicate"
    );
    let Notice::PrefixClosed { place, first } = &notices[1] else {
        unreachable!()
    };
    assert_eq!((&**place, &**first), ("a.example", "https://a.example/"));

    let mut frontier = with_pages(
        limits(1, 8),
        &links(&["https://a.example/x/", "https://a.example/y/", "https://a.example/z/"]),
    );
    let found = |n: u32| links(&[&format!("https://a.example/found-on/{n}/")]);
    for n in 0..3 {
        let lease = one(&mut frontier, START);
        seen(&mut frontier, &lease, alike(&lease), found(n));
    }
    assert_eq!(
        frontier.report().postponed,
        1,
        "the link of the third: the second that resembles the first"
    );
}

#[test]
fn a_host_with_pages_that_look_alike_takes_as_long_as_those_to_come_may() {
    let host = url("https://a.example/").host();
    for (limits, most) in [(limits(3, 100), 100), (limits(3, 0), 0)] {
        // The ordinary pages are no part of the calendar.
        let mut frontier = with_pages(limits, &pages("https://a.example/docs/", 50));
        for _ in 0..50 {
            let lease = one(&mut frontier, START);
            settle(&mut frontier, &lease, Outcome::Done, START);
        }
        offer(&mut frontier, &["https://a.example/calendar/0"], START);
        for n in 1..=7 {
            let lease = one(&mut frontier, START);
            let next = links(&[&format!("https://a.example/calendar/{n}")]);
            seen(&mut frontier, &lease, alike(&lease), next);
            let report = frontier.host_report(&host, START).unwrap();
            // The first resembles none. The fifth resembles four others, so what it leads to waits behind all other pages.
            let is_behind = n >= 5;
            let alike = if is_behind { (most + 1_u64).saturating_sub(n) } else { 0 };
            assert_eq!((report.is_behind(), report.alike), (is_behind, alike), "{n}");
            let left = report.time_left(Duration::from_secs(1), 0.0, START);
            assert_eq!(left, Some(Duration::from_secs(report.alike.max(1))), "{n}");
        }
        let lease = one(&mut frontier, START);
        let report = frontier.host_report(&host, START).unwrap();
        assert_eq!((report.is_behind(), report.alike > 0), (false, most > 0), "in flight");
        settle(&mut frontier, &lease, Outcome::Done, START);
        let report = frontier.host_report(&host, START).unwrap();
        assert_eq!(report.alike, 0, "nothing waits that looks alike");
    }
}

#[test]
fn a_host_whose_calendar_is_closed_takes_as_long_as_what_waits() {
    let mut frontier = with_pages(limits(3, 8), &pages("https://a.example/calendar/", 30));
    while frontier.report().closed_prefixes == 0 {
        fetch(&mut frontier, alike);
    }
    let left = |frontier: &Frontier| {
        let report = frontier.host_report(&url("https://a.example/").host(), START).unwrap();
        (report.alike, report.time_left(Duration::from_secs(1), 0.0, START))
    };
    assert_eq!(left(&frontier).0, 0, "no more may come");
    // Pages of another cluster, a small one, change nothing.
    offer(
        &mut frontier,
        &[
            "https://a.example/x/0",
            "https://a.example/x/1",
            "https://a.example/x/2",
        ],
        START,
    );
    let other = Fingerprint::new(Some(7.into()), Some((!0xABCD_u64).into()));
    loop {
        match frontier.lease(START, 1).unwrap() {
            Leasing::Ready(leases) => {
                seen(&mut frontier, &leases[0], other, Vec::new());
                assert_eq!(left(&frontier).0, 0);
            }
            Leasing::Dropped(_) => {}
            _ => break,
        }
    }
}

#[test]
fn pages_without_words_that_lead_on_are_one_cluster_and_those_that_lead_nowhere_are_none() {
    let wordless = |lease: &Lease| Fingerprint::new(Some(u128::from(lease.id.as_u64()).into()), None);
    assert_eq!(chain(limits(3, 8), wordless).0, 9, "no chain of them is without end");
    assert_eq!(
        chain(limits(3, 8), |_| Fingerprint::default()).0,
        9,
        "nor of empty ones"
    );

    let mut gallery = with_pages(limits(3, 8), &pages("https://a.example/gallery/", 40));
    for _ in 0..40 {
        assert_eq!(fetch(&mut gallery, wordless).notices, []);
    }
    assert!(gallery.report().is_drained());
}

#[test]
fn links_that_were_left_out_because_they_are_known_lead_on_too() {
    let mut frontier = with_pages(limits(3, 8), &pages("https://a.example/gallery/", 4));
    let mut notices = Vec::new();
    for n in 0..4 {
        let lease = one(&mut frontier, START);
        let wordless = Fingerprint::new(Some(n.into()), None);
        let done = end(&lease, Outcome::Done)
            .with_fingerprint(wordless)
            .with_known_links(5);
        notices.extend(commit(&mut frontier, done, START).notices);
    }
    assert_eq!(names(&notices), ["postponed"]);
    assert_eq!(frontier.report().links.seen, 20, "and are counted");
}

#[test]
fn pages_with_the_same_bytes_are_one_cluster_with_or_without_words() {
    for text in [None, Some(7.into())] {
        let same = |_: &Lease| Fingerprint::new(Some(1.into()), text);
        let mut frontier = with_pages(limits(3, 8), &pages("https://a.example/", 5));
        let mut notices = Vec::new();
        for n in 0..4 {
            let settled = fetch(&mut frontier, same);
            let first = (n > 0).then_some("https://a.example/0");
            assert_eq!(
                (settled.duplicate_of.as_deref(), settled.near_duplicate_of.as_deref()),
                (first, first)
            );
            notices.extend(settled.notices);
        }
        assert_eq!(
            names(&notices),
            [""; 0],
            "the first is not counted as its own duplicate"
        );
        assert_eq!(names(&fetch(&mut frontier, same).notices), ["postponed"]);
        assert_eq!(frontier.report().resemblance.exact, 4);
    }
}

#[test]
fn each_site_has_a_count_of_its_own() {
    let mut frontier = with_pages(limits(3, 8), &[]);
    for n in 0..20 {
        offer(&mut frontier, &[&format!("https://h{n}.example/page")], START);
        assert_eq!(fetch(&mut frontier, alike).notices, []);
    }
}

#[test]
fn without_limits_nothing_is_postponed_or_compared() {
    let config = FrontierConfig {
        traps: TrapConfig {
            compare_one_of: config().traps.compare_one_of,
            ..limits(0, 0).traps
        },
        ..limits(0, 0)
    };
    let mut frontier = with_pages(config, &pages("https://a.example/", 200));
    let mut notices = Vec::new();
    while let Leasing::Ready(leases) = frontier.lease(START, 1).unwrap() {
        assert!(!leases[0].wants_fingerprint);
        notices.extend(seen(&mut frontier, &leases[0], alike(&leases[0]), Vec::new()).notices);
    }
    assert_eq!(notices, []);
}

#[test]
fn some_pages_of_a_site_are_compared_until_it_is_suspect_and_all_from_then_on() {
    let config = FrontierConfig {
        traps: TrapConfig {
            compare_one_of: NonZeroU32::new(4).unwrap(),
            ..limits(40, 4_000).traps
        },
        ..limits(40, 4_000)
    };
    let mut frontier = with_pages(config, &pages("https://a.example/", 400));
    let mut compared = Vec::new();
    let now: Time = START;
    while let Leasing::Ready(leases) = frontier.lease(now, 1).unwrap() {
        let lease = &leases[0];
        compared.push(lease.wants_fingerprint);
        if lease.wants_fingerprint {
            seen(&mut frontier, lease, alike(lease), Vec::new());
        } else {
            settle(&mut frontier, lease, Outcome::Done, now);
        }
    }
    assert_eq!(compared.len(), 400);
    // The first leads the cluster, and each of ten stands for four.
    let at: Vec<_> = (0..400).filter(|n| compared[*n]).collect();
    let suspect_from = at[10];
    assert!(compared[suspect_from..].iter().all(|is_compared| *is_compared));
    assert!((10..200).contains(&suspect_from), "{suspect_from}");
}

#[test]
fn a_page_that_is_postponed_or_dropped_does_not_ask_whether_its_origin_is_back_and_another_one_does() {
    for limits in [limits(1, 100), limits(100, 1)] {
        let config = FrontierConfig {
            politeness: PolitenessConfig {
                per_host: NonZeroU32::new(2).unwrap(),
                ..limits.politeness
            },
            ..limits
        };
        let mut all = pages("https://a.example/list/", 9);
        all.push(link("https://a.example/other"));
        let mut frontier = with_pages(config, &all);
        for _ in 0..2 {
            fetch(&mut frontier, alike);
        }
        let [third, fourth] = [(); 2].map(|()| one(&mut frontier, START));
        assert_eq!(
            names(&seen(&mut frontier, &third, alike(&third), Vec::new()).notices).len(),
            1
        );
        let away = settle(&mut frontier, &fourth, failing(FailureKind::Connect), START);
        assert_eq!(names(&away.notices), ["away"]);
        let mut now = START;
        let probe = next(&mut frontier, &mut now);
        assert_eq!(&*probe.entry.url, "https://a.example/other");
        assert_eq!(
            names(&settle(&mut frontier, &probe, Outcome::Done, now).notices),
            ["back"]
        );
    }
}
