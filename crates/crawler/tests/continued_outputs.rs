//! Outputs that are continued after a crash: every line once, none torn, and a file that was changed is refused.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics at the failing line"
)]

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crawler::fetch::HttpVersion;
use crawler::output::csv::Csv;
use crawler::output::jsonl::JsonLines;
use crawler::output::links::LinkGraph;
use crawler::output::refused::RefusedReport;
use crawler::output::save::SavedFiles;
use crawler::output::warc::{Archive, ArchiveOptions};
use crawler::output::{OutputFile, SavedOutput};
use crawler::{Capture, Event, Exchange, LinkRecord, Observer, PageBody, PageRecord};
use flate2::bufread::MultiGzDecoder;
use frontier::{Canonicalizer, Entry, Link, Refusal, Verdict};

/// A folder of a test, which is removed after it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("crawler-continued-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const EVENTS: usize = 40;

fn url(number: usize) -> String {
    // Some names differ in case only.
    let name = ["page", "Page", "other", "OTHER"][number % 4];
    format!("http://site.example/{}/{name}", number / 4)
}

/// Reports all that the outputs write about one page. Some URLs are refused on many pages.
fn report(observer: &mut dyn Observer, number: usize) -> io::Result<Option<String>> {
    let url = url(number);
    let canonical = Canonicalizer::default().parse(&url).unwrap();
    let refused = format!("http://elsewhere.example/{}?\"=1,2\"", number / 3);
    let refused = Link::found(
        Canonicalizer::default().parse(&refused).unwrap(),
        1,
        url.as_str().into(),
    );
    observer.on(&Event::Offered {
        links: &[refused],
        verdicts: &[Verdict::Refused(Refusal::OtherHost)],
    })?;
    observer.on(&Event::Links {
        from: &Entry::of(&Link::seed(canonical)),
        links: &[
            LinkRecord::new(format!("{url}#to"), "anchor"),
            LinkRecord::new("mailto:a", "area"),
        ],
    })?;
    let mut exchange = exchange();
    exchange.target = format!("/{number}");
    let body = format!("<p>{number}").repeat(200).into_bytes();
    let capture = Capture::new(url.clone(), SystemTime::UNIX_EPOCH, exchange, body.clone());
    observer.on(&Event::Captured(&Arc::new(capture)))?;
    let mut page = PageRecord {
        url,
        status: 200,
        title: Some(format!("Title {number}, \"quoted\"\nand broken")),
        ..PageRecord::default()
    };
    let saved_as = {
        let body = PageBody::new(&page, &body);
        observer.on(&Event::Body(&body))?;
        body.saved_as().map(str::to_owned)
    };
    page.saved_as.clone_from(&saved_as);
    observer.on(&Event::Page(&page))?;
    Ok(saved_as)
}

fn exchange() -> Exchange {
    Exchange {
        version: HttpVersion::Http11,
        target: "/".to_owned(),
        request_headers: Vec::new(),
        status: 200,
        reason: b"OK".to_vec(),
        response_headers: Vec::new(),
        encoded_body: None,
        address: None,
    }
}

type Open = fn(&Path, Option<&SavedOutput>) -> io::Result<Box<dyn Observer>>;

fn file(path: &Path, saved: Option<&SavedOutput>) -> io::Result<OutputFile> {
    match saved {
        Some(saved) => OutputFile::reopen(path, &saved.file),
        None => OutputFile::create(path),
    }
}

/// The outputs of one file.
const OUTPUTS: [(&str, Open); 6] = [
    ("pages.jsonl", |path, saved| {
        Ok(Box::new(JsonLines::continuing("o", file(path, saved)?)))
    }),
    ("pages.csv", |path, saved| {
        Ok(Box::new(Csv::continuing("o", file(path, saved)?, &[])?))
    }),
    ("links.jsonl", |path, saved| {
        Ok(Box::new(LinkGraph::continuing("o", file(path, saved)?)))
    }),
    ("links.csv", |path, saved| {
        Ok(Box::new(LinkGraph::continuing_csv("o", file(path, saved)?)?))
    }),
    ("refused.jsonl", |path, saved| {
        Ok(Box::new(RefusedReport::continuing("o", file(path, saved)?)?))
    }),
    ("refused.csv", |path, saved| {
        Ok(Box::new(RefusedReport::continuing_csv("o", file(path, saved)?)?))
    }),
];

fn without_interruption(open: Open, path: &Path) -> Vec<u8> {
    let mut output = open(path, None).unwrap();
    (0..EVENTS).for_each(|number| drop(report(output.as_mut(), number).unwrap()));
    drop(output);
    fs::read(path).unwrap()
}

/// Runs from one state to the next: writes until a commit, and then what no commit has.
fn run_and_crash(open: Open, path: &Path, saved: Option<&SavedOutput>, from: usize, commit: usize) -> SavedOutput {
    let mut output = open(path, saved).unwrap();
    (from..commit).for_each(|number| drop(report(output.as_mut(), number).unwrap()));
    let saved = output.save(commit.is_multiple_of(2)).unwrap().unwrap();
    assert_eq!(saved.name, "o");
    assert_eq!(output.save(true).unwrap().unwrap(), saved, "nothing has changed");
    (commit..EVENTS.min(commit + 3)).for_each(|number| drop(report(output.as_mut(), number).unwrap()));
    drop(output);
    // As it is stored.
    serde_json::from_str(&serde_json::to_string(&saved).unwrap()).unwrap()
}

fn tear(path: &Path) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"{\"url\":\"http://site.exa").unwrap();
}

#[test]
fn an_output_that_crashes_again_and_again_equals_one_that_never_did() {
    let folder = Folder::new("equal");
    for (name, open) in OUTPUTS {
        let expected = without_interruption(open, &folder.file(&format!("whole-{name}")));
        let path = folder.file(name);
        let (mut saved, mut from) = (None, 0);
        for commit in [0, 1, 2, 7, 7, 20, 21, EVENTS] {
            saved = Some(run_and_crash(open, &path, saved.as_ref(), from, commit));
            tear(&path);
            from = commit;
        }
        drop(open(&path, saved.as_ref()).unwrap());
        let found = fs::read(&path).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&found),
            String::from_utf8_lossy(&expected),
            "{name}"
        );
    }
}

#[test]
fn a_file_that_was_changed_is_refused_and_stays_as_it_is() {
    let folder = Folder::new("changed");
    for (name, open) in OUTPUTS {
        let path = folder.file(name);
        let saved = run_and_crash(open, &path, None, 0, EVENTS);
        let whole = fs::read(&path).unwrap();
        let mut other = whole.clone();
        other[whole.len() - 30] ^= 1;
        let shorter = &whole[..whole.len() - 1];
        for (bytes, why) in [(other.as_slice(), "changed"), (shorter, "has"), (b"", "has 0")] {
            fs::write(&path, bytes).unwrap();
            let error = open(&path, Some(&saved)).err().unwrap().to_string();
            assert!(
                error.contains(why) && error.contains("put that file back"),
                "{name}: {error}"
            );
            assert!(error.contains(path.to_str().unwrap()), "{name}: {error}");
            assert_eq!(fs::read(&path).unwrap(), bytes, "{name}");
        }
        fs::remove_file(&path).unwrap();
        let error = open(&path, Some(&saved)).err().unwrap().to_string();
        assert!(error.contains("missing"), "{error}");
        assert!(!path.exists());
        // A file that was moved is the same file.
        let moved = folder.file(&format!("moved-{name}"));
        fs::write(&moved, &whole).unwrap();
        assert!(open(&moved, Some(&saved)).is_ok());
    }
}

#[test]
fn a_csv_file_with_other_columns_is_refused() {
    let folder = Folder::new("columns");
    let path = folder.file("pages.csv");
    let saved = run_and_crash(OUTPUTS[1].1, &path, None, 0, 5);
    let file = OutputFile::reopen(&path, &saved.file).unwrap();
    let error = Csv::continuing("o", file, &["a=b".parse().unwrap()]).unwrap_err();
    assert!(error.to_string().contains("columns"), "{error}");
}

/// The bodies below a folder by name.
fn bodies(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn saved_bodies_keep_their_names_across_crashes_and_no_two_urls_share_a_file() {
    let folder = Folder::new("save");
    let names = folder.file("names");
    let site = folder.file("site");
    let open =
        |saved: Option<&SavedOutput>| SavedFiles::continuing("save", &site, file(&names, saved).unwrap()).unwrap();
    let mut saved_as = BTreeMap::new();
    let (mut saved, mut from) = (None, 0);
    for commit in [0, 2, 3, 17, EVENTS] {
        let mut files = open(saved.as_ref());
        assert!(
            !bodies(&site).keys().any(|name| name.starts_with('.')),
            "no file of a killed run is left"
        );
        for number in from..commit {
            saved_as.insert(number, report(&mut files, number).unwrap().unwrap());
        }
        saved = files.save(commit % 2 == 1).unwrap();
        // The pages after the commit come in another order when they are fetched again.
        for number in (commit..EVENTS.min(commit + 4)).rev() {
            report(&mut files, number).unwrap();
        }
        drop(files);
        tear(&names);
        let killed = fs::read_dir(&site).unwrap().count();
        assert!(killed > 0);
        from = commit;
    }
    drop(open(saved.as_ref()));
    let bodies = bodies(&site);
    assert_eq!(saved_as.len(), EVENTS);
    for (number, name) in &saved_as {
        let body = format!("<p>{number}").repeat(200).into_bytes();
        assert_eq!(bodies.get(name), Some(&body), "{number}: {name}");
        assert_eq!(
            saved_as
                .values()
                .filter(|other| other.eq_ignore_ascii_case(name))
                .count(),
            1
        );
    }
}

#[test]
fn the_part_of_a_body_that_a_kill_left_is_removed() {
    let folder = Folder::new("part");
    let (names, site) = (folder.file("names"), folder.file("site"));
    let mut files = SavedFiles::continuing("save", &site, OutputFile::create(&names).unwrap()).unwrap();
    let saved = files.save(false).unwrap().unwrap();
    let debug = format!("{files:?}");
    let start = debug.find(".crawler-").unwrap();
    let part = &debug[start..start + debug[start..].find('"').unwrap()];
    fs::write(site.join(part), "half").unwrap();
    drop(files);
    SavedFiles::continuing("save", &site, OutputFile::reopen(&names, &saved.file).unwrap()).unwrap();
    assert_eq!(fs::read_dir(&site).unwrap().count(), 0);
}

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
    let bytes = fs::read(path).unwrap();
    let mut text = Vec::new();
    if path.extension().is_some_and(|end| end == "gz") {
        let read = MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut text);
        read.unwrap_or_else(|error| panic!("{}: {error} after {} bytes", path.display(), text.len()));
    } else {
        text = bytes;
    }
    let mut records = Vec::new();
    let mut rest = text.as_slice();
    while !rest.is_empty() {
        let end = rest.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = std::str::from_utf8(&rest[..end]).unwrap();
        let field = |name: &str| {
            let value = head.lines().find_map(|line| line.strip_prefix(name));
            value.unwrap_or_default().to_owned()
        };
        let length: usize = field("Content-Length: ").parse().unwrap();
        let after = &rest[end + 4 + length..];
        rest = after.strip_prefix(b"\r\n\r\n").unwrap();
        records.push((field("WARC-Type: "), field("WARC-Target-URI: ")));
    }
    records
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

#[test]
fn a_crash_before_the_first_answer_leaves_an_archive_of_another_crawl_as_it_was() {
    let folder = Folder::new("before-first");
    let path = folder.file("pages.warc.gz");
    let mut first = Archive::create(archive_options(&path, None)).unwrap();
    report(&mut first, 0).unwrap();
    drop(first);
    let before = fs::read(&path).unwrap();
    let mut archive = Archive::continuing("warc", archive_options(&path, None), None).unwrap();
    let saved = archive.save(true).unwrap().unwrap();
    drop(archive);
    assert_eq!(fs::read(&path).unwrap(), before);
    let mut archive = Archive::continuing("warc", archive_options(&path, None), Some(&saved)).unwrap();
    report(&mut archive, 1).unwrap();
    drop(archive);
    let kinds: Vec<_> = records(&path).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(
        kinds,
        ["warcinfo", "response", "request", "warcinfo", "response", "request"]
    );
}

/// Goes back to a sync that was made after this many answers.
fn archive_goes_back(folder: &Folder, before_sync: usize) {
    let path = folder.file("pages.warc.gz");
    // A file of another crawl stands among them.
    let other = folder.file("pages-00003.warc.gz");
    fs::write(&other, "another").unwrap();
    let open =
        |saved: Option<&SavedOutput>| Archive::continuing("warc", archive_options(&path, Some(1000)), saved).unwrap();
    let mut archive = open(None);
    for number in 0..before_sync {
        report(&mut archive, number).unwrap();
    }
    let synced = archive.save(true).unwrap();
    for run in 0..3 {
        if run > 0 {
            drop(archive);
            archive = open(synced.as_ref());
        }
        for number in before_sync..10 {
            report(&mut archive, number).unwrap();
            archive.save(false).unwrap();
        }
    }
    drop(archive);
    assert_eq!(fs::read(&other).unwrap(), b"another");
    fs::remove_file(&other).unwrap();
    let mut answers = BTreeMap::<_, usize>::new();
    let mut files = 0;
    for file in fs::read_dir(&folder.0).unwrap() {
        files += 1;
        for (kind, target) in records(&file.unwrap().path()) {
            if kind == "response" || kind == "revisit" {
                *answers.entry(target).or_default() += 1;
            }
        }
    }
    assert!(files > 3 && answers.len() == 10, "{files} files, {answers:?}");
    assert!(answers.values().all(|count| *count == 1), "{answers:?}");
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
fn an_archive_that_goes_back_to_a_full_file_of_another_crawl_has_every_answer_once() {
    let folder = Folder::new("archive-full");
    let mut before = Archive::create(archive_options(&folder.file("pages.warc.gz"), None)).unwrap();
    for number in 20..30 {
        report(&mut before, number).unwrap();
    }
    drop(before);
    let open = |saved: Option<&SavedOutput>| {
        Archive::continuing(
            "warc",
            archive_options(&folder.file("pages.warc.gz"), Some(1000)),
            saved,
        )
        .unwrap()
    };
    let mut archive = open(None);
    let synced = archive.save(true).unwrap();
    for _ in 0..2 {
        report(&mut archive, 0).unwrap();
        archive.save(false).unwrap();
        drop(archive);
        archive = open(synced.as_ref());
    }
    report(&mut archive, 0).unwrap();
    drop(archive);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2);
    assert_eq!(records(&folder.file("pages-00001.warc.gz")).len(), 3);
}
