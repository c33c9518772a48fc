//! `--state` with outputs that the next run leaves out or writes elsewhere: the messages say what to type.

use std::fs;
use std::path::{Path, PathBuf};

use crate::pages_server::site_of;
use crate::program::{fails, folder, number, succeeds};

struct Crawl {
    seed: String,
    folder: PathBuf,
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
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    /// The command with some outputs.
    fn with(&self, outputs: &[&str]) -> Vec<String> {
        let common = ["--delay", "0", "--state", &self.path("state"), &self.seed].map(str::to_owned);
        let outputs = outputs.iter().map(|text| (*text).to_owned());
        common.into_iter().chain(outputs).collect()
    }

    /// Checks that the command has both pages after it, and begins no output anew.
    fn succeeds(&self, outputs: &[&str]) {
        let arguments = self.with(outputs);
        let printed = succeeds(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(number(&printed.stdout, "pages "), 2);
        assert!(!printed.stderr.contains("is new in this run"), "{}", printed.stderr);
    }

    /// Checks that the command fails with a message.
    #[track_caller]
    fn fails(&self, outputs: &[&str], code: i32, message: &str) {
        let arguments = self.with(outputs);
        fails(
            &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
            code,
            &[message],
        );
    }
}

impl Drop for Crawl {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn the_folder_of_save_is_named_when_it_is_left_out_and_another_one_is_refused() {
    let crawl = Crawl::new("save");
    let (site, other, pages) = (crawl.path("site"), crawl.path("other"), crawl.path("pages.jsonl"));
    crawl.succeeds(&["--save", &site, "-o", &pages]);
    let lines = fs::read(&pages).unwrap();
    let left_out = format!("also writes --save {site}: give it again\n");
    crawl.fails(&["-o", &pages], 2, &left_out);
    let links = crawl.path("links.jsonl");
    fs::write(&links, "of another crawl\n").unwrap();
    let elsewhere = ["--save", &other, "-o", &pages, "--links", &links];
    let refused = format!("{other}: the crawl has saved pages in {site}, and this is another folder: give that one");
    crawl.fails(&elsewhere, 1, &refused);
    assert!(!Path::new(&other).exists(), "no folder is made");
    assert_eq!(fs::read_to_string(&links).unwrap(), "of another crawl\n");

    fs::rename(&site, &other).unwrap();
    crawl.fails(&["--save", &site, "-o", &pages], 1, "it is missing: put it back");
    crawl.succeeds(&["--save", &other, "-o", &pages]);
    crawl.fails(
        &["-o", &pages],
        2,
        &format!("also writes --save {other}: give it again\n"),
    );
    assert_eq!(fs::read(&pages).unwrap(), lines);
}

#[test]
fn files_of_records_that_are_left_out_are_named_with_options_that_exist() {
    let crawl = Crawl::new("records");
    let (pages, links, refused) = (
        crawl.path("pages.csv"),
        crawl.path("links"),
        crawl.path("refused.jsonl"),
    );
    crawl.fails(&["-o", "-", "--format", "csv"], 2, "--output is not a file");
    crawl.succeeds(&["-o", &pages]);
    crawl.fails(&[], 2, &format!("also writes --output {pages}: give it again\n"));
    let other = ["-o", &pages, "--format", "jsonl"];
    let as_csv = format!("also writes --output {pages} --format csv: give it again\n");
    crawl.fails(&other, 2, &as_csv);

    let crawl = Crawl::new("formats");
    let pages = crawl.path("pages.csv");
    crawl.succeeds(&[
        "-o",
        &pages,
        "--links",
        &links,
        "--refused",
        &refused,
        "--format",
        "csv",
    ]);
    let left_out = [
        (
            &["--links", &links, "--refused", &refused][..],
            format!("--output {pages}"),
        ),
        (&["-o", &pages, "--refused", &refused], format!("--links {links}")),
        (&["-o", &pages, "--links", &links], format!("--refused {refused}")),
    ];
    for (outputs, message) in left_out {
        let outputs = [outputs, &["--format", "csv"]].concat();
        crawl.fails(&outputs, 2, &format!("also writes {message}: give it again\n"));
    }
    crawl.fails(
        &["-o", &pages, "--links", &links, "--refused", &refused],
        2,
        &format!("also writes --links {links} --format csv: give it again\n"),
    );
}

#[test]
fn an_archive_of_several_files_that_is_left_out_is_named_by_its_first_one() {
    let crawl = Crawl::new("archives");
    let (archive, pages) = (crawl.path("pages-00001.warc.gz"), crawl.path("pages.jsonl"));
    let outputs = ["-o", &pages, "--warc", &archive, "--warc-max-bytes", "1"];
    crawl.succeeds(&outputs);
    assert!(Path::new(&crawl.path("pages-00001-00001.warc.gz")).exists());
    crawl.fails(
        &outputs[..2],
        2,
        &format!("also writes --warc {archive}: give it again\n"),
    );
    crawl.succeeds(&outputs);
}
