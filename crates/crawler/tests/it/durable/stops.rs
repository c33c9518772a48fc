//! A crawl that ends early starts no more requests, even if they only wait for a commit, and the next run makes them.

use std::collections::HashSet;

use tokio::time::Instant;

use super::*;
use crate::scripted;

const HOSTS: usize = 40;

/// A page with links to other hosts, each of which has a robots.txt and one page. Each robots.txt takes another time, so that the pages are
/// leased one after the other, and wait for a commit while others are in flight.
#[derive(Clone, Default)]
struct Star(Arc<Mutex<Vec<(Instant, String)>>>);

impl Star {
    /// Takes the requests, each with its time since a start.
    fn take_requests(&self, start: Instant) -> Vec<(Duration, String)> {
        let requests = std::mem::take(&mut *self.0.lock().unwrap()).into_iter();
        requests.map(|(time, url)| (time - start, url)).collect()
    }
}

impl Fetcher for Star {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        self.0.lock().unwrap().push((Instant::now(), request.url.to_string()));
        let host = request.url.host_str().unwrap();
        let number: u64 = host.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
        let is_robots = request.kind == ResourceKind::Robots;
        sleep(Duration::from_millis(if is_robots { 5 + number } else { 50 })).await;
        if is_robots {
            return Ok(scripted::status(404));
        }
        let links = (0..HOSTS).map(|host| format!("<a href=http://h{host}.example/>x</a>"));
        Ok(scripted::page(links.collect::<String>()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Finish,
    Now,
    /// To finish, and then at once.
    Twice,
    MaxTime,
}

/// Runs a crawl until it is ended at a time, if it is. Returns its summary, and its requests with their times.
fn run_until(end: Option<(How, Duration)>, folder: &Folder, star: &Star) -> (Summary, Vec<(Duration, String)>) {
    let mut options = scripted::options("http://a.example/");
    options.frontier.scope.reach = frontier::Reach::Any;
    options.frontier.politeness.delay = Duration::from_millis(200);
    options.concurrency = 64.try_into().unwrap();
    options.max_time = end.filter(|(how, _)| *how == How::MaxTime).map(|(_, time)| time);
    let crawl = Crawl::builder(options)
        .unwrap()
        .state_dir(folder.state())
        .build_with(star.clone())
        .unwrap();
    let stop = crawl.stop_handle();
    scripted::paused_runtime().block_on(async {
        let started = Instant::now();
        let stopping = async {
            let Some((how, time)) = end else { return };
            sleep(time).await;
            match how {
                How::Finish => stop.finish(),
                How::Now => stop.now(),
                How::Twice => {
                    stop.finish();
                    sleep(Duration::from_millis(1)).await;
                    stop.now();
                }
                How::MaxTime => {}
            }
        };
        let ((), summary) = tokio::join!(stopping, crawl.run());
        (summary.unwrap(), star.take_requests(started))
    })
}

#[test]
fn no_request_starts_after_the_end_and_the_next_run_makes_those_that_waited() {
    let (_, undisturbed) = run_until(None, &Folder::new("undisturbed"), &Star::default());
    assert_eq!(undisturbed.len(), 2 * (1 + HOSTS));
    for how in [How::Finish, How::Now, How::Twice, How::MaxTime] {
        for milliseconds in [3, 100, 240, 300].into_iter().chain(475..495) {
            let (folder, star) = (Folder::new("stops"), Star::default());
            let time = Duration::from_millis(milliseconds);
            let (summary, requests) = run_until(Some((how, time)), &folder, &star);
            let case = format!("{how:?} after {milliseconds} ms");
            // A request that did not wait for its commit would start earlier than in the undisturbed crawl.
            let are_as_before = requests.iter().all(|one| one.0 <= time && undisturbed.contains(one));
            assert!(are_as_before, "{case}: {requests:?}");
            let ended: u64 = summary.host_table.hosts.iter().map(|host| host.requests).sum();
            let requested = requests.len() as u64;
            let can_abort = matches!(how, How::Now | How::Twice);
            assert!(ended == requested || can_abort && ended < requested, "{case}");
            assert!(summary.cut_short <= requested - ended, "{case}");
            let known = if summary.pages > 0 { 1 + HOSTS as u64 } else { 1 };
            assert_eq!(summary.pages + summary.pages_left(), known, "{case}");

            let (rest, more) = run_until(None, &folder, &star);
            assert_eq!((rest.ending, rest.pages), (Ending::Drained, 1 + HOSTS as u64), "{case}");
            let distinct: HashSet<_> = requests.iter().chain(&more).map(|(_, url)| url).collect();
            assert_eq!(distinct.len(), 2 * (1 + HOSTS), "{case}");
            assert_eq!(
                more.len() as u64 + ended,
                distinct.len() as u64,
                "{case}: only aborted requests are made again"
            );
        }
    }
}
