//! Pages whose record is old become due again.

use super::super::super::again::MOST_PASSED;
use super::super::common::{end, failure, url};
use super::{Crawl, DAY, impatient, page, sorted, urls};
use crate::{ContentHash, FailureKind, Fingerprint, NotFetched, Outcome, PageEnd, Refetch, Validators};

#[test]
fn a_page_of_age_is_leased_again_once_with_its_version_and_place() {
    let mut crawl = Crawl::new(impatient());
    let two_days = Refetch::OlderThan(DAY * 2);
    crawl.offer(&[page(0, 0), page(0, 1), page(0, 2)]);
    crawl.fetch(|_| None);
    let begun = crawl.now;
    crawl.pass(DAY);
    crawl.offer(&[page(0, 3), page(0, 4)]);
    crawl.fetch(|_| None);
    let early = crawl.again(two_days, 100);
    assert_eq!((early.pages.len(), early.next), (0, Some(begun + DAY * 2)));

    crawl.pass(DAY);
    let refreshed = crawl.again(two_days, 100);
    assert_eq!((refreshed.pages.len(), refreshed.next), (3, Some(begun + DAY * 3)));
    let again = crawl.fetch(|_| None);
    assert_eq!(sorted(&again), [page(0, 0), page(0, 1), page(0, 2)]);
    for entry in again.iter().map(|lease| &lease.entry) {
        assert!(entry.is_refresh());
        let place = (entry.depth, entry.metadata.referrer.as_deref());
        assert_eq!(place, (2, Some("http://host0.example/")));
        let previous = entry.metadata.previous.as_deref().unwrap();
        assert_eq!(previous.validators.etag.as_deref(), Some(&*entry.url));
        assert_eq!(previous.content, Some(ContentHash::from(7)));
    }
    assert_eq!(crawl.again(two_days, 100).pages.len(), 0, "a second time");
    let pages = crawl.frontier.report().pages;
    assert_eq!((pages.done, pages.refreshed), (5, 3));

    crawl.pass(DAY);
    assert_eq!(crawl.again(two_days, 100).pages.len(), 2);
    // Their second fetch comes of age, too.
    crawl.pass(DAY);
    let refreshed = crawl.again(two_days, 100);
    assert_eq!((refreshed.pages.len(), refreshed.next), (3, None));
}

#[test]
fn what_is_gone_failed_or_led_elsewhere_is_asked_again_once_and_what_was_never_asked_is_not() {
    let mut crawl = Crawl::new(impatient());
    let at = |path: &str| format!("http://host0.example/{path}");
    let ends = [
        ("gone", Outcome::Rejected, None),
        ("forbidden", Outcome::NotFetched(NotFetched::AddressForbidden), None),
        ("failed", Outcome::failed(failure(FailureKind::Redirect)), None),
        ("moved", Outcome::Redirected, Some("target")),
        // Its target is another spelling of it.
        ("%7Eann", Outcome::Redirected, Some("~ann")),
    ];
    crawl.offer(&ends.each_ref().map(|(path, ..)| at(path)));
    for lease in crawl.lease(8) {
        let its = |(path, ..): &&(&str, Outcome, Option<&str>)| at(path) == *lease.entry.url;
        let (_, outcome, target) = ends.iter().find(its).unwrap();
        let target = target.map(|target| lease.entry.redirected(url(&at(target))));
        let settlement = end(&lease, outcome.clone()).with_links(target.into_iter().collect());
        crawl.frontier.settle(&[settlement], crawl.now).unwrap();
    }
    assert_eq!(sorted(&crawl.fetch(|_| None)), [at("target"), at("~ann")]);
    let before = crawl.frontier.report().pages;
    crawl.pass(DAY);
    crawl.refresh(100);
    let again = crawl.fetch(|_| None);
    assert_eq!(sorted(&again), ["failed", "gone", "moved", "target", "~ann"].map(at));
    let after = crawl.frontier.report().pages;
    // The page that had failed is fetched for the first time now.
    assert_eq!(
        (after.done, after.rejected, after.redirected, after.gave_up),
        (before.done + 1, before.rejected, before.redirected, before.gave_up - 1)
    );
}

#[test]
fn a_refresh_that_failed_spends_no_budget_and_is_tried_again_with_the_version_of_the_last_fetch() {
    let mut config = impatient();
    config.limits.max_pages = Some(3);
    let mut crawl = Crawl::new(config);
    crawl.offer(&[page(0, 0), page(1, 0)]);
    crawl.fetch(|_| None);
    crawl.pass(DAY);
    crawl.refresh(100);
    crawl.fetch(|lease| lease.entry.url.contains("host0").then_some(FailureKind::Timeout));
    let pages = crawl.frontier.report().pages;
    assert_eq!((pages.done, pages.gave_up, pages.gave_up_again), (2, 1, 1));
    assert!(crawl.begins_retry());
    let retried = crawl.again(Refetch::Unanswered, 9);
    let [failed] = &retried.pages[..] else {
        panic!("{retried:?}")
    };
    assert_eq!(
        (failed.end, failed.was_fetched()),
        (PageEnd::GaveUp(FailureKind::Timeout), true)
    );
    let asked = crawl.fetch(|_| None);
    assert_eq!(urls(&asked), [page(0, 0)]);
    let previous = asked[0].entry.metadata.previous.as_deref().unwrap();
    assert!(asked[0].entry.is_refresh() && previous.content == Some(7.into()));
    assert_eq!(previous.validators.etag, Some(page(0, 0)));
    let pages = crawl.frontier.report().pages;
    assert_eq!((pages.done, pages.gave_up, pages.gave_up_again), (2, 0, 0));
    assert_eq!(pages.refreshed, 2);
    crawl.check_counts();
    crawl.offer(&[page(2, 0)]);
    assert_eq!(urls(&crawl.fetch(|_| None)), [page(2, 0)], "the last one of the budget");
}

#[test]
fn an_old_page_of_an_origin_that_was_given_up_is_fetched_again_while_the_crawl_runs() {
    let mut crawl = Crawl::new(impatient());
    crawl.offer(&[page(0, 0), page(0, 1)]);
    crawl.fetch(|_| None);
    crawl.pass(DAY);
    assert_eq!(crawl.refresh(100).0, 2);
    crawl.fetch(|_| Some(FailureKind::Connect));
    assert_eq!(crawl.frontier.report().origins_given_up, 1);
    crawl.pass(DAY);
    assert_eq!(crawl.refresh(100).0, 2);
    let asked = crawl.fetch(|_| None);
    assert!(asked.iter().all(|lease| {
        let previous = lease.entry.metadata.previous.as_deref().unwrap();
        previous.validators.etag.as_deref() == Some(&*lease.entry.url)
    }));
    assert_eq!((asked.len(), crawl.frontier.report().origins_given_up), (2, 0));
    crawl.check_counts();
}

#[test]
fn a_row_counts_visits_and_changes_and_keeps_the_last_answer_when_a_fetch_fails() {
    let mut crawl = Crawl::new(impatient());
    let url = page(0, 0);
    crawl.offer(&[page(0, 0)]);
    // The status, the version and what is stored then: status, version, visits, changes.
    let fetches = [
        (Some(200), Some(1), (Some(200), Some(1), 1, 0)),
        (Some(304), Some(1), (Some(200), Some(1), 2, 0)),
        (Some(200), Some(2), (Some(200), Some(2), 3, 1)),
        (None, None, (Some(200), Some(2), 3, 1)),
        (Some(404), None, (Some(404), None, 4, 2)),
    ];
    let mut last = None;
    for (status, version, stored) in fetches {
        let leases = crawl.leases(1);
        let outcome = match status {
            Some(404) => Outcome::Rejected,
            Some(_) => Outcome::Done,
            None => Outcome::failed(failure(FailureKind::Timeout)),
        };
        let tagged = Validators {
            etag: version.map(|version: u128| version.to_string()),
            last_modified: None,
        };
        let mut settlement = leases[0].settle(outcome).with_version(tagged, version.map(Into::into));
        settlement = status.map_or(settlement.clone(), |status| settlement.with_status(status));
        crawl.frontier.settle(&[settlement], crawl.now).unwrap();
        crawl.save();
        let row = &crawl.pages()[&url];
        let (answer, visits) = (&row.answer, row.visits);
        let version = answer.validators.etag.as_deref().map(|etag| etag.parse().unwrap());
        assert_eq!((answer.status, version, visits.count, visits.changes), stored);
        assert_eq!(answer.fingerprint.content, version.map(|version: u128| version.into()));
        assert_eq!(row.time, crawl.now);
        last = status.map_or(last, |_| Some(crawl.now));
        assert_eq!((visits.first, visits.last), (Some(super::START), last));
        crawl.pass(DAY);
        crawl.refresh(1);
    }
}

#[test]
fn a_hash_that_was_not_taken_is_no_change_and_the_same_content_keeps_that_of_its_text() {
    let mut crawl = Crawl::new(impatient());
    crawl.offer(&[page(0, 0)]);
    // The hashes of the content and its text, and of the text that is stored then.
    for (content, text, stored) in [
        (None, None, None),
        (Some(7), Some(1), Some(1)),
        (Some(7), None, Some(1)),
        (None, None, None),
        (Some(7), None, None),
    ] {
        let fingerprint =
            |text: Option<u64>| Fingerprint::new(content.map(|hash: u128| hash.into()), text.map(Into::into));
        let settlement = crawl.lease(1)[0].settle(Outcome::Done).with_status(200);
        let settlement = settlement.with_version(Validators::default(), content.map(Into::into));
        let settlement = settlement.with_fingerprint(fingerprint(text));
        crawl.frontier.settle(&[settlement], crawl.now).unwrap();
        crawl.save();
        assert_eq!(crawl.pages()[&page(0, 0)].answer.fingerprint, fingerprint(stored));
        crawl.pass(DAY);
        crawl.refresh(1);
    }
    let visits = crawl.pages()[&page(0, 0)].visits;
    assert_eq!((visits.count, visits.changes), (5, 0));
}

#[test]
fn a_304_after_failures_alone_replaces_their_status() {
    let mut crawl = Crawl::new(impatient());
    crawl.offer(&[page(0, 0)]);
    let failed = Outcome::failed(failure(FailureKind::Status));
    for (outcome, status) in [(failed, 503), (Outcome::Done, 304)] {
        let settlement = crawl.lease(1)[0].settle(outcome).with_status(status);
        crawl.frontier.settle(&[settlement], crawl.now).unwrap();
        crawl.save();
        assert_eq!(crawl.pages()[&page(0, 0)].answer.status, Some(status));
        crawl.pass(DAY);
        crawl.refresh(1);
    }
}

#[test]
fn a_call_reads_some_pages_that_are_never_asked_again_and_the_next_one_goes_on() {
    let mut config = impatient();
    config.seen_set.capacity = 10_000;
    let mut crawl = Crawl::new(config);
    let forbidden: Vec<_> = (0..=MOST_PASSED as usize).map(|n| page(0, n)).collect();
    crawl.offer(&forbidden);
    loop {
        let leases = crawl.leases(8);
        if leases.is_empty() {
            break;
        }
        let forbidden = |lease: &crate::Lease| end(lease, Outcome::NotFetched(NotFetched::AddressForbidden));
        let settlements: Vec<_> = leases.iter().map(forbidden).collect();
        crawl.frontier.settle(&settlements, crawl.now).unwrap();
    }
    crawl.save();
    crawl.offer(&[page(1, 0)]);
    crawl.fetch(|_| None);
    crawl.pass(DAY);
    let first = crawl.again(Refetch::OlderThan(DAY), 8);
    assert!(first.has_moved() && first.pages.is_empty());
    assert_eq!((first.passed, first.next), (MOST_PASSED, Some(crawl.now)));
    let second = crawl.again(Refetch::OlderThan(DAY), 8);
    assert_eq!((second.passed, second.next), (1, None));
    assert_eq!(urls(&crawl.lease(8)), [page(1, 0)]);
}
