//! Custom observers can be tested without a crawl, because every event can be built outside of the crate.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crate::continued_outputs::exchange;
use crate::scripted::{self, Call, Scripted};
use crawler::summary::Counts;
use crawler::{
    Capture, Ending, Event, Failure, FailureKind, FetchError, LinkRecord, Observer, PageRecord, RequestRecord,
    ResourceKind, SitemapRecord, Summary,
};
use frontier::{
    Canonicalizer, Entry, Fate, Frontier, FrontierConfig, Leasing, Link, NotFetched, Notice, Origin, Refusal, Time,
    Verdict,
};

/// Notes one word per event.
#[derive(Default)]
struct Notes(Vec<String>);

impl Observer for Notes {
    fn on(&mut self, event: &Event<'_>) -> std::io::Result<()> {
        self.0.push(match event {
            Event::Page(page) => format!("page {}", page.url),
            Event::Failed { entry, failure, .. } => format!("failed {} {}", entry.url, failure.kind),
            Event::NotFetched { why, cause, .. } => format!("not fetched {} {}", why.name(), cause.is_some()),
            Event::Notice(Notice::Away { origin, .. }) => format!("away {}", origin.as_str()),
            Event::Notice(_) => "notice".to_owned(),
            Event::Offered { verdicts, .. } => format!("offered {verdicts:?}"),
            Event::Requested(request) => format!("requested {:?}", request.status),
            Event::Sitemap(sitemap) => format!("sitemap {}", sitemap.url),
            Event::Links { links, .. } => format!("edges {}", links[0].verdict_name()),
            Event::Captured(capture) => format!("captured {}", capture.exchange.status),
            Event::Tick(summary) => format!("tick {}", summary.pages),
            Event::Finished(summary) => format!("finished {}", summary.ending),
            _ => "something new".to_owned(),
        });
        Ok(())
    }
}

const URL: &str = "http://a.example/";

fn link() -> Link {
    Link::seed(Canonicalizer::default().parse(URL).unwrap())
}

/// Returns an entry as a frontier leases it.
fn entry() -> Arc<Entry> {
    let mut config = FrontierConfig::default();
    config.politeness.ask_robots = false;
    let mut frontier = Frontier::in_memory(config).unwrap();
    let now = Time::from_millis(0);
    frontier.add_seed(&link().url, now).unwrap();
    match frontier.lease(now, 1).unwrap() {
        Leasing::Ready(leases) => Arc::clone(&leases[0].entry),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_event_can_be_built_to_test_an_observer() {
    let report = Frontier::in_memory(FrontierConfig::default()).unwrap().report();
    let (entry, origin) = (entry(), Origin::of(&URL.parse().unwrap()).unwrap());
    let failure = Failure::new(FailureKind::Connect, "refused");
    let page = PageRecord {
        url: URL.to_owned(),
        ..PageRecord::default()
    };
    let mut sitemap = SitemapRecord::default();
    sitemap.url = format!("{URL}sitemap.xml");
    let mut edge = LinkRecord::new(URL, "anchor");
    edge.nofollow = true;
    let capture = Arc::new(Capture::new(
        URL,
        SystemTime::UNIX_EPOCH,
        exchange(),
        b"a page".to_vec(),
    ));
    let notice = Notice::Away {
        origin,
        cause: Arc::new(failure.clone()),
        patience: Duration::from_secs(300),
    };
    let mut summary = Summary::new(Ending::Drained, Counts::default(), report);
    summary.counts.pages = 7;
    assert!(summary.missing().is_empty() && summary.is_empty());

    let mut notes = Notes::default();
    for event in [
        Event::Page(&page),
        Event::Failed {
            entry: &entry,
            failure: &failure,
            fate: Fate::GaveUp,
        },
        Event::NotFetched {
            entry: &entry,
            why: NotFetched::HostDown,
            cause: Some(&failure),
        },
        Event::Notice(&notice),
        Event::Offered {
            links: &[link()],
            verdicts: &[Verdict::Refused(Refusal::QueueFull)],
        },
        Event::Requested(&RequestRecord::default()),
        Event::Sitemap(&sitemap),
        Event::Links {
            from: &entry,
            links: &[edge],
        },
        Event::Captured(&capture),
        Event::Tick(&summary),
        Event::Finished(&summary),
    ] {
        notes.on(&event).unwrap();
    }
    assert_eq!(
        notes.0,
        [
            "page http://a.example/",
            "failed http://a.example/ connect",
            "not fetched host_down true",
            "away http://a.example",
            "offered [Refused(QueueFull)]",
            "requested None",
            "sitemap http://a.example/sitemap.xml",
            "edges nofollow",
            "captured 200",
            "tick 7",
            "finished nothing left to fetch",
        ]
    );
}

/// Each attempt is reported, and a robots.txt that is not there is no failure.
#[test]
fn each_request_is_reported_with_its_status_failure_time_and_size() {
    let answer = |call: &Call<'_>| match (call.path(), call.earlier) {
        ("/robots.txt", _) => Ok(scripted::status(404)),
        ("/", _) => Ok(scripted::page("<a href=/gone></a><a href=/later></a>")),
        ("/later", 0) => Ok(scripted::status(500)),
        ("/later", 1) => Err(FetchError::Timeout),
        ("/later", _) => Ok(scripted::page("at last")),
        _ => Ok(scripted::status(404)),
    };
    let requests = Arc::new(Mutex::new(Vec::<RequestRecord>::new()));
    let noted = Arc::clone(&requests);
    let script = Scripted::new(answer).taking(|_, _| Duration::from_secs(2));
    script.crawl_with(scripted::everywhere("http://a.example/"), |crawl| {
        crawl.on_event(move |event| {
            if let Event::Requested(one) = event {
                noted.lock().unwrap().push(**one);
            }
        })
    });
    let requests = std::mem::take(&mut *requests.lock().unwrap());
    assert!(
        requests
            .iter()
            .filter(|one| one.status.is_none())
            .all(|one| one.took.as_secs() == 2)
    );
    let mut all: Vec<_> = requests
        .iter()
        .map(|one| (one.kind as u8, one.status, one.failure, one.bytes))
        .collect();
    all.sort();
    let (page, robots) = (ResourceKind::Page as u8, ResourceKind::Robots as u8);
    let mut expected = vec![
        (robots, Some(404), None, 0),
        (page, Some(200), None, 37),
        (page, Some(404), Some(FailureKind::Status), 0),
        (page, Some(500), Some(FailureKind::Status), 0),
        (page, None, Some(FailureKind::Timeout), 0),
        (page, Some(200), None, 7),
    ];
    expected.sort();
    assert_eq!(all, expected);
    let delay = scripted::everywhere("http://a.example/").frontier.politeness.delay;
    assert!(requests.iter().all(|one| one.owed == delay));
    let pauses: Vec<_> = requests.iter().map(|one| one.pause).collect();
    assert!(pauses[0].is_none() && pauses[1..].iter().all(|pause| *pause >= Some(delay)));
    assert_eq!(requests[1].slack_seconds(), Some(0.0));
}
