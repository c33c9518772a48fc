//! `status`, `why` and `list`: what they say of a crawl that runs, of one that was killed, and of one that has ended.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::pages_server::site_of;
use crate::program::{crawler, fails, folder, succeeds};
use serde_json::Value;

/// A site whose page `/slow` is not answered before the test allows it.
struct Site {
    seed: String,
    slow_is_asked: Receiver<()>,
    _allow_slow: Sender<()>,
}

fn site() -> Site {
    let (ask, slow_is_asked) = channel();
    let (allow, allowed) = channel();
    let seed = site_of(move |path| {
        Some(match path {
            "/robots.txt" => "User-agent: other\nDisallow: /later\n\nUser-agent: *\nDisallow: /private\n".to_owned(),
            "/" => ["/a", "/missing", "/private/x", "/slow", "/later"]
                .map(|path| format!("<a href={path}>x</a>"))
                .concat(),
            "/slow" => {
                let _ = ask.send(());
                // Until the test drops its end.
                let _ = allowed.recv();
                String::new()
            }
            "/a" | "/later" => String::new(),
            _ => return None,
        })
    });
    Site {
        seed,
        slow_is_asked,
        _allow_slow: allow,
    }
}

/// A crawl in a process of its own, which is killed at the end of the test.
struct Running(Child);

impl Running {
    /// Starts a crawl, and waits until it asks for the slow page. What came before is saved then, if the crawl has a delay.
    fn start(arguments: &[&str], site: &Site) -> Self {
        let started = Command::new(env!("CARGO_BIN_EXE_crawler"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let running = Self(started.unwrap());
        site.slow_is_asked.recv().unwrap();
        running
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn state_in(folder: &Path) -> String {
    folder.join("state").to_str().unwrap().to_owned()
}

fn status(state: &str) -> Value {
    serde_json::from_str(&succeeds(&["status", state, "--json"]).stdout).unwrap()
}

/// Asks why, and checks the exit code.
#[track_caller]
fn why(state: &str, url: &str, code: i32) -> Value {
    let output = crawler(&["why", state, url, "--json"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{url}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The paths of the listed URLs, with one field of each line.
fn listed(state: &str, which: &str, field: &str) -> Vec<(String, Value)> {
    let printed = succeeds(&["list", state, which]).stdout;
    let lines = printed.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let url = line["url"].as_str().unwrap();
        let path = url.splitn(4, '/').nth(3).unwrap();
        (format!("/{path}"), line[field].clone())
    });
    lines.collect()
}

fn pairs(expected: &[(&str, Value)]) -> Vec<(String, Value)> {
    let owned = expected.iter().map(|(path, value)| ((*path).to_owned(), value.clone()));
    owned.collect()
}

/// The fields that `docs/state-json.md` has under a heading.
fn documented(heading: &str) -> BTreeSet<String> {
    documented_in("state-json.md", &format!("## `{heading}`"))
}

fn documented_in(file: &str, heading: &str) -> BTreeSet<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let text = fs::read_to_string(docs.join(file)).unwrap();
    let (_, below) = text.split_once(&format!("\n{heading}\n")).unwrap();
    let section = below.split("\n##").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let firsts = rows.map(|row| row.split(" |").next().unwrap());
    firsts
        .flat_map(|first| first.split("`, `").map(|name| name.trim_matches('`').to_owned()))
        .collect()
}

fn fields_of<'v>(values: impl IntoIterator<Item = &'v Value>) -> BTreeSet<String> {
    let objects = values.into_iter().map(|value| value.as_object().unwrap());
    objects.flat_map(|object| object.keys().cloned()).collect()
}

/// Checks that the documentation has all fields of these answers.
fn check_fields(state: &str, whys: &[Value]) {
    let mut of_summary = documented_in("logs.md", "### `crawler::summary`");
    assert!(of_summary.remove("peak_memory_bytes"));
    of_summary.extend(documented("status"));
    assert_eq!(fields_of([&status(state)]), of_summary);
    let whys = fields_of(whys);
    assert!(whys.is_subset(&documented("why")), "{whys:?}");
    let all: BTreeSet<_> = whys
        .union(&["key", "false_positive_rate"].map(str::to_owned).into())
        .cloned()
        .collect();
    assert_eq!(all, documented("why"), "no answer of this test has these two");
    let lists = ["--done", "--failed", "--not-fetched", "--waiting"];
    let lines = lists.map(|which| succeeds(&["list", state, which]).stdout).concat();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut listed = fields_of(&lines);
    listed.insert("key".to_owned());
    assert_eq!(listed, documented("list"));
}

/// Checks what is the same while the crawl runs and after it was killed.
#[track_caller]
fn check_the_middle(state: &str, seed: &str) {
    let found = status(state);
    let count = |name: &str| found[name].as_u64().unwrap();
    assert_eq!((count("pages"), count("done"), count("rejected")), (2, 2, 1), "{found}");
    assert_eq!(
        (count("queued"), count("in_flight"), count("hosts")),
        (1, 1, 1),
        "{found}"
    );
    assert_eq!(found["not_fetched"]["robots_forbid"], 1, "{found}");
    assert_eq!(found["by_status"]["404"], 1, "{found}");
    assert!(count("disk_bytes") > 1000 && count("memory_bytes") > 1000, "{found}");
    let why_at = |path: &str, code| why(state, &format!("{seed}{path}"), code);
    let root = why_at("", 0);
    assert_eq!((&root["state"], &root["depth"]), (&"done".into(), &0.into()));
    let missing = why_at("missing#fragment", 0);
    assert_eq!(
        (&missing["state"], &missing["status"]),
        (&"rejected".into(), &404.into())
    );
    assert_eq!((&missing["referrer"], &missing["attempts"]), (&seed.into(), &1.into()));
    assert_eq!(missing["url"], format!("{seed}missing"));
    assert_eq!(why_at("private/x", 0)["reason"], "robots_forbid");
    assert_eq!(why_at("slow", 0)["state"], "in_flight");
    let later = why_at("later", 0);
    assert_eq!(
        (&later["ahead"], &later["others_of_host"], &later["in_flight"]),
        (&0.into(), &0.into(), &1.into())
    );
    assert_eq!(
        (&later["state"], &later["reason"]),
        (&"waiting".into(), &"in_flight".into())
    );
    assert_eq!(why_at("unheard", 3)["state"], "unknown");
    let other = why(state, "https://other.example/", 3);
    assert_eq!(
        (&other["state"], &other["reason"]),
        (&"refused".into(), &"other_host".into())
    );

    check_fields(state, &[root, missing, why_at("private/x", 0), later, other]);
    let statuses = pairs(&[("/", 200.into()), ("/a", 200.into())]);
    assert_eq!(listed(state, "--done", "status"), statuses);
    assert_eq!(listed(state, "--failed", "status"), pairs(&[("/missing", 404.into())]));
    let forbidden = pairs(&[("/private/x", "robots_forbid".into())]);
    assert_eq!(listed(state, "--not-fetched", "reason"), forbidden);
    assert_eq!(
        listed(state, "--waiting", "referrer"),
        pairs(&[("/later", seed.into())])
    );
}

#[test]
fn a_crawl_can_be_looked_into_while_it_runs_after_it_was_killed_and_after_its_end() {
    let (site, folder) = (site(), folder("state-commands"));
    let state = state_in(&folder);
    let seed = site.seed.clone();
    let arguments = ["--delay", "1ms", "--state", &state, &seed];
    let mut running = Running::start(&arguments, &site);
    assert_eq!(status(&state)["process"], running.0.id());
    check_the_middle(&state, &seed);
    let text = succeeds(&["status", &state]).stdout;
    assert!(text.contains(&format!("running, process {}", running.0.id())), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    fails(&arguments, 1, &["is in use by process"]);
    fails(&["resume", &state], 1, &["is in use by process"]);

    running.kill();
    assert_eq!(status(&state)["running"], false);
    check_the_middle(&state, &seed);
    let text = succeeds(&["status", &state]).stdout;
    assert!(text.contains("not running: the same command continues it"), "{text}");
    assert!(text.contains("1, to be fetched again"), "{text}");
    let text = succeeds(&["why", &state, &format!("{seed}slow")]).stdout;
    assert!(text.contains("it will be fetched again"), "{text}");

    drop(site);
    succeeds(&arguments);
    let ended = status(&state);
    assert_eq!((&ended["drained"], &ended["queued"]), (&true.into(), &0.into()));
    assert_eq!(listed(&state, "--waiting", "url"), []);
    assert_eq!(why(&state, &format!("{seed}later"), 0)["state"], "done");
    let text = succeeds(&["status", &state]).stdout;
    assert!(text.contains("ended: nothing is left to fetch"), "{text}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_killed_crawl_is_continued_under_another_name_for_robots_txt() {
    let (site, folder) = (site(), folder("state-agent"));
    let state = state_in(&folder);
    let seed = site.seed.clone();
    let arguments = ["--delay", "1ms", "--state", &state, &seed];
    Running::start(&arguments, &site).kill();
    drop(site);
    succeeds(&[&arguments[..], &["--user-agent", "other/1"]].concat());
    assert_eq!(why(&state, &format!("{seed}later"), 0)["reason"], "robots_forbid");
    assert_eq!(why(&state, &format!("{seed}private/x"), 0)["reason"], "robots_forbid");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_killed_crawl_is_read_and_repaired_under_its_own_name_for_robots_txt_without_the_file_of_rules() {
    let (site, folder) = (site(), folder("state-rules-lost"));
    let state = state_in(&folder);
    let seed = site.seed.clone();
    let arguments = ["--delay", "1ms", "--user-agent", "other/1", "--state", &state, &seed];
    Running::start(&arguments, &site).kill();
    let before = status(&state);
    let rules = Path::new(&state).join("rules.json");
    fs::remove_file(&rules).unwrap();
    assert_eq!(status(&state)["pages"], before["pages"]);
    fs::write(&rules, "{").unwrap();
    let repair = crawler(&["repair", &state]);
    let said = String::from_utf8_lossy(&repair.stdout);
    assert_eq!(repair.status.code(), Some(0), "{said}");
    assert!(said.contains("whole: the same command continues it"), "{said}");
    assert_eq!(status(&state)["pages"], before["pages"]);
    fs::remove_dir_all(folder).unwrap();
}

/// The database of a state directory.
fn database(state: &str) -> PathBuf {
    Path::new(state).join("frontier.sqlite")
}

#[test]
fn what_is_no_crawl_damaged_or_no_url_is_an_error_that_says_so() {
    let (site, folder) = (site(), folder("state-errors"));
    let state = state_in(&folder);
    let nothing = folder.to_str().unwrap();
    for arguments in [
        &["status", nothing][..],
        &["why", nothing, "example.com"],
        &["list", nothing, "--done"],
        &["list", nothing, "--waiting"],
    ] {
        fails(arguments, 1, &["holds no crawl"]);
    }
    assert_eq!(fs::read_dir(nothing).unwrap().count(), 0, "nothing was made there");
    let seed = site.seed.clone();
    succeeds(&["--delay", "0", "--max-pages", "2", "--state", &state, &seed]);
    fails(
        &["why", &state, "ftp://example.com/"],
        2,
        &["is not a URL that can be crawled"],
    );
    fails(&["why", &state, "nonsense"], 2, &["is not a URL"]);
    fails(&["list", &state], 2, &["--waiting"]);
    fails(&["list", &state, "--done", "--failed"], 2, &["cannot be used with"]);
    fs::write(database(&state), "this is no database").unwrap();
    for arguments in [&["status", &state][..], &["list", &state, "--done"]] {
        fails(
            arguments,
            1,
            &["is not the store of a frontier, or its head is damaged"],
        );
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Runs the command in a folder, to its end.
fn crawler_in(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawler"));
    let output = command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
}

#[test]
fn resume_continues_a_killed_crawl_with_its_options_from_any_folder() {
    let (site, folder) = (site(), folder("state-resume"));
    let (before, after) = (folder.join("before"), folder.join("after"));
    let common = ["--delay", "0", "--state", "before", "-o", "pages.jsonl"];
    let config = folder.join("crawl.toml");
    fs::write(
        &config,
        format!("user-agent = \"other/1\"\nseed-urls = [\"{}\"]\n", site.seed),
    )
    .unwrap();
    let arguments = [&common[..], &["--config", "crawl.toml"]].concat();
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawler"));
    let started = command
        .args(&arguments)
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let mut running = Running(started.spawn().unwrap());
    site.slow_is_asked.recv().unwrap();
    running.kill();
    let seed = site.seed.clone();
    drop(site);

    // The directory may be moved, and the outputs stay where they are.
    fs::rename(&before, &after).unwrap();
    crawler_in(Path::new("/"), &["resume", after.to_str().unwrap()]);
    let lines = fs::read_to_string(folder.join("pages.jsonl")).unwrap();
    let mut paths: Vec<_> = lines
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["url"].as_str().unwrap().replace(&seed, "/")
        })
        .collect();
    paths.sort();
    assert_eq!(paths, ["/", "/a", "/missing", "/private/x", "/slow"]);
    assert_eq!(
        why(after.to_str().unwrap(), &format!("{seed}later"), 0)["reason"],
        "robots_forbid"
    );
    assert!(!before.exists(), "a new crawl was begun");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn resume_takes_changed_options_keeps_them_and_refuses_those_that_the_state_depends_on() {
    let folder = folder("state-changed");
    let state = state_in(&folder);
    let pages = folder.join("pages.jsonl");
    let (pages, seed) = (pages.to_str().unwrap(), tree());
    succeeds(&[
        "--delay",
        "0",
        "--max-pages",
        "3",
        "--state",
        &state,
        "-o",
        pages,
        &seed,
    ]);
    let fetched = || status(&state)["pages"].as_u64().unwrap();
    let command = || fs::read_to_string(Path::new(&state).join("command.json")).unwrap();
    assert_eq!(fetched(), 3);

    let before = command();
    for (changed, code, message) in [
        (&["--scope", "site"][..], 2, "cannot become site"),
        (&["--capacity", "5"], 2, "give the same again"),
        (&["--format", "csv"], 2, "also writes --output"),
        (&["-o", "other.jsonl"], 1, "is missing"),
        (&["--state", "other"], 2, "leave it out"),
        (&["--max-page", "5"], 2, "--max-pages"),
    ] {
        fails(&[&["resume", &state], changed].concat(), code, &[message]);
        assert_eq!(command(), before, "{changed:?}");
    }
    assert_eq!(fetched(), 3);

    let resumed = succeeds(&["resume", &state, "--max-pages", "5", "--delay", "1ms"]);
    assert!(resumed.stderr.contains("continuing the crawl"), "{}", resumed.stderr);
    assert_eq!(fetched(), 5);
    assert!(command().contains("1ms"));
    // They are those of the last run now.
    succeeds(&["resume", &state]);
    assert_eq!(fetched(), 5);
    // Two of them would silence warnings.
    succeeds(&["resume", &state, "-q"]);
    succeeds(&["resume", &state, "-q"]);
    assert_eq!(command().matches("\"--quiet\"").count(), 1);
    succeeds(&["resume", &state, "-v"]);
    assert!(!command().contains("\"--quiet\""));
    succeeds(&["resume", &state, "--max-pages", "100"]);
    assert_eq!(fetched(), 13);
    assert_eq!(fs::read_to_string(pages).unwrap().lines().count(), 13);
    // An output that was moved.
    let moved = folder.join("moved.jsonl");
    let moved = moved.to_str().unwrap();
    fs::rename(pages, moved).unwrap();
    succeeds(&["resume", &state, "--output", moved]);
    assert!(command().contains(moved) && !command().contains(pages));
    succeeds(&["resume", &state]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn resume_replaces_an_output_among_options_that_share_a_dash_and_puts_options_before_seeds() {
    let folder = folder("state-clusters");
    let (state, seed) = (state_in(&folder), tree());
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (first, second, third) = (path("1.jsonl"), path("2.jsonl"), path("3.jsonl"));
    let begin = ["--delay", "0", "--max-pages", "3", "--state", &state];
    succeeds(&[&begin[..], &["-qo", &first, "--", &seed]].concat());
    fs::rename(&first, &second).unwrap();
    succeeds(&["resume", &state, "-o", &second, "--max-pages", "5"]);
    fs::rename(&second, &third).unwrap();
    succeeds(&["resume", &state, "-qo", &third, "--max-pages", "100"]);
    assert_eq!(fs::read_to_string(&third).unwrap().lines().count(), 13);
    fs::remove_dir_all(folder).unwrap();
}

/// A site of 13 pages.
fn tree() -> String {
    site_of(|path| {
        let number: usize = path.trim_start_matches('/').parse().unwrap_or(0);
        let children = (number * 3 + 1..=number * 3 + 3).filter(|child| *child < 13);
        Some(children.map(|child| format!("<a href=/{child}>x</a>")).collect())
    })
}

#[test]
fn secrets_are_not_kept_for_resume_which_says_so() {
    let folder = folder("state-secrets");
    let state = state_in(&folder);
    for (secret, option) in [
        (&["--header", "Authorization: hunter2"][..], "--header"),
        (&["-HAuthorization: hunter2"], "--header"),
        (&["--basic-auth=me:hunter2"], "--basic-auth"),
        (&["--proxy", "http://me:hunter2@127.0.0.1:9"], "--proxy"),
        (&["http://me:hunter2@127.0.0.1:1/"], "a seed with a login"),
    ] {
        let arguments = [
            &["-q", "--max-time", "0", "--state", &state, "http://127.0.0.1:1/"],
            secret,
        ]
        .concat();
        let _ = crawler(&arguments);
        let message = format!("because of {option}");
        fails(&["resume", &state], 2, &[&message, "repeat the whole command"]);
        for file in fs::read_dir(&state).unwrap() {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            assert!(!bytes.windows(7).any(|window| window == b"hunter2"), "{option}");
        }
    }
    fails(&["resume", &format!("{state}/nothing")], 1, &["holds no crawl"]);
    fails(&["resume", folder.to_str().unwrap()], 1, &["holds no crawl"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn status_and_the_log_say_that_the_same_command_tries_again_what_got_no_answer() {
    let folder = folder("state-unanswered");
    let state = state_in(&folder);
    let arguments = [
        "--set",
        "max-first-downtime=0.1",
        "--state",
        &state,
        "http://127.0.0.1:1/",
    ];
    fails(&arguments, 1, &["the same command tries again what got no answer"]);
    let text = succeeds(&["status", &state]).stdout;
    assert!(
        text.contains("ended: the same command tries again what got no answer"),
        "{text}"
    );
    fails(
        &arguments,
        1,
        &[
            "has ended: pages that got no answer are tried again",
            "earlier run: 1 are queued again",
        ],
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_page_whose_origin_was_given_up_is_listed_with_the_reason_of_the_report() {
    let folder = folder("list-given-up");
    let [state, refused] = ["state", "refused.jsonl"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let closed = "http://127.0.0.1:1/page";
    let ended = crawler(&[
        "--set",
        "max-first-downtime=0",
        "--state",
        &state,
        "--refused",
        &refused,
        closed,
    ]);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let report: Value = serde_json::from_str(&fs::read_to_string(&refused).unwrap()).unwrap();
    assert_eq!(
        (&report["class"], &report["reason"]),
        (&"failed".into(), &"connect".into())
    );
    assert_eq!(
        listed(&state, "--failed", "reason"),
        pairs(&[("/page", "connect".into())])
    );
    assert_eq!(listed(&state, "--not-fetched", "reason"), []);
    fs::remove_dir_all(folder).unwrap();
}
