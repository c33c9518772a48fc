//! Pages that a crawl with a state directory fetches again: each URL keeps its one file, with the bytes of its last fetch.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::folder::Folder;
use crate::scripted::{self, Call, Reply, Run, Scripted};
use crawler::output::OutputFile;
use crawler::output::save::SavedFiles;
use crawler::{CrawlOptions, Request, TruncationReason};

const AGE: Duration = Duration::from_secs(3_600);
/// So long that all other pages come of age.
const SLOW: Duration = Duration::from_secs(7_200);

impl Folder {
    /// One run, at whose end all pages are old, because a new page takes so long.
    fn run_on_day(&self, day: u32, reply: impl Fn(&Call<'_>) -> Reply + Send + Sync + 'static) -> Run {
        let reply = move |call: &Call<'_>| match call.path().strip_prefix("/slow") {
            Some(new) if new == day.to_string() && call.earlier == 0 => Ok(scripted::page("slow")),
            Some(_) => Ok(scripted::page("fast")),
            None => reply(call),
        };
        let latency = |_: &Request, reply: &Reply| match reply {
            Ok(page) if page.body == b"slow" => SLOW,
            _ => Duration::from_millis(300),
        };
        let mut options = CrawlOptions {
            refresh: (day > 1).then_some(AGE),
            ..scripted::options("http://a.example/")
        };
        options.reports.bodies = true;
        options.seeds.push(format!("http://a.example/slow{day}"));
        options.frontier.politeness.ask_robots = false;
        options.frontier.politeness.per_host = 2.try_into().unwrap();
        let (names, site) = (self.0.join("names"), self.0.join("site"));
        Scripted::new(reply)
            .taking(latency)
            .crawl_in_with(&self.state(), options, |crawl| {
                let saved = crawl.saved_output("save");
                let file = match saved {
                    Some(saved) => OutputFile::reopen(&names, &saved.file),
                    None => OutputFile::append(&names),
                };
                let files = SavedFiles::continuing("save", &site, file.unwrap(), saved);
                crawl.observe(files.unwrap())
            })
    }

    /// The saved bodies by name, without those of slow pages.
    fn bodies(&self) -> BTreeMap<String, String> {
        let host = self.0.join("site/a.example");
        let body = |path: &Path| fs::read_to_string(path).unwrap();
        let all = fs::read_dir(host)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), body(&entry.path())));
        all.filter(|(name, _)| !name.starts_with("slow")).collect()
    }
}

/// The file of a URL, as its last line says.
fn saved_as(run: &Run, path: &str) -> Option<String> {
    let url = format!("http://a.example{path}");
    let mut pages = run.reports.pages.iter().rev();
    let page = pages.find(|page| page.url == url).unwrap();
    let name = page.saved_as.as_deref()?;
    Some(name.strip_prefix("a.example/").unwrap().to_owned())
}

#[test]
fn a_page_with_new_bytes_replaces_its_file_and_an_unchanged_one_keeps_it() {
    let folder = Folder::new("refresh");
    let site = |day: u32| {
        move |call: &Call<'_>| {
            let version = |name: &str| scripted::page(format!("<p>{name} of day {day}"));
            Ok(match call.path() {
                "/" => scripted::page(format!(
                    "{day} <a href=/a>x</a> <a href=/A>x</a> <a href=/same>x</a> <a href=/gone>x</a>"
                )),
                "/same" if day > 1 => scripted::status(304),
                "/same" => {
                    let mut page = version("same");
                    page.validators.etag = Some("\"v\"".to_owned());
                    page
                }
                "/gone" if day > 1 => scripted::status(410),
                path => version(path),
            })
        }
    };
    let first = folder.run_on_day(1, site(1));
    let names = ["/a", "/A"].map(|path| saved_as(&first, path).unwrap());
    let mut sorted = names.clone();
    sorted.sort_by_key(String::len);
    assert!(
        sorted[0].len() == 6 && sorted[1].contains('~'),
        "one name is taken: {names:?}"
    );
    for day in 2..5 {
        let run = folder.run_on_day(day, site(day));
        assert_eq!(
            ["/a", "/A"].map(|path| saved_as(&run, path).unwrap()),
            names,
            "day {day}"
        );
        assert_eq!(saved_as(&run, "/same"), None);
        let found = folder.bodies();
        let files = found.keys().cloned().collect::<Vec<_>>();
        assert_eq!(files.len(), 5, "day {day}: {files:?}");
        assert_eq!(found[&names[0]], format!("<p>/a of day {day}"));
        assert_eq!(found[&names[1]], format!("<p>/A of day {day}"));
        assert!(found["index.html"].starts_with(&day.to_string()));
        assert_eq!(found["same.html"], "<p>same of day 1");
        assert_eq!(found["gone.html"], "<p>/gone of day 1");
    }
}

#[test]
fn a_part_of_a_body_is_replaced_by_the_whole_one() {
    let folder = Folder::new("part");
    let body = |call: &Call<'_>| match call.path() {
        "/" => scripted::page("<a href=/a>x</a>"),
        _ => scripted::page("<p>all of the page"),
    };
    let first = folder.run_on_day(1, move |call| {
        let mut page = body(call);
        if call.path() == "/a" {
            page.body.truncate(6);
            page.truncation = Some(TruncationReason::Connection);
        }
        Ok(page)
    });
    assert_eq!(saved_as(&first, "/a").unwrap(), "a.html");
    assert_eq!(folder.bodies()["a.html"], "<p>all");
    let second = folder.run_on_day(2, move |call| Ok(body(call)));
    assert_eq!(saved_as(&second, "/a").unwrap(), "a.html");
    let found = folder.bodies();
    assert_eq!(found["a.html"], "<p>all of the page");
    assert_eq!(found.len(), 2, "{found:?}");
}
