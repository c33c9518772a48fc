//! Why a link is not crawled.

use std::fmt;

use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::Reach;

/// Why a link is not crawled.
///
/// Serialized as its [`name`](Self::name); displayed as a short reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refusal {
    /// With [`Reach::Host`]: no seed is on this host.
    OtherHost,
    /// With [`Reach::Site`]: no seed is on this registrable domain.
    OtherSite,
    /// With [`Reach::Prefix`]: no seed is in this directory or above it.
    OutsidePrefix,
    /// An exclude pattern matches.
    Excluded,
    /// There are include patterns, and none matches.
    NotIncluded,
    /// More than [`max_depth`](crate::ScopeConfig::max_depth) links from a seed.
    TooDeep,
    /// More than [`max_url_bytes`](crate::ScopeConfig::max_url_bytes).
    UrlTooLong,
    /// One path segment occurs more than [`max_path_repeats`](crate::ScopeConfig::max_path_repeats) times.
    RepeatedSegments,
    /// More than [`max_redirects`](crate::ScopeConfig::max_redirects) redirects in a row.
    TooManyHops,
    /// The page budget of its host is spent.
    HostBudget,
    /// [`max_queued`](crate::LimitConfig::max_queued) URLs are queued.
    QueueFull,
    /// [`max_hosts`](crate::LimitConfig::max_hosts) hosts are remembered.
    TooManyHosts,
    /// The origin was given up: away for too long, or doing nothing but throttle.
    HostDown,
    /// The seen-set is past its capacity, under [`OnSaturation::Refuse`](sieve::OnSaturation::Refuse).
    Saturated,
    /// [`max_sitemaps`](crate::LimitConfig::max_sitemaps) sitemaps were queued.
    TooManySitemaps,
    /// Its path has too many different queries that were found on postponed pages: four times
    /// [`max_queries_per_path`](crate::TrapConfig::max_queries_per_path).
    TooManyQueries,
    /// Nothing of the host was queued before, and its registrable domain has [`max_hosts_per_site`](crate::TrapConfig::max_hosts_per_site)
    /// hosts.
    TooManySubdomains,
    /// The origin is new, and its host has [`MAX_ORIGINS_PER_HOST`](crate::config::MAX_ORIGINS_PER_HOST) origins.
    TooManyPorts,
    /// It is in a path prefix with too many near-duplicates, or was found on one of them.
    NearDuplicates,
    /// Its host was [closed](crate::HostPolicy::closed).
    ByOrder,
}

impl Refusal {
    /// Returns whether the URL is out of reach. Then no link to it was ever queued.
    pub fn is_out_of_reach(self) -> bool {
        matches!(self, Self::OtherHost | Self::OtherSite | Self::OutsidePrefix)
    }

    /// Returns the name in snake case, for counters and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.texts().0
    }

    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::OtherHost => ("other_host", "outside the host"),
            Self::OtherSite => ("other_site", "outside the site"),
            Self::OutsidePrefix => ("outside_prefix", "outside the directory"),
            Self::Excluded => ("excluded", "an exclude pattern matches"),
            Self::NotIncluded => ("not_included", "no include pattern matches"),
            Self::TooDeep => ("too_deep", "too deep"),
            Self::UrlTooLong => ("url_too_long", "URL too long"),
            Self::RepeatedSegments => ("repeated_segments", "repeated path segments"),
            Self::TooManyHops => ("too_many_hops", "too many redirects"),
            Self::HostBudget => ("host_budget", "page budget of the host spent"),
            Self::QueueFull => ("queue_full", "queue full"),
            Self::ByOrder => ("by_order", "dropped by order or policy"),
            Self::TooManyHosts => ("too_many_hosts", "too many hosts"),
            Self::HostDown => ("host_down", "origin given up"),
            Self::Saturated => ("saturated", "seen-set full"),
            Self::TooManySitemaps => ("too_many_sitemaps", "too many sitemaps"),
            Self::TooManyQueries => ("too_many_queries", "too many queries of one path"),
            Self::TooManySubdomains => ("too_many_subdomains", "too many hosts of one site"),
            Self::TooManyPorts => ("too_many_ports", "too many ports of one host"),
            Self::NearDuplicates => ("near_duplicates", "too many near-duplicates"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.texts().1)
    }
}
