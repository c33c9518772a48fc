//! Which options of a configuration may change between two runs.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

use sieve::OnSaturation;

use crate::config::FrontierConfig;
use crate::error::OpenError;
use crate::scope::{MOST_REDIRECTS, Refusal};
use crate::state::State;

/// The wanted configuration, with what is always that of the first run.
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

/// The options that say of a link alone, or of its site, whether it is accepted, with why they refuse one. A change of them holds for new
/// links only, which the caller is told.
const OF_LINKS: [(&str, Refusal); 8] = [
    ("max_depth", Refusal::TooDeep),
    ("include", Refusal::NotIncluded),
    ("exclude", Refusal::Excluded),
    ("max_url_bytes", Refusal::UrlTooLong),
    ("max_path_repeats", Refusal::RepeatedSegments),
    ("max_redirects", Refusal::TooManyHops),
    ("max_queries_per_path", Refusal::TooManyQueries),
    ("max_hosts_per_site", Refusal::TooManySubdomains),
];

/// Why a link is refused for lack of room. These limits hold for what is queued, too.
const OF_OTHERS: [Refusal; 5] = [
    Refusal::HostBudget,
    Refusal::QueueFull,
    Refusal::TooManyHosts,
    Refusal::TooManySitemaps,
    Refusal::NearDuplicates,
];

/// The limit beyond which a link is refused so.
fn limit(why: Refusal, config: &FrontierConfig) -> u64 {
    let (scope, limits, traps) = (&config.scope, &config.limits, &config.traps);
    let count = |limit: Option<NonZeroU32>| limit.map_or(u64::MAX, |limit| limit.get().into());
    match why {
        Refusal::TooDeep => scope.max_depth.map_or(u64::MAX, u64::from),
        Refusal::UrlTooLong => scope.max_url_bytes as u64,
        Refusal::RepeatedSegments => scope.max_path_repeats as u64,
        Refusal::TooManyHops => scope.max_redirects.min(MOST_REDIRECTS).into(),
        Refusal::TooManyQueries => count(traps.max_queries_per_path),
        Refusal::TooManySubdomains => count(traps.max_hosts_per_site),
        Refusal::NearDuplicates => count(traps.max_near_duplicates_in_all),
        Refusal::HostBudget => limits.max_pages_per_host.unwrap_or(u64::MAX),
        Refusal::QueueFull => limits.max_queued,
        Refusal::TooManyHosts => limits.max_hosts as u64,
        Refusal::TooManySitemaps => limits.max_sitemaps as u64,
        _ => u64::MAX,
    }
}

/// Compares what two configurations accept: less, if the second may accept what the first refused so.
fn change(why: Refusal, stored: &FrontierConfig, wanted: &FrontierConfig) -> Ordering {
    let patterns =
        |of: fn(&FrontierConfig) -> &[String]| [stored, wanted].map(|config| BTreeSet::from_iter(of(config)));
    match why {
        Refusal::NotIncluded => {
            let [was, is] = patterns(|config| &config.scope.include);
            // One has to match, if there are any.
            let is_narrower = was.is_empty() || !is.is_empty() && is.is_subset(&was);
            of_patterns(was == is, is_narrower)
        }
        Refusal::Excluded => {
            let [was, is] = patterns(|config| &config.scope.exclude);
            of_patterns(was == is, was.is_subset(&is))
        }
        _ => limit(why, stored).cmp(&limit(why, wanted)),
    }
}

fn of_patterns(are_equal: bool, is_narrower: bool) -> Ordering {
    match (are_equal, is_narrower) {
        (true, _) => Ordering::Equal,
        (false, true) => Ordering::Greater,
        (false, false) => Ordering::Less,
    }
}

/// Those that have changed and hold for new links only.
pub(super) fn for_new_links(stored: &FrontierConfig, wanted: &FrontierConfig) -> Vec<&'static str> {
    let is_changed = |(_, why): &(_, Refusal)| change(*why, stored, wanted).is_ne();
    let changed = OF_LINKS.into_iter().filter(is_changed);
    changed.map(|(option, _)| option).collect()
}

/// Why the stored configuration may have refused links that the wanted one accepts. They are not offered again.
fn widened(stored: &FrontierConfig, wanted: &FrontierConfig) -> impl Iterator<Item = Refusal> {
    let all = OF_LINKS.into_iter().map(|(_, why)| why).chain(OF_OTHERS);
    all.filter(|why| change(*why, stored, wanted).is_lt())
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
