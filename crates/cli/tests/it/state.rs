//! `--state`: the same command continues a crawl, and says why if it cannot.

#[cfg(target_os = "linux")]
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

#[cfg(target_os = "linux")]
use crate::limits::run_with_limit;
use crate::pages_server::site_of;
use crate::program::{fails, folder, number, succeeds};

const PAGES: usize = 60;

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

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

/// The URLs of the lines, sorted.
fn urls(file: &str) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let url = |line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["url"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let mut urls: Vec<String> = text.lines().map(url).collect();
    urls.sort();
    urls
}

#[test]
fn the_memory_is_bounded_with_a_state_directory_only_and_not_below_what_its_parts_need() {
    let (seed, folder) = (site(), folder("state-memory"));
    let (pages, state) = (path(&folder, "pages.jsonl"), path(&folder, "state"));
    fails(&["--memory", "512MiB", &seed], 2, &["--state"]);
    let too_little: &[&str] = &["--delay", "0", "--state", &state, "--memory", "50MiB", &seed];
    fails(
        too_little,
        2,
        &["--memory: 50 MiB of memory is too little: at least ", " MiB is needed"],
    );
    let run = |memory| {
        let memory = ["--memory", memory, "--per-host", "32"];
        succeeds(
            &[
                &["--delay", "0", "--state", &state, "-o", &pages],
                &memory[..],
                &[&seed],
            ]
            .concat(),
        )
        .stdout
    };
    let first = run("512MiB");
    assert_eq!(number(&first, "pages "), PAGES as u64);
    // 32 MiB for the program, and half a MiB for each of 16 requests, however many there may be to one host.
    assert!(first.contains("MiB of 472.0 MiB"), "{first}");
    // It may change.
    assert!(run("300MiB").contains("MiB of 260.0 MiB"));
    let status = succeeds(&["status", &state]).stdout;
    assert!(status.contains("MiB of 260.0 MiB"), "{status}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_same_command_continues_an_interrupted_crawl_and_then_says_that_it_has_ended() {
    let (seed, folder) = (site(), folder("state-continue"));
    let (pages, state) = (path(&folder, "pages.jsonl"), path(&folder, "state"));
    let run = |more: &[&str]| succeeds(&[&["--delay", "0", "--state", &state, "-o", &pages], more, &[&seed]].concat());
    let first = run(&["--max-pages", "5"]);
    assert!(
        first.stderr.contains("with a higher --max-pages continues it"),
        "{}",
        first.stderr
    );
    assert_eq!(urls(&pages).len(), 5);
    let second = run(&["--max-pages", "40"]);
    assert!(second.stderr.contains("continuing the crawl in"), "{}", second.stderr);
    assert_eq!(number(&second.stdout, "pages "), 40);
    let third = run(&[]);
    assert_eq!(number(&third.stdout, "pages "), PAGES as u64);
    let again = run(&[]);
    assert!(
        again.stderr.contains("has ended: nothing is left to fetch"),
        "{}",
        again.stderr
    );
    assert_eq!(number(&again.stdout, "pages "), PAGES as u64);
    let mut found = urls(&pages);
    assert_eq!(found.len(), PAGES);
    found.dedup();
    assert_eq!(found.len(), PAGES);
    fs::remove_dir_all(folder).unwrap();
}

/// Sets a cookie with each page, and returns the heads of the requests.
fn site_with_cookies() -> (String, Receiver<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let seed = format!("http://{}/", listener.local_addr().unwrap());
    let (send, heads) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap_or(0);
            let _ = send.send(String::from_utf8_lossy(&head[..length]).into_owned());
            let body = "<a href=/next>x</a>";
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nSet-Cookie: id=secret; Path=/";
            let _ = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    (seed, heads)
}

#[test]
fn cookies_are_sent_again_in_the_next_run() {
    let ((seed, heads), folder) = (site_with_cookies(), folder("state-cookies"));
    let state = path(&folder, "state");
    let run = |pages: &str| {
        succeeds(&[
            "--delay",
            "0",
            "--cookies",
            "--ignore-robots",
            "--max-pages",
            pages,
            "--state",
            &state,
            &seed,
        ]);
        heads.try_iter().collect::<Vec<_>>()
    };
    assert!(run("1").iter().all(|head| !head.contains("cookie:")));
    let second = run("2");
    assert_eq!(second.len(), 1);
    assert!(second[0].contains("cookie: id=secret"), "{second:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let kept = fs::metadata(folder.join("state/fetcher.json")).unwrap();
        assert_eq!(kept.permissions().mode() & 0o077, 0, "only its owner may read it");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_crawl_that_has_ended_is_not_ended_for_refresh_which_needs_a_state_directory() {
    let (seed, folder) = (site(), folder("state-refresh"));
    let state = path(&folder, "state");
    let common = ["--delay", "0", "--state", &state, &seed];
    fails(&["--refresh", "1h", &seed], 2, &["--state"]);
    fails(&[&common[..], &["--refresh", "0"]].concat(), 2, &["--refresh"]);
    succeeds(&common);
    let young = succeeds(&[&common[..], &["--refresh", "1h"]].concat());
    assert!(!young.stderr.contains("has ended"), "{}", young.stderr);
    assert!(!young.stderr.contains("refreshed"), "{}", young.stderr);
    let old = succeeds(&[&common[..], &["--refresh", "1ms", "--max-time", "300ms"]].concat());
    assert!(number(&old.stderr, "refreshed ") > 0, "{}", old.stderr);
    assert_eq!(number(&old.stderr, "pages "), PAGES as u64);
    let shown = succeeds(&["status", &state]).stdout;
    assert!(number(&shown, "refreshed ") > 0, "{shown}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn outputs_that_cannot_be_continued_are_refused() {
    let (seed, folder) = (site(), folder("state-refuse"));
    let state = path(&folder, "state");
    let (pages, links) = (path(&folder, "pages.jsonl"), path(&folder, "links.csv"));
    let common = [
        "--delay",
        "0",
        "--allow-private-addresses",
        "--max-pages",
        "5",
        "--state",
        &state,
        &seed,
    ];
    let with = |outputs: &[&'static str]| [&common[..], outputs].concat();
    fails(&with(&["-o", "-"]), 2, &["--output is not a file", "--state"]);
    fails(&with(&["--links", "/dev/null"]), 2, &["--links is not a file"]);
    succeeds(&[&common[..], &["-o", &pages, "--links", &links]].concat());
    fails(
        &[&common[..], &["-o", &pages]].concat(),
        2,
        &["also writes --links", &links],
    );
    let other = ["-o", &pages, "--links", &links, "--format", "jsonl"];
    fails(
        &[&common[..], &other].concat(),
        2,
        &["also writes --links", "--format csv: give it again"],
    );
    let same = ["-o", &pages, "--links", &links];
    let text = fs::read_to_string(&pages).unwrap();
    fs::write(&pages, text.replace("200", "201")).unwrap();
    fails(
        &[&common[..], &same].concat(),
        1,
        &[&pages, "was changed", "put that file back"],
    );
    fs::remove_file(&pages).unwrap();
    fails(
        &[&common[..], &same].concat(),
        1,
        &[&pages, "is missing", "another state directory"],
    );
    fs::write(&pages, text).unwrap();
    succeeds(&[&common[..], &same].concat());
    let changed = [&common[..], &same, &["--scope", "site"]].concat();
    fails(&changed, 2, &["host", "site", "give the same again"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn other_rules_of_which_urls_are_the_same_are_refused_and_nothing_else_is_called_damage() {
    let (seed, folder) = (site(), folder("state-rules"));
    let state = path(&folder, "state");
    let begin: &[&str] = &["--delay", "0", "--state", &state, "--max-pages", "5", &seed];
    succeeds(begin);
    fails(
        &[begin, &["--sort-query"]].concat(),
        2,
        &["--sort-query", "another directory"],
    );
    // Nor without the file that has the rules.
    fs::remove_file(Path::new(&state).join("rules.json")).unwrap();
    fails(
        &[begin, &["--sort-query"]].concat(),
        2,
        &["--sort-query", "another directory"],
    );
    succeeds(&["--delay", "0", "--state", &state, &seed]);
    // A file is no directory, and nothing in it is damaged.
    let file = path(&folder, "file");
    fs::write(&file, "text").unwrap();
    fails(&["status", &file], 1, &["cannot be read", "the directory of a crawl"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn options_that_change_are_refused_or_take_effect_or_are_told_to_hold_for_new_links() {
    let (seed, folder) = (site(), folder("state-options"));
    let (pages, links, state) = (
        path(&folder, "pages.jsonl"),
        path(&folder, "links.jsonl"),
        path(&folder, "state"),
    );
    let same = ["--delay", "0", "--state", &state, "-o", &pages];
    let with = |more: &[&'static str]| [&same[..], more, &[&seed]].concat();
    succeeds(&with(&["--max-pages", "5"]));
    fails(
        &with(&["--scope", "any"]),
        2,
        &["begun with --scope ", "which cannot become any"],
    );
    fails(
        &with(&["--set=hash=xxh3"]),
        2,
        &["--set hash murmur3, which cannot become xxh3"],
    );
    fails(
        &with(&["--exact"]),
        2,
        &["begun without --exact, which cannot be added"],
    );
    fails(
        &with(&["--on-saturation", "warn"]),
        2,
        &["--on-saturation grow, which cannot become warn"],
    );
    let narrower = [
        &with(&["--exclude", "/nothing", "--max-pages", "6"])[..],
        &["--links", &links],
    ]
    .concat();
    let stderr = succeeds(&narrower).stderr;
    assert!(
        stderr.contains("--exclude: changed for links that are found from now on")
            && stderr.contains("links.jsonl is new in this run"),
        "{stderr}"
    );
    let again = succeeds(&narrower).stderr;
    assert!(
        !again.contains("from now on") && !again.contains("is new in this run"),
        "{again}"
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_queue_that_may_be_longer_in_the_next_run_does_not_ask_for_a_longer_one_again() {
    let (seed, folder) = (site(), folder("state-queue"));
    let (state, pages) = (path(&folder, "state"), path(&folder, "pages.jsonl"));
    let with = |most: &'static str| {
        [
            "--delay",
            "0",
            "--state",
            &state,
            "-o",
            &pages,
            "--max-queued",
            most,
            &seed,
        ]
    };
    let narrow = succeeds(&with("2")).stdout;
    assert!(
        narrow.contains("queue full") && narrow.contains("(raise --max-queued)"),
        "{narrow}"
    );
    for _ in 0..2 {
        let wide = succeeds(&with("1k")).stdout;
        assert!(
            wide.contains("INCOMPLETE") && wide.contains("refused in an earlier run"),
            "{wide}"
        );
        assert!(!wide.contains("(raise --max-queued)"), "{wide}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_limit_that_is_lifted_leaves_the_crawl_incomplete_because_refused_links_are_not_offered_again() {
    let (seed, folder) = (site(), folder("state-lifted"));
    for (name, limit, other) in [
        ("depth", ["--max-depth", "1"], ["--max-depth", "9"]),
        ("include", ["--include", "/1$"], ["--include", "/[0-9]*$"]),
        ("exclude", ["--exclude", "/1$"], ["--exclude", "/2$"]),
        ("host", ["--max-pages-per-host", "3"], ["--max-pages-per-host", "99"]),
    ] {
        let (state, pages) = (path(&folder, name), path(&folder, &format!("{name}.jsonl")));
        let with =
            |more: &[&'static str]| [&["--delay", "0", "--state", &state, "-o", &pages][..], more, &[&seed]].concat();
        let narrow = succeeds(&[&with(&limit)[..], &["--fail-on-incomplete"]].concat());
        assert!(number(&narrow.stdout, "pages ") < PAGES as u64);
        for more in [&other[..], &other[..]] {
            let wide = succeeds(&with(more));
            assert!(
                wide.stdout.contains("INCOMPLETE") && wide.stdout.contains("refused in an earlier run"),
                "{name}: {}",
                wide.stdout
            );
        }
        fails(&[&with(&other)[..], &["--fail-on-incomplete"]].concat(), 3, &[]);
        let status = succeeds(&["status", "--json", &state]).stdout;
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["refused_earlier"], true, "{status}");
        assert!(succeeds(&["status", &state]).stdout.contains("refused earlier"));
    }
    // A limit that refuses more has refused nothing that it would not refuse now.
    let state = path(&folder, "narrower");
    let with = |more: &[&'static str]| [&["--delay", "0", "--state", &state][..], more, &[&seed]].concat();
    succeeds(&with(&["--max-depth", "3", "--exclude", "/5$"]));
    let narrower = with(&[
        "--max-depth",
        "2",
        "--exclude",
        "/5$",
        "--exclude",
        "/6$",
        "--fail-on-incomplete",
    ]);
    succeeds(&narrower);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn near_duplicates_that_were_dropped_leave_the_crawl_incomplete_when_their_limit_is_lifted() {
    let folder = folder("state-lifted-near-duplicates");
    let text: String = (0..300).map(|word| format!("word{} ", word * word)).collect();
    let seed = site_of(move |path| {
        let links = (1..=100).map(|page| format!("<a href=/{page}>x</a>"));
        Some(match path {
            "/robots.txt" => String::new(),
            "/" => links.collect(),
            page => format!("<p>{text} {page}"),
        })
    });
    let (state, pages) = (path(&folder, "state"), path(&folder, "pages.jsonl"));
    // With an output, every page is compared; without one, one page of 32 is, until the site looks like a trap.
    let options = ["-q", "--delay", "0", "--state", &state, "-o", &pages];
    let with = |more: &[&'static str]| [&options[..], more, &[&seed]].concat();
    let narrow = with(&["--set=max-near-duplicates=1", "--set=max-near-duplicates-in-all=2"]);
    let narrow = succeeds(&narrow).stdout;
    assert!(number(&narrow, "pages ") < 101, "{narrow}");
    let wide = succeeds(&with(&["--set=max-near-duplicates-in-all=1000"])).stdout;
    assert!(
        number(&wide, "pages ") < 101 && wide.contains("refused in an earlier run"),
        "{wide}"
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_limit_that_is_as_narrow_again_leaves_nothing_incomplete() {
    let (seed, folder) = (site(), folder("state-narrow-again"));
    let (state, pages) = (path(&folder, "state"), path(&folder, "pages.jsonl"));
    let command = ["--delay", "0", "--state", &state, &seed];
    succeeds(&[&command[..], &["--max-depth", "1", "-o", &pages]].concat());
    // A command that fails, and is not given again.
    fails(&[&command[..], &["--max-depth", "9"]].concat(), 2, &["give it again"]);
    let resumed = succeeds(&["resume", &state, "--fail-on-incomplete"]).stdout;
    assert!(
        resumed.contains("complete") && !resumed.contains("INCOMPLETE"),
        "{resumed}"
    );
    fails(&["resume", &state, "--max-depth", "9"], 3, &["crawl is incomplete"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_directory_without_its_database_is_no_new_crawl() {
    let (seed, folder) = (site(), folder("state-no-database"));
    let (pages, state) = (path(&folder, "pages.jsonl"), path(&folder, "state"));
    let command = ["--delay", "0", "--state", &state, "-o", &pages, &seed];
    succeeds(&command);
    let lines = urls(&pages).len();
    fs::remove_file(Path::new(&state).join("frontier.sqlite")).unwrap();
    let lacks = &["lacks its database", "frontier.sqlite from a copy"];
    let looks = [
        &["status", &state][..],
        &["list", "--done", &state],
        &["list", "--waiting", &state],
        &["why", &state, &seed],
        &["repair", &state],
        &["resume", &state],
        &command,
    ];
    looks.iter().for_each(|command| fails(command, 1, lacks));
    let rules = Path::new(&state).join("rules.json");
    fs::write(&rules, "{").unwrap();
    looks.iter().for_each(|command| fails(command, 1, lacks));
    fs::remove_file(&rules).unwrap();
    fails(&["resume", &state], 1, lacks);
    assert_eq!(urls(&pages).len(), lines, "the lines of the first crawl are there");
    fs::remove_dir_all(folder).unwrap();
}

#[cfg(unix)]
#[test]
fn files_with_a_secret_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let (seed, folder) = (site(), folder("state-modes"));
    let state = path(&folder, "state");
    succeeds(&["--delay", "0", "--state", &state, "--max-pages", "5", &seed]);
    for name in ["frontier.sqlite", "command.json", "rules.json"] {
        let mode = fs::metadata(Path::new(&state).join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_database_at_its_size_limit_ends_the_crawl_and_the_same_command_continues_it() {
    let (seed, folder) = (site(), folder("state-size-limit"));
    let (pages, state) = (path(&folder, "pages.jsonl"), path(&folder, "state"));
    let arguments = ["--delay", "0", "--state", &state, "-o", &pages, &seed];
    // The log of the database outgrows it.
    let limited = run_with_limit("-f 128", &arguments);
    let log = String::from_utf8_lossy(&limited.stderr);
    assert_eq!(limited.status.code(), Some(1), "{log}");
    assert!(
        log.contains("frontier.sqlite cannot be used") && log.contains("ulimit -f"),
        "{log}"
    );
    let before = urls(&pages).len();
    assert!((1..PAGES).contains(&before), "{before} pages");
    // With less room than the shared memory of the database needs.
    let limited = run_with_limit("-f 16", &["resume", &state]);
    let log = String::from_utf8_lossy(&limited.stderr);
    assert_eq!(limited.status.code(), Some(1), "{log}");
    assert!(log.contains("ulimit -f"), "{log}");
    succeeds(&arguments);
    let mut found = urls(&pages);
    found.dedup();
    assert_eq!(found.len(), PAGES);
    assert_eq!(urls(&pages).len(), PAGES);
    fs::remove_dir_all(folder).unwrap();
}
