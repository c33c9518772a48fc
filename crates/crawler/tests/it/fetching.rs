//! Single requests over a real socket, to a server that sends the bytes of the test.

use std::num::NonZeroUsize;
use std::time::Duration;

use crawler::fetch::{BodyExtent, HttpVersion};
use crawler::{
    CrawlConfig, CrawlOptions, FetchError, Fetcher, HttpFetcher, HttpOptions, Request, ResourceKind, Response,
    TruncationReason,
};
use frontier::Validators;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::Url;

/// Starts a server that answers every connection with the same bytes. Returns its port.
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

fn fetcher(seed: &str, http: &HttpOptions) -> HttpFetcher {
    let options = CrawlOptions {
        seeds: vec![seed.to_owned()],
        ..CrawlOptions::default()
    };
    HttpFetcher::new(&CrawlConfig::new(options).unwrap(), http).unwrap()
}

async fn fetch(fetcher: &HttpFetcher, url: &str) -> Result<Response, FetchError> {
    let url = Url::parse(url).unwrap();
    fetcher.fetch(Request::new(url, ResourceKind::Page)).await
}

/// Fetches from a server of these bytes, which is a seed.
async fn answer_of(answer: impl Into<Vec<u8>>, options: HttpOptions) -> Result<Response, FetchError> {
    let url = format!("http://127.0.0.1:{}/", server(answer).await);
    fetch(&fetcher(&url, &options), &url).await
}

#[tokio::test]
async fn a_redirect_in_raw_utf_8_has_the_same_target_as_in_browsers() {
    let head = "HTTP/1.1 301 Moved\r\nLocation: /caf\u{e9}/\u{65e5}?q=\u{f6}\r\nContent-Length: 0\r\n\r\n";
    let answer = answer_of(head, HttpOptions::default()).await.unwrap();
    let base = Url::parse("http://a.example/").unwrap();
    let target = base.join(&answer.location.unwrap()).unwrap();
    assert_eq!(target.as_str(), "http://a.example/caf%C3%A9/%E6%97%A5?q=%C3%B6");
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_not_followed() {
    let next = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let head = format!("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{next}/x\r\nContent-Length: 0\r\n\r\n");
    let answer = answer_of(head, HttpOptions::default()).await.unwrap();
    assert_eq!(
        (answer.status, answer.location),
        (302, Some(format!("http://127.0.0.1:{next}/x")))
    );
}

#[tokio::test]
async fn a_host_that_never_completes_a_connection_counts_as_down() {
    // It accepts the connection and never answers the TLS handshake.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let seed = format!("https://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let options = HttpOptions {
        connect_timeout: Duration::from_millis(100),
        ..HttpOptions::default()
    };
    let error = fetch(&fetcher(&seed, &options), &seed).await.unwrap_err();
    assert!(matches!(error, FetchError::Connect(_)), "{error:?}");
}

#[tokio::test]
async fn a_slow_body_is_truncated_at_the_timeout() {
    let options = || HttpOptions {
        timeout: Duration::from_millis(200),
        ..HttpOptions::default()
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
    let answer = fetch(&fetcher(&seed, &options()), &seed).await.unwrap();
    assert_eq!(
        (answer.status, answer.extent, answer.truncation),
        (200, BodyExtent::Truncated, Some(TruncationReason::Time))
    );
    assert!(!answer.body.is_empty() && answer.body.iter().all(|byte| *byte == b'<'));
}

#[tokio::test]
async fn an_exchange_has_the_bytes_of_the_connection() {
    let page = b"<p>all of it</p>".repeat(50);
    let mut encoded = Vec::with_capacity(page.len());
    let mut gzip = flate2::Compress::new_gzip(flate2::Compression::best(), 15);
    gzip.compress_vec(&page, &mut encoded, flate2::FlushCompress::Finish)
        .unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (head, tail) = encoded.split_at(10);
    let chunked = [
        b"HTTP/1.1 200 Fine by me\r\nX-Two: 1\r\nContent-Type: text/html\r\nx-two: \xe9\r\nContent-Encoding: gzip\r\n\
          Transfer-Encoding: chunked\r\n\r\nA\r\n"
            .as_slice(),
        head,
        format!("\r\n{:x}\r\n", tail.len()).as_bytes(),
        tail,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        stream.write_all(&chunked).await.unwrap();
        request.truncate(length);
        request
    });
    let url = format!("http://{address}/a%20b?c=d#e");
    let options = HttpOptions {
        keep_exchanges: true,
        ..HttpOptions::default()
    };
    let request = Request {
        validators: Some(Validators {
            etag: Some("\"v1\"".to_owned()),
            last_modified: Some("Sun, 06 Nov 1994 08:49:37 GMT".to_owned()),
        }),
        ..Request::new(Url::parse(&url).unwrap(), ResourceKind::Page)
    };
    let answer = fetcher(&url, &options).fetch(request).await.unwrap();
    let sent = serving.await.unwrap();
    assert_eq!(answer.body, page);
    let exchange = answer.exchange.unwrap();
    assert_eq!(exchange.encoded_body.as_deref(), Some(encoded.as_slice()));
    let mut said = format!("GET {} {:?}\r\n", exchange.target, exchange.version).into_bytes();
    for (name, value) in &exchange.request_headers {
        said.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    said.extend(b"\r\n");
    assert_eq!(String::from_utf8(said).unwrap(), String::from_utf8(sent).unwrap());
    assert_eq!(
        (exchange.status, exchange.reason.as_slice()),
        (200, b"OK".as_slice()),
        "the HTTP library does not tell what was said"
    );
    let expected: [(&str, &[u8]); 5] = [
        ("x-two", b"1"),
        ("x-two", b"\xe9"),
        ("content-type", b"text/html"),
        ("content-encoding", b"gzip"),
        ("transfer-encoding", b"chunked"),
    ];
    let received: Vec<_> = exchange
        .response_headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_slice()))
        .collect();
    assert_eq!(received, expected);
    assert_eq!(exchange.address, Some(address));
}

#[tokio::test]
async fn a_body_without_codings_is_kept_once() {
    let options = HttpOptions {
        keep_exchanges: true,
        ..HttpOptions::default()
    };
    let answer = answer_of("HTTP/1.0 404 \r\nContent-Type: text/html\r\n\r\n<p>", options)
        .await
        .unwrap();
    assert_eq!(answer.body, b"<p>");
    let exchange = answer.exchange.unwrap();
    assert_eq!((exchange.encoded_body, exchange.version), (None, HttpVersion::HTTP_10));
    let answer = answer_of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", HttpOptions::default())
        .await
        .unwrap();
    assert_eq!(answer.exchange, None, "kept only on request");
}

#[tokio::test]
async fn a_body_is_truncated_at_the_limit_after_decompression() {
    // A frame of Zstandard (RFC 8878) with 100 blocks of 4 bytes, each of which is 128 KiB of the letter a.
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x38];
    for block in 0..100_u32 {
        let header = (131_072 << 3) | (1 << 1) | u32::from(block == 99);
        bomb.extend_from_slice(&header.to_le_bytes()[..3]);
        bomb.push(b'a');
    }
    for (cap, read, extent) in [
        (300_000, 300_000, BodyExtent::Truncated),
        (20_000_000, 13_107_200, BodyExtent::Complete),
    ] {
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: zstd\r\nContent-Length: {}\r\n\r\n",
            bomb.len()
        )
        .into_bytes();
        answer.extend_from_slice(&bomb);
        let options = HttpOptions {
            max_body_bytes: cap,
            ..HttpOptions::default()
        };
        let answer = answer_of(answer, options).await.unwrap();
        assert_eq!((answer.body.len(), answer.extent), (read, extent));
        assert_eq!(
            answer.truncation,
            (extent == BodyExtent::Truncated).then_some(TruncationReason::Size)
        );
    }
}

#[tokio::test]
async fn other_types_than_html_are_skipped_unless_they_are_declared_small() {
    let page = |kind: &str, bytes: usize| {
        let body = "x".repeat(bytes);
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {bytes}\r\n\r\n{body}")
    };
    let small = 256 * 1024;
    for (kind, bytes, extent) in [
        ("image/png", small, BodyExtent::Complete),
        ("image/png", small + 1, BodyExtent::Skipped),
        ("text/html", small + 1, BodyExtent::Complete),
    ] {
        let answer = answer_of(page(kind, bytes), HttpOptions::default()).await.unwrap();
        assert_eq!(answer.extent, extent, "{kind}, {bytes} bytes");
    }
    let unknown = "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nxxx";
    let answer = answer_of(unknown, HttpOptions::default()).await.unwrap();
    assert_eq!(answer.extent, BodyExtent::Skipped, "of unknown size");
}

#[tokio::test]
async fn a_seed_at_a_private_address_allows_only_its_own_origin() {
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (seed, other) = (server(page).await, server(page).await);
    let fetcher = fetcher(&format!("http://localhost:{seed}/"), &HttpOptions::default());
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
async fn private_addresses_are_connected_to_with_the_option() {
    let port = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let options = HttpOptions {
        allow_private_addresses: true,
        ..HttpOptions::default()
    };
    let fetcher = fetcher("https://example.com/", &options);
    assert_eq!(
        fetch(&fetcher, &format!("http://127.0.0.1:{port}/"))
            .await
            .unwrap()
            .status,
        200
    );
}

#[tokio::test]
async fn an_answer_with_more_headers_than_can_be_held_is_a_failure_under_any_limit() {
    let lines: String = (0..30_000).map(|number| format!("{number:x}:\r\n")).collect();
    let many = server(format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n")).await;
    let few = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    for max_headers in [NonZeroUsize::MAX, NonZeroUsize::MIN.saturating_add(50_000)] {
        let http = HttpOptions {
            max_headers,
            ..HttpOptions::default()
        };
        let fetch = async |port: u16| {
            let seed = format!("http://127.0.0.1:{port}/");
            let request = Request::new(Url::parse(&seed).unwrap(), ResourceKind::Page);
            fetcher(&seed, &http).fetch(request).await
        };
        assert_eq!(fetch(few).await.unwrap().status, 200);
        let error = fetch(many).await.unwrap_err().to_string();
        assert!(!error.contains("panicked"), "{error}");
    }
}

#[tokio::test]
async fn a_head_is_read_as_far_as_it_makes_sense_and_else_the_error_names_the_header() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 2",
        "HTTP/1.1 200 OK\r\nContent-Length : 2",
        "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0",
        "HTTP/1.1 200\r\nContent-Length: 2",
        "HTTP/1.1 200 OK\nContent-Length: 2",
        "HTTP/1.1 200 OK\r\nno header\r\nContent-Length: 2",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity",
    ] {
        let body = if head.contains("\r\n\r\n") { "" } else { "ok" };
        let answer = answer_of(format!("{head}\r\n\r\n{body}"), HttpOptions::default()).await;
        assert_eq!(answer.map(|answer| answer.body).ok(), Some(b"ok".to_vec()), "{head}");
    }
    for (head, named) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: ", "Content-Length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1", "Content-Length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: two", "Content-Length"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3",
            "Content-Length",
        ),
        ("HTTP/1.1  200 OK\r\nContent-Length: 2", "status"),
        ("HTTP/1.1 OK\r\nContent-Length: 2", "status"),
        ("ICY 200 OK\r\nContent-Length: 2", "first line"),
        ("http/1.1 200 OK\r\nContent-Length: 2", "first line"),
        ("HTTP/3.1 200 OK\r\nContent-Length: 2", "first line"),
        ("SSH-2.0-OpenSSH_9.6", "first line"),
        ("<p>no head", "first line"),
    ] {
        let error = answer_of(format!("{head}\r\n\r\nok"), HttpOptions::default())
            .await
            .unwrap_err();
        assert!(matches!(error, FetchError::Malformed(_)), "{head}: {error:?}");
        assert!(error.to_string().contains(named), "{head}: {error}");
    }
    for (head, location) in [("Location:", None), ("Location:  ", None), ("Location: /x", Some("/x"))] {
        let head = format!("HTTP/1.1 302 Found\r\nContent-Length: 2\r\n{head}\r\n\r\nok");
        let answer = answer_of(head, HttpOptions::default()).await.unwrap();
        assert_eq!(answer.location.as_deref(), location);
    }
}
