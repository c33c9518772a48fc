//! `crawler repair`: goes back to the last state of a damaged directory that is whole, or exports what can be read.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crawler::summary::{Rows, counted};
use frontier::Purpose;
use frontier::directory::{Exported, RepairOutcome, RepairReport};
use serde_json::json;

use super::StateFailure;
use super::list::{words, write_line};
use crate::options::DirArgs;

/// Repairs a directory. Returns what was recovered.
pub(super) fn run(args: &DirArgs) -> Result<Recovered, StateFailure> {
    let mut lines = Lines::new(&args.dir);
    let (report, aside) = crawler::repair(&args.dir, &mut |exported| lines.add(&exported))?;
    let lines = lines.finish()?;
    let text = if args.json {
        let mut value = json!(report);
        value["set_aside"] = json!(aside);
        value["exported_to"] = json!(lines);
        format!("{value}\n")
    } else {
        as_text(&args.dir, &report, &aside, lines.as_deref()).to_string()
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(match report.outcome {
        RepairOutcome::Whole => Recovered::Wholly,
        RepairOutcome::Repaired => Recovered::Partly,
        _ => Recovered::NotContinued,
    })
}

/// How much was recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recovered {
    Wholly,
    Partly,
    NotContinued,
}

/// The file for the URLs of a crawl that cannot be continued, in a form that `--seeds` reads. It is created with the first line.
struct Lines {
    path: PathBuf,
    to: io::Result<Option<BufWriter<File>>>,
}

impl Lines {
    fn new(dir: &Path) -> Self {
        let paths = (1..).map(|number| dir.join(format!("export-{number}.jsonl")));
        let path = paths.into_iter().find(|path| !path.exists());
        Self {
            path: path.unwrap_or_else(|| dir.join("export.jsonl")),
            to: Ok(None),
        }
    }

    fn add(&mut self, exported: &Exported<'_>) {
        let Ok(to) = &mut self.to else { return };
        if let Err(error) = Self::write(&self.path, to, exported) {
            self.to = Err(error);
        }
    }

    fn write(path: &Path, to: &mut Option<BufWriter<File>>, exported: &Exported<'_>) -> io::Result<()> {
        let line = match exported {
            Exported::Record(record) => json!({
                "url": record.url, "end": words(record.end).0, "status": record.status.unwrap_or(0), "depth": record.depth,
                "referrer": record.referrer,
            }),
            Exported::Waiting(entry) if matches!(entry.purpose, Purpose::Page) => json!({
                "url": entry.url, "end": "waiting", "depth": entry.depth, "referrer": entry.metadata.referrer,
            }),
            _ => return Ok(()),
        };
        let to = match to {
            Some(to) => to,
            None => to.insert(BufWriter::new(File::create_new(path)?)),
        };
        write_line(to, &line)
    }

    fn finish(self) -> Result<Option<PathBuf>, StateFailure> {
        let path = self.path;
        let written = self.to.and_then(|to| match to {
            Some(mut to) => to
                .flush()
                .and_then(|()| to.get_ref().sync_all())
                .map(|()| Some(path.clone())),
            None => Ok(None),
        });
        written.map_err(|source| StateFailure::Written { path, source })
    }
}

fn as_text(dir: &Path, report: &RepairReport, aside: &[PathBuf], lines: Option<&Path>) -> Rows {
    let mut rows = Rows::default();
    rows.add_whole("crawl", dir.display());
    let outcome = match report.outcome {
        RepairOutcome::Whole if aside.is_empty() => "nothing is wrong, and nothing was changed",
        RepairOutcome::Whole => "whole: the same command continues it",
        RepairOutcome::Repaired => "repaired: crawler resume, or the same command, continues it",
        _ => "no state is whole: begin a new crawl in another directory",
    };
    rows.add("frontier", outcome);
    if !report.damage.is_empty() {
        rows.add("damage", &report.damage);
    }
    if report.commits_dropped > 0 {
        let dropped = counted(report.commits_dropped, "commit");
        rows.add("dropped", format!("{dropped}: what they fetched is fetched again"));
    }
    let lost = match report.record_rows_lost {
        Some(0) => None,
        Some(lost) => Some(format!("the records of {}", counted(lost, "commit"))),
        None => Some("perhaps records".to_owned()),
    };
    if let Some(lost) = lost {
        rows.add("lost", format!("{lost}: list and why do not show these pages"));
    }
    if let Some(lines) = lines {
        let (records, urls) = (counted(report.records, "record"), counted(report.urls, "URL"));
        rows.add(
            "exported",
            format!("{records}, {urls}: give this file to --seeds of a new crawl"),
        );
        rows.add_whole("", lines.display());
    }
    if let Some(kept) = &report.kept {
        rows.add("damaged file", "kept as");
        rows.add_whole("", kept.display());
    }
    for file in aside {
        rows.add("set aside", "damaged, and the next run makes it again:");
        rows.add_whole("", file.display());
    }
    rows
}
