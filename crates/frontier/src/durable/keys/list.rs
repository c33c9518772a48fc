//! The list of runs, as the store keeps it beside the manifest of the checkpoint.

use serde::{Deserialize, Serialize};

use super::damaged;
use super::run::{Run, StoredRun};
use crate::durable::segments::SharedStore;
use crate::store::{Batch, MAX_KEY, Space, StoreError};

/// The key of the list in [`Space::Meta`].
const LIST: u64 = 1;

/// No run has this number or a greater one.
pub(super) const END_OF_RUNS: u64 = MAX_KEY >> 33;

/// All runs that are complete.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RunList {
    /// The number of the next run: greater than all.
    pub(super) next_run: u64,
    pub(super) runs: Vec<StoredRun>,
}

impl RunList {
    pub(super) fn of(next_run: u64, runs: &[Run]) -> Self {
        let mut runs: Vec<_> = runs.iter().map(|run| run.stored).collect();
        runs.sort_by_key(|run| run.number);
        Self { next_run, runs }
    }

    /// Reads the list; `None` where no keys are stored.
    ///
    /// # Errors
    ///
    /// A list that cannot be read.
    pub(super) fn read(store: &SharedStore) -> Result<Option<Self>, StoreError> {
        let Some(list) = store.lock().get(Space::Meta, LIST)? else {
            return Ok(None);
        };
        let list: Self = postcard::from_bytes(&list)
            .map_err(|error| damaged(format!("the list of runs cannot be read: {error}")))?;
        if !list.is_possible() {
            return Err(damaged("the list of runs has numbers that cannot be".to_owned()));
        }
        Ok(Some(list))
    }

    fn is_possible(&self) -> bool {
        let numbers = || self.runs.iter().map(|run| run.number);
        let count = self.runs.iter().try_fold(0_u64, |sum, run| sum.checked_add(run.count));
        numbers().is_sorted_by(|one, next| one < next)
            && numbers().all(|number| number < self.next_run)
            && self.next_run < END_OF_RUNS
            && count.is_some_and(|count| count < MAX_KEY)
    }

    /// Adds the list to a batch.
    ///
    /// # Errors
    ///
    /// It cannot be written as bytes, which never happens.
    pub(super) fn write(&self, batch: &mut Batch) -> Result<(), StoreError> {
        let list = postcard::to_allocvec(self);
        let list = list.map_err(|error| damaged(format!("the list of runs cannot be written: {error}")))?;
        batch.put(Space::Meta, LIST, list);
        Ok(())
    }
}

/// Checks that a store has all parts of all runs. O(parts).
pub(crate) fn check(store: &SharedStore) -> Result<(), StoreError> {
    for run in RunList::read(store)?.unwrap_or_default().runs {
        Run::read(run, store)?.check(store)?;
    }
    Ok(())
}
