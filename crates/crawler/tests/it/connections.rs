//! Connections that are kept open: how many there are, and who finds them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::hostile::server::crawl_over_http;
use crate::hostile::tls::self_signed;
use crawler::{CrawlConfig, CrawlOptions, FetchError, Fetcher, HttpFetcher, HttpOptions, Request, ResourceKind};
use frontier::{FrontierConfig, PolitenessConfig};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

const HOSTS: usize = 200;

/// A request: its connection, its host, and its path.
type Seen = Arc<Mutex<Vec<(usize, String, String)>>>;

/// The server delays every third robots.txt until this number of later requests has arrived.
const HELD_BACK: usize = 6;

/// Answers requests until the client closes the connection.
async fn serve(mut stream: TcpStream, number: usize, seen: Seen) {
    let (reading, mut writing) = stream.split();
    let mut lines = BufReader::new(reading).lines();
    let (mut path, mut host) = (String::new(), String::new());
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(rest) = line.strip_prefix("GET ") {
            path = rest.split(' ').next().unwrap_or_default().to_owned();
        } else if let Some(name) = line.to_ascii_lowercase().strip_prefix("host: ") {
            name.clone_into(&mut host);
        } else if line.is_empty() {
            let is_robots = path == "/robots.txt";
            let count = || {
                seen.lock()
                    .unwrap()
                    .iter()
                    .filter(|(_, _, path)| path == "/robots.txt")
                    .count()
            };
            seen.lock().unwrap().push((number, host.clone(), path.clone()));
            let until = (count() + HELD_BACK).min(HOSTS);
            while is_robots && number.is_multiple_of(3) && count() < until {
                tokio::task::yield_now().await;
            }
            let (kind, body) = if is_robots {
                ("text/plain", "")
            } else {
                ("text/html", "<p>a page")
            };
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            if writing.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

#[tokio::test]
async fn the_first_page_of_each_of_many_hosts_comes_over_the_connection_of_its_robots_txt() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Seen::default();
    let seen_by_all = Arc::clone(&seen);
    tokio::spawn(async move {
        for number in 0.. {
            let Ok((stream, _)) = listener.accept().await else {
                return;
            };
            tokio::spawn(serve(stream, number, Arc::clone(&seen_by_all)));
        }
    });
    let options = CrawlOptions {
        seeds: (0..HOSTS).map(|n| format!("http://h{n}.localhost:{port}/")).collect(),
        concurrency: NonZeroUsize::new(8).unwrap(),
        frontier: FrontierConfig {
            politeness: PolitenessConfig {
                delay: Duration::ZERO,
                ..PolitenessConfig::default()
            },
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    };
    let http = HttpOptions {
        // For 32 origins at once, so that the pool is replaced again and again.
        max_idle_connections: NonZeroUsize::new(64).unwrap(),
        ..HttpOptions::default()
    };
    let summary = crawl_over_http(options, http).await;
    assert_eq!(summary.report.pages.done, HOSTS as u64);

    let mut by_host: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
    for (connection, host, path) in seen.lock().unwrap().drain(..) {
        by_host.entry(host).or_default().push((connection, path));
    }
    assert_eq!(by_host.len(), HOSTS);
    for (host, requests) in by_host {
        let paths: Vec<&str> = requests.iter().map(|(_, path)| &**path).collect();
        assert_eq!(paths, ["/robots.txt", "/"], "{host}");
        assert_eq!(requests[0].0, requests[1].0, "{host} had two connections");
    }
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Reset,
    Close,
    /// With what is no answer, such as the rest of an earlier one that was longer than it said.
    Surplus,
}

/// Answers `answered` requests on a connection, and ends it at the next one. Counts all.
async fn serve_some(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answered: usize,
    end: End,
    requests: &AtomicUsize,
) {
    for number in 0.. {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else { return };
            head.push(byte);
        }
        requests.fetch_add(1, Ordering::Relaxed);
        if number == answered {
            if end == End::Surplus {
                let _ = stream.write_all(b"the rest\r\n\r\n").await;
            }
            if end != End::Reset {
                let _ = stream.shutdown().await;
            }
            return;
        }
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .await;
        let _ = stream.flush().await;
    }
}

/// Starts a server that ends each connection after a number of answers: the first after `answered[0]`, and so on. Returns a URL, and the number
/// of requests.
async fn start_ending(is_tls: bool, end: End, answered: &'static [usize]) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let scheme = if is_tls { "https" } else { "http" };
    let url = format!("{scheme}://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    tokio::spawn(async move {
        for answered in answered.iter().copied().chain(std::iter::repeat(0)) {
            let (stream, _) = listener.accept().await.unwrap();
            if end == End::Reset {
                // A reset when it is dropped.
                stream.set_zero_linger().unwrap();
            }
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                if is_tls {
                    serve_some(self_signed().accept(stream).await.unwrap(), answered, end, &counted).await;
                } else {
                    serve_some(stream, answered, end, &counted).await;
                }
            });
        }
    });
    (url, requests)
}

#[tokio::test]
async fn a_request_on_a_used_connection_that_ends_without_an_answer_is_repeated_once_at_once() {
    let ends = [End::Reset, End::Close, End::Surplus];
    for (is_tls, end) in ends.into_iter().flat_map(|end| [(false, end), (true, end)]) {
        // How the pages fare, one letter each, and how many requests were made.
        for (answered, expected, asked) in [
            (&[1, 1, 1, 1][..], "++++", 6),
            (&[2, 1], "+++-", 5),
            (&[3, 0, 1], "+++-", 5),
            (&[1, 0, 0, 1], "+--+", 5),
            (&[0, 0, 1], "--+-", 5),
            // Losses without end: after three, no connection is used twice.
            (&[1; 10], "++++++++++", 13),
        ] {
            let (url, requests) = start_ending(is_tls, end, answered).await;
            let options = CrawlOptions {
                seeds: vec![url.clone()],
                ..CrawlOptions::default()
            };
            let http = HttpOptions {
                accept_any_certificate: true,
                ..HttpOptions::default()
            };
            let fetcher = HttpFetcher::new(&CrawlConfig::new(options).unwrap(), &http).unwrap();
            let mut fared = String::new();
            for _ in 0..expected.len() {
                let request = Request::new(url.parse().unwrap(), ResourceKind::Page);
                fared.push(match fetcher.fetch(request).await {
                    Ok(_) => '+',
                    Err(FetchError::Broken(_)) if end != End::Surplus => '-',
                    Err(FetchError::Malformed(_)) if end == End::Surplus => '-',
                    Err(error) => panic!("{error:?}"),
                });
            }
            let got = (&*fared, requests.load(Ordering::Relaxed));
            assert_eq!(got, (expected, asked), "TLS {is_tls}, {end:?}, {answered:?}");
        }
    }
}
