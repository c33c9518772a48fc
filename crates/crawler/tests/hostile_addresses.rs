//! Hosts that lead inside, whatever name, number or redirect they use, and hosts that are not who they say.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

mod hostile;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crawler::fetch::{AddressGuard, ClientError, HttpOptionsError, Resolver, Resolving};
use crawler::{
    Crawl, CrawlConfig, CrawlOptions, FetchError, Fetcher, HttpFetcher, HttpOptions, Request, ResourceKind, Response,
};
use frontier::{FrontierConfig, NotFetched, Reach, ScopeConfig};
use hostile::server::{Script, Server, html, redirect};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use url::Url;

fn config(seed: &str) -> CrawlConfig {
    CrawlConfig::new(CrawlOptions {
        seeds: vec![seed.to_owned()],
        frontier: FrontierConfig {
            delay: Duration::ZERO,
            scope: ScopeConfig {
                reach: Reach::Any,
                ..ScopeConfig::default()
            },
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    })
    .unwrap()
}

fn http() -> HttpOptions {
    HttpOptions {
        connect_timeout: Duration::from_secs(5),
        ..HttpOptions::default()
    }
}

async fn fetch(fetcher: &HttpFetcher, url: &str) -> Result<Response, FetchError> {
    fetcher
        .fetch(Request::new(Url::parse(url).unwrap(), ResourceKind::Page))
        .await
}

/// Says of every name what the test says, and counts how often it is asked.
struct Names {
    addresses: fn(usize) -> Vec<IpAddr>,
    asked: Arc<AtomicUsize>,
}

impl Resolver for Names {
    fn resolve(&self, _: &str) -> Resolving {
        let addresses = (self.addresses)(self.asked.fetch_add(1, Ordering::Relaxed));
        Box::pin(async move {
            if addresses.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "no such name"));
            }
            Ok(addresses)
        })
    }
}

fn names(addresses: fn(usize) -> Vec<IpAddr>) -> Names {
    Names {
        addresses,
        asked: Arc::default(),
    }
}

#[tokio::test]
async fn no_spelling_of_an_inner_address_is_dialled() {
    let fetcher = HttpFetcher::new(&config("http://example.com/"), &http()).unwrap();
    let port = Server::start(|_| Script::say(html("inside"))).await.port;
    for host in [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "0",
        "0.0.0.0",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127.0.0.1.",
        "[::1]",
        "[::]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::80ff:fffe]",
        "[fe80::5efe:7f00:1]",
        "[fc00::1]",
        "[fe80::1]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "192.168.0.1",
        "10.0.0.1",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "localhost.localhost.",
    ] {
        let url = format!("http://{host}:{port}/");
        let error = fetch(&fetcher, &url).await.unwrap_err();
        assert!(matches!(error, FetchError::AddressForbidden), "{url}: {error:?}");
    }
}

#[tokio::test]
async fn a_name_is_dialled_only_where_it_leads_outside_at_that_moment() {
    let inside = |_| vec!["127.0.0.1".parse().unwrap(), "::ffff:10.0.0.1".parse().unwrap()];
    let nothing = |_| Vec::new();
    let fetcher = HttpFetcher::with_resolver(&config("http://example.com/"), &http(), names(inside)).unwrap();
    let error = fetch(&fetcher, "http://rebound.example/").await.unwrap_err();
    assert!(matches!(error, FetchError::AddressForbidden), "{error:?}");
    let fetcher = HttpFetcher::with_resolver(&config("http://example.com/"), &http(), names(nothing)).unwrap();
    let error = fetch(&fetcher, "http://unknown.example/").await.unwrap_err();
    assert!(matches!(error, FetchError::Unresolved(_)), "{error:?}");
}

#[tokio::test]
async fn a_name_that_changes_its_address_between_two_requests_is_looked_up_and_judged_again() {
    let server = Server::start(|_| Script::say(html("ok"))).await;
    // As a seed the name may lead inside; what it says the second time is nowhere.
    let seed = format!("http://rebound.example:{}/", server.port);
    let first_only = |time| {
        if time == 0 {
            vec!["127.0.0.1".parse().unwrap()]
        } else {
            Vec::new()
        }
    };
    let names = names(first_only);
    let asked = Arc::clone(&names.asked);
    let fetcher = HttpFetcher::with_resolver(&config(&seed), &http(), names).unwrap();
    assert_eq!(fetch(&fetcher, &seed).await.unwrap().status, 200);
    let error = fetch(&fetcher, &seed).await.unwrap_err();
    assert!(matches!(error, FetchError::Unresolved(_)), "{error:?}");
    assert_eq!(asked.load(Ordering::Relaxed), 2, "each connection asks once");
}

#[tokio::test]
async fn a_seed_that_links_and_redirects_inside_leads_nowhere() {
    let inner = Server::start(|_| Script::say(html("secret"))).await;
    let to = inner.port;
    let outer = Server::start(move |request| {
        Script::say(match request.target.as_str() {
            "/" => html(format!(
                "<a href=/moved>moved</a><a href=http://127.0.0.1:{to}/>number</a>\
                 <a href=http://inner.localhost:{to}/>name</a><a href=http://169.254.169.254/latest/>metadata</a>"
            )),
            "/moved" => redirect(&format!("http://[::ffff:127.0.0.1]:{to}/")),
            _ => hostile::server::page("404 Not Found", "", ""),
        })
    })
    .await;
    let crawl = Crawl::new(config(&format!("http://127.0.0.1:{}/", outer.port))).unwrap();
    let summary = crawl.run().await.unwrap();
    assert_eq!(summary.pages, 1, "{summary}");
    assert_eq!(
        summary.report.not_fetched.get(&NotFetched::AddressForbidden),
        Some(&4),
        "{summary}"
    );
    assert!(summary.failed.is_empty(), "counted once: {summary}");
    assert!(inner.requests().is_empty());
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_is_told_as_one() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificate = CertificateDer::from(include_bytes!("data/tls/self_signed.der").as_slice());
    let key = PrivatePkcs8KeyDer::from(include_bytes!("data/tls/self_signed_key.der").as_slice());
    let tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::from(key))
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let seed = format!("https://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let _ = stream.write_all(&html("ok")).await;
            }
        }
    });
    let fetcher = HttpFetcher::new(&config(&seed), &http()).unwrap();
    let error = fetch(&fetcher, &seed).await.unwrap_err();
    assert!(matches!(error, FetchError::Tls(_)), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("certificate is not trusted"), "{message}");
}

#[tokio::test]
async fn a_server_without_tls_under_https_is_told_as_one() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let seed = format!("https://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let fetcher = HttpFetcher::new(&config(&seed), &http()).unwrap();
    let error = fetch(&fetcher, &seed).await.unwrap_err();
    assert!(matches!(error, FetchError::Tls(_)), "{error:?}");
}

#[tokio::test]
async fn requests_count_by_the_same_address_however_a_name_server_orders_them() {
    let v4 = |last| IpAddr::from([93, 184, 216, last]);
    for (said, counted) in [
        (vec![v4(9), v4(7)], Some(v4(7))),
        (vec![v4(7), v4(9)], Some(v4(7))),
        (vec!["2606:4700::1".parse().unwrap(), v4(9)], Some(v4(9))),
        (vec!["::ffff:93.184.216.7".parse().unwrap()], Some(v4(7))),
        // What may not be dialled does not count while there is something that may.
        (
            vec![[10, 0, 0, 1].into(), [93, 184, 216, 34].into()],
            Some([93, 184, 216, 34].into()),
        ),
        (vec![[10, 0, 0, 1].into()], Some([10, 0, 0, 1].into())),
        (Vec::new(), None),
    ] {
        let names = Said(said.clone());
        let fetcher = HttpFetcher::with_resolver(&config("http://a.example/"), &http(), names).unwrap();
        assert_eq!(fetcher.address("a.example").await, counted, "{said:?}");
    }
    let fetcher = HttpFetcher::with_resolver(&config("http://a.example/"), &http(), Said(vec![v4(1)])).unwrap();
    assert_eq!(fetcher.address("93.184.216.7").await, Some(v4(7)));
    assert_eq!(fetcher.address("[::1]").await, Some("::1".parse().unwrap()));
}

/// Says the same of every name.
struct Said(Vec<IpAddr>);

impl Resolver for Said {
    fn resolve(&self, _: &str) -> Resolving {
        let addresses = self.0.clone();
        Box::pin(async move { Ok(addresses) })
    }
}

#[test]
fn what_a_proxy_looks_up_cannot_be_counted_by() {
    let options = CrawlOptions {
        seeds: vec!["http://a.example/".to_owned()],
        frontier: FrontierConfig {
            per_address: true,
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    };
    let http = HttpOptions {
        proxy: Some("http://127.0.0.1:8080".into()),
        ..HttpOptions::default()
    };
    let error = HttpFetcher::new(&CrawlConfig::new(options).unwrap(), &http).unwrap_err();
    assert!(matches!(
        error,
        ClientError::Options(HttpOptionsError::AddressesBehindProxy)
    ));
    let error = error.to_string();
    assert!(error.contains("leave out one of the two"), "{error}");
}

#[tokio::test]
async fn a_public_seed_whose_name_is_pointed_inside_later_is_not_followed_there() {
    let server = Server::start(|_| Script::say(html("metadata"))).await;
    let seed = format!("http://rebound.example:{}/", server.port);
    // Public at first: an address that nobody has been given, so that nobody hears of this test. Then loopback.
    let rebound = |time| {
        vec![if time == 0 {
            "2000::1".parse().unwrap()
        } else {
            "127.0.0.1".parse().unwrap()
        }]
    };
    let http = HttpOptions {
        connect_timeout: Duration::from_millis(300),
        ..HttpOptions::default()
    };
    let fetcher = HttpFetcher::with_resolver(&config(&seed), &http, names(rebound)).unwrap();
    let first = fetch(&fetcher, &seed).await.unwrap_err();
    assert!(
        !matches!(first, FetchError::AddressForbidden),
        "it is public: {first:?}"
    );
    let second = fetch(&fetcher, &seed).await;
    assert!(
        matches!(second, Err(FetchError::AddressForbidden)),
        "a seed that did not point inside has opened loopback: {second:?}"
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn the_address_guard_gives_a_fetcher_only_what_may_be_dialled() {
    let seeds = config("http://inside.example:8080/").seeds().to_vec();
    let guard = AddressGuard::new(&seeds);
    let (public, private) = ("93.184.216.34", "10.0.0.1");
    let said = |addresses: &[&str]| Said(addresses.iter().map(|address| address.parse().unwrap()).collect());
    let resolve = async |url: &str, addresses: &[&str]| {
        let found = guard.resolve(&url.parse().unwrap(), &said(addresses)).await;
        found.map(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let both = [private, public];
    assert_eq!(
        resolve("https://a.example/", &both).await.unwrap(),
        ["93.184.216.34:443"]
    );
    for (url, addresses) in [
        ("http://a.example/", &[private][..]),
        ("http://inside.example/", &[private]),
        ("http://127.0.0.1/", &[public]),
        ("http://[::1]/", &[public]),
    ] {
        let error = resolve(url, addresses).await.unwrap_err();
        assert!(matches!(error, FetchError::AddressForbidden), "{url}: {error:?}");
    }
    let error = resolve("http://a.example/", &[]).await.unwrap_err();
    assert!(matches!(error, FetchError::Unresolved(_)), "{error:?}");
    // The origin of the seed may be private.
    let seed = "http://inside.example:8080/x";
    assert_eq!(
        resolve(seed, &both).await.unwrap(),
        ["10.0.0.1:8080", "93.184.216.34:8080"]
    );
    // A seed that is public at first stays so.
    let guard = AddressGuard::new(&seeds);
    let first = guard.resolve(&seed.parse().unwrap(), &said(&[public])).await;
    assert_eq!(first.unwrap().len(), 1);
    let second = guard.resolve(&seed.parse().unwrap(), &said(&[private])).await;
    assert!(matches!(second, Err(FetchError::AddressForbidden)), "{second:?}");
}
