//! Politeness as servers see it: 100 000 requests to many hosts, with redirects, retries, robots.txt and sitemaps. The
//! clock is paused.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::scripted;
use crawler::{Crawl, CrawlOptions, Ending, FetchError, Fetcher, Request, ResourceKind, Response, Summary};
use frontier::{FrontierConfig, Reach, RetryPolicy, ScopeConfig};
use tokio::time::{Instant, sleep};

const DELAY: Duration = Duration::from_secs(1);

/// A web of hosts with robots.txt, sitemaps, and pages with every kind of answer.
struct Web {
    hosts: usize,
    pages_per_host: usize,
    per_host: u32,
    log: Mutex<ServerLog>,
}

#[derive(Default)]
struct ServerLog {
    hosts: HashMap<String, Host>,
    failed_once: HashSet<String>,
    by_kind: HashMap<&'static str, u64>,
    violations: Vec<String>,
    requests: u64,
}

#[derive(Default)]
struct Host {
    in_flight: u32,
    max_in_flight: u32,
    last_start: Option<Instant>,
    last_end: Option<Instant>,
}

impl Web {
    /// Records a request, and returns how long it takes.
    fn start(&self, host: &str, kind: &'static str) -> Duration {
        let mut log = self.log.lock().unwrap();
        log.requests += 1;
        *log.by_kind.entry(kind).or_default() += 1;
        let milliseconds = 1 + (log.requests.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54);
        let known = log.hosts.entry(host.to_owned()).or_default();
        known.in_flight += 1;
        known.max_in_flight = known.max_in_flight.max(known.in_flight);
        let too_many = known.in_flight > self.per_host;
        let since = [known.last_start, known.last_end].into_iter().flatten().max();
        // With several requests in flight, one may end in the instant in which another starts. The crawl cannot know of
        // it yet.
        let gap = since
            .map(|since| since.elapsed())
            .filter(|gap| self.per_host == 1 || !gap.is_zero());
        known.last_start = Some(Instant::now());
        let in_flight = known.in_flight;
        if too_many {
            log.violations.push(format!("{host}: {in_flight} requests in flight"));
        }
        if let Some(gap) = gap.filter(|gap| *gap < DELAY) {
            log.violations
                .push(format!("{host}: requested {gap:?} after the last request"));
        }
        Duration::from_millis(milliseconds)
    }

    fn end(&self, host: &str) {
        let mut log = self.log.lock().unwrap();
        let known = log.hosts.get_mut(host).unwrap();
        known.in_flight -= 1;
        known.last_end = Some(Instant::now());
    }

    fn fails_now(&self, url: &str) -> bool {
        self.log.lock().unwrap().failed_once.insert(url.to_owned())
    }

    fn answer(&self, url: &str, kind: ResourceKind) -> Result<Response, FetchError> {
        let (_, address) = url.split_once("://host").unwrap();
        let (host, path) = address.split_once(".example/").unwrap();
        let host: usize = host.parse().unwrap();
        match kind {
            ResourceKind::Robots => self.robots(host, path, url),
            ResourceKind::Sitemap => self.sitemap(host, path, url),
            ResourceKind::Page => self.page(host, path, url),
        }
    }

    /// The robots.txt of every fifth host redirects to the next host. That of every seventh fails at first.
    fn robots(&self, host: usize, path: &str, url: &str) -> Result<Response, FetchError> {
        if path == "robots.txt" && host.is_multiple_of(5) {
            return redirect_to(format!(
                "http://host{}.example/robots.txt?{host}",
                (host + 1) % self.hosts
            ));
        }
        if host.is_multiple_of(7) && self.fails_now(url) {
            return status(503);
        }
        body("User-agent: *\nDisallow: /forbidden/\n")
    }

    /// The index names two sitemaps on its own host and one on the next. Every third fails at first.
    fn sitemap(&self, host: usize, path: &str, url: &str) -> Result<Response, FetchError> {
        if path == "sitemap.xml" {
            let next = (host + 1) % self.hosts;
            return body(&format!(
                "<sitemapindex><sitemap><loc>/0.xml</loc></sitemap><sitemap><loc>/1.xml</loc></sitemap>\
                 <sitemap><loc>http://host{next}.example/moved.xml</loc></sitemap></sitemapindex>"
            ));
        }
        if path == "moved.xml" {
            return redirect_to("/0.xml".to_owned());
        }
        if host.is_multiple_of(3) && self.fails_now(url) {
            return Err(FetchError::Timeout);
        }
        let half = usize::from(path == "1.xml");
        let pages = (0..self.pages_per_host).filter(|n| n % 2 == half);
        let mut xml = "<urlset>".to_owned();
        for n in pages {
            write!(xml, "<url><loc>/{n}</loc></url>").unwrap();
        }
        body(&(xml + "<url><loc>/forbidden/</loc></url></urlset>"))
    }

    fn page(&self, host: usize, path: &str, url: &str) -> Result<Response, FetchError> {
        let Ok(n) = path.parse::<usize>() else {
            // The seed and the targets of redirects.
            let next = format!("<a href=http://host{}.example/>", (host + 1) % self.hosts);
            return body(if path.is_empty() { &next } else { "" });
        };
        match n % 40 {
            0 => redirect_to(format!("http://host{}.example/target/{n}", (host + 3) % self.hosts)),
            1 => redirect_to(format!("/target/{n}")),
            2 if self.fails_now(url) => status(503),
            3 if self.fails_now(url) => Err(FetchError::Connect("refused".to_owned())),
            4 if self.fails_now(url) => Ok(Response {
                status: 429,
                retry_after: Some(Duration::from_secs(5)),
                ..Response::default()
            }),
            5 => status(404),
            _ => body(""),
        }
    }
}

fn status(status: u16) -> Result<Response, FetchError> {
    Ok(Response {
        status,
        ..Response::default()
    })
}

fn body(text: &str) -> Result<Response, FetchError> {
    Ok(Response {
        status: 200,
        body: text.as_bytes().to_vec(),
        ..Response::default()
    })
}

fn redirect_to(to: String) -> Result<Response, FetchError> {
    Ok(Response {
        status: 302,
        location: Some(to),
        ..Response::default()
    })
}

struct WebFetcher(Arc<Web>);

impl Fetcher for WebFetcher {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let host = request.url.host_str().unwrap();
        let kind = match request.kind {
            ResourceKind::Page => "page",
            ResourceKind::Robots => "robots",
            ResourceKind::Sitemap => "sitemap",
        };
        let takes = self.0.start(host, kind);
        sleep(takes).await;
        self.0.end(host);
        self.0.answer(request.url.as_str(), request.kind)
    }
}

fn crawl(hosts: usize, pages_per_host: usize, per_host: u32) -> (ServerLog, Summary) {
    let web = Arc::new(Web {
        hosts,
        pages_per_host,
        per_host,
        log: Mutex::default(),
    });
    let frontier = FrontierConfig {
        per_host: NonZeroU32::new(per_host).unwrap(),
        delay: DELAY,
        scope: ScopeConfig {
            reach: Reach::Any,
            ..ScopeConfig::default()
        },
        retries: RetryPolicy {
            max_host_downtime: Duration::MAX,
            max_first_downtime: Duration::MAX,
            ..RetryPolicy::default()
        },
        exact: true,
        ..FrontierConfig::default()
    };
    let options = CrawlOptions {
        seeds: vec!["http://host0.example/".to_owned()],
        frontier,
        concurrency: NonZeroUsize::new(hosts).unwrap(),
        sitemaps: true,
        ..CrawlOptions::default()
    };
    let runtime = scripted::paused_runtime();
    let builder = Crawl::builder(options).unwrap();
    let crawl = builder.build_with(WebFetcher(Arc::clone(&web))).unwrap();
    let summary = runtime.block_on(crawl.run()).unwrap();
    let log = std::mem::take(&mut *web.log.lock().unwrap());
    (log, summary)
}

#[test]
fn a_hundred_thousand_requests_are_never_parallel_or_early_on_one_host() {
    let (log, summary) = crawl(200, 500, 1);
    assert_eq!(log.violations, Vec::<String>::new());
    assert!(log.requests >= 100_000, "only {} requests", log.requests);
    assert!(
        log.by_kind["robots"] > 200 && log.by_kind["sitemap"] > 3 * 200,
        "{:?}",
        log.by_kind
    );
    let pages = &summary.report.pages;
    assert!(pages.redirected > 5_000 && pages.retries > 7_000, "{pages:?}");
    assert_eq!(
        (summary.ending, pages.gave_up + pages.lost_with_host),
        (Ending::Drained, 0)
    );
    assert_eq!(summary.sitemaps.failed, 0);
    let shortest_gap = summary.hosts.iter().filter_map(|host| host.shortest_gap).min();
    assert!(shortest_gap >= Some(DELAY), "the summary has {shortest_gap:?}");
}

#[test]
fn no_host_has_more_requests_in_flight_than_allowed() {
    for per_host in [2, 5] {
        let (log, summary) = crawl(20, 100, per_host);
        assert_eq!(log.violations, Vec::<String>::new());
        assert_eq!(summary.ending, Ending::Drained);
        assert!(log.hosts.values().all(|host| host.max_in_flight <= per_host));
    }
}
