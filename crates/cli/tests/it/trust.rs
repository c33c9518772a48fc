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

/// The environment, the arguments, what the line of the page has, and what the log says. Nobody answers at 255.255.255.255.
const ENVIRONMENTS: &str = "\
HTTP_PROXY={proxy} | http://255.255.255.255:9/ | status 203 | go through the proxy at 127.0.0.1, as
http_proxy={address}; HTTP_PROXY=http://127.0.0.1:1 | http://255.255.255.255:9/ | status 203 | go through the proxy at 127.0.0.1, as
ALL_PROXY=http://me:hunter2@{address}; NO_PROXY=other.example | http://255.255.255.255:9/ | status 203 | 1, as ALL_PROXY says
HTTPS_PROXY={proxy} | http://255.255.255.255:9/ |  | is away: no connection:
HTTP_PROXY={proxy}; NO_PROXY=far.example, 255.0.0.0/8 | http://255.255.255.255:9/ |  | is away: no connection:
HTTP_PROXY=http://127.0.0.1:1 | http://255.255.255.255:9/ |  | is away: no connection: the proxy at 127.0.0.1:1 does not answer:
https_proxy=http://127.0.0.1:1 | https://255.255.255.255:9/ |  | no connection: the proxy at 127.0.0.1:1 does not answer:
A=b | --proxy http://127.0.0.1:1 http://255.255.255.255:9/ |  | no connection: the proxy at 127.0.0.1:1 does not answer:
all_proxy=socks5://127.0.0.1:1 | https://255.255.255.255:9/ |  | no connection: the proxy does not connect:
HTTP_PROXY={proxy}; no_proxy=* | http://255.255.255.255:9/ |  | is away: no connection:
HTTP_PROXY={proxy} | --set environment-proxies=false http://255.255.255.255:9/ |  | is away: no connection:
HTTP_PROXY={proxy} | http://127.0.0.1:{port}/ | status 200 | go through the proxy at 127.0.0.1, as
HTTP_PROXY={proxy} | http://localhost.:{port}/ | status 200 | go through the proxy at 127.0.0.1, as
HTTP_PROXY={proxy} | http://0.0.0.0:{port}/ | status 200 | go through the proxy at 127.0.0.1, as
HTTP_PROXY={proxy} | http://[::ffff:127.0.0.1]:{port}/ | status 200 | go through the proxy at 127.0.0.1, as
HTTP_PROXY={proxy} | --untrusted-seeds http://127.0.0.1:{port}/ |  | are ignored, because
all_proxy=socks://me:hunter2@127.0.0.1:1 | http://127.0.0.1:{port}/ |  | all_proxy cannot be used
all_proxy=socks://127.0.0.1:1 | http://127.0.0.1:{port}/ |  | --set environment-proxies=false";

#[test]
fn the_proxies_of_the_environment_are_used_and_named_unless_an_option_forbids_it() {
    let site = server_of(|_| answer("200 OK", "<p>direct"));
    let proxy = server_of(|_| answer("203 By Proxy", "<p>by proxy"));
    let address = proxy.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let port = site.trim_end_matches('/').rsplit(':').next().unwrap();
    let mut wrong = Vec::new();
    for case in ENVIRONMENTS.lines() {
        let case = case
            .replace("{proxy}", &proxy)
            .replace("{address}", &address)
            .replace("{port}", port);
        let [variables, arguments, status, says] = case.split(" | ").collect::<Vec<_>>().try_into().unwrap();
        let mut command = command(&format!("-o - --set max-first-downtime=0.1 {arguments}"));
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        let variables = variables.split("; ").filter_map(|variable| variable.split_once('='));
        let output = command.envs(variables).output().unwrap();
        let [lines, log] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        if !(lines.contains(&status.replace("status ", "\"status\":")) && log.contains(says)) {
            wrong.push(format!("{case}: {lines} {log}"));
        }
        assert!(!log.contains("hunter2"), "{log}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
