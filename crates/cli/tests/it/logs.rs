//! The log of the command, and docs/logs.md, which describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Output};

use crate::program::{PROGRAM, command, crawler, folder, has, lines, succeeds};
use crate::redis_server::Server;
use crate::servers::{site_of, tree_of};
use crate::system_start::start_system_anew;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The first fields of every JSON line.
const COMMON: [&str; 4] = ["time", "level", "target", "message"];

fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

fn records(output: &Output) -> Vec<Value> {
    lines(stderr(output))
}

fn of_target<'a>(records: &'a [Value], target: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["target"] == target).collect()
}

#[track_caller]
fn assert_is_utc_with_milliseconds(time: &str) {
    assert!(time.parse::<Timestamp>().is_ok(), "{time}");
    assert_eq!(time.len(), "2026-01-31T23:59:59.000Z".len(), "{time}");
    assert!(time.ends_with('Z'), "{time}");
}

#[test]
fn a_warning_can_be_selected_by_its_level_and_is_the_same_in_text() {
    // With a file for the pages, only the summary goes to standard output.
    let folder = folder("logs");
    let run = |options: &str| {
        let pages = folder.path("pages.jsonl");
        crawler(&format!(
            "demo --capacity 100 --on-saturation warn --output {pages} {options}"
        ))
    };
    let json = run("--log-format json");
    for line in stderr(&json).lines() {
        let at = COMMON.map(|name| line.find(&format!("\"{name}\":")).unwrap());
        assert!(at.is_sorted() && at[0] == 1, "{line}");
    }
    let records = records(&json);
    for record in &records {
        assert_is_utc_with_milliseconds(record["time"].as_str().unwrap());
        let level = record["level"].as_str().unwrap();
        assert!(["INFO", "WARN"].contains(&level), "{record}");
        let are_texts = record["message"].is_string() && record["target"].is_string();
        assert!(are_texts, "{record}");
    }
    let saturated = of_target(&records, "sieve::saturation");
    let warnings: Vec<_> = saturated.iter().filter(|record| record["level"] == "WARN").collect();
    assert_eq!(warnings[0]["saturation_level"], "full");
    assert_eq!(warnings[0]["capacity"], 100);
    assert!(json.stdout.is_empty(), "all that jq reads is JSON");

    let text = run("");
    let mut warnings = 0;
    for line in stderr(&text).lines() {
        let [time, level, target, message] = line.split_ascii_whitespace().collect::<Vec<_>>()[..4] else {
            panic!("{line}");
        };
        assert_is_utc_with_milliseconds(time);
        assert!(["INFO", "WARN"].contains(&level), "{line}");
        assert!(target.ends_with(':') && !message.is_empty(), "{line}");
        assert!(!line.contains("capacity=") && !line.contains("pages="), "twice: {line}");
        warnings += usize::from(line.contains("WARN  sieve::saturation: seen-set full: "));
    }
    assert_eq!(warnings, 1, "{}", stderr(&text));
    assert!(String::from_utf8_lossy(&text.stdout).contains("pages "), "the summary");
}

#[test]
fn a_robots_txt_that_is_cut_is_logged_as_a_warning() {
    for (lines, warnings) in [(10, 0), (25_000, 1)] {
        let robots = "# a comment in a line\n".repeat(lines);
        let seed = site_of(move |path| (path == "/robots.txt").then(|| robots.clone()));
        let records = records(&crawler(&format!("--delay 0 --log-format json -q {seed}")));
        let cut = records.iter().filter(|record| {
            let message = record["message"].as_str().unwrap();
            record["level"] == "WARN" && message.contains("/robots.txt: only the first 500 KiB")
        });
        assert_eq!(cut.count(), warnings, "{records:?}");
    }
}

/// Pages are missing long before the end: the log, a status line, `status` and the summary say so alike. The tests of the library have the
/// times.
#[cfg(unix)]
#[test]
fn a_loss_is_logged_during_the_crawl_and_the_progress_and_the_status_have_it() {
    let folder = folder("loss");
    for (kind, options) in [
        ("seen_set", "--capacity 1k --on-saturation warn"),
        ("queue_full", "--set max-queued=30"),
        ("saturated", "--capacity 1k --on-saturation refuse"),
    ] {
        let seed = tree_of(1_000_000, 10);
        let state = folder.path(kind);
        let arguments = format!("--delay 10ms --max-time 10m --log-format json --state {state} {options} {seed}");
        let records = records(&signalled(&arguments, "crawler::loss"));
        let summary = of_target(&records, "crawler::summary")[0];
        let mut losses = of_target(&records, "crawler::loss");
        losses.retain(|loss| loss["kind"] == kind);
        let lost: Vec<_> = losses.iter().map(|loss| loss["lost"].as_f64().unwrap()).collect();
        // Again when it has doubled, or at the end.
        assert!(
            lost.len() >= 2 && lost[0] > 0.0 && lost.is_sorted(),
            "{kind}: {losses:?}"
        );
        assert_eq!(losses[0]["level"], "WARN");
        let remedy = "in a new directory";
        assert!(losses[0]["message"].as_str().unwrap().contains(remedy), "{losses:?}");
        let progress = of_target(&records, "crawler::status")[0];
        let message = progress["message"].as_str().unwrap();
        for part in [" LOST", "/s recent, ", "/s mean"] {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(
            progress["lost_at_least"].as_u64() > Some(0),
            kind == "seen_set",
            "{progress}"
        );
        assert!(
            progress["lost"].as_f64() >= progress["lost_at_least"].as_f64(),
            "{progress}"
        );
        let status = succeeds(&["status", "--json", &state]).stdout;
        let status: Value = serde_json::from_str(&status).unwrap();
        for name in ["lost", "lost_at_least"] {
            assert_eq!(status[name], summary[name], "{name}");
        }
        for name in ["mean_pages_per_second", "recent_pages_per_second"] {
            assert!(
                progress[name].as_f64() > Some(0.0) && status[name].as_f64() > Some(0.0),
                "{name}: {status}"
            );
        }
        assert!(status["lost"].as_f64() >= lost.last().copied(), "{status}");
        let text = succeeds(&["status", &state]).stdout;
        assert!(text.contains("\n  LOST              "), "{text}");
    }
}

/// Returns what a command shows on a terminal of 80 columns, by the program `script` of util-linux, which every Linux system has.
#[cfg(target_os = "linux")]
fn on_terminal(arguments: &str, environment: &[(&str, &str)]) -> String {
    let mut script = Command::new("script");
    script.args(["-qec", &format!("stty cols 80; {PROGRAM} {arguments}"), "/dev/null"]);
    for name in ["RUST_LOG", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        script.env_remove(name);
    }
    script.env("TERM", "xterm").envs(environment.iter().copied());
    let shown = script.stdin(std::process::Stdio::null()).output().unwrap().stdout;
    String::from_utf8_lossy(&shown).into_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_shows_the_local_time_the_sentence_no_target_and_colours_unless_the_environment_forbids_them() {
    let has_colours = |shown: &str| {
        let is_parameter = |c: char| c.is_ascii_digit() || c == ';';
        let mut codes = shown.split("\x1b[").skip(1);
        codes.any(|code| code.trim_start_matches(is_parameter).starts_with('m'))
    };
    for (name, value, is_coloured) in [
        ("TERM", "xterm", true),
        ("NO_COLOR", "1", false),
        ("CLICOLOR", "0", false),
    ] {
        let help = on_terminal("-h", &[(name, value)]);
        assert_eq!(has_colours(&help), is_coloured, "{name}: {help}");
    }
    let dumb = on_terminal("demo --max-pages 2", &[("TERM", "dumb")]);
    assert!(dumb.contains("\n200 http://") && !dumb.contains('\x1b'), "{dumb}");
    let run = |zone: &str, variable| {
        let demo = "demo --capacity 100 --on-saturation warn --max-pages 200";
        on_terminal(demo, &[("TZ", zone), variable])
    };
    for (zone, hours, variable, is_coloured) in [
        ("UTC", 0, ("TERM", "xterm"), true),
        ("Asia/Tokyo", 9, ("NO_COLOR", "1"), false),
        ("America/Caracas", 20, ("CLICOLOR", "0"), false),
    ] {
        let shown = run(zone, variable);
        let full = shown.lines().find(|line| line.contains("WARN  seen-set full: "));
        let full = full.unwrap_or_else(|| panic!("{zone}: {shown}"));
        let at = full.find(" WARN").unwrap();
        let minutes = |text: &str| text[..2].parse::<i64>().unwrap() * 60 + text[3..5].parse::<i64>().unwrap();
        let now = Timestamp::now().as_second() / 60 + hours * 60;
        let apart = (now - minutes(&full[at - 8..at])).rem_euclid(24 * 60);
        assert!(apart < 3, "{zone}: {full}");
        let line = &full[at - 8..].trim_end();
        assert!(line.ends_with(" or more") && line.chars().count() <= 240, "{line}");
        assert!(!shown.contains("sieve::") && !shown.contains("crawler::"), "{shown}");
        assert!(shown.contains("/s recent") && shown.contains(" queued, "), "{shown}");
        assert_eq!(has_colours(&shown), is_coloured, "{variable:?}: {shown}");
        let warning = shown.split(['\n', ' ']).any(|word| word == "dropped\x1b[0m");
        assert_eq!(warning, is_coloured, "{variable:?}: {shown}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_view_names_the_host_that_takes_longest() {
    let page: String = (0..40).map(|at| format!("<a href=/{at}>{at}</a>")).collect();
    let seed = site_of(move |_| Some(page.clone()));
    let [a, b] = ["a.localhost", "b.localhost"].map(|name| seed.replace("127.0.0.1", name));
    let options = "--allow-private-addresses --delay 400ms --max-time 3s";
    let several = on_terminal(&format!("{options} {a} {b}"), &[]);
    assert!(several.contains("  seen-set 0 %; asked, at least 1"), "{several}");
    assert!(several.contains(" s left: a.localhost  ") || several.contains(" s left: b.localhost  "));
}

#[test]
fn a_page_of_links_in_broken_tables_does_not_flood_the_log() {
    // HTML moves such links out of the table. The parser logs a line for each.
    let links: String = (0..3000).map(|at| format!("<a href=/{}>x</a>", at % 2)).collect();
    let body = format!("<a href=/first></a><table>{links}</table>");
    let seed = site_of(move |path| (path == "/").then(|| body.clone()));
    let folder = folder("tables");
    let quick = format!(
        "--delay 0 --select heading=h1 --output {} {seed}",
        folder.path("pages.jsonl")
    );
    let lines = |options: &str| {
        let output = crawler(&format!("{options} {quick}"));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let of_others = stderr(&output).lines().filter(|line| line.contains("html5ever"));
        (of_others.count(), stderr(&output).lines().count())
    };
    for options in ["", "-v"] {
        let (of_others, all) = lines(options);
        assert_eq!(of_others, 0, "{options}");
        assert!(all < 20, "{options}: {all} lines");
    }
    let complaints = lines("-vv").0;
    assert!(complaints > 1000, "the parser complains no longer: {complaints}");
}

#[test]
fn the_command_line_overrides_rust_log() {
    let run = |filter: &str, options: &str| {
        let mut demo = command(&format!(
            "demo --max-pages 2 --ignore-robots --log-format json {options}"
        ));
        let output = demo.env("RUST_LOG", filter).output().unwrap();
        let mut levels = BTreeSet::new();
        let mut targets = BTreeSet::new();
        for record in records(&output) {
            if record["target"] != "crawler::summary" {
                levels.insert(record["level"].as_str().unwrap().to_owned());
                targets.insert(record["target"].as_str().unwrap().to_owned());
            }
        }
        (levels, targets)
    };
    let set = |words: &[&str]| words.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    assert_eq!(run("off", "").0, set(&[]));
    assert_eq!(
        run("crawler::pages=debug", ""),
        (set(&["DEBUG"]), set(&["crawler::pages"]))
    );
    assert_eq!(run("debug", "-q").0, set(&["WARN"]));
    assert_eq!(run("off", "-v").0, set(&["DEBUG", "INFO", "WARN"]));
    assert_eq!(run("", "").0, set(&["INFO", "WARN"]));
    // An invalid filter is ignored, with a warning in the requested format.
    let (levels, targets) = run("crawler=loud", "");
    assert_eq!(levels, set(&["INFO", "WARN"]));
    assert!(targets.contains("crawler"), "{targets:?}");
    // No filter hides the results of the command.
    let mut demo = command("demo --max-pages 2 --log-format json");
    let output = demo.env("RUST_LOG", "off").output().unwrap();
    assert_eq!(of_target(&records(&output), "crawler::summary").len(), 1);
}

#[test]
fn results_go_to_standard_output_and_the_log_to_standard_error() {
    let output = crawler("demo --max-pages 4 --output - --log-format json");
    let pages = lines(str::from_utf8(&output.stdout).unwrap());
    assert_eq!(pages.len(), 4);
    let is_page = |page: &Value| page["url"].is_string() && page["target"].is_null();
    assert!(pages.iter().all(is_page));
    let records = records(&output);
    let [summary] = of_target(&records, "crawler::summary")[..] else {
        panic!("{}", stderr(&output));
    };
    assert_eq!(summary["pages"], 4);
    assert_eq!(summary["by_status"]["200"], 4);
    assert_eq!(summary["ending"], "budget_spent");
    assert_eq!(summary["complete"], false);
    assert!(summary["missing"][0].as_str().unwrap().contains("page budget spent"));
}

#[test]
fn the_error_that_ends_the_command_is_the_last_record() {
    let arguments = "--set max-first-downtime=0.1 http://127.0.0.1:1/";
    let text = crawler(arguments);
    let last = stderr(&text).lines().last().unwrap();
    assert!(last.starts_with("crawler: nothing was fetched: "), "{last}");
    for quiet in ["", "-qq"] {
        let json = crawler(&format!("{quiet} --log-format json {arguments}"));
        assert_eq!(json.status.code(), Some(1));
        let records = records(&json);
        let last = records.last().unwrap();
        has(last, json!({"level": "ERROR", "target": "crawler", "exit_code": 1}));
        assert!(
            last["message"].as_str().unwrap().starts_with("nothing was fetched: "),
            "{last}"
        );
        assert_eq!(of_target(&records, "crawler::summary").len(), 1);
    }
}

/// The fields of each target, without the common ones.
type Fields = BTreeMap<String, BTreeSet<String>>;

/// Reads docs/logs.md. A heading of the third level names a target, and the first column of its table has the fields, one or
/// more in a row.
fn documented() -> Fields {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/logs.md");
    let text = fs::read_to_string(path).unwrap();
    let code = |text: &str| Some(text.split('`').nth(1)?.to_owned());
    let mut fields = Fields::new();
    let mut target = None;
    for line in text.lines() {
        if line.starts_with('#') {
            target = line.strip_prefix("### ").and_then(code);
            fields.extend(target.clone().map(|target| (target, BTreeSet::new())));
        } else if let (Some(target), true) = (&target, line.starts_with("The same fields, ")) {
            // Those of the target above.
            let same = fields["crawler::progress"].clone();
            fields.insert(target.clone(), same);
        } else if let (Some(target), Some(row)) = (&target, line.strip_prefix("| `")) {
            for field in row.split(" |").next().unwrap().split('`').step_by(2) {
                assert!(
                    fields.get_mut(target).unwrap().insert(field.to_owned()),
                    "{target}: {field} stands there twice"
                );
            }
        }
    }
    fields
}

fn emitted(outputs: &[Output]) -> Fields {
    let mut fields = Fields::new();
    for record in outputs.iter().flat_map(records) {
        let target = record["target"].as_str().unwrap().to_owned();
        let names = record.as_object().unwrap().keys().cloned();
        let of_target = fields.entry(target).or_default();
        of_target.extend(names.filter(|name| !COMMON.contains(&name.as_str())));
    }
    fields
}

/// Runs commands that together log every target, except those that a test cannot cause: no file handles, no certificates, a disk
/// that fails while the crawl runs, a reader that stays.
#[cfg(unix)]
fn runs() -> Vec<Output> {
    let folder = folder("every-target");
    let alike = site_of(|path| {
        let links: String = (0..40).map(|at| format!("<a href=/alike/{at}>x</a>")).collect();
        let words = "one and the same text of more than sixteen words stands on each and every page below this path";
        (path != "/robots.txt").then(|| format!("<p>{words}</p>{links}"))
    });
    let torn = "{\"url\":\"http://127.0.0.1:1/\",\"left\":1}\n{\"url\":";
    let torn = folder.file("torn.jsonl", torn);
    let dead: String = (1..20).map(|port| format!(" http://127.0.0.1:{port}/")).collect();
    let [state, ended, pages, archive] = ["state", "ended", "pages.jsonl", "pages.warc"].map(|name| folder.path(name));
    let with_state = format!("--state {state} --max-time 0 http://127.0.0.1:1/");
    let redis = Server::start("");
    let address = format!("redis://{}/logs", redis.at());
    let shared = folder.path("shared");
    let without_answer = format!("--state {ended} http://127.0.0.1:1/");
    let mut outputs = Vec::new();
    for arguments in [
        format!("demo --capacity 100 --on-saturation warn -v --watch 0 --warc {archive}"),
        "demo --capacity 100 --on-saturation grow".to_owned(),
        format!("--delay 0{dead}"),
        format!("--delay 0 --set=max-near-duplicates=2 --output {pages} {alike}"),
        format!("--delay 0 --max-pages 1 --output {pages} {alike}"),
        format!("--seeds {torn} http://127.0.0.1:1/"),
        format!("--cluster {address} --partition 0/1 --state {shared} --max-pages 1 {alike}"),
        with_state.clone(),
        with_state,
        without_answer.clone(),
        without_answer,
    ] {
        outputs.push(crawler(&format!(
            "{arguments} --log-format json --set max-first-downtime=0.1"
        )));
        // It holds from then on.
        crawler(&format!("set {state} max-pages=9"));
    }
    // The crawl then waits for a page that throttles.
    outputs.push(signalled("demo --log-format json", "crawler::failures"));
    outputs.extend([false, true].map(after_a_start_of_the_system));
    outputs
}

/// Kills a crawl long after its last sync, and runs it again as after a start of the system, which may have lost the output.
fn after_a_start_of_the_system(is_output_lost: bool) -> Output {
    let folder = folder("another-start");
    let (state, pages) = (folder.path("state"), folder.path("pages.jsonl"));
    let seed = site_of(|path| {
        let links: String = (0..100).map(|at| format!("<a href=/{at}>x</a>")).collect();
        (path != "/robots.txt").then_some(links)
    });
    let arguments = format!("--log-format json --state {state} -o {pages} {seed}");
    let mut seldom_synced = command(&format!("{arguments} -v --delay 20ms --sync-interval 1h"));
    let mut child = seldom_synced.spawn().unwrap();
    let log = BufReader::new(child.stderr.take().unwrap()).lines();
    let fetched = log.map_while(Result::ok).filter(|line| line.contains("crawler::pages"));
    assert_eq!(fetched.take(20).count(), 20);
    child.kill().unwrap();
    child.wait().unwrap();
    start_system_anew(Path::new(&state));
    if is_output_lost {
        fs::remove_file(&pages).unwrap();
    }
    crawler(&format!("{arguments} --max-time 0"))
}

/// Runs a crawl that goes on, requests a status line after the first record of a target, and stops it.
#[cfg(unix)]
fn signalled(arguments: &str, first: &str) -> Output {
    let mut child = command(arguments).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut log = Vec::new();
    for (target, signal) in [(first, "USR1"), ("crawler::status", "TERM")] {
        while !String::from_utf8_lossy(&log).contains(target) {
            assert_ne!(stderr.read_until(b'\n', &mut log).unwrap(), 0, "no record of {target}");
        }
        let id = child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status().unwrap();
        assert!(sent.success());
    }
    stderr.read_to_end(&mut log).unwrap();
    let output = child.wait_with_output().unwrap();
    Output { stderr: log, ..output }
}

#[cfg(unix)]
#[test]
fn the_documentation_has_every_field_of_every_target_and_no_other() {
    let (documented, emitted) = (documented(), emitted(&runs()));
    for (target, fields) in &emitted {
        let of_target = documented.get(target);
        let of_target = of_target.unwrap_or_else(|| panic!("docs/logs.md does not have the target {target}"));
        assert_eq!(of_target, fields, "{target}: in docs/logs.md, and logged");
    }
    let silent: Vec<_> = documented
        .keys()
        .filter(|target| !emitted.contains_key(*target))
        .collect();
    assert_eq!(
        silent,
        [
            "crawler::fetch",
            "crawler::metrics",
            "crawler::open_files",
            "frontier::store"
        ],
        "documented, and not logged"
    );
}
