//! One request over a real socket, against a server that says just what the test wants.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use std::time::Duration;

use crawler::fetch::Extent;
use crawler::{Answer, Ask, CrawlConfig, CrawlOptions, FetchError, Fetcher, HttpFetcher, Want};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::Url;

/// Answers every connection with the same bytes; returns its port.
async fn server(answer: impl Into<Vec<u8>>) -> u16 {
    let answer = answer.into();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

fn fetcher(seed: &str, options: CrawlOptions) -> HttpFetcher {
    let options = CrawlOptions {
        seeds: vec![seed.to_owned()],
        ..options
    };
    HttpFetcher::new(&CrawlConfig::new(options).unwrap()).unwrap()
}

async fn fetch(fetcher: &HttpFetcher, url: &str) -> Result<Answer, FetchError> {
    let url = Url::parse(url).unwrap();
    fetcher.fetch(Ask { url, want: Want::Page }).await
}

/// Asks the server as a crawl would that has it for a seed.
async fn answer_of(answer: impl Into<Vec<u8>>, options: CrawlOptions) -> Result<Answer, FetchError> {
    let url = format!("http://127.0.0.1:{}/", server(answer).await);
    fetch(&fetcher(&url, options), &url).await
}

#[tokio::test]
async fn a_redirect_that_is_written_in_bare_utf_8_leads_where_browsers_go() {
    let head = "HTTP/1.1 301 Moved\r\nLocation: /caf\u{e9}/\u{65e5}?q=\u{f6}\r\nContent-Length: 0\r\n\r\n";
    let answer = answer_of(head, CrawlOptions::default()).await.unwrap();
    let base = Url::parse("http://a.example/").unwrap();
    let target = base.join(&answer.location.unwrap()).unwrap();
    assert_eq!(target.as_str(), "http://a.example/caf%C3%A9/%E6%97%A5?q=%C3%B6");
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_not_followed() {
    let next = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let head = format!("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{next}/x\r\nContent-Length: 0\r\n\r\n");
    let answer = answer_of(head, CrawlOptions::default()).await.unwrap();
    assert_eq!(
        (answer.status, answer.location),
        (302, Some(format!("http://127.0.0.1:{next}/x")))
    );
}

#[tokio::test]
async fn a_host_that_lets_no_connection_come_about_counts_as_down() {
    // It takes the connection and never says a word of TLS.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let seed = format!("https://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let options = CrawlOptions {
        connect_timeout: Duration::from_millis(100),
        ..CrawlOptions::default()
    };
    let error = fetch(&fetcher(&seed, options), &seed).await.unwrap_err();
    assert!(matches!(error, FetchError::Connect(_)), "{error:?}");
}

#[tokio::test]
async fn a_body_that_comes_drop_by_drop_is_left_when_the_time_is_up() {
    let options = || CrawlOptions {
        timeout: Duration::from_millis(200),
        ..CrawlOptions::default()
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
            .await;
        let mut drops = tokio::time::interval(Duration::from_millis(20));
        while stream.write_all(b"<").await.is_ok() {
            drops.tick().await;
        }
    });
    let seed = format!("http://127.0.0.1:{port}/");
    let error = fetch(&fetcher(&seed, options()), &seed).await.unwrap_err();
    assert!(matches!(error, FetchError::Timeout), "{error:?}");
}

#[tokio::test]
async fn a_body_is_cut_at_the_cap_after_decompression() {
    // A frame of Zstandard (RFC 8878) that says 100 times in 4 bytes: 128 KiB of the letter a.
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x38];
    for block in 0..100_u32 {
        let header = (131_072 << 3) | (1 << 1) | u32::from(block == 99);
        bomb.extend_from_slice(&header.to_le_bytes()[..3]);
        bomb.push(b'a');
    }
    for (cap, read, extent) in [
        (300_000, 300_000, Extent::Truncated),
        (20_000_000, 13_107_200, Extent::Complete),
    ] {
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: zstd\r\nContent-Length: {}\r\n\r\n",
            bomb.len()
        )
        .into_bytes();
        answer.extend_from_slice(&bomb);
        let options = CrawlOptions {
            max_body_bytes: cap,
            ..CrawlOptions::default()
        };
        let answer = answer_of(answer, options).await.unwrap();
        assert_eq!((answer.body.len(), answer.extent), (read, extent));
    }
}

#[tokio::test]
async fn what_is_not_html_is_skipped_unless_it_is_announced_as_small() {
    let page = |kind: &str, bytes: usize| {
        let body = "x".repeat(bytes);
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {bytes}\r\n\r\n{body}")
    };
    let small = 256 * 1024;
    for (kind, bytes, extent) in [
        ("image/png", small, Extent::Complete),
        ("image/png", small + 1, Extent::Skipped),
        ("text/html", small + 1, Extent::Complete),
    ] {
        let answer = answer_of(page(kind, bytes), CrawlOptions::default()).await.unwrap();
        assert_eq!(answer.extent, extent, "{kind}, {bytes} bytes");
    }
    let unknown = "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nxxx";
    let answer = answer_of(unknown, CrawlOptions::default()).await.unwrap();
    assert_eq!(answer.extent, Extent::Skipped, "of unknown size");
}

#[tokio::test]
async fn a_seed_that_points_inside_opens_its_own_origin_and_nothing_else() {
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (seed, other) = (server(page).await, server(page).await);
    let fetcher = fetcher(&format!("http://localhost:{seed}/"), CrawlOptions::default());
    let dial = |url: String| {
        let fetcher = &fetcher;
        async move { fetch(fetcher, &url).await }
    };
    assert_eq!(dial(format!("http://localhost:{seed}/any")).await.unwrap().status, 200);
    for closed in [
        format!("http://127.0.0.1:{seed}/"),
        format!("http://[::1]:{seed}/"),
        format!("http://[::ffff:127.0.0.1]:{seed}/"),
        format!("http://localhost:{other}/"),
        format!("http://localhost.:{seed}/"),
        format!("http://x.localhost:{seed}/"),
        format!("https://localhost:{seed}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ] {
        let error = dial(closed.clone()).await.unwrap_err();
        assert!(matches!(error, FetchError::AddressForbidden), "{closed}: {error:?}");
    }
}

#[tokio::test]
async fn private_addresses_are_dialled_when_the_user_says_so() {
    let port = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let options = CrawlOptions {
        allow_private_addresses: true,
        ..CrawlOptions::default()
    };
    let fetcher = fetcher("https://example.com/", options);
    assert_eq!(
        fetch(&fetcher, &format!("http://127.0.0.1:{port}/"))
            .await
            .unwrap()
            .status,
        200
    );
}
