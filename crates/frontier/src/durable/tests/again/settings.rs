//! Other settings of how pages are kept fresh, by order or at a start: pages that are planned already are planned anew.

use std::collections::BTreeMap;
use std::time::Duration;

use super::due::{HOUR, kept_fresh};
use super::planned::visit_for;
use super::{Crawl, DAY, page};
use crate::{CrawlPolicy, HostPolicy, Outcome, Refetch, StoredPage};

#[test]
fn other_ages_count_for_pages_that_are_planned_already_by_order_and_by_options() {
    for by_order in [true, false] {
        let mut config = kept_fresh();
        config.freshness.max_age = 60 * DAY;
        let mut crawl = Crawl::new(config);
        crawl.offer(&[page(0, 0), page(0, 1)]);
        crawl.leases(1).iter().for_each(|robots| crawl.settle(robots, None));
        crawl.pass(Duration::from_secs(1));
        let gone = crawl.lease(1)[0].settle(Outcome::Rejected).with_status(404);
        crawl.frontier.settle(&[gone], crawl.now).unwrap();
        visit_for(&mut crawl, 4 * DAY, HOUR / 2);
        let visits = |crawl: &Crawl, n: usize| crawl.pages()[&page(0, n)].visits.count;
        assert_eq!(visits(&crawl, 0), 1, "a page that is gone is asked again after max-age");
        let often = visits(&crawl, 1);
        assert!((40..=48).contains(&often), "{often}");
        if by_order {
            let policy = CrawlPolicy {
                min_age: Some(12 * HOUR),
                max_age: Some(3 * DAY),
                ..CrawlPolicy::default()
            };
            crawl.frontier.set_crawl_policy(&policy, crawl.now).unwrap();
            crawl.save();
            crawl.pass(Duration::from_secs(1));
            crawl.again(Refetch::Due, 0);
            assert!(crawl.frontier.save_status().unwrap().has_unsaved, "the plan is saved");
        } else {
            (crawl.config.freshness.min_age, crawl.config.freshness.max_age) = (12 * HOUR, 3 * DAY);
            crawl.kill();
        }
        visit_for(&mut crawl, 4 * DAY, HOUR / 2);
        assert!(visits(&crawl, 0) >= 2);
        let more = visits(&crawl, 1) - often;
        assert!((6..=9).contains(&more), "{more}");
    }
}

/// A host that allows fewer visits than `max_age` asks for plans them later: a start does not change that.
#[test]
fn a_start_plans_no_page_anew_whose_settings_are_as_before() {
    let mut config = kept_fresh();
    let slow = HostPolicy {
        delay: Some(HOUR),
        ..HostPolicy::default()
    };
    config.hosts.insert("host1.example".to_owned(), slow);
    let mut crawl = Crawl::new(config);
    // More pages than are read for the sample at once.
    crawl.offer(&(0..4200).map(|n| page(0, n)).collect::<Vec<_>>());
    crawl.fetch(|_| None);
    crawl.offer(&(0..200).map(|n| page(1, n)).collect::<Vec<_>>());
    visit_for(&mut crawl, 10 * DAY, 3 * HOUR);
    let planned = |crawl: &Crawl| -> BTreeMap<_, _> {
        let pages = crawl.pages().into_iter();
        let late = pages.filter_map(|(url, page)| Some((url, page.next_visit?)));
        late.filter(|(_, next)| *next > crawl.now + 2 * DAY).collect()
    };
    let before = planned(&crawl);
    assert!(before.len() > 20, "{}", before.len());
    crawl.kill();
    for _ in 0..9 {
        crawl.again(Refetch::Due, 0);
        crawl.save();
        crawl.pass(Duration::from_secs(1));
    }
    assert_eq!(planned(&crawl), before);
}

#[test]
fn pages_that_are_planned_anew_are_written_before_more_are_read() {
    let mut config = kept_fresh();
    (config.politeness.ask_robots, config.freshness.max_age) = (false, 60 * DAY);
    let mut crawl = Crawl::new(config);
    crawl.offer(&(0..4000).map(|n| page(n, n)).collect::<Vec<_>>());
    for lease in crawl.leases(4000) {
        let gone = lease.settle(Outcome::Rejected).with_status(404);
        crawl.frontier.settle(&[gone], crawl.now).unwrap();
    }
    crawl.save();
    crawl.config.freshness.max_age = 2 * DAY;
    crawl.kill();
    let mut moved = Vec::new();
    for _ in 0..6 {
        // As the engine does when nothing else is left.
        moved.push((0..10).map(|_| crawl.again(Refetch::Due, 0).passed).sum::<u64>());
        crawl.save();
        crawl.pass(Duration::from_secs(1));
    }
    assert_eq!(moved.iter().sum::<u64>(), 4000);
    assert!(moved.iter().all(|rows| *rows <= 3 * 1024), "{moved:?}");
    let late = |page: &&StoredPage| page.next_visit > Some(crawl.now + 2 * DAY);
    assert_eq!(crawl.pages().values().filter(late).count(), 0);
}
