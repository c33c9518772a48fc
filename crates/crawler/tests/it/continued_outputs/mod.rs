//! Outputs that are continued after a crash: every line once, none torn, and a file that was changed is refused.

mod archives;
mod saved;

use std::cell::OnceCell;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::folder::Folder;
use crawler::fetch::HttpVersion;
use crawler::output::links::LinkGraph;
use crawler::output::pages::Pages;
use crawler::output::refused::RefusedReport;
use crawler::output::{Format, OutputFile, SavedOutput, Sink};
use crawler::{Capture, Event, HttpExchange, LinkRecord, Observer, PageRecord};
use frontier::{Canonicalizer, Entry, Link, Refusal, Verdict};

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
    let saved_as = OnceCell::new();
    observer.on(&Event::Body {
        page: &page,
        bytes: &body,
        saved_as: &saved_as,
    })?;
    let saved_as = saved_as.into_inner();
    page.saved_as.clone_from(&saved_as);
    observer.on(&Event::Page(&page))?;
    Ok(saved_as)
}

/// An answer without anything.
pub(crate) fn exchange() -> HttpExchange {
    HttpExchange {
        version: HttpVersion::HTTP_11,
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
        None => OutputFile::append(path),
    }
}

/// The outputs of one file.
const OUTPUTS: [(&str, Open); 6] = [
    ("pages.jsonl", |path, saved| {
        Ok(Box::new(Pages::new(
            Sink::continuing("o", file(path, saved)?),
            Format::JsonLines,
            &[],
        )?))
    }),
    ("pages.csv", |path, saved| {
        Ok(Box::new(Pages::new(
            Sink::continuing("o", file(path, saved)?),
            Format::Csv,
            &[],
        )?))
    }),
    ("links.jsonl", |path, saved| {
        Ok(Box::new(LinkGraph::new(
            Sink::continuing("o", file(path, saved)?),
            Format::JsonLines,
        )?))
    }),
    ("links.csv", |path, saved| {
        Ok(Box::new(LinkGraph::new(
            Sink::continuing("o", file(path, saved)?),
            Format::Csv,
        )?))
    }),
    ("refused.jsonl", |path, saved| {
        Ok(Box::new(RefusedReport::new(
            Sink::continuing("o", file(path, saved)?),
            Format::JsonLines,
        )?))
    }),
    ("refused.csv", |path, saved| {
        Ok(Box::new(RefusedReport::new(
            Sink::continuing("o", file(path, saved)?),
            Format::Csv,
        )?))
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
        let torn = fs::read(&path).unwrap();
        drop(open(&path, saved.as_ref()).unwrap());
        assert!(fs::read(&path).unwrap() == torn, "it is cut with the first sync only");
        open(&path, saved.as_ref()).unwrap().save(true).unwrap();
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
    let error = Pages::new(Sink::continuing("o", file), Format::Csv, &["a=b".parse().unwrap()]).unwrap_err();
    assert!(error.to_string().contains("columns"), "{error}");
}
