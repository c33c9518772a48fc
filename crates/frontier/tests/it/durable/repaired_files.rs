//! A small directory with a wrong bit in any page, or cut off anywhere, is repaired: to the state at one of the persists, or by an export of
//! what can be read, or it is refused with its reason.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use frontier::directory::{Exported, RepairOutcome, RepairReport};
use frontier::{Directory, OpenError, ParseRules, Partition, Reach};

use super::TemporaryDir;
use super::damaged_files::{Crawl, FILE, is_typed, records, write};
use super::parse;
use crate::common::{START, config, link};
use crate::shared::pair::{Place as _, picture};

const PAGE_BYTES: usize = 4096;

/// What became of many directories.
#[derive(Debug, Default)]
struct Tally {
    whole: usize,
    repaired: usize,
    exported: usize,
    refused: usize,
}

/// Repairs a directory. Returns the report, and the records and URLs that were exported.
fn repair(dir: &TemporaryDir) -> Result<(RepairReport, Vec<String>, Vec<String>), OpenError> {
    let parse: ParseRules = Arc::new(parse);
    let (mut records, mut urls) = (Vec::new(), Vec::new());
    let report = Directory::new(&dir.0).repair(&|_| Arc::clone(&parse), &mut |exported| match exported {
        Exported::Page(page) => records.push(format!("{page:?}")),
        Exported::Waiting(entry) => urls.push(entry.url.to_string()),
        _ => {}
    })?;
    Ok((report, records, urls))
}

fn check(crawl: &Crawl, dir: &TemporaryDir, what: &str, tally: &mut Tally) {
    let (report, put_out, urls) = match repair(dir) {
        Ok(repaired) => repaired,
        Err(error) => {
            tally.refused += 1;
            return is_typed(&error, what);
        }
    };
    let all: BTreeSet<_> = crawl.records.values().flatten().cloned().collect();
    assert!(put_out.iter().all(|record| all.contains(record)), "{what}");
    assert!(
        urls.iter().all(|url| url.starts_with("http://host")),
        "{what}: {urls:?}"
    );
    match report.outcome {
        RepairOutcome::Exported => {
            tally.exported += 1;
            assert_eq!((report.pages, report.urls), (put_out.len() as u64, urls.len() as u64));
            return assert!(report.pages + report.urls > 0, "{what}");
        }
        RepairOutcome::Whole => tally.whole += 1,
        _ => tally.repaired += 1,
    }
    let read = dir.read().unwrap_or_else(|error| panic!("{what}: {error}"));
    let expected = crawl.pictures.get(&read.attachment.unwrap_or_default());
    assert_eq!(Some(&picture(&read.frontier)), expected, "{what}");
    let found = records(&dir.0).unwrap();
    assert!(found.iter().all(|record| all.contains(record)), "{what}");
    let mut opened = dir.open(config(), START);
    opened.frontier.lease(opened.now, 3).unwrap();
    drop(opened);
    let again = repair(dir).unwrap().0.outcome;
    assert_eq!(again, RepairOutcome::Whole, "{what}: it is whole afterwards");
}

/// Flips a bit in each page of a file, and cuts the file off there. The bits have other places in each page.
fn damage(crawl: &Crawl, files: &[(&'static str, Vec<u8>)], which: usize) -> Tally {
    let (name, bytes) = &files[which];
    let mut tally = Tally::default();
    let mut check_file = |damaged: &[u8], what: &str| {
        let dir = TemporaryDir::new();
        write(&dir.0, files);
        fs::write(dir.0.join(name), damaged).unwrap();
        check(crawl, &dir, &format!("{name}, {what}"), &mut tally);
    };
    for (page, at) in (0..bytes.len()).step_by(PAGE_BYTES).enumerate() {
        let places = [7, 100, 1000 + 37 * page, 2000 + 101 * page, 4000].map(|place| at + place % PAGE_BYTES);
        for (place, bit) in places.into_iter().zip(page..) {
            let mut damaged = bytes.clone();
            let Some(byte) = damaged.get_mut(place) else { continue };
            *byte ^= 1 << (bit % 8);
            check_file(&damaged, &format!("a wrong bit in byte {place}"));
        }
        for end in [at, at + 1000] {
            check_file(&bytes[..end.min(bytes.len())], &format!("cut off at {end}"));
        }
    }
    tally
}

#[test]
fn a_damaged_database_goes_back_or_is_exported_or_is_refused() {
    let crawl = Crawl::new();
    let tally = damage(&crawl, &crawl.closed(), 0);
    assert!(
        tally.whole > 20 && tally.repaired > 0 && tally.exported > 0 && tally.refused > 5,
        "{tally:?}"
    );
}

#[test]
fn links_for_another_partition_are_looked_at_and_exported() {
    let partition = Partition::new(0, 2).unwrap();
    let mut config = config();
    (config.partition, config.scope.reach) = (Some(partition), Reach::Any);
    let links = (0..40).map(|n| link(&format!("http://host{n}.example/")));
    let away: Vec<_> = links.filter(|link| !partition.owns(&link.url)).collect();
    let dir = TemporaryDir::new();
    let mut frontier = dir.open(config, START).frontier;
    // Two batches, and one that is open.
    for links in away[..12].chunks(4) {
        frontier.offer(links, START).unwrap();
        if links != &away[8..12] {
            frontier.checkpoint(b"", START).unwrap();
        }
    }
    frontier.persist(b"", START).unwrap();
    drop(frontier);
    assert_eq!(repair(&dir).unwrap().0.outcome, RepairOutcome::Whole);

    let database = rusqlite::Connection::open(dir.0.join(FILE)).unwrap();
    let wrong = "UPDATE segment SET value = zeroblob(9) WHERE key = (SELECT min(key) FROM segment)";
    assert_eq!(database.execute(wrong, []).unwrap(), 1);
    drop(database);
    let (report, _, urls) = repair(&dir).unwrap();
    assert_eq!(report.outcome, RepairOutcome::Exported);
    let expected: BTreeSet<_> = away[4..12].iter().map(|link| link.url.as_str()).collect();
    assert_eq!(urls.iter().map(String::as_str).collect::<BTreeSet<_>>(), expected);
}

#[test]
fn a_damaged_log_goes_back() {
    let crawl = Crawl::new();
    let tally = damage(&crawl, &crawl.files, 1);
    assert!(tally.whole + tally.repaired > 50, "{tally:?}");
}

#[test]
fn a_log_that_lost_its_end_after_its_pages_had_moved_hides_no_later_state() {
    let crawl = Crawl::new();
    let mut files = crawl.closed();
    files.push(crawl.files[1].clone());
    let mut tally = Tally::default();
    for frames in [0, 1, 5, 10, 15] {
        let end = 32 + frames * (24 + PAGE_BYTES);
        let Some(left) = crawl.files[1].1.get(..end) else { break };
        files[1].1 = left.to_vec();
        let dir = TemporaryDir::new();
        write(&dir.0, &files);
        check(&crawl, &dir, &format!("{frames} frames are left"), &mut tally);
        let read = dir.read().unwrap();
        assert_eq!(read.attachment.unwrap(), b"persist 5", "{frames} frames are left");
    }
    assert_eq!(files[0].0, FILE);
}

#[test]
fn after_a_repair_nothing_counts_as_unsynced_though_it_is_lost_what_was_synced() {
    let crawl = Crawl::new();
    let dir = TemporaryDir::new();
    write(&dir.0, &crawl.closed());
    let database = rusqlite::Connection::open(dir.0.join(FILE)).unwrap();
    assert_eq!(database.execute("DELETE FROM meta WHERE key = 3", []).unwrap(), 1);
    drop(database);
    let directory = Directory::new(&dir.0);
    assert!(matches!(directory.unsynced(), Err(OpenError::Damaged(_))));
    repair(&dir).unwrap();
    assert_eq!(directory.unsynced().unwrap(), None);
}
