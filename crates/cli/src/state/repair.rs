//! `crawler repair`: recovers what is intact of a damaged state directory, and says what was dropped.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crawler::RepairedState;
use frontier::durable::{RepairOutcome, Salvaged};
use serde_json::json;

use super::StateFailure;
use super::list::{RecordLine, WaitingLine, write_line};
use super::text::{Rows, counted, grouped};
use crate::options::RepairArgs;

/// The most hosts that are shown with lost URLs. JSON has all of them.
const HOSTS_SHOWN: usize = 10;

/// Repairs a directory. Returns whether all was recovered, and whether the crawl can be continued.
pub(super) fn run(args: &RepairArgs) -> Result<Recovered, StateFailure> {
    let mut lines = Lines::new(&args.dir);
    let repaired = crawler::repair(&args.dir, &mut |salvaged| lines.add(&salvaged))?;
    let lines = lines.finish()?;
    let text = if args.json {
        format!("{}\n", as_json(&repaired, lines.as_deref()))
    } else {
        as_text(&args.dir, &repaired, lines.as_deref()).text
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(match repaired.frontier.outcome {
        RepairOutcome::NotContinued => Recovered::NotContinued,
        _ if repaired.has_losses() => Recovered::Partly,
        _ => Recovered::Wholly,
    })
}

/// How much was recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recovered {
    Wholly,
    Partly,
    NotContinued,
}

/// The file for what is intact and does not belong to the repaired crawl. It is created with the first line.
struct Lines {
    path: PathBuf,
    to: io::Result<Option<BufWriter<File>>>,
}

impl Lines {
    fn new(dir: &Path) -> Self {
        let paths = (1..).map(|number| dir.join(format!("salvaged-{number}.jsonl")));
        let path = paths.into_iter().find(|path| !path.exists());
        Self {
            path: path.unwrap_or_else(|| dir.join("salvaged.jsonl")),
            to: Ok(None),
        }
    }

    fn add(&mut self, salvaged: &Salvaged<'_>) {
        let Ok(to) = &mut self.to else { return };
        let written = Self::write(&self.path, to, salvaged);
        if let Err(error) = written {
            self.to = Err(error);
        }
    }

    fn write(path: &Path, to: &mut Option<BufWriter<File>>, salvaged: &Salvaged<'_>) -> io::Result<()> {
        let to = match to {
            Some(to) => to,
            None => to.insert(BufWriter::new(File::create_new(path)?)),
        };
        match salvaged {
            Salvaged::Record(record) => write_line(to, &RecordLine::of(record)),
            Salvaged::Waiting(entry) => write_line(to, &WaitingLine::of(entry)),
            _ => Ok(()),
        }
    }

    /// Returns the file, if there is one.
    fn finish(self) -> Result<Option<PathBuf>, StateFailure> {
        let path = self.path;
        let written = self.to.and_then(|to| match to {
            Some(mut to) => to.flush().and_then(|()| to.get_ref().sync_all()).map(|()| true),
            None => Ok(false),
        });
        match written {
            Ok(is_there) => Ok(is_there.then_some(path)),
            Err(source) => Err(StateFailure::Salvaged { path, source }),
        }
    }
}

fn as_json(repaired: &RepairedState, lines: Option<&Path>) -> serde_json::Value {
    let mut value = json!(repaired.frontier);
    value["set_aside"] = json!(repaired.set_aside);
    value["salvaged"] = json!(lines);
    value["has_losses"] = json!(repaired.has_losses());
    value
}

fn as_text(dir: &Path, repaired: &RepairedState, lines: Option<&Path>) -> Rows {
    let (mut rows, report) = (Rows::default(), &repaired.frontier);
    rows.add_whole("crawl", dir.display());
    if report.was_finished {
        rows.add("repair", "finished one that was interrupted");
    }
    match report.outcome {
        RepairOutcome::Whole if report.log_commits_unread > 0 => rows.add(
            "frontier",
            "whole, but for the end of its log: nothing was changed, and the same command continues it",
        ),
        RepairOutcome::Whole if !repaired.set_aside.is_empty() => {
            rows.add("frontier", "whole: the same command continues it");
        }
        RepairOutcome::Whole => rows.add("frontier", "nothing is wrong, and nothing was changed"),
        RepairOutcome::Repaired => rows.add(
            "frontier",
            "repaired: crawler resume, or the same command, continues it",
        ),
        _ => rows.add(
            "frontier",
            "too much is lost to continue: start a new crawl in another directory",
        ),
    }
    if !report.damage.is_empty() {
        rows.add("damage", &report.damage);
    }
    for table in &report.tables {
        let found = match table.written {
            Some(written) => format!("{} of {} rows are intact", grouped(table.found), grouped(written)),
            None => format!("intact rows: {}; how many there were is unknown", grouped(table.found)),
        };
        rows.add(&format!("table {}", table.name), found);
    }
    add_losses(&mut rows, repaired);
    if let Some(lines) = lines {
        let (records, urls) = (
            counted(report.records_put_out, "record"),
            counted(report.urls_put_out, "URL"),
        );
        rows.add("saved", format!("{records}, {urls}, as JSON lines:"));
        rows.add_whole("", lines.display());
    }
    if let Some(kept) = &report.kept {
        rows.add("damaged file", "kept as");
        rows.add_whole("", kept.display());
    }
    rows
}

fn add_losses(rows: &mut Rows, repaired: &RepairedState) {
    let report = &repaired.frontier;
    if report.outcome == RepairOutcome::Repaired && report.journal_rows_dropped > 0 {
        let dropped = counted(report.journal_rows_dropped, "commit");
        let text = format!(
            "{dropped} after number {}: what they fetched is fetched again",
            grouped(report.last_row)
        );
        rows.add("dropped", text);
    }
    if report.log_commits_unread > 0 {
        let unread = counted(report.log_commits_unread, "commit");
        let text = format!(
            "{unread} or more, behind wrong bytes of the log, as after a power cut: what they fetched and the state does not have is fetched again"
        );
        rows.add("not readable", text);
    }
    if report.record_rows_lost > 0 {
        let rows_lost = counted(report.record_rows_lost, "row");
        rows.add(
            "lost",
            format!("{rows_lost} of records: list and why do not show these pages"),
        );
    }
    let mut by_pages: Vec<_> = report.urls_lost.iter().collect();
    by_pages.sort_by_key(|(_, pages)| std::cmp::Reverse(**pages));
    for (host, pages) in by_pages.iter().take(HOSTS_SHOWN) {
        rows.add(
            "lost",
            format!("{} of {host}, marked as seen", counted(**pages, "waiting page")),
        );
    }
    if by_pages.len() > HOSTS_SHOWN {
        rows.add("", format!("and of {} more hosts", by_pages.len() - HOSTS_SHOWN));
    }
    if report.is_without_hosts {
        let pages = counted(report.urls_lost_with_hosts, "waiting page");
        rows.add(
            "lost",
            format!("hosts with {pages}, marked as seen; their delays and rules"),
        );
    }
    if report.has_new_seen_set {
        rows.add("seen-set", "made again, of the records and of what waits");
    }
    for file in &repaired.set_aside {
        rows.add("set aside", "damaged, and the next run makes it again:");
        rows.add_whole("", file.display());
    }
    if report.may_lack_rows() {
        rows.add("perhaps lost", "rows at the end: how many there were cannot be read");
    }
}
