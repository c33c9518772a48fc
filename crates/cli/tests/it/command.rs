//! The command from a user's view: messages, exit codes, files.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::program::{Printed, crawler, fails, folder, number, succeeds};

#[test]
fn bad_arguments_exit_with_code_2_and_the_message_says_what_to_do() {
    fails(&["--capacity", "0", "http://127.0.0.1:1/"], 2, &["capacity"]);
    fails(&["not a url"], 2, &["not a url"]);
    fails(&["http://"], 2, &["http://"]);
    fails(&["ftp://example.com/"], 2, &["ftp://example.com/"]);
    fails(&["--include", "(", "http://127.0.0.1:1/"], 2, &["("]);
    fails(&["--delay", "-1", "http://127.0.0.1:1/"], 2, &["0 or more"]);
    fails(
        &["--false-positive-rate", "-0.1", "http://127.0.0.1:1/"],
        2,
        &["fraction above 0"],
    );
    fails(&[], 2, &["SEED_URL", "such as: crawler example.com"]);
}

/// Returns the severity, level and message of each saturation record in a JSON log.
fn saturation_lines(log: &str) -> Vec<(String, String, String)> {
    let text = |line: &serde_json::Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    log.lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|line| line["target"] == "sieve::saturation")
        .map(|line| {
            (
                text(&line, "level"),
                text(&line, "saturation_level"),
                text(&line, "message"),
            )
        })
        .collect()
}

#[test]
fn a_seen_set_grows_by_default_and_warns_at_each_level() {
    // The demo fails if it does not find every page.
    let stderr = succeeds(&["demo", "--capacity", "100", "--log-format", "json"]).stderr;
    let mut lines = saturation_lines(&stderr);
    lines.retain(|(severity, ..)| severity == "WARN");
    let levels: Vec<_> = lines.iter().map(|(_, level, _)| level.as_str()).collect();
    assert_eq!(levels, ["full", "1.5x", "2x", "3x"], "100 of some 350 URLs: {stderr}");
    for (_, _, message) in &lines {
        assert!(message.contains("for a capacity of 100, grown to hold "), "{message}");
        assert!(message.contains("start next time with a capacity of "), "{message}");
    }
    assert!(
        stderr.contains("\"complete\":true") && !stderr.contains("crawler::loss"),
        "{stderr}"
    );
}

#[test]
fn a_crawl_whose_seen_set_dropped_urls_warns_at_its_end_and_is_incomplete() {
    let arguments = [
        "demo",
        "-q",
        "--capacity",
        "30",
        "--on-saturation",
        "warn",
        "--set",
        "hash-seed=1",
    ];
    let Printed {
        stdout: summary,
        stderr: log,
    } = succeeds(&arguments);
    let last = log.lines().find(|line| line.contains("crawler::loss")).unwrap();
    let of_command = "the crawl is incomplete: seen-set: at least ";
    assert!(last.contains("WARN") && last.contains(of_command), "{log}");
    let one_line = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in [last, one_line.as_str()] {
        assert!(
            text.contains("what only they link to is missing (set --capacity "),
            "{text}"
        );
    }
    assert!(summary.contains("INCOMPLETE        seen-set: at least "), "{summary}");
}

#[test]
fn a_refusing_seen_set_ends_cleanly_and_the_last_line_counts_the_refused_links() {
    let Printed {
        stdout: summary,
        stderr,
    } = succeeds(&["demo", "-q", "--capacity", "100", "--on-saturation", "refuse"]);
    let pages = number(&summary, "pages");
    assert!(!summary.contains(" none\n"), "{summary}");
    assert!((90..=110).contains(&pages), "{summary}");
    assert!(summary.contains("saturated: "), "{summary}");
    let lines: Vec<_> = stderr.lines().collect();
    let [full, last, unchecked] = lines[..] else {
        panic!("three warnings: {stderr}")
    };
    assert!(
        unchecked.contains("WARN  crawler::demo: not checked, because "),
        "{stderr}"
    );
    assert!(full.contains("New keys are refused"), "{stderr}");
    assert!(
        last.contains("the crawl is incomplete: ") && last.contains("seen-set full: "),
        "{stderr}"
    );
    assert!(last.contains(" links refused (raise --capacity)"), "{stderr}");
}

#[test]
fn every_hash_finds_every_page_and_no_log_shows_the_hash_seed() {
    for hash in ["murmur3", "xxh3", "hardened"] {
        let Printed { stdout, stderr } = succeeds(&[
            "demo",
            "-vv",
            "--set",
            &format!("hash={hash}"),
            "--set=hash-seed=8675309424242",
        ]);
        assert!(!stdout.contains("8675309424242") && !stderr.contains("8675309424242"));
    }
}

#[test]
fn a_crawl_that_cannot_start_exits_with_code_1_and_a_reason() {
    fails(
        &["--output", "/nonexistent/pages.jsonl", "http://127.0.0.1:1/"],
        1,
        &["/nonexistent/pages.jsonl cannot be written: the folder /nonexistent does not exist: create it"],
    );
    fails(&["--seeds", "/nonexistent/seeds.txt"], 2, &["/nonexistent/seeds.txt"]);
}

#[test]
fn a_demo_crawl_finds_every_page_and_writes_one_json_object_each() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo-pages.jsonl");
    let Printed { stdout, stderr } = succeeds(&["demo", "--output", file.to_str().unwrap()]);
    let pages = number(&stdout, "pages");
    assert!(
        stderr.contains(&format!("with {pages} reachable pages")),
        "{stdout}{stderr}"
    );
    let ok = records(&file).into_iter().filter(|page| page["status"] == 200).count() as u64;
    assert_eq!(ok, pages);
}

fn records(file: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn records_have_the_documented_fields_and_stdout_has_nothing_else() {
    let text = succeeds(&["demo", "--max-pages", "5", "--output", "-"]).stdout;
    let pages: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(pages.len(), 5, "--max-pages counts answers that are no redirects");
    for field in [
        "url",
        "redirected_from",
        "status",
        "depth",
        "referrer",
        "content_type",
        "bytes",
        "milliseconds",
        "title",
        "links_found",
        "links_new",
    ] {
        assert!(pages.iter().all(|page| page.get(field).is_some()), "{field}");
    }
    assert_eq!(pages[0]["depth"], 0);
    assert!(pages[0]["links_new"].as_u64().unwrap() > 0);
}

#[test]
fn json_logs_have_the_saturation_as_values() {
    let stderr = succeeds(&["demo", "--capacity", "20", "--log-format", "json"]).stderr;
    let lines: Vec<serde_json::Value> = stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let warnings: Vec<_> = lines
        .iter()
        .filter(|line| line["target"] == "sieve::saturation" && line["level"] == "WARN")
        .collect();
    assert_eq!(warnings[0]["saturation_level"], "full");
    assert_eq!(warnings[0]["capacity"], 20);
    assert!(warnings[0]["estimated"].as_f64().unwrap() > 20.0);
    let mut levels: Vec<_> = warnings
        .iter()
        .map(|line| line["saturation_level"].to_string())
        .collect();
    levels.dedup();
    assert_eq!(levels.len(), warnings.len(), "one line per level");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_crawl_with_exit_code_1() {
    fails(&["demo", "--output", "/dev/full"], 1, &["cannot be written"]);
}

#[test]
fn the_command_line_overrides_the_configuration_file() {
    let folder = folder("config");
    let path = folder.join("crawl.toml");
    let config = path.to_str().unwrap();
    fs::write(&path, "max-pages = 3\nquiet = 1\n").unwrap();
    let pages = |arguments: &[&str]| number(&succeeds(arguments).stdout, "pages");
    assert_eq!(pages(&["demo", "--config", config]), 3);
    assert_eq!(pages(&["demo", &format!("--config={config}"), "--max-pages", "5"]), 5);
    fs::write(
        &path,
        "seed-urls = ['http://127.0.0.1:1/']\nmax-pages = 3\nbasic-auth = 'secret'\n",
    )
    .unwrap();
    fails(&["--config", config], 2, &["USER:PASSWORD"]);
    fs::write(&path, "max-pages = 3\nmax-pagse = 4\n").unwrap();
    fails(
        &["demo", "--config", config],
        2,
        &["line 2", "a similar one is \"max-pages\""],
    );
    fs::write(&path, "max-pages = 'many'\n").unwrap();
    fails(
        &["demo", "--config", config],
        2,
        &[config, "line 1", "the value of max-pages"],
    );
    fails(&["demo", "--config", "no/such/file.toml"], 2, &["no/such/file.toml"]);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_command_that_cannot_start_keeps_the_previous_results() {
    let folder = folder("results");
    let (pages, archive) = (folder.join("pages.jsonl"), folder.join("torn.warc"));
    fs::write(&pages, "{\"url\":\"http://a.example/\"}\n").unwrap();
    fs::write(&archive, "my thesis").unwrap();
    fails(
        &[
            "--output",
            pages.to_str().unwrap(),
            "--warc",
            archive.to_str().unwrap(),
            "http://127.0.0.1:1/",
        ],
        1,
        &["is not a WARC file"],
    );
    let left = fs::read_to_string(&pages).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(
        left, "{\"url\":\"http://a.example/\"}\n",
        "nothing was started, and yet it is gone"
    );
}

#[cfg(unix)]
#[test]
fn a_file_that_another_crawl_writes_to_is_refused_and_stays_as_it_is() {
    let folder = folder("two-writers");
    let (pages, archive) = (folder.join("pages.jsonl"), folder.join("pages.warc"));
    let other = fs::File::create(&pages).unwrap();
    other.lock().unwrap();
    fs::write(&pages, "a line of the other\n").unwrap();
    let (pages, archive) = (pages.to_str().unwrap(), archive.to_str().unwrap());
    let state = folder.join("state");
    for more in [&[][..], &["--state", state.to_str().unwrap()], &["--warc", archive]] {
        let arguments = [&["http://127.0.0.1:1/", "--output", pages][..], more].concat();
        fails(&arguments, 1, &[pages, "another crawl writes to this file"]);
        assert_eq!(fs::read_to_string(pages).unwrap(), "a line of the other\n");
    }
    drop(other);
    // Nor is anything emptied if it is the archive of another crawl.
    let other = fs::File::create(archive).unwrap();
    other.lock().unwrap();
    for state in [&[][..], &["--state", state.to_str().unwrap()]] {
        let arguments = [&["http://127.0.0.1:1/", "--output", pages, "--warc", archive], state].concat();
        fails(&arguments, 1, &[archive, "another crawl writes to this file"]);
        assert_eq!(fs::read_to_string(pages).unwrap(), "a line of the other\n");
    }
    succeeds(&["demo", "--output", pages]);
    assert!(records(Path::new(pages)).len() > 1);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_command_line_overrides_contradicting_options_of_the_file() {
    let folder = folder("quiet");
    let path = folder.join("crawl.toml");
    fs::write(&path, "verbose = 1\n").unwrap();
    succeeds(&["demo", "--config", path.to_str().unwrap(), "-q", "--max-pages", "1"]);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_option_is_not_a_seed_and_a_subcommand_goes_first() {
    let folder = folder("seeds");
    let path = folder.join("crawl.toml");
    fs::write(&path, "seed-urls = [\"--ignore-robots\", \"http://127.0.0.1:1/\"]\n").unwrap();
    let path = path.to_str().unwrap();
    fails(&["--config", path], 2, &["\"--ignore-robots\" is not a URL"]);
    fails(&["-q", "demo"], 2, &["the subcommand demo goes before all options"]);
    let seeds = folder.join("seeds.txt");
    fs::write(&seeds, "\u{feff}http://127.0.0.1:1/\n").unwrap();
    fails(
        &["--seeds", seeds.to_str().unwrap(), "--set", "max-first-downtime=0.1"],
        1,
        &["nothing was fetched"],
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn seeds_that_are_not_trusted_open_no_private_address() {
    let port = page_that_links_to(refused_port());
    let seed = format!("http://127.0.0.1:{port}/");
    let with = |more: &[&'static str]| {
        [
            &["-q", "--ignore-robots", "--max-pages", "1", "--fail-on-incomplete"],
            more,
            &[&seed],
        ]
        .concat()
    };
    succeeds(&with(&["--delay", "0", "-d", "0"]));
    fails(
        &with(&["--untrusted-seeds"]),
        1,
        &["nothing was fetched", "address is not public"],
    );
    for more in [
        &["--header", "A: b"][..],
        &["--basic-auth", "a:b"],
        &["--allow-private-addresses"],
    ] {
        fails(
            &[&with(&["--untrusted-seeds"])[..], more].concat(),
            2,
            &["--untrusted-seeds", more[0]],
        );
    }
}

/// Returns a closed port.
fn refused_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Starts a server of one page with a link to another port. Returns its port.
fn page_that_links_to(other: u16) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let body = format!("<a href=http://127.0.0.1:{other}/1>1</a><a href=http://127.0.0.1:{other}/2>2</a>");
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
            let _ = write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}");
        }
    });
    port
}

#[test]
fn an_incomplete_crawl_fails_with_fail_on_incomplete() {
    let refused = refused_port();
    let port = page_that_links_to(refused);
    let seed = format!("http://127.0.0.1:{port}/");
    let quick = [
        "-q",
        "--set",
        "max-first-downtime=0.2",
        "--delay",
        "0",
        "--scope",
        "any",
        "--allow-private-addresses",
        &seed,
    ];
    let Printed {
        stdout: summary,
        stderr: log,
    } = succeeds(&quick);
    assert!(summary.contains("INCOMPLETE"), "{summary}{log}");
    assert_eq!(number(&summary, "pages"), 1, "{summary}{log}");
    assert!(summary.contains("given up: 2 pages of 1 origin "), "{summary}{log}");
    let message = "the crawl is incomplete: ";
    fails(&[&["--fail-on-incomplete"][..], &quick].concat(), 3, &[message]);
    // Every reachable page was fetched.
    let complete = ["--fail-on-incomplete", "--delay", "0", "--exclude", "/[12]$", &seed];
    succeeds(&complete);
}

#[test]
fn the_first_line_names_the_cause_of_a_refused_port_and_the_crawl_ends_soon() {
    let seed = format!("http://127.0.0.1:{}/", refused_port());
    let begun = Instant::now();
    let output = crawler(&["--set", "max-first-downtime=1", "--log-format", "json", &seed]);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    let is_warning = |line: &&str| line.contains("WARN");
    let first = log.lines().find(is_warning).unwrap_or_else(|| panic!("{log}"));
    assert!(first.to_lowercase().contains("connection refused"), "{log}");
    assert!(first.contains(seed.trim_end_matches('/')), "{log}");
    let last = log.lines().last().unwrap();
    assert!(
        last.contains("nothing was fetched") && last.to_lowercase().contains("connection refused"),
        "{log}"
    );
    assert!(!log.contains("every seed was refused"), "{log}");
}

/// Starts a server that answers every request with this status. Returns its URL.
fn server_of_status(status: &'static str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            );
        }
    });
    format!("http://127.0.0.1:{port}/")
}

#[test]
fn a_crawl_without_a_page_exits_with_code_1_and_the_status() {
    let missing = server_of_status("404 Not Found");
    let message = "nothing was fetched: the seed answered 404";
    fails(&["-q", "--delay", "0", &missing], 1, &[message]);
    let message = "nothing was fetched: all answers have a status of 404";
    let other = format!("{missing}other");
    fails(&["-q", "--delay", "0", &missing, &other], 1, &[message]);
}

#[test]
fn a_dead_seed_has_a_remedy_for_its_cause_and_a_dead_second_seed_is_named() {
    let quick = ["--set", "max-first-downtime=0.2", "--delay", "0"];
    let dead = format!("http://127.0.0.1:{}/", refused_port());
    let remedy = "is the server running?";
    fails(
        &[&quick[..], &[&dead]].concat(),
        1,
        &["is away: ", remedy, "Ctrl-C stops", "nothing was fetched: "],
    );
    let name = ["-q", "http://no-such-name.invalid/"];
    fails(&[&quick[..], &name].concat(), 1, &["; check the name of the host"]);
    let plain = page_that_links_to(1);
    let tls = format!("https://127.0.0.1:{plain}/");
    fails(
        &[&quick[..], &["-q", &tls]].concat(),
        1,
        &["try http:// instead of https://"],
    );
    let alive = format!("http://127.0.0.1:{plain}/");
    let summary = succeeds(&[&quick[..], &["-q", &alive, &dead]].concat()).stdout;
    let dead = dead.trim_end_matches('/');
    assert!(summary.contains(&format!("  given up          {dead}\n")), "{summary}");
    assert!(summary.contains(&format!("({remedy}")), "{summary}");
    assert!(summary.lines().all(|line| line.chars().count() <= 80), "{summary}");
}

#[test]
fn a_csv_file_cannot_be_crawled_again() {
    let folder = folder("csv");
    let path = folder.join("pages.csv");
    fs::write(&path, "url,status\r\nhttp://127.0.0.1:1/,200\r\n").unwrap();
    let message = "give a JSON lines file that a crawl wrote, not CSV";
    fails(
        &["--recrawl", path.to_str().unwrap(), "http://127.0.0.1:1/"],
        2,
        &[message],
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_limited_demo_says_that_it_was_not_checked() {
    let stderr = succeeds(&["demo", "--max-pages", "10"]).stderr;
    let message = "not checked, because the options or a stop limit the crawl: it fetched ";
    assert!(stderr.contains(message), "{stderr}");
}
