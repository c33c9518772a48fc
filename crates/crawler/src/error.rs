//! Why a crawl cannot be started, or go on.

use std::io;

use frontier::FrontierError;

use crate::fetch::ClientError;
use crate::recrawl::RecrawlError;

/// Why a crawl cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The frontier cannot be built.
    #[error(transparent)]
    Frontier(#[from] frontier::ConfigError),
    /// The HTTP client cannot be set up.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Why a crawl cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrawlError {
    /// An observer, such as an output file, gave an error. What was out was finished first.
    #[error("the output cannot be written: {0}")]
    Observer(#[source] io::Error),
    /// The earlier crawl that it starts from can no longer be read.
    #[error(transparent)]
    Earlier(#[from] RecrawlError),
    /// The frontier can no longer be trusted.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    /// The frontier waits for a lease that is not out. This is a defect of the crawler.
    #[error("the crawl waits for something that will not happen; please report this")]
    Stalled,
}
