//! Crawls that are paused, and go on or end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawler::{CrawlOptions, Ending, Event, Phase, SavedCrawl, StopHandle};
use tokio::time::{Instant, sleep};

use crate::folder::Folder;
use crate::scripted::{self, Reply, Run, Scripted};

/// The pause is ordered with the tick of this second.
const PAUSED_AT: u64 = 11;

/// How long it lasts once nothing is in flight.
const PAUSE: Duration = Duration::from_secs(5_000);

/// A host with twelve pages, each of which takes two seconds, under a delay of three: a page each five seconds.
fn site() -> Scripted<impl Fn(&scripted::Call<'_>) -> Reply + Send + Sync + 'static> {
    let links: String = (1..12).map(|n| format!("<a href=/{n}></a>")).collect();
    Scripted::new(move |_| Ok(scripted::page(&links))).taking(|_, _| Duration::from_secs(2))
}

fn options() -> CrawlOptions {
    let mut options = scripted::options("http://a.example/");
    options.frontier.politeness.delay = Duration::from_secs(3);
    options.frontier.politeness.ask_robots = false;
    options
}

/// What was seen of a pause.
#[derive(Debug, Default)]
struct Seen {
    paused_after: Duration,
    phases: Vec<Phase>,
}

/// Crawls, pauses once, and calls `then` when nothing is in flight.
fn crawl_with_pause<F>(options: CrawlOptions, state: Option<&Folder>, then: F) -> (Run, Seen)
where
    F: FnOnce(&StopHandle) + Send + 'static,
{
    let seen = Arc::new(Mutex::new(Seen::default()));
    let noted = Arc::clone(&seen);
    let mut then = Some(then);
    let prepare = |crawl: crawler::Crawl<_>| {
        let handle = crawl.stop_handle();
        crawl.on_event(move |event| {
            let Event::Tick(summary) = event else { return };
            let phases = &mut noted.lock().unwrap().phases;
            if phases.last() != Some(&handle.phase()) {
                phases.push(handle.phase());
            }
            if summary.elapsed.as_secs() < PAUSED_AT {
                return;
            }
            let Some(then) = then.take() else { return };
            handle.pause();
            let (handle, noted, ordered) = (handle.clone(), Arc::clone(&noted), Instant::now());
            tokio::spawn(async move {
                handle.paused().await;
                noted.lock().unwrap().paused_after = ordered.elapsed();
                then(&handle);
            });
        })
    };
    let run = match state {
        Some(folder) => site().crawl_in_with(&folder.state(), options, prepare),
        None => site().crawl_with(options, prepare),
    };
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (run, seen)
}

fn resume_later(handle: &StopHandle) {
    let handle = handle.clone();
    tokio::spawn(async move {
        sleep(PAUSE).await;
        handle.resume();
    });
}

#[test]
fn a_paused_crawl_requests_nothing_and_goes_on_with_all_delays_kept() {
    let folder = Folder::new("pauses");
    for state in [None, Some(&folder)] {
        let (run, seen) = crawl_with_pause(options(), state, resume_later);
        let before: Vec<_> = run.seconds().into_iter().take_while(|at| *at < 5_000).collect();
        assert_eq!(before, [0, 5, 10]);
        assert_eq!(seen.paused_after.as_secs(), 1, "the request in flight has ended");
        let after = &run.seconds()[3..];
        assert!(after[0] >= 5_012, "{after:?}");
        assert!(after.windows(2).all(|pair| pair[1] - pair[0] == 5), "{after:?}");
        assert_eq!((run.summary.pages, run.summary.ending), (12, Ending::Drained));
        // 12 pages of 2 s and 11 delays of 3 s. A second of a request and one delay have passed in the pause.
        assert_eq!(run.summary.elapsed.as_secs(), 53, "a pause is no part of it");
        assert_eq!(
            seen.phases,
            [Phase::Running, Phase::Pausing, Phase::Paused, Phase::Running]
        );
    }
}

#[test]
fn who_waits_for_a_pause_that_is_withdrawn_waits_no_longer() {
    let crawl = crawler::Crawl::builder(options()).unwrap().build_with(site()).unwrap();
    let handle = crawl.stop_handle();
    handle.pause();
    scripted::paused_runtime().block_on(async {
        let waiting = tokio::time::timeout(PAUSE, handle.paused());
        let resuming = async { handle.resume() };
        assert!(tokio::join!(waiting, resuming).0.is_ok());
    });
    assert_eq!(handle.phase(), Phase::Running);
}

#[test]
fn the_maximum_time_does_not_pass_in_a_pause() {
    let mut options = options();
    options.max_time = Some(Duration::from_secs(31));
    let (run, _) = crawl_with_pause(options, None, resume_later);
    assert_eq!(run.summary.ending, Ending::TimeUp);
    let last = *run.seconds().last().unwrap();
    // 11 s have passed before the pause, 20 s are left.
    assert!((5_027..=5_031).contains(&last), "{last}");
}

#[test]
fn a_paused_crawl_can_be_stopped_and_its_directory_has_all_it_did() {
    let stops: [fn(&StopHandle); 2] = [StopHandle::finish, StopHandle::now];
    for stop in stops {
        let folder = Folder::new("stopped-pause");
        let (state, (sender, saved)) = (folder.state(), std::sync::mpsc::channel());
        let (run, _) = crawl_with_pause(options(), Some(&folder), move |handle| {
            let _ = sender.send(SavedCrawl::read(&state));
            stop(handle);
        });
        let saved = saved.recv().unwrap().unwrap().summary;
        assert_eq!((saved.pages, saved.pages_left()), (3, 9));
        assert_eq!((run.summary.ending, run.summary.pages), (Ending::Stopped, 3));
        assert_eq!((run.summary.pages_left(), run.summary.cut_short), (9, 0));
        let rest = site().crawl_in(&folder.state(), options());
        assert_eq!((rest.summary.ending, rest.summary.pages), (Ending::Drained, 12));
        assert_eq!(rest.urls().len(), 9);
    }
}
