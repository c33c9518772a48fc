//! A crawl of a scripted web in memory with a paused clock, for all tests that need no socket.
//!
//! A test gives a function from a request to its answer. It gets back what was requested when, and what the crawl reported.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crawler::{
    Crawl, CrawlOptions, Event, FailureKind, FetchError, Fetcher, PageRecord, Request, ResourceKind, Response,
    SitemapRecord, Summary,
};
use frontier::{FrontierConfig, NotFetched, Notice, Reach, Refusal, SeenSetConfig};
use tokio::time::{Instant, sleep};

/// The answer of a script.
pub(crate) type Reply = Result<Response, FetchError>;

/// One request, as the script sees it.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a Request,
    /// The time since the first request.
    pub(crate) at: Duration,
    /// The number of earlier requests for the same URL.
    pub(crate) earlier: usize,
}

impl<'a> Call<'a> {
    pub(crate) fn url(&self) -> &'a str {
        self.request.url.as_str()
    }

    pub(crate) fn path(&self) -> &'a str {
        self.request.url.path()
    }

    pub(crate) fn is_robots(&self) -> bool {
        self.request.kind == ResourceKind::Robots
    }
}

/// One request, as the log keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) at: Duration,
    pub(crate) url: String,
    pub(crate) path: String,
    pub(crate) kind: ResourceKind,
}

#[derive(Default)]
struct Log {
    started: OnceLock<Instant>,
    requests: Mutex<(Vec<Received>, HashMap<String, usize>)>,
}

/// A fetcher that answers with a function, and logs the requests.
pub(crate) struct Scripted<F> {
    reply: F,
    log: Arc<Log>,
    latency: fn(&Request, &Reply) -> Duration,
}

impl<F: Fn(&Call<'_>) -> Reply + Send + Sync + 'static> Scripted<F> {
    pub(crate) fn new(reply: F) -> Self {
        Self {
            reply,
            log: Arc::default(),
            latency: |_, _| Duration::ZERO,
        }
    }

    /// Sets the duration of requests, which is zero by default.
    pub(crate) fn taking(self, latency: fn(&Request, &Reply) -> Duration) -> Self {
        Self { latency, ..self }
    }

    /// Crawls to the end.
    #[track_caller]
    pub(crate) fn crawl(self, options: CrawlOptions) -> Run {
        self.crawl_with(options, |crawl| crawl)
    }

    /// Crawls to the end, prepared by a function: observers, a stop.
    #[track_caller]
    pub(crate) fn crawl_with(self, options: CrawlOptions, prepare: impl FnOnce(Crawl<Self>) -> Crawl<Self>) -> Run {
        let log = Arc::clone(&self.log);
        let crawl = Crawl::builder(options).unwrap().build_with(self).unwrap();
        Self::run(prepare(crawl), &log)
    }

    /// Crawls to the end, with a state directory.
    #[track_caller]
    pub(crate) fn crawl_in(self, state: &std::path::Path, options: CrawlOptions) -> Run {
        self.crawl_in_with(state, options, |crawl| crawl)
    }

    /// Crawls to the end, with a state directory, prepared by a function.
    #[track_caller]
    pub(crate) fn crawl_in_with(
        self,
        state: &std::path::Path,
        options: CrawlOptions,
        prepare: impl FnOnce(Crawl<Self>) -> Crawl<Self>,
    ) -> Run {
        let log = Arc::clone(&self.log);
        let crawl = Crawl::builder(options)
            .unwrap()
            .state_dir(state)
            .build_with(self)
            .unwrap();
        Self::run(prepare(crawl), &log)
    }

    #[track_caller]
    fn run(crawl: Crawl<Self>, log: &Log) -> Run {
        let reports = Arc::new(Mutex::new(Reports::default()));
        let book = Arc::clone(&reports);
        let crawl = crawl.observe(move |event: &Event<'_>| book.lock().unwrap().note(event));
        let summary = paused_runtime().block_on(crawl.run()).unwrap();
        let requests = std::mem::take(&mut log.requests.lock().unwrap().0);
        let second = |request: &Received| (request.at.as_secs(), request.url.clone());
        Run {
            summary,
            asked: requests.iter().map(second).collect(),
            requests,
            reports: std::mem::take(&mut *reports.lock().unwrap()),
        }
    }
}

impl<F: Fn(&Call<'_>) -> Reply + Send + Sync + 'static> Fetcher for Scripted<F> {
    async fn fetch(&self, request: Request) -> Reply {
        let at = self.log.started.get_or_init(Instant::now).elapsed();
        let earlier = {
            // A script may panic, as a part of its test.
            let mut log = self.log.requests.lock().unwrap_or_else(PoisonError::into_inner);
            log.0.push(Received {
                at,
                url: request.url.to_string(),
                path: request.url.path().to_owned(),
                kind: request.kind,
            });
            let times = log.1.entry(request.url.to_string()).or_default();
            *times += 1;
            *times - 1
        };
        let call = Call {
            request: &request,
            at,
            earlier,
        };
        let reply = (self.reply)(&call);
        let latency = (self.latency)(&request, &reply);
        if latency > Duration::ZERO {
            sleep(latency).await;
        }
        reply
    }
}

/// What a crawl reported to its observers.
#[derive(Default)]
pub(crate) struct Reports {
    pub(crate) pages: Vec<PageRecord>,
    pub(crate) sitemaps: Vec<SitemapRecord>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) not_fetched: Vec<(String, NotFetched, Option<FailureKind>)>,
    /// How many links were offered to the frontier.
    pub(crate) offered: usize,
}

impl Reports {
    fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::Page(page) => self.pages.push((*page).clone()),
            Event::Sitemap(sitemap) => self.sitemaps.push((*sitemap).clone()),
            Event::Notice(notice) => self.notices.push((*notice).clone()),
            Event::NotFetched { entry, why, cause } => {
                let kind = cause.map(|cause| cause.kind);
                self.not_fetched.push((entry.url.to_string(), *why, kind));
            }
            Event::Offered { links, .. } => self.offered += links.len(),
            _ => {}
        }
    }
}

/// A crawl that has ended.
pub(crate) struct Run {
    pub(crate) summary: Summary,
    pub(crate) requests: Vec<Received>,
    /// The second and the URL of each request.
    pub(crate) asked: Vec<(u64, String)>,
    pub(crate) reports: Reports,
}

impl Run {
    pub(crate) fn urls(&self) -> Vec<&str> {
        self.asked.iter().map(|(_, url)| url.as_str()).collect()
    }

    pub(crate) fn paths(&self) -> Vec<&str> {
        self.requests.iter().map(|request| request.path.as_str()).collect()
    }

    /// The second of each request.
    pub(crate) fn seconds(&self) -> Vec<u64> {
        self.asked.iter().map(|(at, _)| *at).collect()
    }

    /// The seconds of the requests for one URL.
    pub(crate) fn seconds_of(&self, url: &str) -> Vec<u64> {
        let found = self.asked.iter().filter(|(_, asked)| asked == url);
        found.map(|(at, _)| *at).collect()
    }

    /// How many URLs were not fetched for a reason.
    pub(crate) fn not_fetched(&self, why: NotFetched) -> u64 {
        self.summary.report.not_fetched.get(&why).copied().unwrap_or_default()
    }

    /// How many links were refused for a reason.
    pub(crate) fn refused(&self, why: Refusal) -> u64 {
        self.summary.report.links.refused.get(&why).copied().unwrap_or_default()
    }
}

pub(crate) fn missing(summary: &Summary) -> Vec<String> {
    summary.missing().iter().map(ToString::to_string).collect()
}

/// Options with an exact seen-set, so that no URL is lost by chance.
pub(crate) fn options(seed: &str) -> CrawlOptions {
    CrawlOptions {
        seeds: vec![seed.to_owned()],
        frontier: FrontierConfig {
            seen_set: SeenSetConfig {
                exact: true,
                ..SeenSetConfig::default()
            },
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    }
}

/// Returns options that follow all links from this seed, without a delay.
pub(crate) fn everywhere(seed: &str) -> CrawlOptions {
    let mut options = options(seed);
    options.frontier.politeness.delay = Duration::ZERO;
    options.frontier.scope.reach = Reach::Any;
    options
}

/// Makes a page that answers 200, without a `Content-Type`, which counts as HTML.
pub(crate) fn page(body: impl AsRef<[u8]>) -> Response {
    Response {
        status: 200,
        body: body.as_ref().to_vec(),
        ..Response::default()
    }
}

/// Makes a page of a type.
pub(crate) fn page_of(content_type: &str, body: impl AsRef<[u8]>) -> Response {
    Response {
        content_type: Some(content_type.to_owned()),
        ..page(body)
    }
}

/// Makes an answer without a body.
pub(crate) fn status(status: u16) -> Response {
    Response {
        status,
        ..Response::default()
    }
}

/// Makes a redirect.
pub(crate) fn redirect(to: &str) -> Response {
    Response {
        location: Some(to.to_owned()),
        ..status(301)
    }
}

/// The same, as answers of a script.
pub(crate) mod replies {
    use super::Reply;

    pub(crate) fn body(text: &str) -> Reply {
        Ok(super::page(text))
    }

    pub(crate) fn status(code: u16) -> Reply {
        Ok(super::status(code))
    }

    pub(crate) fn moved(to: &str) -> Reply {
        Ok(super::redirect(to))
    }
}

/// Fails like a closed port.
pub(crate) fn refused() -> Reply {
    Err(FetchError::Connect("connection refused".to_owned()))
}

/// Makes a runtime with a paused clock, which advances to the next timer.
pub(crate) fn paused_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}
