//! When a host is given up, and when not: a scripted fetcher, and a clock that jumps.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

#[path = "common/paused.rs"]
mod paused;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawler::{Answer, Ask, Crawl, CrawlConfig, CrawlOptions, FetchError, Fetcher, Summary};
use frontier::{Frontier, FrontierConfig};
use sieve::ExactFilter;

type Reply = Result<Answer, FetchError>;

/// Answers by a function, in no time, and remembers what was asked for.
struct Script<F> {
    reply: F,
    asked: Arc<Mutex<Vec<String>>>,
}

impl<F: Fn(&str) -> Reply + Send + Sync + 'static> Fetcher for Script<F> {
    async fn fetch(&self, ask: Ask) -> Reply {
        self.asked.lock().unwrap().push(ask.url.to_string());
        (self.reply)(ask.url.as_str())
    }
}

fn body(text: &str) -> Reply {
    Ok(Answer {
        status: 200,
        body: text.as_bytes().to_vec(),
        ..Answer::default()
    })
}

fn refused() -> Reply {
    Err(FetchError::Connect("connection refused".to_owned()))
}

/// Crawls `http://a.example/`, its own host only, on every port and by both schemes.
fn run(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> (Summary, Vec<String>) {
    let options = CrawlOptions {
        seeds: vec!["http://a.example/".to_owned()],
        frontier: FrontierConfig {
            delay: Duration::from_millis(10),
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let frontier = Frontier::with_filter(options.frontier.clone(), ExactFilter::new()).unwrap();
    let script = Script {
        reply,
        asked: Arc::clone(&asked),
    };
    let crawl = Crawl::with(CrawlConfig::new(options).unwrap(), frontier, script);
    let runtime = paused::runtime();
    let summary = runtime.block_on(crawl.run()).unwrap();
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    (summary, asked)
}

fn links(urls: impl IntoIterator<Item = String>) -> String {
    urls.into_iter().map(|url| format!("<a href='{url}'>")).collect()
}

#[test]
fn ports_where_nobody_listens_do_not_cost_the_host_that_answers_on_others() {
    let dead = [
        "https://a.example/1",
        "http://a.example:8081/2",
        "http://a.example:8082/3",
    ]
    .map(str::to_owned);
    let alive = (0..40).map(|n| format!("http://a.example/{n}"));
    let page = links(dead.into_iter().chain(alive));
    let (summary, asked) = run(move |url| match url {
        "http://a.example/" => body(&page),
        url if url.starts_with("http://a.example/") => body(""),
        _ => refused(),
    });
    assert_eq!(summary.pages, 41, "{asked:?}");
}

#[test]
fn two_slow_pages_do_not_cost_the_host_that_answers_all_others() {
    let urls = (0..40).map(|n| {
        format!(
            "http://a.example/{}{n}",
            if (10..12).contains(&n) { "slow" } else { "" }
        )
    });
    let page = links(urls);
    let (summary, asked) = run(move |url| match url {
        "http://a.example/" => body(&page),
        url if url.contains("slow") => Err(FetchError::Timeout),
        _ => body(""),
    });
    assert_eq!(summary.pages, 39, "{asked:?}");
    assert_eq!(summary.report.pages.gave_up, 2);
}

#[test]
fn a_host_that_answers_nothing_any_more_is_given_up_after_a_few_tries() {
    let page = links((0..1000).map(|n| format!("/{n}")));
    let (summary, asked) = run(move |url| match url {
        "http://a.example/" => body(&page),
        "http://a.example/robots.txt" => body(""),
        _ => refused(),
    });
    assert_eq!(summary.pages, 1);
    assert!(asked.len() < 12, "{asked:?}");
    assert_eq!(summary.report.pages.gave_up + summary.report.pages.lost_with_host, 1000);
}

#[test]
fn of_a_crawl_that_gets_nothing_a_site_s_failure_is_told_rather_than_a_want_of_this_machine() {
    let answers = AtomicUsize::new(0);
    let (summary, _) = run(move |url| match url {
        "http://a.example/robots.txt" => body(""),
        _ if answers.fetch_add(1, Ordering::Relaxed) == 0 => Err(FetchError::OutOfHandles),
        _ => refused(),
    });
    let first = summary.first_failure.unwrap();
    assert!(first.contains("no connection"), "{first}");
}
