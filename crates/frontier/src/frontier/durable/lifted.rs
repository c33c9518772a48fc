//! Links that were refused by limits that were lifted since: no later run is offered them again.

use std::collections::BTreeMap;
use std::mem;

use serde::{Deserialize, Serialize};

use super::super::Frontier;
use super::error::StateError;
use super::options;
use crate::config::FrontierConfig;
use crate::lease::NotFetched;
use crate::scope::Refusal;

/// Links that a limit has refused in earlier runs, and that the present limit might accept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in super::super) struct RefusedEarlier {
    /// The configuration with the limit that refused them, as JSON. When the limit is as narrow again, nothing is missing.
    under: String,
    links: u64,
}

impl Frontier {
    /// Returns the numbers of links that earlier runs have refused by limits that were lifted since.
    pub(in super::super) fn refused_earlier(&self) -> BTreeMap<Refusal, u64> {
        let refused = self.refused_earlier.iter();
        refused.map(|(why, refused)| (*why, refused.links)).collect()
    }

    /// Keeps the numbers of links that were refused until now and that the wanted configuration might accept.
    pub(super) fn keep_refusals(&mut self, stored: &FrontierConfig, wanted: &FrontierConfig) -> Result<(), StateError> {
        for (why, refused) in mem::take(&mut self.refused_earlier) {
            let under = serde_json::from_str(&refused.under)?;
            if options::lifted(&under, wanted).any(|lifted| lifted == why) {
                self.refused_earlier.insert(why, refused);
            }
        }
        for why in options::lifted(stored, wanted) {
            let links = self.refused_until_now(why);
            if let Some(refused) = self.refused_earlier.get_mut(&why) {
                refused.links = links;
            } else if links > 0 {
                let under = serde_json::to_string(stored)?;
                self.refused_earlier.insert(why, RefusedEarlier { under, links });
            }
        }
        Ok(())
    }

    /// Returns how many links were refused for a reason, when they were found or later.
    fn refused_until_now(&self, why: Refusal) -> u64 {
        let of_pages = match why {
            Refusal::HostBudget => Some(NotFetched::HostBudget),
            Refusal::NearDuplicates => Some(NotFetched::NearDuplicates),
            _ => None,
        };
        let of_links = [&self.links, &self.sitemaps.counts].map(|counts| counts.refused.get(&why));
        let of_pages = of_pages.map(|why| self.not_fetched.get(&why));
        of_links.into_iter().chain(of_pages).flatten().sum()
    }
}
