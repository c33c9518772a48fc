//! The store against a model, beside other processes, on a full disk. `damage`: damaged files; `files`: their sizes.

#![cfg(test)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::{ControlFlow, Deref};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;

use super::{SIZES, Sizes, SqliteStore};
use crate::freshness::Observed;
use crate::store::{Batch, Change, MemoryStore, PageOrder, Space, Store, StoreError};
use crate::{
    FailureKind, Fingerprint, NotFetched, OwnPlan, PageEnd, StoredAnswer, StoredPage, Time, Validators, Visits,
};

mod damage;
mod files;

/// A folder that is removed at the end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "frontier-store-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Contents = BTreeMap<(u8, u64), Vec<u8>>;

/// Reads all; `found` has what was read also if that fails.
fn read(store: &dyn Store, found: &mut Contents) -> Result<(), StoreError> {
    for space in Space::ALL {
        let mut visit = |key, value| {
            found.insert((space as u8, key), value);
            Ok(())
        };
        store.range(space, 0..=u64::MAX, &mut visit)?;
    }
    Ok(())
}

fn contents(store: &dyn Store) -> Contents {
    let mut found = Contents::new();
    read(store, &mut found).unwrap();
    found
}

fn batch(changes: impl IntoIterator<Item = Change>) -> Batch {
    Batch {
        changes: changes.into_iter().collect(),
    }
}

fn put(space: Space, key: u64, value: &[u8]) -> Batch {
    batch([Change::Put(space, key, value.to_vec())])
}

/// Bytes that do not compress.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}

/// A page that is made of bytes: all fields differ for some bytes.
fn page(bytes: &[u8]) -> Vec<u8> {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
    let text = |at: usize| String::from_utf8_lossy(bytes.get(at..).unwrap_or_default()).into_owned();
    let some = |at: usize| (byte(at) % 2 == 1).then_some(u64::from(byte(at)));
    let time = |at: usize| some(at).map(|number| Time::from_millis(u64::MAX - number));
    let ends = [
        PageEnd::Done,
        PageEnd::Redirected,
        PageEnd::Rejected,
        PageEnd::GaveUp(FailureKind::HeadTooLarge),
        PageEnd::GaveUp(FailureKind::Status),
        PageEnd::NotFetched(NotFetched::HostDown),
        PageEnd::NotFetched(NotFetched::NearDuplicates),
    ];
    let page = StoredPage {
        saved_in: byte(0).into(),
        url: format!("https://example.com/{}", text(0)).into(),
        key: some(1).map(|_| text(2).into()),
        end: ends[usize::from(byte(2)) % ends.len()],
        time: Time::from_millis(byte(3).into()),
        depth: u32::MAX - u32::from(byte(4)),
        class: (byte(21) % 8).try_into().unwrap(),
        attempts: byte(5).into(),
        referrer: some(6).map(|at| format!("https://example.com/{}", text(at as usize % 2)).into()),
        embedded: byte(7),
        data: some(20).map(|_| {
            std::sync::Arc::<[u8]>::from(&bytes[..bytes.len().min(9)])
                .try_into()
                .unwrap()
        }),
        cause: some(8).map(|_| FailureKind::Unresolved),
        answer: StoredAnswer {
            status: some(9).map(|status| status as u16),
            target: some(10).map(|_| text(1).into()),
            validators: Validators {
                etag: some(11).map(|_| text(3)),
                last_modified: some(12).map(|_| text(4)),
            },
            fingerprint: Fingerprint::new(
                some(13).map(|hash| (u128::MAX - u128::from(hash)).into()),
                some(14).map(|hash| (u64::MAX - hash).into()),
            ),
        },
        visits: Visits {
            count: byte(15).into(),
            changes: byte(16).into(),
            first: time(17),
            last: time(18),
            last_change: time(19),
        },
        next_visit: some(22).map(Time::from_millis),
        own_plan: some(24).map(|number| OwnPlan::of_number(number.cast_signed() - 128)),
        observed: some(23).map(|seen| Observed {
            changes: seen as u32,
            changed_over: u64::MAX - seen,
            unchanged_over: seen,
        }),
    };
    postcard::to_allocvec(&page).unwrap()
}

#[derive(Debug)]
enum Step {
    Commit(Batch, bool),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let space = || prop::sample::select(&Space::ALL[..]);
    let key = || prop_oneof![8 => 0..40_u64, 1 => super::MAX_KEY - 2..=super::MAX_KEY];
    let value = prop_oneof![
        vec(any::<u8>(), 0..80),
        (0..9000_usize).prop_map(|len| b"https://example.com/".iter().copied().cycle().take(len).collect()),
        (0..9000_usize, any::<u64>()).prop_map(|(len, seed)| noise(len, seed)),
    ];
    let change = prop_oneof![
        4 => (space(), key(), value).prop_map(|(space, key, value)| match space {
            Space::Page => Change::Put(space, key, page(&value)),
            _ => Change::Put(space, key, value),
        }),
        1 => (space(), key(), key()).prop_map(|(space, a, b)| Change::Delete(space, a..=b)),
        1 => space().prop_map(|space| Change::Delete(space, 10..=u64::MAX)),
    ];
    let step = prop_oneof![
        6 => (vec(change, 0..12), any::<bool>()).prop_map(|(changes, sync)| Step::Commit(batch(changes), sync)),
        1 => Just(()).prop_map(|()| Step::Reopen),
    ];
    vec(step, 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::cases(60), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_answers_as_a_map_does_also_after_it_was_reopened(steps in steps(), small_pages: bool) {
        let folder = Folder::new();
        let sizes = Sizes { page_bytes: if small_pages { 512 } else { SIZES.page_bytes }, ..SIZES };
        let mut store = Some(SqliteStore::open_sized(&folder, sizes).unwrap());
        let mut model = MemoryStore::default();
        for step in &steps {
            match step {
                Step::Commit(batch, sync) => {
                    store.as_mut().unwrap().commit(batch, *sync).unwrap();
                    model.commit(batch, *sync).unwrap();
                }
                Step::Reopen => {
                    drop(store.take());
                    store = Some(SqliteStore::open_sized(&folder, sizes).unwrap());
                }
            }
            prop_assert_eq!(contents(store.as_ref().unwrap()), contents(&model));
        }
        let store = store.as_ref().unwrap();
        let some_pages = |store: &dyn Store, order, from, most| {
            let mut found = Vec::new();
            store.pages(order, from, &mut |number, page| {
                found.push((number, page));
                Ok(if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            }).unwrap();
            found
        };
        for order in [PageOrder::Saved, PageOrder::Failed, PageOrder::Unanswered, PageOrder::Due] {
            for (from, most) in [((0, 0), 100), ((10, 0), 3), ((0, 5), 2), ((200, 40), 100)] {
                prop_assert_eq!(some_pages(store, order, from, most), some_pages(&model, order, from, most));
            }
        }
        for space in Space::ALL {
            for key in (0..42).chain([super::MAX_KEY - 1, u64::MAX]) {
                prop_assert_eq!(store.last(space, key).unwrap(), model.last(space, key).unwrap());
                let (mut found, mut expected) = (Vec::new(), Vec::new());
                store.range(space, key..=key + 5.min(u64::MAX - key), &mut |key, value| { found.push((key, value)); Ok(()) }).unwrap();
                model.range(space, key..=key + 5.min(u64::MAX - key), &mut |key, value| { expected.push((key, value)); Ok(()) }).unwrap();
                prop_assert_eq!(found, expected);
            }
        }
    }
}

#[test]
fn a_store_that_is_open_is_not_opened_again() {
    let folder = Folder::new();
    let first = SqliteStore::open(&folder).unwrap();
    let refused = SqliteStore::open(&folder).unwrap_err();
    assert!(
        matches!(&refused, StoreError::Locked { holder, .. } if *holder == Some(std::process::id())),
        "{refused}"
    );
    drop(first);
    SqliteStore::open(&folder).unwrap();
}

const CHILD: &str = "FRONTIER_STORE_OF_A_CHILD";

/// The child of the next test: writes to a store until it is killed.
#[test]
fn a_child_process_writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(CHILD) else {
        return;
    };
    let mut store = SqliteStore::open(Path::new(&dir)).unwrap();
    for key in 0.. {
        store
            .commit(&put(Space::Journal, key, &noise(500, key)), false)
            .unwrap();
        println!("\ncommitted {key}");
    }
}

#[test]
fn a_killed_process_leaves_every_commit_and_no_lock() {
    let folder = Folder::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "sqlite::tests::a_child_process_writes_until_it_is_killed",
            "--nocapture",
        ])
        .env(CHILD, &*folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "committed 300"));
    let refused = SqliteStore::open(&folder).unwrap_err();
    assert!(
        matches!(refused, StoreError::Locked { holder, .. } if holder == Some(child.id())),
        "{refused}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let told = lines
        .filter_map(|line| line.strip_prefix("committed ")?.parse().ok())
        .last();
    let told: u64 = told.unwrap_or(300);

    let store = SqliteStore::open(&folder).unwrap();
    let (last, _) = store.last(Space::Journal, u64::MAX).unwrap().unwrap();
    assert!(last >= told, "{last} of {told}");
    let expected: Contents = (0..=last)
        .map(|key| ((Space::Journal as u8, key), noise(500, key)))
        .collect();
    assert!(contents(&store) == expected);
}

#[test]
fn a_reader_sees_one_state_while_another_connection_writes() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    for key in 0..20 {
        store.commit(&put(Space::Segment, key, b"early"), false).unwrap();
    }
    let reader = SqliteStore::open_read_only(&folder).unwrap();
    let early = contents(&reader);
    assert_eq!(early.len(), 20);
    store
        .commit(&batch([Change::Delete(Space::Segment, 0..=9)]), true)
        .unwrap();
    for key in 5..40 {
        store.commit(&put(Space::Segment, key, b"late"), false).unwrap();
    }
    assert_eq!(contents(&reader), early);
    assert_eq!(
        contents(&SqliteStore::open_read_only(&folder).unwrap()),
        contents(&store)
    );
}

#[test]
fn a_reader_cannot_write() {
    let folder = Folder::new();
    drop(SqliteStore::open(&folder).unwrap());
    let mut reader = SqliteStore::open_read_only(&folder).unwrap();
    let refused = reader.commit(&put(Space::Meta, 0, b""), false).unwrap_err();
    assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
}

#[test]
fn what_is_no_store_of_this_version_is_refused_with_its_reason() {
    let folder = Folder::new();
    let error = SqliteStore::open_read_only(&folder).unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }), "{error}");

    let file = folder.join("frontier.sqlite");
    for other in [
        b"".as_slice(),
        b"not a database at all, but long enough to be read as one".as_slice(),
    ] {
        fs::write(&file, other).unwrap();
        let error = SqliteStore::open(&folder).unwrap_err();
        assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
        assert_eq!(fs::read(&file).unwrap(), other, "it is left alone");
    }

    fs::remove_file(&file).unwrap();
    let foreign = rusqlite::Connection::open(&file).unwrap();
    foreign.execute_batch("CREATE TABLE bookmarks(url)").unwrap();
    drop(foreign);
    let error = SqliteStore::open(&folder).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");

    fs::remove_file(&file).unwrap();
    drop(SqliteStore::open(&folder).unwrap());
    let later = rusqlite::Connection::open(&file).unwrap();
    later.execute_batch("PRAGMA user_version = 77").unwrap();
    drop(later);
    let error = SqliteStore::open(&folder).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::Version {
                found: 77,
                supported: 29,
                ..
            }
        ),
        "{error}"
    );

    let folder = Folder::new();
    fs::write(folder.join("frontier.sqlite-wal"), b"the log of a file that was lost").unwrap();
    let error = SqliteStore::open(&folder).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn a_full_disk_loses_one_batch_and_nothing_before() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    store.limit_pages(200);
    let mut model = MemoryStore::default();
    let full = (0..).find_map(|key| {
        let batch = batch([
            Change::Put(Space::Journal, key, noise(6000, key)),
            Change::Put(Space::Meta, 0, key.to_le_bytes().to_vec()),
        ]);
        let error = store.commit(&batch, key % 4 == 0).err();
        if error.is_none() {
            model.commit(&batch, false).unwrap();
        }
        error
    });
    let full = full.unwrap();
    assert!(
        matches!(&full, StoreError::Full { path } if path.ends_with("frontier.sqlite")),
        "{full}"
    );
    assert!(model.space(Space::Journal).len() > 50);
    let after = store.commit(&put(Space::Meta, 1, b""), true).unwrap_err();
    assert!(matches!(after, StoreError::Failed), "{after}");
    assert!(matches!(store.last(Space::Meta, 1), Err(StoreError::Failed)));
    drop(store);

    let mut store = SqliteStore::open(&folder).unwrap();
    assert!(contents(&store) == contents(&model));
    store.commit(&put(Space::Meta, 1, b"room was made"), true).unwrap();
}

#[test]
fn an_error_of_the_visitor_ends_the_visit() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    store
        .commit(&batch((0..9).map(|key| Change::Put(Space::Meta, key, vec![]))), false)
        .unwrap();
    let mut visited = 0;
    let ended = store.range(Space::Meta, 2..=8, &mut |key, _| {
        visited += 1;
        if key == 4 { Err(StoreError::Failed) } else { Ok(()) }
    });
    assert!(matches!(ended, Err(StoreError::Failed)));
    assert_eq!(visited, 3);
}

#[test]
fn the_last_key_is_known_also_if_its_value_is_damaged() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(&folder).unwrap();
    assert_eq!(store.last_key(Space::Segment), None);
    store
        .commit(
            &batch((0..9).map(|key| Change::Put(Space::Segment, key, vec![1]))),
            false,
        )
        .unwrap();
    assert_eq!(store.last_key(Space::Segment), Some(8));
    store
        .commit(&batch([Change::Delete(Space::Segment, 7..=8)]), false)
        .unwrap();
    assert_eq!(store.last_key(Space::Segment), Some(6));
    drop(store);
    let connection = rusqlite::Connection::open(folder.join("frontier.sqlite")).unwrap();
    connection
        .execute("UPDATE segment SET value = x'ff' WHERE key = 6", [])
        .unwrap();
    drop(connection);
    let store = SqliteStore::open(&folder).unwrap();
    assert!(matches!(store.last(Space::Segment, 9), Err(StoreError::Damaged { .. })));
    assert_eq!(store.last_key(Space::Segment), Some(6));
}
