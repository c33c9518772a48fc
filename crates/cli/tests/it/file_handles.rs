//! A crawl of more hosts than there are file handles: no page is lost, and no host is reported as away.

#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Output;

use crate::program::{command, folder, run_with_limit};

const HOSTS: usize = 200;

/// What happens to a connection after robots.txt was sent over it.
#[derive(Clone, Copy)]
enum AfterRobots {
    Kept,
    Closed,
}

/// Starts a server that keeps connections open until the client closes them, except those of `after_robots`. Its first page links to
/// many hosts, all of which it serves.
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

/// Crawls all hosts in a process with a fixed limit of open files.
fn crawl_with_limit(files: usize, options: &str, after_robots: AfterRobots) -> Output {
    let port = serve(after_robots);
    let seed = format!("http://h0.localhost:{port}/start");
    let arguments = format!("-q --scope any --allow-private-addresses --delay 0.5 {options} {seed}");
    run_with_limit(&format!("-n {files}"), &arguments)
}

/// Returns the row of the summary with this label.
#[track_caller]
fn line<'s>(summary: &'s str, label: &str) -> &'s str {
    let found = summary.lines().find_map(|line| line.trim().strip_prefix(label));
    found.unwrap_or_else(|| panic!("{label}: {summary}")).trim()
}

/// Checks that every page was fetched, and that no host was reported as away for a lack of file handles.
#[track_caller]
fn assert_no_page_lost_and_no_host_away(summary: &str, log: &str) {
    assert!(line(summary, "pages").starts_with("201 "), "{summary}{log}");
    for absent in ["\n  failed", "not fetched"] {
        assert!(!summary.contains(absent), "{summary}{log}");
    }
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
    assert_no_page_lost_and_no_host_away(&summary, &log);
    // A request that meets the limit is retried. Here none does.
    assert!(!summary.contains("retried because"), "{summary}{log}");
    assert!(!log.contains("out of file handles"), "{log}");
}

#[test]
fn the_number_of_requests_follows_the_limit_so_that_outputs_find_handles() {
    let folder = folder("file-handles");
    let [archive, bodies, pages, state] =
        ["pages.warc.gz", "bodies", "pages.jsonl", "state"].map(|name| folder.path(name));
    let outputs = format!("--warc {archive} --set output-max-bytes=1 --save {bodies} -o {pages}");
    let options = format!("--concurrency 100 --state {state} {outputs}");
    let output = crawl_with_limit(40, &options, AfterRobots::Closed);
    let (summary, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{summary}{log}");
    assert_no_page_lost_and_no_host_away(&summary, &log);
    let told = "the limit of 40 open files leaves room for 4 of 100 concurrent requests";
    assert_eq!(log.matches(told).count(), 1, "{log}");
    assert!(!log.contains("out of file handles"), "{log}");
}

#[test]
fn a_limit_that_is_too_low_for_a_crawl_is_told_at_once() {
    for (limit, arguments) in [(7, "http://localhost:1/"), (15, "http://localhost:1/"), (15, "demo")] {
        let output = run_with_limit(&format!("-n {limit}"), arguments);
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{log}");
        let told = format!(
            "the limit of open files is {limit}, and a crawl needs at least 16: raise the hard limit (ulimit -Hn"
        );
        assert!(log.contains(&told), "{log}");
    }
    // The soft limit is raised.
    for (limits, arguments) in [("-Sn 7", "demo -q"), ("-n 7", "completions bash")] {
        let output = run_with_limit(limits, arguments);
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{limits} {arguments}: {log}");
    }
}

#[cfg(target_os = "linux")]
fn answer_and_close(mut stream: TcpStream, status: &str) {
    let request = BufReader::new(&stream).lines();
    assert!(request.map(Result::unwrap).any(|line| line.is_empty()));
    let rest = "Content-Length: 0\r\nConnection: close\r\n\r\n";
    write!(stream, "HTTP/1.1 {status}\r\n{rest}").unwrap();
}

/// The limit falls once the crawl has begun, as if other files of the program took the handles.
#[test]
#[cfg(target_os = "linux")]
fn a_lack_of_file_handles_is_logged_once_and_loses_no_page() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = serve(AfterRobots::Closed);
    let seed = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
    let options = "-q --scope any --allow-private-addresses --delay 0.5 --concurrency 100";
    let crawl = command(&format!("{options} {seed}")).spawn().unwrap();
    let process = crawl.id().try_into().unwrap();
    std::thread::spawn(move || {
        let (robots, _) = listener.accept().unwrap();
        rlimit::prlimit(process, rlimit::Resource::NOFILE, Some((40, 40)), None).unwrap();
        answer_and_close(robots, "404 Not Found");
        let (first, _) = listener.accept().unwrap();
        let start = format!("http://h0.localhost:{port}/start");
        answer_and_close(first, &format!("302 Found\r\nLocation: {start}"));
    });
    let output = crawl.wait_with_output().unwrap();
    let (summary, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_no_page_lost_and_no_host_away(&summary, &log);
    assert_eq!(log.matches("out of file handles").count(), 1, "{log}");
    assert!(log.contains("ulimit -n"), "{log}");
}
