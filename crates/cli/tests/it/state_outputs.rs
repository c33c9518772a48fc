//! `--state` with outputs that the next run leaves out or writes elsewhere: the messages say what to type.

use std::fs;
use std::path::Path;

use crate::program::{Folder, fails, folder, number, succeeds, text_of};
use crate::servers::site_of;

struct Crawl {
    seed: String,
    folder: Folder,
}

impl Crawl {
    fn new(name: &str) -> Self {
        let page = |path: &str| (path != "/robots.txt").then(|| format!("{path} <a href=/a>x</a>"));
        Self {
            seed: site_of(page),
            folder: folder(&format!("state-outputs-{name}")),
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    /// The command with some outputs.
    fn with(&self, outputs: &str) -> String {
        format!("--delay 0 --state {} {} {outputs}", self.path("state"), self.seed)
    }

    /// Checks that the command has both pages after it, and begins no output anew.
    #[track_caller]
    fn succeeds(&self, outputs: &str) {
        let printed = succeeds(&self.with(outputs));
        assert_eq!(number(&printed.stdout, "pages "), 2);
        assert!(!printed.stderr.contains("is new in this run"), "{}", printed.stderr);
    }

    /// Checks that the command fails with a message.
    #[track_caller]
    fn fails(&self, outputs: &str, code: i32, message: &str) {
        fails(&self.with(outputs), code, &[message]);
    }

    /// Checks that the command names an output that it does not have.
    #[track_caller]
    fn misses(&self, outputs: &str, missing: &str) {
        self.fails(outputs, 2, &format!("also writes {missing}: give it again, or"));
    }
}

#[test]
fn save_is_named_when_it_is_left_out_and_another_one_is_refused() {
    let crawl = Crawl::new("save");
    let (site, other, pages) = (crawl.path("site"), crawl.path("other"), crawl.path("pages.jsonl"));
    crawl.succeeds(&format!("--save {site} -o {pages}"));
    let lines = fs::read(&pages).unwrap();
    crawl.misses(&format!("-o {pages}"), "--save");
    let refused = format!("{other}: the crawl has saved pages in {site}, and this is another folder: give that one");
    crawl.fails(&format!("--save {other} -o {pages}"), 2, &refused);
    assert!(!Path::new(&other).exists(), "no folder is made");

    fs::rename(&site, &other).unwrap();
    crawl.fails(&format!("--save {site} -o {pages}"), 2, "it is missing: put it back");
    crawl.succeeds(&format!("--save {other} -o {pages}"));
    crawl.misses(&format!("-o {pages}"), "--save");
    assert_eq!(fs::read(&pages).unwrap(), lines);

    fs::remove_dir_all(&other).unwrap();
    fs::create_dir(&other).unwrap();
    let foreign = Path::new(&other).join("index.html");
    fs::write(&foreign, "mine").unwrap();
    crawl.fails(
        &format!("--save {other} -o {pages}"),
        2,
        "this is another folder: give that one",
    );
    assert_eq!(fs::read(&foreign).unwrap(), b"mine");
    fs::remove_file(&foreign).unwrap();
    let options = format!("--save {other} -o {pages} --fail-on-incomplete");
    let message = format!("{other}: the bodies of earlier runs are gone");
    fails(&crawl.with(&options), 3, &[&message, "1 output begun anew"]);
}

#[test]
fn files_of_records_that_are_left_out_are_named_with_options_that_exist() {
    let crawl = Crawl::new("records");
    let (pages, links, refused) = (
        crawl.path("pages.csv"),
        crawl.path("links"),
        crawl.path("refused.jsonl"),
    );
    crawl.fails("-o - --format csv", 2, "--output is not a file");
    crawl.succeeds(&format!("-o {pages}"));
    crawl.misses("", &format!("--output {pages}"));
    let as_csv = format!("--output {pages} --format csv");
    crawl.misses(&format!("-o {pages} --format jsonl"), &as_csv);

    let crawl = Crawl::new("formats");
    let pages = crawl.path("pages.csv");
    let all = [
        format!("--output {pages}"),
        format!("--links {links}"),
        format!("--refused {refused}"),
    ];
    crawl.succeeds(&format!("{} --format csv", all.join(" ")));
    for missing in &all {
        let others: Vec<_> = all.iter().filter(|one| *one != missing).cloned().collect();
        crawl.misses(&format!("{} --format csv", others.join(" ")), missing);
    }
    crawl.misses(&all.join(" "), &format!("--links {links} --format csv"));
}

#[test]
fn files_that_are_compressed_or_marked_are_continued_with_each_line_once() {
    for (name, options, lines) in [
        ("pages.jsonl.gz", "", 2),
        ("pages.csv.gz", "", 3),
        ("pages.csv", "--format csv-bom", 3),
        ("pages.gz", "--format csv-bom", 3),
    ] {
        let crawl = Crawl::new(&format!("marked-{}", name.len() + options.len()));
        let pages = crawl.path(name);
        let outputs = format!("-o {pages} {options}");
        succeeds(&crawl.with(&format!("{outputs} --max-pages 1")));
        crawl.succeeds(&outputs);
        crawl.succeeds(&outputs);
        let text = text_of(&pages);
        assert_eq!(text.lines().count(), lines, "{name}: {text}");
        assert_eq!(
            text.matches('\u{feff}').count(),
            usize::from(!options.is_empty()),
            "{name}: {text}"
        );
        crawl.misses("", format!("--output {pages} {options}").trim_end());
        // The same file with another name would have two kinds of content.
        let other = crawl.path("renamed.jsonl");
        fs::rename(&pages, &other).unwrap();
        crawl.fails(&format!("-o {other}"), 2, "also writes --output");
    }
}
