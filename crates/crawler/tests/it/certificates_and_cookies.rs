//! Servers whose certificate nobody signed, or whose connections end without an alert, and cookies from a file.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::hostile::server::{ReceivedRequest, Script, Server, crawl_over_http, html, page};
use crate::hostile::tls::{start_counting, start_self_signed, start_without_alerts};
use crate::scripted::everywhere;
use crawler::fetch::CookieFile;
use crawler::{CrawlOptions, HttpOptions, Summary, TruncationReason};
use frontier::FailureKind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn options(seed: String) -> CrawlOptions {
    let mut options = everywhere(&seed);
    options.frontier.politeness.ask_robots = false;
    options
}

async fn crawl(options: CrawlOptions, http: HttpOptions) -> Summary {
    let http = HttpOptions {
        allow_private_addresses: true,
        ..http
    };
    crawl_over_http(options, http).await
}

fn accepting_any_certificate() -> HttpOptions {
    HttpOptions {
        accept_any_certificate: true,
        ..HttpOptions::default()
    }
}

/// Starts a server that answers the first bytes of a connection with these. Returns a URL, and the number of connections.
async fn start_answering(answer: Vec<u8>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("https://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let _ = stream.read(&mut [0; 4096]).await;
            if answer.is_empty() {
                // A reset when it is dropped.
                stream.set_zero_linger().unwrap();
                continue;
            }
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    });
    (url, connections)
}

#[tokio::test]
async fn a_site_without_a_secure_connection_is_given_up_at_once_and_the_error_says_why() {
    let alert = |description: u8| vec![21, 3, 3, 0, 2, 2, description];
    // ServerHello of TLS 1.1 (RFC 4346, section 7.4.1.3), and of TLS 1.2 with a cipher that was not offered (TLS_RSA_WITH_NULL_SHA).
    let hello = |version: u8, cipher: u8| {
        let body = [&[3, version][..], &[7; 32], &[0, 0, cipher, 0]].concat();
        let length = body.len() as u8;
        [&[22, 3, version, 0, length + 4, 2, 0, 0, length], &body[..]].concat()
    };
    let http = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    for (answer, says) in [
        (
            alert(70),
            "no version of TLS that this client trusts (1.2 or 1.3); try http://",
        ),
        (hello(2, 0x2f), "no version of TLS"),
        (
            alert(40),
            "no cipher or version in common, or it wants a certificate of the client",
        ),
        (alert(71), "no cipher or key exchange in common"),
        (hello(3, 2), "no cipher or key exchange in common"),
        (alert(112), "does not know this host"),
        (alert(116), "asks for a certificate of the client"),
        (http, "does not speak TLS here; try http://"),
        (alert(80), "refuses the TLS handshake: internal error (alert 80)"),
        (alert(50), "handshake: decode error (alert 50)"),
        (alert(47), "handshake: illegal parameter (alert 47)"),
        (alert(10), "handshake: unexpected message (alert 10)"),
        (alert(20), "handshake: bad record mac (alert 20)"),
        (alert(51), "handshake: decrypt error (alert 51)"),
        (alert(109), "handshake: missing extension (alert 109)"),
        (alert(43), "handshake: unsupported certificate (alert 43)"),
        (vec![21, 3, 3, 0, 2, 1, 0], "ends the connection in the TLS handshake"),
        (vec![21, 3], "ends the connection in the TLS handshake"),
        (Vec::new(), "ends the connection in the TLS handshake"),
    ] {
        let (url, connections) = start_answering(answer).await;
        for ask_robots in [true, false] {
            let mut options = options(url.clone());
            options.frontier.politeness.ask_robots = ask_robots;
            let summary = crawl(options, HttpOptions::default()).await;
            let why = summary.failures.first_failure.as_deref().unwrap_or_default();
            assert!(why.contains(says) && !why.contains("Error"), "{says}: {why}");
            assert_eq!(connections.swap(0, Ordering::Relaxed), 1, "{says}");
        }
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_signed_is_accepted_on_request_only() {
    let seed = start_self_signed().await;
    let summary = crawl(options(seed.clone()), HttpOptions::default()).await;
    assert_eq!(summary.failures.by_kind, [(FailureKind::Tls, 1)].into(), "{summary}");
    let why = summary.counts.failures.first_failure.unwrap();
    assert!(
        why.contains("self-signed") && why.ends_with("; try to accept any certificate"),
        "{why}"
    );
    let summary = crawl(options(seed), accepting_any_certificate()).await;
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
    let summary = crawl(options, accepting_any_certificate()).await;
    assert_eq!(summary.pages, 2 * HOSTS as u64, "{summary}");
    let count = |count: &std::sync::atomic::AtomicUsize| count.load(Ordering::Relaxed);
    assert_eq!((count(&handshakes.full), count(&handshakes.resumed)), (HOSTS, HOSTS));
}

/// The warnings of all tests.
pub(crate) struct Warnings(pub(crate) Mutex<Vec<String>>);

pub(crate) static WARNINGS: Warnings = Warnings(Mutex::new(Vec::new()));

impl log::Log for Warnings {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        self.0.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

#[tokio::test]
async fn a_body_without_a_length_ends_with_its_tls_connection_also_without_an_alert() {
    let _ = log::set_logger(&WARNINGS);
    log::set_max_level(log::LevelFilter::Warn);
    let (port, requests) = start_without_alerts(|target| {
        let (kind, body) = match target {
            "/robots.txt" => ("text/plain", "User-agent: *\nDisallow: /3"),
            "/" => ("text/html", "<a href=/2>2</a><a href=/3>3</a>"),
            _ => ("text/html", "end"),
        };
        format!("HTTP/1.0 200 OK\r\nContent-Type: {kind}\r\n\r\n{body}").into_bytes()
    })
    .await;
    let mut options = options(format!("https://127.0.0.1:{port}/"));
    options.frontier.politeness.ask_robots = true;
    options.frontier.retries.max_first_downtime = Duration::ZERO;
    let summary = crawl(options, accepting_any_certificate()).await;
    assert_eq!(*requests.lock().unwrap(), ["/robots.txt", "/", "/2"], "{summary}");
    assert!(
        summary.missing().is_empty() && summary.failures.bodies_truncated.is_empty(),
        "{summary}"
    );
    let origin = format!("https://127.0.0.1:{port} ");
    let mut warnings = WARNINGS.0.lock().unwrap().clone();
    warnings.retain(|warning| warning.starts_with(&origin));
    assert!(
        warnings.len() == 1 && warnings[0].contains("close_notify"),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn a_body_that_delimits_itself_is_incomplete_if_its_tls_connection_ends_too_early() {
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 0x4b, 0xcd];
    for (headers, body) in [
        ("Content-Length: 100\r\n", &b"<a href=/2>2</a>"[..]),
        ("Transfer-Encoding: chunked\r\n", b"10\r\n<a href=/2>2</a>\r\n"),
        ("Content-Encoding: gzip\r\n", &gzip),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{headers}\r\n");
        let answer = [head.as_bytes(), body].concat();
        let (port, _) = start_without_alerts(move |_| answer.clone()).await;
        let mut options = options(format!("https://127.0.0.1:{port}/"));
        options.frontier.retries.max_attempts = NonZeroU32::MIN;
        options.frontier.limits.max_pages = Some(1);
        let summary = crawl(options, accepting_any_certificate()).await;
        let cut = [(TruncationReason::Connection, 1)].into();
        assert_eq!(summary.failures.bodies_truncated, cut, "{headers}{summary}");
        assert_eq!(
            summary.failures.by_kind,
            [(FailureKind::Incomplete, 1)].into(),
            "{headers}{summary}"
        );
    }
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

fn moved(to: &str, cookie: &str) -> Script {
    let cookie = if cookie.is_empty() {
        String::new()
    } else {
        format!("Set-Cookie: {cookie}\r\n")
    };
    Script::say(page("302 Found", &format!("Location: {to}\r\n{cookie}"), ""))
}

/// A page that refreshes itself, by an element or a header, and sets a cookie.
fn refreshing(content: &str, header: &str) -> Script {
    let headers = format!("Content-Type: text/html\r\nSet-Cookie: w=1\r\n{header}");
    Script::say(page(
        "200 OK",
        &headers,
        format!("<meta http-equiv=refresh content=\"{content}\">"),
    ))
}

/// Sites whose pages answer once they get their cookies, by the label of the host.
fn walls(request: &ReceivedRequest, earlier: usize) -> Script {
    let port = request.host.rsplit(':').next().unwrap();
    let cookies = request.head.lines().find_map(|line| line.strip_prefix("cookie: "));
    let has = |cookie: &str| cookies.is_some_and(|all| all.split("; ").any(|one| one == cookie));
    let target = request.target.as_str();
    if target == "/" {
        return Script::say(html("<a href=/wall>w</a> <a href=/other>o</a>"));
    }
    match request.name() {
        "robots" if target == "/robots.txt" && !has("w=1") => moved(target, "w=1"),
        "robots" if target == "/robots.txt" => Script::say(page("200 OK", "", "User-agent: *\nDisallow: /other")),
        _ if target == "/robots.txt" => Script::say(page("404 Not Found", "", "")),
        "robots" => Script::say(html("page")),
        "itself" if !has("w=1") => moved(target, "w=1"),
        "path" if target == "/wall" && !has("w=1") => moved("?", "w=1; Path=/wall"),
        "path" if target == "/wall?" => moved("/wall#x", ""),
        "steps" if !has("w=1") => moved("/wall", "w=1; Path=/"),
        "steps" if !has("x=1") => moved("/wall", "x=1; Path=/"),
        "steps" if !has("y=1") => moved("/wall", "y=1; Path=/"),
        "through" if target.starts_with("/check") => moved(target.split_once('=').unwrap().1, "w=1; Path=/"),
        "through" if !has("w=1") => moved(&format!("/check?to={target}"), ""),
        "gate" if target == "/gate" && has("to=/wall") => moved("/wall", "w=1; Path=/"),
        "gate" if target == "/wall" && !has("w=1") => moved("/gate", "to=/wall; Path=/"),
        "login" => moved(&format!("http://hosts.localhost:{port}{target}"), "token=1; Path=/"),
        "hosts" if target.starts_with("/login") => moved(target.split_once('=').unwrap().1, "w=1; Path=/"),
        "hosts" if !has("w=1") => moved(&format!("http://login.localhost:{port}/login?to={target}"), ""),
        "meta" if !has("w=1") => refreshing("0;url=/wall", ""),
        "reload" if !has("w=1") => refreshing("1", ""),
        "header" if !has("w=1") => refreshing("", &format!("Refresh: 0; url={target}\r\n")),
        "never" => moved(target, &format!("sid={earlier}")),
        _ => Script::say(html("page")),
    }
}

#[tokio::test]
async fn a_page_that_answers_after_the_site_has_set_a_cookie_is_fetched() {
    const SITES: [&str; 11] = [
        "itself", "path", "steps", "through", "gate", "hosts", "robots", "never", "meta", "reload", "header",
    ];
    for cookies in [true, false] {
        let earlier = AtomicUsize::new(0);
        let server = Server::start(move |request| walls(request, earlier.fetch_add(1, Ordering::Relaxed))).await;
        let mut options = everywhere("");
        options.seeds = SITES
            .map(|site| format!("http://{site}.localhost:{}/", server.port))
            .into();
        let http = HttpOptions {
            cookies,
            ..HttpOptions::default()
        };
        let summary = crawl(options, http).await;
        let requests = server.requests();
        let asked = |site: &str, target: &str| {
            let of_site = requests
                .iter()
                .filter(|request| request.name() == site && request.target == target);
            of_site.count()
        };
        if cookies {
            // Both pages and the seed of nine sites; one page is forbidden, and the last site answers never.
            assert_eq!(summary.pages, 9 * 3 + 2 + 1, "{summary}");
            assert_eq!(
                summary.failures.by_kind,
                [(FailureKind::Redirect, 2)].into(),
                "{summary}"
            );
            let sites = ["itself", "steps", "meta", "reload", "header"];
            assert_eq!(sites.map(|site| asked(site, "/wall")), [2, 4, 2, 2, 2]);
            assert_eq!(asked("robots", "/other"), 0);
            assert_eq!(asked("never", "/wall"), 6);
        } else {
            assert!(summary.pages < 9 * 3, "{summary}");
            assert!(
                summary.hint(&str::to_owned).unwrap().contains("cookies may help"),
                "{summary}"
            );
            assert!(SITES.iter().all(|site| asked(site, "/wall") <= 1), "{requests:?}");
            let why = summary.counts.failures.first_failure.unwrap();
            assert!(
                why.contains("redirect loop") && why.ends_with("keeping them may help"),
                "{why}"
            );
        }
    }
}

#[tokio::test]
async fn cookies_with_bytes_above_ascii_are_sent_as_they_were_received() {
    // One site each: a Latin-1 letter, UTF-8 that ends in a byte that is a space in Latin-1, spaces of Latin-1 around a value, a name.
    let cookies: [&[u8]; 5] = [
        b"name=Jos\xe9",
        "citt\u{e0}=caff\u{e8} \u{e0}".as_bytes(),
        b"a=\xa0x\x85",
        b"\xff\xfe=\"\x80\"",
        b"\xc3\x84=\xc3\x84",
    ];
    let server = Server::start(move |request| {
        let Some(cookie) = request
            .name()
            .strip_prefix('s')
            .and_then(|at| cookies.get(at.parse::<usize>().ok()?))
        else {
            return Script::say(html("of the file"));
        };
        let mut answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nSet-Cookie: ".to_vec();
        answer.extend_from_slice(cookie);
        answer.extend_from_slice(b"; Path=/\r\n\r\n<a href=/next>n</a>");
        Script::say(answer)
    })
    .await;
    let text = "file.localhost\tFALSE\t/\tFALSE\t0\tid\t\u{e0}";
    let http = HttpOptions {
        cookie_file: Some(CookieFile::parse(text, "c.txt").unwrap()),
        ..HttpOptions::default()
    };
    let mut options = options(String::new());
    options.seeds = (0..cookies.len())
        .map(|at| format!("http://s{at}.localhost:{}/", server.port))
        .collect();
    options
        .seeds
        .push(format!("http://file.localhost:{}/next", server.port));
    crawl(options, http).await;
    let requests = server.requests();
    let sent = |name: &str| {
        let next = requests
            .iter()
            .find(|request| request.name() == name && request.target == "/next")
            .unwrap();
        let start = next.bytes.windows(8).position(|bytes| bytes == b"Cookie: ").unwrap() + 8;
        let end = next.bytes[start..].iter().position(|byte| *byte == b'\r').unwrap();
        next.bytes[start..start + end].to_owned()
    };
    for (at, cookie) in cookies.iter().enumerate() {
        assert_eq!(sent(&format!("s{at}")), *cookie, "{at}");
    }
    assert_eq!(sent("file"), "id=\u{e0}".as_bytes());
}
