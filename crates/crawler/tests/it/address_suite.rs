//! The address-guard suite: what may be dialled, by the registries; and that no spelling of an address gets round it.
//!
//! `data/addresses/address_check.py` holds the same data against another implementation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::scripted::everywhere;
use crawler::fetch::address_guard::is_public;
use crawler::{Crawl, Event, HttpOptions, Summary};
use frontier::NotFetched;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn data() -> Value {
    serde_json::from_str(include_str!("../data/addresses/networks.json")).unwrap()
}

#[test]
fn the_edges_of_every_network_and_of_every_embedding_are_told_apart() {
    let boundaries = include_str!("../data/addresses/boundaries.txt");
    assert!(boundaries.lines().count() > 1000);
    for line in boundaries.lines() {
        let (address, verdict) = line.split_once(' ').unwrap();
        assert_eq!(is_public(address.parse().unwrap()), verdict == "public", "{address}");
    }
}

#[test]
fn addresses_worth_a_name_are_open_or_closed_as_the_data_says() {
    for case in data()["cases"].as_array().unwrap() {
        let address = case["address"].as_str().unwrap().parse().unwrap();
        assert_eq!(is_public(address), case["public"].as_bool().unwrap(), "{case}");
    }
}

/// A network of the table, its address in the high bits.
struct Network {
    is_v4: bool,
    first: u128,
    length: u32,
    /// `None` where the embedded address decides, which begins at `embeds_at`.
    public: Option<bool>,
    embeds_at: u32,
}

/// The address in the high bits of a number.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn high_bits(length: u32) -> u128 {
    u128::MAX.checked_shl(128 - length).unwrap_or_default()
}

fn v4_at(number: u128, bit: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::try_from((number >> (96 - bit)) & 0xffff_ffff).unwrap())
}

fn networks() -> Vec<Network> {
    let data = data();
    let rows = data["networks"].as_array().unwrap().iter();
    rows.map(|row| {
        let (address, length) = row["network"].as_str().unwrap().split_once('/').unwrap();
        let address: IpAddr = address.parse().unwrap();
        Network {
            is_v4: address.is_ipv4(),
            first: number(address),
            length: length.parse().unwrap(),
            public: row["public"].as_bool(),
            embeds_at: row["embeds_at"].as_u64().map_or(0, |bit| u32::try_from(bit).unwrap()),
        }
    })
    .collect()
}

/// What the table says, by the smallest network that has the address.
fn by_the_table(networks: &[Network], address: IpAddr) -> bool {
    let number = number(address);
    let holds = |network: &&Network| {
        network.is_v4 == address.is_ipv4() && (number ^ network.first) & high_bits(network.length) == 0
    };
    let network = networks
        .iter()
        .filter(holds)
        .max_by_key(|network| network.length)
        .unwrap();
    let is_open = network
        .public
        .unwrap_or_else(|| by_the_table(networks, v4_at(number, network.embeds_at).into()));
    let is_isatap = address.is_ipv6() && (number >> 32) & 0xfdff_ffff == 0x5efe;
    is_open && (!is_isatap || by_the_table(networks, v4_at(number, 96).into()))
}

/// Numbers without a pattern that would matter here (the SplitMix64 sequence).
fn random(state: &mut u64) -> u128 {
    let mut next = || {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    u128::from(next()) << 64 | u128::from(next())
}

#[test]
fn random_addresses_in_and_near_every_network_are_judged_by_the_table() {
    let networks = networks();
    let mut state = 1;
    let mut open = 0;
    for round in 0..200_000 {
        let network = &networks[round % networks.len()];
        // Within the network, or in one up to four times as large round about it.
        let kept = high_bits(network.length.saturating_sub(round as u32 / 7 % 3));
        let number = network.first & kept | random(&mut state) & !kept;
        let address = if network.is_v4 {
            v4_at(number, 0).into()
        } else {
            IpAddr::V6(Ipv6Addr::from_bits(number))
        };
        assert_eq!(is_public(address), by_the_table(&networks, address), "{address}");
        open += usize::from(is_public(address));
    }
    assert!((20_000..180_000).contains(&open), "{open} of them are public");
}

/// Serves a page at every path, and counts connections.
async fn server(page: impl Fn(&str) -> String + Send + 'static) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let mut head = vec![0; 16 * 1024];
            let length = stream.read(&mut head).await.unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let _ = stream.write_all(page(path).as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (port, connections)
}

fn html(body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Crawls all that can be reached from a seed over real sockets; returns what was fetched, too, and what was refused why.
async fn crawl(seed: &str) -> (Summary, Vec<String>, Vec<(String, NotFetched)>) {
    let mut options = everywhere(seed);
    options.concurrency = NonZeroUsize::new(8).unwrap();
    let (pages, refused) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (seen, turned_away) = (Arc::clone(&pages), Arc::clone(&refused));
    let http = HttpOptions {
        timeout: Duration::from_secs(20),
        ..HttpOptions::default()
    };
    let crawl = Crawl::builder(options).unwrap().http(http).build().unwrap();
    let crawl = crawl.observe(move |event: &Event<'_>| match event {
        Event::Page(page) => seen.lock().unwrap().push(page.url.clone()),
        Event::NotFetched { entry, why, .. } => turned_away.lock().unwrap().push((entry.url.to_string(), *why)),
        _ => {}
    });
    let summary = crawl.run().await.unwrap();
    let pages = std::mem::take(&mut *pages.lock().unwrap());
    let refused = std::mem::take(&mut *refused.lock().unwrap());
    (summary, pages, refused)
}

#[tokio::test]
async fn no_spelling_of_an_address_inside_gets_past_the_guard() {
    let (closed, connections) = server(|_| html("inside")).await;
    let data = data();
    let spellings = data["refused_urls"].as_array().unwrap();
    // Many are spellings of one address: a path of its own lets each be a URL of its own.
    let links: String = spellings
        .iter()
        .enumerate()
        .map(|(at, url)| {
            format!(
                "<a href='{}{at}'>",
                url.as_str().unwrap().replace("PORT", &closed.to_string())
            )
        })
        .collect();
    let (seed, _) = server(move |path| html(if path == "/" { &links } else { "" })).await;
    let (summary, pages, refused) = crawl(&format!("http://127.0.0.1:{seed}/")).await;

    assert_eq!(pages, [format!("http://127.0.0.1:{seed}/")]);
    assert!(spellings.len() > 50);
    assert_eq!(refused.len(), spellings.len(), "{refused:?}");
    let otherwise: Vec<_> = refused
        .iter()
        .filter(|(_, why)| *why != NotFetched::AddressForbidden)
        .collect();
    assert!(otherwise.is_empty(), "{otherwise:?}");
    assert_eq!(
        summary.report.not_fetched[&NotFetched::AddressForbidden],
        spellings.len() as u64
    );
    assert_eq!(connections.load(Ordering::Relaxed), 0, "something was dialled");
}

#[tokio::test]
async fn a_seed_inside_opens_no_other_port_by_link_or_redirect_even_of_robots_txt() {
    let (closed, connections) = server(|_| html("inside")).await;
    let redirect = move |path: &str| {
        format!(
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{closed}{path}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
    };
    let (seed, _) = server(move |path| match path {
        "/" => html(&format!(
            "<a href=/page><a href=/moved><a href=//127.0.0.1:{closed}/linked>"
        )),
        "/page" => html(""),
        path => redirect(path),
    })
    .await;
    // Its robots.txt, too, leads to the closed port: what cannot be asked forbids all.
    let (_, pages, refused) = crawl(&format!("http://127.0.0.1:{seed}/")).await;
    assert_eq!(pages, Vec::<String>::new());
    assert_eq!(
        refused,
        [(format!("http://127.0.0.1:{seed}/"), NotFetched::AddressForbidden)]
    );

    let (seed, _) = server(move |path| match path {
        "/robots.txt" => html(""),
        "/" => html(&format!(
            "<a href=/page><a href=/moved><a href=//127.0.0.1:{closed}/linked>"
        )),
        "/page" => html(""),
        path => redirect(path),
    })
    .await;
    let (_, mut pages, mut refused) = crawl(&format!("http://127.0.0.1:{seed}/")).await;
    pages.sort();
    refused.sort();
    assert_eq!(
        pages,
        [
            format!("http://127.0.0.1:{seed}/"),
            format!("http://127.0.0.1:{seed}/page")
        ]
    );
    let expected = ["linked", "moved"].map(|path| {
        (
            format!("http://127.0.0.1:{closed}/{path}"),
            NotFetched::AddressForbidden,
        )
    });
    assert_eq!(refused, expected);
    assert_eq!(connections.load(Ordering::Relaxed), 0, "the other port was dialled");
}
