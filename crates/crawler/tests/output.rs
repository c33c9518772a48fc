//! What is written: links, refusals, selected fields, and files that stay whole whatever happens.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

#[path = "common/memory_file.rs"]
mod memory_file;
#[path = "common/paused.rs"]
mod paused;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crawler::output::jsonl::JsonLines;
use crawler::output::links::LinkGraph;
use crawler::output::refused::RefusedReport;
use crawler::{Answer, Ask, Crawl, CrawlConfig, CrawlOptions, FetchError, Fetcher, Want};
use frontier::{Frontier, FrontierConfig, RetryPolicy};
use memory_file::{MemoryFile, lines};
use serde_json::{Value, json};
use sieve::SeenSet;

const PAGE: &str = r#"<title>Start</title><h1>One <b>two</b></h1>
<a href=/a>a</a> <a href=/a rel=nofollow>a again</a> <area href=/hidden rel=nofollow>
<link rel=canonical href=/> <a href=/moved>m</a> <a href=/missing>404</a> <a href=/down>down</a> <a href=/refused>r</a>
<a href=/forbidden/x>f</a> <a href=http://other.example/>o</a>"#;

struct Site;

impl Fetcher for Site {
    async fn fetch(&self, ask: Ask) -> Result<Answer, FetchError> {
        let page = |status, body: &str| Answer {
            status,
            content_type: Some("text/html".to_owned()),
            body: body.as_bytes().to_vec(),
            ..Answer::default()
        };
        if ask.want == Want::Robots {
            return Ok(page(200, "User-agent: *\nDisallow: /forbidden/\n"));
        }
        match ask.url.path() {
            "/" => Ok(page(200, PAGE)),
            "/a" => Ok(page(
                200,
                "<title> </title><a href=http://other.example/>o</a><a href=/>up</a>",
            )),
            "/moved" => Ok(Answer {
                location: Some("/a".to_owned()),
                ..page(301, "")
            }),
            "/down" => Ok(page(503, "busy")),
            "/refused" => Err(FetchError::Broken("nonsense".to_owned())),
            _ => Ok(page(404, "<h1>not here</h1>")),
        }
    }
}

struct Files {
    pages: Vec<Value>,
    links: Vec<Value>,
    refused: Vec<Value>,
}

fn crawl(fields: &[&str]) -> Files {
    let frontier = FrontierConfig {
        retries: RetryPolicy {
            max_host_downtime: std::time::Duration::MAX,
            max_first_downtime: std::time::Duration::MAX,
            ..RetryPolicy::default()
        },
        ..FrontierConfig::default()
    };
    let options = CrawlOptions {
        seeds: vec!["http://site.example/".to_owned()],
        frontier: frontier.clone(),
        fields: fields.iter().map(|field| field.parse().unwrap()).collect(),
        tell_edges: true,
        ..CrawlOptions::default()
    };
    let (pages, links, refused) = (MemoryFile::default(), MemoryFile::default(), MemoryFile::default());
    let frontier = Frontier::with_seen_set(frontier, SeenSet::exact()).unwrap();
    let crawl = Crawl::with(CrawlConfig::new(options).unwrap(), frontier, Site)
        .observe(JsonLines::new(pages.clone()))
        .observe(LinkGraph::new(links.clone()))
        .observe(RefusedReport::new(refused.clone()));
    let runtime = paused::runtime();
    runtime.block_on(crawl.run()).unwrap();
    Files {
        pages: pages.lines(),
        links: links.lines(),
        refused: refused.lines(),
    }
}

#[test]
fn the_link_graph_has_every_link_with_what_became_of_it() {
    let edges: BTreeSet<_> = crawl(&[])
        .links
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap().replace("http://site.example", "");
            let nofollow = line["nofollow"].as_bool().unwrap();
            (text("from"), text("to"), text("kind"), nofollow, text("verdict"))
        })
        .collect();
    let edge = |from: &str, to: &str, kind: &str, nofollow: bool, verdict: &str| {
        (
            from.to_owned(),
            to.to_owned(),
            kind.to_owned(),
            nofollow,
            verdict.to_owned(),
        )
    };
    let other = "http://other.example/";
    assert_eq!(
        edges,
        BTreeSet::from([
            edge("/", "/a", "anchor", false, "queued"),
            edge("/", "/hidden", "area", true, "nofollow"),
            edge("/", "/", "canonical", false, "seen"),
            edge("/", "/moved", "anchor", false, "queued"),
            edge("/", "/missing", "anchor", false, "queued"),
            edge("/", "/down", "anchor", false, "queued"),
            edge("/", "/refused", "anchor", false, "queued"),
            edge("/", "/forbidden/x", "anchor", false, "queued"),
            edge("/", other, "anchor", false, "other_host"),
            edge("/a", other, "anchor", false, "other_host"),
            edge("/a", "/", "anchor", false, "seen"),
            edge("/moved", "/a", "redirect", false, "seen"),
        ])
    );
}

#[test]
fn the_report_names_everything_that_was_not_had_once_with_its_reason() {
    let refused = crawl(&[]).refused;
    let start = "http://site.example/";
    let told: BTreeMap<&str, &Value> = refused
        .iter()
        .map(|line| (line["url"].as_str().unwrap(), line))
        .collect();
    assert_eq!(told.len(), refused.len(), "each once: {refused:?}");
    let expected = [
        ("http://other.example/", "refused", "other_host", json!(null)),
        ("http://site.example/hidden", "refused", "nofollow", json!(null)),
        (
            "http://site.example/forbidden/x",
            "not_fetched",
            "robots_forbid",
            json!(null),
        ),
        ("http://site.example/missing", "failed", "status", json!(404)),
        ("http://site.example/down", "failed", "status", json!(503)),
        ("http://site.example/refused", "failed", "broken", json!(null)),
    ];
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for (url, class, reason, status) in expected {
        let line = told[url];
        assert_eq!(
            (&line["class"], &line["reason"], &line["status"]),
            (&json!(class), &json!(reason), &status),
            "{url}"
        );
        assert_eq!((&line["referrer"], &line["depth"]), (&json!(start), &json!(1)), "{url}");
    }
    assert_eq!(told["http://site.example/refused"]["detail"], "broken answer: nonsense");
}

#[test]
fn every_page_has_every_selected_field_as_a_list() {
    let pages = crawl(&["heading=h1", "link=a::attr(href)"]).pages;
    let selected = |path: &str| {
        let url = format!("http://site.example{path}");
        &pages.iter().find(|page| page["url"] == *url).unwrap()["selected"]
    };
    assert_eq!(selected("/")["heading"], json!(["One two"]));
    assert_eq!(selected("/")["link"].as_array().unwrap().len(), 8);
    assert_eq!(
        selected("/a"),
        &json!({"heading": [], "link": ["http://other.example/", "/"]})
    );
    assert_eq!(
        selected("/missing"),
        &json!({"heading": [], "link": []}),
        "only pages that answer 2xx are read"
    );
    assert!(crawl(&[]).pages.iter().all(|page| page["selected"].is_null()));
}

#[test]
fn a_field_of_a_record_is_always_there_and_always_of_one_type() {
    let mut kinds: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let pages = crawl(&["heading=h1"]).pages;
    for page in &pages {
        for (name, value) in page.as_object().unwrap() {
            let kind = match value {
                Value::Null => continue,
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            kinds.entry(name.clone()).or_default().insert(kind);
        }
        assert_eq!(page.as_object().unwrap().len(), pages[0].as_object().unwrap().len());
        let at = page["fetched_at"].as_str().unwrap();
        assert!(
            at.len() == "2026-01-01T00:00:00.000Z".len() && at.ends_with('Z') && at.as_bytes()[10] == b'T',
            "{at}"
        );
    }
    assert!(kinds.values().all(|kinds| kinds.len() == 1), "{kinds:?}");
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawler"));
    command.args(arguments);
    command
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[track_caller]
fn fails(output: &Output, code: i32, message: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(message), "it should say {message:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
fn a_bad_field_is_refused_before_anything_is_fetched() {
    for (field, message) in [
        ("title", "--select"),
        ("x=h1 > > p", "character 4"),
        ("a=h1", "two fields are named"),
    ] {
        let output = command(&[
            "--output",
            "-",
            "--select",
            "A=h2",
            "--select",
            field,
            "http://127.0.0.1:1/",
        ])
        .output();
        let output = output.unwrap();
        fails(&output, 2, message);
        assert_eq!(output.stdout, b"", "nothing was started");
    }
    fails(
        &command(&["--select", "a=h1", "http://127.0.0.1:1/"]).output().unwrap(),
        2,
        "--output",
    );
    let twice = command(&["--output", "-", "--links", "-", "http://127.0.0.1:1/"])
        .output()
        .unwrap();
    fails(&twice, 2, "two outputs would go to -");
}

#[test]
fn the_demo_fills_all_three_files() {
    let (pages, links, refused) = (file("all-pages"), file("all-links"), file("all-refused"));
    let output = command(&["demo", "-q", "--select", "heading=h1", "--output"])
        .arg(&pages)
        .arg("--links")
        .arg(&links)
        .arg("--refused")
        .arg(&refused)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |path: &Path| lines(&fs::read_to_string(path).unwrap());
    let pages = read(&pages);
    assert!(
        pages
            .iter()
            .any(|page| !page["selected"]["heading"].as_array().unwrap().is_empty())
    );
    let new = read(&links).iter().filter(|link| link["verdict"] == "queued").count() as u64;
    let counted: u64 = pages.iter().map(|page| page["links_new"].as_u64().unwrap()).sum();
    let redirects = read(&links)
        .iter()
        .filter(|link| link["kind"] == "redirect" && link["verdict"] == "queued")
        .count();
    assert_eq!(new, counted + redirects as u64);
    assert!(read(&refused).iter().any(|line| line["reason"] == "robots_forbid"));
}

#[cfg(target_os = "linux")]
#[test]
fn every_output_on_a_full_disk_ends_the_crawl_and_names_the_file() {
    for option in ["--output", "--links", "--refused"] {
        let output = command(&["demo", "-q", option, "/dev/full"]).output().unwrap();
        fails(&output, 1, "the output cannot be written: /dev/full: ");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_can_grow_no_more_ends_in_a_whole_line() {
    let (links, program) = (file("cut-links"), env!("CARGO_BIN_EXE_crawler"));
    // A limit on the size of files is the full disk that a test can have.
    let script = format!(
        "trap '' XFSZ; ulimit -f 160; exec {program} demo -q --links {}",
        links.display()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    fails(&output, 1, "cut-links: ");
    let written = fs::read_to_string(&links).unwrap();
    assert!(!lines(&written).is_empty());
}

#[test]
fn a_closed_pipe_ends_the_crawl_without_a_word() {
    let mut child = command(&["demo", "-q", "--links", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert_eq!(lines(&first).len(), 1);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_whole_files_and_a_summary() {
    let pages = file("stopped-pages");
    let mut child = command(&["demo", "-v", "--delay", "0.3", "--output"])
        .arg(&pages)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Every page is told on standard error.
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(" new links") {
        line.clear();
        assert_ne!(errors.read_line(&mut line).unwrap(), 0, "it ended by itself");
    }
    let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let summary = String::from_utf8(output.stdout).unwrap();
    assert!(summary.contains("stopped after"), "{summary}");
    let written = lines(&fs::read_to_string(&pages).unwrap());
    let told = summary
        .lines()
        .find_map(|line| line.trim().strip_prefix("by status"))
        .unwrap();
    let told: usize = told
        .split(": ")
        .skip(1)
        .map(|part| part.split(',').next().unwrap().trim().parse::<usize>().unwrap())
        .sum();
    assert!(told > 0, "{summary}");
    assert_eq!(written.len(), told, "{summary}");
}

#[test]
fn two_outputs_that_go_to_one_file_by_two_spellings_are_refused() {
    // Else each writes over what the other has written.
    let (name, other) = (file("one-file"), file("../tmp/one-file"));
    let _ = fs::remove_file(&name);
    assert_eq!(name.parent().unwrap().file_name().unwrap(), "tmp");
    let output = command(&["demo", "-q", "--max-pages", "20", "--output"])
        .arg(&name)
        .arg("--links")
        .arg(&other)
        .output()
        .unwrap();
    fails(&output, 2, "two outputs would go to");
}
