//! The certificates that the system trusts are those that are trusted; a crawl over http needs none.

// Other systems keep their certificates elsewhere.
#![cfg(target_os = "linux")]
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::Arc;
use std::thread;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The authority that signed the certificate of `localhost`.
const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crawler/tests/data/tls/authority.pem");

fn tls_config() -> Arc<ServerConfig> {
    let certificate = CertificateDer::from(include_bytes!("../../../crawler/tests/data/tls/localhost.der").as_slice());
    let key = PrivatePkcs8KeyDer::from(include_bytes!("../../../crawler/tests/data/tls/localhost_key.der").as_slice());
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate], PrivateKeyDer::Pkcs8(key));
    Arc::new(config.unwrap())
}

/// Reads a request, and answers it with a page.
fn answer(mut stream: impl Read + Write, page: &str) -> io::Result<()> {
    let mut request = [0; 4096];
    if stream.read(&mut request)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let length = page.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{page}"
    )?;
    stream.flush()
}

fn answer_in_tls(stream: TcpStream) -> io::Result<()> {
    let connection = ServerConnection::new(tls_config()).map_err(io::Error::other)?;
    answer(StreamOwned::new(connection, stream), "<p>secure")
}

fn crawl(start: &str, certificates: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crawler"))
        .args([start, "--ignore-robots", "-o", "-", "-q"])
        .env("SSL_CERT_FILE", certificates)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap()
}

#[test]
fn a_site_is_crawled_whose_certificate_the_system_trusts() {
    let secure = TcpListener::bind("127.0.0.1:0").unwrap();
    let start = format!("https://localhost:{}/", secure.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in secure.incoming() {
            drop(answer_in_tls(stream.unwrap()));
        }
    });
    let output = crawl(&start, AUTHORITY);
    let lines = String::from_utf8_lossy(&output.stdout);
    assert!(lines.contains(&format!("{{\"url\":\"{start}\"")), "{output:?}");
    // Without certificates it does not begin.
    let output = crawl(&start, "/dev/null");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && log.contains("No CA certificates"), "{log}");
}

#[test]
fn a_crawl_without_https_does_without_certificates() {
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let start = format!("http://localhost:{}/", plain.local_addr().unwrap().port());
    thread::spawn(move || {
        plain
            .incoming()
            .for_each(|stream| drop(answer(stream.unwrap(), "<p>plain")));
    });
    let output = crawl(&start, "/dev/null");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(
        log.contains("no https page can be fetched") && !log.contains("ERROR"),
        "{log}"
    );
}
