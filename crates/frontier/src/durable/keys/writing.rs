//! What is written of the keys: frozen digests in slices, then merges, then the list of runs.

use super::run::{self, Run, RunWriter};
use super::{Frozen, Keys, list};
use crate::store::{Batch, MAX_KEY, Space, StoreError};

impl Keys {
    /// Freezes the digests of the rows up to this one: they become a run.
    pub(in super::super) fn freeze(&mut self, last_row: u64) {
        if self.known.fresh.is_empty() {
            return;
        }
        let mut digests: Vec<_> = std::mem::take(&mut self.known.fresh).into_iter().collect();
        digests.sort_unstable();
        let writer = self.next_writer(last_row);
        self.frozen.push_back(Frozen { digests, writer });
    }

    /// Returns whether the runs have all digests up to the row of the last freeze.
    pub(in super::super) fn are_written(&self) -> bool {
        self.frozen.is_empty()
    }

    /// Records that a checkpoint is finished that contains the rows up to this one.
    pub(in super::super) fn checkpoint_finished(&mut self, covered: u64) {
        self.settled = covered;
    }

    /// Adds to a batch what is to be written with a row, or after it. `last_row` is the last one that is written.
    ///
    /// # Errors
    ///
    /// A part that cannot be read.
    pub(in super::super) fn write(&mut self, batch: &mut Batch, last_row: u64) -> Result<(), StoreError> {
        if self.known.fresh.len() >= self.sizes.fresh_digests {
            self.freeze(last_row);
        }
        // Faster than keys come, however many come with one row.
        let parts = std::mem::take(&mut self.known.of_row).div_ceil(self.sizes.digests_of_part);
        let removes = |_: &usize| self.removal.write(batch, 4 * self.sizes.parts_at_once as u64);
        (0..4 + 8 * parts).take_while(removes).for_each(drop);
        self.write_frozen(2 * self.sizes.parts_at_once + 4 * parts, batch);
        self.merge_runs(self.sizes.parts_at_once + 2 * parts, batch)?;
        if std::mem::take(&mut self.is_changed) {
            list::write(self.next_run, &self.runs, batch)?;
        }
        Ok(())
    }

    /// Adds all that belongs to no run to what is removed. Cost: reads two values of each run.
    pub(super) fn remove_leftovers(&mut self) -> Result<(), StoreError> {
        let mut next = Some(MAX_KEY);
        while let Some(last) = next {
            let Some((key, _)) = self.store.lock().last(Space::Digest, last)? else {
                break;
            };
            let number = run::number(key);
            if !self.runs.iter().any(|run| run.stored.number == number) {
                run::remove_unfinished(number, &self.store, &mut self.removal)?;
            }
            next = run::key(number, 0).checked_sub(1);
        }
        Ok(())
    }

    fn write_frozen(&mut self, parts: usize, batch: &mut Batch) {
        let mut left = parts * self.sizes.digests_of_part;
        while left > 0
            && let Some(mut frozen) = self.frozen.pop_front()
        {
            let written = frozen.writer.count() as usize;
            let next = (written + left).min(frozen.digests.len());
            for digest in &frozen.digests[written..next] {
                frozen.writer.push(*digest, batch);
            }
            left -= next - written;
            if next < frozen.digests.len() {
                self.frozen.push_front(frozen);
                break;
            }
            let run = frozen.writer.finish(batch);
            self.insert_run(run);
            self.is_changed = true;
        }
    }

    pub(super) fn next_writer(&mut self, last_row: u64) -> RunWriter {
        let number = self.next_run;
        self.next_run += 1;
        RunWriter::new(number, last_row, self.sizes.digests_of_part)
    }

    pub(super) fn insert_run(&mut self, run: Run) {
        let at = self
            .runs
            .partition_point(|other| other.stored.count >= run.stored.count);
        self.runs.insert(at, run);
    }
}
