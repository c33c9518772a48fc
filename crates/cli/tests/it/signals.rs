//! Signals to a crawl, and the files of a killed process.

#![cfg(unix)]
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{PROGRAM, command, folder, has, lines, lines_of, one_line, succeeds};
use crate::servers::{answer as answer_of, path_in};

/// A site whose first page links to `/held`, which answers when the test lets it.
struct Site {
    port: u16,
    held: Receiver<TcpStream>,
}

impl Site {
    fn start() -> Self {
        Self::with_first_page("<a href=/held>next</a><a href=http://other.example/>out</a>".to_owned())
    }

    fn with_first_page(html: String) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (to, held) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &html, &to);
            }
        });
        Self { port, held }
    }

    fn seed(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Waits for the request for `/held`.
    fn wait(&self) -> TcpStream {
        self.held.recv_timeout(Duration::from_secs(60)).unwrap()
    }
}

/// Whether this process ignores SIGHUP, the first signal of the mask `SigIgn` in proc(5).
fn ignores_hangups() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}

fn answer(mut stream: TcpStream, first_page: &str, held: &Sender<TcpStream>) {
    let mut head = [0; 4096];
    let length = stream.read(&mut head).unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..length]);
    match path_in(&head) {
        "/" => send(stream, "200 OK", first_page),
        "/held" => held.send(stream).unwrap(),
        _ => send(stream, "404 Not Found", ""),
    }
}

fn send(mut stream: TcpStream, status: &str, body: &str) {
    let _ = stream.write_all(answer_of(status, body).as_bytes());
}

/// A crawl of the site, with its log.
struct Crawl {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Crawl {
    fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Self { child, log }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Reads the log up to the first record of a target.
    #[track_caller]
    fn wait_for(&mut self, target: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.log.read_line(&mut line).unwrap(), 0, "no record of {target}");
            let record: Value = serde_json::from_str(&line).unwrap();
            if record["target"] == target {
                return record;
            }
        }
    }

    /// Waits for the end of the process. Standard error of the result has the rest of the log.
    fn end(mut self) -> Output {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.log.read_to_end(&mut stderr).unwrap();
        self.child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
        let status = self.child.wait().unwrap();
        Output { status, stdout, stderr }
    }
}

impl Drop for Crawl {
    /// Kills the process, also if the test fails.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn crawl(site: &Site, options: &str) -> Crawl {
    let seed = site.seed();
    Crawl::of(&mut command(&format!("--log-format json --delay 0 {options} {seed}")))
}

fn summary(output: &Output) -> Value {
    let log = str::from_utf8(&output.stderr).unwrap();
    let mut summaries = lines(log)
        .into_iter()
        .filter(|record| record["target"] == "crawler::summary");
    summaries.next().unwrap_or_else(|| panic!("no summary: {log}"))
}

#[test]
fn the_first_signal_of_each_kind_lets_requests_in_flight_finish() {
    // A crawl under `nohup` ignores SIGHUP, and so does one that these tests start when they run under it.
    let kinds = ["HUP", "TERM", "INT"]
        .into_iter()
        .filter(|kind| *kind != "HUP" || !ignores_hangups());
    let folder = folder("signals");
    for signal in kinds {
        let pages = folder.path(signal);
        let site = Site::start();
        let mut crawl = crawl(&site, &format!("--output {pages}"));
        let held = site.wait();
        crawl.signal(signal);
        let record = crawl.wait_for("crawler::signals");
        assert_eq!(record["signal"], format!("SIG{signal}"));
        assert_eq!(record["level"], "WARN");
        send(held, "200 OK", "<a href=/never>never</a>");
        let output = crawl.end();
        assert_eq!(output.status.code(), Some(0));
        let summary = summary(&output);
        assert_eq!(summary["ending"], "stopped", "{summary}");
        has(&summary, json!({"pages": 2, "cut_short": 0}));
        assert_eq!(lines_of(&pages).len(), 2);
    }
}

#[test]
fn the_second_signal_ends_the_crawl_at_once() {
    let site = Site::start();
    let mut crawl = crawl(&site, "");
    let _held = site.wait();
    crawl.signal("TERM");
    crawl.wait_for("crawler::signals");
    crawl.signal("INT");
    let output = crawl.end();
    let summary = summary(&output);
    has(&summary, json!({"pages": 1, "cut_short": 1}));
}

#[cfg(target_os = "linux")]
#[test]
fn the_third_signal_ends_a_crawl_that_waits_for_the_reader_of_its_output() {
    // The output is larger than the buffer of a pipe, which is never read.
    let links: String = (0..4000)
        .map(|page| format!("<a href=/{page}/{}>x</a>", "x".repeat(99)))
        .collect();
    let site = Site::with_first_page(links);
    let mut command = command(&format!("--log-format json --delay 0 --links - {}", site.seed()));
    // The thread that waits for the reader must not be the one that receives signals.
    let mut crawl = Crawl::of(command.env("TOKIO_WORKER_THREADS", "1"));
    let (_ended, is_ended) = channel::<()>();
    let id = crawl.child.id().to_string();
    thread::spawn(move || {
        if is_ended.recv_timeout(Duration::from_secs(30)) == Err(RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-s", "KILL", &id]).status();
        }
    });
    let is_blocked = |crawl: &Crawl| {
        let name = format!("/proc/{}/task", crawl.child.id());
        let tasks = fs::read_dir(name).unwrap().flatten();
        let mut waits = tasks.map(|task| fs::read_to_string(task.path().join("wchan")).unwrap_or_default());
        waits.any(|place| place.contains("pipe_w"))
    };
    let started = Instant::now();
    while !is_blocked(&crawl) && started.elapsed() < Duration::from_secs(3) {
        thread::sleep(Duration::from_millis(10));
    }
    for _ in 0..2 {
        crawl.signal("TERM");
        crawl.wait_for("crawler::signals");
    }
    crawl.signal("TERM");
    let asked = Instant::now();
    let status = loop {
        match crawl.child.try_wait().unwrap() {
            Some(status) => break status,
            None if asked.elapsed() > Duration::from_secs(5) => panic!("it still waits for the reader"),
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    assert_eq!(status.code(), Some(1));
}

#[cfg(target_os = "linux")]
#[test]
fn a_crawl_under_nohup_ignores_sighup() {
    let site = Site::start();
    let mut nohup = Command::new("nohup");
    nohup.args([PROGRAM, "--log-format", "json", "--delay", "0", &site.seed()]);
    // Without a terminal `nohup` writes no message.
    nohup.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut crawl = Crawl::of(&mut nohup);
    let held = site.wait();
    crawl.signal("HUP");
    crawl.signal("USR1");
    // The crawl still runs, and has handled the signal before.
    crawl.wait_for("crawler::status");
    send(held, "200 OK", "the end");
    let output = crawl.end();
    let summary = summary(&output);
    assert_eq!(summary["ending"], "drained", "{summary}");
    assert_eq!(summary["pages"], 2);
}

#[test]
fn sigusr1_logs_a_status_line_within_about_a_second_also_with_quiet() {
    let site = Site::start();
    let mut crawl = crawl(&site, "-qq");
    let held = site.wait();
    let asked = Instant::now();
    crawl.signal("USR1");
    let status = crawl.wait_for("crawler::status");
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert_eq!(status["level"], "INFO");
    assert_eq!(status["pages"], 1, "{status}");
    assert_eq!(status["in_flight"], 1, "{status}");
    assert_eq!(status["queued"], 0, "{status}");
    assert_eq!(status["origins_away"], 0, "{status}");
    assert_eq!(status["saturation_level"], "healthy", "{status}");
    #[cfg(target_os = "linux")]
    assert!(
        status["resident_memory_bytes"].as_u64().unwrap() > 1_000_000,
        "{status}"
    );
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("1 pages in ") && message.contains(", 1 in flight, "),
        "{status}"
    );
    send(held, "200 OK", "the end");
    assert_eq!(crawl.end().status.code(), Some(0));
}

#[test]
fn the_lines_of_a_page_are_on_disk_within_a_second_also_after_a_kill() {
    let site = Site::start();
    let folder = folder("killed");
    let files = ["output", "links", "refused", "warc"].map(|name| folder.path(name));
    let [pages, links, refused, archive] = &files;
    let options = format!("-q --output {pages} --links {links} --refused {refused} --warc {archive}");
    let mut crawl = crawl(&site, &options);
    let _held = site.wait();
    let fetched = Instant::now();
    let is_written = |file: &String| fs::read_to_string(file).is_ok_and(|text| text.contains(&site.seed()));
    while !files.iter().all(is_written) {
        let missing: Vec<_> = files.iter().filter(|file| !is_written(file)).collect();
        // Twice the documented time, with a margin for a busy machine.
        assert!(fetched.elapsed() < Duration::from_secs(3), "not on disk: {missing:?}");
        thread::sleep(Duration::from_millis(5));
    }
    crawl.child.kill().unwrap();
    crawl.child.wait().unwrap();
    for (file, count) in [(pages, 1), (links, 2), (refused, 1)] {
        assert_eq!(lines_of(file).len(), count, "{file}");
    }
    let archive = fs::read_to_string(archive).unwrap();
    // The responses for robots.txt and for the page.
    assert_eq!(archive.matches("WARC-Type: response").count(), 2);
    assert!(archive.ends_with("\r\n\r\n"));
}

/// Returns whether the process is stopped: the state of proc_pid_stat(5).
fn is_stopped(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_z_stops_the_process_with_nothing_in_flight_and_fg_lets_it_go_on() {
    let site = Site::start();
    let folder = folder("suspended");
    let metrics = folder.path("crawler.prom");
    let mut crawl = crawl(
        &site,
        &format!("--state {} --metrics-file {metrics}", folder.path("state")),
    );
    let held = site.wait();
    crawl.signal("TSTP");
    assert_eq!(crawl.wait_for("crawler::signals")["signal"], "SIGTSTP");
    send(held, "200 OK", "<a href=/last>last</a>");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_stopped(crawl.child.id()) {
        assert!(Instant::now() < deadline, "the process does not stop");
        thread::yield_now();
    }
    // Nobody takes the silence of its metrics for a crash.
    let metrics = fs::read_to_string(metrics).unwrap();
    assert!(metrics.contains("crawler_phase{phase=\"paused\"} 1"), "{metrics}");
    crawl.signal("CONT");
    assert_eq!(crawl.wait_for("crawler::signals")["signal"], "SIGCONT");
    let output = crawl.end();
    let summary = summary(&output);
    has(&summary, json!({"ending": "drained", "pages": 2}));
    assert_eq!(summary["by_status"]["404"], 1, "{summary}");
}

#[test]
fn sigcont_before_the_process_stops_cancels_the_pause() {
    let site = Site::start();
    let mut crawl = crawl(&site, "");
    let held = site.wait();
    crawl.signal("TSTP");
    assert_eq!(crawl.wait_for("crawler::signals")["signal"], "SIGTSTP");
    crawl.signal("CONT");
    assert_eq!(crawl.wait_for("crawler::signals")["signal"], "SIGCONT");
    send(held, "200 OK", "<a href=/last>last</a>");
    has(&summary(&crawl.end()), json!({"ending": "drained", "pages": 2}));
}

/// Sends an order of the page, with what the line about the server says.
fn order(watch: &Value, name: &str) {
    let (address, token) = (watch["address"].as_str().unwrap(), watch["token"].as_str().unwrap());
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!("POST /{name} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
}

#[test]
fn a_pause_by_the_page_is_in_the_log_and_the_status_and_does_not_outlive_the_process() {
    let site = Site::start();
    let folder = folder("paused");
    let state = folder.path("state");
    let status = || -> Value { serde_json::from_str(&succeeds(&["status", "--json", &state]).stdout).unwrap() };
    let text = || succeeds(&["status", &state]).stdout;
    // The address is what the option is for, so -q does not hide it.
    let options = format!("-q --watch 0 --state {state}");
    let mut crawl = crawl(&site, &options);
    let watch = crawl.wait_for("crawler::watch");
    let held = site.wait();
    assert_eq!(status()["paused"], false);
    let mut levels = Vec::new();
    for (name, said) in [("pause", "pausing"), ("resume", "continuing"), ("pause", "pausing")] {
        order(&watch, name);
        let record = crawl.wait_for("crawler::watch");
        assert!(record["message"].as_str().unwrap().starts_with(said), "{record}");
        levels.push(record["level"].clone());
    }
    assert!(levels.iter().all(|level| *level == levels[0]), "{levels:?}");
    let deadline = Instant::now() + Duration::from_secs(60);
    while status()["paused"] == false {
        assert!(Instant::now() < deadline, "the status says nothing of the pause");
        thread::yield_now();
    }
    assert!(text().contains("paused, process "), "{}", text());
    assert!(
        one_line(&text()).contains("or Resume on its page, continues it; after Ctrl-Z, fg or SIGCONT alone")
            && !text().contains("held up by"),
        "{}",
        text()
    );
    let hosts = succeeds(&["hosts", &state]).stdout;
    assert!(hosts.contains("\nin a pause: no host is asked\n"), "{hosts}");
    drop(crawl);
    drop(held);
    has(&status(), json!({"paused": false, "running": false}));
    let hosts = succeeds(&["hosts", &state]).stdout;
    assert!(hosts.contains("\nnot running: no host is asked\n"), "{hosts}");
    assert!(
        text().contains("ended in a pause: the same command continues it"),
        "{}",
        text()
    );
    let mut again = self::crawl(&site, &options);
    let record = again.wait_for("crawler::state");
    assert!(
        record["message"].as_str().unwrap().contains("ended in a pause"),
        "{record}"
    );
    send(site.wait(), "200 OK", "the end");
    has(&summary(&again.end()), json!({"ending": "drained", "pages": 2}));
    assert!(!text().contains("in a pause"), "{}", text());
}

#[test]
fn a_pause_by_ctrl_z_that_the_page_ends_does_not_stop_the_process_at_a_later_pause() {
    let site = Site::start();
    let folder = folder("resumed");
    let metrics = folder.path("crawler.prom");
    let mut crawl = crawl(&site, &format!("--watch 0 --metrics-file {metrics}"));
    let watch = crawl.wait_for("crawler::watch");
    let held = site.wait();
    crawl.signal("TSTP");
    assert_eq!(crawl.wait_for("crawler::signals")["signal"], "SIGTSTP");
    let is_shown = |phase: &str| {
        let deadline = Instant::now() + Duration::from_secs(60);
        let row = format!("crawler_phase{{phase=\"{phase}\"}} 1");
        while !fs::read_to_string(&metrics).unwrap().contains(&row) {
            assert!(Instant::now() < deadline, "the crawl is not {phase}");
            thread::yield_now();
        }
    };
    is_shown("pausing");
    order(&watch, "resume");
    is_shown("running");
    order(&watch, "pause");
    send(held, "200 OK", "<a href=/last>last</a>");
    is_shown("paused");
    order(&watch, "resume");
    has(&summary(&crawl.end()), json!({"ending": "drained", "pages": 2}));
}
