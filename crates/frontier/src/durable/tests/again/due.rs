//! Pages are visited again as planned: none is forgotten, none is early, and hosts have their share, over any failures and kills.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;

use super::{Crawl, DAY, asking_robots, page, url};
use crate::{
    Class, CrawlPolicy, FailureKind, Fingerprint, FreshnessConfig, FrontierConfig, Leasing, Link, Outcome, PageEnd,
    Purpose, Refetch, Time, Validators,
};

pub(super) const HOUR: Duration = Duration::from_secs(3600);

pub(super) fn kept_fresh() -> FrontierConfig {
    let mut config = asking_robots();
    config.politeness.delay = Duration::from_secs(1);
    config.freshness = FreshnessConfig {
        keeps_fresh: true,
        min_age: 2 * HOUR,
        max_age: DAY,
        ..FreshnessConfig::default()
    };
    config
}

#[derive(Debug, Clone)]
enum Happening {
    Kill,
    Save,
    Pass(u32),
    Again(usize),
    Fetch(Vec<Option<FailureKind>>),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let kind = prop_oneof![
        4 => Just(None),
        1 => Just(Some(FailureKind::Timeout)),
        1 => Just(Some(FailureKind::Connect)),
        1 => Just(Some(FailureKind::Status)),
    ];
    let one = prop_oneof![
        1 => Just(Happening::Kill),
        2 => Just(Happening::Save),
        3 => prop_oneof![1..100_u32, 1000..30_000_u32].prop_map(Happening::Pass),
        3 => (1_usize..6).prop_map(Happening::Again),
        4 => prop::collection::vec(kind, 1..5).prop_map(Happening::Fetch),
    ];
    prop::collection::vec(one, 0..120)
}

/// When pages were visited, by their URLs: what a kill undid is not there.
#[derive(Default)]
struct Visits(BTreeMap<String, Time>);

impl Visits {
    /// Leases what is ready, and settles it.
    fn fetch(&mut self, crawl: &mut Crawl, kinds: &[Option<FailureKind>]) {
        match crawl.frontier.lease(crawl.now, kinds.len()).unwrap() {
            Leasing::Ready(leases) => {
                for (lease, kind) in leases.iter().zip(kinds) {
                    if lease.entry.purpose == Purpose::Page && lease.entry.is_refresh() {
                        let since = self.0.get(&*lease.entry.url).map(|last| crawl.now.since(*last));
                        assert!(since.is_none_or(|since| since >= 2 * HOUR), "{lease:?} after {since:?}");
                    }
                    crawl.settle(lease, *kind);
                    if kind.is_none() {
                        self.0.insert(lease.entry.url.to_string(), crawl.now);
                    }
                }
            }
            Leasing::NotUntil(time) if time.since(crawl.now) < HOUR => crawl.now = time,
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::cases(100), ..ProptestConfig::default() })]

    #[test]
    fn no_page_is_forgotten_and_none_is_early(all in happenings(), late in any::<bool>()) {
        let mut config = kept_fresh();
        let freshness = config.freshness;
        // What has ended before is planned later.
        config.freshness.keeps_fresh = !late;
        let mut crawl = Crawl::new(config);
        let pages: Vec<_> = (0..3).flat_map(|host| (0..5).map(move |n| page(host, n))).collect();
        crawl.offer(&pages);
        crawl.save();
        let mut visits = Visits::default();
        let half = all.len() / 2;
        for (step, one) in all.into_iter().enumerate() {
            if step == half {
                crawl.config.freshness = freshness;
                crawl.save();
                crawl.kill();
            }
            match one {
                Happening::Kill => {
                    crawl.pass(Duration::from_secs(1));
                    crawl.kill();
                    visits.0.clear();
                }
                Happening::Save => crawl.save(),
                Happening::Pass(seconds) => crawl.pass(Duration::from_secs(seconds.into())),
                Happening::Again(up_to) => _ = crawl.again(Refetch::Due, up_to),
                Happening::Fetch(kinds) => visits.fetch(&mut crawl, &kinds),
            }
            let mut waiting = crawl.waiting();
            waiting.sort_unstable();
            let in_all = waiting.len();
            waiting.dedup();
            prop_assert_eq!(waiting.len(), in_all, "no page waits twice");
        }
        crawl.config.freshness = freshness;
        crawl.save();
        crawl.kill();
        let begin = crawl.now;
        // Failures rest for a day at most, and then each page is visited once a day.
        while crawl.now < begin + 4 * DAY {
            let next = crawl.again(Refetch::Due, 100).next;
            for _ in 0..10 {
                visits.fetch(&mut crawl, &[None; 8]);
            }
            crawl.save();
            crawl.now = next.unwrap_or_default().clamp(crawl.now + HOUR / 4, crawl.now + HOUR);
        }
        let rows = crawl.pages();
        prop_assert_eq!(rows.len(), pages.len());
        for (url, page) in rows {
            let last = page.visits.last.unwrap_or_default();
            prop_assert!(page.end == PageEnd::Done && crawl.now.since(last) < DAY + 2 * HOUR, "{}: {:?}", url, page);
        }
    }
}

/// Visits for some days, and returns how many there were on each day, by host.
fn visits_of_days(crawl: &mut Crawl, days: u32) -> BTreeMap<String, Vec<u64>> {
    let (begin, mut visits) = (crawl.now, BTreeMap::<String, Vec<u64>>::new());
    while crawl.now < begin + DAY * days {
        let next = crawl.again(Refetch::Due, 1000).next;
        let next = next.unwrap_or_default().clamp(crawl.now + HOUR / 12, crawl.now + HOUR);
        match crawl.frontier.lease(crawl.now, 64).unwrap() {
            Leasing::Ready(leases) => {
                for lease in &leases {
                    let day = (crawl.now.since(begin).as_secs() / DAY.as_secs()) as usize;
                    let of_days = visits.entry(lease.entry.queue.to_string()).or_default();
                    of_days.resize(of_days.len().max(day + 1), 0);
                    of_days[day] += u64::from(lease.entry.purpose == Purpose::Page);
                    crawl.settle(lease, None);
                }
            }
            Leasing::NotUntil(time) => crawl.now = time.min(next),
            _ => crawl.now = next,
        }
        crawl.save();
    }
    visits
}

#[test]
fn a_host_has_its_share_for_revisits_and_the_crawl_its_budget() {
    let mut config = kept_fresh();
    config.politeness.delay = Duration::from_secs(240);
    let mut crawl = Crawl::new(config.clone());
    crawl.offer(&(0..150).map(|n| page(0, n)).collect::<Vec<_>>());
    crawl.offer(&(0..2).map(|n| page(1, n)).collect::<Vec<_>>());
    crawl.fetch(|_| None);
    // A tenth of 360 requests a day, once the first are worth a visit; each of the other two pages every two hours.
    let visits = visits_of_days(&mut crawl, 14);
    let [most, few] = ["host0.example", "host1.example"].map(|host| &visits[host][..]);
    assert!(most.iter().all(|visits| (0..=37).contains(visits)), "{most:?}");
    assert!((8 * 30..=8 * 37).contains(&most[6..14].iter().sum::<u64>()), "{most:?}");
    assert!(few[1..].iter().all(|visits| (20..=25).contains(visits)), "{few:?}");

    config.freshness.revisits_per_second = Some(20.0 / 86_400.0);
    crawl.config = config;
    crawl.save();
    crawl.kill();
    let visits = visits_of_days(&mut crawl, 16);
    let on = |day: usize| visits.values().filter_map(|days| days.get(day)).sum::<u64>();
    let last: Vec<_> = (8..16).map(on).collect();
    assert!(last.iter().all(|visits| (0..=21).contains(visits)), "{last:?}");
    assert!((8 * 16..=8 * 21).contains(&last.iter().sum::<u64>()), "{last:?}");
}

#[test]
fn revisits_are_not_kept_back_by_new_pages_and_take_a_quarter_at_most() {
    let mut config = kept_fresh();
    config.freshness.revisit_share = 1.0;
    let mut crawl = Crawl::new(config);
    crawl.offer(&(0..100).map(|n| page(0, n)).collect::<Vec<_>>());
    crawl.fetch(|_| None);
    crawl.pass(DAY);
    crawl.offer(&(100..400).map(|n| page(0, n)).collect::<Vec<_>>());
    let mut revisits = Vec::new();
    while revisits.len() < 200 {
        crawl.again(Refetch::Due, 1000);
        for lease in crawl.leases(1) {
            if lease.entry.purpose == Purpose::Page {
                revisits.push(lease.entry.is_refresh());
            }
            crawl.settle(&lease, None);
        }
        crawl.save();
        crawl.pass(Duration::from_secs(1));
    }
    let in_all = revisits.iter().filter(|is_revisit| **is_revisit).count();
    assert!((40..=51).contains(&in_all), "{in_all} of 200");
}

#[test]
fn a_page_that_is_queued_for_another_reason_is_not_due_meanwhile() {
    let mut crawl = Crawl::new(kept_fresh());
    let pages: Vec<_> = (0..20).map(|n| page(0, n)).collect();
    crawl.offer(&pages);
    let is_odd = |url: &str| url.ends_with(['1', '3', '5', '7', '9']);
    crawl.fetch(|lease| is_odd(&lease.entry.url).then_some(FailureKind::Status));
    let urls: Vec<_> = pages.iter().map(|page| url(page)).collect();
    let queued = crawl.frontier.queue_ended(&urls, crawl.now).unwrap();
    assert!(queued.iter().all(|is_queued| *is_queued));
    crawl.save();
    crawl.kill();
    for _ in 0..60 {
        crawl.pass(HOUR);
        crawl.again(Refetch::Due, 100);
        crawl.save();
    }
    assert_eq!(crawl.waiting().len(), pages.len(), "each waits once");
    crawl.fetch(|_| None);
    crawl.pass(DAY + HOUR);
    for _ in 0..pages.len() {
        crawl.again(Refetch::Due, 100);
        crawl.fetch(|_| None);
        crawl.pass(Duration::from_secs(60));
    }
    assert!(
        crawl.pages().values().all(|page| page.visits.count >= 2),
        "and is planned anew"
    );
}

#[test]
fn a_spent_page_budget_holds_new_pages_and_no_revisit() {
    let mut config = kept_fresh();
    config.limits.max_pages = Some(12);
    let mut crawl = Crawl::new(config);
    crawl.offer(
        &(0..4)
            .flat_map(|host| (0..10).map(move |n| page(host, n)))
            .collect::<Vec<_>>(),
    );
    let mut fetched = BTreeMap::<String, usize>::new();
    let mut days = |crawl: &mut Crawl, days: u32| {
        let end = crawl.now + DAY * days;
        while crawl.now < end {
            let next = crawl.again(Refetch::Due, 1000).next.unwrap_or_default();
            let next = next.clamp(crawl.now + HOUR / 12, crawl.now + HOUR);
            match crawl.frontier.lease(crawl.now, 3).unwrap() {
                Leasing::Ready(leases) => {
                    for lease in &leases {
                        if lease.entry.purpose == Purpose::Page {
                            *fetched.entry(lease.entry.url.to_string()).or_default() += 1;
                        }
                        let fails = lease.entry.is_refresh() && crawl.now.as_millis().is_multiple_of(3);
                        crawl.settle(lease, fails.then_some(FailureKind::Status));
                    }
                }
                Leasing::NotUntil(time) => crawl.now = time.min(next),
                _ => crawl.now = next,
            }
            crawl.save();
        }
        fetched.clone()
    };
    let first = days(&mut crawl, 5);
    assert_eq!(first.len(), 12, "{first:?}");
    assert!(first.values().all(|times| *times >= 5), "{first:?}");
    assert_eq!(crawl.waiting().len(), 28);
    crawl.kill();
    let more = days(&mut crawl, 5);
    assert!(more.iter().all(|(url, times)| first[url] + 4 < *times), "{more:?}");

    crawl.config.limits.max_pages = Some(20);
    crawl.kill();
    assert_eq!(days(&mut crawl, 3).len(), 20);
    let policy = CrawlPolicy {
        max_pages: Some(40),
        ..CrawlPolicy::default()
    };
    crawl.frontier.set_crawl_policy(&policy, crawl.now).unwrap();
    assert_eq!(days(&mut crawl, 3).len(), 40);
}

/// Returns the visits of the pages of a class in eight days, and how many rows were written for pages that found no slot.
fn of_a_slow_host(class: Class) -> (u64, u64) {
    let mut config = kept_fresh();
    config.politeness.delay = Duration::from_secs(60);
    let mut crawl = Crawl::new(config);
    let links = (0..400).map(|n| Link {
        class: Some(class),
        ..Link::found(url(&page(0, n)), 2, "http://host0.example/".into())
    });
    let links: Vec<_> = links.collect();
    crawl.frontier.offer(&links, crawl.now).unwrap();
    let (mut visits, mut put_off) = (0, 0);
    let end = crawl.now + 8 * DAY;
    while crawl.now < end {
        crawl.pass(Duration::from_secs(60));
        put_off += crawl.again(Refetch::Due, 1000).passed;
        for lease in crawl.leases(8) {
            if lease.entry.purpose != Purpose::Page {
                crawl.settle(&lease, None);
                continue;
            }
            visits += u64::from(lease.entry.is_refresh());
            let content = u128::from(crawl.now.as_millis() / 3_600_000).into();
            let settlement = lease.settle(Outcome::Done);
            let settlement = settlement.with_version(Validators::default(), Some(content));
            crawl.frontier.settle(&[settlement], crawl.now).unwrap();
        }
        crawl.save();
    }
    (visits, put_off)
}

#[test]
fn a_page_that_finds_no_slot_is_promised_one_of_its_own() {
    for class in [Class::default(), Class::FIRST] {
        let (visits, put_off) = of_a_slow_host(class);
        // One in ten minutes.
        assert!((850..=1152).contains(&visits), "{visits}");
        assert!(
            put_off < 4 * visits,
            "{class:?}: {put_off} rows were written for {visits} visits"
        );
    }
}

/// More revisits are due than requests are made: hosts have turns for them.
/// Returns how many pages were fetched, and how many were postponed at most.
fn busy(alike: bool) -> (usize, u64) {
    let mut config = kept_fresh();
    config.freshness.min_age = Duration::from_secs(20);
    config.freshness.revisit_share = 0.5;
    config.traps.max_near_duplicates = NonZeroU32::new(2);
    let mut crawl = Crawl::new(config);
    crawl.offer(&(0..10).map(|n| page(0, n)).collect::<Vec<_>>());
    crawl.offer(&(0..80).map(|n| page(1 + n / 2, n % 2)).collect::<Vec<_>>());
    let (mut fetched, mut waited, mut postponed) = (BTreeSet::new(), 0, 0);
    for _ in 0..2000 {
        crawl.again(Refetch::Due, 100);
        let report = crawl.frontier.report();
        waited += u32::from(report.queued > report.postponed);
        postponed = report.postponed.max(postponed);
        for lease in crawl.leases(1) {
            fetched.insert(lease.entry.url.to_string());
            let of_page = lease.entry.purpose == Purpose::Page && !lease.entry.is_refresh();
            if alike && of_page && lease.entry.queue.as_str() == "host0.example" {
                let fingerprint = Fingerprint::new(None, Some(1.into()));
                let settlement = lease.settle(Outcome::Done).with_fingerprint(fingerprint);
                crawl.frontier.settle(&[settlement], crawl.now).unwrap();
            } else {
                crawl.settle(&lease, None);
            }
        }
        crawl.save();
        crawl.pass(Duration::from_secs(1));
    }
    assert_eq!(waited, 2000);
    assert!(crawl.frontier.report().pages.refreshed > 1000);
    (fetched.len(), postponed)
}

#[test]
fn new_and_postponed_pages_have_their_turn_though_more_revisits_wait_than_requests_are_made() {
    assert_eq!(busy(false), (90 + 41, 0), "and each robots.txt");
    let (fetched, postponed) = busy(true);
    assert!(fetched == 90 + 41 && postponed > 3, "{fetched} {postponed}");
}

#[test]
fn a_host_that_was_given_up_is_asked_again_after_an_hour_doubling_to_a_day_and_its_pages_are_visited_once_it_is_back() {
    let mut crawl = Crawl::new(kept_fresh());
    let pages: Vec<_> = (0..30).map(|n| page(0, n)).collect();
    crawl.offer(&pages);
    let (begin, mut asked, mut visited) = (crawl.now, Vec::new(), BTreeSet::new());
    while crawl.now < begin + 12 * DAY {
        crawl.again(Refetch::Due, 100);
        let is_back = crawl.now > begin + 8 * DAY;
        for lease in crawl.leases(8) {
            if is_back {
                visited.insert(lease.entry.url.to_string());
            } else {
                asked.push(crawl.now.since(begin).as_secs() / 3600);
            }
            crawl.settle(&lease, (!is_back).then_some(FailureKind::Connect));
        }
        let _ = crawl.frontier.lease(crawl.now, 0).unwrap();
        crawl.save();
        crawl.pass(Duration::from_secs(20));
    }
    asked.dedup();
    assert!((8..=20).contains(&asked.len()), "{asked:?}");
    assert_eq!(visited.len(), 31, "and robots.txt");
}
