//! `crawler repair`: goes back to the last state of a damaged directory that is whole, or exports what can be read.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crawler::summary::{Rows, counted};
use frontier::directory::{Exported, RepairOutcome, RepairReport};
use frontier::{OwnData, Purpose};
use serde_json::json;

use super::StateFailure;
use super::list::write_line;
use crate::options::DirArgs;

/// The exit codes if something was lost, and if the crawl cannot be continued.
const SOME_LOST: u8 = 3;
pub(super) const NOT_CONTINUED: u8 = 4;

/// Repairs a directory. Returns the exit code.
pub(super) fn run(args: &DirArgs) -> Result<u8, StateFailure> {
    let mut paths = (1_u64..).map(|number| args.dir.join(format!("export-{number}.jsonl")));
    let path = paths.find(|path| !path.exists()).unwrap_or_default();
    let (mut to, mut written) = (None, Ok(()));
    let (report, aside) = crawler::repair(&args.dir, &mut |exported| {
        if written.is_ok() {
            written = export(&path, &mut to, &exported);
        }
    })?;
    let written = written.and_then(|()| match &mut to {
        Some(to) => to.flush().and_then(|()| to.get_ref().sync_all()),
        None => Ok(()),
    });
    let lines = to.map(|_| path.as_path());
    written.map_err(|source| StateFailure::Written {
        path: path.clone(),
        source,
    })?;
    let text = if args.json {
        let mut value = json!(report);
        value["set_aside"] = json!(aside);
        value["exported_to"] = json!(lines);
        format!("{value}\n")
    } else {
        as_text(&args.dir, &report, &aside, lines).to_string()
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(match report.outcome {
        RepairOutcome::Whole => 0,
        RepairOutcome::Repaired => SOME_LOST,
        _ => NOT_CONTINUED,
    })
}

/// Writes a URL of a crawl that cannot be continued, in a form that `--seeds` reads. The file is made with the first line.
fn export(path: &Path, to: &mut Option<BufWriter<File>>, exported: &Exported) -> io::Result<()> {
    let line = match exported {
        Exported::Page(page) => json!({
            "url": page.url, "end": page.end.names().0, "status": page.answer.status.unwrap_or(0), "depth": page.depth,
            "referrer": page.referrer, "data": page.data.as_ref().map(OwnData::to_text),
        }),
        Exported::Waiting(entry) if matches!(entry.purpose, Purpose::Page) => json!({
            "url": entry.url, "end": "waiting", "depth": entry.depth, "referrer": entry.metadata.referrer,
            "data": entry.metadata.data.as_ref().map(OwnData::to_text),
        }),
        _ => return Ok(()),
    };
    let to = match to {
        Some(to) => to,
        None => to.insert(BufWriter::new(File::create_new(path)?)),
    };
    write_line(to, &line)
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
    let lost = match report.pages_lost {
        Some(0) => None,
        Some(lost) => Some(counted(lost, "page")),
        None => Some("perhaps pages".to_owned()),
    };
    if let Some(lost) = lost {
        rows.add("lost", format!("{lost} that had ended: list and why do not show them"));
    }
    if let Some(lines) = lines {
        let (pages, urls) = (counted(report.pages, "page"), counted(report.urls, "URL"));
        rows.add(
            "exported",
            format!("{pages} that had ended, {urls}: give this file to --seeds of a new crawl"),
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
