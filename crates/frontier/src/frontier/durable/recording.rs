//! Recording: each call that has changed the frontier becomes part of the next row of the journal.

use std::time::Duration;

use super::super::again::{LastEnd, ShutOrigin};
use super::super::{Frontier, FrontierError};
use super::calls::{Call, StoredLinks, StoredSettlement, StoredUrl};
use super::record::{self, PageRecord};
use crate::entry::Purpose;
use crate::lease::{Dropped, LeaseId, Leasing};
use crate::link::Link;
use crate::settlement::{Fate, Settled, Settlement, Verdict};
use crate::time::Time;
use crate::url::{CanonicalUrl, HostKey};

impl Frontier {
    /// Adds a call to the next row, if the frontier is durable.
    fn record<'c>(&mut self, now: Time, is_change: bool, call: impl FnOnce() -> Call<'c>) -> Result<(), FrontierError> {
        self.latest = self.latest.max(now);
        match &mut self.durable {
            Some(durable) => durable.add(&call(), is_change),
            None => Ok(()),
        }
    }

    pub(in super::super) fn record_seed(
        &mut self,
        url: &CanonicalUrl,
        verdict: Verdict,
        now: Time,
    ) -> Result<(), FrontierError> {
        self.record(now, true, || Call::AddSeed {
            url: StoredUrl::of(url),
            now,
            is_new: verdict == Verdict::Queued,
        })
    }

    pub(in super::super) fn record_offer(
        &mut self,
        links: &[Link],
        verdicts: &[Verdict],
        now: Time,
    ) -> Result<(), FrontierError> {
        self.record(now, true, || Call::Offer {
            links: StoredLinks::new(links, verdicts),
            now,
        })
    }

    pub(in super::super) fn record_lease(
        &mut self,
        leasing: &Leasing,
        up_to: usize,
        now: Time,
    ) -> Result<(), FrontierError> {
        if let (Leasing::Dropped(dropped), Some(durable)) = (leasing, &mut self.durable) {
            // Sitemaps have no record: they are no pages, and are not in the seen-set.
            let is_page = |dropped: &&Dropped| dropped.entry.purpose == Purpose::Page;
            for one in dropped.iter().filter(is_page) {
                record::add(&mut durable.records, &PageRecord::dropped(one, now))?;
            }
        }
        let taken = taken(leasing);
        let up_to = up_to as u64;
        self.record(now, taken > 0, || Call::Lease { now, up_to, taken })
    }

    /// Settles leases, and records what became of their pages.
    pub(in super::super) fn settle_and_record(
        &mut self,
        settlements: &[Settlement],
        now: Time,
    ) -> Result<Vec<Settled>, FrontierError> {
        let settled = settlements.iter().map(|one| self.settle_with_record(one, now));
        let settled = settled.collect::<Result<Vec<_>, _>>()?;
        let is_known = |settled: &Settled| settled.fate != Fate::Stale;
        let is_change = settled.iter().any(is_known);
        self.record(now, is_change, || {
            let known = settlements
                .iter()
                .zip(&settled)
                .filter(|(_, settled)| is_known(settled));
            let stored = known.map(|(settlement, settled)| StoredSettlement::new(settlement, settled));
            let settlements = stored.collect();
            Call::Settle { settlements, now }
        })?;
        Ok(settled)
    }

    fn settle_with_record(&mut self, settlement: &Settlement, now: Time) -> Result<Settled, FrontierError> {
        let (settled, entry) = self.settle_one(settlement, now);
        if let (Some(durable), Some(entry)) = (&mut self.durable, entry)
            && let Some(record) = PageRecord::settled(&entry, settlement, &settled, now)
        {
            record::add(&mut durable.records, &record)?;
        }
        Ok(settled)
    }

    pub(in super::super) fn record_delay(
        &mut self,
        host: &HostKey,
        delay: Duration,
        now: Time,
    ) -> Result<(), FrontierError> {
        let host = host.clone();
        self.record(now, true, || Call::SetDelay { host, delay, now })
    }

    pub(in super::super) fn record_block(
        &mut self,
        host: &HostKey,
        until: Time,
        now: Time,
    ) -> Result<(), FrontierError> {
        let host = host.clone();
        self.record(now, true, || Call::Block { host, until, now })
    }

    pub(in super::super) fn record_queue_again(
        &mut self,
        pages: &[Link],
        ends: &[LastEnd],
        shut: ShutOrigin,
        verdicts: &[Verdict],
        now: Time,
    ) -> Result<(), FrontierError> {
        let read = self.records_read;
        let queued = ends.iter().zip(verdicts);
        let queued = queued.filter(|(_, verdict)| **verdict == Verdict::Queued);
        self.record(now, true, || Call::QueueAgain {
            pages: StoredLinks::new(pages, verdicts),
            ends: queued.map(|(end, _)| *end).collect(),
            shut,
            read,
            now,
        })
    }

    pub(super) fn record_retry(&mut self, end: u64, now: Time) -> Result<(), FrontierError> {
        self.record(now, true, || Call::BeginRetry { end, now })
    }

    pub(in super::super) fn record_release(&mut self, now: Time) -> Result<(), FrontierError> {
        self.record(now, true, || Call::ReleaseLeases { now })
    }

    pub(in super::super) fn record_give_back(
        &mut self,
        leases: &[LeaseId],
        ended: u64,
        now: Time,
    ) -> Result<(), FrontierError> {
        self.record(now, true, || Call::GiveBack {
            leases: leases.to_vec(),
            now,
            ended,
        })
    }
}

/// Returns how many entries were leased or dropped.
pub(super) fn taken(leasing: &Leasing) -> u64 {
    match leasing {
        Leasing::Ready(leases) => leases.len() as u64,
        Leasing::Dropped(dropped) => dropped.len() as u64,
        Leasing::NotUntil(_) | Leasing::AllLeased | Leasing::BudgetSpent | Leasing::Drained => 0,
    }
}
