//! The crawler as a library: crawls from the given URLs and prints each page.
//!
//! `cargo run -p crawl-cli --example embed_crawler -- http://localhost:8080/`

use crawler::{Crawl, CrawlOptions, Event};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = CrawlOptions {
        seeds: std::env::args().skip(1).collect(),
        ..CrawlOptions::default()
    };
    let crawl = Crawl::new(options)?.on_event(|event| {
        if let Event::Page(page) = event {
            println!("{} {}", page.status, page.url);
        }
    });
    println!("{}", crawl.run().await?);
    Ok(())
}
