//! Sites that attack crawlers: the crawl of each ends within its limits, and the counters report the cause.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::hostile::behaviours::{self, Behaviour, Ends, MAX_BODY, REQUESTS_IF_SILENT};
use crate::hostile::server::{ReceivedRequest, Script, Server, Then, html};
use crawler::FailureKind;
use crawler::fetch::BodyExtent;
use crawler::{
    Crawl, CrawlConfig, CrawlOptions, Ending, Event, FetchError, Fetcher, HttpFetcher, HttpOptions, Request,
    ResourceKind, Response, Summary, TruncationReason,
};
use frontier::{Fate, RetryPolicy};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The time after which a test fails: far more than any of these crawls takes.
const MAX_TEST_TIME: Duration = Duration::from_secs(300);

/// The timeout for sites that use all of it.
const SHORT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a host may be away. It is probed after 10 ms and 20 ms later, and then given up.
const DOWNTIME: Duration = Duration::from_millis(30);
/// The timeout for all other sites, which end earlier.
const LONG_TIMEOUT: Duration = Duration::from_secs(60);

fn options(seed: &str) -> CrawlOptions {
    let mut options = behaviours::limits(seed);
    options.frontier.retries = RetryPolicy {
        max_attempts: NonZeroU32::MIN.saturating_add(1),
        max_throttles: NonZeroU32::MIN.saturating_add(1),
        retry_wait: Duration::from_millis(10),
        max_retry_wait: Duration::from_millis(20),
        max_host_downtime: DOWNTIME,
        max_first_downtime: DOWNTIME,
        ..RetryPolicy::default()
    };
    options
}

const CONCURRENT_CRAWLS: usize = 4;

/// The report of a crawl about one URL.
#[derive(Debug, Clone, Default)]
struct Reported {
    page: Option<(u16, BodyExtent, Option<TruncationReason>, u64)>,
    failures: Vec<(FailureKind, Fate)>,
}

type Book = Arc<Mutex<BTreeMap<String, Reported>>>;

/// One client for all crawls of a test, because reading the certificates of the system takes longer than a crawl.
struct Shared(Arc<HttpFetcher>);

impl Fetcher for Shared {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        self.0.fetch(request).await
    }
}

fn client(timeout: Duration) -> Arc<HttpFetcher> {
    let config = CrawlConfig::new(options("http://127.0.0.1/")).unwrap();
    let http = HttpOptions {
        timeout,
        max_body_bytes: MAX_BODY,
        // The hosts are on loopback, and are not seeds.
        allow_private_addresses: true,
        ..HttpOptions::default()
    };
    Arc::new(HttpFetcher::new(&config, &http).unwrap())
}

async fn crawl(seed: &str, client: Arc<HttpFetcher>) -> (BTreeMap<String, Reported>, Summary) {
    let options = options(seed);
    let book = Book::default();
    let notes = Arc::clone(&book);
    let crawl = Crawl::builder(options).unwrap().build_with(Shared(client)).unwrap();
    let crawl = crawl.observe(move |event: &Event<'_>| match event {
        Event::Page(page) => {
            let what = (page.status, page.body, page.truncation, page.bytes);
            notes.lock().unwrap().entry(page.url.clone()).or_default().page = Some(what);
        }
        Event::Failed { entry, failure, fate } => {
            let mut notes = notes.lock().unwrap();
            let noted = notes.entry(entry.url.to_string()).or_default();
            noted.failures.push((failure.kind, *fate));
        }
        _ => {}
    });
    let summary = timeout(MAX_TEST_TIME, crawl.run())
        .await
        .expect("the crawl ends")
        .unwrap();
    let book = std::mem::take(&mut *book.lock().unwrap());
    (book, summary)
}

/// Returns how the end of a behaviour differs from the table, if it does.
fn complaint(behaviour: &Behaviour, reported: &Reported) -> Option<String> {
    let kinds: Vec<FailureKind> = reported.failures.iter().map(|(kind, _)| *kind).collect();
    let is_given_up = reported
        .failures
        .last()
        .is_some_and(|(_, fate)| matches!(fate, Fate::GaveUp | Fate::Final));
    let page = reported.page.map(|(status, extent, cut, _)| (status, extent, cut));
    let is_right = match behaviour.ends {
        Ends::Page(status) => page == Some((status, BodyExtent::Complete, None)) && kinds.is_empty(),
        Ends::TruncationReason(status, cut) => {
            page == Some((status, BodyExtent::Truncated, Some(cut))) && kinds.is_empty()
        }
        Ends::Skipped(status) => page == Some((status, BodyExtent::Skipped, None)) && kinds.is_empty(),
        Ends::Fails(kind) => page.is_none() && is_given_up && kinds.iter().all(|one| *one == kind),
        Ends::KeptAfter(kind, status, cut) => {
            page == Some((status, BodyExtent::Truncated, Some(cut)))
                && is_given_up
                && kinds == [kind; REQUESTS_IF_SILENT]
        }
        Ends::GivesUp(kind, status) => {
            page.is_some_and(|(said, ..)| said == status) && is_given_up && kinds == [kind; 2]
        }
        Ends::Leaves => page.is_none() && kinds.is_empty(),
        Ends::Loops(_) => page.is_none() && is_given_up && kinds == [FailureKind::Redirect],
    };
    let is_short = reported.page.is_none_or(|(.., bytes)| bytes <= MAX_BODY);
    (!is_right || !is_short).then(|| {
        format!(
            "{}: it {}, so {:?}; but {reported:?}",
            behaviour.name, behaviour.does, behaviour.ends
        )
    })
}

async fn server() -> Server {
    let table = behaviours::table();
    let index: String = table
        .iter()
        .map(|row| format!("<a href=http://{}.localhost:PORT/>{}</a>", row.name, row.does))
        .collect();
    Server::start(move |request| {
        if request.name() != "index" {
            return behaviours::play(request);
        }
        let port = request.host.rsplit(':').next().unwrap_or_default();
        Script::say(html(index.replace("PORT", port)))
    })
    .await
}

/// Returns the number of requests of each behaviour, without robots.txt.
fn request_counts(server: &Server) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for request in server
        .requests()
        .iter()
        .filter(|request| request.target != "/robots.txt")
    {
        *asked.entry(request.name().to_owned()).or_default() += 1;
    }
    asked
}

#[test]
fn the_table_is_long_and_has_unique_host_names() {
    let mut names: Vec<_> = behaviours::table().iter().map(|row| row.name).collect();
    assert!(names.len() >= 60);
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_crawl_of_a_hostile_site_ends_within_its_limits_and_reports_the_cause() {
    let server = Arc::new(server().await);
    let (slow, quick): (Vec<_>, Vec<_>) = behaviours::table()
        .into_iter()
        .partition(|row| row.ends.takes_all_the_time());
    let mut complaints = visit_all(quick, &server, &client(LONG_TIMEOUT)).await;
    // These run alone: while others parse, half a second is not enough to send a head.
    complaints.extend(visit_all(slow, &server, &client(SHORT_TIMEOUT)).await);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let is_login =
        |request: &ReceivedRequest| request.head.contains("authorization") || request.target.contains("secret");
    let logins: Vec<_> = server.requests().into_iter().filter(is_login).collect();
    assert!(logins.is_empty(), "{logins:?}");
}

async fn visit_all(rows: Vec<Behaviour>, server: &Arc<Server>, client: &Arc<HttpFetcher>) -> Vec<String> {
    let mut visits = JoinSet::new();
    let mut complaints = Vec::new();
    for behaviour in rows {
        visits.spawn(visit(behaviour, Arc::clone(server), Arc::clone(client)));
        if visits.len() == CONCURRENT_CRAWLS {
            complaints.extend(visits.join_next().await.unwrap().unwrap());
        }
    }
    complaints.extend(visits.join_all().await.into_iter().flatten());
    complaints
}

/// Crawls one site, and returns the differences from the table.
async fn visit(behaviour: Behaviour, server: Arc<Server>, client: Arc<HttpFetcher>) -> Vec<String> {
    let seed = format!("http://{}.localhost:{}/", behaviour.name, server.port);
    let (book, summary) = crawl(&seed, client).await;
    let reported = book.get(&seed).cloned().unwrap_or_default();
    let mut complaints = Vec::from_iter(
        complaint(&behaviour, &reported)
            .into_iter()
            .chain(counter_complaint(&behaviour, &summary)),
    );
    let requests = request_counts(&server).get(behaviour.name).copied().unwrap_or_default();
    if requests > behaviour.requests || requests == 0 {
        complaints.push(format!("{}: {requests} requests", behaviour.name));
    }
    if summary.ending != Ending::Drained {
        complaints.push(format!("{}: ended as {:?}", behaviour.name, summary.ending));
    }
    complaints
}

/// Returns how the counters of a crawl differ from the table, if they do.
fn counter_complaint(behaviour: &Behaviour, summary: &Summary) -> Option<String> {
    let one = |counter: Option<&u64>| counter == Some(&1);
    let is_right = match behaviour.ends {
        Ends::Page(_) | Ends::Leaves => {
            let errors: u64 = summary.by_status.range(300..).map(|(_, count)| count).sum();
            summary.failed_pages() == errors && summary.failures.retried.is_empty()
        }
        Ends::TruncationReason(_, cut) => summary.failures.bodies_truncated.contains_key(&cut),
        Ends::Skipped(_) => summary.failures.bodies_skipped == 1,
        Ends::Fails(kind) => one(summary.failures.by_kind.get(&kind)),
        Ends::Loops(urls) => summary.failures.by_kind.get(&FailureKind::Redirect) == Some(&urls),
        Ends::KeptAfter(kind, _, cut) => {
            let retried = summary.failures.retried.get(&kind).copied();
            one(summary.failures.by_kind.get(&kind))
                && retried == Some(REQUESTS_IF_SILENT as u64 - 1)
                && one(summary.failures.bodies_truncated.get(&cut))
        }
        Ends::GivesUp(kind, _) => one(summary.failures.by_kind.get(&kind)) && one(summary.failures.retried.get(&kind)),
    };
    (!is_right).then(|| format!("{}: counted as\n{summary}", behaviour.name))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_ends_at_any_byte_is_reported_as_truncated_or_broken() {
    let whole = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "f\r\n<a href=/next/>\r\n4\r\nnext\r\n0\r\n\r\n"
    );
    let (answer, length) = (whole.clone(), whole.len());
    let head = whole.find("\r\n\r\n").unwrap() + 4;
    let server = Server::start(move |request| {
        let until: usize = request.target.trim_start_matches('/').parse().unwrap();
        Script::say(&answer.as_bytes()[..until]).then(if until.is_multiple_of(2) {
            Then::Close
        } else {
            Then::Reset
        })
    })
    .await;
    let client = client(LONG_TIMEOUT);
    for until in 0..=length {
        let url = format!("http://cut.localhost:{}/{until}", server.port).parse().unwrap();
        match client.fetch(Request::new(url, ResourceKind::Page)).await {
            Ok(answer) => {
                assert!(until >= head, "{until}");
                let cut = (until < length).then_some(TruncationReason::Connection);
                // A reset may arrive before the bytes that were sent earlier.
                assert!(answer.truncation == cut || until % 2 == 1, "{until}: {answer:?}");
                assert!(b"<a href=/next/>next".starts_with(&answer.body), "{until}: {answer:?}");
            }
            Err(error) => {
                assert!(until < head || until % 2 == 1, "{until}: {error:?}");
                assert!(matches!(error, FetchError::Broken(_)), "{until}: {error:?}");
            }
        }
    }
}
