//! What is kept of a large crawl, and what is shown of it, stays small. One test, so that no other allocates meanwhile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics at the failing line"
)]

use std::fs;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawler::{
    Crawl, CrawlOptions, Event, FetchError, Fetcher, Observer, PageRecord, Request, RequestRecord, Response, Summary,
};
use crawler_watch::{Recorder, ReportFile, Watch};
use frontier::{Entry, Failure, FailureKind, Fate, Health, Notice, Time};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;
const HOSTS: usize = 10_000;
const PAGES: u64 = 1_000_000;
/// Ten days of ticks, ten minutes apart.
const TICKS: u64 = 10 * 24 * 6;
/// A control character is six bytes in JSON.
const HOSTILE: &str = "\u{1}";

/// Hosts with long names. Every second one does not answer.
#[derive(Clone)]
struct Web;

impl Fetcher for Web {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        match request.url.host_str().unwrap().as_bytes()[0] % 2 {
            0 => Ok(Response {
                status: 200,
                ..Response::default()
            }),
            _ => Err(FetchError::Connect(HOSTILE.repeat(600))),
        }
    }
}

/// What a crawl of three hundred hosts leaves behind, made larger.
struct Large {
    summary: Summary,
    notice: Notice,
    entry: Entry,
}

impl Large {
    fn new() -> Self {
        let labels = format!("{}.", "l".repeat(60)).repeat(3);
        let mut options = CrawlOptions {
            seeds: (0..300)
                .map(|n| format!("http://{}{n}.{labels}example/", n % 10))
                .collect(),
            concurrency: NonZeroUsize::new(500).unwrap(),
            max_time: Some(Duration::from_secs(20)),
            ..CrawlOptions::default()
        };
        options.frontier.traps.max_hosts_per_site = None;
        options.frontier.politeness.ask_robots = false;
        let noted = Arc::new(Mutex::new((None, None)));
        let to = Arc::clone(&noted);
        let crawl = Crawl::builder(options).unwrap().build_with(Web).unwrap();
        let crawl = crawl.on_event(move |event| match event {
            Event::Notice(notice @ Notice::Away { .. }) => to.lock().unwrap().0 = Some((*notice).clone()),
            Event::Failed { entry, .. } => to.lock().unwrap().1 = Some((*entry).clone()),
            _ => {}
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let mut summary = runtime.block_on(crawl.run()).unwrap();
        let (notice, entry) = noted.lock().unwrap().clone();

        let table = Arc::make_mut(&mut summary.host_table);
        table.by_health.insert(Health::Away, HOSTS as u64 / 2);
        for host in &mut table.hosts {
            host.report.robots_at = Some(Time::from_millis(1));
            host.median_pause = Some(Duration::from_micros(1_234_567));
            (host.median, host.longest) = (host.median_pause, host.median_pause);
        }
        summary.report.hosts = HOSTS as u64;
        summary.counts.answers.by_depth = vec![PAGES / 32; 32];
        summary.counts.by_status = (100..1000).map(|status| (status, PAGES / 900)).collect();
        summary.counts.failures.not_html = (0..21).map(|n| (format!("{n:02}{}", HOSTILE.repeat(98)), 1)).collect();
        Self {
            summary,
            notice: notice.unwrap(),
            entry: entry.unwrap(),
        }
    }

    /// Tells of a tick, and of pages before it that all fail.
    fn tick(&mut self, recorder: &mut Recorder, tick: u64, pages: u64) {
        let url = format!("http://h.example/{tick}/{}", "<".repeat(2000));
        let mut request = RequestRecord::default();
        let mut page = PageRecord {
            url: url.clone(),
            title: Some(HOSTILE.repeat(512)),
            ..PageRecord::default()
        };
        self.entry.url = url.into();
        for n in 0..pages {
            page.status = 100 + ((tick * pages + n) % 900) as u16;
            (request.status, request.failure) = (Some(page.status), Some(FailureKind::Status));
            let failed = Event::Failed {
                entry: &self.entry,
                failure: &Failure::new(FailureKind::Status, page.title.clone().unwrap()),
                fate: Fate::Final,
            };
            for event in [Event::Requested(&request), failed, Event::Page(&page)] {
                recorder.on(&event).unwrap();
            }
        }
        recorder.on(&Event::Notice(&self.notice)).unwrap();
        let summary = &mut self.summary;
        summary.elapsed = Duration::from_secs(600 * tick);
        summary.counts.pages = PAGES * tick / TICKS;
        summary.report.links.queued = 2 * summary.counts.pages;
        summary.report.queued_pages = summary.counts.pages / 3;
        recorder.on(&Event::Tick(summary)).unwrap();
    }
}

#[test]
fn a_crawl_of_ten_thousand_hosts_and_a_million_pages_stays_small() {
    let folder = std::env::temp_dir().join(format!("crawler-large-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut large = Large::new();
    let crawl = Crawl::new(CrawlOptions {
        seeds: vec!["http://a.example/".to_owned()],
        ..CrawlOptions::default()
    });
    let crawl = crawl.unwrap();

    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let (watch, mut recorder) = Watch::new(&crawl, Some(&folder));
    for tick in 1..=TICKS {
        large.tick(&mut recorder, tick, 30);
    }
    let kept = ALLOCATED.current_usage() - before;
    for tick in TICKS..TICKS + 10 {
        large.tick(&mut recorder, tick, 10_000);
    }
    let more = ALLOCATED.current_usage() - before;
    recorder.on(&Event::Finished(&large.summary)).unwrap();
    let at_end = ALLOCATED.current_usage() - before;
    let status = watch.status();
    let report = folder.join("report.html");
    ReportFile::new(&report).unwrap().write(&status, str::to_owned).unwrap();
    let peak = ALLOCATED.peak_usage() - before;

    let json = status.to_json(str::to_owned);
    let series = status.series_to_json();
    let length = |file| fs::metadata(folder.join(file)).unwrap().len() as usize;
    let points = series["pages"].as_array().unwrap().len();
    assert_eq!(
        (json["origins_away"].as_u64(), points > 500),
        (Some(HOSTS as u64 / 2), true)
    );
    for (what, bytes, most) in [
        ("event", json.to_string().len(), 160_000),
        ("points of the series", points, 1_000),
        ("series", series.to_string().len(), 150_000),
        ("series in the state directory", length("series.jsonl"), 250_000),
        ("metrics", status.metrics().len(), 100_000),
        ("report", length("report.html"), 750_000),
        ("bytes kept", kept, MIB),
        ("bytes kept after further pages", more, kept + 10_000),
        ("bytes kept at the end", at_end, MIB),
        ("bytes at most", peak, 5 * MIB),
    ] {
        assert!(bytes <= most, "{what}: {bytes}");
    }
    fs::remove_dir_all(folder).unwrap();
}
