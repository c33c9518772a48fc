//! What the frontier is told of near-duplicates, and what it makes of it.

use sieve::Filter;

use super::{Frontier, FrontierError};
use crate::entry::Purpose;
use crate::lease::{Lease, LeaseId, NotFetched, Verdict};
use crate::link::Link;
use crate::repeats::Repeat;
use crate::scope::Refusal;
use crate::url::HostKey;

impl<F: Filter> Frontier<F> {
    /// Says that a leased page repeats others: those of a cluster, which the caller names by a number of its own. To be
    /// said before the lease is settled. A caller that compares only some pages of a site which is not
    /// [suspect](Self::is_suspect) says how many each `stands_for`; 1 if it compares all.
    ///
    /// Where the cluster has had [`max_near_duplicates`](crate::FrontierConfig::max_near_duplicates) members on the site, the
    /// links of this page are refused when it is settled; where it has had as many under one [path
    /// prefix](crate::path_prefix), that prefix is closed. A seed is never counted.
    ///
    /// # Errors
    ///
    /// Only when the frontier is poisoned.
    pub fn near_duplicate(&mut self, lease: LeaseId, cluster: u64, stands_for: u32) -> Result<Repeat, FrontierError> {
        self.commit(|frontier| {
            let Some(taken) = frontier.leases.get_mut(&lease) else {
                return Repeat::Counted;
            };
            let repeat = frontier
                .sieve
                .queue_mut()
                .budgets_mut()
                .repeats
                .count(&taken.entry, cluster, stands_for);
            taken.is_repeat = repeat != Repeat::Counted;
            repeat
        })
    }

    /// Says whether near-duplicates have been so frequent on a site that each of its pages should be compared.
    ///
    /// A caller may compare only some pages of other sites, each standing for as many. A site is suspect once a cluster
    /// seems to have as many members as are followed; from then on every page must be counted for the budget to hold.
    pub fn is_suspect(&self, host: &HostKey) -> bool {
        self.sieve.queue().budgets().repeats.suspects(host.site())
    }

    /// Says why a page that was leased is not to be fetched after all: its path prefix was closed while it waited.
    pub fn second_thought(&self, lease: &Lease) -> Option<NotFetched> {
        let is_bound = lease.entry.purpose == Purpose::Page && !lease.entry.metadata.seed;
        let is_closed = is_bound && self.sieve.queue().budgets().repeats.closes(lease.entry.key());
        is_closed.then_some(NotFetched::NearDuplicates)
    }

    /// Refuses all links that were not seen before.
    pub(super) fn refuse_new(&mut self, links: &[Link], why: Refusal) -> Vec<Verdict> {
        let judge = |link: &Link| Verdict::Refused(self.scope.judge(link).err().unwrap_or(why));
        let mut verdicts: Vec<_> = links.iter().map(judge).collect();
        self.forgive_seen(links, &mut verdicts);
        for verdict in &verdicts {
            self.links.count(*verdict);
        }
        verdicts
    }
}
