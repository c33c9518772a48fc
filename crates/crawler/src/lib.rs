//! A polite web crawler as a library.
//!
//! ```no_run
//! use crawler::{Crawl, CrawlOptions, Event};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let options = CrawlOptions {
//!     seeds: vec!["example.com".to_owned()],
//!     ..CrawlOptions::default()
//! };
//! let crawl = Crawl::new(options)?.on_event(|event| {
//!     if let Event::Page(page) = event {
//!         println!("{} {}", page.status, page.url);
//!     }
//! });
//! let summary = crawl.run().await?;
//! println!("{summary}");
//! # Ok(())
//! # }
//! ```
//!
//! It obeys robots.txt, waits between the requests to a host, follows links and redirects within a scope, and retries failed
//! requests. It ends by itself. The [`Summary`] accounts for every URL: fetched, refused, or failed, and why.
//!
//! # What to change
//!
//! | to change | use |
//! |---|---|
//! | the scope, the politeness, the budgets | [`CrawlOptions`], with [`FrontierConfig`](frontier::FrontierConfig) in it |
//! | timeouts, headers, logins, cookies, a proxy | [`HttpOptions`], with [`CrawlBuilder::http`] |
//! | how pages are fetched | a [`Fetcher`] of your own, with [`CrawlBuilder::build_with`] |
//! | what happens with pages | a closure, by [`Crawl::on_event`], or an [`Observer`]; [`output`] has those that write files |
//! | how a crawl is doing | [`Event::Tick`], with a [`Summary`] |
//! | when to stop or pause, as after some pages or on Ctrl-C | a [`StopHandle`] |
//! | what is selected from pages | [`ReportOptions::fields`], each a [`Field`] |
//! | how to continue after a crash | [`CrawlBuilder::state_dir`]; [`SavedCrawl::read`] looks into one |
//! | how to fetch pages again | [`CrawlOptions::refresh`], or [`FreshnessConfig`](frontier::FreshnessConfig); or [`KnownLinks`], from the output of an earlier crawl |
//!
//! # Text and links of pages
//!
//! With [`ReportOptions::content`] an observer gets the decoded text of each page, and all its links. Without it
//! a crawl does not keep them.
//!
//! ```no_run
//! use crawler::{Crawl, CrawlOptions, Event, ReportOptions};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let options = CrawlOptions {
//!     seeds: vec!["example.com".to_owned()],
//!     reports: ReportOptions { content: true, ..ReportOptions::default() },
//!     ..CrawlOptions::default()
//! };
//! let crawl = Crawl::new(options)?.on_event(|event| {
//!     if let Event::Content { page, text, links } = event {
//!         println!("{}: {} bytes, {} links", page.url, text.len(), links.len());
//!         for link in *links {
//!             println!("  {} {}: {}", link.kind, link.to, link.verdict_name());
//!         }
//!     }
//! });
//! crawl.run().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What it does not do
//!
//! It runs no JavaScript. Without a state directory it keeps no state between runs except in its output files. The crate [`frontier`] decides the order and
//! the politeness. It does no I/O, so it also serves programs that fetch by other means. It is re-exported here, as is [`sieve`].
//!
//! # The loop
//!
//! One task owns the frontier and makes every change to it. It leases the URLs that may be fetched now and spawns a task for each
//! lease. Then it waits for a task to end, for the next host to be due, or for a stop. It settles the result of a task in one step,
//! together with the links of the page. Fetch tasks return one value and change no shared state. So the crawl needs no lock, and no
//! channel feeds back into itself.

#![forbid(unsafe_code)]

pub mod config;
mod crawl;
mod engine;
mod error;
pub mod event;
pub mod fetch;
pub mod known_links;
mod orders;
pub mod output;
pub mod peers;
mod records;
mod repair;
mod saved_crawl;
mod saved_output;
mod saved_rules;
mod state;
pub mod summary;

#[doc(inline)]
pub use config::{CrawlConfig, CrawlOptions, CrawlOptionsError, PageOptions, ReportOptions};
pub use crawl::{Crawl, CrawlBuilder};
pub use engine::StopHandle;
pub use error::{CrawlError, StartError};
#[doc(inline)]
pub use event::{Capture, Event, LinkRecord, Observer, PageRecord, Phase, RequestRecord, SitemapEnd, SitemapRecord};
#[doc(inline)]
pub use fetch::{
    AddressGuard, BodyExtent, ClientError, FetchError, Fetcher, HttpExchange, HttpFetcher, HttpOptions, Request,
    ResourceKind, Response, TargetCookies, TruncationReason,
};
pub use frontier::{self, Failure, FailureKind};
#[doc(inline)]
pub use known_links::KnownLinks;
pub use orders::{Obeyed, Order, OrderError, Orders};
pub use page;
#[doc(inline)]
pub use page::select::{Field, SelectLimits};
#[doc(inline)]
pub use peers::Peers;
pub use repair::repair;
pub use saved_crawl::SavedCrawl;
pub use sieve;
pub use state::StateError;
#[doc(inline)]
pub use summary::{Ending, Missing, Summary};
