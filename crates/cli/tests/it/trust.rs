//! The certificates that the system trusts are those that are trusted; a crawl over http needs none.

// Other systems keep their certificates elsewhere.
#![cfg(target_os = "linux")]
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Output;
use std::thread;

use rustls::{ServerConnection, StreamOwned};

use crate::program::command;
use crate::servers::{AUTHORITY, answer, server_of, tls_config};

fn crawl(seed: &str, certificates: &str) -> Output {
    let mut command = command(&format!("{seed} --ignore-robots -o - -q"));
    command.env("SSL_CERT_FILE", certificates).env_remove("SSL_CERT_DIR");
    command.output().unwrap()
}

/// Starts a site with a certificate, and returns its URL.
fn secure_site() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let seed = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(tls_config(&[])).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            // Without trust there is no request.
            if stream.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {
                stream.write_all(answer("200 OK", "<p>secure").as_bytes()).unwrap();
            }
        }
    });
    seed
}

#[test]
fn a_site_is_crawled_whose_certificate_the_system_trusts() {
    let seed = secure_site();
    let output = crawl(&seed, AUTHORITY);
    let lines = String::from_utf8_lossy(&output.stdout);
    assert!(lines.contains(&format!("{{\"url\":\"{seed}\"")), "{output:?}");
    // Without certificates it does not begin.
    let output = crawl(&seed, "/dev/null");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && log.contains("No CA certificates"), "{log}");
}

#[test]
fn a_crawl_without_https_reads_no_certificates_and_one_that_comes_to_https_says_what_is_missing() {
    let seed = server_of(|_| answer("200 OK", "<p>plain"));
    let output = crawl(&seed, "/dev/null");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !log.contains("certificate"), "{log}");
    let secure = secure_site();
    let seed = server_of(move |_| {
        answer("301 Moved Permanently", "").replacen("\r\n", &format!("\r\nLocation: {secure}\r\n"), 1)
    });
    let output = crawl(
        &format!("{seed} --allow-private-addresses --set max-first-downtime=0.1"),
        "/dev/null",
    );
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(
        log.contains("no https page can be fetched") && log.contains("ca-certificates"),
        "{log}"
    );
}
