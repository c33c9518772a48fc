//! Orders by command: to the process that runs a crawl, and to its directory.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::Value;

use crate::program::{Folder, command, crawler, fails, folder, one_line, succeeds};
use crate::servers::site_of;

/// A site whose first page links to `/1` up to `/11`, and which has other pages. `/1` is answered when the sender is dropped.
fn site() -> (String, Receiver<()>, Sender<()>) {
    let (ask, asked) = channel();
    let (allow, allowed) = channel();
    let seed = site_of(move |path| match path {
        "/" => Some((1..12).map(|n| format!("<a href=/{n}>x</a>")).collect()),
        "/robots.txt" => None,
        "/1" => {
            let _ = ask.send(());
            let _ = allowed.recv();
            Some(String::new())
        }
        _ => Some(String::new()),
    });
    (seed, asked, allow)
}

/// A crawl that has read the first page, and waits for the next.
struct Running {
    _folder: Folder,
    state: String,
    seed: String,
    allow: Option<Sender<()>>,
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    fn start(name: &str) -> Self {
        let (folder, (seed, asked, allow)) = (folder(name), site());
        // Too long for the path of a socket.
        let state = folder.path(&"state".repeat(30));
        let mut command = command(&format!("--delay 0s --state {state} {seed}"));
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut running = Self {
            _folder: folder,
            state,
            seed,
            allow: Some(allow),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        asked.recv().unwrap();
        assert!(running.line().starts_with("200 "));
        running
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// Gives an order, and returns the answer, which must not be an error.
    fn give(&self, order: &str, rest: &str) -> Value {
        let printed = succeeds(&format!("{order} --json {} {rest}", self.state));
        serde_json::from_str(&printed.stdout).unwrap()
    }

    fn host(&self) -> &str {
        "127.0.0.1"
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.allow = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_crawl_that_runs_obeys_each_order_and_says_what_it_did() {
    let mut running = Running::start("orders");
    let (state, seed, host) = (running.state.clone(), running.seed.clone(), running.host().to_owned());
    assert_eq!(running.give("drop", &host)["dropped"], 10);
    let refused = crawler(&format!("add {state} {seed}extra"));
    assert_eq!(refused.status.code(), Some(3), "a seed was refused");
    assert!(String::from_utf8_lossy(&refused.stdout).ends_with("extra: dropped by order or policy\n"));
    assert_eq!(running.give("allow", &host)["queued"], 10);
    assert_eq!(running.give("allow", &host)["queued"], 0, "they wait");
    assert_eq!(running.give("drop", "shop.example")["unknown"][0], "shop.example");
    assert_eq!(running.give("drop", "--matching /1.$")["crawl"]["dropped"][0], "/1.$");
    let seeds = running
        ._folder
        .file("seeds.txt", &format!("# more\n{seed}extra\tmine\n"));
    let added = running.give("add", &format!("--seeds {seeds} --class 0"));
    assert_eq!((&added["queued"], &added["seen"]), (&1.into(), &0.into()));
    assert_eq!(running.give("add", &format!("{seed}extra"))["seen"], 1);
    let set = running.give("set", &format!("{host} --max-crawl-delay 3s delay=1d --json"));
    assert_eq!(
        (
            &set["hosts"][0][1]["max_crawl_delay"]["secs"],
            &set["hosts"][0][1]["delay"]["secs"]
        ),
        (&3.into(), &86_400.into())
    );
    for (order, message) in [
        (format!("set {state} speed=9"), "has no \"speed\", but delay, max-pages"),
        (
            format!("set {state} {host} delay=fast"),
            "write a duration such as 500ms",
        ),
        (format!("set {state} {host}"), "nothing to change"),
        (
            format!("set {state} {host} delay=1s max-pages 5"),
            "\"max-pages\" is no NAME=VALUE",
        ),
        (format!("set {state} max-pages=0"), "it must be 1 or more"),
        (format!("set {state} min-age=0s"), "it must be more than 0"),
        (format!("set {state} revisit-share=2"), "write a fraction above 0"),
        (format!("drop {state} {seed}1"), "is not a host"),
        (format!("set {state} *.example delay=1s"), "is not a host"),
        (
            format!("drop {state} --matching ("),
            "the drop pattern `(` cannot be used",
        ),
        (
            format!("drop {state} --matching {}", "(a|b){999}".repeat(99)),
            "cannot be used",
        ),
        (format!("add {state} ftp://a.example/"), "cannot be crawled"),
    ] {
        fails(&order, 2, &[message]);
    }
    running.give("set", "revisit-share=25% min-age=10m max-age=7d");
    running.give("pause", "");
    assert_eq!(running.give("pause", "")["said"], "it was paused before");
    let status = succeeds(&format!("status {state}"));
    assert!(
        status.stdout.contains("paused") && status.stdout.contains("dropped=/1.$"),
        "{}",
        status.stdout
    );
    let status = one_line(&status.stdout);
    assert!(
        status.contains("max-age=168h, min-age=10m, revisit-share=0.25"),
        "{status}"
    );
    running.give("unpause", "");
    // Now it runs on, to its end.
    running.give("set", &format!("{host} delay=0s"));
    running.allow = None;
    assert_eq!(running.line(), format!("200 {seed}1\n"), "it was in flight");
    assert_eq!(running.line(), format!("200 {seed}extra\n"), "first, as its class says");
    let mut rest = String::new();
    running.stdout.read_to_string(&mut rest).unwrap();
    assert!(running.child.wait().unwrap().success(), "{rest}");
    assert_eq!(rest.lines().filter(|line| line.starts_with("200 ")).count(), 8);
    assert!(succeeds(&format!("hosts {state}")).stdout.contains("closed=true"));
    let status = succeeds(&format!("status {state}"));
    assert!(status.stdout.contains("by_order: 2"), "{}", status.stdout);
    fails(&format!("pause {state}"), 2, &["the crawl does not run"]);
    assert_eq!(running.give("allow", "--matching /1.$")["queued"], 2);
    let last = succeeds(&format!("resume {state}"));
    assert_eq!(last.stdout.lines().filter(|line| line.starts_with("200 ")).count(), 2);
}

#[test]
fn orders_outlive_a_kill_come_before_the_command_line_and_are_named_at_the_start() {
    let mut running = Running::start("orders-kept");
    let state = running.state.clone();
    running.give("set", "--max-pages 3 --delay 0s");
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    running.allow = None;
    // What a killed process has left answers nobody.
    running.give("drop", "--matching never");
    let resumed = succeeds(&format!("resume {state} --delay 2h --max-pages 9"));
    let named = "orders of earlier runs hold: for the crawl delay=0s, dropped=never, max-pages=3";
    assert!(resumed.stderr.contains(named), "{}", resumed.stderr);
    assert!(resumed.stderr.contains("page budget spent"), "{}", resumed.stderr);
    running.give("set", "max-pages=default delay=default");
    running.give("allow", "--matching never");
    let plain = succeeds(&format!("resume {state} -v --max-time 0"));
    assert!(!plain.stderr.contains("orders of earlier runs"), "{}", plain.stderr);
}

#[test]
fn a_client_that_hangs_or_talks_nonsense_holds_nobody_up() {
    let running = Running::start("orders-hostile");
    let control = std::fs::read(format!("{}/control.json", running.state)).unwrap();
    let control: Value = serde_json::from_slice(&control).unwrap();
    let connect = || UnixStream::connect(control["socket"].as_str().unwrap()).unwrap();
    let _hanging: Vec<_> = (0..8).map(|_| connect()).collect();
    // Whoever gave up waiting has seen no answer: the order is not obeyed later.
    let order = format!("{{\"drop\":{{\"hosts\":[\"{}\"]}}}}", running.host());
    (0..5).for_each(|_| connect().write_all(order.as_bytes()).unwrap());
    for nonsense in [
        "",
        "\0\u{7f}",
        "{\"drop\":{}",
        "{\"explode\":{}}",
        "{\"drop\":{\"hosts\":[\"a\\u0007b\"]}}",
    ] {
        let mut stream = connect();
        stream.write_all(nonsense.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let answer: Value = serde_json::from_reader(stream).unwrap();
        assert!(answer["error"].is_string(), "{nonsense:?}: {answer}");
    }
    assert_eq!(running.give("drop", running.host())["dropped"], 10);
    fails(&format!("drop {}/no a.example", running.state), 2, &["holds no crawl"]);
}
