//! The list of runs, as the store keeps it beside the manifest of the checkpoint.

use super::damaged;
use super::run::{Run, StoredRun};
use crate::durable::segments::SharedStore;
use crate::store::{Batch, MAX_KEY, Space, StoreError};

/// The key of the list in [`Space::Meta`].
const LIST: u64 = 1;

/// No run has this number or a greater one.
pub(super) const END_OF_RUNS: u64 = MAX_KEY >> 33;

/// The number of the next run, which is greater than all, and the runs that are complete.
type RunList = (u64, Vec<StoredRun>);

/// Reads the list; `None` where no keys are stored.
///
/// # Errors
///
/// A list that cannot be read.
pub(super) fn read(store: &SharedStore) -> Result<Option<RunList>, StoreError> {
    let Some(list) = store.lock().get(Space::Meta, LIST)? else {
        return Ok(None);
    };
    let (next_run, runs): RunList =
        postcard::from_bytes(&list).map_err(|error| damaged(format!("the list of runs cannot be read: {error}")))?;
    let numbers = || runs.iter().map(|run| run.number);
    let count = runs.iter().try_fold(0_u64, |sum, run| sum.checked_add(run.count));
    let is_possible = numbers().is_sorted_by(|one, next| one < next)
        && numbers().all(|number| number < next_run)
        && next_run < END_OF_RUNS
        && count.is_some_and(|count| count < MAX_KEY);
    if is_possible {
        Ok(Some((next_run, runs)))
    } else {
        Err(damaged("the list of runs has numbers that cannot be".to_owned()))
    }
}

/// Adds the list to a batch.
///
/// # Errors
///
/// It cannot be written as bytes, which never happens.
pub(super) fn write(next_run: u64, runs: &[Run], batch: &mut Batch) -> Result<(), StoreError> {
    let mut stored: Vec<_> = runs.iter().map(|run| run.stored).collect();
    stored.sort_by_key(|run| run.number);
    let list = postcard::to_allocvec(&(next_run, stored));
    let list = list.map_err(|error| damaged(format!("the list of runs cannot be written: {error}")))?;
    batch.put(Space::Meta, LIST, list);
    Ok(())
}

/// Checks that a store has all parts of all runs. O(parts).
pub(crate) fn check(store: &SharedStore) -> Result<(), StoreError> {
    let (_, runs) = read(store)?.unwrap_or_default();
    for run in runs {
        Run::read(run, store)?.check(store)?;
    }
    Ok(())
}
