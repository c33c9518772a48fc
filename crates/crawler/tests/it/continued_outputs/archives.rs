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
        drop(Archive::continuing("warc", archive_options(&path, max), saved.as_ref()).unwrap());
        let mut targets = BTreeMap::new();
        for file in fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path()) {
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

#[test]
fn a_file_of_another_crawl_in_the_place_of_the_next_archive_is_not_touched() {
    let folder = Folder::new("other-archive");
    let path = folder.file("pages.warc.gz");
    let other = folder.file("pages-00001.warc.gz");
    let mut archive = Archive::continuing("warc", archive_options(&path, Some(1)), None).unwrap();
    report(&mut archive, 0).unwrap();
    let saved = archive.save(false).unwrap().unwrap();
    drop(archive);
    drop(Archive::create(archive_options(&other, None)).unwrap());
    let before = fs::read(&other).unwrap();
    let mut archive = Archive::continuing("warc", archive_options(&path, Some(1)), Some(&saved)).unwrap();
    report(&mut archive, 1).unwrap();
    archive.save(true).unwrap();
    drop(archive);
    assert_eq!(fs::read(&other).unwrap(), before);
    assert_eq!(records(&folder.file("pages-00002.warc.gz")).len(), 3);
}

/// Continues an archive, with a new file for every answer.
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

/// Returns the names in the folder, sorted.
fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(&folder.0).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
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

/// Goes back to a sync that was made after this many answers.
fn archive_goes_back(folder: &Folder, before_sync: usize) {
    let path = folder.file("pages.warc.gz");
    // A file of another crawl stands among them.
    let other = folder.file("pages-00003.warc.gz");
    fs::write(&other, "another").unwrap();
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
    assert_eq!(fs::read(&other).unwrap(), b"another");
    fs::remove_file(&other).unwrap();
    assert!(names(folder).len() > 3);
    assert_each_once(folder, 0..10);
}

#[test]
fn an_archive_that_goes_back_over_several_files_has_every_answer_once() {
    archive_goes_back(&Folder::new("archive-back"), 1);
}

#[test]
fn an_archive_that_goes_back_to_its_beginning_has_every_answer_once() {
    archive_goes_back(&Folder::new("archive-beginning"), 0);
}

#[test]
fn an_archive_that_cannot_be_continued_keeps_its_later_files() {
    let folder = Folder::new("archive-refused");
    let path = folder.file("pages.warc.gz");
    let saved = crash_after(&path, 4);
    fs::rename(&path, folder.file("moved.warc.gz")).unwrap();
    let before = names(&folder);
    let refused = Archive::continuing("warc", archive_options(&path, Some(1)), saved.as_ref());
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("the file is missing: put that file back")
    );
    assert_eq!(names(&folder), before);
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
        let mut other = Archive::create(archive_options(&path, None)).unwrap();
        report(&mut other, 0).unwrap();
        drop(other);
        for content in [b"notes\n".to_vec(), b"\x1f\x9d\x90".to_vec(), fs::read(&path).unwrap()] {
            fs::write(&path, &content).unwrap();
            let options = || archive_options(&path, None);
            for refused in [
                Archive::create(options()),
                Archive::continuing("warc", options(), None),
                Archive::continuing("warc", options(), nothing.as_ref()),
            ] {
                let message = refused.unwrap_err().to_string();
                assert!(
                    message.contains(name) && message.contains("not overwritten"),
                    "{message}"
                );
            }
            assert_eq!(fs::read(&path).unwrap(), content);
        }
    }
}

#[test]
fn what_a_crash_has_left_before_the_first_save_is_written_again() {
    for name in ["pages.warc.gz", "pages.warc"] {
        for kept in [0, 1, 5, 30, 200, 10_000] {
            let folder = Folder::new(&format!("archive-before-the-first-save-{name}-{kept}"));
            let path = folder.file(name);
            let mut archive = reopen_whole(&path, None);
            let nothing = archive.save(true).unwrap();
            report(&mut archive, 0).unwrap();
            drop(archive);
            let mut left = fs::read(&path).unwrap();
            for byte in left.iter_mut().skip(kept) {
                // After a loss of power, a file may end with zeros.
                *byte = 0;
            }
            fs::write(&path, left).unwrap();
            let mut archive = reopen_whole(&path, nothing.as_ref());
            report(&mut archive, 0).unwrap();
            drop(archive);
            assert_eq!(records(&path).len(), 3, "{name} {kept}");
        }
    }
}

#[test]
fn what_others_put_in_the_place_of_later_files_stays() {
    for (name, next) in [
        ("pages.warc.gz", "pages-00001.warc.gz"),
        ("pages.warc", "pages-00001.warc"),
    ] {
        let folder = Folder::new(&format!("archive-others-{name}"));
        let path = folder.file(name);
        let saved = crash_after(&path, 1);
        let other = folder.file(next);
        fs::write(&other, "my notes").unwrap();
        fs::create_dir(folder.file(&next.replace("00001", "00002"))).unwrap();
        let mut archive = reopen(&path, saved.as_ref());
        commit_each(&mut archive, 1..2);
        drop(archive);
        assert_eq!(fs::read(&other).unwrap(), b"my notes");
        assert_eq!(records(&folder.file(&next.replace("00001", "00003"))).len(), 3);
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_nothing_in_the_place_of_the_next_file_stays() {
    let folder = Folder::new("archive-link");
    let next = folder.file("pages-00001.warc.gz");
    std::os::unix::fs::symlink("not-mounted", &next).unwrap();
    let mut archive = reopen(&folder.file("pages.warc.gz"), None);
    commit_each(&mut archive, 0..2);
    assert_eq!(fs::read_link(&next).unwrap(), Path::new("not-mounted"));
    assert_eq!(records(&folder.file("pages-00002.warc.gz")).len(), 3);
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
        reopen(&path, saved.as_ref());
        assert_eq!(names(&folder).len(), 3, "{first}");
        assert_each_once(&folder, 0..3);
    }
}
