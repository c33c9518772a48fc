//! Which options of a configuration may change between two runs.

use sieve::OnSaturation;

use super::OpenError;
use crate::config::FrontierConfig;

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
    changed("recall", stored.recall.to_string(), wanted.recall.to_string())?;
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

/// Returns the options that differ and hold for links from now on, not for what is queued.
pub(super) fn for_new_links(stored: &FrontierConfig, wanted: &FrontierConfig) -> Vec<&'static str> {
    let (was, is) = (&stored.scope, &wanted.scope);
    let options = [
        ("max_depth", was.max_depth != is.max_depth),
        ("include", was.include != is.include),
        ("exclude", was.exclude != is.exclude),
        ("max_url_bytes", was.max_url_bytes != is.max_url_bytes),
        ("max_segment_repeats", was.max_segment_repeats != is.max_segment_repeats),
        ("max_hops", was.max_hops != is.max_hops),
        (
            "max_queries_per_path",
            stored.max_queries_per_path != wanted.max_queries_per_path,
        ),
        (
            "max_hosts_per_site",
            stored.max_hosts_per_site != wanted.max_hosts_per_site,
        ),
    ];
    let changed = options.into_iter().filter(|(_, is_changed)| *is_changed);
    changed.map(|(option, _)| option).collect()
}
