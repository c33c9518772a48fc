//! Which options of a configuration may change between two runs.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

use sieve::OnSaturation;

use crate::config::FrontierConfig;
use crate::error::OpenError;
use crate::scope::{MOST_REDIRECTS, Refusal};
use crate::state::State;

pub(super) fn next_run(stored: &FrontierConfig, mut wanted: FrontierConfig) -> Result<FrontierConfig, OpenError> {
    let same = |option: &'static str, of: fn(&FrontierConfig) -> String| {
        let (was, wanted) = (of(stored), of(&wanted));
        match was == wanted {
            true => Ok(()),
            false => Err(OpenError::Changed {
                option: option.into(),
                was,
                wanted,
            }),
        }
    };
    let grows = |config: &FrontierConfig| config.seen_set.on_saturation == OnSaturation::Grow;
    same("exact", |config| config.seen_set.exact.to_string())?;
    let is_widened = grows(stored) && grows(&wanted) && wanted.seen_set.capacity > stored.seen_set.capacity;
    if !is_widened {
        same("capacity", |config| config.seen_set.capacity.to_string())?;
    }
    same("false_positive_rate", |config| {
        config.seen_set.false_positive_rate.to_string()
    })?;
    if grows(stored) != grows(&wanted) {
        same("on_saturation", |config| {
            format!("{:?}", config.seen_set.on_saturation).to_lowercase()
        })?;
    }
    // Only the secret is always that of the first run.
    same("hash", |config| config.seen_set.hash.name().to_owned())?;
    same("scope.reach", |config| config.scope.reach.to_string())?;
    same("partition", |config| match config.partition {
        Some(partition) => partition.to_string(),
        None => "false".to_owned(),
    })?;
    same("per_address", |config| config.politeness.per_address.to_string())?;
    wanted.seen_set.hash = stored.seen_set.hash;
    Ok(wanted)
}

/// Compares what two limits accept, which may be missing: less, if the second is wider and may accept what was refused.
fn optional<T: Copy + Into<u64>>(was: Option<T>, is: Option<T>) -> Ordering {
    let limit = |limit: Option<T>| limit.map_or(u64::MAX, Into::into);
    limit(was).cmp(&limit(is))
}

/// The same for limits that are not zero.
fn counts(was: Option<NonZeroU32>, is: Option<NonZeroU32>) -> Ordering {
    optional(was.map(NonZeroU32::get), is.map(NonZeroU32::get))
}

/// The same for patterns, one of which a URL has to match, if there are any.
fn include(was: &[String], is: &[String]) -> Ordering {
    let (was, is) = (BTreeSet::from_iter(was), BTreeSet::from_iter(is));
    match () {
        () if was == is => Ordering::Equal,
        () if was.is_empty() || !is.is_empty() && is.is_subset(&was) => Ordering::Greater,
        () => Ordering::Less,
    }
}

/// The same for patterns, none of which a URL may match.
fn exclude(was: &[String], is: &[String]) -> Ordering {
    let (was, is) = (BTreeSet::from_iter(was), BTreeSet::from_iter(is));
    match () {
        () if was == is => Ordering::Equal,
        () if was.is_subset(&is) => Ordering::Greater,
        () => Ordering::Less,
    }
}

fn limits_of_links(stored: &FrontierConfig, wanted: &FrontierConfig) -> [(&'static str, Refusal, Ordering); 8] {
    let (was, is) = (&stored.scope, &wanted.scope);
    [
        ("max_depth", Refusal::TooDeep, optional(was.max_depth, is.max_depth)),
        ("include", Refusal::NotIncluded, include(&was.include, &is.include)),
        ("exclude", Refusal::Excluded, exclude(&was.exclude, &is.exclude)),
        (
            "max_url_bytes",
            Refusal::UrlTooLong,
            was.max_url_bytes.cmp(&is.max_url_bytes),
        ),
        (
            "max_path_repeats",
            Refusal::RepeatedSegments,
            was.max_path_repeats.cmp(&is.max_path_repeats),
        ),
        (
            "max_redirects",
            Refusal::TooManyHops,
            was.max_redirects
                .min(MOST_REDIRECTS)
                .cmp(&is.max_redirects.min(MOST_REDIRECTS)),
        ),
        (
            "max_queries_per_path",
            Refusal::TooManyQueries,
            counts(stored.traps.max_queries_per_path, wanted.traps.max_queries_per_path),
        ),
        (
            "max_hosts_per_site",
            Refusal::TooManySubdomains,
            counts(stored.traps.max_hosts_per_site, wanted.traps.max_hosts_per_site),
        ),
    ]
}

pub(super) fn for_new_links(stored: &FrontierConfig, wanted: &FrontierConfig) -> Vec<&'static str> {
    let limits = limits_of_links(stored, wanted).into_iter();
    let changed = limits.filter(|(_, _, change)| change.is_ne());
    changed.map(|(option, _, _)| option).collect()
}

/// Links that it refused are not offered again.
fn widened(stored: &FrontierConfig, wanted: &FrontierConfig) -> impl Iterator<Item = Refusal> {
    let others = [
        (
            Refusal::HostBudget,
            optional(stored.limits.max_pages_per_host, wanted.limits.max_pages_per_host),
        ),
        (
            Refusal::QueueFull,
            stored.limits.max_queued.cmp(&wanted.limits.max_queued),
        ),
        (
            Refusal::TooManyHosts,
            stored.limits.max_hosts.cmp(&wanted.limits.max_hosts),
        ),
        (
            Refusal::TooManySitemaps,
            stored.limits.max_sitemaps.cmp(&wanted.limits.max_sitemaps),
        ),
        (
            Refusal::NearDuplicates,
            counts(
                stored.traps.max_near_duplicates_in_all,
                wanted.traps.max_near_duplicates_in_all,
            ),
        ),
    ];
    let of_links = limits_of_links(stored, wanted).map(|(_, why, change)| (why, change));
    let all = of_links.into_iter().chain(others);
    all.filter(|(_, change)| change.is_lt()).map(|(why, _)| why)
}

/// Notes whether links were refused that the wanted configuration might accept. When its limits are as narrow again, nothing is missing.
pub(super) fn note_widened_limits(
    state: &mut State,
    stored: &FrontierConfig,
    wanted: &FrontierConfig,
) -> Result<(), OpenError> {
    let damaged = |error| OpenError::damaged(format_args!("a configuration in it cannot be read: {error}"));
    let mut narrower: Vec<FrontierConfig> = match state.refused_under().take() {
        Some(earlier) => serde_json::from_str(&earlier).map_err(damaged)?,
        None => Vec::new(),
    };
    if !narrower.contains(stored) {
        narrower.push(stored.clone());
    }
    narrower.retain(|config| widened(config, wanted).any(|why| state.has_refused(why)));
    if !narrower.is_empty() {
        *state.refused_under() = Some(serde_json::to_string(&narrower).map_err(damaged)?);
    }
    Ok(())
}
