//! Which options of a configuration may change between two runs: `next_run` names those that may not. Those that refuse links are in
//! `state/widened.rs`.

use sieve::OnSaturation;

use crate::config::FrontierConfig;
use crate::error::OpenError;
use crate::state::{OF_LINKS, is_widened};

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
    let may_grow = grows(stored) && grows(&wanted) && wanted.seen_set.capacity > stored.seen_set.capacity;
    if !may_grow {
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
    same("hash", |config| config.seen_set.hash.name().to_owned())?;
    same("scope.reach", |config| {
        format!("{:?}", config.scope.reach).to_lowercase()
    })?;
    same("partition", |config| match config.partition {
        Some(partition) => partition.to_string(),
        None => "false".to_owned(),
    })?;
    same("per_address", |config| config.politeness.per_address.to_string())?;
    // With the secret of the first run.
    wanted.seen_set.hash = stored.seen_set.hash;
    Ok(wanted)
}

/// Those that have changed and hold for new links only.
pub(super) fn for_new_links(stored: &FrontierConfig, wanted: &FrontierConfig) -> Vec<&'static str> {
    let is_changed = |(_, why): &(_, _)| is_widened(*why, stored, wanted) || is_widened(*why, wanted, stored);
    let changed = OF_LINKS.into_iter().filter(is_changed);
    changed.map(|(option, _)| option).collect()
}
