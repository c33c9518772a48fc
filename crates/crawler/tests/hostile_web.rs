//! All hostile sites at once, behind one page that links to them: the crawl ends, and its memory stays below what is stated.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

mod hostile;

use std::collections::BTreeSet;
use std::time::Duration;

use crawler::FailureKind;
use crawler::{Crawl, CrawlConfig, CrawlOptions, Ending, HttpOptions, TruncationReason};
use frontier::{FrontierConfig, Reach, RetryPolicy, ScopeConfig};
use hostile::behaviours;
use hostile::server::{Script, Server, html};
use tokio::time::timeout;

/// Far more than the crawl takes.
const LONGEST: Duration = Duration::from_secs(600);
/// What is stated for 16 requests at a time.
const MOST_MEMORY: u64 = 256 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_of_all_hostile_sites_at_once_ends_within_its_memory() {
    let table = behaviours::table();
    let names: BTreeSet<&str> = table.iter().map(|row| row.name).collect();
    let links: String = names
        .iter()
        .map(|name| format!("<a href=http://{name}.localhost:PORT/>{name}</a>"))
        .collect();
    let server = Server::start(move |request| match request.name() {
        "index" => Script::say(html(links.replace("PORT", request.host.rsplit(':').next().unwrap()))),
        _ => behaviours::play(&table, request),
    })
    .await;
    let options = CrawlOptions {
        seeds: vec![format!("http://index.localhost:{}/", server.port)],
        frontier: FrontierConfig {
            delay: Duration::ZERO,
            max_pages_per_host: Some(50),
            scope: ScopeConfig {
                reach: Reach::Any,
                max_depth: Some(6),
                ..ScopeConfig::default()
            },
            // Who asks for a pause of a century would have five minutes.
            retries: RetryPolicy {
                first_wait: Duration::from_millis(100),
                longest_wait: Duration::from_secs(1),
                ..RetryPolicy::default()
            },
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    };
    let http = HttpOptions {
        timeout: Duration::from_secs(5),
        // The hosts are no seeds, and on loopback.
        allow_private_addresses: true,
        ..HttpOptions::default()
    };
    let crawl = Crawl::with_http(CrawlConfig::new(options).unwrap(), &http).unwrap();
    let summary = timeout(LONGEST, crawl.run()).await.expect("the crawl ends").unwrap();
    assert_eq!(summary.ending, Ending::Drained, "{summary}");
    let asked: BTreeSet<String> = server
        .requests()
        .iter()
        .map(|request| request.name().to_owned())
        .collect();
    let forgotten: Vec<_> = names.iter().filter(|name| !asked.contains(**name)).collect();
    assert!(forgotten.is_empty(), "never asked: {forgotten:?}");
    for kind in [
        FailureKind::Broken,
        FailureKind::HeadTooLarge,
        FailureKind::Incomplete,
        FailureKind::Redirect,
    ] {
        assert!(summary.failed.contains_key(&kind), "{kind}: {summary}");
    }
    for cut in [
        TruncationReason::Size,
        TruncationReason::Time,
        TruncationReason::Connection,
        TruncationReason::Coding,
    ] {
        assert!(summary.bodies_truncated.contains_key(&cut), "{cut:?}: {summary}");
    }
    let peak = summary.peak_memory_bytes.unwrap_or_default();
    assert!(peak < MOST_MEMORY, "{peak} bytes: {summary}");
    println!("{summary}");
}
