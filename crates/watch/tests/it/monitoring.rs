//! `docs/metrics.md` and `docs/monitoring`: they name the metrics of a crawl, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crawler::summary::Missing;
use frontier::Refusal;

use crate::metrics::{Site, crawl, options};

fn docs(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file)
}

fn read(file: &str) -> String {
    fs::read_to_string(docs(file)).unwrap_or_default()
}

/// Returns the metrics at the end of a crawl with a state directory and a partition, with failures, refused links and a page that is missing.
fn metrics(name: &str) -> String {
    let folder = std::env::temp_dir().join(format!("crawler-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let mut options = options();
    options.frontier.partition = Some("0/1".parse().unwrap());
    let (_, statuses) = crawl(&Site::default(), options, Some(&folder));
    let _ = fs::remove_dir_all(&folder);
    statuses.last().unwrap().metrics()
}

/// Returns the samples of a text: their names, and what stands between braces.
fn samples(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let name = line.rsplit_once(' ').unwrap().0;
        name.trim_end_matches('}').split_once('{').unwrap_or((name, ""))
    })
}

/// Returns `docs/metrics.md`.
fn page_of(text: &str) -> String {
    let labels: BTreeMap<_, _> = samples(text)
        .map(|(name, labels)| (name, labels.split('=').next().unwrap()))
        .collect();
    let mut page = "# Metrics\n\nThe test that compares this page with the metrics of a crawl writes it: \
        `UPDATE_DOCS=1 cargo test -p crawl-watch monitoring`. [Monitoring](monitoring.md) says how to use them.\n\n\
        | metric | type | meaning |\n|---|---|---|\n"
        .to_owned();
    let mut help = "";
    for line in text.lines() {
        if let Some(of_metric) = line.strip_prefix("# HELP ") {
            help = of_metric.split_once(' ').unwrap().1;
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
            let label = match labels.get(name) {
                Some(label) if !label.is_empty() => format!("{{{label}}}"),
                _ => String::new(),
            };
            let _ = writeln!(page, "| `{name}{label}` | {kind} | {help} |");
        }
    }
    page
}

#[test]
fn the_page_of_metrics_has_each_with_its_type_and_help() {
    let expected = page_of(&metrics("page"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(docs("metrics.md"), &expected).unwrap();
    }
    let found = read("metrics.md");
    let differing = expected.lines().zip(found.lines()).find(|(one, other)| one != other);
    assert!(
        expected == found,
        "docs/metrics.md is out of date: {differing:?}; it says how to write it"
    );
}

/// Returns the names of metrics in a text with queries.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let prefixes = ["crawler_", "node_", "process_"];
    words
        .filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix)))
        .collect()
}

/// Returns each label of a text with queries, with the values that it is compared with.
fn labels_in(text: &str) -> Vec<(&str, &str)> {
    let parts: Vec<_> = text.split('"').collect();
    let compared = parts.windows(2).filter_map(|pair| {
        let label = pair[0].trim_end_matches(['=', '~', '!']);
        let name = label.rsplit(['{', ' ', ',']).next().unwrap();
        (label.len() < pair[0].len()).then(|| pair[1].split('|').map(move |value| (name, value)))
    });
    compared.flatten().collect()
}

#[test]
fn the_alerts_and_the_board_ask_for_metrics_and_labels_that_exist() {
    let text = metrics("names");
    let metrics: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let mut names: BTreeSet<_> = samples(&text).map(|(name, _)| name).collect();
    names.extend(&metrics);
    // The node exporter has `process_*` of its own.
    assert!(metrics.iter().all(|name| name.starts_with("crawler_")), "{metrics:?}");
    // Its name, and what it says of the file.
    names.extend(["node_exporter", "node_textfile_mtime_seconds"]);
    let refusals = [Refusal::Saturated, Refusal::QueueFull, Refusal::TooManyHosts].map(Refusal::name);
    let reasons: Vec<_> = refusals.into_iter().chain([Missing::INTERRUPTED, "given_up"]).collect();
    for file in ["alerts.yml", "alerts_test.yml", "grafana.json"] {
        let queries = read(&format!("monitoring/{file}")).replace("\\\"", "\"");
        let asked = metrics_in(&queries);
        assert!(asked.len() > 10, "{file}: {asked:?}");
        let unknown: Vec<_> = asked.difference(&names).collect();
        assert!(unknown.is_empty(), "{file} asks for {unknown:?}");
        let unknown: Vec<_> = labels_in(&queries)
            .into_iter()
            .filter(|(label, value)| match *label {
                "instance" | "file" => false,
                // The series of a test have labels that a crawl may have.
                _ if file == "alerts_test.yml" => false,
                "reason" if reasons.contains(value) => false,
                // `a_crawl_that_an_error_has_ended_is_incomplete` has it.
                "ending" if *value == "error" => false,
                _ => !text.contains(&format!("{{{label}=\"{value}\"")),
            })
            .collect();
        assert!(unknown.is_empty(), "{file} asks for {unknown:?}");
    }
    let board = read("monitoring/grafana.json");
    let forgotten: Vec<_> = metrics.iter().filter(|name| !board.contains(**name)).collect();
    assert!(forgotten.is_empty(), "the board does not show {forgotten:?}");
}

#[test]
fn each_alert_has_a_test_and_a_remedy() {
    let (rules, tests, page) = (
        read("monitoring/alerts.yml"),
        read("monitoring/alerts_test.yml"),
        read("monitoring.md"),
    );
    let values = |key: &str| -> Vec<String> {
        let values = rules.lines().filter_map(|line| line.trim().strip_prefix(key));
        values.map(|value| value.trim().trim_matches('"').to_owned()).collect()
    };
    let (alerts, actions) = (values("- alert:"), values("action:"));
    assert_eq!((alerts.len(), actions.len()), (14, 14));
    for (alert, action) in alerts.iter().zip(actions) {
        assert!(tests.contains(&format!("alertname=\"{alert}\"")), "{alert} has no test");
        let row = page.lines().find(|line| line.starts_with(&format!("| {alert} |")));
        assert!(
            row.is_some_and(|row| row.contains(&format!("| {action} |"))),
            "{alert}: {row:?}"
        );
    }
}
