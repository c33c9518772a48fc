//! The crawler as a library: crawls a site and prints the pages with the most links.
//!
//! `cargo run --example crawl_site -- http://127.0.0.1:8080/`; without an argument it crawls the built-in demo site.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawler::{Crawl, CrawlOptions, Event, HttpOptions};
use crawler_cli::demo;
use frontier::{FrontierConfig, PolitenessConfig, Reach, ScopeConfig, SeenSetConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = demo::serve().await?;
    let argument = std::env::args().nth(1);
    let is_demo = argument.is_none();
    let seed = argument.unwrap_or_else(|| server.site().seed().to_string());

    let options = CrawlOptions {
        seeds: vec![seed],
        frontier: FrontierConfig {
            scope: ScopeConfig {
                reach: Reach::Site,
                ..ScopeConfig::default()
            },
            seen_set: SeenSetConfig {
                capacity: 100_000,
                ..SeenSetConfig::default()
            },
            politeness: PolitenessConfig {
                delay: Duration::from_millis(if is_demo { 0 } else { 200 }),
                ..PolitenessConfig::default()
            },
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    };

    let pages = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&pages);
    // The demo's hosts are all on loopback; a real crawl leaves the address guard on.
    let http = HttpOptions {
        allow_private_addresses: is_demo,
        ..HttpOptions::default()
    };
    let crawl = Crawl::builder(options)?.http(http).build()?.on_event(move |event| {
        if let (Event::Page(page), Ok(mut found)) = (event, found.lock()) {
            found.push((
                page.links_found,
                page.url.clone(),
                page.title.clone().unwrap_or_default(),
            ));
        }
    });
    let summary = crawl.run().await?;

    let mut pages = pages.lock().map(|pages| pages.clone()).unwrap_or_default();
    pages.sort_by(|a, b| b.cmp(a));
    println!("Pages with the most links:");
    for (links, url, title) in pages.iter().take(5) {
        println!("{links:>6}  {url}  {title}");
    }
    println!("\n{summary}");
    Ok(())
}
