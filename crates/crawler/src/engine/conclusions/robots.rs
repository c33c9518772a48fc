//! From the answer to a robots.txt request to its settlement (RFC 9309, section 2.3.1).

use frontier::{Failure, FailureKind, Lease, NotFetched, RobotsOutcome, RobotsTask, Settlement};
use page::robots::RobotsTxt;

use super::head_of;
use super::sitemaps::sitemap_links;
use crate::config::CrawlConfig;
use crate::event::SitemapRecord;
use crate::fetch::{FetchError, Response, TruncationReason};

/// Turns the answer into a settlement.
///
/// 429 counts as a server error, as it does for Google's crawlers. A server that asks for less traffic has not allowed
/// everything.
pub(super) fn conclude(
    task: &RobotsTask,
    lease: &Lease,
    result: &Result<Response, FetchError>,
    config: &CrawlConfig,
) -> (Settlement, Vec<SitemapRecord>) {
    let sitemaps = |rules: Option<&RobotsTxt>| sitemap_links(&lease.entry, task.origin(), rules, config);
    let mut named = (Vec::new(), Vec::new());
    let outcome = match result {
        Err(FetchError::AddressForbidden) => RobotsOutcome::NotFetched(NotFetched::AddressForbidden),
        Err(error) => RobotsOutcome::failed(error.failure()),
        Ok(answer) if lacks_rules(answer) => {
            let why = "the robots.txt is incomplete";
            RobotsOutcome::failed(Failure::new(FailureKind::Incomplete, why))
        }
        Ok(answer) => head_of(answer).robots_outcome(&lease.entry, &config.options().canonicalizer, || {
            let rules = RobotsTxt::parse(&answer.body, config.product_token());
            named = sitemaps(Some(&rules));
            rules
        }),
    };
    // Everything is allowed, and the well-known sitemaps are tried.
    if matches!(outcome, RobotsOutcome::Unavailable) {
        named = sitemaps(None);
    }
    let (links, unusable) = named;
    (task.settle(outcome).with_links(links), unusable)
}

/// Returns whether a part of a robots.txt is missing, which may hold the rules that forbid.
fn lacks_rules(answer: &Response) -> bool {
    let is_incomplete = answer.truncation.is_some_and(|reason| reason != TruncationReason::Size);
    is_incomplete && (200..300).contains(&answer.status)
}
