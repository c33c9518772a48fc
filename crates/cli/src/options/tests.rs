//! Tests of the whole help, and of `docs/options.md`, which is generated from it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::Arg;

use super::command;
use super::command_line::try_parse;
use super::given;
use super::table::ALL;
use crawler::{CrawlOptions, HttpOptions};

const INTRODUCTION: &str = r#"# Options

This file is generated from the command, and a test compares the two. To write it again:

```sh
UPDATE_DOCS=1 cargo test -p crawl-cli --bin crawler options_md
```

`crawler -h` lists the common options, `crawler --help` explains all of them. Names without dashes are settings: limits, waits and rules that few
crawls need, given as `--set max-hosts=100k`. A `--config` file has all names without dashes, with or without a table for each heading:

```toml
[politeness]
delay = "500ms"
[limits]
max-hosts = "100k"

[[order]]                 # what comes first: the first rule that matches counts
match = "/news/"
class = 0                 # up to 7, which comes last; 3 for all others
[hosts."*.example.org"]   # what its subdomains are granted; with the name alone, one host
delay = "10s"
per-host = 2
[hosts."shop.example.org"]
closed = true             # nothing is fetched, and what waits is dropped
```

Of a host, and of all that are due, the best class has its turn; one turn in eight is for the class that was served longest ago.
A host may have `delay`, `max-crawl-delay`, `per-host`, `max-pages`, `class`, `closed` and `closed-until`. Of each, the most specific table that has it counts.

Counts can have a unit (`500`, `64k`, `10M`), and so can sizes (`512KiB`, `64MiB`, `10MB`) and durations (`500ms`, `30s`, `5m`, `1h`, `2d`).
A bare number is bytes or seconds. Where no default is given, the option is off or has no limit, or the text says the default.
`crawler demo` takes the same options, except those about seeds, earlier crawls, state directories and other processes. Its default for `--delay` is `0s`, and for `--scope` it is `site`.
"#;

/// The headings, in the order of the document.
const HEADINGS: [&str; 14] = [
    "Input",
    "Output",
    "Scope",
    "Limits",
    "Politeness",
    "Requests",
    "Retries",
    "Freshness",
    "Traps",
    "Seen-set",
    "Durability",
    "Cluster",
    "Logs",
    "Help",
];

fn row(argument: &Arg) -> String {
    let takes_value = argument.get_action().takes_values();
    let value = argument.get_value_names().filter(|_| takes_value);
    let value = value.map_or_else(String::new, |names| format!(" <{}>", names[0]));
    let long = argument.get_long().unwrap();
    let short = argument.get_short().map(|short| format!(", `-{short}`"));
    let aliases = argument.get_visible_aliases().unwrap_or_default();
    let aliases = aliases.iter().map(|alias| format!(", `--{alias}`"));
    let others: String = short.into_iter().chain(aliases).collect();
    let defaults: Vec<_> = argument
        .get_default_values()
        .iter()
        .map(|text| format!("`{}`", text.display()))
        .collect();
    let default = if takes_value { defaults.concat() } else { String::new() };
    let help = argument.get_help().unwrap().to_string();
    let help = help.replace('|', "\\|").replace('*', "\\*").replace('<', "\\<");
    let choices: Vec<_> = argument
        .get_possible_values()
        .iter()
        .map(|choice| format!("`{}`", choice.get_name()))
        .collect();
    let choices = if takes_value && !choices.is_empty() {
        format!(": {}", choices.join(", "))
    } else {
        String::new()
    };
    format!("| `--{long}{value}`{others} | {default} | {help}{choices} |")
}

fn reference() -> String {
    let mut command = command();
    command.build();
    let mut text = INTRODUCTION.to_owned();
    let mut rows = 0;
    for heading in HEADINGS {
        let _ = writeln!(text, "\n## {heading}\n\n| name | default | meaning |\n|---|---|---|");
        let is_below = |argument: &&Arg| argument.get_help_heading() == Some(heading) && !argument.is_positional();
        for argument in command.get_arguments().filter(is_below) {
            let _ = writeln!(text, "{}", row(argument));
            rows += 1;
        }
        let settings = ALL.iter().filter(|setting| !setting.is_option());
        for setting in settings.filter(|setting| setting.group == heading) {
            let default = match setting.default_value() {
                value if value.is_empty() => value,
                value => format!("`{value}`"),
            };
            let _ = writeln!(text, "| `{}` | {default} | {} |", setting.name(), setting.summary());
            rows += 1;
        }
    }
    let options = command.get_arguments().filter(|argument| !argument.is_positional());
    assert_eq!(
        rows,
        options.count() + given::names().count(),
        "each is below a heading"
    );
    text
}

#[test]
fn options_md_matches_the_options_of_the_command() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/options.md");
    let expected = reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differing = expected.lines().zip(found.lines()).find(|(one, other)| one != other);
    assert!(
        expected == found,
        "docs/options.md is out of date: {differing:?}; run UPDATE_DOCS=1 cargo test -p crawl-cli --bin crawler options_md"
    );
}

/// The short and the long help of the command and its subcommands.
fn helps(width: usize) -> Vec<(String, String)> {
    let mut command = command().term_width(width);
    command.build();
    let mut helps = Vec::new();
    for command in std::iter::once(&mut command.clone()).chain(command.get_subcommands_mut()) {
        let name = command.get_name().to_owned();
        helps.push((format!("{name} -h"), command.render_help().to_string()));
        helps.push((format!("{name} --help"), command.render_long_help().to_string()));
    }
    helps
}

#[test]
fn help_is_never_wider_than_the_terminal() {
    for width in [80, 120] {
        for (name, text) in helps(width) {
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{name} at {width} columns: {line}");
            }
        }
    }
}

#[test]
fn no_word_of_the_help_is_split_between_lines() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let unbroken = helps(usize::from(u16::MAX));
    for width in [80, 120] {
        for ((name, text), (_, one_line_each)) in helps(width).iter().zip(&unbroken) {
            assert_eq!(words(text), words(one_line_each), "{name} at {width} columns");
        }
    }
}

#[test]
fn the_common_options_are_listed_outputs_and_limits_first() {
    let help = command().render_help().to_string();
    let headings = help
        .lines()
        .filter(|line| !line.starts_with(' ') && line.ends_with(':'));
    let expected =
        "Commands: Arguments: Input: Output: Scope: Limits: Politeness: Requests: Seen-set: Logs: Durability: Help:";
    assert_eq!(headings.collect::<Vec<_>>().join(" "), expected);
    let options = help.lines().filter(|line| line.trim_start().starts_with('-')).count();
    assert!((20..=30).contains(&options), "{options} options in -h:\n{help}");
    let long = command().render_long_help().to_string();
    for argument in command().get_arguments().filter_map(Arg::get_long) {
        assert!(long.contains(&format!("--{argument}")), "--help lacks --{argument}");
    }
}

#[test]
fn every_option_has_a_heading_and_a_short_first_sentence() {
    let mut command = command();
    command.build();
    for argument in command.get_arguments() {
        let id = argument.get_id();
        assert!(
            argument.is_positional() || argument.get_help_heading().is_some(),
            "{id} has no heading"
        );
        let help = argument.get_help().unwrap().to_string();
        assert!(help.chars().count() <= 80, "{id}: {help}");
        assert!(
            help.starts_with(char::is_uppercase) && !help.ends_with('.'),
            "{id}: {help}"
        );
    }
}

#[test]
fn the_demo_takes_every_option_of_a_crawl() {
    let command = command();
    let demo = command.find_subcommand("demo").unwrap();
    let of_sites =
        "seeds refresh keep-fresh state sync-interval memory cluster partition accept-loss version".split(' ');
    for option in command.get_arguments().filter_map(Arg::get_long) {
        let has_it = demo.get_arguments().any(|argument| argument.get_long() == Some(option));
        assert!(
            has_it != of_sites.clone().any(|of_sites| of_sites == option),
            "{option}"
        );
    }
}

#[test]
fn the_arguments_are_consistent() {
    command().debug_assert();
}

#[test]
fn the_defaults_are_those_of_the_library() {
    let defaults = CrawlOptions::default();
    let cli = try_parse(["crawler", "example.com"]).unwrap();
    let (options, http) = cli.site.to_library(0).unwrap();
    assert_eq!(format!("{http:?}"), format!("{:?}", HttpOptions::default()));
    assert_eq!(cli.site.sync_interval, defaults.frontier.sync_interval);
    assert_eq!(options.user_agent, defaults.user_agent);
    assert_eq!(options.concurrency, defaults.concurrency);
    assert_eq!(options.canonicalizer.rules(), defaults.canonicalizer.rules());
    // The command lets the seen-set grow, so a small capacity loses no pages.
    let frontier = frontier::FrontierConfig {
        seen_set: frontier::SeenSetConfig {
            on_saturation: sieve::OnSaturation::Grow,
            ..defaults.frontier.seen_set
        },
        ..defaults.frontier
    };
    // The random seed of the hash is secret, so it is left out.
    assert_eq!(format!("{:?}", options.frontier), format!("{frontier:?}"));
}

#[test]
fn one_host_does_not_take_all_requests_by_default() {
    let concurrency = |arguments: &[&str]| {
        let cli = try_parse(["crawler", "example.com"].iter().chain(arguments)).unwrap();
        cli.site.to_library(0).unwrap().0.concurrency.get()
    };
    assert_eq!(concurrency(&["--per-host", "4"]), 16);
    assert_eq!(concurrency(&["--per-host", "5"]), 20);
    assert_eq!(concurrency(&["--per-host", "16", "--concurrency", "16"]), 16);
    assert_eq!(concurrency(&["--per-host", "1000"]), 64);
}

#[test]
fn values_out_of_range_are_refused() {
    for arguments in [
        ["--false-positive-rate", "0"],
        ["--false-positive-rate", "1"],
        ["--false-positive-rate", "NaN"],
        ["--delay", "-1"],
        ["--delay", "inf"],
        ["--timeout", "0"],
        ["--concurrency", "0"],
        ["--per-host", "0"],
        ["--max-body", "0"],
        ["--max-pages", "0"],
        ["--max-pages-per-host", "0"],
        ["--scope", "planet"],
        ["--max-attempts", "0"],
        ["--set", "max-redirects=256"],
        ["--set", "max-url-bytes=0"],
        ["--set", "max-path-repeats=0"],
        ["--set", "max-fingerprints=0"],
        ["--set", "retry-wait=-1"],
        ["--set", "retry-jitter=256"],
        ["--set", "connect-timeout=0"],
        ["--set", "ignore-www=yes"],
        ["--set", "hash=md5"],
        ["--set", "warc-operator="],
        ["--set", "max-hosts"],
    ] {
        let command = ["crawler", "example.com"].into_iter().chain(arguments);
        assert!(try_parse(command).is_err(), "{arguments:?}");
    }
    assert!(try_parse(["crawler"]).is_err());
}

#[test]
fn a_file_option_may_be_given_once_and_of_others_the_last_wins() {
    let command = command();
    let files = command.get_arguments().filter(|argument| super::names_a_file(argument));
    let files: Vec<_> = files.filter_map(Arg::get_long).collect();
    for expected in ["output", "links", "refused", "warc", "seeds", "config"] {
        assert!(files.contains(&expected), "{expected}: {files:?}");
    }
    for file in files {
        let twice = ["crawler", "example.com", &format!("--{file}=a"), &format!("--{file}=b")];
        let error = try_parse(twice).unwrap_err().to_string();
        assert!(
            error.contains(&format!("--{file}")) && error.contains("multiple times"),
            "{error}"
        );
    }
    let depth = |arguments: &[&str]| {
        let cli = try_parse(["crawler", "example.com"].iter().chain(arguments)).unwrap();
        cli.site.to_library(0).unwrap().0.frontier.scope.max_depth
    };
    assert_eq!(depth(&["-d", "1", "--max-depth", "2", "--depth", "3"]), Some(3));
}

#[test]
fn options_have_aliases_that_other_crawlers_use() {
    let options = |arguments: &[&str]| {
        let cli = try_parse(["crawler", "example.com"].iter().chain(arguments)).unwrap();
        let (crawl, _) = cli.site.to_library(0).unwrap();
        let frontier = &crawl.frontier;
        format!(
            "{:?} {:?} {} {}",
            frontier.scope.max_depth, frontier.politeness.delay, crawl.concurrency, crawl.user_agent
        )
    };
    let expected = options(&["--max-depth=7", "--delay=500ms", "--concurrency=9", "--user-agent=me"]);
    assert_eq!(
        options(&["--depth=7", "--wait=0.5", "--threads=9", "--agent=me"]),
        expected
    );
    assert_eq!(options(&["-d7", "--delay=0.5s", "-j9", "-Ume"]), expected);
    assert_eq!(
        options(&["-d", "7", "--wait", "500ms", "--workers", "9", "-U", "me"]),
        expected
    );
}

#[test]
fn settings_change_the_options_of_the_library_and_the_last_one_wins() {
    let given = [
        "--set=max-hosts=9",
        "--set",
        "max-hosts=5k",
        "--set=max-queries-per-path=0",
        "--set=ignore-www=true",
    ];
    let cli = try_parse(["crawler", "example.com"].iter().chain(&given)).unwrap();
    let (crawl, _) = cli.site.to_library(0).unwrap();
    assert_eq!(crawl.frontier.limits.max_hosts, 5_000);
    assert_eq!(crawl.frontier.traps.max_queries_per_path, None);
    assert!(crawl.canonicalizer.rules().ignore_www);
    for name in given::names() {
        let default = given::find(name).unwrap().default_value();
        let assigned = format!("{name}={default}").parse::<given::Assignment>();
        assert!(default.is_empty() || assigned.is_ok(), "{name} {default}");
        let as_option = try_parse(["crawler", "example.com", &format!("--{name}=1")]);
        let error = as_option.unwrap_err().to_string();
        assert!(error.contains(&format!("--set {name}=VALUE")), "{error}");
    }
    let error = try_parse(["crawler", "example.com", "--set=max-host=1"])
        .unwrap_err()
        .to_string();
    assert!(error.contains("a similar one is \"max-hosts\""), "{error}");
}

#[test]
fn the_command_has_at_most_68_options() {
    let help = command().render_long_help().to_string();
    // The text of an option is indented further.
    let starts_with_option = |line: &&str| {
        let text = line.trim_start();
        line.len() - text.len() < 10 && (text.starts_with("--") || text.starts_with('-') && text.contains(", --"))
    };
    let options: Vec<_> = help.lines().filter(starts_with_option).collect();
    assert!(options.len() <= 68, "{} options: {options:#?}", options.len());
}
