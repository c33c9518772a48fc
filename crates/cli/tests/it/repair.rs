//! `repair`: what it says of a directory that is whole, of one that is damaged, and of one that cannot be continued.

use std::fs;
use std::path::{Path, PathBuf};

use crate::pages_server::site_of;
use crate::program::{crawler, fails, folder, number, succeeds};
use serde_json::Value;

const PAGES: usize = 40;

/// A tree of pages.
fn site() -> String {
    site_of(|path| {
        let number: usize = path
            .trim_start_matches('/')
            .parse()
            .ok()
            .or((path == "/").then_some(0))?;
        let children = (number * 3 + 1..=number * 3 + 3).filter(|child| *child < PAGES);
        Some(children.map(|child| format!("<a href=/{child}>x</a>")).collect())
    })
}

/// An interrupted crawl in a state directory, with an output.
struct Crawl {
    folder: PathBuf,
    state: String,
    pages: String,
}

impl Crawl {
    fn new(name: &str, most: &str) -> Self {
        Self::of(name, most, &site())
    }

    fn of(name: &str, most: &str, seed: &str) -> Self {
        let folder = folder(name);
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let (state, pages) = (path("state"), path("pages.jsonl"));
        succeeds(&[
            "--delay",
            "0",
            "--max-pages",
            most,
            "--state",
            &state,
            "-o",
            &pages,
            seed,
        ]);
        Self { folder, state, pages }
    }

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

impl Drop for Crawl {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_directory_that_is_whole_stays_as_it_is() {
    let crawl = Crawl::new("repair-whole", "12");
    let before = fs::read(crawl.database()).unwrap();
    let (code, report) = crawl.repair();
    assert_eq!(
        (code, &report["outcome"], &report["has_losses"]),
        (0, &"whole".into(), &false.into())
    );
    assert_eq!(fs::read(crawl.database()).unwrap(), before);
    let text = succeeds(&["repair", &crawl.state]).stdout;
    assert!(text.contains("nothing is wrong, and nothing was changed"), "{text}");
    let nothing = crawl.folder.to_str().unwrap();
    fails(&["repair", nothing], 1, &["holds no crawl"]);
}

#[test]
fn of_a_database_that_is_cut_to_its_head_nothing_can_be_continued_and_one_of_another_program_is_left_alone() {
    let crawl = Crawl::new("repair-cut", "12");
    let whole = fs::read(crawl.database()).unwrap();
    for bytes in [0, 50, 4096, 8192] {
        fs::write(crawl.database(), &whole[..bytes]).unwrap();
        let (code, report) = crawl.repair();
        assert_eq!(
            (code, &report["outcome"]),
            (4, &"not_continued".into()),
            "{bytes}: {report}"
        );
        assert_eq!(fs::read(crawl.database()).unwrap().len(), bytes);
    }
    fs::remove_file(crawl.database()).unwrap();
    let other = rusqlite::Connection::open(crawl.database()).unwrap();
    other
        .execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        .unwrap();
    other.close().unwrap();
    let before = fs::read(crawl.database()).unwrap();
    fails(&["repair", &crawl.state], 1, &["is not the store of a frontier"]);
    assert_eq!(fs::read(crawl.database()).unwrap(), before);
}

#[test]
fn a_database_of_zeros_cannot_be_continued_and_may_have_been_that_of_another_program() {
    let crawl = Crawl::new("repair-zeros", "12");
    let length = fs::metadata(crawl.database()).unwrap().len();
    fs::write(crawl.database(), vec![0; length as usize]).unwrap();
    fails(
        &["status", &crawl.state],
        1,
        &["If a crawl has written it, crawler repair"],
    );
    let (code, report) = crawl.repair();
    assert_eq!((code, &report["outcome"]), (4, &"not_continued".into()), "{report}");
}

#[test]
fn a_damaged_file_of_rules_is_made_again_and_nothing_is_lost() {
    let crawl = Crawl::new("repair-rules", "12");
    fs::write(Path::new(&crawl.state).join("rules.json"), "{").unwrap();
    fails(&["status", &crawl.state], 1, &["rules.json", "crawler repair"]);
    let (code, report) = crawl.repair();
    assert_eq!((code, &report["has_losses"]), (0, &false.into()), "{report}");
    assert_eq!(report["set_aside"].as_array().map(Vec::len), Some(1));
    fails(&["resume", &crawl.state, "--sort-query"], 2, &["other rules"]);
    succeeds(&["resume", &crawl.state, "--max-pages", "100", "--fail-on-incomplete"]);
}

#[test]
fn a_crawl_whose_records_are_lost_is_repaired_and_continues_to_its_end() {
    let crawl = Crawl::new("repair-records", "12");
    crawl.damage("record");
    fails(
        &["list", &crawl.state, "--done"],
        1,
        &["crawler repair", "recovers what is intact"],
    );
    let (code, report) = crawl.repair();
    assert_eq!((code, &report["outcome"]), (3, &"repaired".into()), "{report}");
    assert!(report["record_rows_lost"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["journal_rows_dropped"], 0);
    let kept = report["kept"].as_str().unwrap();
    assert!(kept.ends_with("frontier.sqlite.damaged-1") && Path::new(kept).exists());
    assert_eq!(crawl.repair().0, 0, "it is whole now");
    let why = crawler(&["why", &crawl.state, &seed_of(&crawl)]);
    let why = String::from_utf8(why.stdout).unwrap();
    assert!(why.contains("this crawl was repaired"), "{why}");
    let resumed = succeeds(&[
        "--fail-on-incomplete",
        "--delay",
        "0",
        "--state",
        &crawl.state,
        "-o",
        &crawl.pages,
        &seed_of(&crawl),
    ]);
    assert_eq!(number(&resumed.stdout, "pages "), PAGES as u64);
    let lines = fs::read_to_string(&crawl.pages).unwrap();
    assert_eq!(lines.lines().count(), PAGES);
}

#[test]
fn damage_that_is_met_in_the_middle_of_a_crawl_names_the_repair() {
    // A queue of several segments, of which the first and the last are in the checkpoint.
    let wide = site_of(|path| {
        let links = (0..1500).map(|page| format!("<a href=/{page:030}>x</a>"));
        Some(if path == "/" { links.collect() } else { String::new() })
    });
    let crawl = Crawl::of("repair-midway", "1", &wide);
    let connection = rusqlite::Connection::open(crawl.database()).unwrap();
    let damage = "UPDATE segment SET value = zeroblob(length(value)) WHERE key = (SELECT max(key) FROM segment)";
    assert_eq!(connection.execute(damage, []).unwrap(), 1);
    connection.close().unwrap();
    let resume = ["--delay", "0", "--state", &crawl.state, "-o", &crawl.pages, &wide];
    fails(&resume, 1, &["crawler repair", "recovers what is intact"]);
    let pages = |crawl: &Crawl| fs::read_to_string(&crawl.pages).unwrap().lines().count();
    let before = pages(&crawl);
    assert!(before > 1, "it was met at once");

    let (code, report) = crawl.repair();
    assert_eq!(code, 3, "{report}");
    let lost = report["urls_lost"]["127.0.0.1"].as_u64().unwrap();
    // The losses are told until the end, and at the end.
    let status = succeeds(&["status", &crawl.state]).stdout;
    assert!(
        status.contains(&format!("{lost} waiting pages, and what only they lead to")),
        "{status}"
    );
    let lacks_some = [&["--fail-on-incomplete"], &resume[..]].concat();
    let text = format!("lost in a repair of the state directory: {lost} pages");
    let ended = crawler(&lacks_some);
    let stdout = String::from_utf8(ended.stdout)
        .unwrap()
        .replace("\n                    ", " ");
    assert!(stdout.contains("INCOMPLETE") && stdout.contains(&text), "{stdout}");
    assert_eq!(ended.status.code(), Some(3), "{stdout}");
    assert_eq!(pages(&crawl) as u64, 1501 - lost);
}

fn seed_of(crawl: &Crawl) -> String {
    let lines = fs::read_to_string(&crawl.pages).unwrap();
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    first["url"].as_str().unwrap().to_owned()
}

#[test]
fn what_cannot_be_continued_is_written_as_json_lines_and_left_as_it_is() {
    let crawl = Crawl::new("repair-not", "12");
    crawl.damage("checkpoint");
    let damaged = fs::read(crawl.database()).unwrap();
    fails(
        &[
            "--delay",
            "0",
            "--state",
            &crawl.state,
            "-o",
            &crawl.pages,
            &seed_of(&crawl),
        ],
        1,
        &["crawler repair"],
    );
    let (code, report) = crawl.repair();
    assert_eq!((code, &report["outcome"]), (4, &"not_continued".into()), "{report}");
    assert_eq!(fs::read(crawl.database()).unwrap(), damaged);
    let lines = fs::read_to_string(report["salvaged"].as_str().unwrap()).unwrap();
    let ended = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert_eq!(ended.filter(|line| line["end"] == "done").count(), 12);
    let text = String::from_utf8(crawler(&["repair", &crawl.state]).stdout).unwrap();
    assert!(
        text.contains("too much is lost to continue") && text.contains("salvaged-2.jsonl"),
        "{text}"
    );
}

#[test]
fn damaged_files_beside_the_database_are_set_aside() {
    let crawl = Crawl::new("repair-files", "12");
    for name in ["rules.json", "fetcher.json"] {
        fs::write(Path::new(&crawl.state).join(name), "{ this is no").unwrap();
    }
    let (code, report) = crawl.repair();
    assert_eq!(
        (code, report["set_aside"].as_array().unwrap().len()),
        (3, 2),
        "{report}"
    );
    succeeds(&[
        "--delay",
        "0",
        "--state",
        &crawl.state,
        "-o",
        &crawl.pages,
        &seed_of(&crawl),
    ]);
}

#[test]
fn commits_behind_wrong_bytes_of_the_log_are_told_and_their_pages_are_fetched_again() {
    let crawl = Crawl::new("repair-log", "12");
    // The log stays as long as another program reads.
    let reader = rusqlite::Connection::open(crawl.database()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM journal").unwrap();
    let seed = seed_of(&crawl);
    let resume = ["--delay", "0", "--state", &crawl.state, "-o", &crawl.pages, &seed];
    succeeds(&[&resume[..], &["--max-pages", "24"]].concat());
    let log = crawl.database().with_extension("sqlite-wal");
    let mut bytes = fs::read(&log).unwrap();
    let database = fs::read(crawl.database()).unwrap();
    drop(reader);
    let frame = 24 + 4096;
    let frames = (bytes.len() - 32) / frame;
    bytes[32 + frames / 2 * frame + 1000] ^= 4;
    fs::write(crawl.database(), database).unwrap();
    fs::write(&log, bytes).unwrap();

    let (code, report) = crawl.repair();
    assert_eq!((code, &report["outcome"]), (3, &"whole".into()), "{report}");
    assert!(report["log_commits_unread"].as_u64().unwrap() > 0, "{report}");
    let text = String::from_utf8(crawler(&["repair", &crawl.state]).stdout).unwrap();
    assert!(text.contains("whole, but for the end of its log"), "{text}");
    // A command that is refused does not use the evidence up.
    let refused = [&["--scope", "any"], &resume[..]].concat();
    fails(&refused, 2, &["--scope"]);
    let resumed = succeeds(&resume);
    assert!(
        resumed.stderr.contains("cannot be read, at least "),
        "{}",
        resumed.stderr
    );
    assert_eq!(number(&resumed.stdout, "pages "), PAGES as u64);
    assert_eq!(fs::read_to_string(&crawl.pages).unwrap().lines().count(), PAGES);
    assert_eq!(crawl.repair().0, 0, "it is said once");
}
