//! Bodies as files: each URL keeps its file, across crashes and from one fetch to the next, and the folder is known again.

use std::collections::BTreeMap;

use crawler::output::save::SavedFiles;

use super::*;

/// By this file a crawl knows its folder.
const MARK: &str = ".crawler-id";

/// The bodies below a folder by name.
fn bodies(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path != folder.join(MARK) {
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
    let open = |saved: Option<&SavedOutput>| {
        SavedFiles::continuing("save", &site, file(&names, saved).unwrap(), saved).unwrap()
    };
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
        assert!(killed > 1, "more than the mark");
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
    let mut crawled = Crawled::new("part");
    let mut files = crawled.open().unwrap();
    crawled.saved = files.save(false).unwrap();
    let debug = format!("{files:?}");
    let (start, end) = (debug.find(".crawler-").unwrap(), debug.find(".part").unwrap());
    fs::write(crawled.site.join(format!("{}.part", &debug[start..end])), "half").unwrap();
    drop(files);
    assert_eq!(crawled.bodies().len(), 1);
    crawled.open().unwrap();
    assert_eq!(crawled.bodies().len(), 0);
}

/// The folder and the names of one crawl.
struct Crawled {
    folder: Folder,
    site: PathBuf,
    saved: Option<SavedOutput>,
}

impl Crawled {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let site = folder.file("site");
        Self {
            folder,
            site,
            saved: None,
        }
    }

    fn names(&self) -> PathBuf {
        self.folder.file("names")
    }

    fn open(&self) -> io::Result<SavedFiles> {
        let saved = self.saved.as_ref();
        SavedFiles::continuing("save", &self.site, file(&self.names(), saved)?, saved)
    }

    /// Saves some pages, and then others that no commit has. Returns the names of the first.
    fn run(&mut self, committed: &[(&str, &str)], lost: &[(&str, &str)]) -> Vec<String> {
        let mut files = self.open().unwrap();
        let names = committed
            .iter()
            .map(|(url, body)| save(&mut files, url, body))
            .collect();
        self.saved = files.save(false).unwrap();
        lost.iter().for_each(|(url, body)| drop(save(&mut files, url, body)));
        names
    }

    fn refused(&self) -> String {
        self.open().unwrap_err().to_string()
    }

    /// The bodies by name.
    fn bodies(&self) -> BTreeMap<String, String> {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        bodies(&self.site)
            .into_iter()
            .map(|(name, bytes)| (name, text(bytes)))
            .collect()
    }
}

/// Saves a body, and returns its name.
fn save(files: &mut SavedFiles, url: &str, body: &str) -> String {
    let page = PageRecord {
        url: url.to_owned(),
        content_type: Some("text/html".to_owned()),
        ..PageRecord::default()
    };
    let saved_as = OnceCell::new();
    files
        .on(&Event::Body {
            page: &page,
            bytes: body.as_bytes(),
            saved_as: &saved_as,
        })
        .unwrap();
    saved_as.into_inner().unwrap()
}

fn map<const N: usize>(bodies: [(&str, &str); N]) -> BTreeMap<String, String> {
    BTreeMap::from(bodies.map(|(name, body)| (name.to_owned(), body.to_owned())))
}

const A: &str = "http://a.example/a";
const UPPER_A: &str = "http://a.example/A";
const B: &str = "http://a.example/b";

#[test]
fn a_page_that_is_saved_again_replaces_its_file_also_if_another_url_wants_the_same_name() {
    let mut crawled = Crawled::new("again");
    let first = crawled.run(&[(A, "a1"), (UPPER_A, "A1"), (A, "a2")], &[]);
    assert_eq!((first[0].as_str(), &first[2]), ("a.example/a.html", &first[0]));
    let upper = first[1].as_str();
    assert!(upper.starts_with("a.example/A~"), "{upper}");
    assert_eq!(
        crawled.bodies(),
        map([("a.example/a.html", "a2"), (upper, "A1")]),
        "within a run"
    );
    for (one, other) in [("a3", "A3"), ("a4", "A4")] {
        let names = crawled.run(&[(UPPER_A, other), (A, one)], &[]);
        assert_eq!(names, [first[1].clone(), first[0].clone()]);
        assert_eq!(crawled.bodies(), map([("a.example/a.html", one), (upper, other)]));
    }
}

#[test]
fn what_was_replaced_after_the_last_commit_is_replaced_again() {
    let mut crawled = Crawled::new("after-commit");
    crawled.run(&[(A, "a1")], &[(A, "a2"), (B, "b1")]);
    assert_eq!(
        crawled.bodies(),
        map([("a.example/a.html", "a2"), ("a.example/b.html", "b1")])
    );
    let names = crawled.run(&[(B, "b2"), (A, "a3")], &[(UPPER_A, "A1")]);
    assert_eq!(names, ["a.example/b.html", "a.example/a.html"]);
    // After the kill the other URL comes first, and still does not get the name.
    let names = crawled.run(&[(UPPER_A, "A2"), (A, "a4")], &[]);
    assert_eq!(
        crawled.bodies(),
        map([
            ("a.example/a.html", "a4"),
            ("a.example/b.html", "b2"),
            (names[0].as_str(), "A2")
        ])
    );
}

#[test]
fn a_folder_that_was_moved_is_continued_and_another_one_is_refused() {
    let mut crawled = Crawled::new("folder");
    crawled.run(&[], &[]);
    let (first, other) = (crawled.site.clone(), crawled.folder.file("other"));
    // Nothing is there yet.
    crawled.site.clone_from(&other);
    crawled.run(&[], &[]);
    crawled.site.clone_from(&first);
    crawled.run(&[(A, "a1")], &[]);
    let shown = first.to_str().unwrap();
    assert_eq!(SavedFiles::folder_in(crawled.saved.as_ref().unwrap()), shown);

    crawled.site.clone_from(&other);
    let names = fs::read(crawled.names()).unwrap();
    for makes in [false, true] {
        if makes {
            // Of another crawl, which has a page of the same name.
            let mut of_another = Crawled::new("folder-of-another");
            of_another.site.clone_from(&other);
            of_another.run(&[(A, "a1")], &[]);
        } else {
            fs::remove_dir_all(&other).unwrap();
        }
        let refused = crawled.refused();
        assert!(refused.starts_with(other.to_str().unwrap()), "{refused}");
        assert!(
            refused.contains(&format!("saved pages in {shown}")) && refused.contains("or an empty one at that place"),
            "{refused}"
        );
        assert_eq!(other.exists(), makes, "no folder is made");
    }
    assert_eq!(fs::read(crawled.names()).unwrap(), names);

    fs::remove_dir_all(&other).unwrap();
    fs::rename(&first, &other).unwrap();
    let name = crawled.run(&[(A, "a2")], &[]);
    assert_eq!(crawled.bodies(), map([(name[0].as_str(), "a2")]));
    assert_eq!(
        SavedFiles::folder_in(crawled.saved.as_ref().unwrap()),
        other.to_str().unwrap(),
        "the new place is kept"
    );
    // The place where it was is another folder now, and one of another crawl is at its place.
    crawled.site.clone_from(&first);
    assert!(crawled.refused().contains(other.to_str().unwrap()));
}

#[test]
fn a_missing_folder_is_refused_and_an_emptied_one_is_filled_again() {
    let mut crawled = Crawled::new("missing");
    crawled.run(&[(A, "a1"), (B, "b1")], &[]);
    fs::remove_dir_all(&crawled.site).unwrap();
    let refused = crawled.refused();
    assert!(
        refused.starts_with(crawled.site.to_str().unwrap()) && refused.contains("missing: put it back"),
        "{refused}"
    );
    assert!(!crawled.site.exists());
    // The same place.
    crawled.site.push("");
    assert!(crawled.refused().contains("missing: put it back"));
    fs::create_dir(&crawled.site).unwrap();
    crawled.run(&[(A, "a2")], &[]);
    assert_eq!(crawled.bodies(), map([("a.example/a.html", "a2")]));
}
