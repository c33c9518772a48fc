//! Which options of a configuration may change between two runs.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

use sieve::OnSaturation;

use super::OpenError;
use super::error::StateError;
use crate::config::FrontierConfig;
use crate::scope::{MOST_HOPS, Refusal};
use crate::state::State;

/// Returns the configuration of the next run: the wanted one, with the secret of the first run.
pub(super) fn next_run(stored: &FrontierConfig, wanted: FrontierConfig) -> Result<FrontierConfig, OpenError> {
    let changed = |option: &'static str, was: String, wanted: String| {
        if was == wanted {
            Ok(())
        } else {
            Err(OpenError::Changed {
                option: option.into(),
                was,
                wanted,
            })
        }
    };
    let grows = |config: &FrontierConfig| config.on_saturation == OnSaturation::Grow;
    changed("exact", stored.exact.to_string(), wanted.exact.to_string())?;
    let rate = |config: &FrontierConfig| config.false_positive_rate.to_string();
    changed("capacity", stored.capacity.to_string(), wanted.capacity.to_string())?;
    changed("false_positive_rate", rate(stored), rate(&wanted))?;
    if grows(stored) != grows(&wanted) {
        let name = |config: &FrontierConfig| format!("{:?}", config.on_saturation).to_lowercase();
        changed("on_saturation", name(stored), name(&wanted))?;
    }
    // Only the secret is always that of the first run.
    let hash = |config: &FrontierConfig| config.hashing.name().to_owned();
    changed("hashing", hash(stored), hash(&wanted))?;
    let reach = |config: &FrontierConfig| config.scope.reach.to_string();
    changed("scope.reach", reach(stored), reach(&wanted))?;
    let per_address = |config: &FrontierConfig| config.per_address.to_string();
    changed("per_address", per_address(stored), per_address(&wanted))?;
    Ok(FrontierConfig {
        hashing: stored.hashing,
        ..wanted
    })
}

/// How a limit on links differs from that of the last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    /// It refuses more than before.
    Narrower,
    /// It may accept what was refused.
    Wider,
}

impl Change {
    /// Of a limit that accepts more the greater it is.
    fn of(was: u64, is: u64) -> Self {
        match was.cmp(&is) {
            Ordering::Equal => Self::None,
            Ordering::Less => Self::Wider,
            Ordering::Greater => Self::Narrower,
        }
    }

    /// Of a limit that may be missing.
    fn of_optional<T: Copy + Into<u64>>(was: Option<T>, is: Option<T>) -> Self {
        let limit = |limit: Option<T>| limit.map_or(u64::MAX, Into::into);
        Self::of(limit(was), limit(is))
    }

    /// Of a limit that may be missing and is not zero.
    fn of_counts(was: Option<NonZeroU32>, is: Option<NonZeroU32>) -> Self {
        Self::of_optional(was.map(NonZeroU32::get), is.map(NonZeroU32::get))
    }

    /// Of patterns, one of which a URL has to match, if there are any.
    fn of_include(was: &[String], is: &[String]) -> Self {
        let (was, is) = (BTreeSet::from_iter(was), BTreeSet::from_iter(is));
        match () {
            () if was == is => Self::None,
            () if was.is_empty() || !is.is_empty() && is.is_subset(&was) => Self::Narrower,
            () => Self::Wider,
        }
    }

    /// Of patterns, none of which a URL may match.
    fn of_exclude(was: &[String], is: &[String]) -> Self {
        let (was, is) = (BTreeSet::from_iter(was), BTreeSet::from_iter(is));
        match () {
            () if was == is => Self::None,
            () if was.is_subset(&is) => Self::Narrower,
            () => Self::Wider,
        }
    }
}

/// Returns the limits that hold for links when they are found, and what they refuse.
fn limits_of_links(stored: &FrontierConfig, wanted: &FrontierConfig) -> [(&'static str, Refusal, Change); 8] {
    let (was, is) = (&stored.scope, &wanted.scope);
    let of_sizes = |was: usize, is: usize| Change::of(was as u64, is as u64);
    [
        (
            "max_depth",
            Refusal::TooDeep,
            Change::of_optional(was.max_depth, is.max_depth),
        ),
        (
            "include",
            Refusal::NotIncluded,
            Change::of_include(&was.include, &is.include),
        ),
        (
            "exclude",
            Refusal::Excluded,
            Change::of_exclude(&was.exclude, &is.exclude),
        ),
        (
            "max_url_bytes",
            Refusal::UrlTooLong,
            of_sizes(was.max_url_bytes, is.max_url_bytes),
        ),
        (
            "max_segment_repeats",
            Refusal::RepeatedSegments,
            of_sizes(was.max_segment_repeats, is.max_segment_repeats),
        ),
        (
            "max_hops",
            Refusal::TooManyHops,
            Change::of(was.max_hops.min(MOST_HOPS).into(), is.max_hops.min(MOST_HOPS).into()),
        ),
        (
            "max_queries_per_path",
            Refusal::TooManyQueries,
            Change::of_counts(stored.max_queries_per_path, wanted.max_queries_per_path),
        ),
        (
            "max_hosts_per_site",
            Refusal::TooManySubdomains,
            Change::of_counts(stored.max_hosts_per_site, wanted.max_hosts_per_site),
        ),
    ]
}

/// Returns the options that differ and hold for links from now on, not for what is queued.
pub(super) fn for_new_links(stored: &FrontierConfig, wanted: &FrontierConfig) -> Vec<&'static str> {
    let limits = limits_of_links(stored, wanted).into_iter();
    let changed = limits.filter(|(_, _, change)| *change != Change::None);
    changed.map(|(option, _, _)| option).collect()
}

/// Returns the refusals of the last run that this one might not make: links that it refused are not offered again.
fn widened(stored: &FrontierConfig, wanted: &FrontierConfig) -> impl Iterator<Item = Refusal> {
    let others = [
        (
            Refusal::HostBudget,
            Change::of_optional(stored.max_pages_per_host, wanted.max_pages_per_host),
        ),
        (Refusal::QueueFull, Change::of(stored.max_queued, wanted.max_queued)),
        (
            Refusal::TooManyHosts,
            Change::of(stored.max_hosts as u64, wanted.max_hosts as u64),
        ),
        (
            Refusal::TooManySitemaps,
            Change::of(stored.max_sitemaps as u64, wanted.max_sitemaps as u64),
        ),
        (
            Refusal::NearDuplicates,
            Change::of_counts(stored.max_near_duplicates_in_all, wanted.max_near_duplicates_in_all),
        ),
    ];
    let of_links = limits_of_links(stored, wanted).map(|(_, why, change)| (why, change));
    let all = of_links.into_iter().chain(others);
    all.filter(|(_, change)| *change == Change::Wider).map(|(why, _)| why)
}

/// Notes whether links were refused that the wanted configuration might accept. When its limits are as narrow again, nothing is missing.
pub(super) fn note_widened_limits(
    state: &mut State,
    stored: &FrontierConfig,
    wanted: &FrontierConfig,
) -> Result<(), StateError> {
    let earlier = state.refused_under().take();
    let earlier: Option<Vec<FrontierConfig>> = earlier.map(|configs| serde_json::from_str(&configs)).transpose()?;
    let mut narrower = earlier.unwrap_or_default();
    if !narrower.contains(stored) {
        narrower.push(stored.clone());
    }
    narrower.retain(|config| widened(config, wanted).any(|why| state.has_refused(why)));
    let narrower = (!narrower.is_empty()).then_some(narrower);
    *state.refused_under() = narrower.as_ref().map(serde_json::to_string).transpose()?;
    Ok(())
}
