//! Recrawls with a state directory: which file it takes.

use std::path::Path;

use crawler::recrawl::RecrawlError;

use super::*;

const SITE: &str = "http://a.example/";

/// A site without links: only a file names its pages.
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

/// Writes a file with pages.
fn pages(folder: &Folder, name: &str, numbers: std::ops::Range<usize>) -> PathBuf {
    let path = folder.0.join(name);
    let lines = numbers.map(|at| format!("{{\"url\":\"{}\",\"status\":200}}\n", leaf(at)));
    fs::write(&path, lines.collect::<String>()).unwrap();
    path
}

fn leaf_options(seeds: &[String]) -> CrawlOptions {
    let mut options = scripted::options(SITE);
    options.seeds = seeds.to_vec();
    options.frontier.ask_robots = false;
    // Few commits later.
    options.frontier.delay = Duration::ZERO;
    options.frontier.per_host = 256.try_into().unwrap();
    options.concurrency = 256.try_into().unwrap();
    options
}

fn open_leaves(folder: &Folder, leaves: &Leaves, seeds: &[String]) -> Crawl<Leaves> {
    let config = CrawlConfig::new(leaf_options(seeds)).unwrap();
    Crawl::open_with_fetcher(config, leaves.clone(), &folder.state()).unwrap()
}

fn repeating(folder: &Folder, leaves: &Leaves, file: &Path) -> Result<Crawl<Leaves>, RecrawlError> {
    open_leaves(folder, leaves, &[SITE.to_owned()]).recrawl(PreviousCrawl::open(file).unwrap())
}

fn run_leaves(crawl: Crawl<Leaves>) -> Result<Summary, CrawlError> {
    scripted::paused_runtime().block_on(crawl.run())
}

#[test]
fn a_directory_repeats_the_file_that_it_was_begun_with_and_no_other() {
    let (folder, leaves) = (Folder::new("other-file"), Leaves::default());
    let (first, second) = (pages(&folder, "first", 0..3), pages(&folder, "second", 3..6));
    run_leaves(repeating(&folder, &leaves, &first).unwrap()).unwrap();
    assert_eq!(leaves.take_requests().len(), 4);

    let refused = repeating(&folder, &leaves, &second).unwrap_err();
    assert!(
        matches!(&refused, RecrawlError::OtherFile(path) if *path == second),
        "{refused}"
    );
    assert!(refused.to_string().contains("--refresh"), "{refused}");
    // A page that differs in one character, far from both ends.
    let long = pages(&folder, "long", 0..2000);
    let changed = fs::read_to_string(&long).unwrap().replace("/01000", "/0100x");
    let (directory, changed_long) = (Folder::new("long-file"), folder.0.join("changed"));
    fs::write(&changed_long, changed).unwrap();
    run_leaves(repeating(&directory, &leaves, &long).unwrap()).unwrap();
    assert!(repeating(&directory, &leaves, &changed_long).is_err());

    // The same pages elsewhere, and a run without the file.
    let moved = folder.0.join("moved");
    fs::rename(&first, &moved).unwrap();
    leaves.take_requests();
    run_leaves(open_leaves(&folder, &leaves, &[SITE.to_owned()])).unwrap();
    run_leaves(repeating(&folder, &leaves, &moved).unwrap()).unwrap();
    assert!(leaves.take_requests().is_empty());
    assert!(repeating(&folder, &leaves, &second).is_err());
}

#[test]
fn a_directory_that_was_begun_without_a_file_takes_none() {
    let (folder, leaves) = (Folder::new("no-file"), Leaves::default());
    let file = pages(&folder, "file", 0..3);
    // A crawl without a commit was not begun.
    drop(open_leaves(&folder, &leaves, &[SITE.to_owned()]));
    drop(repeating(&folder, &leaves, &file).unwrap());
    run_leaves(open_leaves(&folder, &leaves, &[SITE.to_owned()])).unwrap();
    let refused = repeating(&folder, &leaves, &file).unwrap_err();
    assert!(matches!(refused, RecrawlError::BegunWithoutFile(_)), "{refused}");
    assert!(refused.to_string().contains("another directory"), "{refused}");
}
