//! Visits beside the policy: by the dates of sitemaps, by orders, and by the caller's own plans.

use std::collections::BTreeMap;
use std::time::Duration;

use super::due::{HOUR, kept_fresh};
use super::{Crawl, DAY, page, url};
use crate::{
    Class, FailureKind, HostPolicy, Lease, Link, Outcome, OwnPlan, Purpose, Refetch, Refusal, Time, Validators, Verdict,
};

#[test]
fn a_plan_of_the_callers_goes_before_the_policy_also_after_a_kill() {
    let mut config = kept_fresh();
    config.freshness.revisits_per_second = Some(1.0 / 3600.0);
    (config.freshness.max_age, config.freshness.min_age) = (DAY * 60, DAY);
    let mut crawl = Crawl::new(config);
    let pages: Vec<_> = (0..40).map(|n| page(n, 0)).collect();
    crawl.offer(&pages);
    let plan = |crawl: &mut Crawl, n: usize, plan| crawl.frontier.schedule(&url(&pages[n]), plan, crawl.now).unwrap();
    assert!(!plan(&mut crawl, 0, OwnPlan::Every(HOUR)), "it has not ended");
    crawl.fetch(|_| None);
    let begin = crawl.now;
    assert!(plan(&mut crawl, 0, OwnPlan::Every(3 * HOUR)));
    assert!(plan(&mut crawl, 1, OwnPlan::At(begin + 5 * HOUR)));
    crawl.save();
    crawl.kill();
    let mut visits = BTreeMap::<String, Vec<u64>>::new();
    while crawl.now < begin + 20 * HOUR {
        crawl.again(Refetch::Due, 10);
        for lease in crawl.leases(8) {
            let hours = crawl.now.since(begin).as_secs() / 3600;
            visits.entry(lease.entry.url.to_string()).or_default().push(hours);
            crawl.settle(&lease, None);
        }
        crawl.save();
        crawl.pass(HOUR / 12);
    }
    visits.retain(|url, _| !url.ends_with("robots.txt"));
    let every = &visits[&pages[0]];
    assert!(
        every.len() >= 5 && every[0] == 3 && every.windows(2).all(|two| (3..=4).contains(&(two[1] - two[0]))),
        "{visits:?}"
    );
    assert_eq!(visits[&pages[1]], [5], "and then by the policy");
    assert_eq!(visits.len(), 2, "no other page is a day old: {visits:?}");
}

fn sitemap() -> Link {
    Link::sitemap(url("http://host0.example/s.xml"), url(&page(0, 0)).origin(), 0, None)
}

/// Leases until a sitemap comes, and settles all else.
fn lease_sitemap(crawl: &mut Crawl) -> Lease {
    for _ in 0..1000 {
        for lease in crawl.leases(1) {
            if matches!(lease.entry.purpose, Purpose::Sitemap(_)) {
                return lease;
            }
            crawl.settle(&lease, None);
        }
        crawl.pass(Duration::from_secs(60));
    }
    panic!("no sitemap was leased");
}

fn settle_dated(crawl: &mut Crawl, lease: &Lease, pages: &[String]) {
    let lastmod = Some(Time::from_millis(crawl.now.as_millis() - 1000));
    let link = |text: &String| Link {
        lastmod,
        ..Link::found(url(text), 2, "http://host0.example/s.xml".into())
    };
    let settlement = lease.settle(Outcome::Done).with_links(pages.iter().map(link).collect());
    crawl.frontier.settle(&[settlement], crawl.now).unwrap();
    crawl.save();
}

fn times_waiting(crawl: &Crawl, text: &str) -> usize {
    crawl.waiting().iter().filter(|one| *one == text).count()
}

/// Looks for what is due, and fetches it, for so long.
pub(super) fn visit_for(crawl: &mut Crawl, time: Duration, step: Duration) {
    let end = crawl.now + time;
    while crawl.now < end {
        crawl.pass(step);
        crawl.again(Refetch::Due, 1000);
        for lease in crawl.leases(8) {
            crawl.settle(&lease, None);
        }
        crawl.save();
    }
}

#[test]
fn a_sitemap_is_read_again_while_new_pages_are_held_and_waits_once_at_a_host_that_is_closed() {
    let mut config = kept_fresh();
    config.limits.max_pages = Some(1);
    let mut crawl = Crawl::new(config);
    crawl.offer(&[page(0, 0), page(0, 1)]);
    visit_for(&mut crawl, HOUR, HOUR / 60);
    assert_eq!(
        crawl.frontier.offer(&[sitemap()], crawl.now).unwrap(),
        [Verdict::Queued]
    );
    visit_for(&mut crawl, HOUR, HOUR / 60);
    assert_eq!(times_waiting(&crawl, "http://host0.example/s.xml"), 0);
    let policy = HostPolicy {
        closed_until: Some(crawl.now + 10 * DAY),
        ..HostPolicy::default()
    };
    crawl
        .frontier
        .set_policy(&url(&page(0, 0)).host(), &policy, crawl.now)
        .unwrap();
    visit_for(&mut crawl, DAY, HOUR);
    assert_eq!(times_waiting(&crawl, "http://host0.example/s.xml"), 1);
}

#[test]
fn pages_that_are_due_by_their_dates_have_the_slots_of_their_host() {
    let mut config = kept_fresh();
    config.politeness.delay = Duration::from_secs(60);
    let mut crawl = Crawl::new(config);
    let pages: Vec<_> = (0..100).map(|n| page(0, n)).collect();
    crawl.offer(&pages);
    crawl.fetch(|_| None);
    let later = OwnPlan::At(crawl.now + 30 * DAY);
    for page in &pages {
        assert!(crawl.frontier.schedule(&url(page), later, crawl.now).unwrap());
    }
    crawl.save();
    crawl.pass(3 * HOUR);
    crawl.frontier.offer(&[sitemap()], crawl.now).unwrap();
    let lease = lease_sitemap(&mut crawl);
    settle_dated(&mut crawl, &lease, &pages);
    let before = crawl.frontier.report().pages.refreshed;
    visit_for(&mut crawl, DAY / 2, Duration::from_secs(60));
    let made = crawl.frontier.report().pages.refreshed - before;
    assert!((50..=72).contains(&made), "72 slots: {made}");
}

#[test]
fn a_page_that_is_ordered_again_is_not_held_with_new_ones() {
    let mut config = kept_fresh();
    config.limits.max_pages = Some(1);
    let mut crawl = Crawl::new(config);
    crawl.offer(&[page(0, 0)]);
    crawl.fetch(|_| None);
    crawl.pass(HOUR);
    let ordered = crawl.frontier.queue_ended(&[url(&page(0, 0))], crawl.now);
    assert_eq!(ordered.unwrap(), [true]);
    crawl.save();
    visit_for(&mut crawl, HOUR / 2, HOUR / 60);
    assert_eq!(crawl.frontier.report().pages.refreshed, 1, "{:?}", crawl.waiting());
}

#[test]
fn a_page_that_waits_by_order_is_not_made_due_by_its_date_or_a_plan() {
    let mut crawl = Crawl::new(kept_fresh());
    let both = [page(1, 0), page(2, 0)];
    crawl.offer(&[page(0, 0), both[0].clone(), both[1].clone()]);
    crawl.fetch(|_| None);
    crawl.pass(HOUR);
    crawl.frontier.offer(&[sitemap()], crawl.now).unwrap();
    let lease = lease_sitemap(&mut crawl);
    let soon = OwnPlan::At(crawl.now + Duration::from_secs(10));
    assert!(crawl.frontier.schedule(&url(&both[1]), soon, crawl.now).unwrap());
    crawl
        .frontier
        .queue_ended(&both.each_ref().map(|page| url(page)), crawl.now)
        .unwrap();
    crawl.save();
    settle_dated(&mut crawl, &lease, &both);
    crawl.pass(3 * HOUR);
    crawl.again(Refetch::Due, 100);
    assert_eq!(both.each_ref().map(|page| times_waiting(&crawl, page)), [1, 1]);
}

#[test]
fn a_sitemap_that_is_refused_is_not_offered_each_second() {
    let mut crawl = Crawl::new(kept_fresh());
    crawl.offer(&[page(0, 0)]);
    crawl.fetch(|_| None);
    crawl.frontier.offer(&[sitemap()], crawl.now).unwrap();
    crawl.fetch(|_| Some(FailureKind::Connect));
    assert_eq!(crawl.frontier.report().origins_given_up, 1);
    crawl.pass(HOUR + HOUR);
    crawl.again(Refetch::Due, 0);
    crawl.save();
    crawl.pass(Duration::from_secs(1));
    crawl.again(Refetch::Due, 0);
    assert!(
        !crawl.frontier.save_status().unwrap().has_unsaved,
        "nothing has changed"
    );
}

#[test]
fn a_plan_for_a_page_in_flight_is_kept_as_it_ends() {
    let mut crawl = Crawl::new(kept_fresh());
    crawl.offer(&[page(0, 0)]);
    crawl.fetch(|_| None);
    crawl.pass(3 * HOUR);
    crawl.again(Refetch::Due, 1);
    crawl.save();
    let lease = crawl.lease(1).remove(0);
    assert!(lease.entry.is_refresh());
    let plan = OwnPlan::Every(5 * HOUR);
    assert!(crawl.frontier.schedule(&url(&page(0, 0)), plan, crawl.now).unwrap());
    crawl.settle(&lease, None);
    crawl.save();
    assert_eq!(crawl.pages()[&page(0, 0)].own_plan, Some(plan));
}

#[test]
fn the_thousand_and_first_date_counts_too_and_a_sitemap_that_lists_itself_is_read_again() {
    let mut crawl = Crawl::new(kept_fresh());
    crawl.offer(&[page(0, 0)]);
    crawl.fetch(|_| None);
    let later = OwnPlan::At(crawl.now + 30 * DAY);
    crawl.frontier.schedule(&url(&page(0, 0)), later, crawl.now).unwrap();
    crawl.save();
    crawl.frontier.offer(&[sitemap()], crawl.now).unwrap();
    let mut listed: Vec<_> = (1..=1000).map(|n| page(0, n)).collect();
    listed.push(page(0, 0));
    for _ in 0..3 {
        let lease = lease_sitemap(&mut crawl);
        let itself = Link { depth: 1, ..sitemap() };
        let again = crawl.frontier.offer(&[itself], crawl.now).unwrap();
        assert_eq!(again, [Verdict::Seen]);
        settle_dated(&mut crawl, &lease, &listed);
        crawl.fetch(|_| None);
        crawl.pass(3 * HOUR);
        crawl.again(Refetch::Due, 0);
    }
    let page = crawl.pages()[&page(0, 0)].clone();
    assert!(page.next_visit.is_none_or(|next| next < crawl.now + DAY), "{page:?}");
}

#[test]
fn a_page_of_a_better_class_or_with_a_plan_does_not_wait_behind_the_others_of_its_host() {
    let mut config = kept_fresh();
    config.politeness.delay = Duration::from_secs(60);
    let mut crawl = Crawl::new(config);
    crawl.offer(&(1..300).map(|n| page(0, n)).collect::<Vec<_>>());
    let front = Link {
        class: Some(Class::FIRST),
        ..Link::found(url(&page(0, 0)), 2, "http://host0.example/".into())
    };
    crawl.frontier.offer(&[front], crawl.now).unwrap();
    // A slot each ten minutes, and more pages than two days have slots. The front page changes always.
    let mut visits = BTreeMap::<bool, Vec<Time>>::new();
    let begin = crawl.now;
    while crawl.now < begin + 6 * DAY {
        crawl.pass(Duration::from_secs(60));
        if crawl.now == begin + DAY {
            let plan = OwnPlan::Every(3 * HOUR);
            assert!(crawl.frontier.schedule(&url(&page(0, 1)), plan, crawl.now).unwrap());
        }
        crawl.again(Refetch::Due, 1000);
        for lease in crawl.leases(8) {
            let is_front = *lease.entry.url == *page(0, 0);
            if is_front || *lease.entry.url == *page(0, 1) && crawl.now > begin + 2 * DAY {
                visits.entry(is_front).or_default().push(crawl.now);
            }
            if is_front {
                let content = u128::from(crawl.now.as_millis()).into();
                let settlement = lease.settle(Outcome::Done);
                let settlement = settlement.with_version(Validators::default(), Some(content));
                crawl.frontier.settle(&[settlement], crawl.now).unwrap();
            } else {
                crawl.settle(&lease, None);
            }
        }
        crawl.save();
    }
    let hours = |is_front| -> Vec<u64> {
        let of_page = visits[&is_front].windows(2);
        of_page.map(|two| two[1].since(two[0]).as_secs() / 3600).collect()
    };
    let [front, planned] = [true, false].map(hours);
    // Once it is known that it changes.
    assert!(
        front.len() > 40 && front[2..].iter().all(|hours| *hours <= 4),
        "{front:?}"
    );
    assert!(
        planned.len() > 25 && planned.iter().all(|hours| *hours == 3),
        "{planned:?}"
    );
}

#[test]
fn what_counts_against_the_limits_of_a_host_is_forgotten_after_a_month() {
    let mut config = kept_fresh();
    config.limits.max_pages_per_host = Some(3);
    config.limits.max_sitemaps = 1;
    let mut crawl = Crawl::new(config);
    crawl.offer(&(0..3).map(|n| page(0, n)).collect::<Vec<_>>());
    crawl.frontier.offer(&[sitemap()], crawl.now).unwrap();
    crawl.fetch(|_| None);
    let other = || Link {
        url: url("http://host0.example/other.xml"),
        ..sitemap()
    };
    let offered = |crawl: &mut Crawl| {
        let verdict = crawl.frontier.offer(&[other()], crawl.now).unwrap()[0];
        (crawl.offer(&[page(0, 9)])[0], verdict)
    };
    let full = (
        Verdict::Refused(Refusal::HostBudget),
        Verdict::Refused(Refusal::TooManySitemaps),
    );
    crawl.pass(29 * DAY);
    assert_eq!(offered(&mut crawl), full);
    crawl.pass(2 * DAY);
    assert_eq!(offered(&mut crawl).0, Verdict::Queued);
    // It was read in that month.
    crawl.pass(31 * DAY);
    crawl.save();
    crawl.kill();
    assert_eq!(offered(&mut crawl), (Verdict::Seen, Verdict::Queued));
}

#[test]
fn a_page_that_is_gone_is_not_stale_and_hosts_are_named_by_what_is() {
    let mut crawl = Crawl::new(kept_fresh());
    crawl.offer(&[page(0, 0)]);
    crawl.leases(1).iter().for_each(|robots| crawl.settle(robots, None));
    crawl.pass(Duration::from_secs(1));
    let gone = crawl.lease(1)[0].settle(Outcome::Rejected).with_status(404);
    crawl.frontier.settle(&[gone], crawl.now).unwrap();
    crawl.pass(HOUR);
    crawl.offer(&[page(1, 0), page(1, 1), page(2, 0)]);
    crawl.fetch(|_| None);
    let report = crawl.frontier.freshness(crawl.now + HOUR / 2).unwrap();
    assert!(report.oldest < HOUR, "{report:?}");
    let named: Vec<_> = report.stalest.iter().map(|one| one.host.as_str()).collect();
    assert_eq!(named, ["host1.example", "host2.example"], "two pages are more than one");
    assert!(report.stalest.iter().all(|one| one.fresh < 1.0), "{report:?}");
}
