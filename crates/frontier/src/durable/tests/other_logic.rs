//! A journal of another logic is dropped, and a stored directory is read as it was written.

#![cfg(test)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};

use super::super::checkpoint::LOGIC;
use super::super::restore::rows_from;
use super::super::segments::SharedStore;
use super::super::{going_back, journal};
use super::common::{self, Forbid, Orders as _, START, at, commit, config, end, failing, give_rules, next, parse, url};
use super::crash_images::{check, pages_at};
use super::damage::{manifest, with_manifest};
use super::pair::picture;
use super::run::{Run, config_of, steps_of};
use super::seen_sets::SeenSet;
use super::stores::Recorder;
use crate::exchange::LinkBatch;
use crate::simulation::change_logic;
use crate::sqlite::{FORMAT, SqliteStore};
use crate::state::Call;
use crate::store::{MAX_KEY, Space, Store};
use crate::{
    CrawlPolicy, Directory, FailureKind, Frontier, FrontierConfig, Leasing, Link, OpenError, Outcome, Partition,
    PolitenessConfig, Purpose, Refetch, SeenSetConfig, StoreError, Time,
};

#[test]
fn every_store_of_another_logic_goes_back_to_its_checkpoint_and_on_from_there() {
    for seen_set in [SeenSet::Exact(10), SeenSet::Growing(1)] {
        let config = FrontierConfig {
            sync_interval: Duration::from_secs(20),
            ..config_of(seen_set)
        };
        let run = Run::with(300, config);
        let recorder = Recorder::keeping_images();
        run.drive_new(&recorder);
        let pages = pages_at(&recorder.images());
        let (mut dropped, mut are_synced) = (0, BTreeSet::new());
        for (number, image) in recorder.images().into_iter().enumerate().step_by(3) {
            let checkpoint = manifest(&image);
            let mut back = with_manifest(&image, |manifest| manifest.logic = LOGIC - 1);
            let other = going_back::other_logic(&back).unwrap();
            let last = image.last_key(Space::Journal).unwrap_or_default();
            assert_eq!(other.is_some(), last > checkpoint.covered, "image {number}");
            if let Some(other) = other {
                dropped += other.commits;
                are_synced.insert(other.are_synced);
                assert_eq!(other.at_checkpoint, checkpoint.attachment);
            }
            going_back::discard_other_logic(&mut back, &run.config).unwrap();
            assert!(going_back::other_logic(&back).unwrap().is_none());
            assert!(
                going_back::stated_row(&back) <= Some(checkpoint.covered),
                "what comes next is not synced"
            );
            assert_eq!(
                check(&run, &back),
                steps_of(Some(&checkpoint.attachment)),
                "image {number}"
            );
            assert!(back.space(Space::Page) == &pages[&checkpoint.covered], "image {number}");
        }
        assert!(dropped > 100, "{dropped}");
        assert_eq!(are_synced.len(), 2);
    }
}

#[test]
fn under_options_that_cannot_continue_no_journal_is_dropped() {
    let run = Run::new(100);
    let recorder = Recorder::default();
    run.drive_new(&recorder);
    let mut other = with_manifest(&recorder.image(), |manifest| manifest.logic = LOGIC + 1);
    let before = other.clone();
    let wanted = FrontierConfig {
        seen_set: SeenSetConfig {
            capacity: run.config.seen_set.capacity + 1,
            ..run.config.seen_set
        },
        ..run.config
    };
    let refused = going_back::discard_other_logic(&mut other, &wanted).unwrap_err();
    assert!(matches!(refused, OpenError::Changed { .. }), "{refused}");
    assert!(other == before);
}

/// What to do when the next test fails.
const CHANGED: &str = "a directory of this logic and format is read in another way than it was written. If it was released: raise LOGIC if the calls do \
     something else, or VERSION if something is stored in another form. Then, or if only the text of a report is another one, store a directory and what \
     is read of it: cargo test -p crawl-frontier --all-features stores_a_directory -- --ignored";

/// The directories that were stored, one of each logic and format: the database, compressed, and what is read of it.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/durable/tests/stored")
}

fn stored_name() -> String {
    format!("format-{FORMAT}-logic-{LOGIC}")
}

struct Unpacked(PathBuf);

impl Unpacked {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("frontier-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        Self(dir)
    }

    fn of(stored: &Path, name: &str) -> Self {
        let dir = Self::new(name);
        let bytes = decompress_size_prepended(&fs::read(stored).unwrap()).unwrap();
        fs::write(dir.0.join("frontier.sqlite"), bytes).unwrap();
        dir
    }

    /// All that is read of it.
    fn text(&self) -> Result<String, OpenError> {
        let opened = Directory::new(&self.0).read(Arc::new(parse))?;
        let mut records = Vec::new();
        Directory::new(&self.0).visit_pages(false, &mut |page| records.push(format!("{page:?}")))?;
        let store: Box<dyn Store> = Box::new(SqliteStore::open_read_only(&self.0)?);
        let calls = calls(&SharedStore::new(store));
        let attachment = String::from_utf8(opened.attachment.unwrap()).unwrap();
        let picture = picture(&opened.frontier);
        Ok(format!(
            "{attachment}\n{picture}\n{}\n{}\n",
            records.join("\n"),
            calls.join("\n")
        ))
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The calls of a journal.
fn calls(store: &SharedStore) -> Vec<String> {
    let first = store.lock().last_key(Space::Journal).unwrap();
    let mut keys = Vec::new();
    let mut visit = |key, _| {
        keys.push(key);
        Ok(())
    };
    store.lock().range(Space::Journal, 0..=MAX_KEY, &mut visit).unwrap();
    assert_eq!(keys.last(), Some(&first));
    let mut found = Vec::new();
    for key in keys {
        let (_, row) = rows_from(store, key).unwrap().swap_remove(0);
        let (_, mut rest) = journal::split(&row).unwrap();
        while !rest.is_empty() {
            let (stored, after) = postcard::take_from_bytes::<(Time, u32, Call<'_>)>(rest).unwrap();
            found.push(format!("{stored:?}"));
            rest = after;
        }
    }
    found
}

#[test]
fn a_stored_directory_is_read_as_it_was_written_and_one_of_another_logic_or_format_is_refused() {
    let mut is_present = false;
    for stored in fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()) {
        if stored.extension().is_none_or(|extension| extension != "lz4") {
            continue;
        }
        let name = stored.file_stem().unwrap().to_str().unwrap();
        let dir = Unpacked::of(&stored, name);
        if name == stored_name() {
            is_present = true;
            let expected = fs::read_to_string(stored.with_extension("txt")).unwrap();
            match dir.text() {
                Ok(text) => assert!(text == expected, "{CHANGED}:\n{text}"),
                Err(error) => panic!("{CHANGED}: {error}"),
            }
            change_logic(&dir.0).unwrap();
        }
        if name.starts_with(&format!("format-{FORMAT}-")) {
            goes_back(&dir);
            change_format(&dir.0.join("frontier.sqlite"));
        }
        let refused = dir.text();
        assert!(
            matches!(refused, Err(OpenError::Store(StoreError::Version { .. }))),
            "{name}"
        );
    }
    assert!(is_present, "{}: {CHANGED}", stored_name());
}

/// Checks that a directory of another logic is refused, and continued once its journal is dropped.
fn goes_back(dir: &Unpacked) {
    assert!(matches!(dir.text(), Err(OpenError::OtherLogic { .. })));
    let directory = Directory::new(&dir.0);
    let wanted = directory.config().unwrap().unwrap();
    let open = || Frontier::open(&dir.0, wanted.clone(), at(1000), Arc::new(parse));
    assert!(matches!(open(), Err(OpenError::OtherLogic { .. })));
    let other = directory.other_logic().unwrap().unwrap();
    directory.discard_other_logic(&wanted).unwrap();
    let opened = open().unwrap();
    assert_eq!(opened.attachment.unwrap(), other.at_checkpoint);
    assert!(opened.frontier.report().pages.done > 0);
}

/// Changes the version of the format, which lies in the head of a database, as big-endian bytes (<https://sqlite.org/fileformat.html>).
fn change_format(database: &Path) {
    let mut bytes = fs::read(database).unwrap();
    bytes[60..64].copy_from_slice(&(FORMAT - 1).to_be_bytes());
    fs::write(database, bytes).unwrap();
}

/// The first URL of this kind that belongs to a partition.
fn url_of(owner: u32, kind: &str) -> String {
    let partition = Partition::new(0, 2).unwrap();
    let mut urls = (0..).map(|n| format!("http://{kind}{n}.example/"));
    urls.find(|text| partition.owner_of(&url(text)) == owner).unwrap()
}

fn links(owner: u32, kinds: &[&str]) -> Vec<Link> {
    let link = |kind: &&str| Link::found(url(&url_of(owner, kind)), 1, "http://page.example/".into());
    kinds.iter().map(link).collect()
}

fn partition(index: u32) -> FrontierConfig {
    FrontierConfig {
        partition: Some(Partition::new(index, 2).unwrap()),
        politeness: PolitenessConfig {
            ask_robots: true,
            delay: Duration::from_millis(500),
            ..config().politeness
        },
        ..config()
    }
}

/// Ends all requests, at the time of the last: pages of hosts that begin with `fails` fail.
fn drain(frontier: &mut Frontier, now: &mut Time) {
    while !matches!(frontier.lease(*now, 0).unwrap(), Leasing::Drained) {
        let lease = next(frontier, now);
        *now = *now + Duration::from_millis(300);
        match &lease.entry.purpose {
            Purpose::Robots(_) => {
                give_rules(frontier, &lease, Forbid::below("/no 700"), *now);
            }
            _ if lease.entry.url.starts_with("http://fails") => {
                commit(frontier, end(&lease, failing(FailureKind::Malformed)), *now);
            }
            _ => {
                let found = links(0, &["a", "b"]).into_iter().chain(links(1, &["c"])).collect();
                commit(frontier, end(&lease, Outcome::Done).with_links(found), *now);
            }
        }
    }
}

fn batch_of_other(now: Time) -> LinkBatch {
    let mut other = common::frontier(partition(1));
    other.offer(&links(0, &["d", "fails"]), now).unwrap();
    other.persist(b"", now).unwrap();
    other.outgoing(0, 0).unwrap().unwrap()
}

/// Stores a directory in whose journal are all kinds of calls, and what is read of it.
#[test]
#[ignore = "it writes what the other test reads"]
fn stores_a_directory() {
    let dir = Unpacked::new("new");
    let mut frontier = Frontier::open(&dir.0, partition(0), START, Arc::new(parse))
        .unwrap()
        .frontier;
    let mut now = START;
    frontier.add_seed(&url(&url_of(0, "seed")), now).unwrap();
    drain(&mut frontier, &mut now);
    frontier.checkpoint(b"at the checkpoint", now).unwrap();

    let later = |now: Time| now + Duration::from_secs(2);
    now = later(now);
    let seed = url(&url_of(0, "other"));
    let with_data = Link::seed(seed.clone()).with_data(b"7").unwrap();
    frontier.add_seed(with_data, now).unwrap();
    frontier.tell(b"to all", now).unwrap();
    frontier.offer(&links(0, &["e", "f"]), now).unwrap();
    frontier.offer(&links(1, &["g"]), now).unwrap();
    let Leasing::Ready(leases) = frontier.lease(now, 9).unwrap() else {
        panic!("nothing is ready");
    };
    frontier.give_back(&[leases[0].id], now).unwrap();
    frontier.release_leases(now).unwrap();
    frontier
        .set_delay(&seed.host(), Duration::from_millis(900), now)
        .unwrap();
    frontier.block(&seed.host(), later(now), now).unwrap();
    let ordered = CrawlPolicy {
        max_depth: Some(9),
        dropped: vec!["/nothing".to_owned()],
        ..CrawlPolicy::default()
    };
    frontier.set_crawl_policy(&ordered, now).unwrap();
    // It closes the batches.
    frontier.persist(b"synced", now).unwrap();
    frontier.receive(1, &batch_of_other(now), now).unwrap();
    let sent = frontier.peer(1).unwrap().sent;
    frontier.acknowledged(1, sent, now).unwrap();
    frontier.accept_loss(1, Some(sent), None, now).unwrap();
    drain(&mut frontier, &mut now);
    frontier.persist(b"drained", later(now)).unwrap();
    now = later(later(now));
    frontier
        .queue_again(Refetch::OlderThan(Duration::from_secs(1)), 9, now)
        .unwrap();
    drain(&mut frontier, &mut now);
    frontier.persist(b"fetched again", now).unwrap();
    frontier.queue_again(Refetch::Unanswered, 9, now).unwrap();
    frontier.persist(b"at the end", now).unwrap();
    drop(frontier);

    let bytes = fs::read(dir.0.join("frontier.sqlite")).unwrap();
    let text = dir.text().unwrap();
    let kinds = [
        "AddSeed",
        "Offer",
        "Lease",
        "Settle",
        "SetPolicy",
        "SetCrawlPolicy",
        "ReleaseLeases",
        "GiveBack",
        "CloseBatches",
        "Receive",
        "Acknowledged",
        "AcceptLoss",
        "Tell",
        "BeginRetry",
        "QueueAgain",
    ];
    for kind in kinds {
        assert!(text.contains(&format!(", {kind}")), "no call {kind}:\n{text}");
    }
    fs::write(folder().join(stored_name() + ".lz4"), compress_prepend_size(&bytes)).unwrap();
    fs::write(folder().join(stored_name() + ".txt"), text).unwrap();
}
