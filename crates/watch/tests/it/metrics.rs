//! The metrics of a crawl, beside its summary.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawler::peers::{Exchanged, PeersError};
use crawler::{
    Crawl, CrawlOptions, Ending, Event, FetchError, Fetcher, Observer, Peers, Request, ResourceKind, Response, Summary,
};
use crawler_watch::{MetricsFile, Status, Watch};
use frontier::{Frontier, Reach, Time};
use serde_json::Value;
use sieve::{Level, OnSaturation};

/// A runtime whose clock jumps to the next timer.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

/// A site whose first page links to 200 pages, a page that is gone, one that never answers, one that robots.txt forbids, and one of another
/// site.
#[derive(Clone, Default)]
pub(crate) struct Site {
    /// The answers by status; 0 stands for none.
    answers: Arc<Mutex<BTreeMap<u16, u64>>>,
}

impl Fetcher for Site {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let answer = Self::answer(&request);
        let status = answer.as_ref().map_or(0, |answer| answer.status);
        *self.answers.lock().unwrap().entry(status).or_default() += 1;
        answer
    }
}

impl Site {
    fn answer(request: &Request) -> Result<Response, FetchError> {
        let answer = |status, body: String| Response {
            status,
            body: body.into_bytes(),
            ..Response::default()
        };
        let links = (0..200).map(|n| format!("<a href=/page/{n}></a>")).collect::<String>();
        match request.url.path() {
            "/robots.txt" => Ok(answer(200, "User-agent: *\nDisallow: /private/\n".to_owned())),
            "/" => Ok(answer(
                200,
                format!(
                    "{links}<a href=/gone></a><a href=/silent></a><a href=/private/></a><a href=http://b.example/></a>"
                ),
            )),
            "/gone" => Ok(answer(404, String::new())),
            "/silent" => Err(FetchError::Timeout),
            _ if request.kind == ResourceKind::Page => Ok(answer(200, "a page".to_owned())),
            _ => Ok(answer(404, String::new())),
        }
    }
}

/// Other processes of the crawl, to which four batches were sent again.
struct Others;

impl Peers for Others {
    fn exchange(&mut self, _: &mut Frontier, _: Time) -> Result<Exchanged, PeersError> {
        Ok(Exchanged::default())
    }

    fn unsaved(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn synced(&mut self, _: &Frontier, _: bool, _: &Summary, _: Time) {}

    fn knows_end(&self) -> bool {
        false
    }

    fn has_ended(&self, _: Time) -> bool {
        true
    }

    fn has_lost(&self) -> bool {
        false
    }

    fn repeated(&self) -> u64 {
        4
    }

    fn woken(&self) -> Arc<tokio::sync::Notify> {
        Arc::default()
    }

    fn leave(&mut self) {}
}

/// Crawls the site. Returns the summary, and the status at its end and before its last second.
pub(crate) fn crawl(
    site: &Site,
    options: CrawlOptions,
    state: Option<&std::path::Path>,
) -> (Summary, Vec<Arc<Status>>) {
    let mut builder = Crawl::builder(options).unwrap();
    if let Some(state) = state {
        builder = builder.state_dir(state);
    }
    let is_shared = builder.config().options().frontier.partition.is_some();
    let crawl = builder.build_with(site.clone()).unwrap();
    let crawl = if is_shared { crawl.share(Others).unwrap() } else { crawl };
    let (watch, recorder) = Watch::new(&crawl, state);
    let recorder = recorder.with_outputs([concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into()]);
    let (seen, noted) = (watch.clone(), Arc::new(Mutex::new(Vec::new())));
    let list = Arc::clone(&noted);
    let crawl = crawl.observe(recorder).on_event(move |event| {
        if matches!(event, Event::Tick(_) | Event::Finished(_)) {
            list.lock().unwrap().push(seen.status());
        }
    });
    let summary = runtime().block_on(crawl.run()).unwrap();
    let statuses = std::mem::take(&mut *noted.lock().unwrap());
    (summary, statuses)
}

pub(crate) fn options() -> CrawlOptions {
    let mut options = CrawlOptions {
        seeds: vec!["http://a.example/".to_owned()],
        ..CrawlOptions::default()
    };
    options.frontier.politeness.delay = Duration::from_millis(100);
    options.frontier.scope.reach = Reach::Host;
    options
}

/// Returns the value of each line of the text format, by its name and labels.
fn values(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let values = lines.map(|line| line.rsplit_once(' ').unwrap());
    values.map(|(name, value)| (name, value.parse().unwrap())).collect()
}

#[test]
fn the_metrics_at_the_end_are_the_numbers_of_the_summary() {
    let site = Site::default();
    let (summary, statuses) = crawl(&site, options(), None);
    let answers = site.answers.lock().unwrap().clone();
    let [silent, ok, gone] = [0, 200, 404].map(|status| answers[&status] as f64);
    let text = statuses.last().unwrap().metrics();
    let found = values(&text);
    let report = &summary.report;
    let saturation = &report.saturation;
    let links = summary.found_links();
    let expected = [
        ("crawler_pages{state=\"ok\"}", summary.pages as f64),
        ("crawler_pages{state=\"failed\"}", summary.failed_pages() as f64),
        ("crawler_pages{state=\"not_fetched\"}", 1.0),
        ("crawler_pages{state=\"queued\"}", 0.0),
        ("crawler_failed_pages{reason=\"timeout\"}", 1.0),
        ("crawler_failed_pages{reason=\"status\"}", 1.0),
        ("crawler_not_fetched_pages{reason=\"robots_forbid\"}", 1.0),
        ("crawler_requests_in_flight", 0.0),
        ("crawler_responses_total{code=\"200\"}", ok),
        ("crawler_responses_total{code=\"404\"}", gone),
        ("crawler_request_failures_total{kind=\"timeout\"}", silent),
        ("crawler_request_failures_total{kind=\"status\"}", 1.0),
        ("crawler_response_duration_seconds_count", ok + gone),
        ("crawler_body_size_bytes_bucket{le=\"1024\"}", ok + gone - 1.0),
        ("crawler_body_size_bytes_bucket{le=\"16384\"}", ok + gone),
        ("crawler_body_size_bytes_bucket{le=\"1.6777216e+07\"}", ok + gone),
        ("crawler_body_size_bytes_bucket{le=\"+Inf\"}", ok + gone),
        ("crawler_body_bytes_total", summary.answers.bytes as f64),
        ("crawler_politeness_slack_seconds", 0.0),
        ("crawler_links_total{verdict=\"queued\"}", links.queued as f64),
        ("crawler_links_total{verdict=\"seen\"}", links.seen as f64),
        ("crawler_links_refused_total{reason=\"other_host\"}", 1.0),
        ("crawler_elapsed_seconds", summary.elapsed.as_secs_f64()),
        ("crawler_complete", 0.0),
        ("crawler_lost", summary.lost()),
        ("crawler_lost_pages_lower_bound", summary.lost_at_least() as f64),
        ("crawler_missing{reason=\"no_whole_answer\"}", 1.0),
        ("crawler_hosts", report.hosts as f64),
        ("crawler_seen_set_capacity_keys", saturation.capacity.unwrap() as f64),
        ("crawler_seen_set_estimated_keys", saturation.estimated),
        ("crawler_seen_set_accepted_keys", saturation.accepted as f64),
        ("crawler_seen_set_fill_ratio", saturation.fill),
        ("crawler_seen_set_false_positive_ratio", saturation.rate),
        ("crawler_seen_set_memory_bytes", saturation.memory_bytes as f64),
        ("crawler_seen_set_suspicious", 0.0),
        ("crawler_finished{ending=\"drained\"}", 1.0),
        ("crawler_output_bytes", include_str!("../../Cargo.toml").len() as f64),
        (
            "crawler_host_to_blame{kind=\"failing\",host=\"a.example\"}",
            silent + 1.0,
        ),
        ("crawler_phase{phase=\"running\"}", 0.0),
    ];
    assert_eq!((summary.pages, summary.failed_pages()), (201, 2));
    #[cfg(unix)]
    assert!(found["crawler_disk_free_bytes{files=\"outputs\"}"] > 0.0, "{text}");
    for (name, value) in expected {
        let of_name = found.get(name).copied();
        assert!(
            of_name.is_some_and(|found| found.to_bits() == value.to_bits()),
            "{name}: {of_name:?}, {value}\n{text}"
        );
    }
    assert!(
        !found.contains_key("crawler_state_disk_bytes"),
        "there is no state directory"
    );
}

#[test]
fn the_links_between_partitions_are_metrics_of_a_crawl_in_several_processes_alone() {
    let (_, statuses) = crawl(&Site::default(), options(), None);
    assert!(!statuses.last().unwrap().metrics().contains("crawler_cluster"));
    let mut options = options();
    options.frontier.scope.reach = Reach::Any;
    options.frontier.partition = Some("0/2".parse().unwrap());
    options.frontier.limits.max_outbox = 70;
    let (_, statuses) = crawl(&Site::default(), options, None);
    let text = statuses.last().unwrap().metrics();
    let found = values(&text);
    for (name, value) in [
        ("crawler_cluster_info{partition=\"0/2\"}", 1),
        ("crawler_cluster_links_sent_total", 1),
        ("crawler_cluster_links_received_total", 0),
        ("crawler_cluster_links_waiting", 1),
        ("crawler_cluster_links_waiting_limit", 70),
        ("crawler_cluster_batches_repeated_total", 4),
        ("crawler_cluster_batches_lost_total", 0),
        ("crawler_links_total{verdict=\"elsewhere\"}", 1),
    ] {
        assert_eq!(
            found.get(name).map(|found| *found as u64),
            Some(value),
            "{name}\n{text}"
        );
    }
}

#[test]
fn a_running_crawl_has_its_loss_its_queue_and_the_time_to_the_next_level() {
    let mut options = options();
    options.frontier.seen_set.capacity = 20;
    options.frontier.seen_set.on_saturation = OnSaturation::Warn;
    let (summary, statuses) = crawl(&Site::default(), options, None);
    let texts: Vec<_> = statuses.iter().map(|status| status.metrics()).collect();
    let at_five_seconds = values(&texts[5]);
    assert!(at_five_seconds["crawler_pages{state=\"queued\"}"] > 0.0);
    assert_eq!(
        at_five_seconds["crawler_phase{phase=\"running\"}"].to_bits(),
        1_f64.to_bits()
    );
    assert!(!at_five_seconds.contains_key("crawler_finished{ending=\"drained\"}"));
    let lost = at_five_seconds["crawler_lost_pages_lower_bound"];
    assert!(lost > 0.0 && lost <= summary.lost_at_least() as f64, "{lost}");
    assert_eq!(at_five_seconds["crawler_complete"].to_bits(), 0_f64.to_bits());
    // All links were found on the first page.
    assert!(!at_five_seconds.contains_key("crawler_seen_set_next_level_seconds"));
}

#[test]
fn the_time_to_the_next_level_follows_from_the_pace_of_the_last_minute() {
    let (mut summary, _) = crawl(&Site::default(), options(), None);
    summary.report.saturation.load.capacity = Some(1000);
    let crawl = Crawl::builder(options()).unwrap().build_with(Site::default()).unwrap();
    let (watch, mut recorder) = Watch::new(&crawl, None);
    let mut tick = |second: u64, keys: u64| {
        summary.elapsed = Duration::from_secs(second);
        let seen_set = &mut summary.report.saturation;
        // A part of a key is no news.
        seen_set.load.estimated = keys as f64 + 0.01 * (second % 3) as f64;
        seen_set.level = Level::of(seen_set.load.estimated / 1000.0);
        recorder.on(&Event::Tick(&summary)).unwrap();
        watch.status().to_json(str::to_owned)["next_level_seconds"].clone()
    };
    assert_eq!([tick(0, 1), tick(1, 10)], [Value::Null, Value::Null]);
    for second in 2..=50 {
        tick(second, 10 * second);
    }
    // The next level begins at 0.8 of the capacity.
    assert_eq!(tick(51, 510), 29.0);
    for second in 52..=120 {
        tick(second, 510 + (second - 51));
    }
    // One key per second, since a minute ago.
    assert_eq!(tick(121, 580), 220.0);
    let mut left = Value::Null;
    for second in 122..=182 {
        left = tick(second, 580);
    }
    assert_eq!(left, Value::Null);
}

#[test]
fn the_commits_of_a_state_directory_are_measured() {
    let folder = std::env::temp_dir().join(format!("crawl-watch-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let (_, statuses) = crawl(&Site::default(), options(), Some(&folder));
    let text = statuses.last().unwrap().metrics();
    let found = values(&text);
    assert!(found["crawler_state_commit_duration_seconds_count"] > 100.0, "{text}");
    assert!(found["crawler_state_disk_bytes"] >= 4096.0, "{text}");
    assert!(found["crawler_disk_free_bytes{files=\"state\"}"] > 0.0, "{text}");
    assert!(found["crawler_state_last_commit_timestamp_seconds"] >= found["crawler_process_start_time_seconds"]);
    assert!(found["crawler_memory_bytes{part=\"seen_set\"}"] > 0.0);
    let _ = fs::remove_dir_all(&folder);
}

#[test]
fn a_file_of_metrics_is_replaced_as_a_whole_and_has_the_end_of_a_short_crawl() {
    let folder = std::env::temp_dir().join(format!("crawler-metrics-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let crawl = Crawl::builder(options()).unwrap().build_with(Site::default()).unwrap();
    let (watch, recorder) = Watch::new(&crawl, None);
    assert!(MetricsFile::new(&folder.join("no").join("m.prom"), &watch).is_err());
    let path = folder.join("m.prom");
    let file = MetricsFile::new(&path, &watch).unwrap();
    assert!(!path.exists(), "the crawl may still be refused");
    file.write_now();
    assert!(fs::read_to_string(&path).unwrap().contains("crawler_build_info"));
    let summary = runtime().block_on(crawl.observe(recorder).run()).unwrap();
    file.finish().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(values(&text)["crawler_pages{state=\"ok\"}"] as u64, summary.pages);
    assert!(text.contains("crawler_finished{ending=\"drained\"} 1"));
    let names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["m.prom"]);
    let _ = fs::remove_dir_all(&folder);
}

#[test]
fn until_the_time_limit_is_what_is_left_of_this_run() {
    let (mut summary, _) = crawl(&Site::default(), options(), None);
    (summary.elapsed, summary.elapsed_before) = (Duration::from_secs(90), Duration::from_secs(60));
    let left = |max_time| {
        let mut options = options();
        options.max_time = max_time;
        let crawl = Crawl::builder(options).unwrap().build_with(Site::default()).unwrap();
        let (watch, mut recorder) = Watch::new(&crawl, None);
        recorder.on(&Event::Tick(&summary)).unwrap();
        watch.status().to_json(str::to_owned)["time_limit_seconds"].clone()
    };
    assert_eq!(
        [left(None), left(Some(Duration::from_secs(100)))],
        [Value::Null, 70.0.into()]
    );
}

/// An output on a full disk.
struct Full;

impl Observer for Full {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Page(_) => Err(io::Error::other("full")),
            _ => Ok(()),
        }
    }
}

#[test]
fn a_crawl_that_an_error_has_ended_is_incomplete() {
    let (mut summary, _) = crawl(&Site::default(), options(), None);
    // As each second of a crawl that runs.
    summary.ending = Ending::Drained;
    summary.report.queued_pages = 7;
    let begun = || Crawl::builder(options()).unwrap().build_with(Site::default()).unwrap();
    let crawl = begun();
    let (watch, mut recorder) = Watch::new(&crawl, None);
    recorder.on(&Event::Tick(&summary)).unwrap();
    drop(recorder);
    let text = watch.status().metrics();
    let found = values(&text);
    assert_eq!(found["crawler_finished{ending=\"error\"}"] as u64, 1);
    let status = watch.status().to_json(str::to_owned);
    assert_eq!(
        status["summary"]["missing"][0], "ended by an error: 7 pages left",
        "{status}"
    );

    // An output fails.
    let crawl = begun();
    let (watch, recorder) = Watch::new(&crawl, None);
    let crawl = crawl.observe(recorder).observe(Full);
    assert!(runtime().block_on(crawl.run()).is_err());
    let text = watch.status().metrics();
    let found = values(&text);
    assert_eq!(found["crawler_finished{ending=\"error\"}"] as u64, 1);
    assert_eq!(found["crawler_complete"] as u64, 0);
}
