//! The README and docs/: their programs are those in `examples/` and run against the demo site, and their fields are those of the
//! code.

use std::path::{Path, PathBuf};
use std::process::Command;

use crawler_cli::demo;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

const PROGRAMS: [&str; 3] = ["embed_sieve", "embed_frontier", "embed_crawler"];

/// Of the frontier's program, the README shows the first function: `main`.
#[test]
fn the_programs_of_the_readme_are_the_examples() {
    let readme = read("README.md");
    let blocks = readme.split("```rust\n").skip(1);
    let programs: Vec<&str> = blocks.map(|block| block.split("```").next().unwrap()).collect();
    assert_eq!(programs.len(), PROGRAMS.len());
    for (name, shown) in PROGRAMS.iter().zip(programs) {
        let example = read(&format!("examples/{name}.rs"));
        let is_text = |line: &&str| line.starts_with("//!") || line.is_empty();
        let code = example.lines().skip_while(is_text).collect::<Vec<_>>().join("\n");
        let expected = match *name {
            "embed_frontier" => {
                let main = &code[code.find("fn main()").unwrap()..];
                &main[..main.find("\n}").unwrap() + 2]
            }
            _ => &code,
        };
        assert_eq!(
            shown.trim_end(),
            expected,
            "the program in the README differs from examples/{name}.rs"
        );
    }
}

/// Runs an example against the demo site until it ends, or until it has printed `lines` lines.
fn first_lines(example: &str, lines: usize) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(demo::serve()).unwrap();
    first_lines_of(example, server.site().seed().port().unwrap(), lines)
}

fn first_lines_of(example: &str, port: u16, lines: usize) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_crawler"))
        .with_file_name("examples")
        .join(example);
    let mut child = Command::new(program)
        .arg(format!("http://localhost:{port}/"))
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    let found = std::io::BufRead::lines(output)
        .take(lines)
        .map(Result::unwrap)
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    found
}

#[test]
fn the_sieve_in_a_custom_crawler_fetches_each_page_once() {
    let lines = first_lines("embed_sieve", 100);
    assert!(lines.iter().all(|line| line.contains("new links")), "{lines:?}");
    let distinct: std::collections::BTreeSet<_> = lines.iter().collect();
    assert_eq!(distinct.len(), 100);
}

#[test]
fn the_sieve_in_a_custom_crawler_requests_the_target_of_three_redirects_once() {
    let (port, server) = serve(&[
        "HTTP/1.1 200 OK\r\nContent-Length: 45\r\nConnection: close\r\n\r\n<a href=/1></a><a href=/2></a><a href=/3></a>",
        "HTTP/1.1 302 Found\r\nLocation: /page\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: /page#a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: page\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ]);
    first_lines_of("embed_sieve", port, 9);
    let requests = server.join().unwrap();
    let expected = ["/", "/1", "/2", "/3", "/page"].map(|path| format!("GET {path} HTTP/1.1"));
    assert_eq!(requests, expected);
}

#[test]
fn the_frontier_with_a_custom_fetcher_requests_robots_txt_first() {
    let lines = first_lines("embed_frontier", 2);
    assert!(lines[0].contains("/robots.txt: Ok("), "{lines:?}");
    assert!(lines[1].contains("/: Ok("), "{lines:?}");
}

/// Answers one connection after the other, then ends.
fn serve(answers: &'static [&'static str]) -> (u16, std::thread::JoinHandle<Vec<String>>) {
    use std::io::{BufRead, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = std::io::BufReader::new(stream.try_clone().unwrap()).lines();
            requests.push(lines.next().unwrap().unwrap());
            lines.find(|line| line.as_ref().is_ok_and(String::is_empty));
            stream.write_all(answer.as_bytes()).unwrap();
        }
        requests
    });
    (port, server)
}

#[test]
fn the_frontier_with_a_custom_fetcher_obeys_a_robots_txt_that_broke_off_and_moved() {
    let (port, server) = serve(&[
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nUser-agent: *",
        "HTTP/1.1 301 Moved\r\nLocation: /rules.txt\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 31\r\nConnection: close\r\n\r\nUser-agent: my-bot\r\nDisallow: /\n",
    ]);
    let lines = first_lines_of("embed_frontier", port, 9);
    assert!(
        lines[0].contains("/robots.txt: Err(") && lines[0].contains("Incomplete"),
        "{lines:?}"
    );
    assert!(lines[1].contains("/robots.txt: Ok(301)"), "{lines:?}");
    assert!(lines[2].contains("/rules.txt: Ok(200)"), "{lines:?}");
    assert!(
        lines[3].starts_with("not fetched: ") && lines[3].contains("RobotsForbid"),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 4, "no page is requested: {lines:?}");
    let requests = server.join().unwrap();
    assert!(requests.iter().all(|line| line.contains(".txt ")), "{requests:?}");
}

#[test]
fn the_crawler_as_a_library_prints_pages() {
    let lines = first_lines("embed_crawler", 2);
    assert!(
        lines.iter().all(|line| line.starts_with("200 http://localhost:")),
        "{lines:?}"
    );
}

#[test]
fn a_crawl_that_is_embedded_says_where_to_watch_it() {
    let lines = first_lines("embed_watch", 1);
    let (address, token) = lines[0].split_once("/#token=").unwrap();
    assert!(
        address.starts_with("watch it at http://127.0.0.1:") && token.len() == 32,
        "{lines:?}"
    );
}

/// Returns the names in the first column of the table below a heading; a row may have several.
fn documented(file: &str, heading: &str) -> std::collections::BTreeSet<String> {
    let text = read(file);
    let section = text.split(heading).nth(1).unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| row.split(" | ").next().unwrap().split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

fn keys(object: &serde_json::Value) -> std::collections::BTreeSet<String> {
    object.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn every_field_of_every_output_is_documented() {
    let page = serde_json::to_value(crawler::PageRecord::default()).unwrap();
    assert_eq!(documented("docs/output.md", "### A page"), keys(&page));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (links, refused) = (folder.join("documented-links"), folder.join("documented-refused"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawler"));
    command
        .args(["demo", "-q", "--links"])
        .arg(&links)
        .arg("--refused")
        .arg(&refused);
    assert!(command.output().unwrap().status.success());
    for (file, heading) in [(links, "### A link"), (refused, "### A URL that was not fetched")] {
        let text = std::fs::read_to_string(file).unwrap();
        let line = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(documented("docs/output.md", heading), keys(&line), "{heading}");
    }
}

/// A row names its tests as "`file.rs`: one, another; ...".
#[test]
fn every_test_that_the_table_of_sources_names_exists() {
    let table = read("crates/sieve/SOURCES.md");
    let mut named = 0;
    for (file, rest) in table.lines().flat_map(|row| {
        let mut files = row.split('`').skip(1).step_by(2).zip(row.split('`').skip(2).step_by(2));
        std::iter::from_fn(move || files.next())
    }) {
        let Some(tests) = rest.strip_prefix(": ").filter(|_| file.ends_with(".rs")) else {
            continue;
        };
        let folders = ["crates/sieve/src", "crates/sieve", "crates"].map(|folder| root().join(folder).join(file));
        let found = folders.iter().find_map(|path| std::fs::read_to_string(path).ok());
        let text = found.unwrap_or_else(|| panic!("SOURCES.md names {file}, which is in none of {folders:?}"));
        let tests = tests.split([';', '|']).next().unwrap();
        for test in tests.split(',').map(str::trim) {
            assert!(text.contains(&format!("fn {test}(")), "{file} has no test {test}");
            named += 1;
        }
    }
    assert!(named > 50, "{named} tests");
}

/// Options of subcommands, and of other programs.
const OTHER_OPTIONS: &str = "--bind --collector --done --failed --features --json --maxmemory --maxmemory-policy --not-fetched --now --path --port \
    --profile --release --requirepass --save --serve --signal --storage --waiting --web";

/// Returns the options in a text, such as `--output`.
fn options_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| word.starts_with("--") && word.len() > 3)
}

#[test]
fn every_option_that_a_page_names_exists() {
    let reference = read("docs/options.md");
    let rows = reference.lines().filter(|line| line.starts_with('|'));
    let of_crawls = rows.flat_map(|row| options_in(row.split(" | ").next().unwrap()));
    let exist: std::collections::BTreeSet<_> = of_crawls.chain(OTHER_OPTIONS.split(' ')).collect();
    for page in
        "docs/output.md docs/numbers.md docs/promises.md docs/logs.md docs/state-json.md docs/durable-frontier.md docs/backup.md \
                 docs/many-machines.md docs/monitoring.md README.md CHANGELOG.md"
            .split(' ')
    {
        let text = read(page);
        let unknown: Vec<_> = options_in(&text).filter(|option| !exist.contains(option)).collect();
        assert!(unknown.is_empty(), "{page} names {unknown:?}");
    }
}

/// The most words that a page may have.
const LIMITS: [(&str, usize); 7] = [
    ("README.md", 900),
    ("ARCHITECTURE.md", 2500),
    ("CHANGELOG.md", 500),
    ("docs/durable-frontier.md", 2120),
    ("docs/many-machines.md", 1300),
    ("docs/monitoring.md", 490),
    ("benches/README.md", 2000),
];

/// The most words that all pages may have together.
const ALL_WORDS: usize = 26_000;

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Returns the words of each page in a folder and below, without what is built or hidden.
fn pages_below(folder: &Path, pages: &mut Vec<(PathBuf, usize)>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                pages_below(&path, pages);
            }
        } else if name.ends_with(".md") {
            pages.push((path.clone(), words(&std::fs::read_to_string(path).unwrap())));
        }
    }
}

#[test]
fn the_pages_are_short() {
    for (page, most) in LIMITS {
        let words = words(&read(page));
        assert!(words <= most, "{page} has {words} words, more than {most}");
    }
    let mut pages = Vec::new();
    pages_below(&root(), &mut pages);
    let all: usize = pages.iter().map(|(_, words)| words).sum();
    assert!(all <= ALL_WORDS, "{all} words in {pages:?}");
}
