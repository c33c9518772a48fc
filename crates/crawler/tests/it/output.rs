//! The output files: links, refused URLs, selected fields, CSV, and saved bodies.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::memory_file::MemoryFile;
use crate::scripted::{self, Call, Reply, Scripted};
use crawler::output::links::LinkGraph;
use crawler::output::pages::Pages;
use crawler::output::refused::RefusedReport;
use crawler::output::save::SavedFiles;
use crawler::output::{Format, Sink};
use crawler::{Event, FetchError, Observer, PageRecord, Response};
use serde_json::{Value, json};

const PAGE: &str = r#"<title>Start</title><h1>One <b>two</b></h1>
<a href=/a>a</a> <a href=/a rel=nofollow>a again</a> <area href=/hidden rel=nofollow>
<link rel=canonical href=/> <a href=/moved>m</a> <a href=/missing>404</a> <a href=/down>down</a> <a href=/refused>r</a>
<a href=/forbidden/x>f</a> <a href=http://other.example/>o</a>"#;

fn site(call: &Call<'_>) -> Reply {
    let page = |code, body: &str| Response {
        status: code,
        ..scripted::page_of("text/html", body)
    };
    Ok(match call.path() {
        _ if call.is_robots() => page(200, "User-agent: *\nDisallow: /forbidden/\n"),
        "/" => page(200, PAGE),
        "/a" => page(
            200,
            "<title> </title><a href=http://other.example/>o</a><a href=/>up</a>",
        ),
        "/moved" => scripted::redirect("/a"),
        "/down" => page(503, "busy"),
        "/refused" => return Err(FetchError::Broken("nonsense".to_owned())),
        _ => page(404, "<h1>not here</h1>"),
    })
}

struct Files {
    pages: Vec<Value>,
    links: Vec<Value>,
    refused: Vec<Value>,
}

fn crawl(fields: &[&str]) -> Files {
    let mut options = scripted::options("http://site.example/");
    options.frontier.retries.max_host_downtime = std::time::Duration::MAX;
    options.frontier.retries.max_first_downtime = std::time::Duration::MAX;
    options.reports.fields = fields.iter().map(|field| field.parse().unwrap()).collect();
    options.reports.links = true;
    let (pages, links, refused) = (MemoryFile::default(), MemoryFile::default(), MemoryFile::default());
    let observers = (
        Pages::new(Sink::new(pages.clone()), Format::JsonLines, &[]).unwrap(),
        LinkGraph::new(Sink::new(links.clone()), Format::JsonLines).unwrap(),
        RefusedReport::new(Sink::new(refused.clone()), Format::JsonLines).unwrap(),
    );
    Scripted::new(site).crawl_with(options, |crawl| {
        crawl.observe(observers.0).observe(observers.1).observe(observers.2)
    });
    Files {
        pages: pages.lines(),
        links: links.lines(),
        refused: refused.lines(),
    }
}

#[test]
fn the_link_graph_has_every_link_with_its_verdict() {
    let edges: BTreeSet<_> = crawl(&[])
        .links
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap().replace("http://site.example", "");
            let nofollow = line["nofollow"].as_bool().unwrap();
            (text("from"), text("to"), text("kind"), nofollow, text("verdict"))
        })
        .collect();
    let edge = |from: &str, to: &str, kind: &str, nofollow: bool, verdict: &str| {
        (
            from.to_owned(),
            to.to_owned(),
            kind.to_owned(),
            nofollow,
            verdict.to_owned(),
        )
    };
    let other = "http://other.example/";
    assert_eq!(
        edges,
        BTreeSet::from([
            edge("/", "/a", "anchor", false, "queued"),
            edge("/", "/hidden", "area", true, "nofollow"),
            edge("/", "/", "canonical", false, "seen"),
            edge("/", "/moved", "anchor", false, "queued"),
            edge("/", "/missing", "anchor", false, "queued"),
            edge("/", "/down", "anchor", false, "queued"),
            edge("/", "/refused", "anchor", false, "queued"),
            edge("/", "/forbidden/x", "anchor", false, "queued"),
            edge("/", other, "anchor", false, "other_host"),
            edge("/a", other, "anchor", false, "other_host"),
            edge("/a", "/", "anchor", false, "seen"),
            edge("/moved", "/a", "redirect", false, "seen"),
        ])
    );
}

#[test]
fn the_report_has_one_line_with_the_reason_for_each_url_that_was_not_fetched() {
    let refused = crawl(&[]).refused;
    let start = "http://site.example/";
    let by_url: BTreeMap<&str, &Value> = refused
        .iter()
        .map(|line| (line["url"].as_str().unwrap(), line))
        .collect();
    assert_eq!(by_url.len(), refused.len(), "each once: {refused:?}");
    let expected = [
        ("http://other.example/", "refused", "other_host", json!(null)),
        ("http://site.example/hidden", "not_followed", "nofollow", json!(null)),
        (
            "http://site.example/forbidden/x",
            "not_fetched",
            "robots_forbid",
            json!(null),
        ),
        ("http://site.example/missing", "failed", "status", json!(404)),
        ("http://site.example/down", "failed", "status", json!(503)),
        ("http://site.example/refused", "failed", "broken", json!(null)),
    ];
    assert_eq!(by_url.len(), expected.len(), "{by_url:?}");
    for (url, class, reason, status) in expected {
        let line = by_url[url];
        assert_eq!(
            (&line["class"], &line["reason"], &line["status"]),
            (&json!(class), &json!(reason), &status),
            "{url}"
        );
        assert_eq!((&line["referrer"], &line["depth"]), (&json!(start), &json!(1)), "{url}");
    }
    assert_eq!(
        by_url["http://site.example/refused"]["detail"],
        "broken answer: nonsense"
    );
}

#[test]
fn every_page_has_every_selected_field_as_a_list() {
    let pages = crawl(&["heading=h1", "link=a::attr(href)"]).pages;
    let selected = |path: &str| {
        let url = format!("http://site.example{path}");
        &pages.iter().find(|page| page["url"] == *url).unwrap()["selected"]
    };
    assert_eq!(selected("/")["heading"], json!(["One two"]));
    assert_eq!(selected("/")["link"].as_array().unwrap().len(), 8);
    assert_eq!(
        selected("/a"),
        &json!({"heading": [], "link": ["http://other.example/", "/"]})
    );
    assert_eq!(
        selected("/missing"),
        &json!({"heading": [], "link": []}),
        "only pages that answer 2xx are read"
    );
    assert!(crawl(&[]).pages.iter().all(|page| page["selected"].is_null()));
}

#[test]
fn every_record_has_every_field_with_the_same_type() {
    let mut kinds: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let pages = crawl(&["heading=h1"]).pages;
    for page in &pages {
        for (name, value) in page.as_object().unwrap() {
            let kind = match value {
                Value::Null => continue,
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            kinds.entry(name.clone()).or_default().insert(kind);
        }
        assert_eq!(page.as_object().unwrap().len(), pages[0].as_object().unwrap().len());
        let at = page["fetched_at"].as_str().unwrap();
        assert!(
            at.len() == "2026-01-01T00:00:00.000Z".len() && at.ends_with('Z') && at.as_bytes()[10] == b'T',
            "{at}"
        );
    }
    assert!(kinds.values().all(|kinds| kinds.len() == 1), "{kinds:?}");
}

/// Crawls the site with kept bodies and one more observer.
fn crawl_with(observer: impl Observer + 'static, fields: &[&str]) -> Vec<Value> {
    let mut options = scripted::options("http://site.example/");
    options.reports.fields = fields.iter().map(|field| field.parse().unwrap()).collect();
    options.reports.bodies = true;
    let pages = MemoryFile::default();
    // Lines before the observer: the order must not matter.
    let lines = Pages::new(Sink::new(pages.clone()), Format::JsonLines, &[]).unwrap();
    Scripted::new(site).crawl_with(options, |crawl| crawl.observe(lines).observe(observer));
    pages.lines()
}

#[test]
fn csv_has_the_fields_of_json_lines_in_the_same_order_and_a_column_per_selected_field() {
    let fields = ["heading=h1", "link=a::attr(href)"];
    let parsed: Vec<_> = fields.iter().map(|field| field.parse().unwrap()).collect();
    let csv = MemoryFile::default();
    let pages = crawl_with(
        Pages::new(Sink::new(csv.clone()), Format::Csv, &parsed).unwrap(),
        &fields,
    );
    let text = csv.text();
    assert!(text.lines().count() > 2 && text.ends_with("\r\n"), "{text}");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    // In the JSON of an empty record only one value is a string, and it follows a colon.
    let record = serde_json::to_string(&PageRecord::default()).unwrap();
    let names = record.split(['{', ',']).filter_map(|field| field.split_once(':'));
    let expected: Vec<String> = names
        .map(|(name, _)| {
            name.trim_matches('"')
                .replace("selected", "selected.heading,selected.link")
        })
        .collect();
    let expected: Vec<String> = expected.join(",").split(',').map(str::to_owned).collect();
    assert_eq!(header, expected);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), pages.len());
    let cell =
        |row: &csv::StringRecord, name: &str| row[header.iter().position(|other| other == name).unwrap()].to_owned();
    for (row, page) in rows.iter().zip(&pages) {
        assert_eq!(json!(cell(row, "url")), page["url"]);
        assert_eq!(cell(row, "status"), page["status"].to_string());
        assert_eq!(cell(row, "selected.link"), page["selected"]["link"].to_string());
        assert_eq!(cell(row, "noindex"), "false");
        assert_eq!(cell(row, "lastmod"), "", "null");
    }
}

#[test]
fn csv_escapes_texts_that_a_spreadsheet_runs_as_formulas() {
    let csv = MemoryFile::default();
    let mut output = Pages::new(Sink::new(csv.clone()), Format::Csv, &[]).unwrap();
    let titles = [
        "=1+1",
        "+1",
        "-1",
        "@x",
        "\t=1",
        "＝1",
        "1=1",
        "a \"quoted\", text\nof two lines",
    ];
    for title in titles {
        let page = PageRecord {
            title: Some(title.to_owned()),
            ..PageRecord::default()
        };
        output.on(&Event::Page(&page)).unwrap();
    }
    drop(output);
    let text = csv.text();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let at = reader
        .headers()
        .unwrap()
        .iter()
        .position(|name| name == "title")
        .unwrap();
    let written: Vec<String> = reader.records().map(|row| row.unwrap()[at].to_owned()).collect();
    let expected = titles.map(|title| {
        let is_formula = !title.starts_with(['1', 'a']);
        if is_formula {
            format!("'{title}")
        } else {
            title.to_owned()
        }
    });
    assert_eq!(written, expected);
}

#[test]
fn links_and_refusals_are_written_as_csv_too() {
    let (links, refused) = (MemoryFile::default(), MemoryFile::default());
    let (mut graph, mut report) = (
        LinkGraph::new(Sink::new(links.clone()), Format::Csv).unwrap(),
        RefusedReport::new(Sink::new(refused.clone()), Format::Csv).unwrap(),
    );
    let page = PageRecord {
        url: "http://a.example/x,y".to_owned(),
        status: 404,
        ..PageRecord::default()
    };
    report.on(&Event::Page(&page)).unwrap();
    graph.on(&Event::Page(&page)).unwrap();
    drop((graph, report));
    assert_eq!(links.text(), "from,to,kind,nofollow,verdict,key\r\n");
    let lines =
        "url,class,reason,status,referrer,depth,detail,data\r\n\"http://a.example/x,y\",failed,status,404,,0,,\r\n";
    assert_eq!(refused.text(), lines);
}

/// Makes an empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("saved-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Saves a body, and returns its name.
fn save(files: &mut SavedFiles, url: &str, bytes: &[u8]) -> String {
    try_save(files, url, bytes).unwrap()
}

fn try_save(files: &mut SavedFiles, url: &str, bytes: &[u8]) -> std::io::Result<String> {
    let page = PageRecord {
        url: url.to_owned(),
        content_type: Some("text/plain".to_owned()),
        ..PageRecord::default()
    };
    let saved_as = OnceCell::new();
    files.on(&Event::Body {
        page: &page,
        bytes,
        saved_as: &saved_as,
    })?;
    Ok(saved_as.into_inner().unwrap())
}

/// Returns all files below a folder, with their contents.
fn files_below(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn every_page_with_a_body_is_saved_and_its_line_names_the_file() {
    let folder = folder("crawl");
    let pages = crawl_with(SavedFiles::create(&folder).unwrap(), &[]);
    let saved: BTreeMap<&str, &str> = pages
        .iter()
        .filter_map(|page| Some((page["url"].as_str().unwrap(), page["saved_as"].as_str()?)))
        .collect();
    let expected = [
        ("http://site.example/", "site.example/index.html"),
        ("http://site.example/a", "site.example/a.html"),
    ];
    assert_eq!(saved, BTreeMap::from(expected));
    assert!(pages.len() > saved.len(), "pages of status 404 are not saved");
    let files = files_below(&folder);
    assert_eq!(files.len(), 2, "{files:?}");
    assert_eq!(files["site.example/index.html"], PAGE);
}

#[test]
fn two_urls_of_a_crawl_never_share_a_file_and_a_second_crawl_replaces_the_files() {
    let folder = folder("collisions");
    let urls = [
        "http://a.example/data",
        "http://a.example/data/x",
        "http://a.example/data/y",
        "http://a.example/DATA",
        "http://a.example/d/e",
        "http://a.example/d",
        "http://a.example/c:d",
        "http://a.example/c%3Ad",
        "https://a.example/data",
    ];
    let mut first = BTreeMap::new();
    for _ in 0..2 {
        let mut files = SavedFiles::create(&folder).unwrap();
        let saved: BTreeMap<String, String> = urls
            .iter()
            .map(|url| (save(&mut files, url, url.as_bytes()), (*url).to_owned()))
            .collect();
        assert_eq!(saved.len(), urls.len(), "{saved:?}");
        assert_eq!(files_below(&folder), saved);
        if !first.is_empty() {
            assert_eq!(saved, first, "the same names again");
        }
        first = saved;
    }
    let folders: BTreeSet<_> = first
        .keys()
        .filter(|name| name.ends_with("/x") || name.ends_with("/y"))
        .map(|name| name.rsplit_once('/').unwrap().0)
        .collect();
    assert_eq!(folders.len(), 1, "files of one folder stay in one folder: {folders:?}");
}

#[cfg(unix)]
#[test]
fn links_in_the_folder_are_not_followed() {
    use std::os::unix::fs::symlink;
    let (folder, outside) = (folder("links"), folder("outside"));
    fs::write(outside.join("precious"), "mine").unwrap();
    fs::create_dir(folder.join("b.example")).unwrap();
    symlink(&outside, folder.join("a.example")).unwrap();
    symlink(outside.join("precious"), folder.join("b.example/x")).unwrap();
    symlink(outside.join("new"), folder.join("b.example/y")).unwrap();
    let mut files = SavedFiles::create(&folder).unwrap();
    for url in ["http://a.example/precious", "http://b.example/x", "http://b.example/y"] {
        let name = save(&mut files, url, b"theirs");
        let path = folder.join(&name);
        assert!(!path.symlink_metadata().unwrap().is_symlink(), "{name}");
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
    }
    assert_eq!(
        files_below(&outside),
        BTreeMap::from([("precious".to_owned(), "mine".to_owned())])
    );
}

#[test]
fn a_body_that_cannot_be_saved_is_an_error_that_names_the_file() {
    let folder = folder("gone");
    let mut files = SavedFiles::create(&folder).unwrap();
    save(&mut files, "http://a.example/x", b"x");
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "a file").unwrap();
    let error = try_save(&mut files, "http://a.example/y", b"y").unwrap_err();
    fs::remove_file(&folder).unwrap();
    assert!(error.to_string().contains("saved-gone"), "{error}");
}
