//! The demo site: what its pages answer, and which of them a polite crawler must find. That they can be found is what `crawler demo`
//! checks.

use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::process::Command;

use crawler_cli::demo::{DemoServer, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;

use crate::program::{command, folder, number, succeeds};

const USUAL_LIMIT: usize = 5;

/// Returns the answer for a URL, and its status.
async fn get(server: &DemoServer, url: &Url) -> (u16, String) {
    let address = (Ipv4Addr::LOCALHOST, server.site().seed().port().unwrap());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

#[tokio::test]
async fn every_reachable_page_answers_200_and_one_answers_503_first() {
    let server = serve().await.unwrap();
    let reachable = server.site().reachable(USUAL_LIMIT);
    assert_eq!(reachable.len(), 325, "as in the picture of the README");
    let mut unavailable = Vec::new();
    for url in &reachable {
        let parsed = Url::parse(url).unwrap();
        assert_eq!(parsed.as_str(), url, "not in canonical form");
        let (mut status, answer) = get(&server, &parsed).await;
        if status == 503 {
            assert!(answer.to_lowercase().contains("retry-after: 0\r\n"), "{answer}");
            unavailable.push(parsed.path().to_owned());
            (status, _) = get(&server, &parsed).await;
        }
        assert_eq!(status, 200, "{url}");
    }
    assert_eq!(unavailable, ["/lab/unavailable-once"]);
}

#[tokio::test]
async fn pages_that_a_polite_crawler_must_not_fetch_are_not_reachable() {
    let server = serve().await.unwrap();
    let site = server.site();
    let reachable = site.reachable(USUAL_LIMIT);
    for part in "/lab/hidden/ /calendar/ /private/ledger private.demo /drafts/ /old/ping robots".split(' ') {
        assert!(!reachable.iter().any(|url| url.contains(part)), "{part}");
    }
    assert!(reachable.iter().any(|url| url.ends_with("/private/open.html")));
    // The path trap is as deep as the limit, and the calendar never ends.
    assert_eq!(site.reachable(7).len(), reachable.len() + 2);
    assert!(site.reachable(usize::MAX).len() < 1_000);
    let last_week = site.seed().join("/calendar/4294967295").unwrap();
    assert_eq!(get(&server, &last_week).await.0, 200);
}

#[tokio::test]
async fn each_host_has_its_own_robots_txt_and_redirects_have_their_own_status() {
    let server = serve().await.unwrap();
    let seed = server.site().seed();
    for (host, path, status, text) in [
        ("www", "/robots.txt", 200, "Crawl-delay: 0.02\n"),
        ("docs", "/robots.txt", 404, ""),
        ("blog", "/robots.txt", 302, "/robots-blog.txt\r\n"),
        ("private", "/robots.txt", 200, "Disallow: /\n"),
        ("www", "/catalog", 301, "location: /catalog/\r\n"),
        ("www", "/old/two", 302, "location: /old/three\r\n"),
        ("www", "/old/three", 307, "location: /lab/found/after-redirects\r\n"),
        ("www", "/old/handbook", 308, "/moved-here\r\n"),
        ("www", "/old/ping", 302, "location: /old/pong\r\n"),
        ("www", "/sitemap.xml", 200, "/catalog/lamps/"),
    ] {
        let mut url = seed.join(path).unwrap();
        url.set_host(Some(&format!("{host}.demo.localhost"))).unwrap();
        let (found, answer) = get(&server, &url).await;
        assert_eq!(found, status, "{url}: {answer}");
        assert!(answer.contains(text), "{url}: {answer}");
    }
}

#[cfg(unix)]
#[test]
fn the_served_site_is_found_whole_from_its_seeds_and_ends_with_ctrl_c() {
    let folder = folder("demo-serve");
    let mut server = command("demo --serve 0").spawn().unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let seeds: Vec<_> = lines.take(4).map(Result::unwrap).collect();
    assert!(seeds[0].starts_with("http://www-demo.localhost:"), "{seeds:?}");
    let file = folder.file("seeds.txt", &seeds.join("\n"));
    let summary = succeeds(&format!("-q --delay 0 --seeds {file}")).stdout;
    assert_eq!(number(&summary, "pages"), 325);
    let id = server.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "INT", &id])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(server.wait().unwrap().code(), Some(0));
}
