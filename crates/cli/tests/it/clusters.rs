//! `--cluster`: processes that share a crawl over a Redis server, and what they refuse.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Arguments as _, Folder, PROGRAM, fails, folder, has, lines_of, succeeds};
use crate::redis_server::{Server, eventually};
use crate::servers::{answer, path_in, server_of};

const SITES: usize = 6;
const PAGES_OF_SITE: usize = 15;

/// Sites on loopback whose pages link to the next one, and to the same one of the next site.
struct Web {
    seed: String,
    /// The URLs that were asked for, but for robots.txt files.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Web {
    fn start() -> Self {
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let requests = Arc::clone(&asked);
        let url = server_of(move |head| {
            let host = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("host: ").map(str::to_owned));
            let host = host.unwrap_or_default();
            let (path, port) = (path_in(head), host.split(':').nth(1).unwrap_or_default());
            let site: Option<usize> = host
                .strip_prefix("site")
                .and_then(|rest| rest.split('.').next()?.parse().ok());
            // A crawler that is killed may leave a head that is empty.
            let page = path.get(1..).unwrap_or_default().parse::<usize>();
            let (Some(site), Ok(page)) = (site, page) else {
                return answer("404 Not Found", "");
            };
            requests.lock().unwrap().push(format!("http://{host}{path}"));
            let next_site = (site + 1) % SITES;
            let mut links = format!("<a href=//site{next_site}.localhost:{port}/{page}>x</a>");
            if page + 1 < PAGES_OF_SITE {
                links += &format!("<a href=/{}>x</a>", page + 1);
            }
            answer("200 OK", &format!("page {page} of site {site}: {links}"))
        });
        let seed = url.replace("127.0.0.1", "site0.localhost") + "0";
        Self { seed, asked }
    }

    /// Returns how many requests there were, but for robots.txt files, and for how many pages.
    fn requests(&self) -> (usize, usize) {
        let mut asked = self.asked.lock().unwrap().clone();
        let all = asked.len();
        asked.sort();
        asked.dedup();
        (all, asked.len())
    }
}

/// A crawl of two processes, with a delay between two requests to a host.
struct Crawl {
    delay: &'static str,
    folder: Folder,
    redis: Server,
    web: Web,
}

impl Crawl {
    fn new(name: &str) -> Self {
        Self::with_delay("50ms", name)
    }

    fn with_delay(delay: &'static str, name: &str) -> Self {
        Self {
            delay,
            folder: folder(name),
            redis: Server::start(""),
            web: Web::start(),
        }
    }

    fn address(&self) -> String {
        format!("redis://{}/web", self.redis.at())
    }

    fn state(&self, partition: u32) -> String {
        self.folder.path(&format!("state-{partition}"))
    }

    fn pages(&self, partition: u32) -> String {
        self.folder.path(&format!("pages-{partition}.jsonl"))
    }

    /// The options of each process, but for what is its own.
    fn common(&self) -> String {
        let seed = &self.web.seed;
        format!("-q --scope any --allow-private-addresses {seed}")
    }

    fn options(&self, partition: u32) -> String {
        let (address, state, pages) = (self.address(), self.state(partition), self.pages(partition));
        let (delay, common) = (self.delay, self.common());
        format!("--delay {delay} {common} --cluster {address} --partition {partition}/2 --state {state} -o {pages}")
    }

    fn start(&self, partition: u32) -> Process {
        self.start_with(&self.options(partition), partition)
    }

    fn start_with(&self, options: &str, partition: u32) -> Process {
        let log = self.folder.path(&format!("log-{partition}"));
        let mut command = Command::new(PROGRAM);
        command
            .args(options.list())
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let child = command.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
        Process { child, log }
    }

    fn status(&self) -> Value {
        let text = succeeds(&["cluster", "status", "--json", &self.address()]).stdout;
        serde_json::from_str(&text).unwrap()
    }

    /// Waits until a partition is in this state.
    #[track_caller]
    fn wait_for(&self, partition: usize, state: &str) {
        eventually(|| {
            let output = crate::program::crawler(&["cluster", "status", "--json", &self.address()]);
            let status: Value = serde_json::from_slice(&output.stdout).ok()?;
            let found = &status["partitions"][partition]["state"];
            // Who runs may wait for the others.
            (found == state || found == "drained" && state == "running").then_some(())
        });
    }

    /// Waits until a partition has fetched so many pages.
    #[track_caller]
    fn wait_for_pages(&self, partition: u32, pages: usize) {
        eventually(|| {
            let text = fs::read_to_string(self.pages(partition)).ok()?;
            (text.lines().count() >= pages).then_some(())
        });
    }

    /// Checks that the joined outputs have each page once, as that of one process.
    #[track_caller]
    fn has_every_page_once(&self) {
        let alone = self.folder.path("alone.jsonl");
        succeeds(&format!("{} --delay 0 -o {alone}", self.common()));
        let [first, second] = [0, 1].map(|partition| lines_of(self.pages(partition)));
        assert!(!first.is_empty() && !second.is_empty());
        let expected = contents(lines_of(alone));
        assert_eq!(expected.len(), SITES * PAGES_OF_SITE);
        assert_eq!(contents([first, second].concat()), expected);
    }
}

/// Returns the URL, the status and the hash of each page.
fn contents(lines: Vec<Value>) -> Vec<[String; 3]> {
    let fields = |line: Value| ["url", "status", "content_hash"].map(|field| line[field].to_string());
    let mut contents: Vec<_> = lines.into_iter().map(fields).collect();
    contents.sort();
    contents
}

/// A running command, which ends with the test.
struct Process {
    child: Child,
    log: String,
}

impl Process {
    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until the log has a text.
    #[track_caller]
    fn logs(&self, text: &str) {
        eventually(|| self.log().contains(text).then_some(()));
    }

    /// Sends SIGTERM, and checks that the process ends with code 0.
    #[track_caller]
    fn stop(self) {
        self.signal("TERM");
        self.ends(0);
    }

    #[track_caller]
    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until the process runs as a partition, and stops it.
    #[track_caller]
    fn ends_when_stopped(self, crawl: &Crawl, partition: usize) {
        crawl.wait_for(partition, "running");
        self.stop();
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Checks that the process ends by itself with this code. Returns its log.
    #[track_caller]
    fn ends(mut self, code: i32) -> String {
        let status = eventually(|| self.child.try_wait().unwrap());
        assert_eq!(status.code(), Some(code), "{}", self.log());
        self.log()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_processes_fetch_each_page_once_as_one_does_and_end_by_themselves() {
    let crawl = Crawl::new("cluster-two");
    let processes = [0, 1].map(|partition| crawl.start(partition));
    for process in processes {
        process.ends(0);
    }
    let pages = SITES * PAGES_OF_SITE;
    assert_eq!(crawl.web.requests(), (pages, pages));
    let status = crawl.status();
    has(
        &status,
        serde_json::json!({"name": "web", "ended": "complete", "problems": []}),
    );
    assert_eq!(status["total"]["pages"], pages);
    for (index, row) in status["partitions"].as_array().unwrap().iter().enumerate() {
        has(
            row,
            serde_json::json!({"partition": index, "state": "ended", "waiting": 0, "to_send": 0, "to_receive": 0}),
        );
        assert_eq!(row["pages"], lines_of(crawl.pages(index as u32)).len());
        let owner = row["owner"].as_str().unwrap();
        assert!(owner.contains(" process "), "{owner}");
    }
    let text = succeeds(&["cluster", "status", &crawl.address()]).stdout;
    assert!(text.ends_with("\nthe crawl has ended\n"), "{text}");

    // The wrong directory names the right one.
    let [urls, others] = [0, 1].map(|partition| lines_of(crawl.pages(partition)));
    let (own, other) = (urls[0]["url"].as_str().unwrap(), others[0]["url"].as_str().unwrap());
    let state = crawl.state(0);
    assert!(succeeds(&["why", &state, own]).stdout.contains("it was fetched"));
    let why = succeeds(&["why", &state, other]).stdout;
    assert!(why.contains("belongs to partition 1 of the crawl"), "{why}");

    // A process that is started again ends again.
    succeeds(&["resume", &state]);
    let status = succeeds(&["status", &state]).stdout;
    assert!(
        status.contains("nothing is left to fetch in this partition"),
        "{status}"
    );
    crawl.has_every_page_once();
}

#[test]
fn a_process_that_was_killed_goes_on_where_it_was() {
    let crawl = Crawl::new("cluster-kill");
    let [first, second] = [0, 1].map(|partition| crawl.start(partition));
    crawl.wait_for_pages(1, 5);
    second.kill();
    crawl.wait_for(1, "silent");
    let status = crawl.status();
    let problem = status["problems"][0].as_str().unwrap();
    assert!(
        problem.starts_with("partition 1 has said nothing for ") && problem.contains("start its process again"),
        "{problem}"
    );
    crawl.wait_for(0, "running");
    let text = succeeds(&["cluster", "status", &crawl.address()]).stdout;
    assert!(text.starts_with("! partition 1 has said nothing for "), "{text}");
    crawl.start_with(&format!("resume {}", crawl.state(1)), 1).ends(0);
    first.ends(0);
    // What was in flight is asked for again.
    let (requests, pages) = crawl.web.requests();
    assert!(pages == SITES * PAGES_OF_SITE && requests <= pages + 16, "{requests}");
    crawl.has_every_page_once();
}

#[test]
fn the_first_process_may_be_killed_before_it_has_kept_anything() {
    let crawl = Crawl::new("cluster-early");
    let first = crawl.start(0);
    eventually(|| (crawl.redis.cli("EXISTS web:crawl") == "1").then_some(()));
    first.kill();
    let founded = crawl.redis.cli("GET web:crawl");
    // As if it had been killed earlier, which a test cannot time.
    fs::remove_dir_all(crawl.state(0)).unwrap();
    let _ = fs::remove_file(crawl.pages(0));
    let id: Value = serde_json::from_str(&founded).unwrap();
    crawl
        .redis
        .cli(&format!("DEL web:{}:words", id["id"].as_str().unwrap()));
    let processes = [0, 1].map(|partition| crawl.start(partition));
    for process in processes {
        process.ends(0);
    }
    assert_eq!(crawl.redis.cli("GET web:crawl"), founded);
    crawl.has_every_page_once();
}

#[test]
fn cluster_stop_stops_all_processes_and_the_same_commands_go_on() {
    let crawl = Crawl::new("cluster-stop");
    let processes = [0, 1].map(|partition| crawl.start(partition));
    crawl.wait_for_pages(1, 3);
    for partition in [0, 1] {
        crawl.wait_for(partition, "running");
    }
    let told = succeeds(&["cluster", "stop", &crawl.address()]).stdout;
    assert_eq!(told, "2 processes were told to stop\n");
    for process in processes {
        let log = process.ends(0);
        assert!(
            log.contains("crawler cluster stop: finishing requests in flight"),
            "{log}"
        );
    }
    let status = crawl.status();
    assert_eq!(status["ended"], Value::Null);
    for row in status["partitions"].as_array().unwrap() {
        assert_eq!(row["state"], "stopped");
    }
    // An earlier version of the program has begun it, then another crawl has taken its name.
    let begun = crawl.redis.cli("GET web:crawl");
    let earlier = begun.replace(env!("CARGO_PKG_VERSION"), "0.0.1");
    assert_ne!(earlier, begun);
    crawl.redis.cli(&format!("SET web:crawl {earlier}"));
    crawl.start(0).ends_when_stopped(&crawl, 0);
    assert_eq!(crawl.redis.cli("GET web:crawl"), begun);
    crawl
        .redis
        .cli(&format!("SET web:crawl {}", begun.replace("\"id\":\"", "\"id\":\"0")));
    crawl.start(1).ends_when_stopped(&crawl, 1);
    assert_eq!(crawl.redis.cli("GET web:crawl"), begun);
    // Each reads the name of another crawl, as when they start at once and one of them is in a wrong directory.
    let wrong = crawl.options(0).replace("state-", "state-wrong-");
    let wrong = crawl.start_with(&wrong.replace("pages-", "pages-wrong-"), 0);
    let other = eventually(|| Some(crawl.redis.cli("GET web:crawl")).filter(|now| *now != begun));
    crawl.redis.cli(&format!("SET web:crawl {begun}"));
    let log = wrong.ends(2);
    assert!(log.contains("another crawl runs under the name web"), "{log}");
    let second = crawl.start(1);
    crawl.wait_for(1, "running");
    crawl.redis.cli(&format!("SET web:crawl {other}"));
    second.logs("another crawl has written web:crawl");
    eventually(|| (crawl.redis.cli("GET web:crawl") == begun).then_some(()));
    let first = crawl.start(0);
    for process in [first, second] {
        process.ends(0);
    }
    crawl.has_every_page_once();
    let missing = format!("redis://{}/other", crawl.redis.at());
    for command in ["status", "stop"] {
        fails(
            &["cluster", command, &missing],
            2,
            &["there is no crawl other in Redis"],
        );
    }
}

#[test]
fn a_crawl_that_is_kept_fresh_ends_in_no_process_until_it_is_stopped() {
    let crawl = Crawl::with_delay("1ms", "kept-fresh");
    let fresh = "--keep-fresh --set min-age=1s --set max-age=2s --set revisit-share=0.9";
    let start = |partition| crawl.start_with(&format!("{} {fresh}", crawl.options(partition)), partition);
    let processes = [0, 1].map(start);
    let each_at_least = |times: usize| {
        eventually(|| {
            let mut asked = std::collections::BTreeMap::<_, usize>::new();
            for url in crawl.web.asked.lock().unwrap().iter() {
                *asked.entry(url.clone()).or_default() += 1;
            }
            (asked.len() == SITES * PAGES_OF_SITE && asked.values().all(|asked| *asked >= times)).then_some(())
        });
    };
    each_at_least(3);
    let other = crawl.options(1).replace(&crawl.state(1), &crawl.folder.path("other"));
    let other = other.replace(&crawl.pages(1), &crawl.folder.path("other.jsonl"));
    fails(&other, 2, &["all or none --keep-fresh"]);
    assert_eq!(crawl.status()["ended"], Value::Null);
    succeeds(&["cluster", "stop", &crawl.address()]);
    for process in processes {
        process.ends(0);
    }
    crawl.web.asked.lock().unwrap().clear();
    let processes = [0, 1].map(start);
    each_at_least(2);
    succeeds(&["cluster", "stop", &crawl.address()]);
    for process in processes {
        process.ends(0);
    }
}

#[cfg(unix)]
#[test]
fn an_order_to_one_process_holds_in_all_and_all_can_be_paused() {
    let crawl = Crawl::with_delay("300ms", "cluster-orders");
    let processes = [0, 1].map(|partition| crawl.start(partition));
    for partition in [0, 1] {
        crawl.wait_for_pages(partition, 2);
        crawl.wait_for(partition as usize, "running");
    }
    let told = succeeds(&["cluster", "pause", &crawl.address()]).stdout;
    assert_eq!(told, "2 processes were told to pause\n");
    let is_paused = |partition: u32| {
        let status = succeeds(&["status", "--json", &crawl.state(partition)]).stdout;
        serde_json::from_str::<Value>(&status).unwrap()["paused"] == true
    };
    eventually(|| (is_paused(0) && is_paused(1)).then_some(()));
    crawl.wait_for(0, "paused");
    succeeds(&["cluster", "unpause", &crawl.address()]);

    // A host of the other process, and a URL there.
    let urls = |partition| {
        let lines = lines_of(crawl.pages(partition)).into_iter();
        lines.map(|line| line["url"].as_str().unwrap().to_owned())
    };
    let page = urls(1).next().unwrap();
    let (host, _) = page["http://".len()..].split_once('/').unwrap();
    let (site, _) = host.split_once(':').unwrap();
    let added = format!("http://{host}/500");
    let said = succeeds(&["add", "--class", "0", &crawl.state(0), &added]).stdout;
    assert!(
        said.contains("1 queued") && said.contains("the other partitions obey, too"),
        "{said}"
    );
    fails(
        &["add", "--again", &crawl.state(0), &page],
        2,
        &["only partition 1, which it belongs to"],
    );
    eventually(|| urls(1).any(|url| url == added).then_some(()));
    succeeds(&["drop", &crawl.state(0), site]);
    for process in processes {
        process.ends(0);
    }
    let of_site = urls(1).filter(|url| url.contains(site)).count();
    assert!((2..PAGES_OF_SITE).contains(&of_site), "{of_site}");
    let hosts = succeeds(&["hosts", &crawl.state(1)]).stdout;
    assert!(hosts.contains("dropped"), "{hosts}");
    // Who has nothing left does not decide that all go on.
    let refused = ["drop", &crawl.state(0), "other.example"];
    fails(
        &refused,
        2,
        &[
            "nothing is left that this partition may fetch",
            "crawler cluster status",
        ],
    );
}

#[test]
fn what_does_not_fit_to_the_crawl_is_refused_with_what_to_do() {
    let crawl = Crawl::with_delay("1h", "cluster-misuse");
    // The directory of another crawl.
    let other = crawl.options(1).replace("/web", "/other").replace("1/2", "0/1");
    let other = other
        .replace("state-1", "state-other")
        .replace("pages-1", "pages-other");
    succeeds(&format!("{other} --max-pages 1 --delay 0"));
    let processes = [0, 1].map(|partition| crawl.start(partition));
    for partition in [0, 1] {
        crawl.wait_for(partition, "running");
    }
    let anew = |partition: u32| {
        let options = crawl.options(partition).replace("state-", "state-new-");
        options.replace("pages-", "pages-new-")
    };
    let seed = &crawl.web.seed;
    for (options, code, says) in [
        (
            anew(1).replace("1/2", "1/3"),
            2,
            "the crawl web has 2 partitions, not 3: ",
        ),
        (
            anew(1) + " --set ignore-www=true",
            2,
            "have other rules of which URLs are the same, or of when it ends: ",
        ),
        (
            format!("{} {seed}/more", anew(1)),
            2,
            "the crawl web was begun with other seeds: ",
        ),
        (anew(1), 1, "partition 1 has a process already, "),
        (crawl.options(1), 1, "in use"),
        (other.replace("/other ", "/web ").replace("0/1", "0/2"), 2, "partition"),
        (
            other.replace("/other ", "/web "),
            2,
            "does not belong: give the right directory, ",
        ),
    ] {
        fails(&options, code, &[says]);
    }
    let [first, second] = processes;
    second.stop();
    // In the directory itself.
    for (options, says) in [
        (crawl.options(1).replace("1/2", "1/3"), "partition"),
        (crawl.options(1) + " --set ignore-www=true", "They follow from "),
    ] {
        fails(&options, 2, &[says]);
    }
    first.stop();
}

#[test]
fn an_old_copy_of_a_directory_is_refused_and_ends_as_incomplete_if_the_loss_is_accepted() {
    let crawl = Crawl::with_delay("300ms", "cluster-copy");
    let first = crawl.start(0);
    let second = crawl.start(1);
    crawl.wait_for_pages(1, 5);
    second.kill();
    let copy = crawl.folder.path("copy");
    copy_files(&crawl.state(1), &copy);
    let output = fs::read_to_string(crawl.pages(1)).unwrap();
    let sent = number_in_word(&crawl, 1, "sent");
    let second = crawl.start(1);
    // The other process has links that the copy lacks.
    eventually(|| (number_in_word(&crawl, 0, "received") > sent).then_some(()));
    second.stop();
    fs::remove_dir_all(crawl.state(1)).unwrap();
    let later = crawl.folder.path("later");
    fs::rename(crawl.pages(1), &later).unwrap();
    let refused = || {
        let log = crawl.start(1).ends(2);
        let says = log.contains("is an old copy, or a new one") && log.contains("--accept-loss");
        assert!(says, "{log}");
    };
    refused();
    let made = [crawl.state(1), crawl.pages(1)].map(|made| Path::new(&made).exists());
    assert_eq!(made, [false; 2], "a new directory is refused before anything is made");
    copy_files(&copy, &crawl.state(1));
    fs::copy(&later, crawl.pages(1)).unwrap();
    refused();
    assert!(
        fs::read(crawl.pages(1)).unwrap() == fs::read(&later).unwrap(),
        "nothing is cut"
    );
    for entry in fs::read_dir(&copy).unwrap() {
        let file = entry.unwrap().file_name();
        // The files of who has it open.
        if !["lock", "frontier.sqlite-shm"].contains(&file.to_str().unwrap()) {
            let [before, now] = [&copy, &crawl.state(1)].map(|dir| fs::read(Path::new(dir).join(&file)).unwrap());
            assert!(before == now, "{file:?} was changed");
        }
    }
    fs::write(crawl.pages(1), output).unwrap();
    let log = crawl.start_with(&(crawl.options(1) + " --accept-loss"), 1).ends(3);
    assert!(
        log.contains("the crawl is incomplete: links between processes: "),
        "{log}"
    );
    first.ends(3);
    let status = crawl.status();
    assert_eq!(status["ended"], "incomplete");
    assert!(status["total"]["lost_batches"].as_u64() > Some(0), "{status}");
    assert_eq!(crawl.web.requests().1, SITES * PAGES_OF_SITE);
}

/// Returns the number of the last batch that a partition has sent to the other one, or received from it.
fn number_in_word(crawl: &Crawl, partition: usize, field: &str) -> u64 {
    let words = crawl.redis.cli("KEYS web:*:words");
    let word = crawl.redis.cli(&format!("HGET {words} {partition}"));
    let word: Value = serde_json::from_str(&word).unwrap();
    word["peers"][1 - partition][field]["number"].as_u64().unwrap()
}

fn copy_files(from: &str, to: &str) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, Path::new(to).join(path.file_name().unwrap())).unwrap();
    }
}

#[test]
fn a_new_crawl_needs_redis_and_one_that_has_begun_waits_for_it() {
    let mut crawl = Crawl::new("cluster-redis");
    crawl.redis.kill();
    let says = ["cannot be reached", "check that it runs"];
    fails(&crawl.options(0), 1, &says);
    fails(&["cluster", "status", &crawl.address()], 1, &says);
    crawl.redis.restart();
    crawl.redis.signal("STOP");
    fails(&["cluster", "status", &crawl.address()], 1, &["no answer within 2 s"]);
    crawl.redis.signal("CONT");
    let [first, second] = [0, 1].map(|partition| crawl.start(partition));
    crawl.wait_for_pages(1, 3);
    second.stop();
    crawl.redis.kill();
    first.logs("The crawl continues, and its links wait until then");
    let second = crawl.start(1);
    second.logs("The crawl waits for it");
    // It has forgotten all.
    crawl.redis.restart();
    first.ends(0);
    second.ends(0);
    crawl.has_every_page_once();
}

#[test]
fn what_is_not_of_this_version_is_refused_with_its_key_and_a_crawl_that_runs_goes_on() {
    let crawl = Crawl::with_delay("200ms", "cluster-unreadable");
    let refuses = |partition: u32, key: &str| {
        let says = [&format!("under {key} what this version cannot read"), "redis-cli DEL"];
        fails(&crawl.options(partition), 2, &says);
    };
    for record in ["", "{", "{\"id\":\"x\",\"version\":\"9\"}"] {
        crawl.redis.cli(&format!("SET web:crawl {record}"));
        for partition in [0, 1] {
            refuses(partition, "web:crawl");
        }
        for command in ["status", "stop"] {
            fails(&["cluster", command, &crawl.address()], 2, &["under web:crawl what"]);
        }
        assert!(!Path::new(&crawl.state(0)).exists());
    }
    crawl.redis.cli("DEL web:crawl");
    let processes = [0, 1].map(|partition| crawl.start(partition));
    crawl.wait_for_pages(1, 2);
    for command in ["DEL web:crawl", "HSET web:crawl id x"] {
        crawl.redis.cli(command);
    }
    processes[0].logs("under web:crawl what this version cannot read");
    let [first, second] = processes;
    second.stop();
    // Its directory has begun the crawl, and it goes on once the way is free.
    refuses(1, "web:crawl");
    crawl.redis.cli("DEL web:crawl");
    // Others keep the name of the crawl.
    let words = eventually(|| Some(crawl.redis.cli("KEYS web:*:words")).filter(|key| key.ends_with("words")));
    first.stop();
    let stream = words.replace("web:", "{web:").replace(":words", ":0}:from:1");
    for key in [words.clone(), stream] {
        crawl.redis.cli(&format!("DEL {key}"));
        crawl.redis.cli(&format!("SET {key} x"));
        refuses(1, &key);
        crawl.redis.cli(&format!("DEL {key}"));
    }
    let [first, second] = [0, 1].map(|partition| crawl.start(partition));
    crawl.wait_for(0, "running");
    crawl.wait_for(1, "running");
    // An entry of another program has a higher id than those of the crawl. A start takes one above.
    crawl.redis.cli(&format!(
        "XADD {} * field x",
        words.replace("web:", "{web:").replace(":words", ":0}:from:1")
    ));
    first.logs("an entry of partition 1 in Redis cannot be read");
    second.stop();
    let second = crawl.start(1);
    first.ends(0);
    second.ends(0);
    crawl.has_every_page_once();
}

#[test]
fn a_full_redis_is_what_a_crawl_and_its_status_name() {
    let crawl = Crawl::with_delay("100ms", "cluster-full");
    let address = crawl.address();
    let status = ["cluster", "status", &address];
    fails(&status, 2, &["there is no crawl"]);
    crawl.redis.cli("CONFIG SET maxmemory 1");
    fails(&status, 1, &["is out of memory"]);
    crawl.redis.cli("CONFIG SET maxmemory 0");
    let [first, second] = [0, 1].map(|partition| crawl.start(partition));
    crawl.wait_for(1, "running");
    crawl.redis.cli("CONFIG SET maxmemory 1");
    for process in [&first, &second] {
        process.logs("is out of memory: raise its maxmemory");
    }
    crawl.wait_for(0, "silent");
    crawl.wait_for(1, "silent");
    let problems = crawl.status()["problems"].to_string();
    assert!(
        problems.contains("is out of memory") && !problems.contains("start its process"),
        "{problems}"
    );
    fails(&["cluster", "stop", &crawl.address()], 1, &["is out of memory"]);
    crawl.redis.cli("CONFIG SET maxmemory 0");
    for process in [first, second] {
        let log = process.ends(0);
        assert_eq!(log.matches("is out of memory").count(), 1, "{log}");
    }
    crawl.has_every_page_once();
}

#[test]
fn a_stop_does_not_wait_for_redis() {
    let mut crawl = Crawl::with_delay("400ms", "cluster-stop-away");
    let options = crawl.options(0) + " --sync-interval 20ms";
    let [first, _second] = [crawl.start_with(&options, 0), crawl.start(1)];
    crawl.wait_for_pages(0, 2);
    crawl.redis.kill();
    // Each of these pages has a sync, and so a word that cannot be said.
    crawl.wait_for_pages(0, 12);
    let begin = Instant::now();
    first.stop();
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[test]
fn what_redis_refuses_for_a_while_is_said_once() {
    let crawl = Crawl::with_delay("400ms", "cluster-refusing");
    let [first, second] = [0, 1].map(|partition| crawl.start(partition));
    crawl.wait_for_pages(0, 2);
    // Words are still said and read.
    crawl.redis.cli("ACL SETUSER default -xadd");
    first.logs("refuses access");
    crawl.wait_for_pages(0, 12);
    assert_eq!(first.log().matches("refuses access").count(), 1, "{}", first.log());
    crawl.redis.cli("ACL SETUSER default +xadd");
    first.ends(0);
    second.ends(0);
    crawl.has_every_page_once();
}

#[test]
fn nothing_is_fetched_after_the_end_though_more_pages_are_allowed() {
    let crawl = Crawl::new("cluster-after-end");
    let options = |partition| crawl.options(partition) + " --max-pages 20";
    for process in [0, 1].map(|partition| crawl.start_with(&options(partition), partition)) {
        process.ends(0);
    }
    let ended = crawl.web.requests();
    crawl.start(0).ends(0);
    assert_eq!(crawl.web.requests(), ended);
    assert_eq!(lines_of(crawl.pages(0)).len(), 10);
}

#[test]
fn a_process_with_nothing_left_or_a_spent_budget_says_that_it_waits_for_the_others() {
    for budget in ["", " --max-pages 20"] {
        let crawl = Crawl::new("cluster-waits");
        let process = crawl.start_with(&(crawl.options(0) + budget), 0);
        let says = "waits for the other partitions: `crawler cluster status` says for which";
        crawl.wait_for_pages(0, 1);
        let status = eventually(|| {
            let output = crate::program::crawler(&["status", &crawl.state(0)]);
            let text = String::from_utf8(output.stdout).unwrap();
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            words.contains(says).then_some(words)
        });
        assert!(!status.contains("held up by"), "{status}");
        process.signal("USR1");
        process.logs(says);
        assert!(process.log().contains("waits for others") && !process.log().contains("ETA"));
        process.stop();
    }
}

#[test]
fn options_that_need_others_say_so() {
    let seed = "http://127.0.0.1:1/";
    let address = "--cluster=redis://127.0.0.1:1/web";
    for (arguments, missing) in [
        ("--partition=0/2", "--cluster <URL>"),
        ("--partition=0/2 --state=x", "--cluster <URL>"),
        (address, "--state <DIR>"),
        (&format!("{address} --partition=0/2"), "--state <DIR>"),
        (&format!("{address} --state=x"), "--partition <I/N>"),
        ("--accept-loss", "--state <DIR>"),
    ] {
        fails(&format!("{arguments} {seed}"), 2, &["required", missing]);
    }
    let refresh = format!("{address} --partition=0/2 --state=x --refresh=1d {seed}");
    fails(&refresh, 2, &["--refresh", "cannot be used with"]);
}

#[test]
fn a_password_is_neither_kept_nor_shown() {
    let mut crawl = Crawl::new("cluster-password");
    crawl.redis = Server::start("--requirepass hidden@word");
    let (open, address) = (crawl.address(), crawl.address().replace("//", "//:hidden%40word@"));
    let options = crawl.options(0).replace("0/2", "0/1").replace("-q ", "-vv ");
    let no_secret = |text: &str| assert!(!text.contains("hidden"), "{text}");
    let in_directory = |state: &str| {
        for entry in fs::read_dir(state).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            no_secret(&String::from_utf8_lossy(&bytes));
        }
    };
    fails(&options, 1, &["refuses access", "give a user and a password"]);

    let with_password = options.replace(&open, &address);
    no_secret(&crawl.start_with(&format!("{with_password} --max-pages 3"), 0).ends(0));
    in_directory(&crawl.state(0));
    fails(
        &["resume", &crawl.state(0)],
        2,
        &["is not kept, because of --cluster with a password"],
    );
    succeeds(&["cluster", "status", &address]);

    // Nor is that of the environment.
    let command = format!("cluster status {open}");
    let of_environment = Command::new(PROGRAM)
        .args(command.list())
        .env("REDISCLI_AUTH", "hidden@word")
        .output()
        .unwrap();
    assert!(of_environment.status.success(), "{of_environment:?}");

    // A configuration file keeps it from the command line, and such a command can be resumed.
    let config = crawl.folder.file("crawl.toml", &format!("cluster = \"{address}\""));
    let with_config = options.replace(&format!("--cluster {open}"), &format!("--config {config}"));
    no_secret(&crawl.start_with(&format!("{with_config} --max-pages 6"), 0).ends(0));
    no_secret(
        &crawl
            .start_with(&format!("resume {} --max-pages 9", crawl.state(0)), 0)
            .ends(0),
    );
    in_directory(&crawl.state(0));

    let wrong = address.replace("word@", "other@");
    let broken = address.replace("/web", "");
    for (options, code) in [
        (options.replace(&open, &wrong), 1),
        (options.replace(&open, &broken), 2),
        (format!("cluster status {wrong}"), 1),
        (format!("cluster stop {broken}"), 2),
        (format!("resume {} --cluster {broken}", crawl.state(0)), 2),
    ] {
        no_secret(&crawl.start_with(&options, 0).ends(code));
    }
    let config = crawl.folder.file("crawl.toml", &format!("cluster = \"{broken}\""));
    let log = crawl
        .start_with(&format!("--config {config} --partition 0/1 --state x a.example"), 0)
        .ends(2);
    assert!(log.contains("the value of cluster is not valid: "), "{log}");
    no_secret(&log);
}
