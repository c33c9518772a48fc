//! A crawl that is watched: by a file of metrics, and over HTTP.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{fails, folder, lines, succeeds};
use crate::servers::tree_of;

/// Returns the value of each line of the text format, by its name and labels.
fn values(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let values = lines.map(|line| line.rsplit_once(' ').unwrap());
    values
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

/// Returns the data inside a report.
fn data_of(report: &str) -> Value {
    let (_, data) = report
        .split_once("<script type=\"application/json\" id=\"data\">")
        .unwrap();
    let (data, rest) = data.split_once("</script>").unwrap();
    assert!(
        !rest.contains("src=") && !report.contains("<link rel=\"stylesheet\""),
        "it loads something"
    );
    serde_json::from_str(data).unwrap()
}

#[test]
fn the_numbers_at_the_end_are_the_same_in_the_metrics_the_log_the_summary_and_the_reports() {
    let folder = folder("watched");
    let (metrics, state) = (folder.path("crawl.prom"), folder.path("state"));
    let seed = tree_of(300, 10);
    let options = "--delay 0 --capacity 50 --on-saturation warn --watch 0 --max-pages 150";
    let printed = succeeds(&format!(
        "{options} --log-format json --metrics-file {metrics} --state {state} --report {} -o {} {seed}",
        folder.path("crawl.html"),
        folder.path("pages.jsonl")
    ));
    let records = lines(&printed.stderr);
    let record = |target: &str| records.iter().rfind(|record| record["target"] == target).unwrap();
    let summary = record("crawler::summary");
    let found = values(&fs::read_to_string(&metrics).unwrap());
    let status: Value = serde_json::from_str(&succeeds(&["status", "--json", &state]).stdout).unwrap();
    for (name, field) in [
        ("crawler_pages{state=\"ok\"}", "pages"),
        ("crawler_pages{state=\"failed\"}", "failed"),
        ("crawler_pages{state=\"queued\"}", "queued"),
        ("crawler_body_bytes_total", "bytes"),
        ("crawler_elapsed_seconds", "elapsed_seconds"),
        ("crawler_links_total{verdict=\"queued\"}", "links_queued"),
        ("crawler_links_total{verdict=\"seen\"}", "links_seen"),
        ("crawler_lost_pages_lower_bound", "lost_at_least"),
        ("crawler_lost", "lost"),
        ("crawler_seen_set_estimated_keys", "estimated"),
        ("crawler_seen_set_fill_ratio", "fill"),
        ("crawler_seen_set_capacity_keys", "capacity"),
        ("crawler_hosts", "hosts"),
    ] {
        let value = found[name];
        for (place, found) in [("summary", &summary[field]), ("status", &status[field])] {
            let found = found
                .as_f64()
                .unwrap_or_else(|| panic!("{place} has no {field}: {summary}"));
            assert_eq!(
                found.to_bits(),
                value.to_bits(),
                "{name} and {field} of {place}: {value}, {found}"
            );
        }
    }
    let bytes = fs::metadata(folder.path("pages.jsonl")).unwrap().len();
    assert!(found["crawler_output_bytes"] >= bytes as f64, "{found:?}");
    assert!(found["crawler_disk_free_bytes{files=\"state\"}"] > 0.0);
    assert!(
        found.contains_key("crawler_finished{ending=\"budget_spent\"}"),
        "{found:?}"
    );
    for file in [folder.path("crawl.html"), folder.path("later.html")] {
        if file.ends_with("later.html") {
            succeeds(&["report", &state, "-o", &file]);
        }
        let report = data_of(&fs::read_to_string(&file).unwrap());
        let shown = &report["status"]["summary"];
        for field in [
            "pages",
            "failed",
            "queued",
            "bytes",
            "lost",
            "estimated",
            "elapsed_seconds",
            "by_depth",
            "links_refused",
        ] {
            assert_eq!(shown[field], summary[field], "{field} of {file}");
        }
        assert_eq!(
            report["series"]["pages"].as_array().unwrap().last(),
            Some(&summary["pages"])
        );
        assert_eq!(report["status"]["finished"], true, "{file}");
    }
    fails(
        &["report", &state, "-o", &format!("{state}/frontier.sqlite")],
        2,
        &["holds something else"],
    );
    succeeds(&["status", &state]);
    let watch = record("crawler::watch");
    assert_eq!(watch["token"].as_str().unwrap().len(), 32);
    assert!(watch["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{watch}");
}

#[test]
fn an_address_that_cannot_be_opened_and_a_file_that_cannot_be_written_are_errors() {
    let folder = folder("not-watched");
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let seed = tree_of(1, 1);
    let kept = folder.file("kept.jsonl", "an earlier line\n");
    fails(
        &["--watch", &port, "-o", &kept, &seed],
        1,
        &["cannot be watched at 127.0.0.1"],
    );
    assert_eq!(fs::read_to_string(&kept).unwrap(), "an earlier line\n");
    for option in ["--metrics-file", "--report"] {
        let pages = folder.path("pages.jsonl");
        fails(&[option, "/dev/null", "-o", &kept, &seed], 2, &["is not a file"]);
        fails(&[option, &kept, "-o", &pages, &seed], 2, &["holds something else"]);
        fails(&[option, "", &seed], 2, &["give a file"]);
    }
    assert_eq!(fs::read_to_string(&kept).unwrap(), "an earlier line\n");
    fails(&["report", "state", "-o", "-"], 2, &["give a file"]);
    let state = folder.path("no-state");
    fails(&["report", &state, "-o", &folder.path("report.html")], 1, &["no crawl"]);
    for address in ["localhost", "a.example:80", "70000", ""] {
        fails(&["--watch", address, &seed], 2, &["give a port, such as 8077"]);
    }
    let missing = folder.path("no/crawl.prom");
    fails(&["--metrics-file", &missing, &seed], 2, &["does not exist: create it"]);
    // Another crawl writes it.
    let metrics = folder.path("crawler.prom");
    let other = fs::File::create(&metrics).unwrap();
    other.lock().unwrap();
    fails(&["--metrics-file", &metrics, &seed], 1, &["another crawl writes"]);
    drop(other);
    succeeds(&["--metrics-file", &metrics, &seed]);
    // A start that is refused leaves those of the run before.
    let (pages, state) = (folder.path("pages.jsonl"), folder.path("state"));
    let arguments = format!("--delay 0 --state {state} -o {pages} --metrics-file {metrics} {seed}");
    succeeds(&arguments);
    fs::remove_file(&pages).unwrap();
    let before = fs::read(&metrics).unwrap();
    for name in ["crawler.prom", "new.prom"] {
        fails(&arguments.replace("crawler.prom", name), 2, &["put that file back"]);
    }
    assert!(fs::read(&metrics).unwrap() == before && !Path::new(&folder.path("new.prom")).exists());
    let pages = folder.path("one");
    fails(
        &["--metrics-file", &pages, "-o", &pages, "--format", "jsonl", &seed],
        2,
        &["two outputs go to"],
    );
}
