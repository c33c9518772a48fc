//! Why a crawl is incomplete.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

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
        let (report, saturation, outputs) = (&self.report, &self.report.saturation, self.lost_outputs);
        let kinds = [FailureKind::Malformed, FailureKind::HeadTooLarge];
        let unreadable = kinds.iter().filter_map(|kind| self.failed.get(kind)).sum();
        let unanswered = report.pages.gave_up.saturating_sub(self.gave_up_answered + unreadable);
        let robots = count_of(&report.not_fetched, NotFetched::RobotsUnreachable);
        let found = [
            (self.ending != Ending::Drained).then(|| Missing::Interrupted {
                ending: self.ending,
                left: self.pages_left(),
            }),
            (self.has_lost_links || report.exchange.lost_batches > 0).then_some(Missing::LostLinks),
            (outputs > 0).then_some(Missing::LostOutputs { outputs }),
            (report.pages.lost_with_host > 0).then(|| Missing::GivenUp {
                pages: report.pages.lost_with_host,
                origins: report.origins_given_up,
                causes: self.given_up_causes.clone(),
            }),
            (unanswered > 0).then(|| Missing::Failed {
                pages: unanswered,
                timed_out: self.failed.contains_key(&FailureKind::Timeout)
                    || self.bodies_truncated.contains_key(&TruncationReason::Time),
            }),
            (unreadable > 0).then_some(Missing::Unreadable { pages: unreadable }),
            (robots > 0).then_some(Missing::RobotsUnreachable { pages: robots }),
            saturation.may_have_lost().then(|| Missing::Dropped {
                at_least: saturation.lost_at_least(),
                enough: rounded_up(saturation.sufficient_capacity() as u64),
                is_full: saturation.is_full(),
                is_kept: report.memory.is_some(),
            }),
        ];
        let mut missing: Vec<_> = found.into_iter().flatten().collect();
        missing.extend(self.limited());
        let is_loss = |one: &Missing| !matches!(one, Missing::Interrupted { .. });
        missing.sort_by_key(|one| (is_loss(one), Reverse((one.lost_at_least(), one.lost()))));
        missing
    }

    /// What limits took away, in this run and in earlier ones.
    fn limited(&self) -> Vec<Missing> {
        let (report, sitemaps) = (&self.report, &self.sitemaps);
        let mut missing = Vec::new();
        let mut add = |kind, why: &dyn fmt::Display, number, unit, fate, option| {
            let limited = Missing::Limited {
                kind,
                why: why.to_string(),
                number,
                unit,
                fate,
                option,
                lifted: report.refused_earlier && ![CUT_OFF, NOT_READ].contains(&fate),
                is_kept: report.memory.is_some(),
            };
            missing.extend((number > 0).then_some(limited));
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
        for (why, kind, option) in DROPPED {
            add(
                kind,
                &why,
                count_of(&report.not_fetched, why),
                "page",
                NOT_FETCHED,
                option,
            );
        }
        let cut = |why| count_of(&self.bodies_truncated, why);
        let damaged = cut(TruncationReason::Coding) + cut(TruncationReason::Part);
        #[rustfmt::skip]
        let cuts = [
            ("links_dropped", "too many links on a page", self.links_dropped, "link", CUT_OFF, "max_links_per_page"),
            ("bodies_truncated", "body too long", cut(TruncationReason::Size), "page", CUT_OFF, "max_body_bytes"),
            ("bodies_damaged", "body damaged, or sent in part", damaged, "page", CUT_OFF, ""),
            ("sitemap_urls_dropped", "too many URLs in a sitemap", sitemaps.urls_dropped, "URL", CUT_OFF, "max_sitemap_urls"),
            ("sitemaps_broken", "sitemap too long or broken", sitemaps.broken, "sitemap", CUT_OFF, "max_sitemap_bytes"),
            ("selected_cut", "selected fields too long", self.selected_cut, "value", CUT_OFF, "select_limits"),
            ("selected_incomplete", "selected fields too costly", self.selected_incomplete, "page", CUT_OFF, ""),
            ("sitemaps_unanswered", "no final answer", sitemaps.unanswered, "sitemap", NOT_READ, "max_attempts"),
        ];
        for (kind, why, number, unit, fate, option) in cuts {
            add(kind, &why, number, unit, fate, option);
        }
        missing.extend(is_lifted.then_some(Missing::RefusedEarlier));
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
        f.write_str(&self.what())?;
        match self.remedy(name) {
            Some(remedy) => write!(f, " ({remedy})"),
            None => Ok(()),
        }
    }

    fn what(&self) -> String {
        let of_pages = |what: &str, pages: &u64| format!("{what}: {}", counted(*pages, "page"));
        match self {
            Self::Interrupted { ending, left } => of_pages(&ending.to_string(), left) + " left",
            Self::GivenUp { pages, origins, .. } => {
                of_pages("given up", pages) + &format!(" of {}", counted(*origins, "origin"))
            }
            Self::Failed { pages, .. } => of_pages("no whole answer", pages),
            Self::Unreadable { pages } => of_pages("head of the answer malformed or too long", pages),
            Self::RobotsUnreachable { pages } => of_pages("robots.txt could not be fetched", pages),
            Self::Dropped { at_least, is_full, .. } => {
                let dropped = match at_least {
                    0 => "one or a few URLs may be dropped".to_owned(),
                    _ => format!("at least {} dropped", counted(rounded_down(*at_least), "URL")),
                };
                let full = match is_full {
                    true => "; it is full and drops every new URL, so how many is no longer known",
                    false => "",
                };
                format!("seen-set: {dropped}{full}, and what only they link to is missing")
            }
            Self::LostLinks => "links between processes: some were lost with a state directory".to_owned(),
            Self::LostOutputs { outputs } => {
                let outputs = counted(*outputs, "output");
                format!("{outputs} begun anew: the lines of earlier runs were no longer there")
            }
            Self::RefusedEarlier => "links were refused in an earlier run, by a limit that was lifted since".to_owned(),
            Self::Limited {
                why,
                number,
                unit,
                fate,
                ..
            } => format!("{why}: {} {fate}", counted(*number, unit)),
        }
    }

    fn remedy(&self, name: &dyn Fn(&str) -> String) -> Option<String> {
        Some(match self {
            Self::Interrupted { ending, .. } => match ending {
                Ending::BudgetSpent => format!("raise {}", name("max_pages")),
                Ending::TimeUp => format!("raise {}", name("max_time")),
                Ending::Drained | Ending::Stopped | Ending::Error => return None,
            },
            Self::GivenUp { causes, .. } if !causes.is_empty() => {
                let remedies: BTreeSet<_> = causes.iter().map(|cause| remedy(*cause, name)).collect();
                remedies.into_iter().collect::<Vec<_>>().join("; ")
            }
            Self::Failed { timed_out: true, .. } => format!("raise {} or {}", name("max_attempts"), name("timeout")),
            Self::Failed { .. } => format!("raise {}", name("max_attempts")),
            Self::Unreadable { .. } => {
                let (number, bytes) = (name("max_headers"), name("max_header_bytes"));
                format!("if too long, raise {number} or {bytes}")
            }
            // More room brings none of them back: the seen-set takes them for seen.
            Self::Dropped { enough, is_kept, .. } => {
                format!("set {} {enough} or more{}", name("capacity"), where_anew(*is_kept))
            }
            Self::LostOutputs { .. } => "a crawl in a new directory writes all".to_owned(),
            Self::RefusedEarlier => "a crawl in a new directory finds them".to_owned(),
            Self::Limited {
                kind,
                option,
                lifted,
                is_kept,
                ..
            } if !option.is_empty() => {
                match *kind {
                    // A broken one has no remedy.
                    "sitemaps_broken" => format!("if too long, raise {}{}", name(option), where_anew(*is_kept)),
                    _ if *lifted => format!("{} of this run or an earlier one", name(option)),
                    _ => format!("raise {}{}", name(option), where_anew(*is_kept)),
                }
            }
            _ => return None,
        })
    }
}

/// Says where a higher limit helps: a crawl with a directory does not offer again what was refused or cut off.
fn where_anew(is_kept: bool) -> &'static str {
    if is_kept { ", in a new directory" } else { "" }
}

fn count_of<K: Ord>(counts: &BTreeMap<K, u64>, of: K) -> u64 {
    counts.get(&of).copied().unwrap_or_default()
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
