//! Crawls with a state directory: ended at any moment, they continue without a loss and without a line twice.

mod before_commits;
mod known_links;
mod other_versions;
mod power_cuts;
mod shared;
mod stops;
mod times;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::folder::Folder;
use crate::scripted;
use crawler::output::OutputFile;
use crawler::output::pages::Pages;
use crawler::output::refused::RefusedReport;
use crawler::output::{Format, Sink};
use crawler::{
    Crawl, CrawlError, CrawlOptions, Ending, Event, FetchError, Fetcher, KnownLinks, Observer, Request, ResourceKind,
    Response, StartError, Summary,
};
use tokio::time::{sleep, timeout};

const PAGES: usize = 60;

/// A tree of pages on three hosts. Some answers are errors, some redirect, and some links are refused.
fn answer(request: &Request, earlier: usize) -> Result<Response, FetchError> {
    if request.kind == ResourceKind::Robots {
        return Ok(scripted::page("User-agent: *\nDisallow: /7\nCrawl-delay: 2"));
    }
    let name = request.url.path().trim_start_matches('/');
    let Ok(number) = name.trim_end_matches("/x").parse::<usize>() else {
        return Ok(scripted::status(404));
    };
    if number % 10 == 8 && !name.ends_with("/x") {
        return Ok(scripted::redirect(&format!("{}/x", request.url)));
    }
    if number % 10 == 9 && earlier == 0 {
        return Err(FetchError::Broken("broken off".to_owned()));
    }
    let links = (number * 3 + 1..=number * 3 + 3).filter(|child| *child < PAGES);
    let links = links.map(|child| format!("<a href={}>x</a>", url(child)));
    let others = format!(
        "<a href=http://other.test/{}>x</a><a href=/missing/{}>x</a>",
        number % 4,
        number % 5
    );
    Ok(scripted::page(links.collect::<String>() + &others))
}

fn url(number: usize) -> String {
    format!("http://{}.example/{number}", ["a", "b", "c"][number % 3])
}

/// The URLs of the requests of all runs.
#[derive(Clone, Default)]
struct Site(Arc<Mutex<Vec<String>>>);

impl Site {
    fn urls(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Fetcher for Site {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let earlier = {
            let mut requests = self.0.lock().unwrap();
            let earlier = requests
                .iter()
                .filter(|earlier| *earlier == request.url.as_str())
                .count();
            requests.push(request.url.to_string());
            earlier
        };
        sleep(Duration::from_millis(300)).await;
        answer(&request, earlier)
    }
}

fn options() -> CrawlOptions {
    let mut options = scripted::options(&url(0));
    options.frontier.scope.reach = frontier::Reach::Any;
    options.frontier.scope.include = vec!["[.]example/".to_owned()];
    options.concurrency = 4.try_into().unwrap();
    options
}

fn open(folder: &Folder, site: &Site, options: CrawlOptions) -> Result<Crawl<Site>, StartError> {
    Crawl::builder(options)
        .unwrap()
        .state_dir(folder.state())
        .build_with(site.clone())
}

fn with_outputs(crawl: Crawl<Site>, folder: &Folder) -> Crawl<Site> {
    let pages = Pages::new(
        Sink::continuing("pages", folder.output(&crawl, "pages")),
        Format::JsonLines,
        &[],
    )
    .unwrap();
    let refused = RefusedReport::new(
        Sink::continuing("refused", folder.output(&crawl, "refused")),
        Format::JsonLines,
    )
    .unwrap();
    crawl.observe(pages).observe(refused)
}

/// Runs a crawl until it ends. After `time` it is dropped, as by a kill, and `None` is returned.
fn run(crawl: Crawl<Site>, time: Duration) -> Option<Result<Summary, CrawlError>> {
    let runtime = scripted::paused_runtime();
    runtime.block_on(async { timeout(time, crawl.run()).await.ok() })
}

const FOREVER: Duration = Duration::from_secs(100_000);

fn run_to_end(folder: &Folder, site: &Site) -> Summary {
    let crawl = with_outputs(open(folder, site, options()).unwrap(), folder);
    run(crawl, FOREVER).unwrap().unwrap()
}

/// What a summary says of the pages, without what a repeated request changes.
fn counts(summary: &Summary) -> String {
    let report = &summary.report;
    format!(
        "{:?} {:?} {:?} {} {:?} {:?} {} {}",
        summary.by_status,
        summary.failures.by_kind,
        summary.ending,
        summary.pages,
        report.not_fetched,
        report.links.refused.keys(),
        report.pages.done,
        report.pages.redirected,
    )
}

#[test]
fn a_crawl_that_is_killed_again_and_again_ends_like_one_that_never_was() {
    let (folder, site) = (Folder::new("once"), Site::default());
    let whole = run_to_end(&folder, &site);
    let (pages, refused) = (folder.urls("pages"), folder.urls("refused"));
    let requests = site.count();
    assert_eq!(whole.ending, Ending::Drained);
    assert!(
        pages.len() > 50 && refused.len() > 5,
        "{} {}",
        pages.len(),
        refused.len()
    );

    for step in [1, 350, 700, 2500, 9000] {
        let (folder, site) = (Folder::new(&format!("kill-{step}")), Site::default());
        let mut kills = 0;
        let end = loop {
            let crawl = with_outputs(open(&folder, &site, options()).unwrap(), &folder);
            // Each run is a little longer, so that every crawl ends.
            let time = Duration::from_millis(step + kills * 97);
            if let Some(end) = run(crawl, time) {
                break end.unwrap();
            }
            kills += 1;
        };
        assert!(kills > 3, "{kills} kills");
        assert_eq!(folder.urls("pages"), pages, "{step}");
        assert_eq!(folder.urls("refused"), refused, "{step}");
        assert_eq!(counts(&end), counts(&whole), "{step}");
        let again = site.count() - requests;
        assert!(again as u64 <= 4 * kills, "{again} requests more after {kills} kills");
        assert!(end.elapsed >= Duration::from_millis(step), "{:?}", end.elapsed);
    }
}

#[test]
fn a_stopped_crawl_continues_and_requests_nothing_twice() {
    let (folder, site) = (Folder::new("stop"), Site::default());
    let mut pages = 0;
    for most in [1, 10, 30] {
        let crawl = with_outputs(open(&folder, &site, options()).unwrap(), &folder);
        assert_eq!(crawl.is_continued(), pages > 0);
        let stop = crawl.stop_handle();
        let crawl = crawl.observe(move |event: &Event<'_>| {
            if matches!(event, Event::Page(_)) {
                pages += 1;
                if pages >= most {
                    stop.finish();
                }
            }
        });
        let summary = run(crawl, FOREVER).unwrap().unwrap();
        assert_eq!(summary.ending, Ending::Stopped);
        pages = most;
    }
    let summary = run_to_end(&folder, &site);
    assert_eq!(summary.ending, Ending::Drained);
    let mut requests = site.urls();
    let total = requests.len();
    requests.sort();
    requests.dedup();
    // A broken answer is asked for again.
    let retries = summary.report.pages.retries as usize;
    assert_eq!(requests.len() + retries, total);
    assert!(folder.urls("pages").values().all(|count| *count == 1));
}

#[test]
fn a_crawl_that_has_ended_ends_again_at_once_with_its_summary() {
    let (folder, site) = (Folder::new("ended"), Site::default());
    let first = run_to_end(&folder, &site);
    let (requests, pages) = (site.count(), folder.lines("pages"));
    for _ in 0..2 {
        assert!(open(&folder, &site, options()).unwrap().report().is_drained());
        let again = run_to_end(&folder, &site);
        assert_eq!(counts(&again), counts(&first));
        assert_eq!(again.report.links, first.report.links);
        assert!(again.elapsed >= first.elapsed);
    }
    assert_eq!(site.count(), requests);
    assert_eq!(folder.lines("pages"), pages);
}

#[test]
fn seeds_that_are_new_are_added_to_a_crawl_that_has_ended() {
    let (folder, site) = (Folder::new("seeds"), Site::default());
    run_to_end(&folder, &site);
    let mut options = options();
    options.seeds.push("http://d.example/59".to_owned());
    let crawl = with_outputs(open(&folder, &site, options).unwrap(), &folder);
    let summary = run(crawl, FOREVER).unwrap().unwrap();
    assert_eq!(summary.ending, Ending::Drained);
    let pages = folder.urls("pages");
    assert_eq!(pages.get("http://d.example/59"), Some(&1));
    assert!(pages.values().all(|count| *count == 1));
}

/// A file on a disk that gets full.
struct FullDisk {
    file: OutputFile,
    left: Arc<AtomicUsize>,
}

impl Observer for FullDisk {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        let Event::Page(page) = event else {
            return Ok(());
        };
        if self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_err()
        {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "pages: no space left"));
        }
        self.file
            .write_all(format!("{{\"url\":\"{}\"}}\n", page.url).as_bytes())
    }

    fn save(&mut self, sync: bool) -> io::Result<Option<crawler::output::SavedOutput>> {
        Ok(Some(crawler::output::SavedOutput {
            name: "pages".to_owned(),
            file: self.file.save(sync)?,
            extra: String::new(),
        }))
    }
}

#[test]
fn a_full_disk_ends_the_crawl_which_continues_without_a_gap_when_there_is_room() {
    let (folder, site) = (Folder::new("full"), Site::default());
    for room in [1, 0, 7, 20, usize::MAX] {
        let crawl = open(&folder, &site, options()).unwrap();
        let disk = FullDisk {
            file: folder.output(&crawl, "pages"),
            left: Arc::new(AtomicUsize::new(room)),
        };
        let end = run(crawl.observe(disk), FOREVER).unwrap();
        match end {
            Ok(summary) => assert_eq!((room, summary.ending), (usize::MAX, Ending::Drained)),
            Err(CrawlError::Observer(error)) => assert!(error.to_string().contains("no space left")),
            Err(other) => panic!("{other}"),
        }
    }
    let (once, other) = (Folder::new("full-not"), Site::default());
    run_to_end(&once, &other);
    assert_eq!(folder.urls("pages"), once.urls("pages"));
}

#[test]
fn a_crawl_that_knows_the_pages_of_an_earlier_one_continues_too() {
    let (first, site) = (Folder::new("repeat-first"), Site::default());
    run_to_end(&first, &site);
    let mut known = KnownLinks::default();
    for line in fs::read_to_string(first.0.join("pages")).unwrap().lines() {
        known.add(line, &options().canonicalizer).unwrap();
    }
    let known = CrawlOptions {
        links: known.into_links(),
        ..options()
    };
    let (folder, site) = (Folder::new("repeat"), Site::default());
    let mut kills = 0;
    loop {
        let crawl = with_outputs(open(&folder, &site, known.clone()).unwrap(), &folder);
        let time = Duration::from_millis(1000 + 500 * kills);
        if let Some(end) = run(crawl, time) {
            assert_eq!(end.unwrap().ending, Ending::Drained);
            break;
        }
        kills += 1;
    }
    assert!(kills > 3);
    assert_eq!(folder.urls("pages"), first.urls("pages"));
}

#[test]
fn a_directory_serves_one_crawl_at_a_time() {
    let (folder, site) = (Folder::new("lock"), Site::default());
    let crawl = open(&folder, &site, options()).unwrap();
    assert!(matches!(open(&folder, &site, options()), Err(StartError::Open(_))));
    drop(crawl);
    assert!(open(&folder, &site, options()).is_ok());
}
