//! Crawls one site by the spider crate, with robots.txt and without delay: `spider_peer URL CONNECTIONS`.

use spider::website::Website;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(connections)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: spider_peer URL CONNECTIONS");
        std::process::exit(2);
    };
    let mut website = Website::new(&url);
    website
        .with_respect_robots_txt(true)
        .with_delay(0)
        .with_concurrency_limit(connections.parse().ok());
    website.crawl().await;
    println!("{} pages", website.get_links().len());
}
