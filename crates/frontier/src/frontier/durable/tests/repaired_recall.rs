//! Links that were to be recalled, or were recalled in a row that is lost: the frontier remembers that some may be missing.

use std::collections::BTreeSet;

use super::super::repair::RepairOutcome;
use super::common::START;
use super::damage::changed_by;
use super::recall::{ALL_AT_ONCE, recalling, spooled};
use super::repair::{mend, waiting};
use super::stores::{open_sized, read_store};
use crate::store::{MAX_KEY, MemoryStore, Space};

#[test]
fn links_that_a_dropped_row_recalled_are_put_out() {
    let (recorder, mut frontier) = spooled();
    let before = waiting(&frontier);
    frontier.persist(b"another row", START).unwrap();
    drop(frontier);
    let row = *recorder.image().space(Space::Journal).keys().last().unwrap();
    let opened = open_sized(recorder.clone(), recalling(), START, ALL_AT_ONCE).unwrap();
    let recalled: BTreeSet<_> = waiting(&opened.frontier).difference(&before).cloned().collect();
    assert!(recalled.len() > 20, "{recalled:?}");
    let whole = recorder.image();
    let gap = changed_by(&whole, |batch| batch.delete(Space::Journal, row..=row));
    let mended = mend(&gap, &whole);
    assert_eq!(mended.report.outcome, RepairOutcome::Repaired);
    assert_eq!(mended.report.recalls_dropped, 1);
    let lacks_links = |store: MemoryStore| read_store(store).unwrap().frontier.report().repairs.links_to_recall;
    assert!(lacks_links(mended.store));
    let shorter = changed_by(&whole, |batch| batch.delete(Space::Journal, row..=MAX_KEY));
    assert!(lacks_links(mend(&shorter, &whole).store), "nobody knows what was in it");
    assert!(!lacks_links(mend(&shorter, &shorter).store));
    let lost: Vec<_> = recalled.difference(&mended.urls).collect();
    assert!(lost.is_empty(), "{lost:?}");
}
