//! Pages without an answer are tried again once each, and pages of age are fetched again once each, over any failures and kills.

use std::time::Duration;

use proptest::prelude::*;

use super::{Crawl, DAY, asking_robots, page};
use crate::{FailureKind, Leasing, Refetch};

#[derive(Debug, Clone)]
enum Happening {
    Kill,
    Save,
    /// Queues up to so many pages again.
    Again(usize),
    /// Leases so many, and settles each as failed or not.
    Fetch(Vec<Option<FailureKind>>),
}

fn happenings(most: usize) -> impl Strategy<Value = Vec<Happening>> {
    let kind = prop_oneof![
        3 => Just(None),
        3 => Just(Some(FailureKind::Timeout)),
        2 => Just(Some(FailureKind::Connect)),
        1 => Just(Some(FailureKind::Status)),
    ];
    let one = prop_oneof![
        1 => Just(Happening::Kill),
        2 => Just(Happening::Save),
        3 => (1_usize..6).prop_map(Happening::Again),
        3 => prop::collection::vec(kind, 1..5).prop_map(Happening::Fetch),
    ];
    prop::collection::vec(one, 0..most)
}

/// Lets all happen, with failures or with answers only.
fn happen(crawl: &mut Crawl, happenings: Vec<Happening>, which: Refetch, with_failures: bool) {
    for happening in happenings {
        match happening {
            Happening::Kill => {
                crawl.pass(Duration::from_secs(1));
                crawl.kill();
            }
            Happening::Save => crawl.save(),
            Happening::Again(up_to) => {
                if which == Refetch::Unanswered {
                    crawl.begins_retry();
                }
                check_again(crawl, which, up_to, with_failures);
            }
            Happening::Fetch(kinds) => match crawl.frontier.lease(crawl.now, kinds.len()).unwrap() {
                Leasing::Ready(leases) => {
                    for (lease, kind) in leases.iter().zip(kinds) {
                        crawl.settle(lease, kind.filter(|_| with_failures));
                    }
                }
                Leasing::NotUntil(time) => crawl.now = time,
                _ => {}
            },
        }
    }
}

/// Queues pages again, for which there must be room. Returns whether there are more now.
fn check_again(crawl: &mut Crawl, which: Refetch, up_to: usize, with_failures: bool) -> bool {
    let again = crawl.again(which, up_to);
    // The other half is for links.
    let share = if which == Refetch::Unanswered { 2 } else { 1 };
    assert!(
        again.pages.len() as u64 <= crawl.config.limits.max_queued.div_ceil(share),
        "{again:?}"
    );
    assert!(with_failures || again.refused == 0, "{again:?}");
    again.next == Some(crawl.now)
}

/// Queues all again that is due, whatever is fetched between, and fetches it.
fn finish(crawl: &mut Crawl, which: Refetch) {
    // A kill may have undone the last step of a retry that had fetched all the others.
    for _ in 0..2 {
        if which == Refetch::Unanswered {
            crawl.begins_retry();
        }
        while check_again(crawl, which, 1_000, false) {
            crawl.fetch(|_| None);
        }
        crawl.fetch(|_| None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::cases(200), ..ProptestConfig::default() })]

    #[test]
    fn over_any_failures_and_kills_each_page_is_fetched_again_once(
        first in happenings(60),
        retry in happenings(40),
        refresh in happenings(40),
        max_queued in prop_oneof![Just(1_000_u64), 1_u64..8],
    ) {
        let mut crawl = Crawl::new(asking_robots());
        let pages: Vec<_> = (0..3).flat_map(|host| (0..5).map(move |n| page(host, n))).collect();
        crawl.offer(&pages);
        crawl.save();
        happen(&mut crawl, first, Refetch::OlderThan(Duration::ZERO), true);
        crawl.kill();
        crawl.fetch(|lease| lease.entry.url.contains("host1").then_some(FailureKind::Connect));
        crawl.check_counts();
        let before = crawl.pages();
        prop_assert_eq!(before.len(), pages.len());
        let unanswered = crawl.unanswered();

        crawl.config.limits.max_queued = max_queued;
        crawl.kill();
        // A page that fails again may be tried once more.
        happen(&mut crawl, retry, Refetch::Unanswered, false);
        finish(&mut crawl, Refetch::Unanswered);
        prop_assert_eq!(crawl.unanswered(), Vec::<String>::new());
        let tried = crawl.pages();
        for (url, page) in &tried {
            let more = page.visits.count - before[url].visits.count;
            prop_assert_eq!(more, u32::from(unanswered.contains(url)), "{}", url);
        }
        crawl.check_counts();
        prop_assert_eq!(crawl.frontier.report().origins_given_up, 0);

        crawl.pass(DAY);
        crawl.kill();
        happen(&mut crawl, refresh, Refetch::OlderThan(DAY), false);
        finish(&mut crawl, Refetch::OlderThan(DAY));
        for (url, page) in crawl.pages() {
            prop_assert_eq!(page.visits.count - tried[&url].visits.count, 1, "{} came of age once", url);
        }
        crawl.check_counts();
    }
}
