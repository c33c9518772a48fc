//! No start that is refused changes a file. Each refusal of an output names ways on, which work. A file that goes away while a crawl writes it ends
//! the crawl before a line is lost.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::program::{Folder, command, fails, folder, has_failed, number, succeeds, text_of, texts_of};
use crate::servers::site_of;

/// A site of ten pages, and what is done before the answer to `/3`, once.
fn site(meanwhile: impl FnOnce() + Send + 'static) -> String {
    let meanwhile = Mutex::new(Some(meanwhile));
    site_of(move |path| {
        if path == "/3"
            && let Some(meanwhile) = meanwhile.lock().unwrap().take()
        {
            meanwhile();
        }
        let links = (1..10)
            .map(|page| format!("<a href=/{page}>x</a> "))
            .collect::<String>();
        (path != "/robots.txt").then(|| format!("{path} {links} <a href=http://other.example{path}>x</a>"))
    })
}

/// All files below a folder, with what they have; a folder has nothing.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(tree(&path));
        }
        files.insert(path.clone(), fs::read(path).unwrap_or_default());
    }
    files
}

/// The options of all outputs, with their files.
const OUTPUTS: [(&str, &str); 5] = [
    ("-o", "pages.jsonl"),
    ("--links", "links.csv.gz"),
    ("--refused", "refused.jsonl"),
    ("--warc", "pages.warc.gz"),
    ("--save", "site"),
];

struct Crawl {
    folder: Folder,
    seed: String,
}

impl Crawl {
    fn new(name: &str) -> Self {
        Self {
            folder: folder(name),
            seed: site(|| ()),
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    /// The command over a state directory, with outputs.
    fn with(&self, state: &str, outputs: &[(&str, &str)], options: &str) -> String {
        let outputs = outputs
            .iter()
            .map(|(option, name)| format!("{option} {} ", self.path(name)));
        let outputs = outputs.collect::<String>();
        format!(
            "--delay 0 --state {} {outputs} {options} {}",
            self.path(state),
            self.seed
        )
    }

    #[track_caller]
    fn refuses(&self, command: &str, message: &str) {
        let before = tree(Path::new(&self.path("")));
        fails(command, 2, &[message]);
        let mut after = tree(Path::new(&self.path("")));
        let state = PathBuf::from(self.path("state"));
        let is_output = |path: &PathBuf| !path.starts_with(&state);
        after.retain(|path, _| is_output(path));
        let before: BTreeMap<_, _> = before.into_iter().filter(|(path, _)| is_output(path)).collect();
        assert!(after == before, "{command}: {:?}", after.keys());
    }
}

#[test]
fn a_state_directory_that_does_not_know_a_file_leaves_it_as_it_is() {
    let crawl = Crawl::new("kept-typo");
    let same = crawl.with("state", &OUTPUTS, "");
    succeeds(&crawl.with("state", &OUTPUTS, "--max-pages 3"));
    for output in OUTPUTS {
        crawl.refuses(
            &crawl.with("typo", &[output], ""),
            "has not written it: give another name",
        );
    }
    let name = |name| crawl.path(name);
    fs::hard_link(name("pages.jsonl"), name("hard.jsonl")).unwrap();
    #[cfg(unix)]
    for (to, link) in [("pages.jsonl", "link.jsonl"), ("nothing.jsonl", "to-nothing.jsonl")] {
        std::os::unix::fs::symlink(to, name(link)).unwrap();
        crawl.refuses(
            &crawl.with("typo", &[("-o", "nothing.jsonl"), ("--links", link)], ""),
            if to == "pages.jsonl" {
                "has not written it"
            } else {
                "two outputs go to"
            },
        );
    }
    crawl.refuses(
        &crawl.with("typo", &[("-o", "new.jsonl"), ("--links", "hard.jsonl")], ""),
        "has not written it",
    );
    crawl.refuses(
        &crawl.with("typo", &[("-o", "new.jsonl")], "--seeds nothing"),
        "nothing cannot be read",
    );
    fs::write(name("series-00002.jsonl"), "{}\n").unwrap();
    crawl.refuses(
        &crawl.with("typo", &[("-o", "series.jsonl")], "--set output-max-bytes=1"),
        "series-00002.jsonl: this file, and those of its series",
    );
    fs::write(name("foreign.jsonl"), "{}\n").unwrap();
    let mut more = OUTPUTS;
    more[2].1 = "foreign.jsonl";
    crawl.refuses(&crawl.with("state", &more, ""), "foreign.jsonl: the crawl has written");
    fs::write(name("pages-00001.jsonl"), "{}\n").unwrap();
    crawl.refuses(
        &crawl.with("state", &OUTPUTS, "--set output-max-bytes=1"),
        "pages-00001.jsonl: this file, and those of its series that follow up to number 1, are not of the crawl",
    );
    succeeds(&same);
    assert_eq!(texts_of(name("pages.jsonl"), "url").len(), 10);
}

#[test]
fn an_output_that_is_not_as_the_crawl_left_it_has_ways_on() {
    type Damage = fn(&Path) -> io::Result<()>;
    let damages: [(&str, Damage); 4] = [
        ("is missing", |path| fs::remove_file(path)),
        ("the file has 7", |path| {
            fs::File::options().write(true).open(path)?.set_len(7)
        }),
        ("was changed", |path| {
            let mut bytes = fs::read(path)?;
            bytes.iter_mut().rev().take(50).for_each(|byte| *byte ^= 1);
            fs::write(path, bytes)
        }),
        ("not a regular file", |path| {
            fs::remove_file(path).and_then(|()| fs::create_dir(path))
        }),
    ];
    let outputs = &OUTPUTS[..4];
    for (message, damage) in damages {
        for (_, damaged) in outputs {
            let crawl = Crawl::new("kept-damage");
            let same = crawl.with("state", outputs, "");
            succeeds(&crawl.with("state", outputs, "--max-pages 3"));
            let path = PathBuf::from(crawl.path(damaged));
            fs::copy(&path, crawl.path("copy")).unwrap();
            damage(&path).unwrap();
            let left = fs::read(&path).ok();
            crawl.refuses(&same, message);
            crawl.refuses(&same, "To continue without what it lacks, add --accept-loss");
            if *damaged == "pages.jsonl" {
                // The first way: the file is put back.
                let dir = crawl.path("state");
                let _ = fs::remove_dir(&path);
                fs::rename(crawl.path("copy"), &path).unwrap();
                succeeds(&format!("{same} --max-pages 4"));
                assert_eq!(texts_of(&path, "url").len(), 4, "{dir}");
                damage(&path).unwrap();
            }
            let printed = succeeds(&format!("{same} --accept-loss"));
            assert!(printed.stdout.contains("1 output begun anew"), "{}", printed.stdout);
            let (stem, ending) = damaged.split_once('.').unwrap();
            let next = match left {
                None if message == "is missing" => path.clone(),
                _ => PathBuf::from(crawl.path(&format!("{stem}-00001.{ending}"))),
            };
            if *damaged != "pages.jsonl" && next != path {
                assert_eq!(fs::read(&path).ok(), left, "{message} {damaged}: what was left stays");
            }
            if *damaged == "pages.jsonl" {
                assert_eq!(texts_of(&next, "url").len(), 6, "{message}");
            }
            assert!(fs::metadata(&next).unwrap().len() > 100, "{message} {damaged}");
            // The loss is said from now on, and the option is needed once.
            assert!(succeeds(&same).stdout.contains("1 output begun anew"));
            succeeds(&format!("{same} --accept-loss"));
            damage(&next).unwrap();
            crawl.refuses(&format!("resume {}", crawl.path("state")), "add --accept-loss");
        }
    }
}

#[test]
fn an_output_may_be_given_up() {
    let crawl = Crawl::new("kept-given-up");
    succeeds(&crawl.with("state", &OUTPUTS, "--max-pages 3"));
    for given in (0..OUTPUTS.len()).rev() {
        let fewer = &OUTPUTS[..given];
        crawl.refuses(
            &crawl.with("state", fewer, ""),
            "add --accept-loss to continue without it",
        );
        let printed = succeeds(&crawl.with("state", fewer, "--accept-loss --max-pages 4"));
        assert!(printed.stderr.contains("continues without --"), "{}", printed.stderr);
        succeeds(&crawl.with("state", fewer, "--max-pages 4"));
    }
    assert_eq!(texts_of(crawl.path("pages.jsonl"), "url").len(), 4);
}

/// What happens to a file meanwhile.
type Meanwhile = fn(&Path, &Path) -> io::Result<()>;

#[test]
fn a_file_that_goes_away_meanwhile_ends_the_crawl_before_a_line_is_lost() {
    let cases: [(&str, &str, Meanwhile); 9] = [
        ("pages.jsonl", "was renamed or removed while", |path, kept| {
            fs::rename(path, kept)
        }),
        ("pages.jsonl", "was renamed or removed, and another", |path, kept| {
            fs::rename(path, kept)?;
            fs::write(path, "")
        }),
        ("pages.jsonl", "was cut off", |path, kept| {
            fs::copy(path, kept)?;
            fs::File::options().write(true).open(path)?.set_len(0)
        }),
        ("pages.warc.gz", "was renamed or removed while", |path, kept| {
            fs::rename(path, kept)
        }),
        ("links.csv.gz", "was renamed or removed while", |path, kept| {
            fs::rename(path, kept)
        }),
        ("site", "was renamed, removed or emptied while", |path, kept| {
            fs::rename(path, kept)?;
            fs::create_dir(path)
        }),
        ("state", "was renamed or removed", |path, kept| fs::rename(path, kept)),
        ("state", "was renamed or removed", |path, kept| {
            fs::rename(path, kept)?;
            fs::create_dir(path)?;
            fs::write(path.join("lock"), "")
        }),
        ("state/frontier.sqlite", "was renamed or removed", |path, kept| {
            fs::rename(path, kept)
        }),
    ];
    for (name, message, meanwhile) in cases {
        let folder = folder("kept-meanwhile");
        let (path, kept) = (PathBuf::from(folder.path(name)), PathBuf::from(folder.path("kept")));
        let (there, away) = (path.clone(), kept.clone());
        let crawl = Crawl {
            seed: site(move || meanwhile(&there, &away).unwrap()),
            folder,
        };
        let same = crawl.with("state", &OUTPUTS, "--sync-interval 1ms");
        fails(&same, 1, &[message]);
        // The way on: it is put back.
        let _ = fs::remove_file(path.join("lock"));
        if name == "site" {
            fs::remove_dir_all(&path).unwrap();
        }
        assert!(
            !path.is_dir() || fs::remove_dir(&path).is_ok(),
            "nothing is written to another directory"
        );
        fs::rename(&kept, &path).unwrap();
        succeeds(&same);
        let mut urls = texts_of(crawl.path("pages.jsonl"), "url");
        urls.sort();
        urls.dedup();
        let lines = text_of(&crawl.path("pages.jsonl")).lines().count();
        assert_eq!((urls.len(), lines), (10, 10), "{name} {message}");
    }
}

#[test]
fn without_a_state_directory_a_file_that_goes_away_ends_the_crawl_too() {
    let folder = folder("kept-stateless");
    let pages = PathBuf::from(folder.path("pages.jsonl"));
    let there = pages.clone();
    let seed = site(move || fs::remove_file(&there).unwrap());
    fails(
        &format!("--delay 0 -o {} {seed}", pages.display()),
        1,
        &["was renamed or removed while"],
    );
}

#[test]
fn all_outputs_are_series_of_files_by_one_setting_that_later_runs_continue() {
    let crawl = Crawl::new("kept-series");
    let files = |stem: &str, ending: &str| {
        let files = tree(Path::new(&crawl.path("")));
        let names = files
            .into_iter()
            .filter(|(_, bytes)| !bytes.is_empty())
            .map(|(path, _)| path.to_str().unwrap().to_owned());
        let start = crawl.path(stem);
        names
            .filter(|name| name.starts_with(&start) && name.ends_with(ending))
            .collect::<Vec<_>>()
    };
    let moved = crawl.path("moved.jsonl");
    let up_to = |most| {
        let options = format!("--sync-interval 1ms --set output-max-bytes=1 --max-pages {most}");
        succeeds(&crawl.with("state", &OUTPUTS[..4], &options))
    };
    for most in [3, 6, 10] {
        let printed = up_to(most);
        assert_eq!(number(&printed.stdout, "pages "), most);
        if most == 3 {
            // A file that is full may be moved away between two runs, or while one goes on.
            fs::rename(crawl.path("pages.jsonl"), &moved).unwrap();
        }
    }
    let mut urls = texts_of(&moved, "url");
    urls.extend(files("pages-", ".jsonl").iter().flat_map(|file| texts_of(file, "url")));
    urls.sort();
    let lines = urls.len();
    urls.dedup();
    assert_eq!((urls.len(), lines), (10, 10));
    let links: Vec<_> = files("links", ".csv.gz").iter().map(|file| text_of(file)).collect();
    assert!(
        links.len() >= 3 && links.iter().all(|text| text.starts_with("from,to")),
        "{links:?}"
    );
    assert!(files("pages-", ".warc.gz").len() >= 3 && files("refused", ".jsonl").len() >= 3);
    let outputs = || {
        let mut files = tree(Path::new(&crawl.path("")));
        files.retain(|path, _| !path.starts_with(crawl.path("state")));
        files
    };
    let before = outputs();
    up_to(10);
    assert!(outputs() == before, "a crawl that has ended begins no file");
}

#[test]
fn a_foreign_file_where_a_series_continues_is_moved_away_and_nothing_counts_as_lost() {
    let crawl = Crawl::new("kept-foreign-next");
    let same = crawl.with("state", &OUTPUTS[..1], "--set output-max-bytes=1GB");
    succeeds(&format!("{same} --max-pages 3"));
    let next = crawl.path("pages-00001.jsonl");
    fs::write(&next, "{}").unwrap();
    crawl.refuses(
        &same,
        "pages-00001.jsonl: this file, and those of its series that follow up to number 1, are not of the crawl",
    );
    crawl.refuses(&format!("{same} --accept-loss"), "move them away or remove them");
    fs::remove_file(&next).unwrap();
    let printed = succeeds(&same);
    assert!(!printed.stdout.contains("begun anew"), "{}", printed.stdout);
}

/// A refusal: what is done before it, the options, the exit code, a part of the message, and the way on that it names.
type Refusal = (fn(&Path), &'static str, i32, &'static str, WayOn);

enum WayOn {
    /// Something is done, and the command is repeated.
    Do(fn(&Path)),
    /// Other options.
    With(&'static str),
}

#[test]
fn each_refusal_names_a_way_on_that_works_and_leaves_no_folder_behind() {
    use WayOn::{Do, With};
    let nothing: fn(&Path) = |_| ();
    let refusals: [Refusal; 12] = [
        (
            nothing,
            "-o no/a.jsonl",
            2,
            "no does not exist: create it",
            Do(|dir| fs::create_dir(dir.join("no")).unwrap()),
        ),
        (
            nothing,
            "-o a.xml",
            2,
            "or give --format jsonl",
            With("-o a.xml --format jsonl"),
        ),
        (nothing, "-o -", 2, "with --state, give a file", With("-o a.jsonl")),
        (
            nothing,
            "-o a.jsonl --links a.jsonl",
            2,
            "give each its own file",
            With("-o a.jsonl --links b.jsonl"),
        ),
        (
            nothing,
            "--metrics-file no/a.prom",
            2,
            "no does not exist: create it",
            Do(|dir| fs::create_dir(dir.join("no")).unwrap()),
        ),
        (
            |dir| fs::write(dir.join("a.jsonl"), "{}").unwrap(),
            "-o a.jsonl",
            2,
            "give another name",
            With("-o b.jsonl"),
        ),
        (
            |dir| fs::write(dir.join("a.jsonl"), "{}").unwrap(),
            "-o a.jsonl",
            2,
            "or remove it",
            Do(|dir| fs::remove_file(dir.join("a.jsonl")).unwrap()),
        ),
        (
            |dir| fs::write(dir.join("site"), "{}").unwrap(),
            "-o a.jsonl --save site",
            2,
            "site has 2 B, and the crawl",
            With("-o a.jsonl --save pages"),
        ),
        (
            |dir| fs::write(dir.join("a.html"), "mine").unwrap(),
            "--report a.html",
            2,
            "is not replaced: give another name",
            With("--report b.html"),
        ),
        (
            |dir| fs::create_dir(dir.join("a.html")).unwrap(),
            "--report a.html",
            2,
            "cannot be replaced: give another name",
            With("--report b.html"),
        ),
        (nothing, "--memory 1MB", 2, "at least", With("--memory 1GB")),
        (
            |dir| fs::create_dir_all(dir.join("some/new/state")).unwrap(),
            "-o some/new/state/paused --format jsonl",
            2,
            "give the output another folder",
            With("-o a.jsonl"),
        ),
    ];
    let seed = site(|| ());
    for (before, options, code, message, way_on) in refusals {
        let folder = folder("kept-ways");
        before(&folder);
        let files = tree(&folder);
        let with = |options: &str| format!("--delay 0 --max-pages 2 --state some/new/state {options} {seed}");
        let run = |options: &str| command(&with(options)).current_dir(&*folder).output().unwrap();
        has_failed(&run(options), code, &[message]);
        assert!(tree(&folder) == files, "{options}: {:?}", tree(&folder).keys());
        let options = match way_on {
            Do(change) => {
                change(&folder);
                options
            }
            With(others) => others,
        };
        has_failed(&run(options), 0, &[]);
    }
}
