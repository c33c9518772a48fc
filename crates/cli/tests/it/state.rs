//! `--state`: the same command continues a crawl, and says why if it cannot.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use crate::program::{Folder, fails, folder, lines_of, number, succeeds};
use crate::servers::{answer, closed_port, path_in, server_of, site_of, tree};

const PAGES: u64 = 60;

/// A crawl with a state directory and an output.
pub(crate) struct Crawl {
    pub(crate) folder: Folder,
    pub(crate) seed: String,
    pub(crate) state: String,
    pub(crate) pages: String,
}

impl Crawl {
    fn new(name: &str) -> Self {
        Self::of(name, tree(PAGES as usize))
    }

    pub(crate) fn of(name: &str, seed: String) -> Self {
        let folder = folder(name);
        let (state, pages) = (folder.path("state"), folder.path("pages.jsonl"));
        Self {
            folder,
            seed,
            state,
            pages,
        }
    }

    /// The command with these options, besides its state directory.
    fn without_output(&self, options: &str) -> String {
        format!("--delay 0 --state {} {} {options}", self.state, self.seed)
    }

    pub(crate) fn with(&self, options: &str) -> String {
        self.without_output(&format!("-o {} {options}", self.pages))
    }

    /// The URLs of the pages in the output, sorted.
    fn urls(&self) -> Vec<String> {
        let lines = lines_of(&self.pages);
        let mut urls: Vec<_> = lines.iter().map(|line| line["url"].to_string()).collect();
        urls.sort();
        urls
    }

    /// Checks that the output has every page once.
    #[track_caller]
    fn has_every_page_once(&self) {
        let mut urls = self.urls();
        assert_eq!(urls.len() as u64, PAGES);
        urls.dedup();
        assert_eq!(urls.len() as u64, PAGES);
    }
}

#[test]
fn the_memory_is_bounded_with_a_state_directory_only_and_not_below_what_its_parts_need() {
    let crawl = Crawl::new("state-memory");
    fails(&format!("--memory 512MiB {}", crawl.seed), 2, &["--state"]);
    let too_little = "--memory: 50 MiB of memory is too little: at least ";
    fails(&crawl.with("--memory 50MiB"), 2, &[too_little, " MiB is needed"]);
    let run = |memory| succeeds(&crawl.with(&format!("--memory {memory} --per-host 32"))).stdout;
    let first = run("512MiB");
    assert_eq!(number(&first, "pages "), PAGES);
    // 32 MiB for the program, and half a MiB for each of 16 requests, however many there may be to one host.
    assert!(first.contains("MiB of 472.0 MiB"), "{first}");
    // It may change.
    assert!(run("300MiB").contains("MiB of 260.0 MiB"));
    let status = succeeds(&["status", &crawl.state]).stdout;
    assert!(status.contains("MiB of 260.0 MiB"), "{status}");
}

#[test]
fn the_same_command_continues_an_interrupted_crawl_and_then_says_that_it_has_ended() {
    let crawl = Crawl::new("state-continue");
    for (limit, pages, message) in [
        ("--max-pages 5", 5, "with a higher --max-pages continues it"),
        ("--max-pages 40", 40, "continuing the crawl in"),
        ("", PAGES, "continuing the crawl in"),
        ("", PAGES, "has ended: nothing is left to fetch"),
    ] {
        let run = succeeds(&crawl.with(limit));
        assert_eq!(number(&run.stdout, "pages "), pages);
        assert_eq!(crawl.urls().len() as u64, pages);
        assert!(run.stderr.contains(message), "{}", run.stderr);
        assert_eq!(run.stderr.contains("99 B at the end of"), pages == 40, "{}", run.stderr);
        if pages == 5 {
            // As a kill leaves it.
            let mut output = fs::OpenOptions::new().append(true).open(&crawl.pages).unwrap();
            output.write_all(&[b'x'; 99]).unwrap();
        }
    }
    crawl.has_every_page_once();
}

#[test]
fn a_crawl_that_has_ended_without_a_page_says_why_at_each_start_and_a_supervisor_leaves_it_alone() {
    let empty = |_: &str| answer("404 Not Found", "");
    let forbidden = |head: &str| match path_in(head) {
        "/robots.txt" => answer("200 OK", "User-agent: *\nDisallow: /"),
        _ => answer("200 OK", "a page"),
    };
    let round = |_: &str| answer("302 Found\r\nLocation: /", "");
    type Answer = fn(&str) -> String;
    let sites: [(&str, &str, Answer); 4] = [
        ("the seed answered 404", "", empty),
        ("the seed answered 404", "--max-pages 1", empty),
        ("forbidden by robots.txt", "", forbidden),
        ("redirect loop", "", round),
    ];
    for (why, options, answer) in sites {
        let (send, requests) = channel();
        let crawl = Crawl::of(
            "state-nothing",
            server_of(move |head| {
                let _ = send.send(());
                answer(head)
            }),
        );
        for start in 0..3_u32 {
            fails(
                &crawl.without_output(options),
                3,
                &["nothing was fetched: ", why, "another start requests nothing"],
            );
            assert_eq!(requests.try_iter().count() > 0, start == 0, "{why}: start {start}");
        }
    }
    // This one is asked again.
    let gone = Crawl::of("state-nothing", format!("http://127.0.0.1:{}/", closed_port()));
    for _ in 0..2 {
        fails(
            &gone.without_output("--set max-first-downtime=0.1"),
            1,
            &["nothing was fetched: "],
        );
    }
    for file in ["deploy/crawler@.service", "docs/logs.md"] {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap();
        assert!(text.contains("RestartPreventExitStatus=2 3\n"), "{file}");
    }
}

#[test]
fn cookies_are_sent_again_in_the_next_run_and_files_with_a_secret_are_for_their_owner_only() {
    let (send, heads) = channel();
    let crawl = Crawl::of(
        "state-cookies",
        server_of(move |head| {
            let _ = send.send(head.to_owned());
            answer("200 OK\r\nSet-Cookie: id=secret; Path=/", "<a href=/next>x</a>")
        }),
    );
    let run = |pages| {
        succeeds(&crawl.without_output(&format!("--cookies --ignore-robots --max-pages {pages}")));
        heads.try_iter().collect::<Vec<_>>()
    };
    assert!(run(1).iter().all(|head| !head.contains("Cookie:")));
    let second = run(2);
    assert_eq!(second.len(), 1);
    assert!(second[0].contains("Cookie: id=secret"), "{second:?}");
    #[cfg(unix)]
    for name in ["fetcher.json", "frontier.sqlite", "command.json", "rules.json"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(Path::new(&crawl.state).join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_crawl_that_has_ended_is_not_ended_for_refresh_which_needs_a_state_directory() {
    let crawl = Crawl::new("state-refresh");
    fails(&format!("--refresh 1h {}", crawl.seed), 2, &["--state"]);
    fails(&crawl.without_output("--refresh 0"), 2, &["--refresh"]);
    succeeds(&crawl.without_output(""));
    let young = succeeds(&crawl.without_output("--refresh 1h")).stderr;
    assert!(!young.contains("has ended") && !young.contains("refreshed"), "{young}");
    let old = succeeds(&crawl.without_output("--refresh 1ms --max-time 300ms")).stderr;
    assert!(number(&old, "refreshed ") > 0, "{old}");
    assert_eq!(number(&old, "pages "), PAGES);
    let shown = succeeds(&["status", &crawl.state]).stdout;
    assert!(number(&shown, "refreshed ") > 0, "{shown}");
}

#[test]
fn what_has_changed_is_written_alone_and_a_spent_page_budget_stops_no_revisit() {
    let ticks = AtomicU64::new(0);
    let seed = server_of(move |head| match path_in(head) {
        "/" => answer("200 OK", "<a href=/ticker>x</a><a href=/beyond>x</a>"),
        "/ticker" => answer("200 OK", &format!("tick {}", ticks.fetch_add(1, Ordering::Relaxed))),
        "/beyond" => answer("200 OK", "beyond the budget"),
        _ => answer("404 Not Found", ""),
    });
    let crawl = Crawl::of("output-changes", seed);
    let fresh = "--keep-fresh --delay 1ms --set min-age=1s --set max-age=1s --set revisit-share=0.9";
    let told = succeeds(&crawl.with(&format!("{fresh} --max-pages 2 --output-changes --max-time 5s")));
    let lines = lines_of(&crawl.pages);
    let of = |path: &str| {
        lines
            .iter()
            .filter(|line| line["url"].as_str().unwrap().ends_with(path))
            .count()
    };
    assert_eq!((of("/"), of("/beyond")), (1, 0), "{lines:?}");
    assert!(of("/ticker") >= 3, "{lines:?}");
    assert!(told.stdout.contains("time is up: 1 page left"), "{}", told.stdout);
    assert!(number(&told.stdout, "refreshed ") >= 4, "{}", told.stdout);
    let status = succeeds(&["status", &crawl.state]).stdout;
    assert!(status.contains("fresh ") && status.contains("stalest "), "{status}");
}

#[test]
fn outputs_that_cannot_be_continued_are_refused() {
    let crawl = Crawl::new("state-refuse");
    let (pages, links) = (&crawl.pages, crawl.folder.path("links.csv"));
    let with = |options: &str| crawl.without_output(&format!("--max-pages 5 {options}"));
    fails(&with("-o -"), 2, &["--output is not a file", "--state"]);
    let pipe = crawl.folder.path("fifo");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in ["/dev/null", &pipe] {
        fails(
            &with(&format!("--links {path} --format csv")),
            2,
            &["--links is not a file"],
        );
        fails(&with(&format!("--warc {path}")), 2, &["--warc is not a file"]);
    }
    let same = with(&format!("-o {pages} --links {links}"));
    succeeds(&same);
    fails(&with(&format!("-o {pages}")), 2, &["also writes --links", &links]);
    let other = ["also writes --links", "--format csv: give it again, or"];
    fails(&format!("{same} --format jsonl"), 2, &other);
    let mistyped = pages.replace("pages", "page");
    let other = with(&format!("-o {mistyped} --links {links}"));
    fails(
        &other,
        2,
        &[&mistyped, "the file is missing", &format!("name {pages}, or")],
    );
    let text = fs::read_to_string(pages).unwrap();
    fs::write(pages, text.replace("200", "201")).unwrap();
    fails(&same, 2, &[pages, "was changed", "put that file back"]);
    fs::remove_file(pages).unwrap();
    fails(&same, 2, &[pages, "is missing", "another state directory"]);
    fs::write(pages, text).unwrap();
    succeeds(&same);
}

#[test]
fn other_rules_of_which_urls_are_the_same_are_refused_and_nothing_else_is_called_damage() {
    let crawl = Crawl::new("state-rules");
    succeeds(&crawl.without_output("--max-pages 5"));
    let refused = ["sort-query", "another directory"];
    fails(&crawl.without_output("--set sort-query=true"), 2, &refused);
    // Nor without the file that has the rules.
    fs::remove_file(Path::new(&crawl.state).join("rules.json")).unwrap();
    fails(&crawl.without_output("--set sort-query=true"), 2, &refused);
    succeeds(&crawl.without_output(""));
    // A file is no directory, and nothing in it is damaged.
    let file = crawl.folder.file("file", "text");
    fails(&["status", &file], 1, &["cannot be read", "the directory of a crawl"]);
}

#[test]
fn options_that_change_are_refused_or_take_effect_or_are_told_to_hold_for_new_links() {
    let crawl = Crawl::new("state-options");
    succeeds(&crawl.with("--max-pages 5"));
    for (changed, message) in [
        (
            "--scope any",
            "begun with --scope host, which cannot become any: give the same again",
        ),
        ("--set=hash=xxh3", "--set hash murmur3, which cannot become xxh3"),
        ("--exact", "begun without --exact, which cannot be added"),
        ("--on-saturation warn", "--on-saturation grow, which cannot become warn"),
    ] {
        fails(&crawl.with(changed), 2, &[message]);
    }
    let links = crawl.folder.path("links.jsonl");
    let narrower = crawl.with(&format!("--exclude /nothing --max-pages 6 --links {links}"));
    let messages = [
        "--exclude: changed for links that are found from now on",
        "links.jsonl is new in this run",
    ];
    let stderr = succeeds(&narrower).stderr;
    assert!(messages.iter().all(|message| stderr.contains(message)), "{stderr}");
    let again = succeeds(&narrower).stderr;
    assert!(!messages.iter().any(|message| again.contains(message)), "{again}");
}

#[test]
fn a_limit_that_is_lifted_leaves_the_crawl_incomplete_because_refused_links_are_not_offered_again() {
    let seed = tree(PAGES as usize);
    for (name, limit, other) in [
        ("depth", "--max-depth 1", "--max-depth 9"),
        ("include", "--include /1$", "--include /[0-9]*$"),
        ("includes", "--include /1$", "--max-depth 9"),
        ("exclude", "--exclude /1$", "--exclude /2$"),
        ("host", "--max-pages-per-host 3", "--max-pages-per-host 99"),
        ("queue", "--set max-queued=2", "--set max-queued=1k"),
    ] {
        let crawl = Crawl::of(&format!("state-lifted-{name}"), seed.clone());
        let narrow = succeeds(&crawl.with(limit)).stdout;
        assert!(number(&narrow, "pages ") < PAGES);
        assert_eq!(
            narrow.contains("(raise --set max-queued, in a"),
            name == "queue",
            "{narrow}"
        );
        for _ in 0..2 {
            let wide = succeeds(&crawl.with(other)).stdout;
            assert!(
                wide.contains("INCOMPLETE") && wide.contains("refused in an earlier run"),
                "{wide}"
            );
            assert!(!wide.contains("(raise "), "what was raised: {wide}");
        }
        fails(&crawl.with(&format!("{other} --fail-on-incomplete")), 3, &[]);
        let status = succeeds(&["status", "--json", &crawl.state]).stdout;
        assert!(status.contains("\"refused_earlier\":true"), "{status}");
        assert!(
            succeeds(&["status", &crawl.state])
                .stdout
                .contains("refused in an earlier run")
        );
    }
    // A limit that refuses more has refused nothing that it would not refuse now.
    let crawl = Crawl::of("state-narrower", seed);
    succeeds(&crawl.with("--max-depth 3 --exclude /5$"));
    succeeds(&crawl.with("--max-depth 2 --exclude /5$ --exclude /6$ --include / --fail-on-incomplete"));
}

#[test]
fn near_duplicates_that_were_dropped_leave_the_crawl_incomplete_when_their_limit_is_lifted() {
    let text: String = (0..300).map(|word| format!("word{} ", word * word)).collect();
    let seed = site_of(move |path| {
        let links = (1..=100).map(|page| format!("<a href=/{page}>x</a>"));
        Some(match path {
            "/robots.txt" => String::new(),
            "/" => links.collect(),
            page => format!("<p>{text} {page}"),
        })
    });
    let crawl = Crawl::of("state-lifted-near-duplicates", seed);
    // With an output, every page is compared; without one, one page of 32 is, until the site looks like a trap.
    let narrow = crawl.with("-q --set=max-near-duplicates=1 --set=max-near-duplicates-in-all=2");
    let narrow = succeeds(&narrow).stdout;
    assert!(number(&narrow, "pages ") < 101, "{narrow}");
    let wide = succeeds(&crawl.with("-q --set=max-near-duplicates-in-all=1000")).stdout;
    assert!(
        number(&wide, "pages ") < 101 && wide.contains("refused in an earlier run"),
        "{wide}"
    );
}

#[test]
fn a_limit_that_is_as_narrow_again_leaves_nothing_incomplete() {
    let crawl = Crawl::new("state-narrow-again");
    succeeds(&crawl.with("--max-depth 1"));
    // A command that fails, and is not given again.
    fails(&crawl.without_output("--max-depth 9"), 2, &["give it again"]);
    let resumed = succeeds(&["resume", &crawl.state, "--fail-on-incomplete"]).stdout;
    assert!(
        resumed.contains("complete") && !resumed.contains("INCOMPLETE"),
        "{resumed}"
    );
    fails(
        &["resume", &crawl.state, "--max-depth", "9"],
        3,
        &["crawl is incomplete"],
    );
}

#[test]
fn a_directory_without_its_database_is_no_new_crawl() {
    let crawl = Crawl::new("state-no-database");
    succeeds(&crawl.with(""));
    let state = &crawl.state;
    let starts = [crawl.with(""), format!("resume {state}")];
    fs::remove_file(Path::new(state).join("frontier.sqlite")).unwrap();
    let lacks = &["lacks its database", "frontier.sqlite from a copy"];
    let looks = ["status", "list --done", "list --waiting", "repair"];
    let looks = looks.map(|look| format!("{look} {state}"));
    let looks = [&looks[..], &[format!("why {state} {}", crawl.seed)]].concat();
    starts.iter().for_each(|start| fails(start, 2, lacks));
    looks.iter().for_each(|look| fails(look, 1, lacks));
    let rules = Path::new(state).join("rules.json");
    fs::write(&rules, "{").unwrap();
    starts.iter().for_each(|start| fails(start, 2, lacks));
    looks.iter().for_each(|look| fails(look, 1, lacks));
    fs::remove_file(&rules).unwrap();
    fails(&["resume", state], 2, lacks);
    crawl.has_every_page_once();
}

#[cfg(target_os = "linux")]
#[test]
fn a_database_at_its_size_limit_ends_the_crawl_and_the_same_command_continues_it() {
    use crate::program::{has_failed, run_with_limit};

    let crawl = Crawl::new("state-size-limit");
    // The log of the database outgrows it.
    let limited = run_with_limit("-f 128", &crawl.with(""));
    has_failed(&limited, 1, &["frontier.sqlite cannot be used", "ulimit -f"]);
    let before = crawl.urls().len() as u64;
    assert!(before < PAGES, "{before} pages");
    // With less room than the shared memory of the database needs.
    has_failed(&run_with_limit("-f 16", &["resume", &crawl.state]), 1, &["ulimit -f"]);
    succeeds(&crawl.with(""));
    crawl.has_every_page_once();
    // A start that never had the room leaves nothing.
    let crawl = Crawl::new("state-no-room");
    has_failed(&run_with_limit("-f 16", &crawl.with("")), 1, &["ulimit -f"]);
    assert!(!Path::new(&crawl.state).exists());
}

#[test]
fn a_directory_of_another_format_is_left_alone_with_a_way_on() {
    let crawl = Crawl::new("other-format");
    succeeds(&crawl.with(""));
    // The version of the format lies in the head of a database (<https://sqlite.org/fileformat.html>).
    let database = Path::new(&crawl.state).join("frontier.sqlite");
    let mut bytes = fs::read(&database).unwrap();
    bytes[63] -= 1;
    fs::write(&database, &bytes).unwrap();
    let before = fs::read(&crawl.pages).unwrap();
    let state = crawl.state.as_str();
    for command in [
        crawl.with("").as_str(),
        &format!("status {state}"),
        &format!("list --waiting {state}"),
        &format!("repair {state}"),
    ] {
        fails(command, 2, &["format", "another directory"]);
    }
    assert_eq!(
        (fs::read(&database).unwrap(), fs::read(&crawl.pages).unwrap()),
        (bytes, before)
    );
}
