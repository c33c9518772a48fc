//! What decides about most links of a host, so that an evicted one need not be read for them.

use crate::config::MAX_ORIGINS_PER_HOST;
use crate::hosts::HostRules;
use crate::hosts::host::Host;

/// Facts about a host, under the rules of this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Facts(u8);

const IS_RESTRICTED: u8 = 1;
const TAKES_PAGES: u8 = 1 << 1;
const HAS_RULES: u8 = 1 << 2;
const IS_AWAY: u8 = 1 << 3;
const IS_SHUT: u8 = 1 << 4;
const IS_COUNTED: u8 = 1 << 5;

impl Facts {
    pub(super) fn of(host: &Host, rules: &HostRules) -> Self {
        let is_restricted = host.gave_up_any() || host.origins().len() >= MAX_ORIGINS_PER_HOST;
        let mut origins = host.origins().iter();
        let has_rules = |known: &crate::rules::KnownRules| known.policy.bytes() > 0;
        let facts = [
            (is_restricted, IS_RESTRICTED),
            (host.takes_pages(rules), TAKES_PAGES),
            (
                origins
                    .clone()
                    .any(|origin| origin.known.as_ref().is_some_and(has_rules)),
                HAS_RULES,
            ),
            (origins.clone().any(|origin| origin.is_away()), IS_AWAY),
            (origins.any(|origin| origin.is_shut()), IS_SHUT),
            (host.is_counted(), IS_COUNTED),
        ];
        let are_true = facts.into_iter().filter(|(is_true, _)| *is_true);
        Self(are_true.fold(0, |all, (_, fact)| all | fact))
    }

    /// Whether its origins decide about a link: one was given up, or there are as many as there may be.
    pub(crate) fn is_restricted(self) -> bool {
        self.0 & IS_RESTRICTED != 0
    }

    /// Whether another page may be queued.
    pub(crate) fn takes_pages(self) -> bool {
        self.0 & TAKES_PAGES != 0
    }

    /// Whether rules of a robots.txt count for it.
    pub(crate) fn has_rules(self) -> bool {
        self.0 & HAS_RULES != 0
    }

    /// Whether one of its origins was given up, or closed because its robots.txt could not be fetched.
    pub(crate) fn is_shut(self) -> bool {
        self.0 & IS_SHUT != 0
    }

    /// Whether it counts among the hosts of its site.
    pub(crate) fn is_counted(self) -> bool {
        self.0 & IS_COUNTED != 0
    }

    /// Whether one of its origins is away.
    pub(crate) fn is_away(self) -> bool {
        self.0 & IS_AWAY != 0
    }
}
