//! What the answer to a request for a robots.txt means, and what follows.

use frontier::{CanonicalUrl, Entry, Fate, FrontierError, NotFetched, Origin, Outcome, Time};
use sieve::Filter;

use super::redirect_target;
use crate::config::CrawlConfig;
use crate::engine::Crawl;
use crate::fetch::{Answer, Cut, FetchError, Fetcher};
use crate::judge::{Judgement, judge};
use crate::robots::{MAX_ROBOTS_HOPS, Policy, ROBOTS_LIFETIME, RobotsRules};

/// What an answer to a robots.txt request says.
pub(super) enum RobotsNext {
    Known(Policy),
    Follow(CanonicalUrl),
    /// Nothing yet; when the frontier gives up, everything is forbidden.
    Unknown,
}

/// What the answer to a robots.txt request means (RFC 9309, section 2.3.1). 429 counts as a server error, as it does for
/// Google's crawlers: a server that asks for less traffic has not said that everything may be fetched.
pub(super) fn conclude(
    entry: &Entry,
    result: &Result<Answer, FetchError>,
    config: &CrawlConfig,
) -> (Judgement, RobotsNext) {
    let final_answer = |outcome, next| (Judgement { outcome }, next);
    let allow_all = || RobotsNext::Known(Policy::Rules(RobotsRules::allow_all()));
    match result {
        Ok(answer) => match answer.status {
            // Rules that did not arrive may be those that forbid.
            200..=299 if answer.cut.is_some_and(|cut| cut != Cut::Size) => {
                final_answer(Outcome::Retry { after: None }, RobotsNext::Unknown)
            }
            200..=299 => {
                let rules = RobotsRules::parse(&answer.body, config.product_token());
                final_answer(Outcome::Done, RobotsNext::Known(Policy::Rules(rules)))
            }
            300..=399 => {
                let target = redirect_target(entry, answer, &config.options().canonicalizer);
                let next = target
                    .filter(|_| entry.hops < MAX_ROBOTS_HOPS)
                    .map_or_else(allow_all, RobotsNext::Follow);
                final_answer(Outcome::Moved, next)
            }
            429 | 500.. => (judge(result), RobotsNext::Unknown),
            _ => final_answer(Outcome::Gone, allow_all()),
        },
        Err(FetchError::AddressForbidden) => (
            judge(result),
            RobotsNext::Known(Policy::Closed(NotFetched::AddressForbidden)),
        ),
        Err(_) => (judge(result), RobotsNext::Unknown),
    }
}

impl<S: Fetcher, F: Filter> Crawl<S, F> {
    pub(super) fn follow_up_robots(
        &mut self,
        entry: &Entry,
        origin: Origin,
        next: RobotsNext,
        fate: Fate,
        now: Time,
    ) -> Result<(), FrontierError> {
        match (fate, next) {
            (Fate::Final, RobotsNext::Known(policy)) => self.know(origin, policy, ROBOTS_LIFETIME, now),
            (Fate::Final, RobotsNext::Follow(target)) => {
                self.frontier_mut()
                    .follow_robots(&origin, &target, entry.hops.saturating_add(1), now)
            }
            (Fate::Requeued { .. } | Fate::Stale, _) => Ok(()),
            (Fate::Final | Fate::GaveUp, _) => self.close(&origin, now),
        }
    }

    /// The robots.txt of an origin could not be had: what was known of it holds on, or nothing of it may be fetched, until it is
    /// time to ask again.
    pub(crate) fn close(&mut self, origin: &Origin, now: Time) -> Result<(), FrontierError> {
        let (policy, rest) = self.policies().without_robots(origin);
        match &policy {
            Policy::Rules(_) => log::warn!("the robots.txt of {origin} cannot be had, so its last one holds on"),
            Policy::Closed(why) => {
                log::warn!("nothing of {origin} is fetched for {} s: {why}", rest.as_secs());
            }
        }
        self.know(origin.clone(), policy, rest, now)
    }
}
