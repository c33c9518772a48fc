//! The system's certificates are read when they are needed, and again if they could not be read.

// Other systems keep their certificates elsewhere.
#![cfg(target_os = "linux")]
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
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

/// Serves a page over HTTP, which links to one over HTTPS. Returns the URL of the first, and the listener and the URL of the second.
///
/// `at_request` is called before the first one is sent.
fn serve_link_to_https(at_request: impl Fn() + Send + 'static) -> (String, TcpListener, String) {
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let secure = TcpListener::bind("127.0.0.1:0").unwrap();
    let start = format!("http://localhost:{}/", plain.local_addr().unwrap().port());
    let target = format!("https://localhost:{}/", secure.local_addr().unwrap().port());
    let page = format!("<a href='{target}'>secure</a>");
    thread::spawn(move || {
        for stream in plain.incoming() {
            at_request();
            drop(answer(stream.unwrap(), &page));
        }
    });
    (start, secure, target)
}

#[test]
fn certificates_that_could_not_be_read_are_read_again_for_the_next_connection() {
    let (start, secure, target) = serve_link_to_https(|| ());
    let certificates = std::env::temp_dir().join(format!("crawler-trust-{}.pem", std::process::id()));
    fs::write(&certificates, "").unwrap();
    let path = certificates.clone();
    // There are certificates once a handshake has failed without them.
    thread::spawn(move || {
        for stream in secure.incoming() {
            if answer_in_tls(stream.unwrap()).is_err() {
                fs::copy(AUTHORITY, &path).unwrap();
            }
        }
    });
    let output = Command::new(env!("CARGO_BIN_EXE_crawler"))
        .args([&start, "--ignore-robots", "--delay", "0", "-o", "-", "-q"])
        .args(["--scope", "any", "--allow-private-addresses"])
        .args(["--set=retry-wait=0.05", "--set=retry-jitter=0"])
        .env("SSL_CERT_FILE", &certificates)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let _ = fs::remove_file(&certificates);
    let lines = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(lines.contains(&format!("{{\"url\":\"{target}\"")), "{lines}{log}");
    assert_eq!(log.matches("no https page can be fetched").count(), 1, "{log}");
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
    let output = Command::new(env!("CARGO_BIN_EXE_crawler"))
        .args([&start, "--ignore-robots", "-o", "-", "-q"])
        .env("SSL_CERT_FILE", "/dev/null")
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(!log.contains("ERROR"), "{log}");
}

/// Reading the certificates takes a file handle. A crawl that has none left for it must not take the host for one without a trusted certificate.
#[test]
fn certificates_for_which_no_file_handle_is_left_are_read_later() {
    let mut were_short = 0;
    for limit in 8..18 {
        // With few, there is no moment at which both the connection and the file are open.
        let is_enough = limit >= 14;
        // The limit falls once the crawl has begun, as if other files of the program took the handles.
        let (known, process) = mpsc::channel();
        let (start, secure, target) = serve_link_to_https(move || {
            let process = process.recv().unwrap();
            rlimit::prlimit(process, rlimit::Resource::NOFILE, Some((limit, limit)), None).unwrap();
        });
        thread::spawn(move || {
            for stream in secure.incoming() {
                thread::spawn(move || answer_in_tls(stream.unwrap()));
            }
        });
        let crawl = Command::new(env!("CARGO_BIN_EXE_crawler"))
            .args([&start, "--ignore-robots", "--delay", "0", "-o", "-", "-v"])
            .args(["--scope", "any", "--allow-private-addresses"])
            .args(["--set=retry-wait=0.01", "--set=retry-jitter=0"])
            .args(["--max-time", if is_enough { "60" } else { "1" }])
            .env_remove("RUST_LOG")
            .env("SSL_CERT_FILE", AUTHORITY)
            .env_remove("SSL_CERT_DIR")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        known.send(crawl.id().try_into().unwrap()).unwrap();
        let output = crawl.wait_with_output().unwrap();
        let lines = String::from_utf8_lossy(&output.stdout);
        let log = String::from_utf8_lossy(&output.stderr);
        let is_short = |line: &str| line.contains("a certificate is left out") && line.contains("Too many open files");
        were_short += usize::from(log.lines().any(is_short));
        for blame in ["is away", "is given up", "no https page can be fetched"] {
            assert!(!log.contains(blame), "{limit}: {log}");
        }
        if is_enough {
            assert!(
                lines.contains(&format!("{{\"url\":\"{target}\"")),
                "{limit}: {lines}{log}"
            );
        }
    }
    assert!(were_short > 0);
}
