//! How fast the links of real pages are found, without and with a simhash of the text from the same pass: in MB/s on one core.
//!
//! `cargo bench -p crawl-page --bench links -- [--assets] [FOLDER]...` reads every `*.html` below the folders (else a manual that is
//! installed); with `--assets` it includes assets. As a test it reads a few pages.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use page::links::{LinkOptions, extract};
use page::{charset, fingerprint};
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
        known: None,
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
        "{:>40} {:>7} {:>8} {:>8} {:>10} {:>17}",
        "folder", "pages", "MB", "links", "links MB/s", "and simhash MB/s"
    );
    for folder in folders {
        row(&folder, if is_bench { usize::MAX } else { TEST_PAGES }, &options)?;
    }
    Ok(())
}

fn row(folder: &Path, most: usize, options: &LinkOptions) -> Result<()> {
    let (mut pages, mut bytes, mut links) = (Vec::new(), 0, 0);
    for path in input::pages(folder)?.into_iter().take(most) {
        let body = std::fs::read(&path)?;
        let url = Url::parse(&format!("http://site.test{}", path.display()))?;
        let decoded = charset::decode(&body, None);
        links += extract(&decoded.text, decoded.encoding, &url, options).links.len();
        bytes += body.len();
        pages.push((body, url));
        if bytes > MEASURED_BYTES {
            break;
        }
    }
    let best = best_time(&pages, |body, url| {
        let decoded = charset::decode(body, None);
        let start = Instant::now();
        std::hint::black_box(extract(&decoded.text, decoded.encoding, url, options));
        start.elapsed()
    });
    let best_with_simhash = best_time(&pages, |body, _| {
        let decoded = charset::decode(body, None);
        let start = Instant::now();
        std::hint::black_box(fingerprint::simhash(&decoded.text));
        start.elapsed()
    });
    let rate = |time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
    println!(
        "{:>40} {:>7} {:>8.1} {:>8} {:>10.0} {:>17.0}",
        folder.display(),
        pages.len(),
        bytes as f64 / 1e6,
        links,
        rate(best),
        rate(best_with_simhash),
    );
    Ok(())
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
