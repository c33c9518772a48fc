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
            Err(OpenError::Changed { option, was, wanted })
        }
    };
    let grows = |config: &FrontierConfig| config.on_saturation == OnSaturation::Grow;
    changed("exact", stored.exact.to_string(), wanted.exact.to_string())?;
    changed("recall", stored.recall.to_string(), wanted.recall.to_string())?;
    let rate = |config: &FrontierConfig| config.false_positive_rate.to_string();
    changed("capacity", stored.capacity.to_string(), wanted.capacity.to_string())?;
    changed("false_positive_rate", rate(stored), rate(&wanted))?;
    changed(
        "on_saturation grow",
        grows(stored).to_string(),
        grows(&wanted).to_string(),
    )?;
    let reach = |config: &FrontierConfig| config.scope.reach.to_string();
    changed("scope.reach", reach(stored), reach(&wanted))?;
    let per_address = |config: &FrontierConfig| config.per_address.to_string();
    changed("per_address", per_address(stored), per_address(&wanted))?;
    Ok(FrontierConfig {
        hashing: stored.hashing,
        ..wanted
    })
}
