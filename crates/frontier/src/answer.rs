//! From an HTTP answer to the settlement of its lease, for fetchers of your own.
//!
//! [`Lease::answered`] and [`Lease::failed`] settle a lease of any kind by these tables. [`settlement`](crate::settlement) has the
//! parts, for whoever decides otherwise.
//!
//! | what came of a page or a sitemap | outcome |
//! |---|---|
//! | 2xx | [`Done`](Outcome::Done), with the links that were found |
//! | 304 | [`Done`](Outcome::Done): the page has not changed since a previous crawl. Failed, [`Status`](FailureKind::Status), if no validators were sent |
//! | 1xx | failed: [`Status`](FailureKind::Status) |
//! | 3xx with a `Location` | [`Redirected`](Outcome::Redirected), with the target as its one link; without a link if the target cannot be crawled, such as `mailto:` |
//! | 3xx without a `Location` | [`Rejected`](Outcome::Rejected). Of a 300, you may add the links of its list |
//! | 429, 503 with `Retry-After` | failed: [`Throttled`](FailureKind::Throttled), with the `Retry-After` |
//! | 408, 425, 5xx | failed: [`Status`](FailureKind::Status) |
//! | any other status, such as 404 | [`Rejected`](Outcome::Rejected) |
//! | 2xx whose body breaks off | failed: [`Incomplete`](FailureKind::Incomplete). You may add the links of the part that came |
//! | the same, and the lease was the last attempt | as you like: failed, or [`Done`](Outcome::Done) with the links of the part that came |
//! | another status whose body breaks off | as without the break |
//! | no answer | failed: `Unresolved`, `Connect`, `Tls`, `Timeout`, `Broken`; see [`failure`](crate::failure) for what follows from each |
//! | no request, because the address is forbidden | [`NotFetched`](Outcome::NotFetched) |
//!
//! | what came of a robots.txt | outcome |
//! |---|---|
//! | 2xx | [`Done`](Outcome::Done), with its [rules](Settlement::with_rules) |
//! | 2xx whose body breaks off | failed: [`Incomplete`](FailureKind::Incomplete). Never `Rejected`: the missing part may forbid |
//! | 3xx with a `Location` | [`Redirected`](Outcome::Redirected), as a page |
//! | 1xx, 304, 412, 416, 429, 5xx | failed |
//! | any other status, such as 404 | [`Rejected`](Outcome::Rejected): everything is allowed |
//! | no answer | failed, as for a page. Never `Rejected` |

use std::time::Duration;

use crate::canonical::Canonicalizer;
use crate::entry::{Entry, Purpose};
use crate::failure::{Failure, FailureKind};
use crate::lease::Lease;
use crate::reference::resolve;
use crate::rules::RobotsRules;
use crate::settlement::{Outcome, Settlement};
use crate::url::CanonicalUrl;

/// The head of an HTTP answer whose body was received to its end, or to a limit of yours.
///
/// Later versions may add fields: fill the rest with `..Answer::default()`.
///
/// ```
/// use frontier::{Answer, Outcome, Purpose};
///
/// let answer = Answer { status: 404, ..Answer::default() };
/// assert_eq!(answer.outcome(&Purpose::Page), Outcome::Rejected);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The value of `Location`.
    pub location: Option<String>,
    /// The value of `Retry-After` (RFC 9110, section 10.2.3), from now on. It is a number of seconds, or a date, which is as far off as it is behind
    /// your clock: a library for HTTP dates reads it.
    pub retry_after: Option<Duration>,
    /// Whether the request had validators, so that 304 may answer it. [`Lease::answered`] takes those of its entry as sent.
    pub conditional: bool,
}

impl Answer {
    /// Returns the outcome of a request that was answered so. [`Redirected`](Outcome::Redirected) needs its target as a link, and a
    /// robots.txt that is [`Done`](Outcome::Done) its rules.
    pub fn outcome(&self, asked_for: &Purpose) -> Outcome {
        match (self.failure(asked_for), self.status) {
            (Some(failure), _) => Outcome::failed_until(failure, self.rest()),
            (None, 200..=299 | 304) => Outcome::Done,
            (None, 300..=399) if self.location.is_some() => Outcome::Redirected,
            (None, _) => Outcome::Rejected,
        }
    }

    /// Returns whether the status answers what nobody asked: 304 a request without validators, or a final 1xx.
    pub fn is_unasked(&self) -> bool {
        self.status == 304 && !self.conditional || (100..200).contains(&self.status)
    }

    fn failure(&self, asked_for: &Purpose) -> Option<Failure> {
        let status = self.status;
        let kind = match (asked_for, status) {
            // 412 and 416 answer conditions and ranges, which no request for it has: they say nothing of the file.
            (Purpose::Robots(_), 100..=199 | 304 | 412 | 416 | 600..) => FailureKind::Status,
            (Purpose::Robots(_), 408 | 425) => return None,
            _ if self.is_unasked() => FailureKind::Status,
            _ => FailureKind::of_status(status, self.retry_after.is_some())?,
        };
        let why = match kind {
            FailureKind::Throttled => format!("status {status}: the server asks for less traffic"),
            _ => format!("status {status}"),
        };
        Some(Failure::new(kind, why))
    }

    fn rest(&self) -> Option<Duration> {
        let is_throttled = FailureKind::of_status(self.status, true) == Some(FailureKind::Throttled);
        self.retry_after.filter(|_| is_throttled)
    }

    /// Returns the target of a redirect, if it can be crawled.
    pub fn target(&self, entry: &Entry, urls: &Canonicalizer) -> Option<CanonicalUrl> {
        let from = url::Url::parse(&entry.url).ok()?;
        let to = resolve(Some(&from), self.location.as_deref()?, None).ok()?;
        urls.canonicalize(to).ok()
    }
}

impl Lease {
    /// Settles the lease of a page, a robots.txt or a sitemap that was answered, by the [tables](crate::answer). `urls` canonicalizes
    /// the target of a redirect. `rules` reads the body; it is called for a robots.txt with a status of 2xx only.
    ///
    /// Add what was found on a page: [`with_links`](Settlement::with_links), if the status is not 3xx.
    ///
    /// ```
    /// # use frontier::{Answer, Canonicalizer, Failure, FailureKind, Frontier, FrontierConfig, Leasing, RobotsRules, Time};
    /// # #[derive(Debug)] struct Rules;
    /// # impl RobotsRules for Rules { fn allows(&self, _: &str) -> bool { true } }
    /// # let (urls, now) = (Canonicalizer::default(), Time::from_millis(1));
    /// # let mut frontier = Frontier::in_memory(FrontierConfig::default())?;
    /// # frontier.add_seed(&urls.parse("https://example.com/")?, now)?;
    /// # let Leasing::Ready(leases) = frontier.lease(now, 1)? else { panic!() };
    /// # let fetched: Result<Answer, &str> = Ok(Answer { status: 200, ..Answer::default() });
    /// let settlement = match fetched {
    ///     Ok(answer) => leases[0].answered(&answer, &urls, || Rules),
    ///     Err(error) => leases[0].failed(Failure::new(FailureKind::Timeout, error)),
    /// };
    /// frontier.settle(&[settlement], now)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn answered<R: RobotsRules + 'static>(
        &self,
        answer: &Answer,
        urls: &Canonicalizer,
        rules: impl FnOnce() -> R,
    ) -> Settlement {
        let answer = &Answer {
            conditional: answer.conditional || self.entry.has_validators(),
            ..answer.clone()
        };
        let settlement = self
            .settle(answer.outcome(&self.entry.purpose))
            .with_status(answer.status);
        match (&settlement.outcome, &self.entry.purpose) {
            (Outcome::Redirected, _) => {
                let target = answer
                    .target(&self.entry, urls)
                    .map(|target| self.entry.redirected(target));
                settlement.with_links(target.into_iter().collect())
            }
            (Outcome::Done, Purpose::Robots(_)) => settlement.with_rules(rules()),
            _ => settlement,
        }
    }

    /// Settles the lease of a request that failed: no answer, or a body that broke off. An address that was looked up without success
    /// counts as unknown for an hour.
    pub fn failed(&self, failure: Failure) -> Settlement {
        self.settle(Outcome::failed(failure))
    }
}
