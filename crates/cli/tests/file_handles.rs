//! A crawl of more hosts than there are file handles: no page is lost, and no host is blamed.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};

const HOSTS: usize = 200;

/// What becomes of a connection once robots.txt was sent over it.
#[derive(Clone, Copy)]
enum AfterRobots {
    Kept,
    Closed,
}

/// A server that keeps every connection open as long as its client does, but for those it is told to close. Its first page
/// links to many hosts, all of which it is itself.
fn serve(after_robots: AfterRobots) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || answer_all(&stream.unwrap(), port, after_robots));
        }
    });
    port
}

fn answer_all(stream: &TcpStream, port: u16, after_robots: AfterRobots) -> Option<()> {
    let mut lines = BufReader::new(stream).lines();
    loop {
        let request = lines.next()?.ok()?;
        while !lines.next()?.ok()?.is_empty() {}
        let body = if request.starts_with("GET /start ") {
            let link = |n| format!("<a href=http://h{n}.localhost:{port}/></a>");
            (0..HOSTS).map(link).collect()
        } else {
            String::new()
        };
        let length = body.len();
        let mut to = stream;
        write!(
            to,
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .ok()?;
        if matches!(after_robots, AfterRobots::Closed) && request.starts_with("GET /robots.txt ") {
            return None;
        }
    }
}

/// Crawls all hosts in a process that may open so many files, and can raise that no further.
fn crawl_with_limit(files: usize, options: &str, after_robots: AfterRobots) -> Output {
    let port = serve(after_robots);
    let command = format!(
        "ulimit -n {files} && exec \"$CRAWLER\" -q --scope any --allow-private-addresses --delay 0.5 {options} http://h0.localhost:{port}/start"
    );
    Command::new("sh")
        .args(["-c", &command])
        .env("CRAWLER", env!("CARGO_BIN_EXE_crawler"))
        .output()
        .unwrap()
}

/// The line of the summary that begins so.
#[track_caller]
fn line<'s>(summary: &'s str, label: &str) -> &'s str {
    let found = summary.lines().find_map(|line| line.trim().strip_prefix(label));
    found.unwrap_or_else(|| panic!("{label}: {summary}")).trim()
}

/// Every page was fetched, and no host was taken to be away for what this machine had too little of.
#[track_caller]
fn loses_nothing_and_blames_nobody(summary: &str, log: &str) {
    assert!(line(summary, "pages").starts_with("201 "), "{summary}{log}");
    assert!(line(summary, "failed").starts_with("0 pages"), "{summary}{log}");
    assert_eq!(line(summary, "failed by reason"), "none", "{log}");
    assert_eq!(line(summary, "not fetched"), "none", "{log}");
    assert_eq!(line(summary, "complete"), "yes", "{log}");
    for blame in ["is away", "is given up", "robots.txt could not be fetched"] {
        assert!(!log.contains(blame), "{log}");
    }
}

#[test]
fn many_hosts_are_crawled_with_few_file_handles() {
    let output = crawl_with_limit(90, "", AfterRobots::Kept);
    let (summary, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    loses_nothing_and_blames_nobody(&summary, &log);
    // What meets the limit is asked for again; here nothing does.
    assert_eq!(line(&summary, "retried because"), "none", "{log}");
    assert!(!log.contains("out of file handles"), "{log}");
}

#[test]
fn running_out_of_file_handles_is_said_once_and_loses_no_page() {
    // More requests at a time than there can be connections, and pages need new ones.
    let output = crawl_with_limit(40, "--concurrency 100", AfterRobots::Closed);
    let (summary, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    loses_nothing_and_blames_nobody(&summary, &log);
    assert_eq!(log.matches("out of file handles").count(), 1, "{log}");
    assert!(log.contains("ulimit -n"), "{log}");
}
