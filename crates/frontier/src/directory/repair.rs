//! Repair of a damaged directory: it goes back to the last state that is whole, or all that can be read is exported.
//!
//! The rows that SQLite can still read are copied into a new database. If the checkpoint is whole there, and all segments and digests that it
//! needs are, the calls of the journal are made again up to the first row that is missing or wrong. This is the state of an earlier
//! [`persist`](crate::Frontier::persist): the new database takes the place of the damaged one, which is kept under another name. Nothing is made
//! up: where more is missing, the caller gets the records and the URLs that wait, to begin a new crawl with.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Directory;
use crate::durable::keys::list::check as check_keys;
use crate::durable::open::no_checkpoint;
use crate::durable::restore::{self, Restored};
use crate::durable::segments::SharedStore;
use crate::durable::{OpenError, Source, StoredPage, going_back, journal, pages};
use crate::entry::Entry;
use crate::rules::ParseRules;
use crate::sqlite::{Readable, Repair, SqliteStore};
use crate::state::{State, bloom_filter};
use crate::store::{Batch, MAX_KEY, Space, Store, StoreError};

/// How a repair ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairOutcome {
    /// Nothing is wrong, and nothing was changed.
    #[default]
    Whole,
    /// The directory can be opened again, as of an earlier commit.
    Repaired,
    /// No state is whole. The directory is as it was, and what can be read was handed to the caller.
    Exported,
}

/// What a repair found and did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct RepairReport {
    /// How it ended.
    pub outcome: RepairOutcome,
    /// What was wrong first; empty if nothing was.
    pub damage: String,
    /// Commits that can be read, but come after the state that is whole. What they fetched is fetched again.
    pub commits_dropped: u64,
    /// Pages of which it is lost what became of them; `None` if that cannot be known.
    pub pages_lost: Option<u64>,
    /// Pages that were handed to the caller.
    pub pages: u64,
    /// URLs that were handed to the caller.
    pub urls: u64,
    /// The file in which the damaged database is kept.
    pub kept: Option<PathBuf>,
}

/// Something that can be read of a frontier that cannot be continued.
#[derive(Debug)]
#[non_exhaustive]
pub enum Exported {
    /// What became of a page.
    Page(StoredPage),
    /// A URL that waits, or was offered.
    Waiting(Entry),
}

type Export<'v> = dyn FnMut(Exported) + 'v;

impl Directory<'_> {
    /// Repairs the frontier: it goes back to the last state that is whole. If there is none, `export` gets all that can be
    /// read: records of pages, and URLs that wait or were offered. A directory that is whole stays as it is.
    ///
    /// `parse` gets the stored [`robots_name`](crate::PolitenessConfig::robots_name), or an empty one if it is lost, and returns how the texts of
    /// robots.txt files are read. The next [`Frontier::open`](crate::Frontier::open) returns the attachment of the state. Cut back to it what belongs to it.
    ///
    /// Cost: reads all of the database, and writes as much beside it. Memory: that of the frontier.
    ///
    /// # Errors
    ///
    /// A directory without a frontier, in use, of another version, of which nothing can be read, or on a disk that is full or cannot be read.
    pub fn repair(
        self,
        parse: &dyn Fn(&str) -> ParseRules,
        export: &mut Export<'_>,
    ) -> Result<RepairReport, OpenError> {
        let repair = Repair::begin(self.0)?;
        let mut report = RepairReport {
            pages_lost: Some(0),
            ..RepairReport::default()
        };
        // Reading does not need what its head says of writing.
        let checked = check(self.0, parse).and_then(|()| Ok(repair.check_head()?));
        let why = match checked {
            Ok(()) => return Ok(report),
            Err(why) if is_damage(&why) => why,
            Err(other) => return Err(other),
        };
        report.damage = why.to_string();
        let ways = repair.readable();
        for readable in ways.iter().filter(|readable| readable.is_one_state) {
            let (store, parse, lost) = copy(&repair, readable, parse)?;
            if let Some(dropped) = go_back(&store, &parse)? {
                drop(store);
                report.pages_lost = lost;
                report.commits_dropped = dropped;
                report.outcome = RepairOutcome::Repaired;
                report.kept = Some(repair.finish()?);
                return Ok(report);
            }
        }
        for readable in &ways {
            let (store, parse, lost) = copy(&repair, readable, parse)?;
            report.pages_lost = lost;
            export_all(&store, &parse, &mut |exported| {
                match exported {
                    Exported::Page(_) => report.pages += 1,
                    Exported::Waiting(_) => report.urls += 1,
                }
                export(exported);
            })?;
            if report.pages + report.urls > 0 {
                report.outcome = RepairOutcome::Exported;
                break;
            }
        }
        repair.remove_copy()?;
        match report.outcome {
            RepairOutcome::Exported => Ok(report),
            _ => Err(why),
        }
    }
}

/// Reads all of a directory.
fn check(dir: &Path, parse: &dyn Fn(&str) -> ParseRules) -> Result<(), OpenError> {
    let store = SqliteStore::open_read_only(dir)?;
    for space in Space::ALL {
        store.range(space, 0..=MAX_KEY, &mut |_, _| Ok(()))?;
    }
    store.check_indexes()?;
    let store = SharedStore::new(Box::new(store));
    check_keys(&store)?;
    let manifest = restore::manifest(&**store.lock())?;
    let (_, config) = manifest.ok_or_else(|| no_checkpoint(&store))?;
    let parse = parse(&config.politeness.robots_name);
    let restored = restore::restore(Source::new(&store, &parse), false)?;
    check_queues(&mut restored.ok_or_else(|| no_checkpoint(&store))?)
}

/// Reads all segments of queues and outboxes, and all hosts.
fn check_queues(restored: &mut Restored) -> Result<(), OpenError> {
    // It returns whether all could be read, and the store says what could not.
    let _ = restored.state.visit_waiting(&mut |_| ControlFlow::Continue(()));
    restored.state.queues().dropped_entries().for_each(drop);
    restored.state.visit_outboxes(&mut |_| {});
    restored.segments.take_error().map_or(Ok(()), |error| Err(error.into()))
}

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
            | OpenError::Frontier(_)
    )
}

/// Turns damage into `None`.
fn found<T>(result: Result<T, OpenError>) -> Result<Option<T>, OpenError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_damage(&error) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Copies what can be read into a new store. Returns it with how robots.txt files are read, and how many rows of records are lost, if that can
/// be known.
fn copy(
    repair: &Repair,
    readable: &Readable,
    parse: &dyn Fn(&str) -> ParseRules,
) -> Result<(SharedStore, ParseRules, Option<u64>), OpenError> {
    let mut store = repair.new_store()?;
    let lost = readable.copy_to(&mut store)?;
    let manifest = found(restore::manifest(&store))?.flatten();
    let name = manifest.map(|(_, config)| config.politeness.robots_name);
    Ok((
        SharedStore::new(Box::new(store)),
        parse(&name.unwrap_or_default()),
        lost,
    ))
}

/// Removes the rows after the last state that is whole. Returns how many there were; `None` if no state is whole.
pub(super) fn go_back(store: &SharedStore, parse: &ParseRules) -> Result<Option<u64>, OpenError> {
    if found(check_keys(store).map_err(OpenError::from))?.is_none() {
        return Ok(None);
    }
    let Some(mut restored) = restore_rows(store, parse)? else {
        return Ok(None);
    };
    if found(check_queues(&mut restored))?.is_none() {
        return Ok(None);
    }
    let (covered, last) = (restored.manifest.covered, restored.next_row - 1);
    let mut store = store.lock();
    let last_stored = store.last_key(Space::Journal).unwrap_or(0).max(last);
    let mut batch = Batch::default();
    going_back::remove_after(last, &**store, &mut batch)?;
    // What was not synced before may still lack its outputs.
    let stated = going_back::stated_row(&**store).filter(|row| (covered..=last).contains(row));
    if stated.is_none() {
        going_back::state_last_row(&mut batch, last).map_err(OpenError::damaged)?;
    }
    store.commit(&batch, true)?;
    Ok(Some(last_stored - last))
}

/// `None` if there is no whole checkpoint.
fn restore_rows(store: &SharedStore, parse: &ParseRules) -> Result<Option<Restored>, OpenError> {
    let source = Source::new(store, parse);
    let mut last = MAX_KEY;
    loop {
        let Some(mut restored) = found(restore::restore_checkpoint(source))?.flatten() else {
            return Ok(None);
        };
        if found(restored.replay(source, last, false))?.is_some() {
            return Ok(Some(restored));
        }
        // A part of the calls of the row after it may have been made.
        last = restored.next_row - 1;
    }
}

/// Hands out all records, and all URLs that wait or that calls of the journal have offered.
fn export_all(store: &SharedStore, parse: &ParseRules, export: &mut Export<'_>) -> Result<(), OpenError> {
    let mut rows = Vec::new();
    pages::visit(&**store.lock(), false, &mut |page| export(Exported::Page(page)))?;
    if let Some(state) = found(of_checkpoint(store, parse))?.flatten() {
        let waiting = &mut |entry| {
            rows.push(entry);
            ControlFlow::Continue(())
        };
        // A segment that is missing is no obstacle here.
        let _ = state.visit_waiting(waiting);
        rows.extend(state.in_flight().cloned());
        state.visit_outboxes(&mut |link| rows.push(Entry::of(link)));
    }
    store.lock().range(Space::Journal, 0..=MAX_KEY, &mut |_, row| {
        rows.extend(journal::links_of(&row).iter().map(Entry::of));
        Ok(())
    })?;
    rows.into_iter().for_each(|entry| export(Exported::Waiting(entry)));
    Ok(())
}

fn of_checkpoint(store: &SharedStore, parse: &ParseRules) -> Result<Option<State>, OpenError> {
    let guard = store.lock();
    let Some((manifest, config)) = restore::manifest(&**guard)? else {
        return Ok(None);
    };
    let encoded = found(restore::state(&**guard, &manifest))?;
    let hosts = || restore::readable_hosts(&**store.lock(), &manifest, parse);
    drop(guard);
    let source = Source::new(store, parse);
    let segments = source.segments(manifest.next_segment);
    if let Some(encoded) = encoded {
        let seen_set = bloom_filter(&config)?.into();
        let decoded = State::decode(&encoded, seen_set, hosts(), &config, source.on_disk(&segments));
        if decoded.is_ok() {
            return decoded.map(Some);
        }
    }
    let mut state = State::new(&config, bloom_filter(&config)?)?;
    state.lie_on_disk(&config, hosts(), source.on_disk(&segments))?;
    Ok(Some(state))
}
