//! How fast the links of real pages are found, without a tree and with one, and how fast their text gets a simhash: in MB/s on one core.
//!
//! `cargo bench -p crawler --bench links -- [--assets] [FOLDER]...` reads every `*.html` below the folders (else a manual that is
//! installed) and also checks that both extractors find the same on every page; with `--assets` it includes assets. As a
//! test it reads a few pages.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crawler::page::links::{LinkOptions, extract_with_tree, extract_without_tree};
use crawler::page::{charset, fingerprint};
use url::Url;

#[expect(dead_code, reason = "examples need more of it")]
#[path = "../examples/input/mod.rs"]
mod input;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Pages that a test reads.
const TEST_PAGES: usize = 20;

/// Bytes of pages that are kept for the measured rounds: more than a cache, less than a machine has.
const MEASURED_BYTES: usize = 256 << 20;

/// How often the quick road is measured.
const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let options = LinkOptions {
        max_links: 100_000,
        agent: Cow::Borrowed("ourbot"),
        assets: arguments.iter().any(|argument| argument == "--assets"),
    };
    let mut folders: Vec<PathBuf> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .map(PathBuf::from)
        .collect();
    if folders.is_empty() {
        folders.extend(input::manual(None));
    }
    println!(
        "{:>40} {:>7} {:>8} {:>8} {:>9} {:>9} {:>12} {:>8} {:>6} {:>9}",
        "folder", "pages", "MB", "links", "scan MB/s", "tree MB/s", "simhash MB/s", "by tree", "cut", "different"
    );
    for folder in folders {
        row(&folder, if is_bench { usize::MAX } else { TEST_PAGES }, &options)?;
    }
    Ok(())
}

/// The results of both extractors for the pages of a folder.
#[derive(Default)]
struct Count {
    pages: usize,
    links: usize,
    bytes: usize,
    cut: usize,
    different: usize,
    by_tree: BTreeMap<String, usize>,
    tree_time: Duration,
}

fn row(folder: &Path, most: usize, options: &LinkOptions) -> Result<()> {
    let mut count = Count::default();
    let mut measured = Vec::new();
    let mut measured_bytes = 0;
    for path in input::pages(folder)?.into_iter().take(most) {
        let body = std::fs::read(&path)?;
        let url = Url::parse(&format!("http://site.test{}", path.display()))?;
        compare(&mut count, &body, &url, options);
        if measured_bytes < MEASURED_BYTES {
            measured_bytes += body.len();
            measured.push((body, url));
        }
    }
    let best = best_time(&measured, |body, url| {
        let decoded = charset::decode(body, None);
        let start = Instant::now();
        let found = extract_without_tree(&decoded.text, decoded.encoding, url, options);
        let took = start.elapsed();
        std::hint::black_box(found).ok();
        took
    });
    let best_simhash = best_time(&measured, |body, _| {
        let decoded = charset::decode(body, None);
        let start = Instant::now();
        std::hint::black_box(fingerprint::simhash(&decoded.text));
        start.elapsed()
    });
    let rate = |bytes: usize, time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
    println!(
        "{:>40} {:>7} {:>8.1} {:>8} {:>9.0} {:>9.1} {:>12.0} {:>8} {:>6} {:>9}",
        folder.display(),
        count.pages,
        count.bytes as f64 / 1e6,
        count.links,
        rate(measured_bytes, best),
        rate(count.bytes, count.tree_time),
        rate(measured_bytes, best_simhash),
        count.by_tree.values().sum::<usize>(),
        count.cut,
        count.different
    );
    for (reason, pages) in &count.by_tree {
        println!("{:>40} {pages:>7}", format!("because of {reason}:"));
    }
    if count.different > 0 {
        return Err("the scanner and the tree differ".into());
    }
    Ok(())
}

fn compare(count: &mut Count, body: &[u8], url: &Url, options: &LinkOptions) {
    let decoded = charset::decode(body, None);
    let start = Instant::now();
    let tree = extract_with_tree(&decoded.text, decoded.encoding, url, options);
    count.tree_time += start.elapsed();
    count.pages += 1;
    count.bytes += decoded.text.len();
    count.links += tree.links.len();
    count.cut += usize::from(tree.truncated);
    match extract_without_tree(&decoded.text, decoded.encoding, url, options) {
        Ok(scanned) => {
            let is_different = !tree.truncated && scanned != tree;
            count.different += usize::from(is_different);
            if is_different {
                eprintln!("different: {url}");
            }
        }
        Err(reason) => *count.by_tree.entry(reason.to_string()).or_default() += 1,
    }
}

/// The time that all pages take.
///
/// Of every page the best round counts, so that whatever else runs on the machine matters little.
fn best_time(pages: &[(Vec<u8>, Url)], measure: impl Fn(&[u8], &Url) -> Duration) -> Duration {
    let mut best = vec![Duration::MAX; pages.len()];
    for _ in 0..ROUNDS {
        for ((body, url), best) in pages.iter().zip(&mut best) {
            *best = measure(body, url).min(*best);
        }
    }
    best.iter().sum()
}
