//! Watches a crawl of [`crawler`]: an observer keeps what is known of it, and shows it as metrics, as a live page over HTTP, and as a report in
//! one file.
//!
//! The [`Recorder`] observes the crawl. Each second, and at the end, it publishes a [`Status`] that a [`Watch`] reads at any time, from any
//! thread. The crawl never waits for a reader.
//!
//! ```no_run
//! use crawler::{Crawl, CrawlOptions};
//! use crawler_watch::{ReportFile, Server, Watch};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let options = CrawlOptions { seeds: vec!["example.com".to_owned()], ..CrawlOptions::default() };
//! let crawl = Crawl::new(options)?;
//! let (watch, recorder) = Watch::new(&crawl, None);
//! let server = Server::new(([127, 0, 0, 1], 8077).into(), &watch, crawl.stop_handle(), str::to_owned, |_| async { Err("no orders".into()) })?;
//! crawl.observe(recorder).run().await?;
//! ReportFile::new("report.html".as_ref())?.write(&watch.status(), str::to_owned)?;
//! server.finish().await;
//! # Ok(())
//! # }
//! ```

mod disks;
mod metrics;
mod metrics_file;
mod process;
mod recent;
mod recorder;
mod remaining;
mod replace;
mod report;
mod series;
mod server;
mod status;

pub use metrics::CONTENT_TYPE;
pub use metrics_file::MetricsFile;
pub use recorder::{Recorder, Watch};
pub use report::ReportFile;
pub use server::Server;
pub use status::Status;
