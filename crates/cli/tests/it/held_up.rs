//! What holds a crawl up: the log, the status, the hosts and the metrics say the same.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Child;
use std::thread;

use serde_json::Value;

use crate::program::{command, folder, lines, one_line, succeeds};
use crate::servers::{answer, closed_port, path_in};

/// Starts a server on an address of its own, which is a host of its own. Returns its URL.
fn host(address: &str, page: &'static str, robots: &'static str) -> String {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let seed = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap_or(0);
            let is_robots = path_in(&String::from_utf8_lossy(&head[..length])) == "/robots.txt";
            let _ = stream.write_all(answer(if is_robots { robots } else { page }, "").as_bytes());
        }
    });
    seed
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_log_the_status_the_hosts_why_and_the_metrics_name_the_same_host_and_state() {
    let folder = folder("held-up");
    let (state, metrics) = (folder.path("state"), folder.path("metrics.prom"));
    let throttles = host(
        "127.0.0.2",
        "429 Too Many Requests\r\nRetry-After: 200",
        "404 Not Found",
    );
    let robots = host("127.0.0.3", "200 OK", "503 Service Unavailable");
    let refuses = format!("http://127.0.0.4:{}/", closed_port());
    let options = "--log-format json --allow-private-addresses --delay 0 --max-time 5m";
    let arguments = format!("{options} --state {state} --metrics-file {metrics} {throttles} {robots} {refuses}");
    let mut crawl = Killed(command(&arguments).spawn().unwrap());
    let mut records = BufReader::new(crawl.0.stderr.take().unwrap()).lines();
    let mut next = |is_wanted: &dyn Fn(&Value) -> bool| loop {
        let record: Value = serde_json::from_str(&records.next().unwrap().unwrap()).unwrap();
        if is_wanted(&record) {
            return record;
        }
    };
    let mut events: Vec<_> = (0..3)
        .map(|_| next(&|record| record["target"] == "crawler::hosts"))
        .collect();
    events.sort_by_key(|event| event["event"].to_string());
    let words: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(words, ["away", "resting", "robots_failing"], "{events:?}");
    assert!(events.iter().all(|event| event["level"] == "WARN"), "{events:?}");
    assert_eq!(events[1]["seconds"], 200.0);

    let progress = next(&|record| record["target"] == "crawler::progress" && !record["held_up_by"].is_null());
    let message = progress["message"].as_str().unwrap();
    assert_eq!(progress["held_up_by"], "127.0.0.2", "{progress}");
    assert_eq!(progress["host_state"], "resting");
    assert!(message.contains("held up by 127.0.0.2: resting for ") && message.contains("Retry-After: 3.3 min"));
    assert!(
        (190.0..=200.0).contains(&progress["held_up_seconds"].as_f64().unwrap()),
        "{progress}"
    );

    let status: Value = serde_json::from_str(&succeeds(&["status", "--json", &state]).stdout).unwrap();
    let held_up_by = &status["held_up_by"];
    assert_eq!(held_up_by["host"], "127.0.0.2", "{status}");
    assert_eq!(held_up_by["until"], progress["host_until"]);
    let text = one_line(&succeeds(&["status", &state]).stdout);
    assert!(text.contains(" held up by 127.0.0.2: resting for "), "{text}");

    let hosts = lines(&succeeds(&["hosts", "--json", &state]).stdout);
    let states: Vec<_> = hosts
        .iter()
        .map(|host| (host["host"].as_str(), host["state"].as_str()))
        .collect();
    assert_eq!(states[0], (Some("127.0.0.2"), Some("resting")));
    assert!(
        states.contains(&(Some("127.0.0.3"), Some("robots_failing"))),
        "{states:?}"
    );
    assert!(states.contains(&(Some("127.0.0.4"), Some("away"))), "{states:?}");
    let table = succeeds(&["hosts", &state]).stdout;
    let rows: Vec<_> = table.lines().skip(2).map(|row| row.split_whitespace().next()).collect();
    let names: Vec<_> = states.iter().map(|(host, _)| *host).collect();
    assert_eq!(rows[0], names[0], "{table}");
    assert_eq!(rows.len(), names.len(), "{table}");

    let why = one_line(&succeeds(&["why", &state, &throttles]).stdout);
    assert!(
        why.contains("; its origin is resting for ") && why.contains("; given up by "),
        "{why}"
    );

    let series = "crawler_held_up_seconds{host=\"127.0.0.2\",state=\"resting\"} ";
    while !fs::read_to_string(&metrics).is_ok_and(|text| text.contains(series)) {
        assert!(crawl.0.try_wait().unwrap().is_none(), "the crawl has ended");
        thread::yield_now();
    }
}

#[test]
fn a_crawl_that_is_stopped_after_answers_to_robots_txt_does_not_say_that_none_came() {
    let robots = host("127.0.0.3", "200 OK", "503 Service Unavailable");
    let arguments = format!("--log-format json --allow-private-addresses --max-time 2s {robots}");
    let output = crate::program::crawler(&arguments);
    let log = String::from_utf8(output.stderr).unwrap();
    let end = lines(&log)
        .into_iter()
        .rfind(|record| record["level"] == "ERROR")
        .unwrap();
    let message = end["message"].as_str().unwrap();
    assert!(
        message.contains("status 503") && !message.contains("before the first answer"),
        "{message}"
    );
}
