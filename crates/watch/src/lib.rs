//! Watches a crawl of [`crawler`]: an observer keeps what is known of it, and shows it as metrics.
//!
//! The [`Recorder`] observes the crawl. Each second, and at the end, it publishes a [`Status`] that a [`Watch`] reads at any time, from any
//! thread. The crawl never waits for a reader.
//!
//! ```no_run
//! use crawler::{Crawl, CrawlOptions};
//! use crawler_watch::{MetricsFile, Watch};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let options = CrawlOptions { seeds: vec!["example.com".to_owned()], ..CrawlOptions::default() };
//! let crawl = Crawl::new(options)?;
//! let (watch, recorder) = Watch::new(crawl.stop_handle());
//! let file = MetricsFile::new("crawler.prom", &watch)?;
//! crawl.observe(recorder).run().await?;
//! file.finish()?;
//! println!("{}", watch.status().metrics());
//! # Ok(())
//! # }
//! ```

mod forecast;
mod histogram;
mod metrics;
mod metrics_file;
mod process;
mod recorder;
mod server;
mod status;

pub use metrics::CONTENT_TYPE;
pub use metrics_file::MetricsFile;
pub use recorder::{Recorder, Watch};
pub use server::Server;
pub use status::Status;
