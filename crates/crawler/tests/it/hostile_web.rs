//! A crawl of all hostile sites at once, from a page that links to them: it ends, and its memory stays below the limit.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use crate::hostile::behaviours;
use crate::hostile::server::{Script, Server, html};
use crawler::FailureKind;
use crawler::{Crawl, Ending, HttpOptions, TruncationReason};
use frontier::RetryPolicy;
use tokio::time::timeout;

/// The time after which the test fails: far more than the crawl takes.
const MAX_TEST_TIME: Duration = Duration::from_secs(600);
/// The documented memory for 16 concurrent requests, in bytes.
const MAX_MEMORY_BYTES: u64 = 256 << 20;
/// The variable that says that this process runs no other test: the peak of the memory is that of a process.
const ALONE: &str = "HOSTILE_WEB_ALONE";

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_of_all_hostile_sites_at_once_ends_within_its_memory_limit() {
    if std::env::var_os(ALONE).is_none() {
        let name = "hostile_web::a_crawl_of_all_hostile_sites_at_once_ends_within_its_memory_limit";
        let mut itself = Command::new(std::env::current_exe().unwrap());
        let alone = itself
            .args(["--exact", name, "--nocapture"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let printed = [alone.stdout, alone.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(alone.status.success() && printed[0].contains("1 passed"), "{printed:?}");
        return;
    }
    let table = behaviours::table();
    let names: BTreeSet<&str> = table.iter().map(|row| row.name).collect();
    let links: String = names
        .iter()
        .map(|name| format!("<a href=http://{name}.localhost:PORT/>{name}</a>"))
        .collect();
    let server = Server::start(move |request| match request.name() {
        "index" => Script::say(html(links.replace("PORT", request.host.rsplit(':').next().unwrap()))),
        _ => behaviours::play(request),
    })
    .await;
    let mut options = behaviours::limits(&format!("http://index.localhost:{}/", server.port));
    // A Retry-After of a century would otherwise take five minutes.
    options.frontier.retries = RetryPolicy {
        retry_wait: Duration::from_millis(100),
        max_retry_wait: Duration::from_secs(1),
        ..RetryPolicy::default()
    };
    let http = HttpOptions {
        timeout: Duration::from_secs(5),
        // The hosts are on loopback, and are not seeds.
        allow_private_addresses: true,
        ..HttpOptions::default()
    };
    let crawl = Crawl::builder(options).unwrap().http(http).build().unwrap();
    let summary = timeout(MAX_TEST_TIME, crawl.run())
        .await
        .expect("the crawl ends")
        .unwrap();
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
        assert!(summary.failures.by_kind.contains_key(&kind), "{kind}: {summary}");
    }
    for cut in [
        TruncationReason::Size,
        TruncationReason::Time,
        TruncationReason::Connection,
        TruncationReason::Coding,
    ] {
        assert!(
            summary.failures.bodies_truncated.contains_key(&cut),
            "{cut:?}: {summary}"
        );
    }
    let peak = summary.peak_memory_bytes.unwrap_or_default();
    assert!(peak < MAX_MEMORY_BYTES, "{peak} bytes: {summary}");
    println!("{summary}");
}
