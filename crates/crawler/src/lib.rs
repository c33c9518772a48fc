//! A polite crawler on top of the [`frontier`]: it asks robots.txt, fetches, extracts links, and writes what it found.
//!
//! ```no_run
//! use crawler::{Crawl, CrawlConfig, CrawlOptions, Event};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let options = CrawlOptions { seeds: vec!["example.com".to_owned()], ..CrawlOptions::default() };
//! let summary = Crawl::new(CrawlConfig::new(options)?)?
//!     .observe(|event: &Event<'_>| {
//!         if let Event::Page(page) = event {
//!             println!("{} {}", page.status, page.url);
//!         }
//!     })
//!     .run()
//!     .await?;
//! println!("{summary}");
//! # Ok(())
//! # }
//! ```
//!
//! # It is, it is not
//!
//! It drives; it does not decide. What to fetch next, and when, is the [`frontier`]'s business. It runs no JavaScript, keeps
//! cookies on request only, and stores bodies in archives only.
//!
//! # The loop
//!
//! One task owns the frontier and does everything that changes it: it leases what may be fetched now, spawns a task for
//! each, waits for a task to come back, for the next host to be due or for a stop, and settles what came back together
//! with the links it led to. Fetch tasks return one value and change nothing that they share: they read which links the
//! frontier has seen, so as not to return those again. No lock, and no channel that feeds back into itself.

#![forbid(unsafe_code)]

pub mod config;
mod engine;
mod error;
pub mod event;
pub mod fetch;
pub mod output;
pub mod page;
pub mod recrawl;
pub mod summary;

pub use config::{ConfigError, CrawlConfig, CrawlOptions};
pub use engine::{Crawl, StopHandle};
pub use error::{CrawlError, StartError};
pub use event::{Event, Observer, PageRecord, Progress, SitemapEnd, SitemapRecord};
pub use fetch::{
    Capture, Exchange, FetchError, Fetcher, HttpFetcher, Request, ResourceKind, Response, TruncationReason,
};
pub use frontier::{Failure, FailureKind};
pub use page::link_graph::LinkRecord;
pub use summary::{Ending, Missing, Summary};
