//! Why a link is not crawled.

use std::fmt;

use serde::{Serialize, Serializer};

#[cfg(doc)]
use super::Reach;

/// Why a link is not crawled.
///
/// Serialized, and named in counts, by its [`name`](Self::name); shown as a short reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The host is none of the seeds', under [`Reach::Host`].
    OtherHost,
    /// The registrable domain is none of the seeds', under [`Reach::Site`].
    OtherSite,
    /// The URL is in no directory of a seed, under [`Reach::Prefix`].
    OutsidePrefix,
    /// An exclude pattern matches.
    Excluded,
    /// There are include patterns, and none matches.
    NotIncluded,
    /// Too many links away from the nearest seed.
    TooDeep,
    /// The URL has too many bytes.
    UrlTooLong,
    /// One path segment occurs too often.
    RepeatedSegments,
    /// Too many redirects in a row.
    TooManyHops,
    /// The host has had as many pages as one host may have.
    HostBudget,
    /// There is no room for another URL.
    QueueFull,
    /// There is no room for another host.
    TooManyHosts,
    /// The host was given up, by this scheme and on this port.
    HostDead,
    /// The filter would too often take a new URL for a seen one.
    Saturated,
    /// As many sitemaps were asked for as may be.
    TooManySitemaps,
    /// Its path has had as many different queries as one path may have.
    TooManyQueries,
    /// Its host is new, and its registrable domain has had as many hosts as one may have.
    TooManySubdomains,
    /// Its host has had as many ports and schemes as one may have.
    TooManyPorts,
    /// It is one of too many pages that resemble one another, or was found on one.
    NearDuplicates,
}

impl Refusal {
    /// Says whether the place of the URL alone decides: then no link to it was ever taken.
    pub(crate) fn is_out_of_reach(self) -> bool {
        matches!(self, Self::OtherHost | Self::OtherSite | Self::OutsidePrefix)
    }

    /// All refusals, in the order of their declaration.
    // The length is taken from the last one, so that a refusal missing here does not compile.
    pub const ALL: [Self; Self::NearDuplicates as usize + 1] = [
        Self::OtherHost,
        Self::OtherSite,
        Self::OutsidePrefix,
        Self::Excluded,
        Self::NotIncluded,
        Self::TooDeep,
        Self::UrlTooLong,
        Self::RepeatedSegments,
        Self::TooManyHops,
        Self::HostBudget,
        Self::QueueFull,
        Self::TooManyHosts,
        Self::HostDead,
        Self::Saturated,
        Self::TooManySitemaps,
        Self::TooManyQueries,
        Self::TooManySubdomains,
        Self::TooManyPorts,
        Self::NearDuplicates,
    ];

    /// Returns the name for machines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OtherHost => "other_host",
            Self::OtherSite => "other_site",
            Self::OutsidePrefix => "outside_prefix",
            Self::Excluded => "excluded",
            Self::NotIncluded => "not_included",
            Self::TooDeep => "too_deep",
            Self::UrlTooLong => "url_too_long",
            Self::RepeatedSegments => "repeated_segments",
            Self::TooManyHops => "too_many_hops",
            Self::HostBudget => "host_budget",
            Self::QueueFull => "queue_full",
            Self::TooManyHosts => "too_many_hosts",
            Self::HostDead => "host_dead",
            Self::Saturated => "saturated",
            Self::TooManySitemaps => "too_many_sitemaps",
            Self::TooManyQueries => "too_many_queries",
            Self::TooManySubdomains => "too_many_subdomains",
            Self::TooManyPorts => "too_many_ports",
            Self::NearDuplicates => "near_duplicates",
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::OtherHost => "outside the host",
            Self::OtherSite => "outside the site",
            Self::OutsidePrefix => "outside the directory",
            Self::Excluded => "excluded by a pattern",
            Self::NotIncluded => "included by no pattern",
            Self::TooDeep => "too deep",
            Self::UrlTooLong => "URL too long",
            Self::RepeatedSegments => "path repeats itself",
            Self::TooManyHops => "too many redirects",
            Self::HostBudget => "host budget spent",
            Self::QueueFull => "queue full",
            Self::TooManyHosts => "too many hosts",
            Self::HostDead => "host given up",
            Self::Saturated => "filter saturated",
            Self::TooManySitemaps => "too many sitemaps",
            Self::TooManyQueries => "too many queries of one path",
            Self::TooManySubdomains => "too many hosts of one site",
            Self::TooManyPorts => "too many ports of one host",
            Self::NearDuplicates => "too many near-duplicates",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.reason())
    }
}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
