//! How connections are made through proxies: tunnels for `https`, and names that are looked up here.

use std::net::{IpAddr, Ipv4Addr};

use crate::hostile::server::html;
use crate::hostile::tls::self_signed;
use crawler::fetch::{Resolver, Resolving, Secret};
use crawler::{
    CrawlConfig, CrawlOptions, FetchError, Fetcher, HttpFetcher, HttpOptions, Request, ResourceKind, Response,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A public address that nothing connects to: the proxies of these tests answer themselves.
const PUBLIC: Ipv4Addr = Ipv4Addr::new(8, 8, 4, 4);

/// Knows a public and a private name.
struct Names;

impl Resolver for Names {
    fn resolve(&self, name: &str) -> Resolving {
        let address = if name.starts_with("inside") {
            Ipv4Addr::LOCALHOST
        } else {
            PUBLIC
        };
        Box::pin(async move { Ok(vec![IpAddr::V4(address)]) })
    }
}

fn fetcher(proxy: String) -> HttpFetcher {
    let options = CrawlOptions {
        seeds: vec!["http://seed.example/".to_owned()],
        ..CrawlOptions::default()
    };
    let http = HttpOptions {
        proxy: Some(Secret::from(proxy)),
        accept_any_certificate: true,
        ..HttpOptions::default()
    };
    HttpFetcher::with_resolver(&CrawlConfig::new(options).unwrap(), &http, Names).unwrap()
}

async fn fetch(fetcher: &HttpFetcher, url: &str) -> Result<Response, FetchError> {
    fetcher
        .fetch(Request::new(url.parse().unwrap(), ResourceKind::Page))
        .await
}

async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[tokio::test]
async fn https_goes_through_a_tunnel_that_alone_carries_the_login() {
    let (listener, port) = listen().await;
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let connect = head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.unwrap();
        let mut stream = self_signed().accept(stream).await.unwrap();
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        stream.write_all(&html("by tunnel")).await.unwrap();
        stream.shutdown().await.unwrap();
        (connect, String::from_utf8_lossy(&request[..length]).into_owned())
    });
    let fetcher = fetcher(format!("http://me:secret@127.0.0.1:{port}"));
    assert_eq!(
        fetch(&fetcher, "https://far.example/a").await.unwrap().body,
        b"by tunnel"
    );
    let (connect, request) = serving.await.unwrap();
    assert!(connect.starts_with("CONNECT far.example:443 HTTP/1.1\r\n"), "{connect}");
    assert!(
        connect.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"),
        "{connect}"
    );
    assert!(request.starts_with("GET /a HTTP/1.1\r\n"), "{request}");
    assert!(!request.to_lowercase().contains("proxy"), "{request}");
}

#[tokio::test]
async fn a_socks5_proxy_gets_the_checked_address_and_the_login() {
    let (listener, port) = listen().await;
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // RFC 1928 and RFC 1929: the greeting offers a password, which is accepted, then an IPv4 address and a port.
        let mut greeting = [0; 3];
        stream.read_exact(&mut greeting).await.unwrap();
        stream.write_all(&[5, 2]).await.unwrap();
        let mut login = [0; 11];
        stream.read_exact(&mut login).await.unwrap();
        stream.write_all(&[1, 0]).await.unwrap();
        let mut target = [0; 10];
        stream.read_exact(&mut target).await.unwrap();
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let request = head(&mut stream).await;
        stream.write_all(&html("by socks")).await.unwrap();
        (greeting, login, target, request)
    });
    let fetcher = fetcher(format!("socks5://me:secret@127.0.0.1:{port}"));
    let error = fetch(&fetcher, "http://inside.example/").await.unwrap_err();
    assert!(matches!(error, FetchError::AddressForbidden), "{error:?}");
    let page = fetch(&fetcher, "http://far.example/").await.unwrap();
    assert_eq!(page.body, b"by socks");
    let (greeting, login, target, request) = serving.await.unwrap();
    assert_eq!(greeting, [5, 1, 2]);
    assert_eq!(&login, b"\x01\x02me\x06secret");
    assert_eq!(target, [5, 1, 0, 1, 8, 8, 4, 4, 0, 80]);
    assert!(
        request.starts_with("GET / HTTP/1.1\r\n") && request.contains("Host: far.example\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn a_link_to_the_name_of_the_proxy_does_not_lead_inside() {
    let (listener, port) = listen().await;
    drop(listener);
    let fetcher = fetcher(format!("http://inside.example:{port}"));
    let error = fetch(&fetcher, "http://inside.example:9090/").await.unwrap_err();
    assert!(matches!(error, FetchError::AddressForbidden), "{error:?}");
}
