//! Why a crawl is incomplete.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

use frontier::{FailureKind, NotFetched, Refusal};

use super::counts::count_of;
use super::rows::counted;
use super::{Ending, Summary, remedy};
use crate::fetch::TruncationReason;

/// The refusals by a limit, and the options that raise them. The others are the scope of the crawl, which repeated path segments are
/// part of: the URLs of a loop of links have them.
const LIMITS: [(Refusal, &str); 12] = [
    (Refusal::QueueFull, "max_queued"),
    (Refusal::TooManyHosts, "max_hosts"),
    (Refusal::Saturated, "capacity"),
    // What to do is said with the pages that its origin lost.
    (Refusal::HostDown, ""),
    (Refusal::HostBudget, HOST_BUDGET),
    (Refusal::TooManySitemaps, "max_sitemaps"),
    (Refusal::TooManyQueries, "max_queries_per_path"),
    (Refusal::TooManySubdomains, "max_hosts_per_site"),
    (Refusal::TooManyPorts, ""),
    (Refusal::TooManyHops, "max_redirects"),
    (Refusal::UrlTooLong, "max_url_bytes"),
    (Refusal::NearDuplicates, "max_near_duplicates_in_all"),
];

/// A policy of the host goes before it.
const HOST_BUDGET: &str = "max_pages_per_host";

/// What becomes of what a limit takes away.
const REFUSED: &str = "refused";
const NOT_FETCHED: &str = "not fetched";
const CUT_OFF: &str = "cut off";
const NOT_READ: &str = "not read";

/// One reason why a crawl is incomplete. As text it names its unit: pages were queued; links and URLs were not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Missing {
    /// The reason as one word in snake case, for counters and logs.
    pub kind: &'static str,
    /// How many pages, links and URLs the reason took away, in its unit, with repeats: a link counts once for each page that has it,
    /// even if its page is found elsewhere. Of the seen-set it is the lower bound ([`lost_at_least`](sieve::Saturation::lost_at_least)).
    pub lost: u64,
    /// At least how many pages are lost; 0 if none surely is. Refused links and what was cut off do not count: their pages may be
    /// found elsewhere.
    pub lost_at_least: u64,
    what: String,
    /// What to do about it, as a phrase; empty if there is nothing. The fields of options stand in braces.
    remedy: String,
}

impl Missing {
    fn new(kind: &'static str, lost: u64, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            kind,
            lost,
            lost_at_least: lost,
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// The kind of a crawl that was stopped, whose time limit was reached, or whose page budget was spent.
    pub const INTERRUPTED: &'static str = "interrupted";

    /// The kind of new URLs that the seen-set dropped as false positives. Pages that only they link to are missing, too.
    pub const SEEN_SET: &'static str = "seen_set";

    /// Returns the same text with other names for the options: `name` returns that of a field, such as `--max-pages` of `max_pages`.
    pub fn with_names<'a>(&'a self, name: impl Fn(&str) -> String + 'a) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| {
            f.write_str(&self.what)?;
            if self.remedy.is_empty() {
                return Ok(());
            }
            let parts = self.remedy.split(['{', '}']).enumerate();
            let named = parts.map(|(at, part)| if at % 2 == 1 { name(part) } else { part.to_owned() });
            write!(f, " ({})", named.collect::<String>())
        })
    }
}

impl fmt::Display for Missing {
    /// Writes what is missing, and in parentheses the option that prevents it: the name of its field.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.with_names(str::to_owned), f)
    }
}

impl Summary {
    /// Returns the reasons why the crawl is incomplete, or nothing if it is complete. A crawl is complete if every page that its seeds
    /// reach within the scope has a final answer: whatever a limit took away is missing. The seen-set counts as complete below a
    /// [possible loss](sieve::Saturation::may_have_lost). An interruption comes first, then what has lost most pages.
    pub fn missing(&self) -> Vec<Missing> {
        let mut missing = self.unanswered();
        // One that keeps its pages fresh has no other end.
        let is_whole = self.freshness.is_some() && self.pages_left() == 0 && self.ending != Ending::Error;
        if self.ending != Ending::Drained && !is_whole {
            let remedy = match self.ending {
                Ending::BudgetSpent if self.report.ordered_max_pages.is_some() => "order more",
                Ending::BudgetSpent => "raise {max_pages}",
                Ending::TimeUp => "raise {max_time}",
                _ => "",
            };
            let what = format!("{}: {} left", self.ending, counted(self.pages_left(), "page"));
            missing.push(Missing::new(Missing::INTERRUPTED, 0, what, remedy));
        }
        if self.has_lost_links || self.report.exchange.lost_batches > 0 {
            let what = "links between processes: some were lost with a state directory";
            missing.push(Missing::new("lost_links", 0, what, ""));
        }
        if self.outputs.lost > 0 {
            let outputs = counted(self.outputs.lost, "output");
            let what = format!("{outputs} begun anew: what earlier runs wrote was no longer there");
            let remedy = "a crawl in a new directory writes all";
            missing.push(Missing::new("lost_outputs", 0, what, remedy));
        }
        missing.extend(self.dropped());
        missing.extend(self.limited());
        missing.sort_by_key(|one| (one.kind != Missing::INTERRUPTED, Reverse((one.lost_at_least, one.lost))));
        missing
    }

    /// What a later run over the same state directory tries again.
    fn unanswered(&self) -> Vec<Missing> {
        let (report, failed) = (&self.report, &self.failures.by_kind);
        let unreadable = count_of(failed, FailureKind::Malformed) + count_of(failed, FailureKind::HeadTooLarge);
        let unanswered = report
            .pages
            .gave_up
            .saturating_sub(self.failures.gave_up_answered + self.failures.gave_up_throttled + unreadable);
        let timed_out = failed.contains_key(&FailureKind::Timeout)
            || self.failures.bodies_truncated.contains_key(&TruncationReason::Time);
        let timeout = if timed_out { " or {timeout}" } else { "" };
        let attempts = format!("raise {{max_attempts}}{timeout}");
        let heads = "if too long, raise {max_headers} or {max_header_bytes}".to_owned();
        let braced = |field: &str| format!("{{{field}}}");
        let causes = self.failures.given_up_causes.iter();
        let causes: BTreeSet<_> = causes.map(|cause| remedy(*cause, braced)).collect();
        let causes = causes.into_iter().collect::<Vec<_>>().join("; ");
        let robots = count_of(&report.not_fetched, NotFetched::RobotsUnreachable);
        #[rustfmt::skip]
        let all = [
            ("given_up", "given up", report.pages.lost_with_host, causes),
            ("no_whole_answer", "no whole answer", unanswered, attempts),
            ("throttled", "throttled to the end", self.failures.gave_up_throttled, remedy(FailureKind::Throttled, braced)),
            ("unreadable", "head of the answer malformed or too long", unreadable, heads),
            ("robots_unreachable", "robots.txt could not be fetched", robots, "look at it: nothing is fetched without it".to_owned()),
        ];
        let all = all.into_iter().filter(|(_, _, pages, _)| *pages > 0);
        let all = all.map(|(kind, why, pages, remedy)| {
            Missing::new(kind, pages, format!("{why}: {}", counted(pages, "page")), remedy)
        });
        all.collect()
    }

    fn dropped(&self) -> Option<Missing> {
        let saturation = &self.report.saturation;
        let lost = saturation.lost_at_least();
        let dropped = match lost {
            0 => "one or a few URLs may be dropped".to_owned(),
            _ => format!("at least {} dropped", counted(rounded_down(lost), "URL")),
        };
        let full = match saturation.is_full() {
            true => "; it is full and drops every new URL, so how many is no longer known",
            false => "",
        };
        let (enough, place) = (rounded_up(saturation.sufficient_capacity() as u64), self.where_anew());
        let what = format!("seen-set: {dropped}{full}, and what only they link to is missing");
        // More room brings none of them back: the seen-set takes them for seen.
        let remedy = format!("set {{capacity}} {enough} or more{place}");
        saturation
            .may_have_lost()
            .then(|| Missing::new(Missing::SEEN_SET, lost, what, remedy))
    }

    /// What limits took away, in this run and in earlier ones.
    fn limited(&self) -> Vec<Missing> {
        let (report, sitemaps, place) = (&self.report, &self.sitemaps, self.where_anew());
        let mut missing = Vec::new();
        let mut add = |kind, why: &dyn fmt::Display, lost, unit, fate, option: &str| {
            let or = if option == HOST_BUDGET {
                ", or max-pages of the host"
            } else {
                ""
            };
            let may_be_lifted = report.refused_earlier && [REFUSED, NOT_FETCHED].contains(&fate);
            let limited = Missing {
                kind,
                lost,
                lost_at_least: if fate == NOT_FETCHED { lost } else { 0 },
                what: format!("{why}: {} {fate}", counted(lost, unit)),
                remedy: match kind {
                    _ if option.is_empty() => String::new(),
                    // A broken one has no remedy.
                    "sitemaps_broken" => format!("if too long, raise {{{option}}}{place}"),
                    _ if may_be_lifted => format!("{{{option}}}{or} of this run or an earlier one"),
                    _ => format!("raise {{{option}}}{or}{place}"),
                },
            };
            missing.extend((lost > 0).then_some(limited));
        };
        let mut is_lifted = report.refused_earlier;
        for (why, option) in LIMITS {
            let links = count_of(&report.links.refused, why) + count_of(&report.sitemaps.refused, why);
            // All origins have been asked again since.
            if why == Refusal::HostDown && report.origins_given_up == 0 {
                is_lifted |= links > 0;
            } else {
                add(why.name(), &why, links, "link", REFUSED, option);
            }
        }
        let dropped = |why| count_of(&report.not_fetched, why);
        let cut = |why| count_of(&self.failures.bodies_truncated, why);
        let damaged = cut(TruncationReason::Coding) + cut(TruncationReason::Part);
        let [alike, budget] = [NotFetched::NearDuplicates, NotFetched::HostBudget];
        #[rustfmt::skip]
        let others: [(_, &dyn fmt::Display, _, _, _, _); 10] = [
            ("near_duplicates_not_fetched", &alike, dropped(alike), "page", NOT_FETCHED, "max_near_duplicates_in_all"),
            ("host_budget_not_fetched", &budget, dropped(budget), "page", NOT_FETCHED, HOST_BUDGET),
            ("links_dropped", &"too many links on a page", self.unfollowed.dropped, "link", CUT_OFF, "max_links_per_page"),
            ("bodies_truncated", &"body too long", cut(TruncationReason::Size), "page", CUT_OFF, "max_body_bytes"),
            ("bodies_damaged", &"body damaged, or sent in part", damaged, "page", CUT_OFF, ""),
            ("sitemap_urls_dropped", &"too many URLs in a sitemap", sitemaps.urls_dropped, "URL", CUT_OFF, "max_sitemap_urls"),
            ("sitemaps_broken", &"sitemap too long or broken", sitemaps.broken, "sitemap", CUT_OFF, "max_sitemap_bytes"),
            ("selected_cut", &"selected fields too long", self.outputs.selected_cut, "value", CUT_OFF, "select_limits"),
            ("selected_incomplete", &"selected fields too costly", self.outputs.selected_incomplete, "page", CUT_OFF, ""),
            ("sitemaps_unanswered", &"no final answer", sitemaps.unanswered, "sitemap", NOT_READ, "max_attempts"),
        ];
        for (kind, why, number, unit, fate, option) in others {
            add(kind, why, number, unit, fate, option);
        }
        if is_lifted {
            let what = "links may have been refused in an earlier run, or by an order that was lifted since";
            let remedy = "a crawl in a new directory finds them";
            missing.push(Missing::new("refused_earlier", 0, what, remedy));
        }
        missing
    }

    /// Says where a higher limit helps: a crawl with a directory does not offer again what was refused or cut off.
    fn where_anew(&self) -> &'static str {
        self.report.memory.as_ref().map_or("", |_| ", in a new directory")
    }

    /// Returns how many pages, links and URLs are lost for whatever reason, with repeats, those of the seen-set as an estimate. What is still
    /// queued does not count; pages without an answer do, though a later run tries them again.
    pub fn lost(&self) -> f64 {
        let missing = self.missing();
        let others = missing.iter().filter(|one| one.kind != Missing::SEEN_SET);
        self.report.saturation.lost + others.map(|one| one.lost).sum::<u64>() as f64
    }

    /// Returns at least how many pages are lost, those of the seen-set at a confidence of 97 %. Links do not count.
    pub fn lost_at_least(&self) -> u64 {
        self.missing().iter().map(|one| one.lost_at_least).sum()
    }

    /// Returns whether pages have no answer, or no whole one, that a later run over the same state directory tries again. A crawl that several
    /// processes share tries none again after its end.
    pub fn has_unanswered(&self) -> bool {
        self.report.partition.is_none() && !self.unanswered().is_empty()
    }
}

/// Rounds down to three digits, so a lower bound stays a lower bound.
pub fn rounded_down(number: u64) -> u64 {
    let step = 10_u64.pow(number.max(1).ilog10().saturating_sub(2));
    number / step * step
}

/// Rounds up to two digits, so an upper bound stays an upper bound.
pub(super) fn rounded_up(number: u64) -> u64 {
    let step = 10_u64.pow(number.max(1).ilog10().saturating_sub(1));
    number.div_ceil(step).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_bounds_are_rounded_down_and_upper_bounds_up() {
        assert_eq!([0, 7, 999, 1_999, 93_499].map(rounded_down), [0, 7, 999, 1_990, 93_400]);
        let up = [0, 7, 101, 200_001, u64::MAX].map(rounded_up);
        assert_eq!(up[..4], [0, 7, 110, 210_000]);
        assert!(up[4] >= 18_000_000_000_000_000_000);
    }
}
