//! `crawler why`: what a crawl did with a URL.

use std::io::{self, Write as _};

use crawler::summary::{Rows, counted, grouped};
use crawler::{SavedCrawl, StartError};
use frontier::{CanonicalUrl, Directory, FailureKind, Health, PageEnd, QueuePlace, StoredPage, Wait, Why};
use serde::Serialize;

use super::list::LastFetch;
use super::{StateFailure, now};
use crate::flag;
use crate::options::{DirArgs, check_seed};

/// The exit code for a URL that the crawl has not met.
const NOT_MET: u8 = 3;

/// Prints the answer. Returns the exit code.
pub(super) fn run(of: &DirArgs, url: &str) -> Result<u8, StateFailure> {
    check_seed(url)?;
    let crawl = SavedCrawl::read(&of.dir)?;
    let url = crawl.canonical_url(url).map_err(|why| StateFailure::Url {
        url: url.to_owned(),
        why,
    })?;
    let mut why = crawl.frontier.why(&url, now() + crawl.ahead);
    if let Why::Queued {
        wait: Wait::Until(time) | Wait::Away { since: time, .. },
        ..
    } = &mut why
    {
        *time = crawl.time_of_day(*time);
    }
    let host = crawl.host(&url.host());
    let waits = matches!(&why, Why::Queued { wait, .. } if *wait != Wait::PageBudget);
    let least = if waits { Health::Resting } else { Health::Closed };
    let host = host.filter(|host| host.health.state >= least && host.health.origin == Some(url.origin()));
    let host = host.map(|host| host.explained(crawl.summary.host_table.as_of, &flag::of));
    let (is_paused, is_running) = (crawl.is_paused, crawl.is_running());
    let report = crawl.frontier.report();
    let was_refused = report.refused_earlier;
    // The log of a crawl that runs grows until the copy is gone.
    drop(crawl);
    let ended = match &why {
        Why::Seen { .. } => Directory::new(&of.dir).find_page(url.key()).map_err(StartError::from)?,
        _ => None,
    };
    let mut answer = Answer::new(&url, &why, ended.as_ref(), is_running);
    let held = match (is_running, is_paused) {
        (false, _) => Some("the crawl does not run: the same command continues it"),
        (true, true) => Some("the crawl is paused: no host is asked"),
        (true, false) => None,
    };
    if let (Why::Queued { .. }, Some(held)) = (&why, held) {
        answer.explanation = held.to_owned();
    } else if let Some(host) = host.filter(|_| answer.reason.is_some()) {
        answer.explanation += &format!("; its origin is {host}");
    }
    if let Why::Queued { place, rule, .. } = &why {
        (answer.place, answer.rule) = (Some(*place), rule.as_deref());
    }
    if answer.state == "unknown" && was_refused {
        answer.explanation += "; it may have been refused in an earlier run, or by an order that was lifted since";
    }
    let text = if of.json {
        serde_json::to_string(&answer).map_err(io::Error::from)? + "\n"
    } else {
        answer.rows().to_string()
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(match why {
        Why::Refused(_) | Why::NeverOffered => NOT_MET,
        _ => 0,
    })
}

fn explanation(page: &StoredPage) -> String {
    match page.end {
        PageEnd::Done => "it was fetched".to_owned(),
        PageEnd::Redirected => "it answered with a redirect; --refused says which lead to no page".to_owned(),
        PageEnd::Rejected => match page.answer.status {
            Some(status) => format!("it answered {status}, which is final: it is not asked again"),
            None => "its answer is final, and no page: it is not asked again".to_owned(),
        },
        PageEnd::GaveUp(FailureKind::Throttled) => "it was throttled to the end".to_owned(),
        PageEnd::GaveUp(kind) => format!("it failed in all attempts: {kind}"),
        PageEnd::NotFetched(why) => why.to_string(),
        _ => "it has ended".to_owned(),
    }
}

/// What is printed. Fields that do not apply are left out.
#[derive(Debug, Default, Serialize)]
struct Answer<'a> {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// One word.
    state: &'static str,
    /// One word.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    explanation: String,
    #[serde(flatten)]
    ended: Option<LastFetch<'a>>,
    /// Behind how many it waits.
    #[serde(flatten)]
    place: Option<QueuePlace>,
    /// The pattern that gives it its class.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    /// The chance that the seen-set knows a URL that it never met.
    #[serde(skip_serializing_if = "Option::is_none")]
    false_positive_rate: Option<f64>,
}

impl<'a> Answer<'a> {
    fn new(url: &CanonicalUrl, why: &Why, ended: Option<&'a StoredPage>, is_running: bool) -> Self {
        let text = url.url().as_str();
        let mut answer = Self {
            url: text.to_owned(),
            key: (url.key() != text).then(|| url.key().to_owned()),
            ..Self::default()
        };
        (answer.state, answer.reason, answer.explanation) = match why {
            Why::Refused(why) => ("refused", Some(why.name()), why.to_string()),
            Why::Leased { attempt } if is_running => ("in_flight", None, format!("attempt {attempt}")),
            Why::Leased { attempt } => (
                "in_flight",
                None,
                format!("attempt {attempt}, when the crawl ended: it will be fetched again"),
            ),
            Why::Queued { wait, .. } => ("waiting", Some(word(wait)), wait.to_string()),
            Why::WillBeDropped(why) => ("waiting", Some(why.name()), format!("it will not be fetched: {why}")),
            Why::Seen { false_positive_rate } => match ended {
                Some(ended) => {
                    answer.ended = Some(LastFetch::of(ended));
                    let (state, reason) = ended.end.names();
                    (state, reason, explanation(ended))
                }
                None => {
                    answer.false_positive_rate = Some(*false_positive_rate);
                    let chance = offered(*false_positive_rate);
                    let text = format!("the seen-set knows it, and there is no record of it; {chance}");
                    ("seen", None, text)
                }
            },
            Why::Elsewhere { owner } => (
                "elsewhere",
                None,
                format!("its site belongs to partition {owner} of the crawl: ask with the directory of that one"),
            ),
            _ => (
                "unknown",
                None,
                "never offered, or refused for a reason that no longer holds".to_owned(),
            ),
        };
        answer
    }

    fn rows(&self) -> Rows {
        let mut rows = Rows::default();
        rows.add_whole("URL", &self.url);
        if let Some(key) = &self.key {
            rows.add_whole("same as", key);
        }
        let state = match self.state {
            // The crawler rejects nothing.
            "rejected" => "answered".to_owned(),
            state => state.replace('_', " "),
        };
        rows.add_whole("state", format_args!("{state}: {}", self.explanation));
        if let Some(place) = self.place {
            rows.add("ahead of it", format!("{} of its origin", counted_entries(place.ahead)));
            let others = counted_entries(place.others_of_host);
            let in_flight = counted(u64::from(place.in_flight), "request");
            rows.add("its host", format!("{others} more, {in_flight} in flight"));
            let rule = self
                .rule
                .map_or_else(String::new, |rule| format!(", by the rule {rule}"));
            rows.add("class", format!("{}{rule}", place.class));
            if place.attempts > 0 {
                rows.add("attempts", place.attempts);
            }
        }
        let Some(ended) = &self.ended else { return rows };
        if let Some(status) = ended.status {
            rows.add("status", status);
        }
        rows.add("at", &ended.ended_at);
        if let Some(next) = &ended.next_visit {
            rows.add("next visit", next);
        }
        rows.add("attempts", ended.attempts);
        rows.add("depth", ended.depth);
        match ended.referrer {
            Some(referrer) => rows.add_whole("linked from", referrer),
            None => rows.add("linked from", "no page: a seed, its redirect, or of a sitemap"),
        }
        rows
    }
}

fn counted_entries(number: u64) -> String {
    let noun = if number == 1 { "entry" } else { "entries" };
    format!("{} {noun}", grouped(number))
}

/// Says how surely a URL was offered that the seen-set knows.
fn offered(false_positive_rate: f64) -> String {
    match false_positive_rate {
        0.0 => "it surely was offered".to_owned(),
        rate if rate < 1e-4 => "it was offered, but for a chance of less than 0.01 %".to_owned(),
        rate => format!("with a chance of {:.2} % it was never offered", rate * 100.0),
    }
}

fn word(wait: &Wait) -> &'static str {
    match wait {
        Wait::Turn => "turn",
        Wait::Until(_) => "until",
        Wait::InFlight => "in_flight",
        Wait::PagesInFlight => "pages_in_flight",
        Wait::Robots => "robots",
        Wait::Away { .. } => "away",
        Wait::EverythingElse => "postponed",
        Wait::AddressLookup => "address_lookup",
        Wait::SharedAddress => "shared_address",
        Wait::PageBudget => "page_budget",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_the_seen_set_knows_has_its_chance_of_a_mistake_in_percent() {
        assert_eq!(offered(0.0), "it surely was offered");
        assert_eq!(
            offered(0.000_099),
            "it was offered, but for a chance of less than 0.01 %"
        );
        assert_eq!(offered(0.012_34), "with a chance of 1.23 % it was never offered");
    }
}
