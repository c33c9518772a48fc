//! The output files of the command: they have whole lines and records, also after errors and signals.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::channel;

use flate2::read::MultiGzDecoder;

#[cfg(unix)]
use crate::program::run_with_limit;
use crate::program::{
    command, crawler, fails, folder, has_failed, lines, lines_of, one_line, succeeds, text_of, texts_of,
};
use crate::servers::{answer, path_in, server_of, site_of};

#[test]
fn an_invalid_field_is_refused_before_the_first_request() {
    let seed = "http://127.0.0.1:1/";
    for (field, message) in [
        ("title", "--select"),
        ("x=h1 > > p", "is invalid"),
        ("a=h1", "two fields are named"),
    ] {
        let output = crawler(&["--output", "-", "--select", "A=h2", "--select", field, seed]);
        has_failed(&output, 2, &[message]);
        assert_eq!(output.stdout, b"", "nothing was started");
    }
    fails(&["--select", "a=h1", seed], 2, &["--output"]);
}

#[test]
fn the_demo_fills_all_files_with_what_it_counts() {
    let folder = folder("all-outputs");
    let [pages, links, refused, saved] = ["pages", "links", "refused", "saved"].map(|name| folder.path(name));
    succeeds(&format!(
        "demo -q --select heading=h1 --output {pages} --links {links} --refused {refused} --save {saved}"
    ));
    let (pages, links) = (lines_of(&pages), lines_of(&links));
    let is_selected = |page: &serde_json::Value| !page["selected"]["heading"].as_array().unwrap().is_empty();
    assert!(pages.iter().any(is_selected));
    let queued: Vec<_> = links.iter().filter(|link| link["verdict"] == "queued").collect();
    let counted: u64 = pages.iter().map(|page| page["links_new"].as_u64().unwrap()).sum();
    let redirects = queued.iter().filter(|link| link["kind"] == "redirect").count() as u64;
    assert_eq!(queued.len() as u64, counted + redirects);
    assert!(lines_of(&refused).iter().any(|line| line["reason"] == "robots_forbid"));
    let mut names = BTreeSet::new();
    for page in &pages {
        let name = page["saved_as"].as_str();
        let has_body = page["bytes"] != 0 && page["status"] == 200;
        assert_eq!(name.is_some(), has_body, "{page}");
        if let Some(name) = name {
            let length = fs::metadata(folder.join("saved").join(name)).unwrap().len();
            assert_eq!(length, page["bytes"].as_u64().unwrap(), "{page}");
            assert!(names.insert(name), "{name} is the file of two pages");
        }
    }
    assert!(names.len() > 100, "{} files", names.len());
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_on_a_full_disk_ends_the_crawl_and_is_named() {
    for option in ["--output", "--links", "--refused"] {
        let message = "the output cannot be written: /dev/full: ";
        fails(&["demo", "-q", option, "/dev/full"], 1, &[message]);
    }
    // The summary, the lines of pages, and an output.
    for options in ["-q", "", "--output -"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut demo = command(&format!("demo --max-pages 5 {options}"));
        let output = demo.stdout(full).output().unwrap();
        has_failed(&output, 1, &["the output cannot be written: standard output: "]);
    }
}

/// A limit on the size of files simulates a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_file_at_its_size_limit_ends_with_a_whole_line_or_record() {
    let folder = folder("cut");
    let cut = |limit: &str, option: &str, name: &str| {
        let path = folder.path(name);
        let output = run_with_limit(limit, &format!("demo -q {option} {path}"));
        has_failed(&output, 1, &["the output cannot be written: ", name]);
        path
    };
    assert!(!lines_of(cut("-f 160", "--links", "links")).is_empty());
    assert!(!rows(&fs::read_to_string(cut("-f 160", "--links", "links.csv")).unwrap()).is_empty());
    // This fails if a record is incomplete.
    let mut archive = MultiGzDecoder::new(fs::File::open(cut("-f 32", "--warc", "pages.warc.gz")).unwrap());
    let mut records = Vec::new();
    archive.read_to_end(&mut records).unwrap();
    let records = records.windows(10).filter(|bytes| bytes == b"WARC/1.1\r\n").count();
    // One `warcinfo` record, and pairs of request and response.
    assert!(records > 10 && records % 2 == 1, "{records} whole records");
    // A body that does not fit leaves no partial file.
    let mut folders = vec![PathBuf::from(cut("-f 2", "--save", "saved"))];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            assert!(!path.to_str().unwrap().contains(".crawler-"), "{path:?}");
            let is_whole = text.trim_end().ends_with("</html>") || !text.contains("<html");
            assert!(is_whole, "{path:?}: {text}");
        }
    }
}

#[test]
fn the_data_of_a_seed_are_in_all_lines_of_what_was_found_under_it() {
    let folder = folder("own-data");
    let [site, other] = ["site", "other"].map(|name| {
        site_of(move |path| match path {
            "/" => Some(format!(
                "<a href=/{name}>x</a><a href=/missing>y</a><a href=/private>z</a>"
            )),
            "/robots.txt" => Some("User-agent: *\nDisallow: /private".to_owned()),
            _ => path.ends_with(name).then(String::new),
        })
    });
    let seeds = folder.file(
        "seeds.txt",
        &format!("{site}\t customer #7, \u{e4} \n{other}\t# a comment\n"),
    );
    let [pages, refused, state] = ["pages", "refused", "state"].map(|name| folder.path(name));
    let crawl = format!("-q --delay 0 --seeds {seeds} --output {pages} --refused {refused} --state {state}");
    succeeds(&format!("{crawl} --inherit-data"));
    let listed =
        ["--done", "--failed", "--not-fetched"].map(|which| lines(&succeeds(&format!("list {state} {which}")).stdout));
    let listed: Vec<_> = listed.concat();
    let lines = [lines_of(&pages), lines_of(&refused), listed].concat();
    let of_site = |line: &&serde_json::Value| line["url"].as_str().unwrap().starts_with(&site);
    let (with, without): (Vec<_>, Vec<_>) = lines.iter().partition(of_site);
    assert_eq!((with.len(), without.len()), (9, 9), "{lines:?}");
    assert!(
        with.iter().all(|line| line["data"] == "customer #7, \u{e4}"),
        "{with:?}"
    );
    assert!(without.iter().all(|line| line["data"].is_null()), "{without:?}");
    // A later crawl of these lines keeps them.
    let again = folder.path("again");
    succeeds(&format!(
        "-q --delay 0 {site} --seeds {pages} --scope any --output {again}"
    ));
    let again = lines_of(&again);
    let page = again
        .iter()
        .find(|line| line["url"].as_str().unwrap().ends_with("/site"))
        .unwrap();
    assert_eq!(page["data"], "customer #7, \u{e4}");
}

#[test]
fn data_that_are_too_long_are_refused_with_their_line() {
    let folder = folder("long-data");
    let seeds = folder.file(
        "seeds.txt",
        &format!("http://127.0.0.1:1/a\nhttp://127.0.0.1:1/\t{}\n", "x".repeat(1025)),
    );
    fails(
        &format!("--seeds {seeds}"),
        2,
        &["line 2 of", "1025 bytes", "at most 1024"],
    );
}

#[test]
fn a_reader_that_stops_early_ends_a_crawl_of_lines_without_a_message() {
    for (options, first) in [
        ("-q --links -", "{\"from\":\"http://"),
        ("-q --output -", "{\"url\":"),
        ("--delay 0.01", "200 http://"),
    ] {
        let mut child = command(&format!("demo {options}")).spawn().unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut line).unwrap();
        drop(reader);
        assert!(line.starts_with(first) && line.ends_with('\n'), "{line}");
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        let is_message = |line: &str| line.starts_with("crawler:") || line.contains("panicked");
        assert!(!stderr.lines().any(is_message), "{stderr}");
        assert!(stderr.is_empty() || !options.starts_with("-q"), "{stderr}");
    }
}

#[test]
fn two_outputs_to_one_file_are_refused_and_nothing_is_started() {
    let folder = folder("one-file");
    let (new, other) = (folder.path("new"), folder.path("./new"));
    let (kept, twin) = (folder.file("kept", "precious\n"), folder.path("twin"));
    fs::hard_link(&kept, &twin).unwrap();
    let mut pairs = vec![
        ("-".to_owned(), "-".to_owned()),
        (new.clone(), other),
        (kept.clone(), twin),
    ];
    #[cfg(unix)]
    {
        let (target, link) = (folder.path("target"), folder.path("link"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let (pipe, to_pipe) = (folder.path("fifo"), folder.path("to-fifo"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink(&pipe, &to_pipe).unwrap();
        // Nobody reads the pipe.
        pairs.extend([(link, target), (pipe, to_pipe)]);
    }
    for (first, second) in pairs {
        fails(
            &format!("demo -q --output {first} --links {second}"),
            2,
            &["two outputs go to"],
        );
    }
    assert!(!fs::exists(new).unwrap());
    assert_eq!(fs::read_to_string(&kept).unwrap(), "precious\n");
}

#[test]
fn no_output_replaces_a_file_that_the_command_line_reads() {
    let folder = folder("inputs");
    let seed = "http://127.0.0.1:1/";
    for (option, text) in [
        ("--seeds", "http://127.0.0.1:1/\n"),
        ("--cookie-file", "127.0.0.1\tFALSE\t/\tFALSE\t0\tid\tsecret\n"),
        ("--config", "delay = 0\n"),
    ] {
        let input = folder.file(&format!("input{option}"), text);
        let twin = folder.path(&format!("twin{option}"));
        fs::hard_link(&input, &twin).unwrap();
        for (output, name) in [
            ("--output", &input),
            ("--links", &input),
            ("--refused", &input),
            ("--warc", &input),
            ("--output", &twin),
        ] {
            let message = format!("is the input of {option}, and would be replaced");
            fails(&[seed, option, &input, output, name], 2, &[&message]);
            assert_eq!(fs::read_to_string(&input).unwrap(), text, "{option} {output}");
        }
    }
    let (broken, target) = (folder.file("broken", "x\n"), folder.file("target", "precious\n"));
    let arguments = ["--seeds", &broken, "--output", &target, seed];
    fails(&arguments, 2, &["line 1 of"]);
    assert_eq!(fs::read_to_string(target).unwrap(), "precious\n");
}

#[cfg(target_os = "linux")]
#[test]
fn a_named_pipe_is_opened_once_so_that_its_reader_gets_every_line() {
    let folder = folder("named-pipe");
    let pipe = folder.path("pages.fifo");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for _ in 0..10 {
        let mut crawl = command(&format!("demo -q --max-pages 5 --output {pipe}"))
            .spawn()
            .unwrap();
        let text = fs::read_to_string(&pipe).unwrap();
        let code = crawl.try_wait().unwrap().map(|status| status.code());
        if text.is_empty() {
            let _ = crawl.kill();
        }
        let _ = crawl.wait();
        assert_eq!(lines(&text).len(), 5, "the code is {code:?}");
    }
}

#[test]
fn without_output_each_page_is_a_line_on_stdout_and_the_summary_goes_to_stderr() {
    let printed = succeeds("demo --max-pages 30");
    assert_eq!(printed.stdout.lines().count(), 30, "{}", printed.stdout);
    for line in printed.stdout.lines() {
        let (status, url) = line.split_once(' ').unwrap();
        assert!(status.len() == 3 && status.parse::<u16>().is_ok(), "{line}");
        assert!(url.starts_with("http://"), "{line}");
    }
    assert!(printed.stderr.contains("page budget spent"), "{}", printed.stderr);
    // With -q or a file, only the summary goes to standard output.
    let folder = folder("no-lines");
    for options in ["-q".to_owned(), format!("--output {}", folder.path("pages.jsonl"))] {
        let stdout = succeeds(&format!("demo --max-pages 30 {options}")).stdout;
        assert!(stdout.contains("page budget spent"), "{stdout}");
        assert!(!stdout.lines().any(|line| line.starts_with("200 http")), "{stdout}");
    }
}

/// Returns the rows of a CSV file, as pairs of column name and cell. The cells must not have commas, quotes or line ends.
fn rows(text: &str) -> Vec<Vec<(&str, &str)>> {
    assert!(text.ends_with("\r\n"), "the last record is incomplete: {text}");
    let mut lines = text
        .split_terminator("\r\n")
        .map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let row = |cells: Vec<_>| {
        assert_eq!(cells.len(), names.len(), "{cells:?}");
        names.iter().copied().zip(cells).collect()
    };
    lines.map(row).collect()
}

#[test]
fn the_file_name_selects_csv_and_the_format_option_overrides_it() {
    let folder = folder("formats");
    let (links, refused) = (folder.path("by-name.CSV"), folder.path("by-option.csv"));
    let run = |options: &str| succeeds(&format!("demo -q --max-pages 30 {options}")).stdout;
    run(&format!("--links {links}"));
    let text = fs::read_to_string(&links).unwrap();
    let rows = rows(&text);
    let is_link = |row: &Vec<(&str, &str)>| row[0].0 == "from" && row[0].1.starts_with("http://");
    assert!(rows.len() > 30 && rows.iter().all(is_link), "{text}");
    run(&format!("--format jsonl --refused {refused}"));
    assert!(!lines_of(&refused).is_empty());
    let stdout = run("--format csv --output -");
    assert!(
        stdout.starts_with("url,redirected_from,") && stdout.ends_with("\r\n"),
        "{stdout}"
    );
    fails("--format csv http://127.0.0.1:1/", 2, &["--format needs a file"]);
}

#[test]
fn the_name_of_a_file_chooses_format_and_compression_and_an_unknown_ending_is_refused() {
    let folder = folder("endings");
    for (name, first) in [
        ("pages.jsonl.gz", "{\"url\":"),
        ("pages.CSV.GZ", "url,redirected_from,"),
        ("pages.ndjson", "{\"url\":"),
        ("pages.json.gz", "{\"url\":"),
        ("pages.gz", "{\"url\":"),
        ("pages", "{\"url\":"),
        ("pages-1.2.2026-11-28", "{\"url\":"),
        ("pages.jsonl.tmp", "{\"url\":"),
    ] {
        let path = folder.path(name);
        succeeds(&format!("demo -q --max-pages 5 -o {path}"));
        let text = text_of(&path);
        assert!(text.starts_with(first), "{name}: {text}");
        let header = usize::from(first.starts_with("url,"));
        assert_eq!(text.lines().count(), 5 + header, "{name}: {text}");
    }
    let others = "tsv xml parquet xlsx jsonl.zst csv.bz2 TSV.gz sqlite";
    for (ending, option) in others
        .split(' ')
        .zip(["-o", "--links", "--refused"].into_iter().cycle())
    {
        let path = folder.path(&format!("pages.{ending}"));
        let messages = [path.as_str(), ".jsonl", ".ndjson", ".json", ".csv", ".gz", "--format"];
        fails(&format!("demo -q {option} {path}"), 2, &messages);
        assert!(!fs::exists(&path).unwrap(), "{path}");
    }
    // A format that is given wins over the name.
    let path = folder.path("pages.tsv");
    succeeds(&format!("demo -q --max-pages 5 --format jsonl -o {path}"));
    assert_eq!(lines_of(&path).len(), 5);
}

#[cfg(target_os = "linux")]
#[test]
fn standard_output_loses_no_line_by_whatever_name_it_is_given() {
    let folder = folder("stdout-names");
    let redirected = folder.path("lines.jsonl");
    for (name, to_file) in [
        ("-", true),
        ("/dev/stdout", true),
        ("/dev/fd/1", true),
        ("/proc/self/fd/1", true),
        (redirected.as_str(), true),
        ("/dev/stdout", false),
        ("/dev/fd/1", false),
    ] {
        for option in ["-o", "--links"] {
            let mut demo = command(&format!("demo --max-pages 9 {option} {name}"));
            if to_file {
                demo.stdout(fs::File::create(&redirected).unwrap());
            }
            let output = demo.output().unwrap();
            assert!(output.status.success(), "{name}");
            let text = match to_file {
                true => fs::read_to_string(&redirected).unwrap(),
                false => String::from_utf8(output.stdout).unwrap(),
            };
            let summary = String::from_utf8(output.stderr).unwrap();
            assert!(summary.contains("page budget spent"), "{name}: {summary}");
            // Each line is whole JSON, and the summary is not among them.
            let found = lines(&text);
            assert!(
                option == "--links" && found.len() > 9 || found.len() == 9,
                "{name}: {text}"
            );
        }
    }
    fails("demo -q -o - --links /dev/stdout", 2, &["two outputs go to"]);
}

#[test]
fn csv_for_excel_starts_with_one_byte_order_mark_in_each_file() {
    let folder = folder("excel");
    for (option, name, header) in [
        ("-o", "pages.csv", "url,redirected_from,"),
        ("--links", "links.csv.gz", "from,to,kind,"),
        ("--refused", "refused.txt", "url,class,reason,"),
    ] {
        let path = folder.path(name);
        succeeds(&format!("demo -q --max-pages 30 --format csv-bom {option} {path}"));
        let text = text_of(&path);
        let text = text
            .strip_prefix('\u{feff}')
            .unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(text.starts_with(header) && !text.contains('\u{feff}'), "{name}: {text}");
    }
}

/// A site with several spellings of its pages, and links that say nofollow in each way.
fn spellings(head: &str) -> String {
    let links = "/a?x=1&y=2 /a?y=2&x=1 /b/ /b /c?sid=1 /c?sid=2 /Upper /upper /by-meta /by-header";
    let links: String = links.split(' ').map(|to| format!("<a href={to}>x</a>")).collect();
    match path_in(head) {
        "/" => answer("200 OK", &(links + "<a rel=nofollow href=/by-link>x</a>")),
        "/by-meta" => answer(
            "200 OK",
            "<meta name=robots content=nofollow><a href=/behind-meta>x</a>",
        ),
        "/by-header" => answer("200 OK\r\nX-Robots-Tag: nofollow", "<a href=/behind-header.pdf>x</a>"),
        "/robots.txt" => answer("404 Not Found", ""),
        _ => answer("200 OK", "a page"),
    }
}

#[test]
fn each_followed_link_has_the_key_of_its_page_by_whatever_rules() {
    let (folder, seed) = (folder("joins"), server_of(spellings));
    let (pages, links) = (folder.path("pages.jsonl"), folder.path("links.jsonl"));
    for (rules, expected) in [
        ("", 11),
        ("--set sort-query=true", 10),
        ("--drop-query-param sid", 10),
        ("--set drop-trailing-slash=true", 10),
        (
            "--set sort-query=true --drop-query-param s* --set lower-case-path=true --set drop-trailing-slash=true",
            7,
        ),
    ] {
        succeeds(&format!("-q --delay 0 {rules} -o {pages} --links {links} {seed}"));
        let keys = BTreeSet::from_iter(texts_of(&pages, "key"));
        assert_eq!(keys.len(), expected, "{rules}: {keys:?}");
        for link in lines_of(&links) {
            let is_followed = link["verdict"] == "queued" || link["verdict"] == "seen";
            let key = link["key"].as_str().unwrap();
            assert_eq!(is_followed, keys.contains(key), "{rules}: {link}");
        }
    }
}

#[test]
fn links_that_say_nofollow_are_followed_if_wanted_and_reports_may_be_of_some_pages_only() {
    let (folder, seed) = (folder("choices"), server_of(spellings));
    let hidden = ["/by-link", "/behind-meta", "/behind-header.pdf"];
    let (pages, links) = (folder.path("pages.jsonl"), folder.path("links.jsonl"));
    for (option, are_followed) in [("", false), ("--follow-nofollow", true)] {
        let summary = succeeds(&format!("-q --delay 0 {option} -o {pages} --links {links} {seed}")).stdout;
        assert_eq!(summary.contains("nofollow: 3"), !are_followed, "{summary}");
        for path in hidden {
            let is_fetched = texts_of(&pages, "url").iter().any(|url| url.ends_with(path));
            assert_eq!(is_fetched, are_followed, "{option} {path}");
            let mut links = lines_of(&links).into_iter();
            let link = links.find(|link| link["to"].as_str().unwrap().ends_with(path));
            assert_eq!(link.unwrap()["nofollow"], true, "{path}");
        }
    }
    let hints = |options: &[&str], path: &str| {
        let seed = format!("{seed}{path}");
        one_line(&succeeds([&["-q", "--delay", "0"], options, &[&seed]].concat().as_slice()).stdout)
    };
    let advice = "no link of the page matches --include, which pages that lead further must match, too: --output-include follows all";
    assert!(hints(&["--include", "\\.pdf$"], "").contains(advice));
    assert!(hints(&[], "by-meta").contains("say nofollow: --follow-nofollow follows them"));
    let all = format!("--follow-nofollow --delay 0 --output-include \\.pdf$ --output-include /b/$ {seed}");
    let saved = folder.path("saved");
    let summary = succeeds(&format!("-q -o {pages} --save {saved} {all}")).stdout;
    assert!(summary.contains("14 answered 2xx"), "all are fetched: {summary}");
    assert_eq!(lines_of(&pages).len(), 2);
    assert!(fs::exists(&saved).unwrap());
    let stdout = succeeds(&all).stdout;
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
}

#[test]
fn cookies_of_a_file_are_sent_and_an_invalid_line_is_reported() {
    let folder = folder("cookies");
    let cookies = folder.path("cookies.txt");
    // In Latin-1; the server shows the byte as U+FFFD.
    fs::write(&cookies, b"127.0.0.1\tFALSE\t/\tFALSE\t0\tid\tsecr\xe9t\n").unwrap();
    let (send, heads) = channel();
    let seed = server_of(move |head| {
        let _ = send.send(head.to_owned());
        answer("200 OK", "ok")
    });
    let stderr = succeeds(&format!("--delay 0 --insecure --cookie-file {cookies} {seed}")).stderr;
    assert!(
        heads
            .try_iter()
            .all(|head| head.contains("Cookie: id=secr\u{fffd}t\r\n"))
    );
    assert_eq!(stderr.matches("certificates are NOT checked").count(), 1, "{stderr}");
    assert!(!stderr.contains("secret"), "{stderr}");
    let bad = folder.file("bad-cookies.txt", "# Netscape\n\n127.0.0.1 FALSE / FALSE 0 id secret\n");
    let output = crawler(&format!("--cookie-file {bad} {seed}"));
    has_failed(&output, 2, &["line 3 of the cookie file", "bad-cookies.txt"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("secret"));
    fails(
        &format!("--cookie-file no/such/cookies.txt {seed}"),
        2,
        &["cannot be read"],
    );
}

/// A file that is replaced was perhaps meant to be continued.
#[test]
fn an_output_over_a_file_with_content_says_so_with_its_size_and_how_to_continue() {
    let folder = folder("replaced");
    let seed = site_of(|path| (path == "/").then(String::new));
    let run = |options: &str| succeeds(&format!("-q --delay 0 {options} {seed}")).stderr;
    for (option, name) in [
        ("-o", "pages.jsonl"),
        ("--links", "links.csv"),
        ("--refused", "refused.jsonl"),
    ] {
        let path = folder.path(name);
        let with = |options: &str| run(&format!("{options} {option} {path}"));
        assert_eq!(with(""), "", "{option}: a new file");
        let bytes = fs::write(&path, "old\n".repeat(700)).map(|()| 2800).unwrap();
        let warning = with("");
        assert!(
            warning.contains(&format!("{path} had 2.7 KiB")) && warning.contains("--state"),
            "{warning}"
        );
        assert!(fs::metadata(&path).unwrap().len() < bytes);
        let later = folder.path(&name.replace('.', "-00001."));
        fs::write(&path, "old\n")
            .and_then(|()| fs::write(&later, "old\n"))
            .unwrap();
        let is_said = |warning: String| warning.contains("files of its series that come after it stay");
        assert!(is_said(with("")) && !is_said(warning));
        assert_eq!(fs::read_to_string(later).unwrap(), "old\n");
        fs::write(&path, "old\n").unwrap();
        fs::remove_file(&path).unwrap();
        let state = format!("--state {}", folder.path(&format!("{name}-state")));
        with(&state);
        assert!(!with(&state).contains(" had "), "{option}: it is continued");
    }
}
