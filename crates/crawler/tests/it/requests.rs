//! Which origin receives which headers, logins and cookies, and requests through a proxy.

use crate::hostile::server::{ReceivedRequest, Script, Server, crawl_over_http, html, page, redirect};
use crate::scripted::everywhere;
use crawler::fetch::Secret;
use crawler::{Crawl, CrawlConfig, FetchError, Fetcher, HttpFetcher, HttpOptions, Request, ResourceKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// The maximum size of a cookie jar, as in the docs of `HttpOptions::cookies`.
const MAX_JAR_BYTES: usize = 8 * 1024;

fn http() -> HttpOptions {
    HttpOptions {
        allow_private_addresses: true,
        ..HttpOptions::default()
    }
}

fn secrets(texts: &[&str]) -> Vec<Secret> {
    texts.iter().map(|text| Secret::from(*text)).collect()
}

/// Two sites that link and redirect to each other, and set a cookie on every page.
async fn two_sites() -> Server {
    Server::start(|request| {
        let port = request.host.rsplit(':').next().unwrap();
        let other = if request.name() == "home" { "away" } else { "home" };
        Script::say(match request.target.as_str() {
            "/" => page(
                "200 OK",
                "Content-Type: text/html\r\nSet-Cookie: id=1; Path=/; Domain=localhost\r\n",
                format!("<a href=/there>t</a><a href=http://u:p@{other}.localhost:{port}/>o</a>"),
            ),
            "/there" => redirect(&format!("http://{other}.localhost:{port}/back")),
            "/back" => html("end"),
            _ => page("404 Not Found", "", ""),
        })
    })
    .await
}

fn has(request: &ReceivedRequest, line: &str) -> bool {
    request.head.lines().any(|header| header == line)
}

#[tokio::test]
async fn headers_logins_and_cookies_stay_with_their_origin_through_links_and_redirects() {
    let server = two_sites().await;
    let home = format!("http://home.localhost:{}", server.port);
    let http = HttpOptions {
        headers: secrets(&["X-Key: 1", "Accept-Language: de"]),
        logins: secrets(&["me:secret"]),
        cookies: true,
        ..http()
    };
    let summary = crawl_over_http(everywhere(&format!("{home}/")), http).await;
    assert_eq!(summary.pages, 4, "{summary}");
    let (at_home, away): (Vec<_>, Vec<_>) = server
        .requests()
        .into_iter()
        .partition(|request| request.name() == "home");
    assert!(at_home.len() >= 4 && away.len() >= 4);
    for request in &at_home {
        for line in ["x-key: 1", "accept-language: de", "authorization: Basic bWU6c2VjcmV0"] {
            assert!(has(request, line), "{request:?}");
        }
        let is_later = !["/", "/robots.txt"].contains(&request.target.as_str());
        assert_eq!(has(request, "cookie: id=1"), is_later, "{request:?}");
    }
    for request in &away {
        for name in ["x-key", "accept-language", "authorization"] {
            assert!(!request.head.contains(name), "{request:?}");
        }
    }
    let cookies: Vec<bool> = away.iter().map(|request| has(request, "cookie: id=1")).collect();
    assert!(
        cookies.contains(&true) && !cookies[0],
        "its own, once it has set one: {cookies:?}"
    );
}

#[tokio::test]
async fn a_server_that_refuses_names_of_headers_in_lower_case_answers() {
    let server = Server::start(|request| {
        let head = String::from_utf8_lossy(&request.bytes);
        let names = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let mut words = names.flat_map(|(name, _)| name.split('-').filter(|word| !word.is_empty()));
        Script::say(match words.any(|word| word.starts_with(char::is_lowercase)) {
            true => page("403 Forbidden", "", ""),
            false => page(
                "200 OK",
                "Content-Type: text/html\r\nSet-Cookie: id=1; Path=/\r\n",
                "<a href=/2>2</a>",
            ),
        })
    })
    .await;
    let own = HttpOptions {
        headers: secrets(&["x-key--of-me: 1", "ACCEPT-language: de"]),
        logins: secrets(&["me:secret"]),
        cookies: true,
        ..http()
    };
    let proxied = HttpOptions {
        proxy: Some(format!("http://me:secret@localhost:{}", server.port).into()),
        ..http()
    };
    let direct = format!("http://home.localhost:{}/", server.port);
    for (seed, http) in [(&*direct, http()), (&direct, own), ("http://far.example/", proxied)] {
        let summary = crawl_over_http(everywhere(seed), http).await;
        assert_eq!(summary.pages, 2, "{seed} {summary}");
    }
    assert!(String::from_utf8_lossy(&server.requests()[0].bytes).contains("User-Agent: "));
}

#[tokio::test]
async fn cookies_are_kept_only_with_the_option() {
    let server = two_sites().await;
    let options = everywhere(&format!("http://home.localhost:{}/", server.port));
    Crawl::new(options).unwrap().run().await.unwrap();
    assert!(server.requests().iter().all(|request| !request.head.contains("cookie")));
}

#[tokio::test]
async fn the_password_of_a_seed_is_sent_and_never_shown() {
    let server = two_sites().await;
    let options = everywhere(&format!("http://me:secret@home.localhost:{}/back", server.port));
    let crawl = Crawl::new(options).unwrap();
    let summary = crawl.run().await.unwrap();
    assert!(
        server
            .requests()
            .iter()
            .all(|request| has(request, "authorization: Basic bWU6c2VjcmV0"))
    );
    assert!(!format!("{summary:?}{summary}").contains("secret"));
}

#[tokio::test]
async fn all_requests_go_through_the_proxy_except_to_private_addresses_in_urls() {
    let proxy = Server::start(|_| Script::say(html("by proxy"))).await;
    let http = HttpOptions {
        proxy: Some(Secret::from(format!("http://me:secret@localhost:{}", proxy.port))),
        allow_private_addresses: false,
        ..http()
    };
    let config = CrawlConfig::new(everywhere("http://far.example/")).unwrap();
    let fetcher = HttpFetcher::new(&config, &http).unwrap();
    let fetch = |url: &str| fetcher.fetch(Request::new(url.parse().unwrap(), ResourceKind::Page));
    assert_eq!(fetch("http://far.example/a").await.unwrap().body, b"by proxy");
    assert_eq!(fetch("http://other.example/b").await.unwrap().body, b"by proxy");
    for inside in [
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://localhost/",
        "http://x.localhost./",
    ] {
        let error = fetch(inside).await.unwrap_err();
        assert!(matches!(error, FetchError::AddressForbidden), "{inside}: {error:?}");
    }
    let targets: Vec<_> = proxy.requests().into_iter().map(|request| request.target).collect();
    assert_eq!(targets, ["http://far.example/a", "http://other.example/b"]);
    assert!(
        proxy
            .requests()
            .iter()
            .all(|request| has(request, "proxy-authorization: Basic bWU6c2VjcmV0"))
    );
}

#[tokio::test]
async fn a_socks5h_proxy_gets_the_name_to_resolve() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // RFC 1928: greeting, no authentication, connect to a name, success.
        let mut greeting = [0; 2];
        stream.read_exact(&mut greeting).await.unwrap();
        let mut methods = vec![0; usize::from(greeting[1])];
        stream.read_exact(&mut methods).await.unwrap();
        stream.write_all(&[5, 0]).await.unwrap();
        let mut head = [0; 5];
        stream.read_exact(&mut head).await.unwrap();
        let mut name = vec![0; usize::from(head[4]) + 2];
        stream.read_exact(&mut name).await.unwrap();
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let mut request = vec![0; 4096];
        let _ = stream.read(&mut request).await.unwrap();
        stream.write_all(&html("by socks")).await.unwrap();
        let port = name.split_off(name.len() - 2);
        (String::from_utf8(name).unwrap(), port)
    });
    let http = HttpOptions {
        proxy: Some(Secret::from(format!("socks5h://127.0.0.1:{port}"))),
        ..http()
    };
    let config = CrawlConfig::new(everywhere("http://far.example/")).unwrap();
    let fetcher = HttpFetcher::new(&config, &http).unwrap();
    let answer = fetcher
        .fetch(Request::new("http://far.example/".parse().unwrap(), ResourceKind::Page))
        .await
        .unwrap();
    assert_eq!(answer.body, b"by socks");
    assert_eq!(serving.await.unwrap(), ("far.example".to_owned(), vec![0, 80]));
}

#[test]
fn an_invalid_proxy_is_refused_and_the_error_does_not_quote_it() {
    for proxy in [
        "secret",
        "ftp://me:secret@proxy.example",
        "http://",
        "socks4://me:secret@h:1",
    ] {
        let http = HttpOptions {
            proxy: Some(Secret::from(proxy)),
            ..http()
        };
        let config = CrawlConfig::new(everywhere("http://far.example/")).unwrap();
        let error = HttpFetcher::new(&config, &http).unwrap_err().to_string();
        assert!(
            error.contains("socks5h://") && !error.contains("secret"),
            "{proxy}: {error}"
        );
    }
}

#[tokio::test]
async fn the_cookie_header_is_never_longer_than_the_jar_of_its_origin() {
    let path = "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/page";
    let server = Server::start(move |request| {
        let prefixes = path.match_indices('/').skip(1).map(|(at, _)| &path[..at]);
        let cookies: String = prefixes
            .map(|prefix| format!("Set-Cookie: id={}; Path={prefix}\r\n", "x".repeat(4000)))
            .collect();
        Script::say(match request.target.as_str() {
            "/" => page(
                "200 OK",
                &format!("Content-Type: text/html\r\n{cookies}"),
                format!("<a href={path}>x</a>"),
            ),
            "/robots.txt" => page("404 Not Found", "", ""),
            _ => html("end"),
        })
    })
    .await;
    let http = HttpOptions {
        cookies: true,
        ..http()
    };
    let options = everywhere(&format!("http://home.localhost:{}/", server.port));
    let summary = crawl_over_http(options, http).await;
    assert_eq!((summary.pages, summary.cookies_dropped), (2, 18), "{summary}");
    let requests = server.requests();
    let sent = requests.iter().find(|request| request.target == path).unwrap();
    let header = sent
        .head
        .lines()
        .find(|line| line.starts_with("cookie: "))
        .unwrap_or_default();
    assert!(
        header.len() <= MAX_JAR_BYTES + 1024,
        "a cookie header of {} bytes, from jars of {} bytes",
        header.len(),
        MAX_JAR_BYTES
    );
}
