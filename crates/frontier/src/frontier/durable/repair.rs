//! Repair of a damaged directory: every intact record is kept, and what is lost is named.
//!
//! All rows with a right seal are copied into a new store. There the frontier is restored as far as that is possible:
//!
//! 1. The checkpoint is whole: the calls of the journal are made again, up to the first row that is missing. This is the state of an
//!    earlier [`persist`](Frontier::persist). Segments of queues that are missing are dropped. Digests of keys that are missing are made of
//!    records and queues, which have all keys.
//! 2. Only hosts of the checkpoint are missing: it is the state at the checkpoint, without them.
//! 3. Only the seen-set is missing, and all records are there: it is the state at the checkpoint, with a seen-set that is made of records and
//!    queues.
//! 4. The rest of the state is missing: nothing can be continued. Records and URLs that wait are handed to the caller.
//!
//! The new store then replaces the damaged one, which is kept under another name.

mod journal;
mod partial;
mod rebuilt;
mod report;

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use super::super::Frontier;
use super::checkpoint::Manifest;
use super::error::OpenError;
use super::open::{self, no_checkpoint};
use super::restore::{self, Restored};
use super::shelf::SharedStore;
use super::sizes::{SIZES, Sizes};
use super::{Durable, keys, record};
use crate::report::RepairLosses;
use crate::rules::ParseRules;
use crate::store::{Batch, MAX_KEY, Replacement, Space, SqliteStore, Store as _, StoreError, salvage};
use journal::{put_rest_out, restore_rows};
pub use report::{RepairOutcome, RepairReport, RepairedTable, Salvaged};

/// Takes what does not belong to the repaired state, but was intact.
type PutOut<'v> = dyn FnMut(Salvaged<'_>) + 'v;

impl Frontier {
    /// Repairs the frontier of a directory: recovers what is intact, and reports what was dropped. A directory that is whole stays as it
    /// is. The damaged database is kept beside the repaired one, under the name in the report.
    ///
    /// `put_out` gets what is intact, but does not belong to the state that can be continued: records of pages that will be fetched again,
    /// URLs that were offered in calls that are dropped, and, if nothing can be continued, all records and all URLs that wait.
    ///
    /// `parse` gets the stored [`robots_name`](crate::FrontierConfig::robots_name), or an empty one if it is lost, and returns how the texts of
    /// robots.txt files are read.
    ///
    /// The next [`open`](Self::open) returns the attachment of the last [`persist`](Self::persist) that was recovered. Cut back to it what
    /// belongs to it.
    ///
    /// Cost: reads all pages of the database, and writes all rows to a new one beside it, which takes as much room. Memory: that of the
    /// frontier, and some 50 bytes for each row.
    ///
    /// # Errors
    ///
    /// A directory without a database, in which nothing was saved, in use, of another version, or on a disk that is full or cannot be read. It is then as
    /// it was, or the next call finishes what was begun.
    pub fn repair(
        dir: &Path,
        parse: &dyn Fn(&str) -> ParseRules,
        put_out: &mut PutOut<'_>,
    ) -> Result<RepairReport, OpenError> {
        let replacement = Replacement::begin(dir)?;
        // Where the log cannot be read, the check says so.
        let log_commits_unread = SqliteStore::unread_commits_in(dir).unwrap_or_default();
        let head = replacement.check_head().map_err(OpenError::from);
        let checked = head.and_then(|()| check(dir, parse));
        let why = match checked.map_err(|error| open::unless_log_is_damaged(error, dir)) {
            Ok(()) => {
                return Ok(RepairReport {
                    log_commits_unread,
                    ..RepairReport::whole(replacement.was_finished)
                });
            }
            Err(why) if is_damage(&why) => why,
            Err(other) => return Err(other),
        };
        let mut store = replacement.new_store()?;
        let found = salvage(dir, &mut store)?;
        let mut report = RepairReport::new(what_is_wrong(&why), &found);
        if found.iter().all(|table| table.found == 0) {
            drop(store);
            replacement.remove_folder()?;
            replacement.check_is_ours()?;
            return Ok(report);
        }
        let shared = SharedStore::new(Box::new(store));
        let parse = parse(&stored_name(&shared)?);
        mend(&shared, &parse, SIZES, &mut report, put_out)?;
        drop(shared);
        if report.outcome == RepairOutcome::Repaired {
            report.kept = Some(replacement.finish()?);
        } else {
            replacement.remove_folder()?;
        }
        Ok(report)
    }
}

impl Frontier {
    /// Returns what all repairs together have lost.
    pub(in super::super) fn repairs(&self) -> RepairLosses {
        self.repairs
    }

    fn add_losses(&mut self, losses: RepairLosses) {
        self.repairs.pages = self.repairs.pages.saturating_add(losses.pages);
        self.repairs.record_rows = self.repairs.record_rows.saturating_add(losses.record_rows);
    }
}

/// Reads all of a directory.
fn check(dir: &Path, parse: &dyn Fn(&str) -> ParseRules) -> Result<(), OpenError> {
    let store = SqliteStore::open_read_only(dir)?;
    let mut segments = HashSet::new();
    for space in Space::ALL {
        store.range(space, 0..=MAX_KEY, &mut |key, _| {
            if space == Space::Segment {
                segments.insert(key);
            }
            Ok(())
        })?;
    }
    record::visit(&store, &mut |_| {})?;
    let damaged = |what: &str| OpenError::Damaged(what.to_owned());
    let store = SharedStore::new(Box::new(store));
    keys::check(&store)?;
    let stored = restore::manifest(&**store.lock())?;
    let (_, config) = stored.ok_or_else(|| no_checkpoint(&store))?;
    let restored = restore::restore(&store, &parse(&config.robots_name), SIZES, false)?;
    let mut restored = restored.ok_or_else(|| no_checkpoint(&store))?;
    let mut is_missing = false;
    let shelf = &restored.shelf;
    restored.frontier.sieve.queue_mut().visit_segments(&mut |number| {
        is_missing |= !segments.contains(&number) && !shelf.has(number).unwrap_or(false);
    });
    if is_missing {
        return Err(damaged("a segment of a queue is missing"));
    }
    Ok(())
}

/// Returns the name by which robots.txt files are read; empty if it is lost.
fn stored_name(store: &SharedStore) -> Result<String, OpenError> {
    let stored = found(restore::manifest(&**store.lock()))?.flatten();
    Ok(stored.map(|(_, config)| config.robots_name).unwrap_or_default())
}

/// Says what was found, without what to do: that is done.
fn what_is_wrong(error: &OpenError) -> String {
    match error {
        OpenError::Damaged(what) => what.clone(),
        OpenError::Store(StoreError::Damaged { path, what }) => format!("{}: {what}", path.display()),
        OpenError::Store(StoreError::Io { path, source }) => format!("{}: {source}", path.display()),
        OpenError::Store(StoreError::NotAStore { path }) => format!("{}: the head is wrong", path.display()),
        other => other.to_string(),
    }
}

/// Returns whether a repair may help.
fn is_damage(error: &OpenError) -> bool {
    matches!(
        error,
        OpenError::Damaged(_)
            | OpenError::Store(
                StoreError::Damaged { .. }
                    | StoreError::NotAStore { .. }
                    | StoreError::Missing { .. }
                    | StoreError::Io { .. }
            )
    )
}

/// Restores the frontier of a store with gaps, and makes the store whole.
pub(super) fn mend(
    store: &SharedStore,
    parse: &ParseRules,
    sizes: Sizes,
    report: &mut RepairReport,
    put_out: &mut PutOut<'_>,
) -> Result<(), OpenError> {
    report.note_missing_records();
    let Some(mut restored) = restore(store, parse, sizes, report)? else {
        return partial::put_all_out(store, parse, sizes, report, put_out);
    };
    restored.frontier.sieve.set_silent(false);
    let now = restored.frontier.latest;
    let missing = missing_segments(&mut restored)?;
    let hosts = restored.frontier.hosts();
    report.is_without_hosts |= hosts.drop_rows(&|number| missing.contains(&number)) > 0;
    let lost = hosts.drop_segments(&|number| missing.contains(&number));
    let lost_in_all = hosts.sum_up();
    let lost_in_queues: u64 = lost.iter().map(|lost| lost.pages).sum();
    if report.is_without_hosts {
        report.urls_lost_with_hosts = lost_in_all.saturating_sub(lost_in_queues);
    }
    if report.is_without_hosts || !lost.is_empty() {
        let config = restored.config.clone();
        restored.frontier.hosts().ask_for_robots_again();
        restored.frontier.hosts().place_anew(&config, &config, now);
    }
    for lost in lost {
        *report.urls_lost.entry(lost.host.as_str().to_owned()).or_default() += lost.pages;
    }
    report.last_row = restored.next_row - 1;
    report.outcome = RepairOutcome::Repaired;
    put_rest_out(store, restored.next_row, report, put_out)?;
    let losses = report.losses();
    restored.frontier.add_losses(losses);
    write(store, restored, sizes)
}

/// Restores as much of the frontier as possible; `None` if it cannot be continued.
fn restore(
    store: &SharedStore,
    parse: &ParseRules,
    sizes: Sizes,
    report: &mut RepairReport,
) -> Result<Option<Restored>, OpenError> {
    let has_records = report.has_all_records();
    if found(keys::check(store).map_err(OpenError::from))?.is_none() {
        let at_checkpoint = || rebuilt::with_new_keys(store, parse, sizes, has_records);
        return match at_checkpoint()? {
            Some(restored) => restore_rows(store, parse, restored, at_checkpoint),
            None => Ok(None),
        };
    }
    let at_checkpoint = || found(restore::restore_checkpoint(store, parse, sizes)).map(Option::flatten);
    if let Some(restored) = at_checkpoint()? {
        return restore_rows(store, parse, restored, at_checkpoint);
    }
    if let Some(restored) = partial::restore_hosts(store, parse, sizes)? {
        report.is_without_hosts = true;
        return Ok(Some(restored));
    }
    let restored = rebuilt::with_new_seen_set(store, parse, sizes, has_records)?;
    report.has_new_seen_set = restored.is_some();
    Ok(restored)
}

/// Turns damage into `None`.
fn found<T>(result: Result<T, OpenError>) -> Result<Option<T>, OpenError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_damage(&error) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Returns the segments, and the rows of hosts, that are needed and that the store lacks.
fn missing_segments(restored: &mut Restored) -> Result<HashSet<u64>, OpenError> {
    let mut needed = BTreeSet::new();
    restored.frontier.hosts().visit_segments(&mut |number| {
        needed.insert(number);
    });
    let mut missing = HashSet::new();
    for number in needed {
        if !restored.shelf.has(number)? {
            missing.insert(number);
        }
    }
    // A row that is missing has been noted now.
    let _ = restored.shelf.error();
    Ok(missing)
}

/// Writes a checkpoint of the state, and removes everything else but the records up to it.
fn write(store: &SharedStore, restored: Restored, sizes: Sizes) -> Result<(), OpenError> {
    let Restored {
        mut frontier,
        shelf,
        config,
        manifest,
        attachment,
        next_row,
        ..
    } = restored;
    let now = frontier.latest;
    let last_part = store.lock().last_key(Space::Checkpoint);
    let mut batch = Batch::default();
    batch.delete(Space::Journal, 0..=MAX_KEY);
    batch.delete(Space::Checkpoint, Manifest::key(manifest.generation + 1, 0)..=MAX_KEY);
    batch.delete(Space::Record, next_row..=MAX_KEY);
    let mut needed = HashSet::new();
    frontier.hosts().visit_segments(&mut |number| {
        needed.insert(number);
    });
    store.lock().range(Space::Segment, 0..=MAX_KEY, &mut |number, _| {
        if !needed.contains(&number) {
            batch.delete(Space::Segment, number..=number);
        }
        Ok(())
    })?;
    shelf.write(&mut batch);
    store.lock().commit(&batch, false)?;
    let mut durable = Durable::new(store.clone(), shelf, config, now, sizes);
    durable.next_row = next_row;
    durable.attachment = attachment;
    durable.checkpointer.resume(&manifest, 0, last_part);
    frontier.write_checkpoint(&mut durable, now, true)?;
    Ok(())
}
