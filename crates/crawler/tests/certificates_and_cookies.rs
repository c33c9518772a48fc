//! Servers whose certificate nobody signed, and cookies from a file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

mod hostile;

use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crawler::fetch::CookieFile;
use crawler::{Crawl, CrawlConfig, CrawlOptions, HttpOptions, Summary};
use frontier::{FailureKind, FrontierConfig, Reach, ScopeConfig};
use hostile::server::{Script, Server, html, page};
use hostile::tls::{start_counting, start_self_signed};

fn options(seed: String) -> CrawlOptions {
    CrawlOptions {
        seeds: vec![seed],
        frontier: FrontierConfig {
            delay: Duration::ZERO,
            ask_robots: false,
            scope: ScopeConfig {
                reach: Reach::Any,
                ..ScopeConfig::default()
            },
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    }
}

async fn crawl(options: CrawlOptions, http: HttpOptions) -> Summary {
    let http = HttpOptions {
        allow_private_addresses: true,
        ..http
    };
    let config = CrawlConfig::new(options).unwrap();
    Crawl::with_http(config, &http).unwrap().run().await.unwrap()
}

#[tokio::test]
async fn a_certificate_that_nobody_signed_is_accepted_on_request_only() {
    let seed = start_self_signed().await;
    let mut quick = options(seed.clone());
    quick.frontier.retries.max_first_downtime = Duration::ZERO;
    let summary = crawl(quick, HttpOptions::default()).await;
    assert_eq!(summary.pages, 0, "{summary}");
    assert!(
        summary.failed.contains_key(&FailureKind::Tls) || summary.report.origins_given_up == 1,
        "{summary}"
    );
    let http = HttpOptions {
        accept_any_certificate: true,
        ..HttpOptions::default()
    };
    let summary = crawl(options(seed), http).await;
    assert_eq!(summary.pages, 1, "{summary}");
}

#[tokio::test]
async fn the_sessions_of_many_hosts_are_resumed_when_their_turn_comes_again() {
    const HOSTS: usize = 60;
    let (port, handshakes) = start_counting().await;
    let pages = ["", "next"]
        .into_iter()
        .flat_map(|path| (0..HOSTS).map(move |host| (host, path)));
    let options = CrawlOptions {
        seeds: pages
            .map(|(host, path)| format!("https://h{host}.localhost:{port}/{path}"))
            .collect(),
        // One after the other: each host has its second turn after all the others.
        concurrency: NonZeroUsize::MIN,
        ..options(String::new())
    };
    let http = HttpOptions {
        accept_any_certificate: true,
        ..HttpOptions::default()
    };
    let summary = crawl(options, http).await;
    assert_eq!(summary.pages, 2 * HOSTS as u64, "{summary}");
    let count = |count: &std::sync::atomic::AtomicUsize| count.load(Ordering::Relaxed);
    assert_eq!((count(&handshakes.full), count(&handshakes.resumed)), (HOSTS, HOSTS));
}

#[tokio::test]
async fn the_cookies_of_a_file_go_to_their_host_from_the_first_request_on() {
    let server = Server::start(|request| {
        let port = request.host.rsplit(':').next().unwrap();
        Script::say(match request.target.as_str() {
            "/" => page(
                "200 OK",
                "Content-Type: text/html\r\nSet-Cookie: id=new; Path=/\r\n",
                format!("<a href=/next>n</a><a href=http://away.localhost:{port}/x>o</a>"),
            ),
            _ => html("end"),
        })
    })
    .await;
    let text = "home.localhost\tFALSE\t/\tFALSE\t0\tid\told\n#HttpOnly_home.localhost\tFALSE\t/\tFALSE\t0\tkey\tk\n";
    let http = HttpOptions {
        cookie_file: Some(CookieFile::parse(text, "c.txt").unwrap()),
        ..HttpOptions::default()
    };
    let summary = crawl(options(format!("http://home.localhost:{}/", server.port)), http).await;
    assert_eq!(summary.pages, 3, "{summary}");
    let cookies: Vec<_> = server
        .requests()
        .iter()
        .map(|request| {
            let header = request.head.lines().find_map(|line| line.strip_prefix("cookie: "));
            let mut pairs: Vec<String> = header.unwrap_or_default().split("; ").map(str::to_owned).collect();
            pairs.sort();
            (request.target.clone(), pairs.join(" "))
        })
        .collect();
    assert_eq!(cookies[0], ("/".to_owned(), "id=old key=k".to_owned()));
    let sent = |target: &str| &cookies.iter().find(|(other, _)| other == target).unwrap().1;
    assert_eq!(sent("/next"), "id=new key=k", "what the site has set since");
    assert_eq!(sent("/x"), "", "another host");
}
