//! A crawl in a program of your own, with its page, its metrics, and a report at the end.
//!
//! `cargo run -p crawl-cli --example embed_watch -- http://localhost:8080/`

use crawler::{Crawl, CrawlOptions};
use crawler_watch::{ReportFile, Server, Watch};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = CrawlOptions {
        seeds: std::env::args().skip(1).collect(),
        ..CrawlOptions::default()
    };
    let report = ReportFile::new("crawl.html".as_ref())?;
    let crawl = Crawl::new(options)?;
    let (watch, recorder) = Watch::new(&crawl, None);
    let server = Server::new(
        ([127, 0, 0, 1], 0).into(),
        &watch,
        crawl.stop_handle(),
        str::to_owned,
        |_| async { Err("no orders".to_owned()) },
    )?;
    println!("watch it at http://{}/#token={}", server.address(), server.token());
    println!("{}", crawl.observe(recorder).run().await?);
    report.write(&watch.status(), str::to_owned)?;
    server.finish().await;
    Ok(())
}
