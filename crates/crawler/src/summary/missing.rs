//! Why a crawl is incomplete.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

use frontier::report::LinkCounts;
use frontier::{FailureKind, NotFetched, Refusal};

use super::rows::counted;
use super::{Ending, Summary, remedy};
use crate::fetch::TruncationReason;

/// The refusals by a limit, and the options that raise them. The others are the scope of the crawl, which repeated path segments are
/// part of: the URLs of a loop of links have them.
const LIMITS: [(Refusal, &str); 12] = [
    (Refusal::QueueFull, "max_queued"),
    (Refusal::TooManyHosts, "max_hosts"),
    (Refusal::Saturated, "capacity"),
    (Refusal::HostDown, "max_host_downtime"),
    (Refusal::HostBudget, "max_pages_per_host"),
    (Refusal::TooManySitemaps, "max_sitemaps"),
    (Refusal::TooManyQueries, "max_queries_per_path"),
    (Refusal::TooManySubdomains, "max_hosts_per_site"),
    (Refusal::TooManyPorts, ""),
    (Refusal::TooManyHops, "max_hops"),
    (Refusal::UrlTooLong, "max_url_bytes"),
    (Refusal::NearDuplicates, "max_near_duplicates_in_all"),
];

/// The reasons to drop queued pages by a limit, with their words and the options that raise them. Links are refused for the same reasons.
const DROPPED: [(NotFetched, &str, &str); 2] = [
    (
        NotFetched::NearDuplicates,
        "near_duplicates_not_fetched",
        "max_near_duplicates_in_all",
    ),
    (NotFetched::HostBudget, "host_budget_not_fetched", "max_pages_per_host"),
];

/// What becomes of what a limit takes away.
const REFUSED: &str = "refused";
const NOT_FETCHED: &str = "not fetched";
const CUT_OFF: &str = "cut off";
const NOT_READ: &str = "not read";

/// One reason why a crawl is incomplete. Each names its unit: pages were queued; links and URLs were not.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Missing {
    /// The crawl was stopped, its time limit was reached, or its page budget was spent.
    Interrupted {
        /// Which of these.
        ending: Ending,
        /// Pages that were queued, or in flight when a stop ended the crawl at once.
        left: u64,
    },
    /// Origins were given up, because they were away for too long or only throttled.
    GivenUp {
        /// Queued pages of these origins, which count as failed.
        pages: u64,
        /// Origins that were given up, including those without queued pages.
        origins: u64,
        /// The causes.
        causes: BTreeSet<FailureKind>,
    },
    /// In all attempts, pages got no answer, a body that broke off, or an answer that throttles.
    Failed {
        /// The number of pages.
        pages: u64,
        /// Whether the time ran out for some of them.
        timed_out: bool,
    },
    /// Pages were answered with a head that is malformed or too long.
    Unreadable {
        /// The number of pages.
        pages: u64,
    },
    /// Pages were not fetched because the robots.txt of their origin could not be fetched.
    RobotsUnreachable {
        /// The number of pages.
        pages: u64,
    },
    /// The seen-set dropped new URLs as false positives. Pages that only they link to are missing, too.
    Dropped {
        /// A lower bound of the dropped URLs ([`lost_at_least`](sieve::Saturation::lost_at_least)); 0 if a loss is only possible.
        at_least: u64,
        /// A [sufficient capacity](sieve::Saturation::sufficient_capacity) for the URLs that were found.
        enough: u64,
        /// Whether every new URL is dropped, so that how many is no longer known.
        is_full: bool,
        /// Whether the crawl has a directory: another capacity brings nothing back there.
        is_kept: bool,
    },
    /// Links between the processes that share the crawl were lost with a state directory, of this process or another one. What only they
    /// lead to is missing.
    LostLinks,
    /// Outputs of earlier runs were no longer as these had left them, and were begun anew.
    LostOutputs {
        /// How many.
        outputs: u64,
    },
    /// Earlier runs over the same directory have refused links by a limit that was lifted since. They are not offered again, nor what
    /// only they lead to.
    RefusedEarlier,
    /// A limit took something away.
    Limited {
        /// Which limit, as one word in snake case.
        kind: &'static str,
        /// The same for people.
        why: String,
        /// What it took away, or how many pages and sitemaps it cut. A URL counts once for each page that links to it.
        number: u64,
        /// The noun of the number.
        unit: &'static str,
        /// What became of it: links were refused, pages not fetched, sitemaps not read, the rest was cut off.
        fate: &'static str,
        /// The field of [`CrawlOptions`](crate::CrawlOptions), [`HttpOptions`](crate::HttpOptions) or their parts to raise; nothing for a limit
        /// that is fixed.
        option: &'static str,
        /// Whether a limit was lifted since an earlier run over the same directory: maybe this one.
        lifted: bool,
        /// Whether the crawl has a directory: what was taken away is not offered again there.
        is_kept: bool,
    },
}

impl fmt::Display for Missing {
    /// Writes what is missing, and in parentheses the option that prevents it: the name of its field.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &str::to_owned)
    }
}

impl Summary {
    /// Returns the reasons why the crawl is incomplete, or nothing if it is complete. A crawl is complete if every page that its seeds
    /// reach within the scope has a final answer: whatever a limit took away is missing. The seen-set counts as complete below a
    /// [possible loss](sieve::Saturation::may_have_lost). An interruption comes first, then what has lost most pages.
    pub fn missing(&self) -> Vec<Missing> {
        let report = &self.report;
        let is_kept = report.memory.is_some();
        let mut missing = Vec::new();
        if self.ending != Ending::Drained {
            missing.push(Missing::Interrupted {
                ending: self.ending,
                left: self.pages_left(),
            });
        }
        if self.has_lost_links || report.exchange.lost_batches > 0 {
            missing.push(Missing::LostLinks);
        }
        if self.lost_outputs > 0 {
            let outputs = self.lost_outputs;
            missing.push(Missing::LostOutputs { outputs });
        }
        if report.pages.lost_with_host > 0 {
            missing.push(Missing::GivenUp {
                pages: report.pages.lost_with_host,
                origins: report.origins_given_up,
                causes: self.given_up_causes.clone(),
            });
        }
        let kinds = [FailureKind::Malformed, FailureKind::HeadTooLarge];
        let unreadable = kinds.iter().filter_map(|kind| self.failed.get(kind)).sum();
        let unanswered = report.pages.gave_up.saturating_sub(self.gave_up_answered + unreadable);
        if unanswered > 0 {
            missing.push(Missing::Failed {
                pages: unanswered,
                timed_out: self.failed.contains_key(&FailureKind::Timeout)
                    || self.bodies_truncated.contains_key(&TruncationReason::Time),
            });
        }
        if unreadable > 0 {
            missing.push(Missing::Unreadable { pages: unreadable });
        }
        let closed = report.not_fetched.get(&NotFetched::RobotsUnreachable);
        missing.extend(closed.map(|pages| Missing::RobotsUnreachable { pages: *pages }));
        let saturation = &report.saturation;
        if saturation.may_have_lost() {
            missing.push(Missing::Dropped {
                at_least: saturation.lost_at_least(),
                enough: rounded_up(saturation.sufficient_capacity() as u64),
                is_full: saturation.is_full(),
                is_kept,
            });
        }
        let mut add = |kind, why: String, (number, unit), fate, option| {
            if number > 0 {
                missing.push(Missing::Limited {
                    kind,
                    why,
                    number,
                    unit,
                    fate,
                    option,
                    lifted: report.refused_earlier && ![CUT_OFF, NOT_READ].contains(&fate),
                    is_kept,
                });
            }
        };
        let mut is_lifted = report.refused_earlier;
        for (why, option) in LIMITS {
            let of = |counts: &LinkCounts| counts.refused.get(&why).copied().unwrap_or_default();
            let links = of(&report.links) + of(&report.sitemaps);
            // All origins have been asked again since.
            if why == Refusal::HostDown && report.origins_given_up == 0 {
                is_lifted |= links > 0;
            } else {
                add(why.name(), why.to_string(), (links, "link"), REFUSED, option);
            }
        }
        for (why, kind, option) in DROPPED {
            let pages = report.not_fetched.get(&why).copied().unwrap_or_default();
            add(kind, why.to_string(), (pages, "page"), NOT_FETCHED, option);
        }
        let bodies = self.bodies_truncated.get(&TruncationReason::Size).copied();
        let damaged = [TruncationReason::Coding, TruncationReason::Part];
        let damaged = damaged
            .iter()
            .filter_map(|reason| self.bodies_truncated.get(reason))
            .sum();
        #[rustfmt::skip]
        let cuts = [
            ("links_dropped", "too many links on a page", self.links_dropped, "link", "max_links_per_page"),
            ("bodies_truncated", "body too long", bodies.unwrap_or_default(), "page", "max_body_bytes"),
            ("bodies_damaged", "body damaged, or sent in part", damaged, "page", ""),
            ("sitemap_urls_dropped", "too many URLs in a sitemap", self.sitemaps.urls_dropped, "URL", "max_sitemap_urls"),
            ("sitemaps_broken", "sitemap too long or broken", self.sitemaps.broken, "sitemap", "max_sitemap_bytes"),
            ("selected_cut", "selected fields too long", self.selected_cut, "value", "select_limits"),
            ("selected_incomplete", "selected fields too costly", self.selected_incomplete, "page", ""),
        ];
        for (kind, why, number, unit, option) in cuts {
            add(kind, why.to_owned(), (number, unit), CUT_OFF, option);
        }
        let unanswered = (self.sitemaps.unanswered, "sitemap");
        add(
            "sitemaps_unanswered",
            "no final answer".to_owned(),
            unanswered,
            NOT_READ,
            "max_attempts",
        );
        if is_lifted {
            missing.push(Missing::RefusedEarlier);
        }
        let is_loss = |one: &Missing| !matches!(one, Missing::Interrupted { .. });
        missing.sort_by_key(|one| (is_loss(one), Reverse((one.lost_at_least(), one.lost()))));
        missing
    }

    /// Returns how many pages, links and URLs are lost for whatever reason, with repeats, those of the seen-set as an estimate. What is still
    /// queued does not count; pages without an answer do, though a later run tries them again.
    pub fn lost(&self) -> f64 {
        let lost = |one: &Missing| match one {
            Missing::Dropped { .. } => 0,
            other => other.lost(),
        };
        self.report.saturation.lost + self.missing().iter().map(lost).sum::<u64>() as f64
    }

    /// Returns at least how many pages are lost, those of the seen-set at a confidence of 97 %. Links do not count.
    pub fn lost_at_least(&self) -> u64 {
        self.missing().iter().map(Missing::lost_at_least).sum()
    }

    /// Returns whether pages have no answer, or no whole one, that a later run over the same state directory tries again. A crawl that several
    /// processes share tries none again after its end.
    pub fn has_unanswered(&self) -> bool {
        let is_unanswered = |one: &Missing| {
            matches!(
                one,
                Missing::GivenUp { .. }
                    | Missing::Failed { .. }
                    | Missing::Unreadable { .. }
                    | Missing::RobotsUnreachable { .. }
            )
        };
        self.report.partition.is_none() && self.missing().iter().any(is_unanswered)
    }
}

impl Missing {
    /// Returns the same text with other names for the options: `name` returns that of a field, such as `--max-pages` of `max_pages`.
    pub fn with_names<'a>(&'a self, name: impl Fn(&str) -> String + 'a) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| self.write(f, &name))
    }

    /// Returns the reason as one word in snake case, for counters and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Interrupted { .. } => "interrupted",
            Self::GivenUp { .. } => "given_up",
            Self::Failed { .. } => "no_whole_answer",
            Self::Unreadable { .. } => "unreadable",
            Self::RobotsUnreachable { .. } => "robots_unreachable",
            Self::Dropped { .. } => "seen_set",
            Self::LostLinks => "lost_links",
            Self::LostOutputs { .. } => "lost_outputs",
            Self::RefusedEarlier => "refused_earlier",
            Self::Limited { kind, .. } => kind,
        }
    }

    /// Returns at least how many pages are lost; 0 if none surely is. Refused links and what was cut off do not count: their pages may be
    /// found elsewhere.
    pub fn lost_at_least(&self) -> u64 {
        match self {
            Self::Limited { fate, .. } if *fate != NOT_FETCHED => 0,
            other => other.lost(),
        }
    }

    /// Returns how many pages, links and URLs the reason took away, in its unit, with repeats: a link counts once for each page that has it,
    /// even if its page is found elsewhere. Of the seen-set it is the lower bound.
    pub fn lost(&self) -> u64 {
        match self {
            Self::Interrupted { .. } | Self::LostLinks | Self::LostOutputs { .. } | Self::RefusedEarlier => 0,
            Self::GivenUp { pages, .. }
            | Self::Failed { pages, .. }
            | Self::Unreadable { pages }
            | Self::RobotsUnreachable { pages } => *pages,
            Self::Dropped { at_least, .. } => *at_least,
            Self::Limited { number, .. } => *number,
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, name: &dyn Fn(&str) -> String) -> fmt::Result {
        match self {
            Self::Interrupted { ending, left } => {
                write!(f, "{ending}: {} left", counted(*left, "page"))?;
                match ending {
                    Ending::BudgetSpent => write!(f, " (raise {})", name("max_pages")),
                    Ending::TimeUp => write!(f, " (raise {})", name("max_time")),
                    Ending::Drained | Ending::Stopped | Ending::Error => Ok(()),
                }
            }
            Self::GivenUp { pages, origins, causes } => {
                let (pages, origins) = (counted(*pages, "page"), counted(*origins, "origin"));
                let remedies: BTreeSet<_> = causes.iter().map(|cause| remedy(*cause, name)).collect();
                let remedies: Vec<_> = remedies.into_iter().collect();
                write!(f, "given up: {pages} of {origins}")?;
                match remedies.is_empty() {
                    true => Ok(()),
                    false => write!(f, " ({})", remedies.join("; ")),
                }
            }
            Self::Failed { pages, timed_out } => {
                let (pages, attempts) = (counted(*pages, "page"), name("max_attempts"));
                write!(f, "no whole answer: {pages} (raise {attempts}")?;
                match timed_out {
                    true => write!(f, " or {})", name("timeout")),
                    false => f.write_str(")"),
                }
            }
            Self::Unreadable { pages } => {
                let (pages, number, bytes) = (counted(*pages, "page"), name("max_headers"), name("max_header_bytes"));
                write!(
                    f,
                    "head of the answer malformed or too long: {pages} (if too long, raise {number} or {bytes})"
                )
            }
            Self::RobotsUnreachable { pages } => {
                write!(f, "robots.txt could not be fetched: {}", counted(*pages, "page"))
            }
            Self::Dropped { at_least, enough, is_full, is_kept } => {
                f.write_str("seen-set: ")?;
                match at_least {
                    0 => f.write_str("one or a few URLs may be dropped")?,
                    _ => write!(f, "at least {} dropped", counted(rounded_down(*at_least), "URL"))?,
                }
                if *is_full {
                    f.write_str("; it is full and drops every new URL, so how many is no longer known")?;
                }
                // More room brings none of them back: the seen-set takes them for seen.
                let (capacity, place) = (name("capacity"), where_anew(*is_kept));
                write!(
                    f,
                    ", and what only they link to is missing (set {capacity} {enough} or more{place})"
                )
            }
            Self::LostLinks => f.write_str("links between processes: some were lost with a state directory"),
            Self::LostOutputs { outputs } => {
                let outputs = counted(*outputs, "output");
                write!(f, "{outputs} begun anew: the lines of earlier runs were no longer there (a crawl in a new directory writes all)")
            }
            Self::RefusedEarlier => f.write_str(
                "links were refused in an earlier run, by a limit that was lifted since (a crawl in a new directory finds them)",
            ),
            Self::Limited { kind, why, number, unit, fate, option, lifted, is_kept } => {
                write!(f, "{why}: {} {fate}", counted(*number, unit))?;
                match (*kind, *option) {
                    (_, "") => Ok(()),
                    // A broken one has no remedy.
                    ("sitemaps_broken", option) => write!(f, " (if too long, raise {}{})", name(option), where_anew(*is_kept)),
                    (_, option) if *lifted => write!(f, " ({} of this run or an earlier one)", name(option)),
                    (_, option) => write!(f, " (raise {}{})", name(option), where_anew(*is_kept)),
                }
            }
        }
    }
}

/// Says where a higher limit helps: a crawl with a directory does not offer again what was refused or cut off.
fn where_anew(is_kept: bool) -> &'static str {
    if is_kept { ", in a new directory" } else { "" }
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
