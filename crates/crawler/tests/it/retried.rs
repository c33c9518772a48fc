//! A run over a directory whose crawl has ended tries again what got no answer, and its summary is that of all runs.

use std::time::Duration;

use crate::folder::Folder;
use crate::scripted::{self, Call, Reply, Run, Scripted, refused};
use crawler::{CrawlOptions, Ending, FailureKind, FetchError, Request, TruncationReason};
use frontier::{NotFetched, Reach, Refusal};

const AGE: Duration = Duration::from_secs(3_600);
/// Longer than any origin may be away, and so long that all other pages come of age.
const SLOW: Duration = Duration::from_secs(7_200);

impl Folder {
    fn run(&self, options: CrawlOptions, reply: impl Fn(&Call<'_>) -> Reply + Send + Sync + 'static) -> Run {
        let latency = |request: &Request, _: &Reply| match request.url.path() {
            "/slow" => SLOW,
            _ => Duration::from_millis(300),
        };
        Scripted::new(reply).taking(latency).crawl_in(&self.state(), options)
    }
}

fn options() -> CrawlOptions {
    let mut options = scripted::options("http://a.example/");
    options.frontier.scope.reach = Reach::Any;
    options.frontier.politeness.delay = Duration::ZERO;
    options.frontier.politeness.ask_robots = false;
    options.frontier.retries.retry_jitter = 0;
    options
}

fn with_slow_page() -> CrawlOptions {
    CrawlOptions {
        seeds: vec!["http://a.example/".to_owned(), "http://c.example/slow".to_owned()],
        ..options()
    }
}

/// The same, and pages are fetched again when they are old.
fn refreshing() -> CrawlOptions {
    CrawlOptions {
        refresh: Some(AGE),
        ..with_slow_page()
    }
}

/// The front page links to two others here, and to three elsewhere.
fn answer(call: &Call<'_>) -> Reply {
    Ok(match call.url() {
        "http://a.example/" => scripted::page(
            "<a href=/1>x</a><a href=/2>x</a>
             <a href=http://b.example/1>x</a><a href=http://b.example/2>x</a><a href=http://b.example/3>x</a>",
        ),
        "http://c.example/slow" => scripted::page("<a href=http://b.example/late>x</a>"),
        _ => scripted::page("<p>text</p>"),
    })
}

fn without_b(call: &Call<'_>) -> Reply {
    match call.url().starts_with("http://b.example") {
        true => refused(),
        false => answer(call),
    }
}

fn pages(run: &Run) -> Vec<&str> {
    let mut urls: Vec<_> = run.reports.pages.iter().map(|page| page.url.as_str()).collect();
    urls.sort_unstable();
    urls
}

#[test]
fn a_host_that_was_down_is_crawled_by_the_same_command_once_it_is_up() {
    let folder = Folder::new("down");
    let first = folder.run(options(), without_b);
    assert_eq!(first.summary.pages, 3);
    assert!(first.asked.last().unwrap().0 >= 30, "{:?}", first.asked);
    assert_eq!(first.summary.failures.given_up_origins, ["http://b.example"]);
    assert_eq!(first.summary.failures.by_kind, [(FailureKind::Connect, 3)].into());
    assert!(!first.summary.missing().is_empty());

    let again = folder.run(options(), without_b);
    assert_eq!(
        again.summary.failures.by_kind,
        [(FailureKind::Connect, 3)].into(),
        "still down"
    );
    assert_eq!(again.summary.report.origins_given_up, 1);
    assert!(again.asked.iter().all(|(_, url)| url.starts_with("http://b.example")));

    let up = folder.run(options(), answer);
    assert_eq!(
        pages(&up),
        ["http://b.example/1", "http://b.example/2", "http://b.example/3"]
    );
    assert_eq!(up.asked.len(), 3, "{:?}", up.asked);
    let summary = up.summary;
    assert_eq!((summary.pages, summary.failed_pages()), (6, 0));
    assert!(summary.failures.given_up_origins.is_empty() && summary.failures.given_up_causes.is_empty());
    assert_eq!(summary.failures.first_failure, None);
    assert_eq!(summary.report.origins_given_up, 0);
    assert!(summary.missing().is_empty(), "{:?}", summary.missing());

    let last = folder.run(options(), answer);
    assert_eq!((last.summary.ending, last.asked.len()), (Ending::Drained, 0));
}

#[test]
fn links_that_were_refused_with_their_origin_are_told_and_its_seeds_are_taken() {
    let folder = Folder::new("refused");
    let first = folder.run(with_slow_page(), without_b);
    assert_eq!(first.refused(Refusal::HostDown), 1);
    let mut with_seed = with_slow_page();
    with_seed.seeds.push("http://b.example/seed".to_owned());
    let second = folder.run(with_seed, answer);
    assert!(pages(&second).contains(&"http://b.example/seed"), "{:?}", second.asked);
    assert_eq!(second.summary.missing()[0].kind, "refused_earlier");
}

#[test]
fn pages_without_a_whole_answer_and_those_behind_a_broken_robots_txt_are_fetched_by_the_next_run() {
    let folder = Folder::new("broken");
    let mut asking = options();
    asking.frontier.politeness.ask_robots = true;
    let first = folder.run(asking.clone(), |call| match call.url() {
        "http://b.example/robots.txt" => Ok(scripted::status(500)),
        "http://a.example/1" => Err(FetchError::Other("of no kind".to_owned())),
        "http://a.example/2" => Ok(scripted::status(500)),
        _ => answer(call),
    });
    assert_eq!(first.not_fetched(NotFetched::RobotsUnreachable), 3);
    assert_eq!(
        first.summary.failures.by_kind,
        [(FailureKind::Status, 1), (FailureKind::Other, 1)].into()
    );
    let second = folder.run(asking, answer);
    assert_eq!(second.not_fetched(NotFetched::RobotsUnreachable), 0);
    let expected = [
        "http://a.example/1",
        "http://b.example/1",
        "http://b.example/2",
        "http://b.example/3",
    ];
    assert_eq!(pages(&second), expected, "an answer with an error is an answer");
    assert_eq!(second.summary.failures.by_kind, [(FailureKind::Status, 1)].into());
    assert!(second.summary.missing().is_empty(), "{:?}", second.summary.missing());
}

#[test]
fn more_pages_than_the_queue_takes_are_all_tried_again_before_old_ones_are_refreshed() {
    let folder = Folder::new("full");
    let run = folder.run(with_slow_page(), nine_without_answer);
    assert_eq!(run.summary.failures.by_kind, [(FailureKind::Other, 9)].into());
    let mut small = refreshing();
    small.frontier.limits.max_queued = 2;
    let second = folder.run(small, |_| Ok(scripted::page("<p>text</p>")));
    assert_eq!((second.summary.pages, second.summary.refreshed.pages), (11, 1));
    assert_eq!(second.asked.len(), 10, "{:?}", second.asked);
    assert_eq!(second.asked.last().unwrap().1, "http://a.example/");
    assert!(second.summary.missing().is_empty(), "{:?}", second.summary.missing());
}

#[test]
fn answers_with_an_error_are_asked_for_again_when_they_are_old_and_count_once() {
    let folder = Folder::new("errors");
    let bad = |call: &Call<'_>| match call.url() {
        "http://a.example/1" => Ok(scripted::status(500)),
        "http://a.example/2" => Ok(scripted::status(429)),
        _ => answer(call),
    };
    let mut throttled_once = with_slow_page();
    throttled_once.frontier.retries.max_throttles = 2.try_into().unwrap();
    let first = folder.run(throttled_once.clone(), bad);
    let [status, throttled] = [FailureKind::Status, FailureKind::Throttled].map(|kind| (kind, 1));
    assert_eq!(first.summary.failures.by_kind, [status, throttled].into());
    let missing = ["throttled to the end: 1 page (raise delay or max_throttles, or let a later run ask again)"];
    assert_eq!(scripted::missing(&first.summary), missing);
    assert_eq!(first.summary.failures.gave_up_answered, 1);
    // The throttled page has no answer, the other has.
    let second = folder.run(throttled_once, answer);
    assert_eq!(pages(&second), ["http://a.example/2"]);
    assert_eq!(second.summary.failures.by_kind, [(FailureKind::Status, 1)].into());
    let third = folder.run(refreshing(), answer);
    assert!(pages(&third).contains(&"http://a.example/1"), "{:?}", third.asked);
    assert_eq!(
        (third.summary.failed_pages(), third.summary.failures.gave_up_answered),
        (0, 0)
    );
    assert!(third.summary.missing().is_empty(), "{:?}", third.summary.missing());
}

#[test]
fn a_page_whose_refresh_failed_counts_as_failed_until_it_is_fetched_again() {
    let folder = Folder::new("refresh");
    let with_tag = |call: &Call<'_>| {
        let is_known = call.request.validators.as_ref().is_some_and(|sent| sent.etag.is_some());
        let mut reply = answer(call)?;
        reply.validators.etag = Some("\"v\"".to_owned());
        Ok(if is_known { scripted::status(304) } else { reply })
    };
    folder.run(with_slow_page(), with_tag);
    let failing = folder.run(refreshing(), move |call| match call.url() {
        "http://a.example/1" => Err(FetchError::Other("not now".to_owned())),
        "http://a.example/2" => Ok(scripted::status(500)),
        _ => with_tag(call),
    });
    let refreshed = failing.summary.refreshed;
    assert_eq!((refreshed.pages, refreshed.unchanged, refreshed.failed), (5, 4, 1));
    assert_eq!(failing.summary.failures.by_kind, [(FailureKind::Other, 1)].into());
    assert_eq!(
        scripted::missing(&failing.summary),
        ["no whole answer: 1 page (raise max_attempts)"]
    );

    let next = folder.run(refreshing(), with_tag);
    assert_eq!(pages(&next), ["http://a.example/1"]);
    assert_eq!(next.reports.pages[0].status, 304, "with the tag of the first run");
    assert_eq!(next.reports.pages[0].unchanged, Some(true));
    assert_eq!(next.summary.failed_pages(), 0);
    assert!(next.summary.missing().is_empty(), "{:?}", next.summary.missing());
}

/// Pages 0 to 8 of `a.example`, none of which is answered.
fn nine_without_answer(call: &Call<'_>) -> Reply {
    match call.url() {
        "http://a.example/" => Ok(scripted::page(
            (0..9).map(|n| format!("<a href=/{n}>x</a>")).collect::<String>(),
        )),
        "http://c.example/slow" => Ok(scripted::page("<p>slow</p>")),
        _ => Err(FetchError::Other("not now".to_owned())),
    }
}

#[test]
fn new_seeds_have_room_while_many_pages_are_tried_again() {
    let folder = Folder::new("seed");
    folder.run(options(), nine_without_answer);
    let mut small = options();
    small.frontier.limits.max_queued = 2;
    small.seeds.push("http://d.example/".to_owned());
    let second = folder.run(small, |_| Ok(scripted::page("<p>text</p>")));
    assert!(pages(&second).contains(&"http://d.example/"), "{:?}", second.asked);
    assert_eq!(second.summary.pages, 11);
    assert!(second.summary.missing().is_empty(), "{:?}", second.summary.missing());
}

#[test]
fn a_down_host_with_more_pages_than_the_queue_takes_is_crawled_when_it_is_up_and_named_once_while_it_is_not() {
    let folder = Folder::new("many");
    let down = |call: &Call<'_>| match call.url() {
        "http://a.example/" => Ok(scripted::page(
            (0..60)
                .map(|n| format!("<a href=http://b.example/{n}>x</a>"))
                .collect::<String>(),
        )),
        _ => without_b(call),
    };
    folder.run(options(), down);
    let mut small = options();
    small.frontier.limits.max_queued = 10;
    let still = folder.run(small.clone(), down).summary;
    assert_eq!(still.failures.by_kind, [(FailureKind::Connect, 60)].into());
    assert_eq!(still.failures.given_up_origins, ["http://b.example"]);
    assert!(still.elapsed < Duration::from_secs(100), "{:?}", still.elapsed);
    let up = folder.run(small, |_| Ok(scripted::page("<p>text</p>"))).summary;
    assert_eq!((up.pages, up.failed_pages()), (61, 0));
    assert!(up.missing().is_empty(), "{:?}", up.missing());
}

#[test]
fn a_page_with_a_part_of_its_body_counts_once_when_it_is_whole() {
    let folder = Folder::new("part");
    let in_part = |call: &Call<'_>| {
        let mut reply = answer(call)?;
        if call.url() == "http://a.example/1" {
            reply.truncation = Some(TruncationReason::Connection);
        }
        Ok(reply)
    };
    let first = folder.run(options(), in_part).summary;
    assert_eq!(
        first.failures.bodies_truncated,
        [(TruncationReason::Connection, 1)].into()
    );
    let second = folder.run(options(), answer).summary;
    assert_eq!((second.pages, &second.by_status), (6, &[(200, 6)].into()));
    assert!(second.failures.bodies_truncated.is_empty());
}

#[test]
fn a_page_with_a_bad_redirect_has_failed_once_however_often_it_is_fetched_again() {
    let folder = Folder::new("bad-redirect");
    let reply = |call: &Call<'_>| match call.path() {
        "/" => Ok(scripted::page("<a href=/1>x</a> <a href=/2>x</a>")),
        "/1" => Ok(scripted::redirect("http://a.example/1")),
        "/2" => Ok(scripted::redirect("mailto:me@a.example")),
        _ => Ok(scripted::page("")),
    };
    let failed = [(FailureKind::Redirect, 2)].into();
    assert_eq!(folder.run(with_slow_page(), reply).summary.failures.by_kind, failed);
    let second = folder.run(refreshing(), reply);
    assert_eq!(second.paths(), ["/", "/1", "/2"]);
    assert_eq!(second.summary.failures.by_kind, failed);
    let refreshed = &second.summary.refreshed;
    assert_eq!((refreshed.pages, refreshed.failed), (3, 2));
}

#[test]
fn a_redirect_that_was_turned_round_is_no_loop() {
    let folder = Folder::new("turned-round");
    let reply = |from: &'static str, to: &'static str| {
        move |call: &Call<'_>| match call.path() {
            "/" => Ok(scripted::page("<a href=/old>x</a> <a href=/new>x</a>")),
            path if path == from => Ok(scripted::redirect(&format!("http://a.example{to}"))),
            path => Ok(scripted::page(path)),
        }
    };
    let first = folder.run(with_slow_page(), reply("/old", "/new"));
    assert_eq!(first.summary.failures.by_kind, [].into());
    let second = folder.run(refreshing(), reply("/new", "/old"));
    assert_eq!(second.paths(), ["/", "/old", "/new"]);
    assert_eq!(second.summary.failures.by_kind, [].into());
}
