//! Archives that are continued: every answer once, in whole files, and no file of others is touched.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;
use std::path::Path;

use crawler::Observer;
use crawler::output::SavedOutput;
use crawler::output::warc::{Archive, ArchiveOptions};

use crate::warc::Record;

use super::{EVENTS, Folder, report, tear, url};

fn archive_options(path: &Path, max: Option<u64>) -> ArchiveOptions {
    ArchiveOptions {
        path: path.to_owned(),
        max_file_bytes: max.and_then(NonZeroU64::new),
        operator: None,
        user_agent: "test".to_owned(),
        obeys_robots: true,
    }
}

/// Returns the type and the target of each record, and checks that all are whole.
fn records(path: &Path) -> Vec<(String, String)> {
    let target = |record: &Record| record.fields.get("WARC-Target-URI").cloned().unwrap_or_default();
    let records = crate::warc::records(path);
    records
        .iter()
        .map(|record| (record.kind().to_owned(), target(record)))
        .collect()
}

#[test]
fn an_archive_that_crashes_again_and_again_has_every_answer_once() {
    for (name, max) in [
        ("pages.warc.gz", None),
        ("pages.warc", None),
        ("pages.warc.gz", Some(1000)),
        ("pages.warc", Some(3000)),
        ("pages.warc.gz", Some(1)),
    ] {
        let folder = Folder::new(&format!("archive-{name}-{max:?}"));
        let path = folder.file(name);
        let (mut saved, mut from) = (None, 0);
        for commit in [0, 1, 2, 7, 7, 8, 20, 21, EVENTS] {
            let mut archive = Archive::continuing("warc", archive_options(&path, max), saved.as_ref()).unwrap();
            for number in from..commit {
                report(&mut archive, number).unwrap();
                archive.save(number.is_multiple_of(5)).unwrap().unwrap();
            }
            saved = archive.save(false).unwrap();
            for number in commit..EVENTS.min(commit + 3) {
                report(&mut archive, number).unwrap();
            }
            drop(archive);
            let files = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path());
            let last = files.filter(|file| *file != path).max().unwrap_or(path.clone());
            tear(&last);
            from = commit;
        }
        let mut last = Archive::continuing("warc", archive_options(&path, max), saved.as_ref()).unwrap();
        last.save(true).unwrap();
        let mut targets = BTreeMap::new();
        for file in names(&folder).iter().map(|name| folder.file(name)) {
            let records = records(&file);
            assert_eq!(records[0].0, "warcinfo", "{}", file.display());
            for (kind, target) in &records[1..] {
                *targets.entry((kind.clone(), target.clone())).or_insert(0) += 1;
            }
        }
        for number in 0..EVENTS {
            for kind in ["response", "request"] {
                let count = targets.remove(&(kind.to_owned(), url(number)));
                assert_eq!(count, Some(1), "{name} {max:?}: {kind} of {}", url(number));
            }
        }
        assert_eq!(targets.len(), 0, "{targets:?}");
    }
}

/// Continues an archive, with a new file after every sync.
fn reopen(path: &Path, saved: Option<&SavedOutput>) -> Archive {
    Archive::continuing("warc", archive_options(path, Some(1)), saved).unwrap()
}

/// Opens an archive of one file.
fn reopen_whole(path: &Path, saved: Option<&SavedOutput>) -> Archive {
    Archive::continuing("warc", archive_options(path, None), saved).unwrap()
}

/// Reports these answers, and commits after each of them.
fn commit_each(archive: &mut Archive, numbers: std::ops::Range<usize>) {
    for number in numbers {
        report(archive, number).unwrap();
        archive.save(false).unwrap().unwrap();
    }
}

/// Saves an archive after its first answer, and crashes after this many.
fn crash_after(path: &Path, answers: usize) -> Option<SavedOutput> {
    let mut archive = reopen(path, None);
    commit_each(&mut archive, 0..1);
    let saved = archive.save(true).unwrap();
    commit_each(&mut archive, 1..answers);
    saved
}

/// Returns the names of the files in the folder that have something, sorted.
fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(&folder.0).unwrap().map(Result::unwrap);
    let entries = entries.filter(|entry| entry.metadata().unwrap().len() > 0);
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Checks that the archives in the folder have the answers with these numbers, each once.
fn assert_each_once(folder: &Folder, numbers: std::ops::Range<usize>) {
    let mut answers = Vec::new();
    for name in names(folder) {
        let records = records(&folder.file(&name));
        assert_eq!(records[0].0, "warcinfo", "{name}");
        let of_answers = records
            .into_iter()
            .filter(|(kind, _)| kind == "response" || kind == "revisit");
        answers.extend(of_answers.map(|(_, target)| target));
    }
    answers.sort();
    let mut expected: Vec<_> = numbers.map(url).collect();
    expected.sort();
    assert_eq!(answers, expected);
}

#[test]
fn an_archive_that_goes_back_to_a_sync_has_every_answer_once() {
    for before_sync in [0, 1] {
        let folder = Folder::new("archive-back");
        let path = folder.file("pages.warc.gz");
        let mut archive = reopen(&path, None);
        commit_each(&mut archive, 0..before_sync);
        let synced = archive.save(true).unwrap();
        for run in 0..3 {
            if run > 0 {
                drop(archive);
                archive = reopen(&path, synced.as_ref());
            }
            commit_each(&mut archive, before_sync..10);
        }
        drop(archive);
        assert_eq!(names(&folder).len(), 1 + before_sync);
        assert_each_once(&folder, 0..10);
    }
}

#[test]
fn an_archive_is_not_continued_under_the_ending_of_the_other_kind() {
    for (name, other, advice) in [
        ("pages.warc.gz", "pages.warc", "its name must end in .gz"),
        ("pages.warc", "pages.warc.gz", "its name must not end in .gz"),
    ] {
        let folder = Folder::new(&format!("archive-kind-{name}"));
        let path = folder.file(name);
        let saved = crash_after(&path, 1);
        let before = fs::read(&path).unwrap();
        fs::rename(&path, folder.file(other)).unwrap();
        let refused = Archive::continuing("warc", archive_options(&folder.file(other), None), saved.as_ref());
        let message = refused.unwrap_err().to_string();
        assert!(message.contains(advice), "{message}");
        assert_eq!(fs::read(folder.file(other)).unwrap(), before);
        // Before the first answer, any name will do.
        let nothing = reopen(&folder.file("empty.warc"), None).save(true).unwrap();
        reopen(&folder.file("empty.warc.gz"), nothing.as_ref());
    }
}

#[test]
fn a_file_that_exists_is_not_overwritten() {
    for name in ["pages.warc", "pages.warc.gz"] {
        let folder = Folder::new(&format!("archive-exists-{name}"));
        let path = folder.file(name);
        let nothing = reopen_whole(&path, None).save(true).unwrap();
        fs::rename(&path, folder.file("kept")).unwrap();
        fs::write(&path, "notes\n").unwrap();
        let options = || archive_options(&path, None);
        for (refused, why) in [
            (Archive::create(options()), "not overwritten"),
            (Archive::continuing("warc", options(), None), "not overwritten"),
            (
                Archive::continuing("warc", options(), nothing.as_ref()),
                "the file of another",
            ),
        ] {
            let message = refused.unwrap_err().to_string();
            assert!(message.contains(name) && message.contains(why), "{message}");
        }
        assert_eq!(fs::read(&path).unwrap(), b"notes\n");
    }
}

#[test]
fn what_a_crash_has_left_before_the_first_save_is_written_again() {
    for name in ["pages.warc.gz", "pages.warc"] {
        let folder = Folder::new(&format!("archive-before-the-first-save-{name}"));
        let path = folder.file(name);
        let mut archive = reopen_whole(&path, None);
        let nothing = archive.save(true).unwrap();
        report(&mut archive, 0).unwrap();
        drop(archive);
        tear(&path);
        let mut archive = reopen_whole(&path, nothing.as_ref());
        report(&mut archive, 0).unwrap();
        drop(archive);
        assert_eq!(records(&path).len(), 3, "{name}");
    }
}

#[test]
fn what_stands_in_the_place_of_the_next_file_is_not_touched() {
    let folder = Folder::new("archive-others");
    let path = folder.file("pages.warc.gz");
    // It comes while the crawl runs.
    let mut archive = reopen(&path, None);
    let next = folder.file("pages-00001.warc.gz");
    fs::write(&next, "my notes").unwrap();
    fs::create_dir(folder.file("pages-00002.warc.gz")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("not-mounted", folder.file("pages-00003.warc.gz")).unwrap();
    commit_each(&mut archive, 0..1);
    let back = archive.save(false).unwrap();
    let saved = archive.save(true).unwrap();
    commit_each(&mut archive, 1..2);
    drop(archive);
    assert_eq!(saved.as_ref().unwrap().file.number, if cfg!(unix) { 4 } else { 3 });
    assert_eq!(fs::read(&next).unwrap(), b"my notes");
    assert!(!folder.file("not-mounted").exists());
    drop(reopen(&path, saved.as_ref()));
    // A state that does not know the next file is an old one.
    let refused = Archive::continuing("warc", archive_options(&path, Some(1)), back.as_ref());
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("move them away or remove them"), "{message}");
    assert_eq!(fs::read(&next).unwrap(), b"my notes");
}

#[test]
fn an_archive_may_have_any_name() {
    // The longest that leaves room for the number, and those that are nothing but an ending.
    for first in [&format!("{}.warc.gz", "n".repeat(241)), ".gz", ".warc.gz", "archive"] {
        let folder = Folder::new("archive-name");
        let path = folder.file(first);
        let mut saved = None;
        for number in 0..3 {
            let mut archive = reopen(&path, saved.as_ref());
            commit_each(&mut archive, number..number + 1);
            saved = archive.save(true).unwrap();
            commit_each(&mut archive, number + 1..number + 3);
        }
        let mut last = reopen(&path, saved.as_ref());
        last.save(true).unwrap();
        assert_eq!(names(&folder).len(), 3, "{first}");
        assert_each_once(&folder, 0..3);
    }
}
