//! The command line from a user's view: help, units, files, seeds, subcommands.

use std::time::{Duration, Instant};

use crate::program::{Printed, command, crawler, fails, folder, has_failed, number, succeeds};
use crate::servers::{answer, path_in, server_of};

#[test]
fn help_is_80_columns_wide_without_a_terminal_and_never_wider_than_120() {
    for help in ["-h", "--help"] {
        let widest = |columns: Option<&str>| {
            let mut command = command(help);
            command.envs(columns.map(|columns| ("COLUMNS", columns)));
            let help = String::from_utf8(command.output().unwrap().stdout).unwrap();
            help.lines().map(|line| line.chars().count()).max().unwrap()
        };
        for (columns, expected) in [
            (None, 70..=80),
            (Some("0"), 70..=80),
            (Some("120"), 100..=120),
            (Some("300"), 100..=120),
        ] {
            let width = widest(columns);
            assert!(expected.contains(&width), "{help} in {columns:?} columns: {width}");
        }
    }
}

#[test]
fn the_short_help_shows_defaults_with_units_and_the_long_one_has_more() {
    let (short, long) = (succeeds(&["-h"]).stdout, succeeds(&["--help"]).stdout);
    assert!(
        short.contains("[default: 1M]") && short.contains("[default: 1s]"),
        "{short}"
    );
    assert!(!short.contains("--max-body"), "{short}");
    assert!(
        long.contains("--max-body <SIZE>") && long.contains("[default: 10MiB]"),
        "{long}"
    );
    let demo = succeeds(&["demo", "-h"]).stdout;
    assert!(
        demo.contains("[default: 0s]") && demo.contains("[default: site]"),
        "{demo}"
    );
}

#[test]
fn a_file_option_given_twice_is_an_error() {
    for twice in [
        ["--output", "a", "-o", "b"],
        ["--links", "a", "--links", "b"],
        ["--refused", "a", "--refused", "b"],
        ["--warc", "a.warc", "--warc", "b.warc"],
        ["--seeds", "a", "--seeds", "b"],
        ["--config", "a", "--config", "b"],
    ] {
        let arguments = [&["http://127.0.0.1:1/"][..], &twice].concat();
        fails(&*arguments, 2, &[twice[0], "cannot be used multiple times"]);
    }
    fails(
        &["demo", "-oa", "-ob"],
        2,
        &["--output", "cannot be used multiple times"],
    );
}

#[test]
fn a_file_on_the_command_line_replaces_the_one_of_the_configuration() {
    let folder = folder("files");
    let (of_config, given) = (folder.path("config.jsonl"), folder.path("given.jsonl"));
    let config = folder.file("c.toml", &format!("output = '{of_config}'\nmax-pages = 1\n"));
    succeeds(&format!("demo -q --config {config} -o {given}"));
    assert!(folder.join(given).exists() && !folder.join(&of_config).exists());
    succeeds(&format!("demo -q --config {config}"));
    assert!(folder.join(of_config).exists());
}

#[test]
fn values_have_units_on_the_command_line_and_in_the_configuration() {
    let folder = folder("units");
    let text = "max-time = '1h'\nmax-body = '64KiB'\ndelay = '0ms'\nmax-pages = '0.003k'\nquiet = 1\n";
    let config = folder.file("c.toml", text);
    let pages = |arguments: &str| number(&succeeds(arguments).stdout, "pages");
    assert_eq!(pages(&format!("demo --config {config}")), 3);
    let given = "--max-pages 0.004k --timeout 1m -j2 --capacity 64k";
    assert_eq!(pages(&format!("demo --config {config} {given}")), 4);
}

#[test]
fn an_invalid_value_is_refused_with_a_valid_example() {
    for (option, value, example) in [
        ("--delay", "5 parsecs", "500ms"),
        ("--max-pages", "many", "64k"),
        ("--max-pages", "1.5", "64k"),
        ("--max-body", "10 bodies", "64MiB"),
        ("--max-body", "0", "1 or more"),
        ("--max-depth", "5G", "too large"),
        ("--set", "max-redirects=256", "too large"),
    ] {
        fails(&[option, value, "http://127.0.0.1:1/"], 2, &[option, value, example]);
    }
}

#[test]
fn a_misspelt_option_or_subcommand_is_refused_with_a_similar_one() {
    fails(&["--max-dept", "1", "http://127.0.0.1:1/"], 2, &["--max-depth"]);
    fails(&["demo", "--capacty", "1"], 2, &["--capacity"]);
    fails(&["dmeo"], 2, &["\"dmeo\" is not a seed", "http://", "crawler demo"]);
    fails(
        &["completion", "bash"],
        2,
        &["\"completion\" is not a seed", "crawler completions"],
    );
    fails(
        &["-q", "man"],
        2,
        &["the subcommand man goes before all options", "http://man/"],
    );
}

#[test]
fn a_single_word_is_not_a_seed_at_any_position() {
    fails(
        &["example.com", "intranet"],
        2,
        &["\"intranet\" is not a seed", "http://intranet/", "localhost"],
    );
    // Each is named.
    let bad = [
        "\"intranet\" is not a seed",
        "\"printers\" is not a seed",
        "ftp://a.example/",
    ];
    fails(&["intranet", "example.com", "printers", "ftp://a.example/"], 2, &bad);
    let folder = folder("words");
    let seeds = folder.file("seeds.txt", "# comment\n\nhttp://127.0.0.1:1/\nintranet/page\n");
    let messages = ["line 4 of", &seeds, "\"intranet/page\" is not a seed"];
    fails(&["--seeds", &seeds], 2, &messages);
    let config = folder.file("c.toml", "seed-urls = ['intranet']\n");
    fails(&["--config", &config], 2, &["\"intranet\" is not a seed"]);
}

#[test]
fn a_file_of_seeds_may_have_comments_and_any_line_ends_and_names_every_bad_line() {
    let seed = server_of(|_| answer("200 OK", ""));
    let folder = folder("seed-files");
    let (file, path) = (
        |bytes: &[u8]| std::fs::write(folder.join("seeds.txt"), bytes).unwrap(),
        folder.path("seeds.txt"),
    );
    for text in [
        format!("{seed} # the front page\n\t# nothing\n{seed}a\t#x\n{seed}b#fragment\n"),
        format!("#\r{seed}\r{seed}a\r\r{seed}b"),
        format!("{seed}\r\n{seed}a#1\r\n  {seed}b  \r\n"),
        format!("\u{feff}#\n{seed}\n\r{seed}a # b # c\r{seed}b # http://127.0.0.1:1/"),
    ] {
        file(text.as_bytes());
        let summary = succeeds(&format!("-q --delay 0 --seeds {path}")).stdout;
        assert_eq!(number(&summary, "pages"), 3, "{text:?}: {summary}");
    }
    let utf_16 = |text: &str, big: bool| -> Vec<u8> {
        text.encode_utf16()
            .flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() })
            .collect()
    };
    for (bytes, what) in [
        (
            utf_16("\u{feff}http://127.0.0.1:1/\r\n", false),
            "in UTF-16: save the file as UTF-8",
        ),
        (utf_16("\u{feff}http://127.0.0.1:1/\n", true), "in UTF-16"),
        (utf_16("http://127.0.0.1:1/\n", false), "in UTF-16"),
        (
            b"\x1f\x8b\x08\0\0\0\0\0".to_vec(),
            "compressed: unpack the file with gunzip",
        ),
        (b"PK\x03\x04\0\0".to_vec(), "compressed"),
        (b"\x28\xb5\x2f\xfd\0".to_vec(), "compressed"),
        (b"%PDF-1.7\0\0".to_vec(), "no text"),
    ] {
        file(&bytes);
        fails(&format!("--seeds {path}"), 2, &[&path, what]);
    }
    file("intranet\n".repeat(30).as_bytes());
    let output = crawler(&format!("--seeds {path}"));
    has_failed(&output, 2, &["line 20 of", "and 10 more lines"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("line 21 of"));
    for pair in [
        "http://a/ http://b/",
        "https://a.example/,https://b.example/",
        "a.example\thttp://b/",
        "http://a/; http://b/",
    ] {
        file(format!("http://127.0.0.1:1/\n{pair}\n").as_bytes());
        fails(
            &format!("--seeds {path}"),
            2,
            &["line 2 of", "has two URLs: write one per line"],
        );
    }
    file(b"example.com\rintranet\rftp://a.example/ # no web\r# x\rhttp://a.example/\xe4\rhttp://\n");
    let of = |line: u8| format!("line {line} of {path}: ");
    let lines = [2, 3, 5, 6].map(of);
    let mut messages: Vec<&str> = lines.iter().map(String::as_str).collect();
    messages.extend([
        "\"intranet\" is not a seed",
        "ftp://a.example/",
        "is not UTF-8",
        "\"http://\"",
    ]);
    fails(&format!("--seeds {path}"), 2, &messages);
}

#[test]
fn what_is_probably_meant_is_in_the_message() {
    // The arguments, and what the message has.
    for case in "\
        -d -1 http://127.0.0.1:1/ | --max-depth | it must not be below 0 | 500
        --max-pages=-5 http://127.0.0.1:1/ | --max-pages | it must not be below 0
        --max-body=-1MiB http://127.0.0.1:1/ | --max-body | it must not be below 0 | 64MiB
        --delay -1s http://127.0.0.1:1/ | --delay | it must be 0 or more
        --timeout -500ms http://127.0.0.1:1/ | --timeout | it must be
        --max-pages -5k http://127.0.0.1:1/ | --max-pages | it must not be below 0
        --capacity -1M http://127.0.0.1:1/ | --capacity | it must not be below 0
        -d -1k http://127.0.0.1:1/ | --max-depth | it must not be below 0
        resume crawl --delay -1s | --delay | it must be 0 or more
        --keep-fresh http://127.0.0.1:1/ | --state <DIR>
        --keep-fresh --refresh 1h --state crawl http://127.0.0.1:1/ | --refresh | --keep-fresh
        --set revisits-per-second=0 http://127.0.0.1:1/ | revisits-per-second | write a number above zero
        --set revisit-share=2 http://127.0.0.1:1/ | revisit-share | write a fraction
        --set min-age=0 http://127.0.0.1:1/ | min-age
        --include * http://127.0.0.1:1/ | write .
        --exclude ** http://127.0.0.1:1/ | write .
        --exclude ?.pdf http://127.0.0.1:1/ | write .\\.pdf$
        --resume crawl http://127.0.0.1:1/ | there is a subcommand: crawler resume <DIR>
        --status crawl | there is a subcommand: crawler status
        --continue crawl | there is a subcommand: crawler resume <DIR>
        resume --outptu x crawl | the directory goes before all options | crawler resume DIR
        resume crawl --outptu x | --output | Usage: crawler resume <DIR>
        --exclude *.pdf http://127.0.0.1:1/ | write \\.pdf$
        --output-include *.pdf http://127.0.0.1:1/ | --output-include | write \\.pdf$
        --output-include *.{jpg,png} http://127.0.0.1:1/ | write \\.(jpg|png)$
        --include */private/* http://127.0.0.1:1/ | write /private/
        --exclude *.{jpg,png} http://127.0.0.1:1/ | write \\.(jpg|png)$"
        .lines()
    {
        let parts: Vec<&str> = case.trim_start().split(" | ").collect();
        fails(parts[0], 2, &parts[1..]);
    }
}

#[test]
fn only_lines_of_json_are_pages_of_an_earlier_crawl() {
    let folder = folder("json-lines");
    let page = "{\"url\":\"http://127.0.0.1:1/\",\"status\":200}";
    for (text, hint) in [
        (format!("[{page}]"), "line 1 of"),
        (
            format!("[\n{page},\n{page}\n]\n"),
            "this is a JSON array: unpack it with jq",
        ),
        (format!("{page}\n[{page}]"), "line 2 of"),
        (
            "url,status\r\nhttp://127.0.0.1:1/,200\r\n".to_owned(),
            "in CSV: give lines of JSON",
        ),
        ("\u{feff}url,status\r\n".to_owned(), "in CSV: give lines of JSON"),
        (
            "{\n  \"url\": \"http://127.0.0.1:1/\"\n}".to_owned(),
            "give lines of JSON as --output",
        ),
        (format!("{page}\n{{\"from\":\"x\"}}\n"), "missing field `url`"),
        (format!("{page}\n{{\"url\":\"mailto:x\"}}\n"), "line 2 of"),
        (format!("{page}\n"), "as in crawler http://127.0.0.1:1 --seeds"),
    ] {
        let path = folder.file("pages", &text);
        fails(&format!("--seeds {path}"), 2, &[&path, hint]);
    }
}

#[test]
fn completions_and_the_manual_page_go_to_standard_output() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = succeeds(&["completions", shell]).stdout;
        assert!(
            script.contains("max-depth") && script.contains("demo"),
            "{shell}: {script}"
        );
    }
    fails(&["completions", "bsh"], 2, &["bash"]);
    let page = succeeds(&["man"]).stdout;
    assert!(
        page.contains(".TH crawler 1") && page.contains("\\-\\-max\\-depth"),
        "{page}"
    );
    assert!(
        page.contains(".SH POLITENESS") && page.contains(".SH \"EXIT STATUS\""),
        "{page}"
    );
    assert!(!page.contains("demo(1)"), "there is no such page");
}

#[test]
fn a_reader_that_closes_the_pipe_early_is_not_an_error() {
    let mut process = command("completions bash").spawn().unwrap();
    drop(process.stdout.take());
    let output = process.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
}

#[test]
fn with_a_maximum_crawl_delay_of_zero_only_the_delay_option_counts() {
    let seed = server_of(|head| match path_in(head) {
        "/robots.txt" => answer("200 OK", "User-agent: *\nCrawl-delay: 30\n"),
        _ => answer("200 OK", "<a href=/2>2</a>"),
    });
    let begun = Instant::now();
    let arguments = format!("-q --delay 1ms --set max-crawl-delay=0 --max-time 20s {seed}");
    let Printed {
        stdout: summary,
        stderr: log,
    } = succeeds(&arguments);
    assert!(begun.elapsed() < Duration::from_secs(10), "{summary}{log}");
    assert_eq!(number(&summary, "pages"), 2, "{summary}{log}");
}
