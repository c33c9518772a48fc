//! The command from a user's view: messages, exit codes, files.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::program::{
    Printed, crawler, fails, folder, has_failed, lines, lines_of, number, one_line, succeeds, texts_of,
};
use crate::servers::{answer, closed_port, path_in, server_of, site_of, tree};
use serde_json::Value;

#[test]
fn bad_arguments_exit_with_code_2_and_the_message_says_what_to_do() {
    for (arguments, message) in [
        (&["--capacity", "0"][..], "capacity"),
        (&["not a url"], "not a url"),
        (&["http://"], "http://"),
        (&["ftp://example.com/"], "ftp://example.com/"),
        (&["--include", "("], "("),
        (&["--delay", "-1"], "0 or more"),
        (&["--false-positive-rate", "-0.1"], "fraction above 0"),
        (&["--seeds", "/nonexistent/seeds.txt"], "/nonexistent/seeds.txt"),
    ] {
        fails(&*[arguments, &["http://127.0.0.1:1/"]].concat(), 2, &[message]);
    }
    fails("", 2, &["SEED_URL", "such as: crawler example.com"]);
}

#[test]
fn a_crawl_that_needs_a_folder_exits_with_code_2_and_a_reason() {
    let reason = "/nonexistent/pages.jsonl cannot be written: the folder /nonexistent does not exist: create it";
    fails("--output /nonexistent/pages.jsonl http://127.0.0.1:1/", 2, &[reason]);
}

#[test]
fn a_seen_set_grows_by_default_and_warns_at_each_level() {
    // The demo fails if it does not find every page.
    let stderr = succeeds("demo --capacity 100 --log-format json").stderr;
    let mut records = lines(&stderr);
    records.retain(|line| line["target"] == "sieve::saturation" && line["level"] == "WARN");
    let levels: Vec<_> = records.iter().map(|line| &line["saturation_level"]).collect();
    assert_eq!(levels, ["full", "1.5x", "2x", "3x"], "100 of some 350 URLs: {stderr}");
    for record in &records {
        let message = record["message"].as_str().unwrap();
        assert!(message.contains("for a capacity of 100, grown to hold "), "{message}");
        assert!(message.contains("start next time with a capacity of "), "{message}");
        assert_eq!(record["capacity"], 100);
        assert!(record["estimated"].as_f64().unwrap() > 100.0);
    }
    let is_complete = stderr.contains("\"complete\":true") && !stderr.contains("crawler::loss");
    assert!(is_complete, "{stderr}");
}

#[test]
fn a_crawl_whose_seen_set_dropped_urls_warns_at_its_end_and_is_incomplete() {
    let arguments = "demo -q --capacity 30 --on-saturation warn --set hash-seed=1";
    let Printed {
        stdout: summary,
        stderr: log,
    } = succeeds(arguments);
    let last = log.lines().find(|line| line.contains("crawler::loss")).unwrap();
    let of_command = "the crawl is incomplete: seen-set: at least ";
    assert!(last.contains("WARN") && last.contains(of_command), "{log}");
    let one_line = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    let remedy = "what only they link to is missing (set --capacity ";
    assert!(last.contains(remedy) && one_line.contains(remedy), "{summary}{log}");
    assert!(summary.contains("INCOMPLETE        seen-set: at least "), "{summary}");
}

#[test]
fn a_refusing_seen_set_ends_cleanly_and_a_line_counts_the_refused_links() {
    let Printed {
        stdout: summary,
        stderr,
    } = succeeds("demo -q --capacity 100 --on-saturation refuse");
    assert!((90..=110).contains(&number(&summary, "pages")), "{summary}");
    assert!(
        summary.contains("saturated: ") && !summary.contains(" none\n"),
        "{summary}"
    );
    // A chance loss of the filter may have a line of its own.
    for messages in [
        &["New keys are refused"][..],
        &[
            "the crawl is incomplete: ",
            "seen-set full: ",
            " links refused (raise --capacity)",
        ],
        &["WARN  crawler::demo: not checked, because "],
    ] {
        let has_all = |line: &str| messages.iter().all(|message| line.contains(message));
        assert!(stderr.lines().any(has_all), "{messages:?}: {stderr}");
    }
}

#[test]
fn every_hash_finds_every_page_and_no_log_shows_the_hash_seed() {
    for hash in ["murmur3", "xxh3", "hardened"] {
        let arguments = format!("demo -vv --set hash={hash} --set=hash-seed=8675309424242");
        let Printed { stdout, stderr } = succeeds(&arguments);
        assert!(!stdout.contains("8675309424242") && !stderr.contains("8675309424242"));
    }
}

#[test]
fn a_demo_crawl_finds_every_page_and_a_limited_one_says_that_it_was_not_checked() {
    let folder = folder("demo");
    let file = folder.path("pages.jsonl");
    let Printed { stdout, stderr } = succeeds(&format!("demo --output {file}"));
    let pages = number(&stdout, "pages");
    let reachable = format!("with {pages} reachable pages");
    assert!(stderr.contains(&reachable), "{stdout}{stderr}");
    let ok = lines_of(&file).into_iter().filter(|page| page["status"] == 200).count();
    assert_eq!(ok as u64, pages);

    let Printed { stdout, stderr } = succeeds("demo --max-pages 5 --output -");
    let message = "not checked, because the options or a stop limit the crawl: it fetched ";
    assert!(stderr.contains(message), "{stderr}");
    let pages = lines(&stdout);
    assert_eq!(pages.len(), 5, "--max-pages counts answers that are no redirects");
    assert_eq!(pages[0]["depth"], 0);
    assert!(pages[0]["links_new"].as_u64().unwrap() > 0);
}

#[test]
fn the_command_line_overrides_the_configuration_file() {
    let folder = folder("config");
    let config = folder.file("crawl.toml", "max-pages = 3\nquiet = 1\n");
    let pages = |arguments: &str| number(&succeeds(arguments).stdout, "pages");
    assert_eq!(pages(&format!("demo --config {config}")), 3);
    assert_eq!(pages(&format!("demo --config={config} --max-pages 5")), 5);
    // Also an option that contradicts it.
    folder.file("crawl.toml", "verbose = 1\n");
    succeeds(&format!("demo --config {config} -q --max-pages 1"));
    for (command, text, messages) in [
        (
            "",
            "seed-urls = ['http://127.0.0.1:1/']\nbasic-auth = 'secret'\n",
            &["USER:PASSWORD"][..],
        ),
        (
            "",
            "seed-urls = ['--ignore-robots']\n",
            &["\"--ignore-robots\" is not a URL"],
        ),
        (
            "demo",
            "max-pages = 3\nmax-pagse = 4\n",
            &["line 2", "a similar one is \"max-pages\""],
        ),
        (
            "demo",
            "max-pages = 'many'\n",
            &[&config, "line 1", "the value of max-pages"],
        ),
    ] {
        folder.file("crawl.toml", text);
        fails(&format!("{command} --config {config}"), 2, messages);
    }
    fails("demo --config no/such/file.toml", 2, &["no/such/file.toml"]);
}

#[test]
fn a_command_that_cannot_start_keeps_the_previous_results() {
    let folder = folder("results");
    let text = "{\"url\":\"http://a.example/\"}\n";
    let pages = folder.file("pages.jsonl", text);
    let archive = folder.file("torn.warc", "my thesis");
    let arguments = format!("--output {pages} --warc {archive} http://127.0.0.1:1/");
    fails(&arguments, 2, &["torn.warc"]);
    assert_eq!(
        fs::read_to_string(&pages).unwrap(),
        text,
        "nothing was started, and yet it is gone"
    );
    assert_eq!(fs::read_to_string(archive).unwrap(), "my thesis");
    let new = folder.path("new.warc.gz");
    fails(
        &format!("--warc {new} --save {pages} http://127.0.0.1:1/"),
        2,
        &["pages.jsonl"],
    );
    assert!(!fs::exists(new).unwrap(), "the next start refuses it");
}

#[cfg(unix)]
#[test]
fn a_file_that_another_crawl_writes_to_is_refused_and_stays_as_it_is() {
    let folder = folder("two-writers");
    let pages = folder.file("pages.jsonl", "a line of the other\n");
    let archive = folder.path("pages.warc");
    let state = format!("--state {}", folder.path("state"));
    let refused = |more: &str, busy: &str| {
        let arguments = format!("http://127.0.0.1:1/ --output {pages} {more}");
        fails(&arguments, 1, &[busy, "another crawl writes to this file"]);
        assert_eq!(fs::read_to_string(&pages).unwrap(), "a line of the other\n");
    };
    let other = fs::OpenOptions::new().append(true).open(&pages).unwrap();
    other.lock().unwrap();
    for more in ["", &format!("--warc {archive}")] {
        refused(more, &pages);
    }
    drop(other);
    // Nor is anything emptied if it is the links of another crawl.
    let links = folder.file("links.jsonl", "");
    let other = fs::OpenOptions::new().append(true).open(&links).unwrap();
    other.lock().unwrap();
    refused(&format!("--links {links}"), &links);
    fails(
        &format!("http://127.0.0.1:1/ --links {links} {state}"),
        1,
        &[&*links, "another crawl writes to this file"],
    );
    succeeds(&format!("demo --output {pages}"));
    assert!(lines_of(pages).len() > 1);
}

#[test]
fn a_subcommand_goes_first_and_a_file_of_seeds_may_have_a_byte_order_mark() {
    fails("-q demo", 2, &["the subcommand demo goes before all options"]);
    let folder = folder("seeds");
    let seeds = folder.file("seeds.txt", "\u{feff}http://127.0.0.1:1/\n");
    fails(
        &format!("--seeds {seeds} --set max-first-downtime=0.1"),
        1,
        &["nothing was fetched"],
    );
}

/// Starts a server of one page with two links to another port. Returns its URL.
fn page_that_links_to(other: u16) -> String {
    let links = [1, 2]
        .map(|page| format!("<a href=http://127.0.0.1:{other}/{page}>x</a>"))
        .concat();
    server_of(move |_| answer("200 OK", &links))
}

#[test]
fn seeds_that_are_not_trusted_open_no_private_address() {
    let seed = page_that_links_to(closed_port());
    let crawl = format!("-q --ignore-robots --max-pages 1 --fail-on-incomplete {seed}");
    succeeds(&format!("{crawl} --delay 0 -d 0"));
    let untrusted = format!("{crawl} --untrusted-seeds");
    fails(&untrusted, 1, &["nothing was fetched", "address is not public"]);
    for more in ["--header A:b", "--basic-auth a:b", "--allow-private-addresses"] {
        let option = more.split(' ').next().unwrap();
        fails(&format!("{untrusted} {more}"), 2, &["--untrusted-seeds", option]);
    }
}

#[test]
fn pages_of_an_earlier_crawl_open_no_private_address_and_get_no_credentials() {
    let [heads, of_other] = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
    let site = |heads: &Arc<Mutex<Vec<String>>>| {
        let heads = Arc::clone(heads);
        server_of(move |head| {
            heads.lock().unwrap().push(head.to_lowercase());
            answer("200 OK", "")
        })
    };
    let (seed, other) = (site(&heads), site(&of_other));
    let line = format!("{{\"url\":\"{other}a\",\"depth\":0}}\n{{\"url\":\"{seed}b\",\"depth\":1}}\n");
    let folder = folder("untrusted-links");
    let file = folder.file("pages", &line);
    let crawl = format!(
        "-q --delay 0 --ignore-robots --scope any --header X-Key:secret --set max-first-downtime=0.1 {seed} --seeds {file}"
    );
    let closed = succeeds(&crawl);
    assert_eq!(number(&closed.stdout, "pages "), 2, "{}", closed.stdout);
    assert!(of_other.lock().unwrap().is_empty());
    succeeds(&format!("{crawl} --allow-private-addresses"));
    let of_other = of_other.lock().unwrap();
    assert!(of_other.len() == 1 && !of_other[0].contains("secret"), "{of_other:?}");
    assert!(heads.lock().unwrap().iter().all(|head| head.contains("secret")));
}

#[test]
fn an_incomplete_crawl_fails_with_fail_on_incomplete() {
    let seed = page_that_links_to(closed_port());
    let quick = format!("-q --set max-first-downtime=0.2 --delay 0 --scope any --allow-private-addresses {seed}");
    let Printed {
        stdout: summary,
        stderr: log,
    } = succeeds(&quick);
    assert!(summary.contains("INCOMPLETE"), "{summary}{log}");
    assert_eq!(number(&summary, "pages"), 1, "{summary}{log}");
    assert!(summary.contains("given up: 2 pages "), "{summary}{log}");
    fails(
        &format!("--fail-on-incomplete {quick}"),
        3,
        &["the crawl is incomplete: "],
    );
    // Every reachable page was fetched.
    succeeds(&format!("--fail-on-incomplete --delay 0 --exclude /[12]$ {seed}"));
}

#[test]
fn the_first_line_names_the_cause_of_a_refused_port_and_the_crawl_ends_soon() {
    let seed = format!("http://127.0.0.1:{}/", closed_port());
    let begun = Instant::now();
    let folder = folder("refused-port");
    let archive = folder.path("a.warc");
    let output = crawler(&format!(
        "--set max-first-downtime=1 --log-format json --warc {archive} {seed}"
    ));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    let is_warning = |line: &&str| line.contains("WARN");
    let first = log.lines().find(is_warning).unwrap_or_else(|| panic!("{log}"));
    assert!(first.contains(seed.trim_end_matches('/')), "{log}");
    let last = log.lines().last().unwrap();
    assert!(last.contains("nothing was fetched"), "{log}");
    assert!(fs::read_to_string(archive).unwrap().contains("warcinfo"));
    let names_cause = |line: &str| line.to_lowercase().contains("connection refused");
    assert!(names_cause(first) && names_cause(last), "{log}");
    assert!(!log.contains("every seed was refused"), "{log}");
}

/// Nothing was fetched, so nothing is complete, in whatever way the seed failed.
#[test]
fn a_crawl_without_a_page_exits_with_code_1_and_the_status_and_is_not_called_complete() {
    let round = |more: &str| answer(&format!("302 Found\r\nLocation: /{more}"), "");
    let forbidden = |path: &str| (path == "/robots.txt").then(|| "User-agent: *\nDisallow: /".to_owned());
    let missing = server_of(|_| answer("404 Not Found", ""));
    for (why, seed) in [
        ("the seed answered 404", missing.clone()),
        ("all answers have a status of 404", format!("{missing} {missing}other")),
        ("the seed answered 403", server_of(|_| answer("403 Forbidden", ""))),
        ("forbidden by robots.txt", site_of(forbidden)),
        ("redirect loop", server_of(move |_| round(""))),
        (
            "--cookies may help",
            server_of(move |_| round("\r\nSet-Cookie: wall=1")),
        ),
    ] {
        let text = crawler(&format!("-q --delay 0 {seed}"));
        has_failed(&text, 1, &[]);
        let last = String::from_utf8_lossy(&text.stderr).lines().last().unwrap().to_owned();
        assert!(last.contains("nothing was fetched: ") && last.contains(why), "{last}");
        let summary = String::from_utf8(text.stdout).unwrap();
        assert!(!summary.contains("complete          yes"), "{summary}");
        assert!(summary.contains("INCOMPLETE        nothing was fetched: "), "{summary}");
        let json = crawler(&format!("--log-format json --delay 0 {seed}"));
        let records = lines(str::from_utf8(&json.stderr).unwrap());
        let is_summary = |line: &&Value| line["target"] == "crawler::summary";
        let summary = records.iter().find(is_summary).unwrap();
        assert_eq!(summary["complete"], false, "{summary}");
        let missing = summary["missing"][0].as_str().unwrap();
        assert!(missing.starts_with("nothing was fetched"), "{summary}");
    }
}

#[test]
fn a_crawl_of_one_page_says_why_it_may_have_ended_there() {
    // The seed is no link. A link that says nofollow is not counted among those that were found.
    for (page, links, hint) in [
        ("<p>no link", 0, Some("those that JavaScript makes are not found")),
        ("<script>document.write('<a href=/a>')</script>", 0, Some("JavaScript")),
        ("<a href=http://other.example/>x</a>", 1, Some("--scope any all")),
        ("<a href=/a rel=nofollow>x</a>", 0, Some("nofollow")),
        (
            "<a href=mailto:a@b.example>x</a><a href=tel:1>x</a>",
            0,
            Some("such as mailto:"),
        ),
        (
            "<a href=mailto:a@b.example>x</a><a href=/>x</a>",
            1,
            Some("links only to itself"),
        ),
        ("%PDF-1.7", 0, Some("the page is not HTML but application/pdf")),
        ("", 0, Some("the page is empty")),
        ("<a href=/a>x</a>", 2, None),
        (
            "<a href=/>x</a><a href=#top>x</a>",
            1,
            Some("the page links only to itself"),
        ),
    ] {
        let seed = server_of(move |head| match (path_in(head), page) {
            ("/", "%PDF-1.7") => answer("200 OK", page).replace("text/html", "application/pdf"),
            ("/" | "/a", _) => answer("200 OK", page),
            _ => answer("404 Not Found", ""),
        });
        let summary = succeeds(&format!("-q --delay 0 {seed}")).stdout;
        assert_eq!(summary.contains("\n  hint "), hint.is_some(), "{summary}");
        assert!(one_line(&summary).contains(hint.unwrap_or_default()), "{summary}");
        assert_eq!(number(&summary, "links  "), links, "{summary}");
    }
    // One that says --scope any where --scope site would not help.
    let seed = site_of(|path| (path == "/").then(|| "<a href=http://other.example/>x</a>".to_owned()));
    let summary = succeeds(&format!("-q --delay 0 --scope site {seed}")).stdout;
    assert!(summary.contains("--scope any"), "{summary}");
}

/// What is 0 has no row, and a size is written alike everywhere.
#[test]
fn rows_that_say_nothing_are_left_out() {
    let seed = tree(20);
    let folder = folder("rows");
    let state = folder.path("state");
    let summary = succeeds(&format!("-q --delay 0 --state {state} {seed}")).stdout;
    let status = succeeds(&["status", &state]).stdout;
    for text in [&summary, &status] {
        let nothings = "redirects,0 exact, 0.0 MiB, 0 B,0 of them,0 hosts on disk,failed,left in queue,away,LOST";
        for nothing in nothings.split(',') {
            assert!(!text.contains(nothing), "{nothing}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    let row = |text: &str, name: &str| text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
    for name in ["  bytes ", "  seen-set memory ", "  links ", "  hosts "] {
        assert_eq!(row(&summary, name), row(&status, name), "{name}");
        assert!(row(&summary, name).is_some(), "{name}: {summary}");
    }
}

#[test]
fn a_broken_answer_to_the_first_request_advises_what_may_help() {
    let quick = "-q --set max-first-downtime=0.2 --delay 0";
    let many = "X: 1\r\n".repeat(400);
    for (garbage, advice) in [
        ("\u{15}\u{3}\u{1}\0\u{2}\u{2}\n".to_owned(), "check scheme and port"),
        ("SSH-2.0-OpenSSH_9.6\r\n".to_owned(), "check scheme and port"),
        (String::new(), "check scheme and port"),
        (
            format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
            "--set max-headers or max-header-bytes",
        ),
    ] {
        let seed = server_of(move |_| garbage.clone());
        let output = crawler(&format!("{quick} {seed}"));
        has_failed(&output, 1, &["nothing was fetched: ", advice]);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains("downtime") && !text.contains("timeout"), "{text}");
    }
}

#[test]
fn a_dead_seed_has_a_remedy_for_its_cause_and_a_dead_second_seed_is_named() {
    let quick = "--set max-first-downtime=0.2 --delay 0";
    let dead = format!("http://127.0.0.1:{}", closed_port());
    let remedy = "is it running?";
    let messages = ["is away: ", remedy, "Ctrl-C stops", "nothing was fetched: "];
    fails(&format!("{quick} {dead}/"), 1, &messages);
    let name = format!("{quick} -q http://no-such-name.invalid/");
    fails(&name, 1, &["; check the name of the host"]);
    let alive = page_that_links_to(1);
    let tls = format!("{quick} -q {}", alive.replace("http:", "https:"));
    fails(&tls, 1, &["try http:// instead of https://"]);
    let summary = succeeds(&format!("{quick} -q {alive} {dead}/")).stdout;
    assert!(summary.contains(&format!("  given up          {dead}\n")), "{summary}");
    assert!(summary.contains(&format!("({remedy}")), "{summary}");
    assert!(summary.lines().all(|line| line.chars().count() <= 80), "{summary}");
}

#[test]
fn robots_txt_binds_a_crawler_by_its_name_wherever_the_user_agent_has_it() {
    let rules = "User-agent: mybot\nDisallow: /secret\n\nUser-agent: *\nDisallow: /open\n";
    let seed = site_of(move |path| match path {
        "/robots.txt" => Some(rules.to_owned()),
        "/" => Some("<a href=/secret>s</a> <a href=/open>o</a>".to_owned()),
        _ => Some("page".to_owned()),
    });
    // The user agent, an option, and the name.
    for case in "\
        mybot/1.0 (+https://a.example/) | --max-depth=5 | mybot
        Mozilla/5.0 (compatible; mybot/1.0; +https://a.example/) | --max-depth=5 | mybot
        Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; MyBot/2; +https://a.example/) Chrome/99.0 | -v | MyBot
        Mozilla/5.0 (X11; Linux x86_64) Chrome/99.0 Safari/537.36 (mybot; https://a.example/) | -v | mybot
        Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0 | --set=robots-name=mybot | mybot
        Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0 | --max-depth=5 | *
        1bot | --max-depth=5 | *"
        .lines()
    {
        let [agent, option, name] = case.trim_start().split(" | ").collect::<Vec<_>>().try_into().unwrap();
        let folder = folder("robots-name");
        let refused = folder.path("refused.jsonl");
        let stderr = succeeds(&["-U", agent, option, "--delay=0", "--refused", &refused, &seed]).stderr;
        let forbidden = if name == "*" { "open" } else { "secret" };
        assert_eq!(texts_of(&refused, "url"), [format!("{seed}{forbidden}")], "{agent}");
        assert!(stderr.contains(&format!("robots.txt        read as {name}\n")), "{stderr}");
        assert_eq!(stderr.contains("--set robots-name="), name == "*", "{stderr}");
        let said = format!("robots.txt is read as {name}\n");
        assert_eq!(stderr.contains(&said), option == "-v", "{stderr}");
    }
}
