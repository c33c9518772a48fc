//! `repair`: what it says of a directory that is whole, of one that is damaged, and of one that cannot be continued.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{crawler, fails, lines_of, number, succeeds};
use crate::servers::tree;
use crate::state::Crawl;
use serde_json::Value;

const PAGES: usize = 40;

/// Makes a crawl that was interrupted after twelve pages.
fn interrupted(name: &str) -> Crawl {
    let crawl = Crawl::of(name, tree(PAGES));
    succeeds(&crawl.with("--max-pages 12"));
    crawl
}

impl Crawl {
    fn database(&self) -> PathBuf {
        Path::new(&self.state).join("frontier.sqlite")
    }

    /// Repairs it, and returns the exit code and the report.
    fn repair(&self) -> (i32, Value) {
        let output = crawler(&["repair", "--json", &self.state]);
        let report = serde_json::from_slice(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        (
            output.status.code().unwrap(),
            report.unwrap_or_else(|error| panic!("{error}: {stderr}")),
        )
    }

    /// Overwrites the pages of the database that hold a table, but for its head.
    fn damage(&self, table: &str) {
        let connection = rusqlite::Connection::open(self.database()).unwrap();
        let sql = "SELECT pageno FROM dbstat WHERE name = ?1 ORDER BY pageno";
        let mut statement = connection.prepare(sql).unwrap();
        let pages: Vec<u32> = statement
            .query_map([table], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        drop(statement);
        connection.close().unwrap();
        let mut bytes = fs::read(self.database()).unwrap();
        for page in pages {
            let end = page as usize * 4096;
            bytes[end - 4096..end].fill(0xa5);
        }
        fs::write(self.database(), bytes).unwrap();
    }
}

#[test]
fn a_directory_that_is_whole_stays_as_it_is() {
    let crawl = interrupted("repair-whole");
    let before = fs::read(crawl.database()).unwrap();
    let (code, report) = crawl.repair();
    assert_eq!((code, &report["outcome"]), (0, &"whole".into()));
    assert_eq!(fs::read(crawl.database()).unwrap(), before);
    let text = succeeds(&["repair", &crawl.state]).stdout;
    assert!(text.contains("nothing is wrong, and nothing was changed"), "{text}");
    let nothing = crawl.folder.to_str().unwrap();
    fails(&["repair", nothing], 1, &["holds no crawl"]);
}

#[test]
fn a_database_of_which_nothing_can_be_read_and_one_of_another_program_are_refused_and_left_alone() {
    let crawl = interrupted("repair-cut");
    let whole = fs::read(crawl.database()).unwrap();
    let log = Path::new(&crawl.state).join("frontier.sqlite-wal");
    let nothing = "nothing of it can be read: begin in another directory";
    let no_store = "is not the store of a frontier";
    for (bytes, message) in [
        (vec![], no_store),
        (whole[..50].to_vec(), "is damaged"),
        (whole[..2000].to_vec(), "is damaged"),
        (vec![0; whole.len()], no_store),
    ] {
        fs::write(crawl.database(), &bytes).unwrap();
        fs::write(&log, "log").unwrap();
        let says = ["frontier.sqlite", message, "from a copy", nothing];
        fails(&["repair", &crawl.state], 4, &says);
        let left = (fs::read(crawl.database()).unwrap(), fs::read(&log).unwrap());
        assert_eq!(left, (bytes, b"log".to_vec()));
    }
    fs::remove_file(crawl.database()).unwrap();
    fails(&["repair", &crawl.state], 4, &["but its log is there", nothing]);
    fs::remove_file(log).unwrap();
    let other = rusqlite::Connection::open(crawl.database()).unwrap();
    other
        .execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        .unwrap();
    other.close().unwrap();
    let before = fs::read(crawl.database()).unwrap();
    fails(&["repair", &crawl.state], 4, &[no_store, nothing]);
    assert_eq!(fs::read(crawl.database()).unwrap(), before);
}

#[test]
fn a_crawl_whose_index_is_damaged_is_repaired_without_a_loss() {
    let crawl = interrupted("repair-index");
    crawl.damage("page_failed");
    fails(&["list", &crawl.state, "--failed"], 1, &["crawler repair"]);
    let (_, report) = crawl.repair();
    assert_eq!(report["outcome"], "repaired", "{report}");
    assert_eq!(
        (&report["pages_lost"], &report["commits_dropped"]),
        (&0.into(), &0.into())
    );
    succeeds(&["list", &crawl.state, "--failed"]);
}

#[test]
fn a_crawl_whose_pages_are_lost_is_repaired_and_continues_to_its_end() {
    let crawl = interrupted("repair-pages");
    crawl.damage("page");
    fails(&["list", &crawl.state, "--done"], 1, &["crawler repair"]);
    let (code, report) = crawl.repair();
    assert_eq!((code, &report["outcome"]), (3, &"repaired".into()), "{report}");
    assert!(report["pages_lost"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["commits_dropped"], 0);
    let kept = report["kept"].as_str().unwrap();
    assert!(kept.ends_with("frontier.sqlite.damaged-1") && Path::new(kept).exists());
    assert_eq!(crawl.repair().0, 0, "it is whole now");
    let resumed = succeeds(&crawl.with("--fail-on-incomplete"));
    assert_eq!(number(&resumed.stdout, "pages "), PAGES as u64);
    assert_eq!(lines_of(&crawl.pages).len(), PAGES);
}

#[test]
fn what_cannot_be_continued_is_exported_for_a_new_crawl_and_left_as_it_is() {
    let crawl = interrupted("repair-not");
    crawl.damage("checkpoint");
    let damaged = fs::read(crawl.database()).unwrap();
    fails(&crawl.with(""), 2, &["crawler repair"]);
    let (code, report) = crawl.repair();
    assert_eq!((code, &report["outcome"]), (4, &"exported".into()), "{report}");
    assert_eq!(fs::read(crawl.database()).unwrap(), damaged);
    let export = report["exported_to"].as_str().unwrap();
    let ended = lines_of(export);
    assert_eq!(ended.iter().filter(|line| line["end"] == "done").count(), 12);
    let text = String::from_utf8(crawler(&["repair", &crawl.state]).stdout).unwrap();
    assert!(
        text.contains("no state is whole") && text.contains("export-2.jsonl"),
        "{text}"
    );
    // A new crawl begins with it.
    let again = crawl.folder.path("again.jsonl");
    succeeds(&format!("--delay 0 --seeds {export} -o {again} {}", crawl.seed));
    assert_eq!(lines_of(again).len(), PAGES);
}

#[test]
fn damaged_files_beside_the_database_are_set_aside() {
    let crawl = interrupted("repair-files");
    for name in ["rules.json", "fetcher.json"] {
        fs::write(Path::new(&crawl.state).join(name), "{ this is no").unwrap();
    }
    fails(&["status", &crawl.state], 1, &["rules.json", "crawler repair"]);
    let (code, report) = crawl.repair();
    let aside = report["set_aside"].as_array().unwrap().len();
    assert_eq!((code, aside), (0, 2), "{report}");
    fails(&["resume", &crawl.state, "--set=sort-query=true"], 2, &["other rules"]);
    succeeds(&["resume", &crawl.state, "--max-pages", "100", "--fail-on-incomplete"]);
}
