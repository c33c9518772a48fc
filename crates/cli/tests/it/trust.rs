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

#[test]
fn the_proxies_of_the_environment_are_used_and_named_unless_an_option_forbids_it() {
    let site = server_of(|_| answer("200 OK", "<p>direct"));
    let proxy = server_of(|_| answer("203 By Proxy", "<p>by proxy"));
    let address = proxy.trim_start_matches("http://").trim_end_matches('/').to_owned();
    // A seed at which nobody answers.
    let far = "http://255.255.255.255:9/";
    let port = site.trim_end_matches('/').rsplit(':').next().unwrap();
    let [dotted, unspecified, mapped] =
        ["localhost.", "0.0.0.0", "[::ffff:127.0.0.1]"].map(|host| format!("http://{host}:{port}/"));
    let secret = format!("http://me:hunter2@{address}");
    let used = "go through the proxy at 127.0.0.1, as";
    let away = "is away: no connection: ";
    let (by_proxy, direct, nowhere) = ("\"status\":203", "\"status\":200", "");
    let mut wrong = Vec::new();
    for (variables, argument, seed, expected, says) in [
        (&[("HTTP_PROXY", &*proxy)][..], "", far, by_proxy, used),
        (
            &[("http_proxy", &*address), ("HTTP_PROXY", "http://127.0.0.1:1")],
            "",
            far,
            by_proxy,
            used,
        ),
        (
            &[("ALL_PROXY", &*secret), ("NO_PROXY", "other.example")],
            "",
            far,
            by_proxy,
            "1, as ALL_PROXY says",
        ),
        (&[("HTTPS_PROXY", &*proxy)], "", far, nowhere, away),
        (
            &[("HTTP_PROXY", &*proxy), ("NO_PROXY", "far.example, 255.0.0.0/8")],
            "",
            far,
            nowhere,
            away,
        ),
        (&[("HTTP_PROXY", &*proxy), ("no_proxy", "*")], "", far, nowhere, away),
        (
            &[("HTTP_PROXY", &*proxy)],
            "--set environment-proxies=false",
            far,
            nowhere,
            away,
        ),
        (&[("HTTP_PROXY", &*proxy)], "", &*site, direct, used),
        (&[("HTTP_PROXY", &*proxy)], "", &*dotted, direct, used),
        (&[("HTTP_PROXY", &*proxy)], "", &*unspecified, direct, used),
        (&[("HTTP_PROXY", &*proxy)], "", &*mapped, direct, used),
        (
            &[("HTTP_PROXY", &*proxy)],
            "--untrusted-seeds",
            &*site,
            "",
            "are ignored, because",
        ),
        (
            &[("all_proxy", "socks://me:hunter2@127.0.0.1:1")],
            "",
            &*site,
            "",
            "all_proxy cannot be used",
        ),
        (
            &[("all_proxy", "socks://127.0.0.1:1")],
            "",
            &*site,
            "",
            "--set environment-proxies=false",
        ),
    ] {
        let mut command = command(&format!("-o - --set max-first-downtime=0.1 {argument} {seed}"));
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let (lines, log) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        if !(lines.contains(expected) && log.contains(says)) {
            wrong.push(format!("{variables:?} {argument} {seed}: {lines} {log}"));
        }
        assert!(!log.contains("hunter2"), "{log}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
