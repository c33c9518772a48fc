//! What a server sends before the head of its answer: some interim heads do no harm, a flood of anything ends at the timeout, and where HTTP/2
//! is offered but does not work, HTTP/1.1 does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crawler::{
    CrawlConfig, CrawlOptions, FetchError, Fetcher, HttpFetcher, HttpOptions, Request, ResourceKind, Response,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// The bytes of interim heads before a page; the page of HTTP/1 has more.
const MANY: usize = 700 << 10;
/// The timeout of a request that is never answered.
const SHORT: Duration = Duration::from_millis(500);

/// Types of frames and their flags (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const RST_STREAM: u8 = 3;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const UNKNOWN: u8 = 0xBA;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The status `103`, and `200` with the type of a page (RFC 7541).
const EARLY_HINTS: &[u8] = &[0x08, 3, b'1', b'0', b'3'];
const OK: &[u8] = b"\x88\x0F\x10\x09text/html";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// What is sent to each request: once, then again and again.
#[derive(Clone, Copy)]
struct Script {
    once: fn(stream: u32) -> Vec<u8>,
    for_ever: fn(stream: u32) -> Vec<u8>,
}

fn nothing(_: u32) -> Vec<u8> {
    Vec::new()
}

/// A server that counts its connections, and those over HTTP/2 among them.
struct Server {
    url: String,
    connections: Arc<AtomicUsize>,
    over_h2: Arc<AtomicUsize>,
}

impl Server {
    async fn start(is_h2: bool, script: Script) -> Self {
        let protocols = if is_h2 { &["h2"][..] } else { &[] };
        Self::start_with(protocols, script, script).await
    }

    /// These protocols are offered over TLS; without any, it is plain http.
    async fn start_with(protocols: &[&str], h1: Script, h2: Script) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let certificate = CertificateDer::from(include_bytes!("../data/tls/self_signed.der").as_slice());
        let key = PrivatePkcs8KeyDer::from(include_bytes!("../data/tls/self_signed_key.der").as_slice());
        let mut tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], PrivateKeyDer::from(key))
            .unwrap();
        tls.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let is_tls = !protocols.is_empty();
        let scheme = if is_tls { "https" } else { "http" };
        let server = Self {
            url: format!("{scheme}://127.0.0.1:{}/", listener.local_addr().unwrap().port()),
            connections: Arc::default(),
            over_h2: Arc::default(),
        };
        let (connections, over_h2) = (Arc::clone(&server.connections), Arc::clone(&server.over_h2));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                let (acceptor, over_h2) = (acceptor.clone(), Arc::clone(&over_h2));
                // Whoever hangs up on such a server is right.
                tokio::spawn(async move {
                    if !is_tls {
                        return serve_h1(stream, h1).await;
                    }
                    let stream = acceptor.accept(stream).await?;
                    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                        over_h2.fetch_add(1, Ordering::Relaxed);
                        return serve_h2(stream, h2).await;
                    }
                    serve_h1(stream, h1).await
                });
            }
        });
        server
    }

    async fn fetch(&self, fetcher: &HttpFetcher) -> Result<Response, FetchError> {
        fetcher
            .fetch(Request::new(self.url.parse().unwrap(), ResourceKind::Page))
            .await
    }

    fn fetcher(&self, timeout: Duration) -> HttpFetcher {
        let options = CrawlOptions {
            seeds: vec![self.url.clone()],
            ..CrawlOptions::default()
        };
        let http = HttpOptions {
            accept_any_certificate: true,
            timeout,
            ..HttpOptions::default()
        };
        HttpFetcher::new(&CrawlConfig::new(options).unwrap(), &http).unwrap()
    }
}

async fn answer(stream: &mut (impl AsyncWrite + Unpin), id: u32, script: Script) -> std::io::Result<()> {
    stream.write_all(&(script.once)(id)).await?;
    let again = (script.for_ever)(id).repeat(100);
    while !again.is_empty() {
        stream.write_all(&again).await?;
    }
    stream.flush().await
}

async fn serve_h1(mut stream: impl AsyncRead + AsyncWrite + Unpin, script: Script) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        answer(&mut stream, 1, script).await?;
    }
}

async fn serve_h2(mut stream: impl AsyncRead + AsyncWrite + Unpin, script: Script) -> std::io::Result<()> {
    stream.read_exact(&mut [0; 24]).await?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header).await?;
        let [a, b, c, kind, flags, s, t, u, v] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        stream.read_exact(&mut payload).await?;
        // Only then do the windows of the client hold.
        if kind == SETTINGS && flags & ACK == 0 {
            stream.write_all(&frame(SETTINGS, ACK, 0, &[])).await?;
        }
        if kind == HEADERS {
            let id = u32::from_be_bytes([s, t, u, v]);
            answer(&mut stream, id, script).await?;
            if (script.once)(id).get(3) == Some(&GOAWAY) {
                return stream.shutdown().await;
            }
        }
    }
}

/// Fetches from a server that never comes to the point.
async fn assert_times_out(does: &str, is_h2: bool, for_ever: fn(u32) -> Vec<u8>) {
    let once = nothing;
    let server = Server::start(is_h2, Script { once, for_ever }).await;
    let begun = Instant::now();
    let error = server.fetch(&server.fetcher(SHORT)).await.unwrap_err();
    assert!(matches!(error, FetchError::Timeout), "{does}: {error:?}");
    assert!(begun.elapsed() < 10 * SHORT, "{does}: {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_interim_heads_end_at_the_timeout_over_http_1() {
    assert_times_out("100", false, |_| b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()).await;
    let hint = |_| b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n".to_vec();
    assert_times_out("103", false, hint).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_frames_before_a_head_end_at_the_timeout_over_http_2() {
    assert_times_out("103", true, |stream| frame(HEADERS, END_HEADERS, stream, EARLY_HINTS)).await;
    assert_times_out("pings", true, |_| frame(PING, 0, 0, &[0; 8])).await;
    assert_times_out("settings", true, |_| frame(SETTINGS, 0, 0, &[])).await;
    let priority = |stream| frame(PRIORITY, 0, stream + 2, &[0, 0, 0, 0, 1]);
    assert_times_out("priorities", true, priority).await;
    assert_times_out("unknown", true, |stream| frame(UNKNOWN, 0, stream, &[0; 64])).await;
}

/// Many hints, and a long page.
fn hints_and_a_long_page_by_http_1(_: u32) -> Vec<u8> {
    let hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n";
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n",
        4 * MANY
    );
    [hint.repeat(MANY / hint.len()), head.into_bytes(), vec![b'a'; 4 * MANY]].concat()
}

/// The same; the page is short, for this server does not wait for windows.
fn hints_and_a_page_by_http_2(stream: u32) -> Vec<u8> {
    let hint = frame(HEADERS, END_HEADERS, stream, EARLY_HINTS);
    [
        hint.repeat(MANY / hint.len()),
        frame(HEADERS, END_HEADERS, stream, OK),
        frame(DATA, 0, stream, &[b'a'; 16_384]).repeat(30),
        frame(DATA, END_STREAM, stream, &[b'a'; 16_384]),
    ]
    .concat()
}

#[tokio::test]
async fn early_hints_before_pages_do_no_harm_however_many_pages_a_connection_serves() {
    for (is_h2, once, bytes) in [
        (false, hints_and_a_long_page_by_http_1 as fn(u32) -> Vec<u8>, 4 * MANY),
        (true, hints_and_a_page_by_http_2, 31 * 16_384),
    ] {
        let for_ever = nothing;
        let server = Server::start(is_h2, Script { once, for_ever }).await;
        let fetcher = server.fetcher(Duration::from_secs(60));
        for _ in 0..4 {
            let page = server.fetch(&fetcher).await.unwrap();
            assert_eq!((page.status, page.body.len(), page.truncation), (200, bytes, None));
        }
        assert_eq!(server.connections.load(Ordering::Relaxed), 1, "HTTP/2: {is_h2}");
    }
}

/// A page over HTTP/1.1, or over a connection that was meant to be HTTP/2.
fn page_by_http_1(_: u32) -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok".to_vec()
}

fn reset(reason: u8, stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &[0, 0, 0, reason])
}

fn go_away(reason: u8, last: u8) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[0, 0, 0, last, 0, 0, 0, reason])
}

/// A head with one header more.
fn head_with(name: &str, value: &str, stream: u32) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let block = [OK, &[0], &text(name), &text(value)].concat();
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)
}

#[tokio::test]
async fn a_server_that_offers_http_2_without_meaning_it_is_asked_over_http_1_from_then_on() {
    type Answer = fn(u32) -> Vec<u8>;
    let scripts: [(&str, Answer); 8] = [
        ("RST_STREAM", |stream| reset(0xd, stream)),
        ("GOAWAY", |_| go_away(0xd, 0)),
        ("GOAWAY after the request", |_| go_away(0xd, 1)),
        ("an insecure connection", |stream| reset(0xc, stream)),
        ("upgrade", |stream| head_with("connection", "upgrade", stream)),
        ("keep-alive", |stream| head_with("keep-alive", "timeout=5", stream)),
        ("a name in upper case", |stream| head_with("X-Upper", "1", stream)),
        ("HTTP/1.1", page_by_http_1),
    ];
    let for_ever = nothing;
    let once = page_by_http_1;
    for (does, bad) in scripts {
        let server = Server::start_with(
            &["h2", "http/1.1"],
            Script { once, for_ever },
            Script { once: bad, for_ever },
        )
        .await;
        let fetcher = server.fetcher(Duration::from_secs(5));
        for page in 1..4 {
            let answer = server.fetch(&fetcher).await;
            let body = answer
                .map(|answer| answer.body)
                .map_err(|error| format!("{does}, page {page}: {error}"));
            assert_eq!(body, Ok(b"ok".to_vec()));
        }
        let counted = [&server.over_h2, &server.connections].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(counted, [1, 2], "{does}");
    }
    // An overloaded server is not asked again at once, nor is one that speaks HTTP/2 alone taken for one that is away.
    for (reason, protocols) in [
        (0xb, &["h2", "http/1.1"][..]),
        (0x2, &["h2", "http/1.1"]),
        (0xd, &["h2"]),
    ] {
        let bad: fn(u32) -> Vec<u8> = match reason {
            0xb => |stream| reset(0xb, stream),
            0x2 => |stream| reset(0x2, stream),
            _ => |stream| reset(0xd, stream),
        };
        let server = Server::start_with(protocols, Script { once, for_ever }, Script { once: bad, for_ever }).await;
        let error = server
            .fetch(&server.fetcher(Duration::from_secs(60)))
            .await
            .unwrap_err();
        assert!(matches!(error, FetchError::Broken(_)), "{reason}: {error:?}");
        assert_eq!(server.over_h2.load(Ordering::Relaxed), 1);
    }
    // Nor is one that refuses streams asked at once over a new connection.
    let refuses = |stream| match stream {
        1 => head_with("x", "1", stream),
        _ => reset(0x7, stream),
    };
    let (h1, h2) = (
        Script { once, for_ever },
        Script {
            once: refuses,
            for_ever,
        },
    );
    let server = Server::start_with(&["h2"], h1, h2).await;
    let fetcher = server.fetcher(Duration::from_secs(60));
    assert!(server.fetch(&fetcher).await.is_ok());
    let error = server.fetch(&fetcher).await.unwrap_err();
    assert!(matches!(error, FetchError::Broken(_)), "{error:?}");
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
}
