//! When an origin is away, back, or given up, and when failures do not count against it. The fetcher is scripted, and the clock is
//! paused.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::scripted::replies::body;
use crate::scripted::{self, Reply, Run, Scripted, refused};
use crawler::{FailureKind, FetchError, Request};
use frontier::{NotFetched, Notice};

/// The duration of a request without an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Run {
    /// Returns the kind of each notice.
    fn notices(&self) -> Vec<&'static str> {
        let word = |notice: &Notice| match notice {
            Notice::Away { .. } => "away",
            Notice::Back { .. } => "back",
            Notice::GivenUp { .. } => "given up",
            _ => "other",
        };
        self.reports.notices.iter().map(word).collect()
    }

    /// Returns the number of requests for each page.
    fn attempts(&self) -> BTreeMap<&str, usize> {
        let mut attempts = BTreeMap::new();
        for (_, url) in self.asked.iter().filter(|(_, url)| !url.ends_with("/robots.txt")) {
            *attempts.entry(url.as_str()).or_default() += 1;
        }
        attempts
    }

    fn reasons(&self) -> Vec<(NotFetched, Option<FailureKind>)> {
        let reasons = self.reports.not_fetched.iter();
        reasons.map(|(_, why, cause)| (*why, *cause)).collect()
    }
}

/// Crawls the host of `http://a.example/`, on every port and with both schemes.
fn run(reply: impl Fn(&str, u64) -> Reply + Send + Sync + 'static) -> Run {
    run_with(1, reply)
}

/// Like [`run`], with a limit per host. `reply` gets the URL and the second of the request.
fn run_with(per_host: u32, reply: impl Fn(&str, u64) -> Reply + Send + Sync + 'static) -> Run {
    let mut options = scripted::options("http://a.example/");
    options.frontier.politeness.delay = Duration::from_millis(10);
    options.frontier.politeness.per_host = NonZeroU32::new(per_host).unwrap();
    options.frontier.retries.retry_jitter = 0;
    let latency = |_: &Request, reply: &Reply| match reply {
        Err(FetchError::Timeout) => TIMEOUT,
        _ => Duration::from_millis(20),
    };
    Scripted::new(move |call| reply(call.url(), call.at.as_secs()))
        .taking(latency)
        .crawl(options)
}

fn links(urls: impl IntoIterator<Item = String>) -> String {
    urls.into_iter().map(|url| format!("<a href='{url}'>")).collect()
}

const ROBOTS: &str = "http://a.example/robots.txt";

#[test]
fn a_host_that_stops_answering_is_given_up_with_all_its_pages_after_five_minutes() {
    let page = links((0..1000).map(|n| format!("/{n}")));
    let run = run(move |url, now| match url {
        "http://a.example/" => body(&page),
        ROBOTS if now == 0 => body(""),
        _ => refused(),
    });
    assert_eq!(run.summary.pages, 1);
    // The robots.txt, the first page, and one page that fails. Then requests for robots.txt probe whether the host is back.
    assert_eq!(run.attempts().len(), 2, "{:?}", run.asked);
    assert_eq!(run.seconds_of(ROBOTS), [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 300]);
    assert_eq!(run.summary.report.pages.lost_with_host, 1000);
    assert_eq!(
        scripted::missing(&run.summary),
        ["given up: 1000 pages (is it running? max_first_downtime and max_host_downtime wait longer)"]
    );
    assert_eq!(
        run.summary.failures.by_kind.iter().collect::<Vec<_>>(),
        [(&FailureKind::Connect, &1000)]
    );
    assert_eq!(
        run.reasons(),
        [(NotFetched::HostDown, Some(FailureKind::Connect)); 1000]
    );
    assert_eq!(run.notices(), ["away", "given up"]);
    match &run.reports.notices[..] {
        [
            Notice::Away {
                origin,
                cause,
                patience,
            },
            Notice::GivenUp {
                origin: lost_origin,
                after,
                lost,
                ..
            },
        ] => {
            assert_eq!(origin.as_str(), "http://a.example");
            assert_eq!(lost_origin, origin);
            assert_eq!((cause.kind, patience.as_secs()), (FailureKind::Connect, 300));
            assert!(cause.message.contains("connection refused"), "{cause}");
            assert_eq!((after.as_secs(), *lost), (300, 1000));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_host_that_never_answered_is_given_up_after_half_a_minute() {
    for failure in [
        || Err(FetchError::Unresolved("no such name".to_owned())),
        refused,
        || Err(FetchError::Broken("no HTTP".to_owned())),
    ] {
        let run = run(move |_, _| failure());
        assert_eq!(run.seconds_of(ROBOTS), [0, 1, 3, 7, 15, 30], "{:?}", failure());
        assert_eq!(run.asked.len(), 6, "{:?}", run.asked);
        assert_eq!(run.notices(), ["away", "given up"]);
        let Err(error) = failure() else { panic!() };
        let remedy = crawler::summary::remedy(error.kind(), str::to_owned);
        let given_up = format!("given up: 1 page ({remedy})");
        assert_eq!(scripted::missing(&run.summary), [given_up]);
        assert_eq!(run.summary.failures.given_up_origins, ["http://a.example"]);
        let shown = run.summary.to_string();
        assert!(shown.contains("given up          http://a.example\n"), "{shown}");
    }
}

#[test]
fn an_outage_loses_no_page_and_no_page_is_fetched_twice_at_any_concurrency() {
    for (per_host, seconds) in [1, 8, 32]
        .into_iter()
        .flat_map(|n| [(n, 5), (n, 40), (n, 120), (n, 290)])
    {
        let page = links((0..2000).map(|n| format!("/{n}")));
        // The outage starts in the middle of the site.
        let run = run_with(per_host, move |url, now| match url {
            _ if (2..2 + seconds).contains(&now) => refused(),
            "http://a.example/" => body(&page),
            _ => body(""),
        });
        let case = format!("{per_host} at once, away for {seconds} s: {}", run.summary);
        assert_eq!(run.summary.pages, 2001, "{case}");
        assert!(run.summary.missing().is_empty(), "{case}");
        assert_eq!(run.notices(), ["away", "back"], "{case}");
        let during = run.asked.iter().filter(|(at, _)| (3..2 + seconds).contains(at)).count();
        assert!(during <= 10, "{case}: {during} requests while it was away");
        let is_answered = |at: &u64| !(2..2 + seconds).contains(at);
        let answered = run.asked.iter().filter(|(at, url)| is_answered(at) && url != ROBOTS);
        assert_eq!(answered.count(), 2001, "{case}: a page was requested after its answer");
    }
}

#[test]
fn an_empty_crawl_reports_the_failure_of_a_site_before_a_lack_of_file_handles() {
    let answers = AtomicUsize::new(0);
    let run = run(move |url, _| match url {
        ROBOTS => body(""),
        _ if answers.fetch_add(1, Ordering::Relaxed) == 0 => Err(FetchError::OutOfHandles),
        _ => refused(),
    });
    let first = run.summary.counts.failures.first_failure.unwrap();
    assert!(first.contains("no connection"), "{first}");
}
