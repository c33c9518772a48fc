//! The summary, the JSON lines, the refused report and the events of one crawl have the same numbers. A scripted site has pages with
//! every kind of end. `docs/numbers.md` defines the words.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::folder::Folder;
use crate::memory_file::MemoryFile;
use crate::scripted::replies::{body, moved, status};
use crate::scripted::{self, Reply, Scripted};
use crawler::output::pages::Pages;
use crawler::output::refused::RefusedReport;
use crawler::output::{Format, Sink};
use crawler::{CrawlOptions, Ending, Event, FetchError, SavedCrawl, Summary, TruncationReason};
use frontier::{Fate, NotFetched};
use serde_json::Value;

const SEED: &str = "http://a.example/";

/// The front page, which links to every URL of the site once.
const HOME: &str = "<a href=/ok></a><a href=/gone></a><a href=/failing></a><a href=/silent></a><a href=/cut></a>
    <a href=/forbidden></a><a href=/moved></a><a href=/nowhere></a><a href=/round></a><a href=/excluded></a>
    <a href=/hidden rel=nofollow></a><a href=mailto:me@a.example></a><a href=http://../></a>
    <a href=http://down.example/1></a><a href=http://down.example/2></a><a href=http://busy.example/></a>
    <a href=http://shut.example/></a><a href=http://inside.example/></a>";

fn every_end(url: &str) -> Reply {
    let rules = "User-agent: *\nDisallow: /forbidden\nSitemap: http://a.example/sitemap.xml\n";
    match url {
        SEED => body(HOME),
        "http://a.example/robots.txt" => body(rules),
        "http://a.example/ok" => body("<a href=/too-deep></a>").map(|mut answer| {
            answer.elapsed = Duration::from_secs(31);
            answer
        }),
        "http://a.example/failing" => status(500),
        "http://a.example/silent" => Err(FetchError::Timeout),
        "http://a.example/cut" => {
            let mut answer = body("<p>so far")?;
            answer.truncation = Some(TruncationReason::Connection);
            Ok(answer)
        }
        "http://a.example/moved" => moved("/target"),
        "http://a.example/target" => body(""),
        "http://a.example/nowhere" => moved("mailto:me@a.example"),
        "http://a.example/round" => moved("/and-round"),
        "http://a.example/and-round" => moved("/round"),
        "http://shut.example/robots.txt" => status(500),
        _ if url.contains("//down.") => Err(FetchError::Connect("connection refused".to_owned())),
        _ if url.contains("//inside.") => Err(FetchError::AddressForbidden),
        _ if url == "http://busy.example/" => status(429),
        _ => status(404),
    }
}

fn options() -> CrawlOptions {
    let mut options = scripted::everywhere(SEED);
    options.frontier.politeness.delay = Duration::from_millis(10);
    options.frontier.retries.max_throttles = NonZeroU32::new(3).unwrap();
    options.frontier.scope.exclude = vec!["/excluded".to_owned()];
    options.frontier.scope.max_depth = Some(1);
    options.reports.links = true;
    options.pages.sitemaps = true;
    options
}

/// The counts of the events.
#[derive(Default)]
struct EventCounts {
    pages: u64,
    failed: BTreeMap<String, u64>,
    retried: BTreeMap<String, u64>,
    not_fetched: BTreeMap<String, u64>,
}

impl EventCounts {
    fn on(&mut self, event: &Event<'_>) {
        let count = |counts: &mut BTreeMap<String, u64>, name: &str| *counts.entry(name.to_owned()).or_default() += 1;
        match event {
            Event::Page(page) => {
                self.pages += 1;
                if page.is_error() {
                    count(&mut self.failed, if page.is_throttled { "throttled" } else { "status" });
                }
            }
            Event::Failed { failure, fate, .. } => match (fate, failure.kind.name()) {
                (Fate::Requeued { .. }, kind) => count(&mut self.retried, kind),
                (_, "status" | "throttled") => {}
                (_, kind) => count(&mut self.failed, kind),
            },
            Event::NotFetched { why, cause, .. } => match why {
                NotFetched::HostDown => count(&mut self.failed, cause.unwrap().kind.name()),
                _ => count(&mut self.not_fetched, why.name()),
            },
            _ => {}
        }
    }
}

struct Run {
    summary: Summary,
    pages: Vec<Value>,
    refused: Vec<Value>,
    events: EventCounts,
}

fn run(options: CrawlOptions, reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Run {
    let (pages, refused) = (MemoryFile::default(), MemoryFile::default());
    let events = Arc::new(Mutex::new(EventCounts::default()));
    let observed = Arc::clone(&events);
    let (json_lines, refused_lines) = (
        Pages::new(Sink::new(pages.clone()), Format::JsonLines, &[]).unwrap(),
        RefusedReport::new(Sink::new(refused.clone()), Format::JsonLines).unwrap(),
    );
    let script = Scripted::new(move |call| reply(call.url()));
    let run = script.crawl_with(options, |crawl| {
        crawl
            .observe(json_lines)
            .observe(refused_lines)
            .observe(move |event: &Event<'_>| observed.lock().unwrap().on(event))
    });
    let events = std::mem::take(&mut *events.lock().unwrap());
    Run {
        summary: run.summary,
        pages: pages.lines(),
        refused: refused.lines(),
        events,
    }
}

/// Counts the lines of a class by reason.
fn of_class(lines: &[Value], class: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in lines.iter().filter(|line| line["class"] == class) {
        *counts.entry(line["reason"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

fn named<K: Copy>(counts: &BTreeMap<K, u64>, name: impl Fn(K) -> &'static str) -> BTreeMap<String, u64> {
    counts
        .iter()
        .map(|(key, count)| (name(*key).to_owned(), *count))
        .collect()
}

#[test]
fn the_summary_the_lines_and_the_events_of_one_crawl_have_the_same_numbers() {
    let Run {
        summary,
        pages,
        refused,
        events,
    } = run(options(), every_end);
    let report = &summary.report;

    let failed = named(&summary.failures.by_kind, |kind| kind.name());
    let expected = [
        ("connect", 2),
        ("incomplete", 1),
        ("redirect", 3),
        ("status", 2),
        ("throttled", 1),
        ("timeout", 1),
    ];
    assert_eq!(
        failed,
        expected.map(|(name, count)| (name.to_owned(), count)).into(),
        "{summary}"
    );
    assert_eq!(events.failed, failed, "the events");
    let mut lines = of_class(&refused, "failed");
    assert_eq!(
        lines.remove("sitemap"),
        Some(summary.sitemaps.failed),
        "counted apart from pages"
    );
    assert_eq!(lines, failed, "the lines of failed URLs");
    assert_eq!(summary.failed_pages(), failed.values().sum::<u64>());

    assert_eq!(events.retried, named(&summary.failures.retried, |kind| kind.name()));
    // Both include the retries of robots.txt files and sitemaps.
    assert_eq!(events.retried.values().sum::<u64>(), report.pages.retries, "{summary}");

    let answered: u64 = summary.by_status.values().sum();
    assert_eq!(
        (pages.len() as u64, events.pages),
        (answered, answered),
        "a JSON line per answer"
    );
    let json = summary.to_json(str::to_owned);
    assert_eq!(json["by_depth"], serde_json::json!([1, answered - 1]));
    for page in &pages {
        let depth = page["depth"].as_u64().unwrap();
        assert_eq!(depth, u64::from(page["url"] != SEED), "{page}");
    }
    let times = json["by_answer_time"].as_array().unwrap();
    assert_eq!((times.len(), &times[0]["seconds"]), (12, &Value::from(0.01)));
    assert_eq!(
        (&times[0]["pages"], &times[11]["pages"]),
        (&Value::from(answered - 1), &Value::from(1))
    );
    assert_eq!(times[11]["seconds"], Value::Null);
    let statuses = pages.iter().filter(|page| page["status"].as_u64().unwrap() >= 300);
    assert_eq!(
        statuses.count() as u64,
        failed["status"] + failed["throttled"],
        "the failed pages among the JSON lines"
    );

    let not_fetched = named(&report.not_fetched, |why| why.name());
    let expected = ["address_forbidden", "robots_forbid", "robots_unreachable"];
    assert_eq!(
        not_fetched,
        expected.map(|name| (name.to_owned(), 1)).into(),
        "{summary}"
    );
    assert_eq!(of_class(&refused, "not_fetched"), not_fetched);
    assert_eq!(events.not_fetched, not_fetched);

    let links_refused = named(&report.links.refused, |why| why.name());
    assert_eq!(of_class(&refused, "refused"), links_refused, "each URL has one link");
    assert_eq!(
        links_refused,
        ["excluded", "too_deep"].map(|name| (name.to_owned(), 1)).into()
    );
    let not_followed = of_class(&refused, "not_followed");
    assert_eq!(not_followed["nofollow"], summary.unfollowed.nofollow);
    // The other one is the redirect without a page at its end.
    assert_eq!(not_followed["not_crawlable"] + 1, summary.unfollowed.unresolvable);
    assert_eq!(summary.unfollowed.other_scheme, 1);

    // Every queued page ends in one way.
    let without_answer = summary.failed_pages()
        - ["status", "throttled", "incomplete", "redirect"]
            .map(|name| failed[name])
            .iter()
            .sum::<u64>();
    let ends = answered + report.pages.redirected + without_answer + not_fetched.values().sum::<u64>();
    assert_eq!((report.links.queued, summary.pages_left()), (ends, 0), "{summary}");
    assert_eq!(summary.ending, Ending::Drained);
}

#[test]
fn the_summary_names_the_unit_of_every_number() {
    let mut summary = run(options(), every_end).summary;
    summary.counts.answers.bytes = 1_763_000;
    summary.peak_memory_bytes = Some(900);
    let shown = summary.to_string();
    let row = |name: &str| {
        let row = shown
            .lines()
            .find_map(|line| line.strip_prefix("  ")?.strip_prefix(name));
        row.unwrap_or_else(|| panic!("{name}: {shown}")).trim().to_owned()
    };
    assert_eq!(row("bytes  "), "1.7 MiB");
    assert_eq!(row("peak memory"), "900 B");
    assert_eq!(row("failed  "), "10 pages");
    assert_eq!(
        row("failed by reason"),
        "connect: 2, timeout: 1, incomplete: 1, status: 2, throttled: 1,"
    );
    assert_eq!(
        row("not fetched"),
        "address_forbidden: 1, robots_forbid: 1, robots_unreachable: 1"
    );
    assert_eq!(row("links refused"), "excluded: 1, too_deep: 1");
    assert_eq!(row("not followed"), "nofollow: 1, not crawlable: 2, other scheme: 1");
    assert!(!shown.contains("left in queue"), "{shown}");
    // The greatest loss comes first.
    assert!(row("INCOMPLETE").starts_with("given up: 2 pages"), "{shown}");
    assert!(shown.contains("no whole answer: 2 pages"), "{shown}");
    let names = shown
        .lines()
        .map(|line| line.split_at_checked(19).map_or(line, |(name, _)| name));
    assert!(
        names
            .clone()
            .all(|name| name.ends_with("  ") || name.trim().len() == 16),
        "columns: {shown}"
    );
}

#[test]
fn pages_left_include_neither_robots_txt_nor_sitemaps() {
    let mut short = options();
    short.frontier.politeness.delay = Duration::from_secs(10);
    short.frontier.scope.max_depth = None;
    // The requests are at 0 (robots.txt), 10 and 20 seconds: the seed and a sitemap. Four sitemaps and four pages are queued.
    short.max_time = Some(Duration::from_secs(25));
    let Run { summary, pages, .. } = run(short, |url| match url {
        SEED => body("<a href=/1></a><a href=/2></a><a href=/3></a><a href=/4></a>"),
        "http://a.example/robots.txt" => {
            let sitemaps: String = (0..5).map(|n| format!("Sitemap: http://a.example/{n}.xml\n")).collect();
            body(&sitemaps)
        }
        _ => status(404),
    });
    assert_eq!(pages.len(), 1, "{summary}");
    assert_eq!(
        (summary.report.queued, summary.report.queued_pages),
        (8, 4),
        "{summary}"
    );
    assert_eq!(
        scripted::missing(&summary),
        ["time is up: 4 pages left (raise max_time)"]
    );
    assert!(summary.to_string().contains("left in queue     4 pages"), "{summary}");
}

#[test]
fn links_between_partitions_are_a_row_of_a_crawl_in_several_processes_alone() {
    for (partition, expected) in [
        (None, None),
        (
            Some("0/2"),
            Some("0/2: 1 link sent to others, 1 of them waiting; 0 received"),
        ),
    ] {
        let folder = Folder::new("partition");
        let mut options = scripted::everywhere(SEED);
        options.frontier.partition = partition.map(|partition| partition.parse().unwrap());
        let site = Scripted::new(|call| match call.url() {
            SEED => body("<a href=http://b.example/></a>"),
            _ => status(404),
        });
        let run = site.crawl_in(&folder.state(), options);
        for summary in [run.summary, SavedCrawl::read(&folder.state()).unwrap().summary] {
            let shown = summary.to_string();
            let row = shown.lines().find_map(|line| line.strip_prefix("  partition "));
            assert_eq!(row.map(str::trim), expected, "{shown}");
            let exchange = &summary.to_json(str::to_owned)["exchange"];
            assert_eq!(exchange["sent"].as_u64(), expected.map(|_| 1), "{exchange}");
        }
    }
}
