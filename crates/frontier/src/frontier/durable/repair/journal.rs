//! The journal of a damaged store: the rows that the state can contain, and what those behind them have.

use super::super::calls::{Call, StoredLinks};
use super::super::error::OpenError;
use super::super::record;
use super::super::restore::Restored;
use super::super::shelf::SharedStore;
use super::{PutOut, RepairReport, Salvaged, is_damage};
use crate::entry::Entry;
use crate::link::Link;
use crate::rules::ParseRules;
use crate::store::{MAX_KEY, Space};

/// Makes the calls of the journal again, up to the first row that is missing or has another result.
pub(super) fn restore_rows(
    store: &SharedStore,
    parse: &ParseRules,
    mut restored: Restored,
    at_checkpoint: impl Fn() -> Result<Option<Restored>, OpenError>,
) -> Result<Option<Restored>, OpenError> {
    restored.frontier.sieve.set_silent(true);
    let end = make_rows(store, parse, &mut restored, MAX_KEY)?;
    if !end.is_whole {
        // A part of the calls of the row that failed was made.
        let Some(again) = at_checkpoint()? else { return Ok(None) };
        restored = again;
        restored.frontier.sieve.set_silent(true);
        make_rows(store, parse, &mut restored, end.next_row - 1)?;
    }
    if let Some(keys) = restored.frontier.sieve.filter().keys() {
        keys.lock().journal_has_ended();
    }
    Ok(Some(restored))
}

struct JournalEnd {
    /// The row after the last one whose calls were made.
    next_row: u64,
    /// Whether no row failed.
    is_whole: bool,
}

/// Makes the calls of the rows up to one of them.
fn make_rows(
    store: &SharedStore,
    parse: &ParseRules,
    restored: &mut Restored,
    last: u64,
) -> Result<JournalEnd, OpenError> {
    while restored.next_row <= last {
        let next_row = restored.next_row;
        let row = store.lock().last(Space::Journal, next_row)?;
        let Some((_, row)) = row.filter(|(key, _)| *key == next_row) else {
            break;
        };
        match restored.make_calls(next_row, &row, parse) {
            Ok(()) => {}
            Err(error) if is_damage(&error) => {
                return Ok(JournalEnd {
                    next_row,
                    is_whole: false,
                });
            }
            Err(other) => return Err(other),
        }
    }
    Ok(JournalEnd {
        next_row: restored.next_row,
        is_whole: true,
    })
}

/// Hands out the rows behind the last one of the state: their records, and the URLs that their calls offered.
pub(super) fn put_rest_out(
    store: &SharedStore,
    first: u64,
    report: &mut RepairReport,
    put_out: &mut PutOut<'_>,
) -> Result<(), OpenError> {
    let store = store.lock();
    store.range(Space::Record, first..=MAX_KEY, &mut |_, row| {
        // What follows a record that cannot be read is lost with it.
        let _ = record::visit_row(&row, &mut |record| {
            report.records_put_out += 1;
            put_out(Salvaged::Record(record));
        });
        Ok(())
    })?;
    let mut rows = 0;
    store.range(Space::Journal, first..=MAX_KEY, &mut |_, row| {
        rows += 1;
        for link in links_of(&row) {
            report.urls_put_out += 1;
            put_out(Salvaged::Waiting(Entry::of(&link)));
        }
        Ok(())
    })?;
    report.journal_rows_dropped += rows + report.missing_rows(Space::Journal);
    Ok(())
}

/// Returns the new URLs that the calls of a row offered, as far as they can be read.
fn links_of(row: &[u8]) -> Vec<Link> {
    let mut found = Vec::new();
    let Ok((_, mut rest)) = postcard::take_from_bytes::<&serde_bytes::Bytes>(row) else {
        return found;
    };
    while let Ok((call, after)) = postcard::take_from_bytes::<Call<'_>>(rest) {
        rest = after;
        let mut add = |links: &StoredLinks<'_>| found.extend(links.read().into_iter().flat_map(|(links, _)| links));
        match &call {
            Call::AddSeed { url, is_new: true, .. } => found.extend(url.read().map(Link::seed)),
            Call::Offer { links, .. } => add(links),
            Call::Settle { settlements, .. } => settlements.iter().for_each(|one| add(&one.links)),
            _ => {}
        }
    }
    found
}
