//! The files of a directory, cut off anywhere or with a wrong bit anywhere, are repaired: to the state at one of the persists, or without
//! what the report names.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use frontier::durable::{RepairOutcome, RepairReport, Salvaged};
use frontier::{Frontier, OpenError, ParseRules};

use super::TemporaryDir;
use super::damaged_files::{Crawl, FILE, config, is_typed, places, records, write};
use super::parse;
use crate::call_sequences::pair::picture;
use crate::common::START;

/// The losses of a frontier that was never repaired, in its picture.
const NO_LOSSES: &str = "RepairLosses { pages: 0, record_rows: 0 }";

/// What became of many directories.
#[derive(Debug, Default)]
struct Tally {
    whole: usize,
    repaired: usize,
    /// Of these without a loss.
    wholly: usize,
    not_continued: usize,
    refused: usize,
}

/// Repairs a directory. Returns the report, and the records that were handed out.
fn repair(dir: &TemporaryDir) -> Result<(RepairReport, Vec<String>), OpenError> {
    let parse: ParseRules = Arc::new(parse);
    let mut put_out = Vec::new();
    let report = Frontier::repair(&dir.0, &|_| Arc::clone(&parse), &mut |salvaged| {
        if let Salvaged::Record(record) = salvaged {
            put_out.push(format!("{record:?}"));
        }
    })?;
    Ok((report, put_out))
}

fn check(crawl: &Crawl, dir: &TemporaryDir, what: &str, tally: &mut Tally) {
    let (report, put_out) = match repair(dir) {
        Ok(repaired) => repaired,
        Err(error) => {
            tally.refused += 1;
            return is_typed(&error, what);
        }
    };
    let all: BTreeSet<_> = crawl.records.values().flatten().cloned().collect();
    match report.outcome {
        RepairOutcome::NotContinued => {
            tally.not_continued += 1;
            assert!(report.has_losses());
            return assert!(put_out.iter().all(|record| all.contains(record)), "{what}");
        }
        RepairOutcome::Whole => tally.whole += 1,
        _ => tally.repaired += 1,
    }
    tally.wholly += usize::from(report.outcome == RepairOutcome::Repaired && !report.has_losses());
    let read = Frontier::read(&dir.0, Arc::new(parse)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let attachment = read.attachment.unwrap();
    let repairs = read.frontier.report().repairs;
    assert_eq!(
        (repairs.pages, repairs.record_rows),
        (
            report.urls_lost.values().sum::<u64>() + report.urls_lost_with_hosts,
            report.record_rows_lost
        ),
        "{what}: what is lost is remembered"
    );
    if !report.is_without_hosts {
        let without_losses = picture(&read.frontier).replace(&format!("{repairs:?}"), NO_LOSSES);
        assert_eq!(Some(&without_losses), crawl.pictures.get(&attachment), "{what}");
    }
    let mut found = records(&dir.0).unwrap();
    found.extend(put_out);
    assert!(found.iter().all(|record| all.contains(record)), "{what}");
    if report.outcome == RepairOutcome::Repaired && !report.has_losses() {
        assert_eq!(
            found.into_iter().collect::<BTreeSet<_>>(),
            all,
            "{what}: a record is lost"
        );
    }
    let mut opened = Frontier::open(&dir.0, config(), START, Arc::new(parse)).unwrap();
    opened.frontier.lease(opened.now, 3).unwrap();
    drop(opened);
    assert_eq!(
        repair(dir).unwrap().0.outcome,
        RepairOutcome::Whole,
        "{what}: it is whole afterwards"
    );
}

/// Cuts a file off and flips a bit of it, at each of the places.
fn damage(
    crawl: &Crawl,
    files: &[(&'static str, Vec<u8>)],
    which: usize,
    places: impl Iterator<Item = usize>,
) -> Tally {
    let (name, bytes) = &files[which];
    let (mut tally, mut flipped) = (Tally::default(), bytes.clone());
    for at in places.take_while(|at| *at < bytes.len()) {
        let bit = 1 << ((at / 5) % 8);
        flipped[at] ^= bit;
        for (damaged, what) in [(&flipped[..], "a wrong bit in"), (&bytes[..at], "cut off at")] {
            let dir = TemporaryDir::new();
            write(&dir.0, files);
            fs::write(dir.0.join(name), damaged).unwrap();
            check(crawl, &dir, &format!("{name}, {what} byte {at}"), &mut tally);
        }
        flipped[at] ^= bit;
    }
    tally
}

#[test]
fn a_damaged_database_is_repaired_or_handed_out() {
    let crawl = Crawl::new();
    let closed = crawl.closed();
    let tally = damage(&crawl, &closed, 0, places(24, 401));
    assert!(
        tally.whole > 20 && tally.repaired > 10 && tally.wholly > 0 && tally.not_continued > 10,
        "{tally:?}"
    );
}

#[test]
fn a_damaged_log_is_repaired() {
    let crawl = Crawl::new();
    let tally = damage(&crawl, &crawl.files, 1, places(0, 1301));
    assert!(tally.whole + tally.repaired > 50, "{tally:?}");
}

#[test]
fn a_log_that_was_cut_off_after_its_pages_had_moved_hides_no_loss() {
    let crawl = Crawl::new();
    let mut files = crawl.closed();
    files.push(crawl.files[1].clone());
    let mut tally = Tally::default();
    // The head of the log has the length of a page: <https://sqlite.org/fileformat2.html#walformat>.
    let page_bytes = crawl.files[1].1[8..12].try_into().map(u32::from_be_bytes).unwrap() as usize;
    for frames in 0.. {
        let end = 32 + frames * (24 + page_bytes);
        let Some(left) = crawl.files[1].1.get(..end) else { break };
        files[1].1 = left.to_vec();
        let dir = TemporaryDir::new();
        write(&dir.0, &files);
        let what = format!("{frames} frames are left");
        // The database alone has all rows.
        if let Ok(read) = Frontier::read(&dir.0, Arc::new(parse)) {
            assert_eq!(read.attachment.unwrap(), b"persist 5", "{what}: later rows are hidden");
        }
        check(&crawl, &dir, &what, &mut tally);
    }
    assert!(tally.whole > 1 && tally.repaired > 5, "{tally:?}");
}

#[test]
fn a_log_without_its_database_is_repaired_as_far_as_it_goes() {
    let crawl = Crawl::new();
    let dir = TemporaryDir::new();
    write(&dir.0, &crawl.files);
    fs::remove_file(dir.0.join(FILE)).unwrap();
    let mut tally = Tally::default();
    check(&crawl, &dir, "without the database", &mut tally);
    assert_eq!(tally.refused, 0, "{tally:?}");
}

#[test]
#[ignore = "takes minutes; the tests above take every n-th byte of the same files"]
fn every_byte_of_the_files_may_be_wrong_or_the_end() {
    let crawl = Crawl::new();
    println!("log: {:?}", damage(&crawl, &crawl.files, 1, places(0, 1)));
    println!("database: {:?}", damage(&crawl, &crawl.closed(), 0, places(0, 1)));
}
