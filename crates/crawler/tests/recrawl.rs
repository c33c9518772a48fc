//! A site that is crawled a second time: only what has changed is sent again, and nothing is missed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

#[path = "common/memory_file.rs"]
mod memory_file;
#[path = "common/paused.rs"]
mod paused;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use crawler::earlier::{EarlierCrawl, EarlierError};
use crawler::output::jsonl::JsonLines;
use crawler::{Answer, Ask, Crawl, CrawlConfig, CrawlOptions, FetchError, Fetcher, Summary};
use frontier::{Frontier, FrontierConfig, Validators};
use memory_file::MemoryFile;
use serde_json::Value;
use sieve::ExactFilter;

/// A site whose pages have versions, and redirects, by path.
#[derive(Clone, Default)]
struct Site {
    pages: BTreeMap<&'static str, (&'static str, String)>,
    redirects: BTreeMap<&'static str, &'static str>,
}

impl Site {
    fn with(mut self, path: &'static str, version: &'static str, body: &str) -> Self {
        self.pages.insert(path, (version, body.to_owned()));
        self
    }

    fn moved(mut self, from: &'static str, to: &'static str) -> Self {
        self.redirects.insert(from, to);
        self
    }

    fn answer(&self, path: &str, known: Option<&Validators>) -> Answer {
        if let Some(to) = self.redirects.get(path) {
            return Answer {
                status: 301,
                location: Some((*to).to_owned()),
                ..Answer::default()
            };
        }
        let Some((version, body)) = self.pages.get(path) else {
            return Answer {
                status: 404,
                ..Answer::default()
            };
        };
        // One half of the pages has a date, the other a tag.
        let validators = if path.len().is_multiple_of(2) {
            Validators {
                etag: Some(format!("\"{version}\"")),
                last_modified: None,
            }
        } else {
            Validators {
                etag: None,
                last_modified: Some(format!("the date of {version}")),
            }
        };
        if known == Some(&validators) {
            return Answer {
                status: 304,
                ..Answer::default()
            };
        }
        Answer {
            status: 200,
            body: body.as_bytes().to_vec(),
            validators,
            ..Answer::default()
        }
    }
}

struct Server {
    site: Site,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fetcher for Server {
    async fn fetch(&self, ask: Ask) -> Result<Answer, FetchError> {
        self.asked.lock().unwrap().push(ask.url.path().to_owned());
        Ok(self.site.answer(ask.url.path(), ask.validators.as_deref()))
    }
}

struct Run {
    summary: Summary,
    asked: Vec<String>,
    pages: MemoryFile,
}

impl Run {
    /// Status by path, of what was written.
    fn statuses(&self) -> BTreeMap<String, u64> {
        let path = |page: &Value| page["url"].as_str().unwrap().replace("http://a.example", "");
        self.pages
            .lines()
            .iter()
            .map(|page| (path(page), page["status"].as_u64().unwrap()))
            .collect()
    }
}

fn crawl(site: &Site, earlier: Option<EarlierCrawl>) -> Run {
    let frontier = FrontierConfig {
        ask_robots: false,
        ..FrontierConfig::default()
    };
    let options = CrawlOptions {
        seeds: vec!["http://a.example/".to_owned()],
        frontier: frontier.clone(),
        ..CrawlOptions::default()
    };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let server = Server {
        site: site.clone(),
        asked: Arc::clone(&asked),
    };
    let frontier = Frontier::with_filter(frontier, ExactFilter::new()).unwrap();
    let pages = MemoryFile::default();
    let mut crawl =
        Crawl::with(CrawlConfig::new(options).unwrap(), frontier, server).observe(JsonLines::new(pages.clone()));
    if let Some(earlier) = earlier {
        crawl = crawl.recrawl(earlier);
    }
    let summary = paused::runtime().block_on(crawl.run()).unwrap();
    let mut asked = std::mem::take(&mut *asked.lock().unwrap());
    asked.sort();
    Run { summary, asked, pages }
}

/// A file of its own for every test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("recrawl-{name}.jsonl"));
    std::fs::write(&path, text).unwrap();
    path
}

fn earlier(name: &str, text: &str) -> EarlierCrawl {
    EarlierCrawl::open(&file(name, text)).unwrap()
}

fn first_site() -> Site {
    Site::default()
        .with("/", "1", "<a href=/a><a href=/bb><a href=/gone>")
        .with("/a", "1", "<a href=/a/below><a href=/old>")
        .with("/a/below", "1", "")
        .with("/bb", "1", "<a href=/bb/below>")
        .with("/bb/below", "1", "")
        .with("/new", "1", "")
        .moved("/old", "/new")
}

#[test]
fn pages_that_are_still_the_same_are_asked_for_and_not_sent() {
    let first = crawl(&first_site(), None);
    let second = crawl(&first_site(), Some(earlier("same", &first.pages.text())));
    assert_eq!(second.asked, first.asked);
    let expected = [
        ("/", 200),
        ("/a", 304),
        ("/a/below", 304),
        ("/bb", 304),
        ("/bb/below", 304),
        ("/gone", 404),
        ("/new", 304),
    ];
    let expected: BTreeMap<String, u64> = expected.map(|(path, status)| (path.to_owned(), status)).into();
    assert_eq!(second.statuses(), expected);
    assert_eq!(second.summary.by_status[&304], 5);

    // What a 304 leaves out of its versions is remembered: a third crawl has as little to do.
    let third = crawl(&first_site(), Some(earlier("third", &second.pages.text())));
    assert_eq!(third.statuses(), expected);
}

#[test]
fn what_has_changed_is_sent_and_what_is_new_behind_it_is_found() {
    let first = crawl(&first_site(), None);
    let changed = first_site()
        .with("/bb/below", "2", "<a href=/fresh>")
        .with("/fresh", "1", "")
        .with("/gone", "1", "<a href=/back>")
        .with("/back", "1", "")
        .with("/elsewhere", "1", "")
        .moved("/old", "/elsewhere");
    let second = crawl(&changed, Some(earlier("changed", &first.pages.text())));
    let whole = crawl(&changed, None);
    let statuses = second.statuses();
    // All that a crawl from the start finds, and what nothing leads to any more.
    for path in whole.statuses().keys() {
        assert!(statuses.contains_key(path), "{path}");
    }
    for (path, status) in [
        ("/a", 304),
        ("/bb", 304),
        ("/bb/below", 200),
        ("/fresh", 200),
        ("/gone", 200),
        ("/back", 200),
    ] {
        assert_eq!(statuses[path], status, "{path}");
    }
    assert_eq!((statuses["/elsewhere"], statuses["/new"]), (200, 304));
}

#[test]
fn a_page_that_was_not_had_whole_is_asked_for_whole() {
    let lines = [
        r#"{"url":"http://a.example/a","status":200,"etag":"\"1\"","body_cut":"connection"}"#,
        r#"{"url":"http://a.example/bb","status":200,"last_modified":"the date of 1","body_cut":"size"}"#,
        r#"{"url":"http://a.example/c","status":500,"etag":"\"1\""}"#,
        r#"{"url":"http://a.example/d"}"#,
    ];
    let site = ["/a", "/bb", "/c", "/d"]
        .iter()
        .fold(Site::default().with("/", "1", ""), |site, path| {
            site.with(path, "1", "")
        });
    let run = crawl(&site, Some(earlier("cut", &format!("{}\n", lines.join("\n")))));
    let statuses = run.statuses();
    assert_eq!((statuses["/a"], statuses["/bb"]), (200, 304));
    assert_eq!((statuses["/c"], statuses["/d"]), (200, 200));
}

#[test]
fn pages_out_of_scope_and_urls_that_are_none_stay_out() {
    let lines = "{\"url\":\"http://b.example/x\"}\n{\"url\":\"mailto:x\"}\n\n{\"url\":\"no url\"}\n{\"url\":\"http://a.example/x\"}\n";
    let run = crawl(&Site::default().with("/", "1", ""), Some(earlier("scope", lines)));
    assert_eq!(run.asked, ["/", "/x"]);
    assert_eq!(run.summary.report.links.refused.values().sum::<u64>(), 1);
}

#[test]
fn a_file_that_is_no_output_says_where_and_a_torn_end_is_passed_over() {
    let open = |name, text| EarlierCrawl::open(&file(name, text));
    for (name, text) in [
        ("xml", "{\"url\":\"http://a.example/\"}\n<urlset>\n"),
        ("fields", "{\"url\":\"http://a.example/\"}\n{\"from\":\"x\"}\n"),
        ("types", "{\"url\":\"http://a.example/\"}\n{\"url\":1}\n"),
    ] {
        match open(name, text) {
            Err(error @ EarlierError::Line { line: 2, .. }) => {
                assert!(error.to_string().contains("line 2 of "), "{error}");
                assert!(error.to_string().contains("--output"), "{error}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(matches!(
        EarlierCrawl::open(Path::new("/nowhere/x")),
        Err(EarlierError::Read { .. })
    ));
    let torn = open("torn", "{\"url\":\"http://a.example/\"}\n{\"url\":\"http://a.exa").unwrap();
    assert_eq!(torn.pages().unwrap().count(), 1);
    assert_eq!(open("empty", "").unwrap().pages().unwrap().count(), 0);
}

#[test]
fn the_command_keeps_what_it_is_to_read() {
    let text = "{\"url\":\"http://127.0.0.1:1/\"}\n";
    let kept = file("kept", text);
    let broken = file("broken", "x\n");
    let target = file("target", "precious\n");
    let run = |options: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_crawler"))
            .args(options)
            .arg("http://127.0.0.1:1/")
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let [kept, broken, target] = [&kept, &broken, &target].map(|path| path.to_str().unwrap());
    let (code, why) = run(&["--recrawl", kept, "--output", kept]);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("would be replaced"), "{why}");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), text);

    let (code, why) = run(&["--recrawl", broken, "--output", target]);
    assert_eq!(code, Some(1), "{why}");
    assert!(why.contains("line 1 of"), "{why}");
    assert_eq!(std::fs::read_to_string(target).unwrap(), "precious\n");
}
