//! Whether a crawl is complete, and if not, what is missing and why. The fetcher is scripted, and the clock is paused.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::memory_file::MemoryFile;
use crate::scripted::replies::{body, status};
use crate::scripted::{self, Reply, Scripted, refused};
use crawler::output::refused::RefusedReport;
use crawler::output::{Format, Sink};
use crawler::{CrawlOptions, FetchError, Missing, Summary};
use serde_json::Value;
use sieve::OnSaturation;

const SEED: &str = "http://a.example/";

fn options() -> CrawlOptions {
    let mut options = scripted::everywhere(SEED);
    options.frontier.politeness.delay = Duration::from_millis(10);
    options
}

/// Crawls, and returns the summary with the lines of the refused report.
fn run(options: CrawlOptions, reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> (Summary, Vec<Value>) {
    let file = MemoryFile::default();
    let report = RefusedReport::new(Sink::new(file.clone()), Format::JsonLines).unwrap();
    let script = Scripted::new(move |call| reply(call.url()));
    let run = script.crawl_with(options, |crawl| crawl.observe(report));
    (run.summary, file.lines())
}

fn links(count: usize) -> String {
    (0..count).map(|n| format!("<a href=/{n}></a>")).collect()
}

/// Returns a site whose seed links to `count` pages.
fn site(count: usize) -> impl Fn(&str) -> Reply + Send + Sync + 'static {
    let page = links(count);
    move |url| if url == SEED { body(&page) } else { body("") }
}

/// Returns the summary with one space between its words.
fn one_line(summary: &Summary) -> String {
    summary.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn says(summary: &Summary, text: &str) {
    let shown = one_line(summary);
    assert!(shown.contains(&format!("INCOMPLETE {text}")), "{shown}");
    assert!(!shown.contains("complete yes"), "{shown}");
}

#[test]
fn a_crawl_with_failed_final_answers_is_complete() {
    let (summary, _) = run(options(), |url| match url {
        SEED => body(&links(6)),
        "http://a.example/robots.txt" => body("User-agent: *\nDisallow: /1\n"),
        "http://a.example/2" => status(404),
        "http://a.example/3" => status(500),
        _ => body(""),
    });
    assert_eq!(summary.missing(), [], "{summary}");
    assert!(summary.to_string().contains("complete          yes"), "{summary}");
}

#[test]
fn an_interrupted_crawl_reports_the_number_of_pages_left() {
    let mut few = options();
    few.frontier.limits.max_pages = Some(3);
    let (summary, _) = run(few, site(10));
    assert_eq!(summary.missing().len(), 1);
    says(&summary, "page budget spent: 8 pages left (raise max_pages)");
    // The requests are at 0 (robots.txt), 10 and 20 seconds.
    let mut short = options();
    short.frontier.politeness.delay = Duration::from_secs(10);
    short.max_time = Some(Duration::from_secs(25));
    let (summary, _) = run(short, site(10));
    assert_eq!(summary.missing().len(), 1);
    says(&summary, "time is up: 9 pages left (raise max_time)");
}

#[test]
fn given_up_origins_are_counted_with_their_queued_pages() {
    let page: String = (0..7)
        .map(|n| format!("<a href=http://down{}.example/{n}></a>", n % 2))
        .collect();
    let (summary, lines) = run(options(), move |url| match url {
        SEED => body(&page),
        _ if url.contains("down") => refused(),
        _ => body(""),
    });
    assert_eq!(summary.missing().len(), 1);
    says(
        &summary,
        "given up: 7 pages (is it running? max_first_downtime and max_host_downtime wait longer)",
    );
    let urls: BTreeSet<&str> = lines.iter().map(|line| line["url"].as_str().unwrap()).collect();
    assert_eq!((lines.len(), urls.len()), (7, 7), "{lines:?}");
    for line in &lines {
        assert_eq!(line["class"], "failed", "{line}");
        assert_eq!(line["reason"], "connect", "{line}");
        assert_eq!(line["referrer"], SEED, "{line}");
        let detail = line["detail"].as_str().unwrap();
        assert!(
            detail.starts_with("its origin was given up: ") && detail.contains("connection refused"),
            "{line}"
        );
    }
}

/// Returns the capacity that a text says is enough.
fn enough_in(text: &str) -> u64 {
    let number = text
        .split_once("(set capacity ")
        .and_then(|(_, rest)| rest.split_once(' '));
    number.unwrap().0.parse().unwrap()
}

#[test]
fn the_urls_that_a_full_seen_set_drops_are_estimated_until_it_drops_all() {
    for (capacity, pages, full) in [
        (50, 200, ""),
        (
            1,
            9000,
            "; it is full and drops every new URL, so how many is no longer known",
        ),
    ] {
        let mut tiny = options();
        (tiny.frontier.seen_set.exact, tiny.frontier.seen_set.capacity) = (false, capacity);
        tiny.frontier.seen_set.false_positive_rate = 0.01;
        tiny.frontier.seen_set.on_saturation = OnSaturation::Warn;
        // The loss depends on the hash, which is the same in each run.
        tiny.frontier.seen_set.hash = sieve::Hashing::Murmur3 { seed: 1 };
        let (summary, _) = run(tiny, site(pages));
        let missing = summary.missing();
        let (at_least, enough) = (missing[0].lost, enough_in(&missing[0].to_string()));
        assert_eq!((missing.len(), missing[0].kind), (1, Missing::SEEN_SET), "{summary}");
        let dropped = pages as u64 + 1 - summary.pages;
        assert!(dropped > 20 && at_least <= dropped, "{dropped} were dropped: {summary}");
        assert_eq!(at_least >= dropped / 2, full.is_empty(), "{summary}");
        let rounded = crawler::summary::rounded_down(at_least);
        let text = format!(
            "seen-set: at least {rounded} URLs dropped{full}, and what only they link to is missing (set capacity {enough} or more)"
        );
        says(&summary, &text);
        let shown = one_line(&summary);
        assert_eq!(
            shown.contains("the seen-set is full and drops every new key"),
            !full.is_empty(),
            "{shown}"
        );
    }
}

#[test]
fn pages_whose_robots_txt_could_not_be_fetched_are_counted() {
    let page: String = (0..3)
        .map(|n| format!("<a href=http://shut.example/{n}></a>"))
        .collect();
    let (summary, lines) = run(options(), move |url| match url {
        SEED => body(&page),
        "http://shut.example/robots.txt" => status(500),
        _ => body(""),
    });
    assert_eq!((summary.missing().len(), summary.lost_at_least()), (1, 3));
    says(&summary, "robots.txt could not be fetched: 3 pages");
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in &lines {
        assert_eq!(line["class"], "not_fetched", "{line}");
        assert_eq!(line["reason"], "robots_unreachable", "{line}");
        assert_eq!(line["detail"], "status: status 500", "{line}");
    }
}

/// Returns a page whose body breaks off.
fn broken_off() -> Reply {
    let mut answer = body("<p>so far")?;
    answer.truncation = Some(crawler::TruncationReason::Connection);
    Ok(answer)
}

#[test]
fn only_pages_without_a_whole_answer_are_counted_as_missing() {
    let (summary, lines) = run(options(), |url| match url {
        SEED => body(&links(40)),
        "http://a.example/10" | "http://a.example/20" => Err(FetchError::Timeout),
        "http://a.example/30" => status(503),
        "http://a.example/35" => broken_off(),
        "http://a.example/36" => Err(FetchError::Malformed("the status".to_owned())),
        "http://a.example/37" => Err(FetchError::HeadTooLarge("9 headers".to_owned())),
        _ => body(""),
    });
    assert_eq!(
        scripted::missing(&summary),
        [
            "no whole answer: 3 pages (raise max_attempts or timeout)",
            // Another attempt would not help.
            "head of the answer malformed or too long: 2 pages (if too long, raise max_headers or max_header_bytes)"
        ]
    );
    says(&summary, "no whole answer: 3 pages (raise max_attempts or timeout)");
    let (cut, _) = run(options(), |url| match url {
        SEED => body(&links(9)),
        "http://a.example/3" => broken_off(),
        _ => body(""),
    });
    says(&cut, "no whole answer: 1 page (raise max_attempts)");
    let reasons: BTreeSet<_> = lines.iter().map(|line| line["reason"].as_str().unwrap()).collect();
    assert_eq!(
        reasons,
        BTreeSet::from(["head_too_large", "incomplete", "malformed", "status", "timeout"])
    );
}

#[test]
fn all_reasons_are_listed() {
    let mut few = options();
    few.frontier.limits.max_queued = 20;
    let (summary, _) = run(few, |url| match url {
        SEED => body(&("<a href=http://down.example/></a>".to_owned() + &links(40))),
        _ if url.contains("down") => refused(),
        _ => body(""),
    });
    let kinds: Vec<_> = summary
        .missing()
        .iter()
        .map(|one| (one.kind, one.lost, one.lost_at_least))
        .collect();
    assert_eq!(kinds, [("given_up", 1, 1), ("queue_full", 21, 0)]);
    says(&summary, "given up: 1 page (is it running?");
    let shown = one_line(&summary);
    assert!(shown.contains("21 links refused (raise max_queued)"), "{shown}");
}
