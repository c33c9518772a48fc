//! The command line from a user's view: help, units, files, seeds, subcommands.

use std::time::{Duration, Instant};

use crate::program::{Printed, command, fails, folder, number, succeeds};
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
        ["--recrawl", "a", "--recrawl", "b"],
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
        ("--max-redirects", "256", "too large"),
        ("--set", "retry-jitter=256", "too large"),
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
    let folder = folder("words");
    let seeds = folder.file("seeds.txt", "# comment\n\nhttp://127.0.0.1:1/\nintranet/page\n");
    let messages = ["line 4 of", &seeds, "\"intranet/page\" is not a seed"];
    fails(&["--seeds", &seeds], 2, &messages);
    let config = folder.file("c.toml", "seed-urls = ['intranet']\n");
    fails(&["--config", &config], 2, &["\"intranet\" is not a seed"]);
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
