//! Replay: the calls of the journal are made again, and must have the same results.

use super::super::Frontier;
use super::calls::split;
use super::calls::{Call, OtherLinks};
use super::checkpoint::LOGIC;
use super::error::OpenError;
use super::read_error;
use super::recording::taken;
use super::restore::Restored;
use crate::report::LinkCounts;
use crate::rules::ParseRules;
use crate::settlement::Verdict;

impl Restored {
    /// Makes the calls of a row again.
    pub(super) fn make_calls(&mut self, key: u64, row: &[u8], parse: &ParseRules) -> Result<(), OpenError> {
        let damaged = |what: &dyn std::fmt::Display| OpenError::Damaged(format!("row {key} of the journal: {what}"));
        if self.manifest.logic != LOGIC {
            return Err(OpenError::OtherLogic {
                found: self.manifest.logic,
                supported: LOGIC,
            });
        }
        if key != self.next_row {
            return Err(damaged(&"the row before it is missing"));
        }
        let (attachment, mut rest) = split(row).map_err(|error| damaged(&error))?;
        self.attachment.clear();
        self.attachment.extend_from_slice(attachment);
        while !rest.is_empty() {
            let (call, after) = postcard::take_from_bytes::<Call<'_>>(rest).map_err(|error| damaged(&error))?;
            rest = after;
            let result = self.frontier.make_again(&call, parse);
            if let Some(error) = read_error(&self.shelf, self.frontier.sieve.filter()) {
                return Err(error.into());
            }
            match result {
                Some(true) => {}
                Some(false) => return Err(damaged(&"a call has another result than before")),
                None => return Err(damaged(&"a URL cannot be read")),
            }
        }
        self.next_row += 1;
        if let Some(keys) = self.frontier.sieve.filter().keys() {
            keys.lock().row_was_replayed(key);
        }
        self.journal_bytes += row.len() as u64;
        Ok(())
    }
}

impl Frontier {
    /// Makes a call again. Returns whether it had the same result; `None` if it cannot be read.
    fn make_again(&mut self, call: &Call<'_>, parse: &ParseRules) -> Option<bool> {
        Some(match call {
            Call::AddSeed { url, now, is_new } => {
                let verdict = self.add_seed(&url.read()?, *now).ok()?;
                (verdict == Verdict::Queued) == *is_new
            }
            Call::Offer { links: stored, now } => {
                let (links, others) = stored.read()?;
                let verdicts = self.offer(&links, *now).ok()?;
                self.count_others(others);
                stored.agree_with(&verdicts)
            }
            Call::Lease {
                now,
                up_to,
                taken: before,
            } => {
                let leasing = self.lease(*now, usize::try_from(*up_to).ok()?).ok()?;
                taken(&leasing) == *before
            }
            Call::Settle { settlements, now } => {
                self.latest = self.latest.max(*now);
                let mut is_same = true;
                for stored in settlements {
                    let (settlement, others) = stored.read(parse)?;
                    let (settled, _) = self.settle_one(&settlement, *now);
                    self.count_others(others);
                    is_same &= settled.fate == stored.fate && stored.links.agree_with(&settled.verdicts);
                }
                is_same
            }
            Call::SetDelay { host, delay, now } => self.set_delay(host, *delay, *now).is_ok(),
            Call::Block { host, until, now } => self.block(host, *until, *now).is_ok(),
            Call::BeginRetry { end, now } => self.begin_retry_until(*end, *now).is_ok(),
            Call::QueueAgain {
                pages,
                ends,
                shut,
                read,
                now,
            } => {
                // Those that were refused have changed nothing.
                let (links, _) = pages.read()?;
                if links.len() != ends.len() {
                    return None;
                }
                let verdicts = self.queue_again_until(&links, ends, *shut, *read, *now).ok()?;
                pages.agree_with(&verdicts)
            }
            Call::ReleaseLeases { now } => self.release_leases(*now).is_ok(),
            Call::GiveBack { leases, now, ended } => self.give_back(leases, *now).ok()? == *ended,
        })
    }

    /// Counts links that a journal did not store.
    fn count_others(&mut self, others: &[OtherLinks]) {
        for one in others {
            let counts: &mut LinkCounts = if one.are_sitemaps {
                &mut self.sitemaps.counts
            } else {
                &mut self.links
            };
            counts.count_others(one.refused, one.count);
        }
    }
}
