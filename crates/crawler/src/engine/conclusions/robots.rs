//! From the answer to a robots.txt request to its settlement (RFC 9309, section 2.3.1).

use frontier::{Failure, FailureKind, Lease, NotFetched, RobotsOutcome, RobotsTask, Settlement};

use super::head_of;
use super::sitemaps::sitemap_links;
use crate::config::CrawlConfig;
use crate::event::SitemapRecord;
use crate::fetch::{FetchError, Response, TruncationReason};
use crate::page::robots::RobotsTxt;

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
    let answer = match result {
        Ok(answer) => answer,
        Err(FetchError::AddressForbidden) => {
            let outcome = RobotsOutcome::NotFetched(NotFetched::AddressForbidden);
            return (task.settle(outcome), Vec::new());
        }
        Err(error) => return (task.settle(RobotsOutcome::failed(error.failure())), Vec::new()),
    };
    // The missing part may hold the rules that forbid.
    let is_incomplete = answer.truncation.is_some_and(|reason| reason != TruncationReason::Size);
    if is_incomplete && (200..300).contains(&answer.status) {
        let why = "the robots.txt is incomplete";
        let outcome = RobotsOutcome::failed(Failure::new(FailureKind::Incomplete, why));
        return (task.settle(outcome), Vec::new());
    }
    let sitemaps = |rules: Option<&RobotsTxt>| sitemap_links(&lease.entry, task.origin(), rules, config);
    let mut named = (Vec::new(), Vec::new());
    let outcome = head_of(answer).robots_outcome(&lease.entry, &config.options().canonicalizer, || {
        let rules = RobotsTxt::parse(&answer.body, config.product_token());
        named = sitemaps(Some(&rules));
        rules
    });
    // Everything is allowed, and the well-known sitemaps are tried.
    if matches!(outcome, RobotsOutcome::Unavailable) {
        named = sitemaps(None);
    }
    let (links, unusable) = named;
    (task.settle(outcome).with_links(links), unusable)
}
