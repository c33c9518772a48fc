//! From the answer to a robots.txt request to its settlement (RFC 9309, section 2.3.1).

use frontier::{Lease, Origin, Outcome, Settlement};
use page::robots::RobotsTxt;

use super::sitemaps::sitemap_links;
use super::{outcome_of, outcome_of_error, redirect_target};
use crate::config::CrawlConfig;
use crate::event::SitemapRecord;
use crate::fetch::{FetchError, Response};

/// Turns the answer into a settlement.
///
/// 429 counts as a server error, as it does for Google's crawlers. A server that asks for less traffic has not allowed
/// everything.
pub(super) fn conclude(
    lease: &Lease,
    origin: &Origin,
    result: &Result<Response, FetchError>,
    config: &CrawlConfig,
) -> (Settlement, Vec<SitemapRecord>) {
    let answer = match result {
        Ok(answer) => answer,
        Err(error) => return (lease.settle(outcome_of_error(error)), Vec::new()),
    };
    let sitemaps = |rules: Option<&RobotsTxt>| sitemap_links(&lease.entry, origin, rules, config);
    match outcome_of(answer, &lease.entry.purpose) {
        Outcome::Done => {
            if answer.truncation.is_some() {
                let url = &lease.entry.url;
                log::warn!(target: "crawler::fetch", "{url}: only the first 500 KiB are read, rules and sitemaps after them are lost");
            }
            let rules = RobotsTxt::parse(&answer.body, config.product_token());
            let (links, unusable) = sitemaps(Some(&rules));
            let settlement = lease.settle(Outcome::Done).with_links(links);
            (settlement.with_rules(rules), unusable)
        }
        outcome @ (Outcome::Redirected | Outcome::Rejected) => {
            let is_redirect = outcome == Outcome::Redirected;
            let target = is_redirect.then(|| redirect_target(&lease.entry, answer, config));
            if let Some(target) = target.flatten() {
                return (lease.settle(outcome).with_links(vec![target]), Vec::new());
            }
            // Everything is allowed, and the well-known sitemaps are tried.
            let (links, unusable) = sitemaps(None);
            (lease.settle(Outcome::Rejected).with_links(links), unusable)
        }
        outcome => (lease.settle(outcome), Vec::new()),
    }
}
