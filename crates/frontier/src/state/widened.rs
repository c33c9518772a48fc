//! Limits that refuse links, and whether a later configuration, or an order, is wider: what was refused then is not offered again.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use sieve::OnSaturation;

use super::State;
use crate::config::FrontierConfig;
use crate::error::OpenError;
use crate::lease::NotFetched;
use crate::scope::{MOST_REDIRECTS, Refusal};

/// The options that say of a link alone, or of its site, whether it is accepted, with why they refuse one. A change of them holds for new
/// links only, which the caller is told. Other limits hold for what is queued, too.
pub(crate) const OF_LINKS: [(&str, Refusal); 8] = [
    ("max_depth", Refusal::TooDeep),
    ("include", Refusal::NotIncluded),
    ("exclude", Refusal::Excluded),
    ("max_url_bytes", Refusal::UrlTooLong),
    ("max_path_repeats", Refusal::RepeatedSegments),
    ("max_redirects", Refusal::TooManyHops),
    ("max_queries_per_path", Refusal::TooManyQueries),
    ("max_hosts_per_site", Refusal::TooManySubdomains),
];

/// Whether the second configuration may accept what the first one refuses so.
pub(crate) fn is_widened(why: Refusal, stored: &FrontierConfig, wanted: &FrontierConfig) -> bool {
    let patterns =
        |of: fn(&FrontierConfig) -> &[String]| [stored, wanted].map(|config| BTreeSet::from_iter(of(config)));
    let grows = |limit: fn(&FrontierConfig) -> u64| limit(stored) < limit(wanted);
    let mut patterns_of_hosts = stored.hosts.keys().chain(wanted.hosts.keys());
    match why {
        Refusal::NotIncluded => {
            let [was, is] = patterns(|config| &config.scope.include);
            // One has to match, if there are any.
            !was.is_empty() && (is.is_empty() || !is.is_subset(&was))
        }
        Refusal::Excluded => {
            let [was, is] = patterns(|config| &config.scope.exclude);
            !was.is_subset(&is)
        }
        Refusal::TooDeep => grows(|config| config.scope.max_depth.map_or(u64::MAX, u64::from)),
        Refusal::UrlTooLong => grows(|config| config.scope.max_url_bytes as u64),
        Refusal::RepeatedSegments => grows(|config| config.scope.max_path_repeats as u64),
        Refusal::TooManyHops => grows(|config| config.scope.max_redirects.min(MOST_REDIRECTS).into()),
        Refusal::TooManyQueries => grows(|config| or_greatest(config.traps.max_queries_per_path)),
        Refusal::TooManySubdomains => grows(|config| or_greatest(config.traps.max_hosts_per_site)),
        Refusal::NearDuplicates => grows(|config| or_greatest(config.traps.max_near_duplicates_in_all)),
        Refusal::HostBudget => {
            let general = |config: &FrontierConfig| config.limits.max_pages_per_host;
            grows(|config| config.limits.max_pages_per_host.unwrap_or(u64::MAX))
                || patterns_of_hosts.any(|pattern| {
                    let most = |config: &FrontierConfig| config.hosts.get(pattern).and_then(|policy| policy.max_pages);
                    let [was, is] = [stored, wanted].map(|config| most(config).or(general(config)).unwrap_or(u64::MAX));
                    was < is
                })
        }
        Refusal::QueueFull => grows(|config| config.limits.max_queued),
        Refusal::TooManyHosts => grows(|config| config.limits.max_hosts as u64),
        Refusal::TooManySitemaps => grows(|config| config.limits.max_sitemaps as u64),
        Refusal::Saturated => {
            [stored, wanted].map(|config| config.seen_set.on_saturation == OnSaturation::Refuse) == [true, false]
        }
        // The option that decides it may not change.
        Refusal::OtherHost | Refusal::OtherSite | Refusal::OutsidePrefix => false,
        Refusal::ByOrder => patterns_of_hosts.any(|pattern| {
            let [was, is] = [stored, wanted].map(|config| config.hosts.get(pattern).and_then(|policy| policy.closed));
            is != was && (was == Some(true) || is == Some(false))
        }),
        // No option is a limit of it.
        Refusal::HostDown | Refusal::TooManyPorts => false,
    }
}

/// A limit, or the greatest number if there is none.
fn or_greatest(limit: Option<NonZeroU32>) -> u64 {
    limit.map_or(u64::MAX, |limit| limit.get().into())
}

impl State {
    /// Notes whether links were refused that the wanted configuration might accept: they are not offered again. When its limits are as narrow
    /// again, nothing is missing.
    pub(crate) fn note_widened_limits(
        &mut self,
        stored: &FrontierConfig,
        wanted: &FrontierConfig,
    ) -> Result<(), OpenError> {
        let damaged = |error| OpenError::damaged(format_args!("a configuration in it cannot be read: {error}"));
        let mut narrower: Vec<FrontierConfig> = match self.tables.refused_under.take() {
            Some(earlier) => serde_json::from_str(&earlier).map_err(damaged)?,
            None => Vec::new(),
        };
        if !narrower.contains(stored) {
            narrower.push(stored.clone());
        }
        // Those that are as wide have refused nothing that is missing.
        narrower.retain(|config| self.refusals().any(|why| is_widened(why, config, wanted)));
        if !narrower.is_empty() {
            self.tables.refused_under = Some(serde_json::to_string(&narrower).map_err(damaged)?);
        }
        Ok(())
    }

    /// Why links were refused, and pages dropped by the same limits.
    fn refusals(&self) -> impl Iterator<Item = Refusal> {
        let counts = [&self.tables.links, &self.tables.sitemaps.counts];
        let of_pages = self.tables.not_fetched.keys().filter_map(|why| match why {
            NotFetched::HostBudget => Some(Refusal::HostBudget),
            NotFetched::NearDuplicates => Some(Refusal::NearDuplicates),
            _ => None,
        });
        counts
            .into_iter()
            .flat_map(|counts| counts.refused.keys().copied())
            .chain(of_pages)
    }
}
