//! From the answer to a robots.txt request to its settlement (RFC 9309, section 2.3.1).

use frontier::{Entry, Failure, FailureKind, NotFetched, RobotsOutcome, RobotsTask, Settlement};

use super::redirect_target;
use super::sitemaps::sitemap_links;
use crate::config::CrawlConfig;
use crate::engine::failure_policy::failure_of;
use crate::fetch::{FetchError, Response, TruncationReason};
use crate::page::robots::RobotsTxt;

/// Turns the answer into a settlement.
///
/// 429 counts as a server error, as it does for Google's crawlers. A server that asks for less traffic has not allowed
/// everything.
pub(super) fn conclude(
    task: &RobotsTask,
    entry: &Entry,
    result: &Result<Response, FetchError>,
    config: &CrawlConfig,
) -> Settlement {
    let answer = match result {
        Ok(answer) => answer,
        Err(FetchError::AddressForbidden) => {
            return task.settle(RobotsOutcome::NotFetched(NotFetched::AddressForbidden));
        }
        Err(error) => return task.settle(RobotsOutcome::failed(error.failure())),
    };
    match answer.status {
        // The missing part may hold the rules that forbid.
        200..=299 if answer.truncation.is_some_and(|reason| reason != TruncationReason::Size) => {
            let why = "the robots.txt is incomplete";
            task.settle(RobotsOutcome::failed(Failure::new(FailureKind::Incomplete, why)))
        }
        200..=299 => {
            let rules = RobotsTxt::parse(&answer.body, config.product_token());
            let sitemaps = sitemap_links(entry, task.origin(), Some(&rules), config);
            task.settle(RobotsOutcome::known(rules)).with_links(sitemaps)
        }
        300..=399 => match redirect_target(entry, answer, &config.options().canonicalizer) {
            Some(target) => task.settle(RobotsOutcome::Redirected(target)),
            None => unavailable(task, entry, config),
        },
        429 | 500.. => task.settle(match failure_of(answer) {
            Some(failure) => {
                let retry_after = answer.retry_after.filter(|_| failure.kind == FailureKind::Throttled);
                RobotsOutcome::failed_until(failure, retry_after)
            }
            None => {
                let why = format!("status {}", answer.status);
                RobotsOutcome::failed(Failure::new(FailureKind::Status, why))
            }
        }),
        _ => unavailable(task, entry, config),
    }
}

/// Settles an unavailable robots.txt. Everything is allowed, and the well-known sitemaps are tried.
fn unavailable(task: &RobotsTask, entry: &Entry, config: &CrawlConfig) -> Settlement {
    let sitemaps = sitemap_links(entry, task.origin(), None, config);
    task.settle(RobotsOutcome::Unavailable).with_links(sitemaps)
}
