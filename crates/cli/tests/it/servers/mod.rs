//! Small web servers for one test.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The authority that signed the certificate of `localhost`.
pub(crate) const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crawler/tests/data/tls/authority.pem");

/// Returns the configuration of a server with a certificate for `localhost`.
pub(crate) fn tls_config(protocols: &[&str]) -> Arc<ServerConfig> {
    let certificate =
        CertificateDer::from(include_bytes!("../../../../crawler/tests/data/tls/localhost.der").as_slice());
    let key = include_bytes!("../../../../crawler/tests/data/tls/localhost_key.der").as_slice();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
    let config = ServerConfig::builder().with_no_client_auth();
    let mut config = config.with_single_cert(vec![certificate], key).unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Starts a server that makes an answer from the head of each request. Returns its URL.
pub(crate) fn server_of(answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let seed = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap_or(0);
            let answer = answer(&String::from_utf8_lossy(&head[..length]));
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    seed
}

/// Returns the path in the head of a request.
pub(crate) fn path_in(head: &str) -> &str {
    head.split_whitespace().nth(1).unwrap_or_default()
}

/// Returns an answer with a status such as `200 OK`, after which the connection ends. Behind the status may be more lines of the head.
pub(crate) fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Starts a server of pages, which a function makes of their paths. Returns its URL.
pub(crate) fn site_of(page: impl Fn(&str) -> Option<String> + Send + 'static) -> String {
    server_of(move |head| match page(path_in(head)) {
        Some(body) => answer("200 OK", &body),
        None => answer("404 Not Found", ""),
    })
}

/// Starts a server of this many pages, each of which links to three others. Returns its URL.
pub(crate) fn tree(pages: usize) -> String {
    tree_of(pages, 3)
}

/// Starts a server of this many pages, each of which links to this many others. Returns its URL.
pub(crate) fn tree_of(pages: usize, links: usize) -> String {
    site_of(move |path| {
        let number = path.trim_start_matches('/').parse().ok();
        let number: usize = number.or((path == "/").then_some(0))?;
        let children = (number * links + 1..=number * links + links).filter(|child| *child < pages);
        Some(children.map(|child| format!("<a href=/{child}>x</a>")).collect())
    })
}

/// Returns a port that refuses connections.
pub(crate) fn closed_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}
