//! Many seeds and known links with a state directory: how many are offered between two commits.

use std::sync::OnceLock;

use frontier::{Canonicalizer, Link};

use super::*;
use crate::scripted;

const SITE: &str = "http://a.example/";

/// A site whose pages have no links.
#[derive(Clone, Default)]
struct Leaves(Arc<Mutex<Vec<String>>>);

impl Leaves {
    /// Takes the URLs of the requests, sorted.
    fn take_requests(&self) -> Vec<String> {
        let mut urls = std::mem::take(&mut *self.0.lock().unwrap());
        urls.sort();
        urls
    }
}

impl Fetcher for Leaves {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        self.0.lock().unwrap().push(request.url.to_string());
        Ok(scripted::page(""))
    }
}

fn leaf(at: usize) -> String {
    format!("{SITE}{at:05}")
}

fn links() -> Vec<Link> {
    let found = |at| Link::found(Canonicalizer::default().parse(&leaf(at)).unwrap(), 1, SITE.into());
    (0..MANY).map(found).collect()
}

fn leaf_options(seeds: &[String]) -> CrawlOptions {
    let mut options = scripted::options(SITE);
    options.seeds = seeds.to_vec();
    options.frontier.politeness.ask_robots = false;
    // Few commits later.
    options.frontier.politeness.delay = Duration::ZERO;
    options.frontier.politeness.per_host = 256.try_into().unwrap();
    options.concurrency = 256.try_into().unwrap();
    options
}

fn open_leaves(folder: &Folder, leaves: &Leaves, options: CrawlOptions) -> Crawl<Leaves> {
    Crawl::builder(options)
        .unwrap()
        .state_dir(folder.state())
        .build_with(leaves.clone())
        .unwrap()
}

fn run_leaves(crawl: Crawl<Leaves>) -> Result<Summary, CrawlError> {
    scripted::paused_runtime().block_on(crawl.run())
}

/// Counts the links that are offered between two commits, and fails at one of them, like a kill.
#[derive(Clone, Default)]
struct Commits {
    kill_at: usize,
    commits: Arc<AtomicUsize>,
    offered: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Observer for Commits {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let Event::Offered { links, .. } = event {
            let offered = self.offered.fetch_add(links.len(), Ordering::Relaxed) + links.len();
            self.most.fetch_max(offered, Ordering::Relaxed);
        }
        Ok(())
    }

    fn save(&mut self, _: bool) -> io::Result<Option<crawler::output::SavedOutput>> {
        self.offered.store(0, Ordering::Relaxed);
        match self.commits.fetch_add(1, Ordering::Relaxed) + 1 {
            commit if commit == self.kill_at => Err(io::Error::other("killed")),
            _ => Ok(None),
        }
    }
}

const MANY: usize = 2500;
/// A commit comes after 1024 links, and there are two seeds.
const MOST: usize = 1024 + 2;

#[test]
fn many_links_are_committed_while_they_are_offered_and_a_kill_meanwhile_loses_none() {
    let known = || CrawlOptions {
        links: links(),
        ..leaf_options(&[SITE.to_owned()])
    };
    for kill_at in [0, 2, 3] {
        let (folder, leaves) = (Folder::new("many-pages"), Leaves::default());
        let commits = Commits {
            kill_at,
            ..Commits::default()
        };
        let crawl = open_leaves(&folder, &leaves, known()).observe(commits.clone());
        let end = run_leaves(crawl);
        let most = commits.most.load(Ordering::Relaxed);
        assert!(
            (1024..=MOST).contains(&most),
            "{most} links were offered without a commit"
        );
        if kill_at > 0 {
            assert!(matches!(end, Err(CrawlError::Observer(_))), "{end:?}");
            assert!(leaves.take_requests().is_empty(), "killed before the first request");
            run_leaves(open_leaves(&folder, &leaves, known())).unwrap();
        }
        let all: Vec<_> = [SITE.to_owned()].into_iter().chain((0..MANY).map(leaf)).collect();
        assert_eq!(leaves.take_requests(), all, "{kill_at}");
        run_leaves(open_leaves(&folder, &leaves, known())).unwrap();
        assert!(leaves.take_requests().is_empty());
    }
}

#[test]
fn many_seeds_are_committed_while_they_are_offered_and_a_kill_meanwhile_loses_none() {
    let seeds: Vec<_> = (0..MANY).map(leaf).collect();
    for kill_at in [0, 2, 3] {
        let (folder, leaves) = (Folder::new("many-seeds"), Leaves::default());
        let commits = Commits {
            kill_at,
            ..Commits::default()
        };
        let end = run_leaves(open_leaves(&folder, &leaves, leaf_options(&seeds)).observe(commits.clone()));
        let most = commits.most.load(Ordering::Relaxed);
        assert!(most <= MOST, "{most} seeds were offered without a commit");
        if kill_at > 0 {
            assert!(matches!(end, Err(CrawlError::Observer(_))), "{end:?}");
            assert!(leaves.take_requests().is_empty(), "killed before the first request");
            run_leaves(open_leaves(&folder, &leaves, leaf_options(&seeds))).unwrap();
        }
        assert_eq!(leaves.take_requests(), seeds, "{kill_at}");
    }
}

#[test]
fn pages_that_a_redirected_seed_brings_into_reach_are_committed_while_they_are_offered() {
    let (folder, leaves) = (Folder::new("many-later"), Leaves::default());
    for kill_at in [2, 3, 4, 5, 0] {
        let moved = Moved(leaves.clone());
        let commits = Commits {
            kill_at,
            ..Commits::default()
        };
        let options = CrawlOptions {
            links: links(),
            ..leaf_options(&["http://moved.example/".to_owned(), OTHER.to_owned()])
        };
        let crawl = Crawl::builder(options)
            .unwrap()
            .state_dir(folder.state())
            .build_with(moved)
            .unwrap();
        let crawl = with_lines(crawl, &folder);
        let end = scripted::paused_runtime().block_on(crawl.observe(commits.clone()).run());
        let most = commits.most.load(Ordering::Relaxed);
        assert!(most <= MOST, "{most} links were offered without a commit");
        assert!(end.is_ok() || kill_at > 0, "{end:?}");
    }
    let lines = folder.urls("pages");
    assert_eq!(lines.len(), 2 + MANY);
    assert!(lines.values().all(|count| *count == 1));
}

/// A seed that answers together with the one that redirects, so that its line must be in the same commit.
const OTHER: &str = "http://other.example/";

/// A site behind a seed that redirects to it.
struct Moved(Leaves);

impl Fetcher for Moved {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        match request.url.host_str() {
            Some("moved.example") => Ok(scripted::redirect(SITE)),
            _ => self.0.fetch(request).await,
        }
    }
}

fn with_lines<S: Fetcher>(crawl: Crawl<S>, folder: &Folder) -> Crawl<S> {
    let path = folder.0.join("pages");
    let file = match crawl.saved_output("pages") {
        Some(saved) => OutputFile::reopen(&path, &saved.file).unwrap(),
        None => OutputFile::append(&path).unwrap(),
    };
    crawl.observe(Pages::new(Sink::continuing("pages", file), Format::JsonLines, &[]).unwrap())
}

/// Notes what an output is told first.
struct First(Arc<OnceLock<&'static str>>);

impl Observer for First {
    fn on(&mut self, _: &Event<'_>) -> io::Result<()> {
        self.0.get_or_init(|| "an event");
        Ok(())
    }

    fn save(&mut self, _: bool) -> io::Result<Option<crawler::output::SavedOutput>> {
        self.0.get_or_init(|| "a save");
        Ok(None)
    }
}

#[test]
fn a_commit_knows_the_outputs_before_they_get_anything() {
    let (folder, leaves) = (Folder::new("first-commit"), Leaves::default());
    let first = Arc::default();
    let crawl = open_leaves(&folder, &leaves, leaf_options(&[SITE.to_owned()])).observe(First(Arc::clone(&first)));
    run_leaves(crawl).unwrap();
    assert_eq!(first.get(), Some(&"a save"));
}
