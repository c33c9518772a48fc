//! Politeness as the servers see it: 100 000 requests to many hosts, by redirects, retries, robots.txt and sitemaps, with a clock
//! that jumps.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

mod scripted;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawler::{
    Crawl, CrawlConfig, CrawlOptions, Ending, FetchError, Fetcher, Request, ResourceKind, Response, Summary,
};
use frontier::{Frontier, FrontierConfig, Reach, RetryPolicy, ScopeConfig};
use sieve::SeenSet;
use tokio::time::{Instant, sleep};

const DELAY: Duration = Duration::from_secs(1);

/// A web of hosts that all have robots.txt, sitemaps, and pages that answer in every way.
struct Web {
    hosts: usize,
    pages_per_host: usize,
    per_host: u32,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    hosts: HashMap<String, Host>,
    failed_once: HashSet<String>,
    by_kind: HashMap<&'static str, u64>,
    complaints: Vec<String>,
    requests: u64,
}

#[derive(Default)]
struct Host {
    out: u32,
    most_out: u32,
    last_start: Option<Instant>,
    last_end: Option<Instant>,
}

impl Web {
    /// Notes that a request has come in; returns how long it will take.
    fn start(&self, host: &str, kind: &'static str) -> Duration {
        let mut seen = self.seen.lock().unwrap();
        seen.requests += 1;
        *seen.by_kind.entry(kind).or_default() += 1;
        let milliseconds = 1 + (seen.requests.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54);
        let known = seen.hosts.entry(host.to_owned()).or_default();
        known.out += 1;
        known.most_out = known.most_out.max(known.out);
        let too_many = known.out > self.per_host;
        let since = [known.last_start, known.last_end].into_iter().flatten().max();
        // With several at a time, one may end in the instant in which another starts, before anybody can know.
        let gap = since
            .map(|since| since.elapsed())
            .filter(|gap| self.per_host == 1 || !gap.is_zero());
        known.last_start = Some(Instant::now());
        let out = known.out;
        if too_many {
            seen.complaints.push(format!("{host}: {out} requests at a time"));
        }
        if let Some(gap) = gap.filter(|gap| *gap < DELAY) {
            seen.complaints
                .push(format!("{host}: asked {gap:?} after the last request"));
        }
        Duration::from_millis(milliseconds)
    }

    fn end(&self, host: &str) {
        let mut seen = self.seen.lock().unwrap();
        let known = seen.hosts.get_mut(host).unwrap();
        known.out -= 1;
        known.last_end = Some(Instant::now());
    }

    fn fails_now(&self, url: &str) -> bool {
        self.seen.lock().unwrap().failed_once.insert(url.to_owned())
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

    /// Every fifth host's robots.txt lies with its neighbour, and every seventh fails at first.
    fn robots(&self, host: usize, path: &str, url: &str) -> Result<Response, FetchError> {
        if path == "robots.txt" && host.is_multiple_of(5) {
            return moved(format!(
                "http://host{}.example/robots.txt?{host}",
                (host + 1) % self.hosts
            ));
        }
        if host.is_multiple_of(7) && self.fails_now(url) {
            return status(503);
        }
        body("User-agent: *\nDisallow: /forbidden/\n")
    }

    /// The index names two lists at its place and one with the neighbour; every third fails at first.
    fn sitemap(&self, host: usize, path: &str, url: &str) -> Result<Response, FetchError> {
        if path == "sitemap.xml" {
            let next = (host + 1) % self.hosts;
            return body(&format!(
                "<sitemapindex><sitemap><loc>/0.xml</loc></sitemap><sitemap><loc>/1.xml</loc></sitemap>\
                 <sitemap><loc>http://host{next}.example/moved.xml</loc></sitemap></sitemapindex>"
            ));
        }
        if path == "moved.xml" {
            return moved("/0.xml".to_owned());
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
            // The seed, and where redirects lead.
            let next = format!("<a href=http://host{}.example/>", (host + 1) % self.hosts);
            return body(if path.is_empty() { &next } else { "" });
        };
        match n % 40 {
            0 => moved(format!("http://host{}.example/target/{n}", (host + 3) % self.hosts)),
            1 => moved(format!("/target/{n}")),
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

fn moved(to: String) -> Result<Response, FetchError> {
    Ok(Response {
        status: 302,
        location: Some(to),
        ..Response::default()
    })
}

struct Door(Arc<Web>);

impl Fetcher for Door {
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

fn crawl(hosts: usize, pages_per_host: usize, per_host: u32) -> (Seen, Summary) {
    let web = Arc::new(Web {
        hosts,
        pages_per_host,
        per_host,
        seen: Mutex::default(),
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
        ..FrontierConfig::default()
    };
    let options = CrawlOptions {
        seeds: vec!["http://host0.example/".to_owned()],
        frontier: frontier.clone(),
        concurrency: NonZeroUsize::new(hosts).unwrap(),
        sitemaps: true,
        ..CrawlOptions::default()
    };
    let frontier = Frontier::with_seen_set(frontier, SeenSet::exact()).unwrap();
    let runtime = scripted::paused_runtime();
    let crawl = Crawl::with_parts(CrawlConfig::new(options).unwrap(), frontier, Door(Arc::clone(&web)));
    let summary = runtime.block_on(crawl.run()).unwrap();
    let seen = std::mem::take(&mut *web.seen.lock().unwrap());
    (seen, summary)
}

#[test]
fn no_host_is_asked_twice_at_a_time_or_early_in_a_hundred_thousand_requests() {
    let (seen, summary) = crawl(200, 500, 1);
    assert_eq!(seen.complaints, Vec::<String>::new());
    assert!(seen.requests >= 100_000, "only {} requests", seen.requests);
    assert!(
        seen.by_kind["robots"] > 200 && seen.by_kind["sitemap"] > 3 * 200,
        "{:?}",
        seen.by_kind
    );
    let pages = &summary.report.pages;
    assert!(pages.redirected > 5_000 && pages.retries > 7_000, "{pages:?}");
    assert_eq!(
        (summary.ending, pages.gave_up + pages.lost_with_host),
        (Ending::Drained, 0)
    );
    assert_eq!(summary.sitemaps.failed, 0);
    let told = summary.hosts.iter().filter_map(|host| host.shortest_gap).min();
    assert!(told >= Some(DELAY), "the receipt says {told:?}");
}

#[test]
fn a_host_is_asked_for_so_many_things_at_a_time_as_allowed_and_no_more() {
    for per_host in [2, 5] {
        let (seen, summary) = crawl(20, 100, per_host);
        assert_eq!(seen.complaints, Vec::<String>::new());
        assert_eq!(summary.ending, Ending::Drained);
        assert!(seen.hosts.values().all(|host| host.most_out <= per_host));
    }
}
