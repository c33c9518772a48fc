//! Merging of runs into larger ones, in slices, so that a look-up reads few of them.
//!
//! Four runs of a tier become one; the runs of a tier have up to four times as many digests as those of the one below. So there are at most
//! three runs of each tier, and a digest is written about once for each. Only runs are merged whose rows no journal has any more: the
//! result is visible for all who open the store then.

use super::Keys;
use super::run::{Run, RunWriter, StoredRun, digests, read_part, remove};
use crate::durable::segments::SharedStore;
use crate::store::{Batch, StoreError};

/// The runs of one tier that are merged.
const RUNS_OF_TIER: usize = 4;

/// Several runs that become one.
#[derive(Debug)]
pub(super) struct Compaction {
    cursors: Vec<Cursor>,
    writer: RunWriter,
}

/// Where a run is read.
#[derive(Debug)]
struct Cursor {
    run: StoredRun,
    next_part: u64,
    /// What was read and is left, the next one last.
    digests: Vec<u128>,
}

impl Cursor {
    fn of(run: &Run) -> Self {
        Self {
            run: run.stored,
            next_part: 0,
            digests: Vec::new(),
        }
    }

    /// `None` at the end.
    fn peek(&mut self, store: &SharedStore) -> Result<Option<u128>, StoreError> {
        while self.digests.is_empty() && self.next_part < self.run.parts {
            let part = read_part(self.run.number, self.next_part, store)?;
            self.digests.extend(digests(&part));
            self.digests.reverse();
            self.next_part += 1;
        }
        Ok(self.digests.last().copied())
    }
}

impl Compaction {
    fn reads(&self, run: &Run) -> bool {
        self.cursors.iter().any(|cursor| cursor.run.number == run.stored.number)
    }

    /// Merges at most `most` more digests. Returns whether these were the last.
    fn merge(&mut self, most: usize, store: &SharedStore, batch: &mut Batch) -> Result<bool, StoreError> {
        for _ in 0..most {
            let mut least: Option<(u128, usize)> = None;
            for (at, cursor) in self.cursors.iter_mut().enumerate() {
                if let Some(digest) = cursor.peek(store)?
                    && least.is_none_or(|(other, _)| digest < other)
                {
                    least = Some((digest, at));
                }
            }
            let Some((digest, at)) = least else { return Ok(true) };
            self.cursors[at].digests.pop();
            self.writer.push(digest, batch);
        }
        Ok(false)
    }
}

impl Keys {
    /// Adds more of the merged runs to a batch. Once one is complete, those that it was made of are removed, in slices, too.
    pub(super) fn merge_runs(&mut self, parts: usize, batch: &mut Batch) -> Result<(), StoreError> {
        while let Some(next) = self.next_compaction() {
            self.compactions.push(next);
        }
        let most = parts * self.sizes.digests_of_part;
        for mut compaction in std::mem::take(&mut self.compactions) {
            if compaction.merge(most, &self.store, batch)? {
                self.replace_runs(compaction, batch);
            } else {
                self.compactions.push(compaction);
            }
        }
        Ok(())
    }

    fn replace_runs(&mut self, compaction: Compaction, batch: &mut Batch) {
        self.runs.retain(|run| {
            let is_merged = compaction.reads(run);
            if is_merged {
                remove(run.stored.number, run.stored.parts, &mut self.removal);
            }
            !is_merged
        });
        let run = compaction.writer.finish(batch);
        self.insert_run(run);
        self.is_changed = true;
    }

    fn tier(&self, run: &Run) -> u32 {
        let smallest = self.sizes.fresh_digests as u64;
        (run.stored.count / smallest).max(1).ilog(RUNS_OF_TIER as u64)
    }

    /// Begins to merge the runs of a tier that has too many, unless runs of it are being merged.
    fn next_compaction(&mut self) -> Option<Compaction> {
        let settled = self.runs.iter().filter(|run| run.stored.last_row <= self.settled);
        let settled: Vec<&Run> = settled.collect();
        let is_busy = |run: &&Run| self.compactions.iter().any(|compaction| compaction.reads(run));
        // The largest are first, so runs of a tier are neighbours.
        let mut tiers = settled.chunk_by(|one, other| self.tier(one) == self.tier(other));
        let merged = tiers.rfind(|runs| runs.len() >= RUNS_OF_TIER && !runs.iter().any(is_busy))?;
        let cursors = merged.iter().map(|run| Cursor::of(run)).collect();
        let last_row = merged.iter().map(|run| run.stored.last_row).max()?;
        let writer = self.next_writer(last_row);
        Some(Compaction { cursors, writer })
    }
}
