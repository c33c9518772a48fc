//! The output files of the command: they have whole lines and records, also after errors and signals.

#[cfg(target_os = "linux")]
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::limits;
use flate2::read::MultiGzDecoder;
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is torn: {text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn file_with(name: &str, text: &str) -> PathBuf {
    let path = file(name);
    fs::write(&path, text).unwrap();
    path
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawler"));
    command.args(arguments);
    command
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[track_caller]
fn fails(output: &Output, code: i32, message: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(message), "it should say {message:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
fn an_invalid_field_is_refused_before_the_first_request() {
    for (field, message) in [
        ("title", "--select"),
        ("x=h1 > > p", "character 4"),
        ("a=h1", "two fields are named"),
    ] {
        let output = command(&[
            "--output",
            "-",
            "--select",
            "A=h2",
            "--select",
            field,
            "http://127.0.0.1:1/",
        ])
        .output();
        let output = output.unwrap();
        fails(&output, 2, message);
        assert_eq!(output.stdout, b"", "nothing was started");
    }
    fails(
        &command(&["--select", "a=h1", "http://127.0.0.1:1/"]).output().unwrap(),
        2,
        "--output",
    );
    let twice = command(&["--output", "-", "--links", "-", "http://127.0.0.1:1/"])
        .output()
        .unwrap();
    fails(&twice, 2, "two outputs go to -");
}

#[test]
fn the_demo_fills_all_three_files() {
    let (pages, links, refused) = (file("all-pages"), file("all-links"), file("all-refused"));
    let output = command(&["demo", "-q", "--select", "heading=h1", "--output"])
        .arg(&pages)
        .arg("--links")
        .arg(&links)
        .arg("--refused")
        .arg(&refused)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |path: &Path| lines(&fs::read_to_string(path).unwrap());
    let pages = read(&pages);
    assert!(
        pages
            .iter()
            .any(|page| !page["selected"]["heading"].as_array().unwrap().is_empty())
    );
    let new = read(&links).iter().filter(|link| link["verdict"] == "queued").count() as u64;
    let counted: u64 = pages.iter().map(|page| page["links_new"].as_u64().unwrap()).sum();
    let redirects = read(&links)
        .iter()
        .filter(|link| link["kind"] == "redirect" && link["verdict"] == "queued")
        .count();
    assert_eq!(new, counted + redirects as u64);
    assert!(read(&refused).iter().any(|line| line["reason"] == "robots_forbid"));
}

#[cfg(target_os = "linux")]
#[test]
fn every_output_on_a_full_disk_ends_the_crawl_and_names_the_file() {
    for option in ["--output", "--links", "--refused"] {
        let output = command(&["demo", "-q", option, "/dev/full"]).output().unwrap();
        fails(&output, 1, "the output cannot be written: /dev/full: ");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_is_an_error_that_names_it() {
    // The summary, the lines of pages, and an output.
    for options in [&["-q"][..], &[], &["--output", "-"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(&["demo", "--max-pages", "5"])
            .args(options)
            .stdout(full)
            .output()
            .unwrap();
        fails(&output, 1, "the output cannot be written: standard output: ");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_at_its_size_limit_ends_with_a_whole_line() {
    let links = file("cut-links");
    // A limit on the size of files simulates a full disk.
    let output = limits::run_with_limit("-f 160", &["demo", "-q", "--links", links.to_str().unwrap()]);
    fails(&output, 1, "cut-links: ");
    let written = fs::read_to_string(&links).unwrap();
    assert!(!lines(&written).is_empty());
}

#[test]
fn a_closed_pipe_ends_the_crawl_without_a_message() {
    let mut child = command(&["demo", "-q", "--links", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert_eq!(lines(&first).len(), 1);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_whole_files_and_a_summary() {
    let pages = file("stopped-pages");
    let mut child = command(&["demo", "-v", "--delay", "0.3", "--output"])
        .arg(&pages)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Standard error has a line per page.
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(" new links") {
        line.clear();
        assert_ne!(errors.read_line(&mut line).unwrap(), 0, "it ended by itself");
    }
    let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let summary = String::from_utf8(output.stdout).unwrap();
    assert!(summary.contains("stopped after"), "{summary}");
    let written = lines(&fs::read_to_string(&pages).unwrap());
    let counted = summary
        .lines()
        .find_map(|line| line.trim().strip_prefix("by status"))
        .unwrap();
    let counted: usize = counted
        .split(": ")
        .skip(1)
        .map(|part| part.split(',').next().unwrap().trim().parse::<usize>().unwrap())
        .sum();
    assert!(counted > 0, "{summary}");
    assert_eq!(written.len(), counted, "{summary}");
}

#[test]
fn two_outputs_to_one_file_under_two_names_are_refused() {
    // Otherwise each output overwrites the other.
    let (name, other) = (file("one-file"), file("../tmp/one-file"));
    let _ = fs::remove_file(&name);
    assert_eq!(name.parent().unwrap().file_name().unwrap(), "tmp");
    let output = command(&["demo", "-q", "--max-pages", "20", "--output"])
        .arg(&name)
        .arg("--links")
        .arg(&other)
        .output()
        .unwrap();
    fails(&output, 2, "two outputs go to");
    assert!(!name.exists(), "nothing was started");
}

#[test]
fn two_outputs_to_one_file_through_a_hard_link_are_refused() {
    let (name, twin) = (file_with("linked", "precious\n"), file("linked.twin"));
    let _ = fs::remove_file(&twin);
    fs::hard_link(&name, &twin).unwrap();
    let output = command(&["demo", "-q", "--output"])
        .arg(&name)
        .arg("--warc")
        .arg(&twin)
        .output()
        .unwrap();
    fails(&output, 2, "two outputs go to");
    assert_eq!(fs::read_to_string(&name).unwrap(), "precious\n");
}

#[test]
fn an_output_that_replaces_the_input_is_refused() {
    let text = "{\"url\":\"http://127.0.0.1:1/\"}\n";
    let kept = file_with("kept", text);
    let broken = file_with("broken", "x\n");
    let target = file_with("target", "precious\n");
    let run = |options: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_crawler"))
            .args(options)
            .arg("http://127.0.0.1:1/")
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let [kept, broken, target] = [&kept, &broken, &target].map(|path| path.to_str().unwrap());
    let (code, why) = run(&["--recrawl", kept, "--output", kept]);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("would be replaced"), "{why}");
    let twin = format!("{kept}.twin");
    drop(fs::remove_file(&twin));
    fs::hard_link(kept, &twin).unwrap();
    let (code, why) = run(&["--recrawl", kept, "--output", &twin]);
    assert_eq!(code, Some(2), "{why}");
    assert_eq!(fs::read_to_string(kept).unwrap(), text);

    let (code, why) = run(&["--recrawl", broken, "--output", target]);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("line 1 of"), "{why}");
    assert_eq!(fs::read_to_string(target).unwrap(), "precious\n");
}

#[test]
fn no_output_replaces_a_file_that_the_command_line_reads() {
    let cookie = "127.0.0.1\tFALSE\t/\tFALSE\t0\tid\tsecret\n";
    for (option, text) in [
        ("--seeds", "http://127.0.0.1:1/\n"),
        ("--cookie-file", cookie),
        ("--config", "delay = 0\n"),
    ] {
        let input = file_with(&format!("input{option}"), text);
        let input = input.to_str().unwrap();
        for output in ["--output", "--links", "--refused", "--warc"] {
            let done = command(&["http://127.0.0.1:1/", option, input, output, input]).output();
            fails(
                &done.unwrap(),
                2,
                &format!("{input} is the input of {option}, and would be replaced"),
            );
            assert_eq!(fs::read_to_string(input).unwrap(), text, "{option} {output}");
        }
    }
}

#[cfg(unix)]
#[test]
fn two_outputs_that_meet_in_a_file_through_a_link_are_refused() {
    let (target, link) = (file("behind-a-link"), file("link-to-nothing"));
    for path in [&target, &link] {
        let _ = fs::remove_file(path);
    }
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let output = command(&["demo", "-q", "--max-pages", "20", "--output"])
        .arg(&link)
        .arg("--links")
        .arg(&target)
        .output()
        .unwrap();
    fails(&output, 2, "two outputs go to");
}

#[cfg(target_os = "linux")]
#[test]
fn two_outputs_to_one_named_pipe_are_refused_although_nobody_reads_it() {
    let (pipe, link) = (file("shared.fifo"), file("shared.fifo.link"));
    for path in [&pipe, &link] {
        let _ = fs::remove_file(path);
    }
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::os::unix::fs::symlink(&pipe, &link).unwrap();
    let output = command(&["demo", "-q", "--output"])
        .arg(&pipe)
        .arg("--refused")
        .arg(&link)
        .output()
        .unwrap();
    fails(&output, 2, "two outputs go to");
}

#[cfg(target_os = "linux")]
#[test]
fn a_named_pipe_is_opened_once_so_that_its_reader_gets_every_line() {
    let pipe = file("pages.fifo");
    let _ = fs::remove_file(&pipe);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for _ in 0..10 {
        let mut crawl = command(&["demo", "-q", "--max-pages", "5", "--output"])
            .arg(&pipe)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
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

#[cfg(target_os = "linux")]
#[test]
fn an_archive_on_a_full_disk_ends_the_crawl_and_keeps_whole_records() {
    let path = file("limited.warc.gz");
    let _ = fs::remove_file(&path);
    let output = limits::run_with_limit("-f 32", &["demo", "-q", "--warc", path.to_str().unwrap()]);
    fails(&output, 1, "limited.warc.gz");
    let mut archive = Vec::new();
    // This fails if a record is incomplete.
    MultiGzDecoder::new(fs::File::open(&path).unwrap())
        .read_to_end(&mut archive)
        .unwrap();
    let records = archive.windows(10).filter(|bytes| bytes == b"WARC/1.1\r\n").count();
    assert!(records > 10, "{records} whole records");
    // One `warcinfo` record, and pairs of request and response.
    assert_eq!(records % 2, 1);
}

#[test]
fn without_output_each_page_is_a_line_on_stdout_and_the_summary_goes_to_stderr() {
    let output = command(&["demo", "--max-pages", "30"]).output().unwrap();
    let (stdout, stderr) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(stdout.lines().count(), 30, "{stdout}");
    for line in stdout.lines() {
        let (status, url) = line.split_once(' ').unwrap();
        assert!(status.len() == 3 && status.parse::<u16>().is_ok(), "{line}");
        assert!(url.starts_with("http://"), "{line}");
    }
    assert!(stderr.contains("page budget spent"), "the summary: {stderr}");
    // With -q or a file, only the summary goes to standard output.
    let file = file("no-lines.jsonl");
    for arguments in [&["-q"][..], &["--output", file.to_str().unwrap()]] {
        let output = command(&["demo", "--max-pages", "30"])
            .args(arguments)
            .output()
            .unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(stdout.contains("page budget spent"), "{stdout}");
        assert!(!stdout.lines().any(|line| line.starts_with("200 http")), "{stdout}");
    }
}

#[test]
fn a_reader_that_stops_after_a_few_page_lines_causes_no_error() {
    let mut child = command(&["demo", "--delay", "0.01"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert!(first.starts_with("200 http://"), "{first}");
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_message = |line: &str| line.starts_with("crawler:") || line.contains("panicked");
    assert!(!stderr.lines().any(is_message), "{stderr}");
}

/// Returns the rows of a CSV file, as pairs of column name and cell. The cells must not have commas, quotes or line ends.
fn rows(text: &str) -> Vec<Vec<(&str, &str)>> {
    assert!(text.ends_with("\r\n"), "the last record is incomplete: {text}");
    let mut lines = text.split_terminator("\r\n");
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!(cells.len(), names.len(), "{line}");
            names.iter().copied().zip(cells).collect()
        })
        .collect()
}

#[test]
fn the_file_name_selects_csv_and_the_format_option_overrides_it() {
    let (links, refused) = (file("by-name.CSV"), file("by-option.csv"));
    let run = |arguments: &[&str], links: &Path| {
        let output = command(&["demo", "-q", "--max-pages", "30"])
            .args(arguments)
            .arg(links)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    run(&["--links"], &links);
    let text = fs::read_to_string(&links).unwrap();
    let rows = rows(&text);
    assert!(rows.len() > 30);
    assert!(
        rows.iter()
            .all(|row| row[0].0 == "from" && row[0].1.starts_with("http://"))
    );
    run(&["--format", "jsonl", "--refused"], &refused);
    assert!(!lines(&fs::read_to_string(&refused).unwrap()).is_empty());
    let stdout = String::from_utf8(run(&["--format", "csv", "--output"], Path::new("-"))).unwrap();
    assert!(stdout.starts_with("url,redirected_from,"), "{stdout}");
    assert!(stdout.ends_with("\r\n"), "{stdout}");
    let output = command(&["--format", "csv", "http://127.0.0.1:1/"]).output().unwrap();
    fails(&output, 2, "--format needs a file");
}

#[cfg(target_os = "linux")]
#[test]
fn a_csv_file_at_its_size_limit_ends_with_a_whole_record() {
    let links = file("cut-links.csv");
    let output = limits::run_with_limit("-f 160", &["demo", "-q", "--links", links.to_str().unwrap()]);
    fails(&output, 1, "cut-links.csv: ");
    assert!(!rows(&fs::read_to_string(&links).unwrap()).is_empty());
}

/// Makes an empty folder.
fn folder(name: &str) -> PathBuf {
    let folder = file(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

#[test]
fn saved_files_have_the_bodies_and_the_names_of_their_lines() {
    let (saved, pages) = (folder("saved"), file("saved.jsonl"));
    let output = command(&["demo", "-q", "--save"])
        .arg(&saved)
        .arg("--output")
        .arg(&pages)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let pages = lines(&fs::read_to_string(&pages).unwrap());
    let mut names = std::collections::BTreeSet::new();
    for page in &pages {
        let name = page["saved_as"].as_str();
        let has_body = page["bytes"] != 0 && page["status"] == 200;
        assert_eq!(name.is_some(), has_body, "{page}");
        if let Some(name) = name {
            let length = fs::metadata(saved.join(name)).unwrap().len();
            assert_eq!(length, page["bytes"].as_u64().unwrap(), "{page}");
            assert!(names.insert(name), "{name} is the file of two pages");
        }
    }
    assert!(names.len() > 100, "{} files", names.len());
}

#[cfg(target_os = "linux")]
#[test]
fn a_page_that_does_not_fit_on_the_disk_ends_the_crawl_and_leaves_no_partial_file() {
    let saved = folder("saved-full");
    // The maximum size of a file is one kilobyte.
    let output = limits::run_with_limit("-f 2", &["demo", "-q", "--save", saved.to_str().unwrap()]);
    fails(&output, 1, "the output cannot be written: ");
    fails(&output, 1, "saved-full/");
    let mut folders = vec![saved];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            assert!(!path.to_str().unwrap().contains(".crawler-"), "{path:?}");
            assert!(
                text.trim_end().ends_with("</html>") || !text.contains("<html"),
                "{path:?}: {text}"
            );
        }
    }
}

/// Starts a server of one page that sends the heads of its requests to a channel.
fn one_page() -> (u16, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, heads) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap_or(0);
            let _ = send.send(String::from_utf8_lossy(&head[..length]).into_owned());
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: 2";
            let _ = write!(stream, "{head}\r\n\r\nok");
        }
    });
    (port, heads)
}

#[test]
fn cookies_of_a_file_are_sent_and_an_invalid_line_is_reported() {
    let cookies = file_with("cookies.txt", "127.0.0.1\tFALSE\t/\tFALSE\t0\tid\tsecret\n");
    let (port, heads) = one_page();
    let output = command(&["--delay", "0", "--insecure", "--cookie-file"])
        .arg(&cookies)
        .arg(format!("http://127.0.0.1:{port}/"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(heads.try_iter().all(|head| head.contains("cookie: id=secret\r\n")));
    assert_eq!(stderr.matches("certificates are NOT checked").count(), 1, "{stderr}");
    assert!(!stderr.contains("secret"), "{stderr}");
    let bad = file_with("bad-cookies.txt", "# Netscape\n\n127.0.0.1 FALSE / FALSE 0 id secret\n");
    let run = |path: &Path| {
        let output = command(&["--cookie-file"])
            .arg(path)
            .arg("http://127.0.0.1:1/")
            .output();
        output.unwrap()
    };
    let output = run(&bad);
    fails(&output, 2, "line 3 of the cookie file");
    fails(&output, 2, "bad-cookies.txt");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("secret"));
    fails(&run(Path::new("no/such/cookies.txt")), 2, "cannot be read");
}
