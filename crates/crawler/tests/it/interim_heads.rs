//! What a server sends before the head of its answer: some interim heads do no harm, a flood of anything ends at the timeout, and where HTTP/2
//! is offered but does not work, HTTP/1.1 does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crawler::{
    CrawlConfig, CrawlOptions, FetchError, Fetcher, HttpFetcher, HttpOptions, Request, ResourceKind, Response,
};
use frontier::FailureKind;
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
    then: Then,
}

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Serve,
    Close,
    /// Without the alert that announces the end of TLS.
    Drop,
    Reset,
}

fn once(once: fn(u32) -> Vec<u8>, then: Then) -> Script {
    let for_ever = nothing;
    Script { once, for_ever, then }
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
                if h2.then == Then::Reset {
                    // A reset when it is dropped.
                    stream.set_zero_linger().unwrap();
                }
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
        if script.then != Then::Serve {
            return Ok(());
        }
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
            match script.then {
                Then::Serve => {}
                Then::Close => return stream.shutdown().await,
                Then::Drop | Then::Reset => return Ok(()),
            }
        }
    }
}

/// Fetches from a server that never comes to the point.
async fn assert_times_out(does: &str, is_h2: bool, for_ever: fn(u32) -> Vec<u8>) {
    let script = Script {
        for_ever,
        ..once(nothing, Then::Serve)
    };
    let server = Server::start(is_h2, script).await;
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
    for (is_h2, answer, bytes) in [
        (false, hints_and_a_long_page_by_http_1 as fn(u32) -> Vec<u8>, 4 * MANY),
        (true, hints_and_a_page_by_http_2, 31 * 16_384),
    ] {
        let server = Server::start(is_h2, once(answer, Then::Serve)).await;
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

/// A head, some of its body, and a reset.
fn cut_by(reason: u8, body: &[u8], stream: u32) -> Vec<u8> {
    let head = frame(HEADERS, END_HEADERS, stream, OK);
    [head, frame(DATA, 0, stream, body), reset(reason, stream)].concat()
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
    let scripts: [(&str, Answer, Then); 15] = [
        ("RST_STREAM", |stream| reset(0xd, stream), Then::Serve),
        (
            "RST_STREAM after a head",
            |stream| cut_by(0xd, b"", stream),
            Then::Serve,
        ),
        ("RST_STREAM in a body", |stream| cut_by(0xd, b"o", stream), Then::Serve),
        ("another in a body", |stream| cut_by(0x1, b"o", stream), Then::Serve),
        ("GOAWAY", |_| go_away(0xd, 0), Then::Close),
        ("GOAWAY after the request", |_| go_away(0xd, 1), Then::Close),
        ("the same, and no more", |_| go_away(0xd, 1), Then::Drop),
        ("the same, and a reset", |_| go_away(0xd, 1), Then::Reset),
        ("nothing", nothing, Then::Drop),
        ("a reset", nothing, Then::Reset),
        ("an insecure connection", |stream| reset(0xc, stream), Then::Serve),
        (
            "upgrade",
            |stream| head_with("connection", "upgrade", stream),
            Then::Serve,
        ),
        (
            "keep-alive",
            |stream| head_with("keep-alive", "timeout=5", stream),
            Then::Serve,
        ),
        (
            "a name in upper case",
            |stream| head_with("X-Upper", "1", stream),
            Then::Serve,
        ),
        ("HTTP/1.1", page_by_http_1, Then::Serve),
    ];
    let h1 = once(page_by_http_1, Then::Serve);
    for (does, bad, then) in scripts {
        let server = Server::start_with(&["h2", "http/1.1"], h1, once(bad, then)).await;
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
    let both = &["h2", "http/1.1"][..];
    type Row<'r> = (&'r str, Answer, &'r [&'r str], Result<&'r [u8], FailureKind>);
    let scripts: [Row<'_>; 6] = [
        (
            "overloaded",
            |stream| reset(0xb, stream),
            both,
            Err(FailureKind::Broken),
        ),
        ("broken", |stream| reset(0x2, stream), both, Err(FailureKind::Broken)),
        (
            "overloaded in a body",
            |stream| cut_by(0xb, b"o", stream),
            both,
            Ok(b"o"),
        ),
        (
            "HTTP/2 alone",
            |stream| reset(0xd, stream),
            &["h2"],
            Err(FailureKind::Broken),
        ),
        (
            "HTTP/2 alone in a body",
            |stream| cut_by(0xd, b"o", stream),
            &["h2"],
            Ok(b"o"),
        ),
        (
            "upgrade alone",
            |stream| head_with("connection", "upgrade", stream),
            &["h2"],
            Err(FailureKind::Broken),
        ),
    ];
    for (does, bad, protocols, expected) in scripts {
        let server = Server::start_with(protocols, h1, once(bad, Then::Serve)).await;
        let answer = server.fetch(&server.fetcher(Duration::from_secs(60))).await;
        let got = answer.map(|answer| answer.body).map_err(|error| error.kind());
        assert_eq!(got.as_deref(), expected.as_ref().map(|body| *body), "{does}");
        assert_eq!(server.over_h2.load(Ordering::Relaxed), 1, "{does}");
    }
    // Nor is one that refuses streams asked at once over a new connection.
    let refuses = |stream| match stream {
        1 => head_with("x", "1", stream),
        _ => reset(0x7, stream),
    };
    let server = Server::start_with(&["h2"], h1, once(refuses, Then::Serve)).await;
    let fetcher = server.fetcher(Duration::from_secs(60));
    assert!(server.fetch(&fetcher).await.is_ok());
    let error = server.fetch(&fetcher).await.unwrap_err();
    assert!(matches!(error, FetchError::Broken(_)), "{error:?}");
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
    // Nobody can see that one that ends TLS without an alert did not speak HTTP/2. It is asked again at once three times in all.
    let drops = once(nothing, Then::Drop);
    let server = Server::start_with(&["http/1.1"], drops, drops).await;
    let fetcher = server.fetcher(Duration::from_secs(60));
    for _ in 0..6 {
        let error = server.fetch(&fetcher).await.unwrap_err().to_string();
        let why = "broken answer: peer closed connection without sending TLS close_notify";
        assert_eq!(error, why, "without an address of documentation");
    }
    assert_eq!(server.connections.load(Ordering::Relaxed), 9);
}
