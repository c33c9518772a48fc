//! Requests to hosts without a delay go out before the commit of their leases; all others wait for it.

use std::collections::HashSet;

use crawler::HttpExchange;
use crawler::fetch::HttpVersion;
use crawler::output::warc::{Archive, ArchiveOptions};

use super::*;
use crate::scripted;

const NUMBERS: usize = 200;

/// One host with a tree of pages. A page takes one to four milliseconds.
#[derive(Clone, Default)]
struct Tree(Arc<Mutex<Vec<String>>>);

impl Tree {
    fn urls(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Fetcher for Tree {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        self.0.lock().unwrap().push(request.url.to_string());
        let number = request.url.path().trim_start_matches('/').parse().unwrap_or(0);
        sleep(Duration::from_millis(number as u64 % 4 + 1)).await;
        if request.kind == ResourceKind::Robots {
            let asks_for_delay = request.url.host_str() == Some("slow.example");
            return Ok(match asks_for_delay {
                true => scripted::page("User-agent: *\nCrawl-delay: 2"),
                false => scripted::status(404),
            });
        }
        let children = (number * 5 + 1..=number * 5 + 5).filter(|child| *child < NUMBERS);
        let links = children.map(|child| format!("<a href=/{child}>x</a>"));
        Ok(scripted::page(links.collect::<String>()))
    }
}

fn options(delay: Duration, per_host: u32, concurrency: usize) -> CrawlOptions {
    let mut options = scripted::options("http://a.example/0");
    options.frontier.politeness.delay = delay;
    options.frontier.politeness.per_host = per_host.try_into().unwrap();
    options.concurrency = concurrency.try_into().unwrap();
    options
}

fn open(folder: &Folder, tree: &Tree, options: CrawlOptions) -> Crawl<Tree> {
    Crawl::builder(options)
        .unwrap()
        .state_dir(folder.state())
        .build_with(tree.clone())
        .unwrap()
}

fn end_of(crawl: Crawl<Tree>) -> Summary {
    let runtime = scripted::paused_runtime();
    runtime.block_on(crawl.run()).unwrap()
}

#[test]
fn a_host_without_a_delay_is_kept_busy_while_results_wait_for_a_commit() {
    let (folder, tree) = (Folder::new("busy"), Tree::default());
    let summary = end_of(open(&folder, &tree, options(Duration::ZERO, 4, 16)));
    assert_eq!(tree.urls().len(), NUMBERS + 1);
    // Four at a time take 125 ms, and robots.txt and the first page 2 ms.
    assert!(summary.elapsed < Duration::from_millis(140), "{:?}", summary.elapsed);
}

#[test]
fn requests_start_as_soon_as_those_are_committed_that_have_ended() {
    for (concurrency, most) in [(1, 505), (2, 290), (3, 220), (4, 185)] {
        let (folder, tree) = (Folder::new("full"), Tree::default());
        let summary = end_of(open(&folder, &tree, options(Duration::ZERO, 4, concurrency)));
        assert_eq!(tree.urls().len(), NUMBERS + 1);
        assert!(
            summary.elapsed < Duration::from_millis(most),
            "{concurrency}: {:?}",
            summary.elapsed
        );
    }
}

#[test]
fn at_most_as_many_requests_as_may_be_in_flight_are_sent_again() {
    for (per_host, concurrency) in [(1, 4), (3, 4), (4, 4), (4, 8)] {
        let (folder, tree) = (Folder::new("bound"), Tree::default());
        for kills in 0.. {
            let crawl = open(&folder, &tree, options(Duration::ZERO, per_host, concurrency));
            let runtime = scripted::paused_runtime();
            let time = Duration::from_micros(4_700 + kills * 900);
            let ended = runtime.block_on(async { timeout(time, crawl.run()).await.ok() });
            let urls = tree.urls();
            let again = urls.len() - urls.iter().collect::<HashSet<_>>().len();
            let most = concurrency * kills as usize;
            assert!(
                again <= most,
                "{again} after {kills} kills with {per_host} {concurrency}"
            );
            if let Some(ended) = ended {
                assert_eq!(ended.unwrap().ending, Ending::Drained);
                assert!(
                    again > most / 4,
                    "{again} after {kills} kills with {per_host} {concurrency}"
                );
                break;
            }
        }
        let all: HashSet<_> = tree.urls().into_iter().collect();
        assert_eq!(all.len(), NUMBERS + 1);
    }
}

#[test]
fn a_host_with_a_delay_is_not_asked_too_early_after_a_crash() {
    // One by one, and with others in flight; killed right after the request, and while it is in flight.
    for (per_host, milliseconds) in [(1, 1), (1, 4), (4, 1), (4, 2002), (4, 2003)] {
        let (folder, tree) = (Folder::new("early"), Tree::default());
        let run_for = |time: Duration| {
            let crawl = open(&folder, &tree, options(Duration::from_secs(2), per_host, 16));
            let runtime = scripted::paused_runtime();
            runtime.block_on(async { timeout(time, crawl.run()).await.ok() })
        };
        assert!(run_for(Duration::from_millis(milliseconds)).is_none());
        let requested = tree.urls().len();
        assert!(requested > 0);
        // The time since the kill passes for the crawl, too, and the clock of the runtime knows nothing of it.
        assert!(run_for(Duration::from_millis(1500)).is_none());
        assert_eq!(tree.urls().len(), requested, "{per_host} {milliseconds}");
        assert!(run_for(Duration::from_millis(2010)).is_none());
        assert!(tree.urls().len() > requested, "{per_host} {milliseconds}");
    }
}

#[test]
fn a_delay_that_only_robots_txt_asks_for_is_kept_after_a_crash() {
    for milliseconds in [2003, 2004, 4006] {
        let (folder, tree) = (Folder::new("crawl-delay"), Tree::default());
        let run_for = |time: Duration| {
            let mut options = options(Duration::ZERO, 1, 16);
            options.seeds = vec!["http://slow.example/0".to_owned()];
            let crawl = open(&folder, &tree, options);
            let runtime = scripted::paused_runtime();
            runtime.block_on(async { timeout(time, crawl.run()).await.ok() })
        };
        assert!(run_for(Duration::from_millis(milliseconds)).is_none());
        let requested = tree.urls().len();
        assert!(requested > 1, "{requested}");
        assert!(run_for(Duration::from_millis(1500)).is_none());
        assert_eq!(tree.urls().len(), requested, "{milliseconds}");
    }
}

/// Answers as [`Tree`] does, but the first page at once, and with what an archive keeps.
#[derive(Clone, Default)]
struct Archived(Tree);

impl Fetcher for Archived {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let target = request.url.path().to_owned();
        let mut answer = match &*target {
            "/0" => scripted::page("<a href=/1>x</a><a href=/2>x</a><a href=/3>x</a><a href=/4>x</a><a href=/5>x</a>"),
            _ => self.0.fetch(request).await?,
        };
        answer.exchange = Some(Box::new(HttpExchange {
            version: HttpVersion::HTTP_11,
            target,
            request_headers: Vec::new(),
            status: answer.status,
            reason: Vec::new(),
            response_headers: Vec::new(),
            encoded_body: None,
            address: None,
        }));
        Ok(answer)
    }
}

#[test]
fn a_crawl_that_is_killed_at_its_start_has_every_answer_once_in_its_archive() {
    for milliseconds in 0..6 {
        let folder = Folder::new("archive");
        let path = folder.0.join("pages.warc");
        let open = || {
            // Without robots.txt, no request waits for a commit.
            let mut options = options(Duration::ZERO, 4, 16);
            options.frontier.politeness.ask_robots = false;
            let crawl = Crawl::builder(options)
                .unwrap()
                .state_dir(folder.state())
                .build_with(Archived::default())
                .unwrap();
            let options = ArchiveOptions {
                path: path.clone(),
                max_file_bytes: None,
                operator: None,
                user_agent: "test".to_owned(),
                obeys_robots: true,
            };
            let archive = Archive::continuing("warc", options, crawl.saved_output("warc")).unwrap();
            crawl.observe(archive)
        };
        let time = Duration::from_millis(milliseconds);
        let killed = scripted::paused_runtime().block_on(async { timeout(time, open().run()).await.ok() });
        assert!(killed.is_none());
        scripted::paused_runtime().block_on(open().run()).unwrap();
        let archive = fs::read_to_string(&path).unwrap();
        let records = archive.split("WARC/1.1\r\n");
        let responses: Vec<&str> = records
            .filter(|record| record.contains("WARC-Type: response\r\n"))
            .collect();
        for number in 0..NUMBERS {
            let field = format!("WARC-Target-URI: http://a.example/{number}\r\n");
            let found = responses.iter().filter(|record| record.contains(&field)).count();
            assert_eq!(found, 1, "{number}, killed after {time:?}");
        }
    }
}

/// A page with links to forty other hosts. Counts the requests that are in flight, and the most of them.
#[derive(Clone, Default)]
struct Wide(Arc<Mutex<(usize, usize)>>);

impl Fetcher for Wide {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        {
            let (now, most) = &mut *self.0.lock().unwrap();
            *now += 1;
            *most = *now.max(most);
        }
        sleep(Duration::from_millis(5)).await;
        self.0.lock().unwrap().0 -= 1;
        if request.kind == ResourceKind::Robots {
            return Ok(scripted::status(404));
        }
        let links = (0..40).map(|host| format!("<a href=http://h{host}.example/>x</a>"));
        Ok(scripted::page(links.collect::<String>()))
    }
}

#[test]
fn requests_that_wait_for_a_commit_count_as_in_flight() {
    for delay in [0, 20] {
        let (folder, wide) = (Folder::new("wide"), Wide::default());
        let mut options = options(Duration::from_millis(delay), 1, 5);
        options.frontier.scope.reach = frontier::Reach::Any;
        let crawl = Crawl::builder(options)
            .unwrap()
            .state_dir(folder.state())
            .build_with(wide.clone())
            .unwrap();
        let summary = scripted::paused_runtime().block_on(crawl.run()).unwrap();
        assert_eq!(
            (summary.pages, wide.0.lock().unwrap().1),
            (41, 5),
            "delay of {delay} ms"
        );
    }
}
