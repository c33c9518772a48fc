//! A crawl that is stopped starts no more requests, even if they wait for a commit only, and the next run makes them.

use std::collections::HashSet;

use crawler::StopHandle;
use tokio::task::yield_now;

use super::*;

const HOSTS: usize = 40;

/// A page with links to other hosts, each of which has a robots.txt and one page. Each robots.txt takes another time, so that the pages are
/// leased one after the other, and wait for a commit while others are in flight.
#[derive(Clone, Default)]
struct Star(Arc<Mutex<Vec<String>>>);

impl Star {
    fn urls(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Fetcher for Star {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        self.0.lock().unwrap().push(request.url.to_string());
        let host = request.url.host_str().unwrap();
        let number: u64 = host.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
        let is_robots = request.kind == ResourceKind::Robots;
        sleep(Duration::from_millis(if is_robots { 5 + number } else { 50 })).await;
        if request.kind == ResourceKind::Robots {
            return Ok(scripted::status(404));
        }
        let links = (0..HOSTS).map(|host| format!("<a href=http://h{host}.example/>x</a>"));
        Ok(scripted::page(links.collect::<String>()))
    }
}

/// Runs a crawl until a time, and stops it then. Returns its summary, and the number of requests before the stop.
fn run_until(time: Duration, request_stop: fn(&StopHandle), folder: &Folder, star: &Star) -> (Summary, usize) {
    let mut options = scripted::options("http://a.example/");
    options.frontier.scope.reach = frontier::Reach::Any;
    options.frontier.delay = Duration::from_millis(200);
    options.concurrency = 64.try_into().unwrap();
    let config = CrawlConfig::new(options).unwrap();
    let crawl = Crawl::open_with_fetcher(config, star.clone(), &folder.state()).unwrap();
    let stop = crawl.stop_handle();
    scripted::paused_runtime().block_on(async {
        let stopping = async {
            sleep(time).await;
            // Requests that start at this time start before the stop.
            for _ in 0..10 {
                yield_now().await;
            }
            let requests = star.urls().len();
            request_stop(&stop);
            requests
        };
        let (requests, summary) = tokio::join!(stopping, crawl.run());
        (summary.unwrap(), requests)
    })
}

#[test]
fn no_request_starts_after_a_stop_and_the_next_run_makes_those_that_waited() {
    let stops: [(fn(&StopHandle), _); 2] = [(StopHandle::finish, false), (StopHandle::now, true)];
    for (request_stop, aborts) in stops {
        for milliseconds in [3, 100, 240, 300].into_iter().chain(475..495) {
            let (folder, star) = (Folder::new("stops"), Star::default());
            let (summary, requests) = run_until(Duration::from_millis(milliseconds), request_stop, &folder, &star);
            let case = format!("{milliseconds} ms, {aborts}");
            assert_eq!(star.urls().len(), requests, "{case}");
            let ended: u64 = summary.hosts.iter().map(|host| host.requests).sum();
            let aborted = requests as u64 - ended;
            assert!(
                if aborts {
                    summary.cut_short <= aborted
                } else {
                    aborted == 0
                },
                "{case}"
            );
            let known = if summary.pages > 0 { 1 + HOSTS as u64 } else { 1 };
            assert_eq!(summary.pages + summary.pages_left(), known, "{case}");

            let (rest, _) = run_until(Duration::from_secs(100), StopHandle::finish, &folder, &star);
            assert_eq!((rest.ending, rest.pages), (Ending::Drained, 1 + HOSTS as u64), "{case}");
            let urls = star.urls();
            let distinct: HashSet<_> = urls.iter().collect();
            assert_eq!(distinct.len(), 2 * (1 + HOSTS), "{case}");
            let again = (urls.len() - distinct.len()) as u64;
            assert_eq!(again, aborted, "{case}: only aborted requests are made again");
        }
    }
}
