//! Hosts that point to private addresses by a name, a number or a redirect, and hosts with wrong certificates.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::hostile::server::{Script, Server, html};
use crate::scripted::everywhere;
use crawler::fetch::{AddressGuard, CachedResolver, ClientError, Resolver, Resolving};
use crawler::{
    CrawlConfig, CrawlOptions, FetchError, Fetcher, HttpFetcher, HttpOptions, Request, ResourceKind, Response,
};
use frontier::{FrontierConfig, PolitenessConfig};
use url::Url;

fn config(seed: &str) -> CrawlConfig {
    CrawlConfig::new(everywhere(seed)).unwrap()
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

/// A resolver with the answers of the test, which counts its look-ups.
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
async fn a_name_is_connected_to_only_at_its_current_public_addresses() {
    let private = |_| vec!["127.0.0.1".parse().unwrap(), "::ffff:10.0.0.1".parse().unwrap()];
    let nothing = |_| Vec::new();
    let fetcher = HttpFetcher::with_resolver(&config("http://example.com/"), &http(), names(private)).unwrap();
    let error = fetch(&fetcher, "http://rebound.example/").await.unwrap_err();
    assert!(matches!(error, FetchError::AddressForbidden), "{error:?}");
    let fetcher = HttpFetcher::with_resolver(&config("http://example.com/"), &http(), names(nothing)).unwrap();
    let error = fetch(&fetcher, "http://unknown.example/").await.unwrap_err();
    assert!(matches!(error, FetchError::Unresolved(_)), "{error:?}");
}

#[tokio::test]
async fn a_name_is_resolved_and_checked_again_for_each_connection() {
    let server = Server::start(|_| Script::say(html("ok"))).await;
    // The name of a seed may have a private address. Later look-ups find no address.
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
async fn the_order_of_addresses_does_not_change_the_address_that_requests_count_for() {
    let v4 = |last| IpAddr::from([93, 184, 216, last]);
    for (said, counted) in [
        (vec![v4(9), v4(7)], Some(v4(7))),
        (vec![v4(7), v4(9)], Some(v4(7))),
        (vec!["2606:4700::1".parse().unwrap(), v4(9)], Some(v4(9))),
        (vec!["::ffff:93.184.216.7".parse().unwrap()], Some(v4(7))),
        // A forbidden address does not count if there is an allowed one.
        (
            vec![[10, 0, 0, 1].into(), [93, 184, 216, 34].into()],
            Some([93, 184, 216, 34].into()),
        ),
        (vec![[10, 0, 0, 1].into()], Some([10, 0, 0, 1].into())),
        (Vec::new(), None),
    ] {
        let names = FixedNames(said.clone());
        let fetcher = HttpFetcher::with_resolver(&config("http://a.example/"), &http(), names).unwrap();
        assert_eq!(fetcher.address("a.example").await, counted, "{said:?}");
    }
    let fetcher = HttpFetcher::with_resolver(&config("http://a.example/"), &http(), FixedNames(vec![v4(1)])).unwrap();
    assert_eq!(fetcher.address("93.184.216.7").await, Some(v4(7)));
    assert_eq!(fetcher.address("[::1]").await, Some("::1".parse().unwrap()));
}

/// A resolver with the same answer for every name.
struct FixedNames(Vec<IpAddr>);

impl Resolver for FixedNames {
    fn resolve(&self, _: &str) -> Resolving {
        let addresses = self.0.clone();
        Box::pin(async move { Ok(addresses) })
    }
}

#[test]
fn requests_through_a_proxy_that_resolves_names_cannot_count_by_address() {
    let options = CrawlOptions {
        seeds: vec!["http://a.example/".to_owned()],
        frontier: FrontierConfig {
            politeness: PolitenessConfig {
                per_address: true,
                ..PolitenessConfig::default()
            },
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    };
    let http = HttpOptions {
        proxy: Some("http://127.0.0.1:8080".into()),
        ..HttpOptions::default()
    };
    let error = HttpFetcher::new(&CrawlConfig::new(options).unwrap(), &http).unwrap_err();
    assert!(matches!(error, ClientError::AddressesBehindProxy));
    let error = error.to_string();
    assert!(error.contains("leave out one of the two"), "{error}");
}

#[test]
fn nothing_secret_can_be_given_for_seeds_that_are_not_trusted() {
    let options = CrawlOptions {
        seeds: vec!["http://a.example/".to_owned()],
        ..CrawlOptions::default()
    };
    let config = CrawlConfig::new(options).unwrap();
    let secret = || vec!["A: b".into()];
    for (headers, logins) in [(secret(), vec![]), (vec![], secret())] {
        let http = HttpOptions {
            untrusted_seeds: true,
            headers,
            logins,
            ..HttpOptions::default()
        };
        let error = HttpFetcher::new(&config, &http).unwrap_err().to_string();
        assert!(error.contains("seeds that are not trusted"), "{error}");
    }
}

#[tokio::test]
async fn a_public_seed_is_not_followed_to_a_private_address_later() {
    let server = Server::start(|_| Script::say(html("metadata"))).await;
    let seed = format!("http://rebound.example:{}/", server.port);
    // The first address is public, but not assigned, so no host receives a packet. The second one is loopback.
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
        "a public seed must not allow loopback: {second:?}"
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn the_address_guard_returns_only_allowed_addresses() {
    let seeds = config("http://inside.example:8080/").seeds().to_vec();
    let guard = AddressGuard::new(&seeds);
    let (public, private) = ("93.184.216.34", "10.0.0.1");
    let said = |addresses: &[&str]| FixedNames(addresses.iter().map(|address| address.parse().unwrap()).collect());
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
    // A seed with a public address at first must keep a public one.
    let guard = AddressGuard::new(&seeds);
    let first = guard.resolve(&seed.parse().unwrap(), &said(&[public])).await;
    assert_eq!(first.unwrap().len(), 1);
    let second = guard.resolve(&seed.parse().unwrap(), &said(&[private])).await;
    assert!(matches!(second, Err(FetchError::AddressForbidden)), "{second:?}");
}

#[tokio::test]
async fn a_cached_resolver_asks_once_for_many_connections() {
    let server = Server::start(|_| Script::say(html("each on a connection of its own"))).await;
    let url = |n: u32| format!("http://pages.example:{}/{n}", server.port);
    let resolver = names(|_| vec!["127.0.0.1".parse().unwrap()]);
    let asked = Arc::clone(&resolver.asked);
    let fetcher = HttpFetcher::with_resolver(&config(&url(0)), &http(), CachedResolver::new(resolver)).unwrap();
    for n in 0..5 {
        assert_eq!(fetch(&fetcher, &url(n)).await.unwrap().status, 200);
    }
    assert_eq!(server.requests().len(), 5);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_cached_resolver_asks_again_when_a_host_cannot_be_connected_to() {
    let server = Server::start(|_| Script::say(html("moved here"))).await;
    let url = format!("http://moved.example:{}/", server.port);
    // Nothing listens at the first address.
    let resolver = names(|time| vec![if time == 0 { "127.0.0.2" } else { "127.0.0.1" }.parse().unwrap()]);
    let fetcher = HttpFetcher::with_resolver(&config(&url), &http(), CachedResolver::new(resolver)).unwrap();
    let first = fetch(&fetcher, &url).await;
    assert!(matches!(first, Err(FetchError::Connect(_))), "{first:?}");
    assert_eq!(fetch(&fetcher, &url).await.unwrap().status, 200);
}
