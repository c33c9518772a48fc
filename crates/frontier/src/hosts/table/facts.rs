//! What is asked of a host most, so that an evicted one need not be read for it.

use crate::class::Class;
use crate::config::MAX_ORIGINS_PER_HOST;
use crate::hosts::HostConfig;
use crate::hosts::host::{Host, HostState};
use crate::report::Health;
use crate::rules::KnownRules;

/// Facts about a host, under the rules of this run: they are stored with an evicted host, and `HostQueues::place_anew` makes them anew when
/// the configuration has changed. A new one changes the stored format (`sqlite/format.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Facts {
    pub(crate) state: HostState,
    /// Its origins decide about a link: one was given up, or there are as many as there may be.
    pub(crate) is_restricted: bool,
    /// Another page may be queued.
    pub(crate) takes_pages: bool,
    /// Rules of a robots.txt count for it.
    pub(crate) has_rules: bool,
    /// What it does, as far as that does not depend on the time.
    pub(crate) health: Health,
    /// One of its origins was given up, or closed because its robots.txt could not be fetched.
    pub(crate) is_shut: bool,
    /// It counts among the hosts of its site.
    pub(crate) is_counted: bool,
    /// Nothing of it is fetched.
    pub(crate) is_closed: bool,
    /// It is closed until a time.
    pub(crate) rests: bool,
    /// The class of its links.
    pub(crate) class: Option<Class>,
}

impl Facts {
    pub(super) fn of(host: &Host, config: &HostConfig) -> Self {
        let origins = host.origins();
        let has_rules = |known: &KnownRules| known.policy.bytes() > 0;
        Self {
            state: host.state,
            is_restricted: host.gave_up_any() || origins.len() >= MAX_ORIGINS_PER_HOST,
            takes_pages: host.takes_pages(config),
            has_rules: origins
                .iter()
                .any(|origin| origin.known.as_ref().is_some_and(has_rules)),
            health: host.settled_health(),
            is_shut: origins.iter().any(|origin| origin.is_shut()),
            is_counted: host.is_counted,
            is_closed: host.policy().is_closed(),
            rests: host.policy().closed_until.is_some(),
            class: host.policy().class,
        }
    }
}
