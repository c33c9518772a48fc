//! `status`, `why` and `list`: what they say of a crawl that runs, of one that was killed, and of one that has ended.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::program::{
    Arguments, command, crawler, fails, folder, has, has_failed, lines, lines_of, one_line, succeeds,
};
use crate::servers::{answer, path_in, server_of, site_of, tree};
use serde_json::{Value, json};

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
    fn start(arguments: &(impl Arguments + ?Sized), site: &Site) -> Self {
        Self::of(&mut command(arguments), site)
    }

    fn of(command: &mut Command, site: &Site) -> Self {
        let running = Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
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

fn status(state: &str) -> Value {
    serde_json::from_str(&succeeds(&["status", state, "--json"]).stdout).unwrap()
}

/// Asks why, and checks the exit code.
#[track_caller]
fn why(state: &str, url: &str, code: i32) -> Value {
    let output = crawler(&["why", state, url, "--json"]);
    has_failed(&output, code, &[]);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The paths of the listed URLs, with one field of each line.
fn listed(state: &str, which: &str, field: &str) -> Vec<(String, Value)> {
    let lines = lines(&succeeds(&["list", state, which]).stdout)
        .into_iter()
        .map(|line| {
            let path = line["url"].as_str().unwrap().splitn(4, '/').nth(3).unwrap();
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
        .union(&["key", "false_positive_rate", "next_visit"].map(str::to_owned).into())
        .cloned()
        .collect();
    assert_eq!(all, documented("why"), "no answer of this test has these three");
    let lists = ["--done", "--failed", "--not-fetched", "--waiting"];
    let lines = lists.map(|which| succeeds(&["list", state, which]).stdout).concat();
    let mut listed = fields_of(&crate::program::lines(&lines));
    listed.extend(["key", "next_visit"].map(str::to_owned));
    assert_eq!(listed, documented("list"));
}

/// Checks what is the same while the crawl runs and after it was killed.
#[track_caller]
fn check_the_middle(state: &str, seed: &str) {
    let found = status(state);
    let count = |name: &str| found[name].as_u64().unwrap();
    has(
        &found,
        json!({"pages": 2, "done": 2, "rejected": 1, "queued": 1, "in_flight": 1, "hosts": 1}),
    );
    assert_eq!(found["not_fetched"]["robots_forbid"], 1, "{found}");
    assert_eq!(found["by_status"]["404"], 1, "{found}");
    assert!(count("disk_bytes") > 1000 && count("memory_bytes") > 1000, "{found}");
    let why_at = |path: &str, code| why(state, &format!("{seed}{path}"), code);
    let root = why_at("", 0);
    has(&root, json!({"state": "done", "depth": 0}));
    let missing = why_at("missing#fragment", 0);
    has(
        &missing,
        json!({"state": "rejected", "status": 404, "referrer": seed, "attempts": 1}),
    );
    let text = succeeds(&["why", state, &format!("{seed}missing")]).stdout;
    let answered = "  state             answered: it answered 404, which is final: it is not asked again\n";
    assert!(text.contains(answered), "{text}");
    assert_eq!(missing["url"], format!("{seed}missing"));
    assert_eq!(why_at("private/x", 0)["reason"], "robots_forbid");
    assert_eq!(why_at("slow", 0)["state"], "in_flight");
    let later = why_at("later", 0);
    has(&later, json!({"state": "waiting", "reason": "in_flight"}));
    has(&later, json!({"ahead": 0, "others_of_host": 0, "in_flight": 1}));
    has(&later, json!({"class": 7, "rule": "later$", "attempts": 0}));
    assert_eq!(why_at("unheard", 3)["state"], "unknown");
    let other = why(state, "https://other.example/", 3);
    has(&other, json!({"state": "refused", "reason": "other_host"}));

    check_fields(state, &[root, missing, why_at("private/x", 0), later, other]);
    let statuses = pairs(&[("/", 200.into()), ("/a", 200.into())]);
    assert_eq!(listed(state, "--done", "status"), statuses);
    assert_eq!(listed(state, "--failed", "status"), pairs(&[("/missing", 404.into())]));
    let forbidden = pairs(&[("/private/x", "robots_forbid".into())]);
    assert_eq!(listed(state, "--not-fetched", "reason"), forbidden);
    assert_eq!(listed(state, "--waiting", "class"), pairs(&[("/later", 7.into())]));
    assert_eq!(
        listed(state, "--waiting", "referrer"),
        pairs(&[("/later", seed.into())])
    );
}

#[test]
fn a_crawl_can_be_looked_into_while_it_runs_after_it_was_killed_and_after_its_end() {
    let (site, folder) = (site(), folder("state-commands"));
    let state = folder.path("state");
    let seed = site.seed.clone();
    let arguments = format!("--delay 1ms --last later$ --state {state} {seed}");
    let mut running = Running::start(&arguments, &site);
    let found = status(&state);
    has(
        &found,
        json!({"process": running.0.id(), "ending": null, "missing": []}),
    );
    check_the_middle(&state, &seed);
    let text = succeeds(&["status", &state]).stdout;
    assert!(text.contains(&format!("running, process {}", running.0.id())), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    fails(&arguments, 1, &["is in use by process"]);
    fails(&["resume", &state], 1, &["is in use by process"]);

    running.kill();
    has(&status(&state), json!({"running": false, "ending": "stopped"}));
    check_the_middle(&state, &seed);
    let text = succeeds(&["status", &state]).stdout;
    assert!(text.contains("not running: the same command continues it"), "{text}");
    assert!(text.contains("1, to be fetched again"), "{text}");
    let text = succeeds(&["why", &state, &format!("{seed}slow")]).stdout;
    assert!(text.contains("it will be fetched again"), "{text}");
    let text = succeeds(&["why", &state, &format!("{seed}later")]).stdout;
    assert!(
        text.contains("waiting: the crawl does not run: the same command continues it")
            && text.contains("class             7, by the rule later$"),
        "{text}"
    );

    drop(site);
    succeeds(&arguments);
    has(&status(&state), json!({"drained": true, "queued": 0}));
    assert_eq!(listed(&state, "--waiting", "url"), []);
    assert_eq!(why(&state, &format!("{seed}later"), 0)["state"], "done");
    let text = succeeds(&["status", &state]).stdout;
    assert!(text.contains("ended: nothing is left to fetch"), "{text}");
}

#[test]
fn a_killed_crawl_is_continued_under_another_name_for_robots_txt() {
    let (site, folder) = (site(), folder("state-agent"));
    let state = folder.path("state");
    let seed = site.seed.clone();
    let arguments = format!("--delay 1ms --state {state} {seed}");
    Running::start(&arguments, &site).kill();
    drop(site);
    succeeds(&format!("{arguments} --user-agent other/1"));
    assert_eq!(why(&state, &format!("{seed}later"), 0)["reason"], "robots_forbid");
    assert_eq!(why(&state, &format!("{seed}private/x"), 0)["reason"], "robots_forbid");
}

#[test]
fn a_killed_crawl_is_read_and_repaired_under_its_own_name_for_robots_txt_without_the_file_of_rules() {
    let (site, folder) = (site(), folder("state-rules-lost"));
    let state = folder.path("state");
    let seed = site.seed.clone();
    let arguments = format!("--delay 1ms --user-agent other/1 --state {state} {seed}");
    Running::start(&arguments, &site).kill();
    let before = status(&state);
    let rules = Path::new(&state).join("rules.json");
    fs::remove_file(&rules).unwrap();
    assert_eq!(status(&state)["pages"], before["pages"]);
    fs::write(&rules, "{").unwrap();
    let said = succeeds(&["repair", &state]).stdout;
    assert!(said.contains("whole: the same command continues it"), "{said}");
    assert_eq!(status(&state)["pages"], before["pages"]);
}

#[test]
fn what_is_no_crawl_damaged_or_no_url_is_an_error_that_says_so() {
    let (site, folder) = (site(), folder("state-errors"));
    let state = folder.path("state");
    let nothing = folder.to_str().unwrap();
    for look in ["status", "why example.com", "list --done", "list --waiting"] {
        let (command, rest) = look.split_once(' ').unwrap_or((look, ""));
        fails(&format!("{command} {nothing} {rest}"), 1, &["holds no crawl"]);
    }
    fails(&format!("resume {nothing}"), 2, &["holds no crawl"]);
    assert_eq!(fs::read_dir(nothing).unwrap().count(), 0, "nothing was made there");
    let seed = site.seed.clone();
    succeeds(&format!("--delay 0 --max-pages 2 --state {state} {seed}"));
    let not_crawled = "is not a URL that can be crawled";
    fails(&["why", &state, "ftp://example.com/"], 2, &[not_crawled]);
    fails(&["why", &state, "nonsense"], 2, &["is not a URL"]);
    fails(&["list", &state], 2, &["--waiting"]);
    fails(&["list", &state, "--done", "--failed"], 2, &["cannot be used with"]);
    fs::write(folder.join("state/frontier.sqlite"), "this is no database").unwrap();
    let no_store = "its head is damaged";
    fails(&["status", &state], 1, &[no_store]);
    fails(&["list", &state, "--done"], 1, &[no_store]);
}

#[test]
fn resume_continues_a_killed_crawl_with_its_options_from_any_folder() {
    let (site, folder) = (site(), folder("state-resume"));
    let (before, after) = (folder.path("before"), folder.path("after"));
    let seed = site.seed.clone();
    folder.file(
        "crawl.toml",
        &format!("user-agent = \"other/1\"\nseed-urls = [\"{seed}\"]\n"),
    );
    let mut begun = command("--delay 0 --state before -o pages.jsonl --config crawl.toml");
    Running::of(begun.current_dir(&*folder), &site).kill();
    drop(site);

    // The directory may be moved, and the outputs stay where they are.
    fs::rename(&before, &after).unwrap();
    has_failed(&command(&["resume", &after]).current_dir("/").output().unwrap(), 0, &[]);
    let lines = lines_of(folder.join("pages.jsonl"));
    let path = |line: &Value| line["url"].as_str().unwrap().replace(&seed, "/");
    let paths: BTreeSet<_> = lines.iter().map(path).collect();
    assert_eq!(lines.len(), paths.len());
    assert!(
        paths.iter().eq(["/", "/a", "/missing", "/private/x", "/slow"]),
        "{paths:?}"
    );
    assert_eq!(why(&after, &format!("{seed}later"), 0)["reason"], "robots_forbid");
    assert!(!fs::exists(before).unwrap(), "a new crawl was begun");
}

#[test]
fn resume_refuses_a_directory_that_was_copied_or_moved_with_its_outputs() {
    let (folder, seed) = (folder("state-copied"), tree(13));
    let copy = |from: &str, to: &str| {
        let copied = Command::new("cp").args(["-r", from, to]).current_dir(&*folder).status();
        assert!(copied.unwrap().success());
    };
    for (number, state) in ["st", "./deep/st", "ABSOLUTE/st"].iter().enumerate() {
        let [old, new] = ["old", "new"].map(|name| format!("{name}{number}"));
        let state = state.replace("ABSOLUTE", &folder.path(&old));
        fs::create_dir_all(folder.join(&old).join("deep")).unwrap();
        let crawl = format!("--delay 0 --max-pages 3 --state {state} -o pages.jsonl {seed}");
        let begin = |folder: &Path| command(&crawl).current_dir(folder).output().unwrap();
        has_failed(&begin(&folder.join(&old)), 0, &[]);
        copy(&old, &new);
        let relative = state.replace(&folder.path(&old), ".");
        let outputs = || [&old, &new].map(|name| lines_of(folder.join(name).join("pages.jsonl")).len());
        let [original, copied] = [&old, &new].map(|name| folder.join(name).join(&relative));
        let resume = |state: &Path| format!("resume {} --max-pages 5", state.display());
        fails(
            &resume(&copied),
            2,
            &["was copied or moved", "Repeat the whole command"],
        );
        // A copy of the directory alone, by another name, under which no crawl was started.
        copy(&format!("{old}/{relative}"), "alone");
        fails(&resume(&folder.join("alone")), 2, &["was copied or moved"]);
        let with_outputs = |options: &str| {
            let given = format!(
                "--delay 0 --max-pages 5 --state {} {options} {seed}",
                folder.path("alone")
            );
            command(&given).current_dir(folder.join(&old)).output().unwrap()
        };
        let of_original = folder.path(&format!("{old}/pages.jsonl"));
        for option in [
            "-o pages.jsonl".to_owned(),
            format!("--refused r.jsonl -o {of_original}"),
        ] {
            has_failed(
                &with_outputs(&option),
                2,
                &["was copied or moved", "outputs that belong to it"],
            );
        }
        fs::remove_dir_all(folder.join("alone")).unwrap();
        assert_eq!(outputs(), [3, 3]);
        // A link names the same directory.
        std::os::unix::fs::symlink(&original, folder.join("link")).unwrap();
        succeeds(&resume(&folder.join("link")));
        fs::remove_file(folder.join("link")).unwrap();
        assert_eq!(outputs(), [5, 3]);
        // What the message advises.
        let again = format!("--delay 0 --max-pages 4 --state {relative} -o pages.jsonl {seed}");
        has_failed(
            &command(&again).current_dir(folder.join(&new)).output().unwrap(),
            0,
            &[],
        );
        assert_eq!(outputs(), [5, 4]);
        succeeds(&resume(&copied));
        assert_eq!(outputs(), [5, 5]);
        if relative == state {
            // Moved, while the folder is there.
            fs::rename(folder.join(&new), folder.join("moved")).unwrap();
            fs::create_dir(folder.join(&new)).unwrap();
            fails(
                &resume(&folder.join("moved").join(&relative)),
                2,
                &["was copied or moved"],
            );
            fs::remove_dir_all(folder.join("moved")).unwrap();
        }
    }
}

#[test]
fn resume_takes_changed_options_keeps_them_and_refuses_those_that_the_state_depends_on() {
    let folder = folder("state-changed");
    let state = folder.path("state");
    let (pages, seed) = (&folder.path("pages.jsonl"), tree(13));
    succeeds(&format!("--delay 0 --max-pages 3 --state {state} -o {pages} {seed}"));
    let fetched = || status(&state)["pages"].as_u64().unwrap();
    let command = || fs::read_to_string(Path::new(&state).join("command.json")).unwrap();
    assert_eq!(fetched(), 3);

    let before = command();
    for (changed, code, message) in [
        ("--scope site", 2, "cannot become site"),
        ("--capacity 5", 2, "give the same again"),
        ("--format csv", 2, "also writes --output"),
        ("-o other.jsonl", 2, "is missing"),
        ("--state other", 2, "leave it out"),
        ("--max-page 5", 2, "--max-pages"),
    ] {
        fails(&format!("resume {state} {changed}"), code, &[message]);
        assert_eq!(command(), before, "{changed}");
    }
    assert_eq!(fetched(), 3);

    let resumed = succeeds(&["resume", &state, "--max-pages", "5", "--delay", "1ms"]);
    assert!(resumed.stderr.contains("continuing the crawl"), "{}", resumed.stderr);
    assert_eq!(fetched(), 5);
    assert!(command().contains("1ms"));
    // They are those of the last run now.
    succeeds(&["resume", &state, "--include", ""]);
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
    assert_eq!(lines_of(pages).len(), 13);
    // An output that was moved.
    let moved = &folder.path("moved.jsonl");
    fs::rename(pages, moved).unwrap();
    succeeds(&["resume", &state, "--output", moved]);
    assert!(command().contains(moved) && !command().contains(pages));
    succeeds(&["resume", &state]);
}

#[test]
fn resume_replaces_an_output_among_options_that_share_a_dash_and_puts_options_before_seeds() {
    let folder = folder("state-clusters");
    let (state, seed) = (folder.path("state"), tree(13));
    let [first, second, third] = ["1.jsonl", "2.jsonl", "3.jsonl"].map(|name| folder.path(name));
    succeeds(&format!(
        "--delay 0 --max-pages 3 --state {state} -qo {first} -- {seed}"
    ));
    fs::rename(&first, &second).unwrap();
    succeeds(&format!("resume {state} -o {second} --max-pages 5"));
    fs::rename(&second, &third).unwrap();
    succeeds(&format!("resume {state} -qo {third} --max-pages 100"));
    assert_eq!(lines_of(&third).len(), 13);
}

#[test]
fn secrets_are_not_kept_for_resume_which_says_so() {
    let folder = folder("state-secrets");
    let state = folder.path("state");
    for (secret, option) in [
        (&["--header", "Authorization: hunter2"][..], "--header"),
        (&["-HAuthorization: hunter2"], "--header"),
        (&["--basic-auth=me:hunter2"], "--basic-auth"),
        (&["--proxy", "http://me:hunter2@127.0.0.1:9"], "--proxy"),
        (&["http://me:hunter2@127.0.0.1:1/"], "a seed with a login"),
    ] {
        let common = ["-q", "--max-time", "0", "--state", &state, "http://127.0.0.1:1/"];
        let _ = crawler(&*[&common, secret].concat());
        let message = format!("because of {option}");
        fails(&["resume", &state], 2, &[&message, "repeat the whole command"]);
        for file in fs::read_dir(&state).unwrap() {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            assert!(!bytes.windows(7).any(|window| window == b"hunter2"), "{option}");
        }
    }
    fails(&format!("resume {state}/nothing"), 2, &["holds no crawl"]);
}

#[test]
fn status_and_the_log_say_that_the_same_command_tries_again_what_got_no_answer() {
    let folder = folder("state-unanswered");
    let state = folder.path("state");
    let arguments = format!("--set max-first-downtime=0.1 --state {state} http://127.0.0.1:1/");
    fails(&arguments, 1, &["the same command tries again what got no answer"]);
    let text = succeeds(&["status", &state]).stdout;
    assert!(
        text.contains("ended: the same command tries again what got no answer"),
        "{text}"
    );
    let again = "has ended: pages that got no answer are tried again";
    fails(&arguments, 1, &[again, "earlier run: 1 are queued again"]);
}

#[test]
fn a_page_whose_origin_was_given_up_is_listed_with_the_reason_of_the_report() {
    let folder = folder("list-given-up");
    let [state, refused] = ["state", "refused.jsonl"].map(|name| folder.path(name));
    let crawl = format!("--set max-first-downtime=0 --state {state} --refused {refused} http://127.0.0.1:1/page");
    fails(&crawl, 1, &[]);
    has(&lines_of(&refused)[0], json!({"class": "failed", "reason": "connect"}));
    assert_eq!(
        listed(&state, "--failed", "reason"),
        pairs(&[("/page", "connect".into())])
    );
    assert_eq!(listed(&state, "--not-fetched", "reason"), []);
    let why = why(&state, "http://127.0.0.1:1/page", 0);
    let explanation = why["explanation"].as_str().unwrap();
    for says in [
        "its origin was given up",
        "given up for ",
        "Connection refused",
        "is it running? --set max-first-downtime",
    ] {
        assert!(explanation.contains(says), "{says}: {explanation}");
    }
}

#[test]
fn a_page_that_was_throttled_to_the_end_is_so_in_each_place() {
    let folder = folder("list-throttled");
    let [state, refused] = ["state", "refused.jsonl"].map(|name| folder.path(name));
    let seed = server_of(|head| match path_in(head) {
        "/robots.txt" => answer("404 Not Found", ""),
        _ => answer("429 Too Many Requests", ""),
    });
    let crawl = format!("--set max-throttles=1 --state {state} --refused {refused} {seed}");
    let missing = "throttled to the end: 1 page (raise --delay or --set max-throttles, or let a later run ask again)";
    fails(&crawl, 1, &[]);
    let shown = one_line(&succeeds(&["status", &state]).stdout);
    assert!(
        shown.contains(missing) && shown.contains("failed by reason throttled: 1"),
        "{shown}"
    );
    has(
        &lines_of(&refused)[0],
        json!({"class": "failed", "reason": "throttled", "status": 429}),
    );
    assert_eq!(
        listed(&state, "--failed", "reason"),
        pairs(&[("/", "throttled".into())])
    );
    let explanation = why(&state, &seed, 0)["explanation"].to_string();
    assert!(
        explanation.contains("it was throttled to the end; its origin is given up for "),
        "{explanation}"
    );
}
