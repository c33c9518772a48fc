//! Pages whose last fetch is old are fetched again, by conditional requests: over restarts, kills, and while the crawl runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::certificates_and_cookies::WARNINGS;
use crate::folder::Folder;
use crate::scripted;
use crawler::output::pages::Pages;
use crawler::output::{Format, Sink};
use crawler::{Crawl, CrawlOptions, Ending, FetchError, Fetcher, Request, ResourceKind, Response, SavedCrawl, Summary};
use frontier::{FreshnessConfig, Validators};
use serde_json::Value;
use tokio::time::{sleep, timeout};

/// Longer than the crawl takes, but for its slow page.
const AGE: Duration = Duration::from_secs(10_000);
const FOREVER: Duration = Duration::from_secs(1_000_000);
const SLOW: Duration = Duration::from_secs(15_000);

/// A request for a page: its path, and the `ETag` that it was sent with.
type Asked = (String, Option<String>);

/// Pages `/` to `/19`, and `/slow`, whose first answer takes long. From its second version on, `/4` has other bytes, `/5` is gone, and `/6`
/// links to a new page.
#[derive(Clone, Default)]
struct Site(Arc<Mutex<Vec<Asked>>>);

impl Site {
    fn asked(&self) -> Vec<Asked> {
        self.0.lock().unwrap().clone()
    }

    /// How often each path was asked for.
    fn times(&self) -> BTreeMap<String, usize> {
        let mut times = BTreeMap::new();
        for (path, _) in self.asked() {
            *times.entry(path).or_insert(0) += 1;
        }
        times
    }
}

impl Fetcher for Site {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        if request.kind == ResourceKind::Robots {
            return Ok(scripted::status(404));
        }
        let path = request.url.path().to_owned();
        let etag = request.validators.and_then(|validators| validators.etag);
        let earlier = self.times().get(&path).copied().unwrap_or(0);
        self.0.lock().unwrap().push((path.clone(), etag.clone()));
        sleep(if path == "/slow" && earlier == 0 {
            SLOW
        } else {
            Duration::from_millis(100)
        })
        .await;
        Ok(answer(&path, earlier > 0, etag.as_deref()))
    }
}

fn answer(path: &str, is_second: bool, etag: Option<&str>) -> Response {
    let mut body = match path {
        "/" => (1..20).map(|page| format!("<a href=/{page}>x</a>")).collect::<String>() + "<a href=/slow>x</a>",
        _ => format!("<p>page {path}</p>"),
    };
    match (path, is_second) {
        ("/4", true) => body += "<p>changed</p>",
        ("/5", true) => return scripted::status(410),
        ("/6", true) => body += "<a href=/new>x</a>",
        _ => {}
    }
    let tag = format!("\"{}-{}\"", path, body.len());
    // Some pages have no validators, and one of them does not change.
    let has_tag = !matches!(path, "/4" | "/7");
    if has_tag && etag == Some(&tag) {
        return scripted::status(304);
    }
    Response {
        validators: Validators {
            etag: has_tag.then_some(tag),
            last_modified: None,
        },
        ..scripted::page(body)
    }
}

impl Folder {
    /// The values of a field in the lines of a page, in order.
    fn of(&self, path: &str, field: &str) -> Vec<Value> {
        let is_meant = |line: &&Value| line["url"] == format!("http://a.example{path}");
        self.lines("pages")
            .iter()
            .filter(is_meant)
            .map(|line| line[field].clone())
            .collect()
    }
}

fn options(refresh: Option<Duration>) -> CrawlOptions {
    CrawlOptions {
        refresh,
        concurrency: 2.try_into().unwrap(),
        ..two_at_once(scripted::options("http://a.example/"))
    }
}

fn two_at_once(mut options: CrawlOptions) -> CrawlOptions {
    options.frontier.politeness.per_host = 2.try_into().unwrap();
    options
}

/// Runs a crawl, and drops it after `time` as by a kill.
fn run(folder: &Folder, site: &Site, options: CrawlOptions, time: Duration) -> Option<Summary> {
    let crawl = Crawl::builder(options)
        .unwrap()
        .state_dir(folder.state())
        .build_with(site.clone())
        .unwrap();
    let file = folder.output(&crawl, "pages");
    let crawl = crawl.observe(Pages::new(Sink::continuing("pages", file), Format::JsonLines, &[]).unwrap());
    let runtime = scripted::paused_runtime();
    let ended = runtime.block_on(async { timeout(time, crawl.run()).await.ok() });
    ended.map(Result::unwrap)
}

fn check_second_lines(folder: &Folder) {
    assert_eq!(folder.of("/3", "status"), [200, 304]);
    assert_eq!(folder.of("/3", "is_new"), [true, false]);
    assert_eq!(folder.of("/new", "is_new"), [true]);
    assert_eq!(folder.of("/3", "unchanged"), [Value::Null, true.into()]);
    assert_eq!(folder.of("/3", "depth"), [1, 1]);
    assert_eq!(folder.of("/3", "referrer"), ["http://a.example/", "http://a.example/"]);
    assert_eq!(folder.of("/3", "etag")[0], folder.of("/3", "etag")[1]);
    assert_eq!(folder.of("/4", "unchanged"), [Value::Null, false.into()]);
    assert_eq!(folder.of("/5", "status"), [200, 410]);
    assert_eq!(folder.of("/6", "unchanged"), [Value::Null, false.into()]);
    // A page that only a changed page links to is found.
    assert_eq!(folder.of("/new", "unchanged"), [Value::Null]);
}

#[test]
fn pages_are_kept_fresh_over_kills_and_the_crawl_does_not_end_by_itself() {
    let (folder, site) = (Folder::new("kept-fresh"), Site::default());
    let mut options = options(None);
    options.frontier.freshness = FreshnessConfig {
        keeps_fresh: true,
        min_age: Duration::from_secs(1000),
        max_age: Duration::from_secs(5000),
        ..FreshnessConfig::default()
    };
    options.max_time = Some(Duration::from_secs(60_000));
    assert!(run(&folder, &site, options.clone(), Duration::from_secs(30_000)).is_none());
    let before = site.times();
    let summary = run(&folder, &site, options, FOREVER).unwrap();
    assert_eq!(summary.ending, Ending::TimeUp);
    assert_eq!(
        SavedCrawl::read(&folder.state()).unwrap().summary.ending,
        Ending::TimeUp
    );
    for (path, times) in site.times() {
        // The first answer of one takes a quarter of the time.
        let least = if path == "/slow" { 2 } else { 5 };
        let first = before.get(&path).copied().unwrap_or_default();
        assert!((least..=31).contains(&first), "{path}: {first}");
        assert!((11..=61).contains(&(times - first)), "{path}: {times} after {first}");
        let lines = folder.of(&path, "status").len();
        assert!(lines == times || lines + 1 == times, "{path}: {lines} lines of {times}");
    }
    let fresh = summary.freshness.as_ref().unwrap();
    assert!(
        fresh.fresh > 0.9 && fresh.oldest < Duration::from_secs(6000),
        "{fresh:?}"
    );
    assert_eq!(folder.of("/3", "status")[..3], [200, 304, 304]);
    assert_eq!(
        folder.of("/4", "unchanged")[..3],
        [Value::Null, false.into(), true.into()]
    );
}

#[test]
fn pages_that_come_of_age_while_the_crawl_runs_are_fetched_again_once() {
    let (folder, site) = (Folder::new("running"), Site::default());
    let summary = run(&folder, &site, options(Some(AGE)), FOREVER).unwrap();
    assert_eq!(summary.ending, Ending::Drained);
    let times = site.times();
    assert_eq!((times["/slow"], times["/new"]), (1, 1), "neither is old at the end");
    assert!(
        (0..20).all(|page| times[&format!("/{}", if page == 0 { String::new() } else { page.to_string() })] == 2),
        "{times:?}"
    );
    let refreshed = summary.refreshed;
    assert_eq!((refreshed.pages, refreshed.gone), (20, 1));
    // All but 4, 5 and 6; the content of 7 was hashed at its first fetch, too.
    assert_eq!(refreshed.unchanged, 17);
    assert_eq!(summary.pages, 22);
    assert!(summary.missing().is_empty(), "{:?}", summary.missing());
    check_second_lines(&folder);
}

#[test]
fn a_later_run_fetches_again_what_is_old_and_then_ends_at_once() {
    let (folder, site) = (Folder::new("later"), Site::default());
    run(&folder, &site, options(None), FOREVER).unwrap();
    assert_eq!(site.asked().len(), 21);
    let _ = log::set_logger(&WARNINGS);
    log::set_max_level(log::LevelFilter::Warn);
    let summary = run(&folder, &site, options(Some(AGE)), FOREVER).unwrap();
    assert_eq!((summary.ending, summary.refreshed.pages), (Ending::Drained, 20));
    check_second_lines(&folder);
    // The first run has gone hours into the future.
    let says =
        |warning: &String| warning.contains("ahead of the time of day") && warning.contains("pages grow old only");
    assert!(WARNINGS.0.lock().unwrap().iter().any(says));
    let asked = site.asked();
    assert!(
        asked[21..].iter().filter(|(_, etag)| etag.is_some()).count() >= 18,
        "{asked:?}"
    );
    let requests = site.asked().len();
    let summary = run(&folder, &site, options(Some(AGE)), FOREVER).unwrap();
    assert_eq!((summary.ending, site.asked().len()), (Ending::Drained, requests));
}

#[test]
fn kills_while_pages_are_fetched_again_lose_none_and_repeat_only_what_was_in_flight() {
    let (folder, site) = (Folder::new("kills"), Site::default());
    run(&folder, &site, options(None), FOREVER).unwrap();
    let mut kills = 0;
    let summary = loop {
        let time = Duration::from_millis(50 + 40 * kills);
        if let Some(summary) = run(&folder, &site, options(Some(AGE)), time) {
            break summary;
        }
        kills += 1;
    };
    assert!(kills > 3, "{kills}");
    assert_eq!((summary.ending, summary.refreshed.pages), (Ending::Drained, 20));
    check_second_lines(&folder);
    let mut lines = BTreeMap::new();
    for line in folder.lines("pages") {
        *lines.entry(line["url"].to_string()).or_insert(0) += 1;
    }
    assert_eq!(lines.values().sum::<i32>(), 22 + 20, "{lines:?}");
    let again = site.asked().len() - (22 + 20);
    assert!(again as u64 <= 2 * kills, "{again} requests more after {kills} kills");
}

#[test]
fn without_a_state_directory_nothing_is_fetched_again() {
    let site = Site::default();
    let crawl = Crawl::builder(options(Some(AGE)))
        .unwrap()
        .build_with(site.clone())
        .unwrap();
    let summary = scripted::paused_runtime().block_on(crawl.run()).unwrap();
    assert_eq!((summary.ending, site.asked().len()), (Ending::Drained, 21));
}
