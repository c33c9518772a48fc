//! `crawler status`: how far a crawl is.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use crawler::summary::{Rows, counted, duration, grouped, size};
use crawler::{Ending, Missing, SavedCrawl};
use frontier::{CrawlPolicy, LockHolder, Time};
use serde_json::{Value, json};

use super::{StateFailure, now};
use crate::flag;
use crate::options::{DirArgs, show_policy};
use crate::progress::WAITS_FOR_OTHERS;

pub(super) fn run(args: &DirArgs) -> Result<(), StateFailure> {
    let status = Status::read(&args.dir)?;
    let text = if args.json {
        format!("{}\n", status.json())
    } else {
        status.text()
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

struct Status<'a> {
    dir: &'a Path,
    crawl: SavedCrawl,
    disk_bytes: u64,
    now: Time,
}

impl<'a> Status<'a> {
    fn read(dir: &'a Path) -> Result<Self, StateFailure> {
        let mut crawl = SavedCrawl::read(dir)?;
        crawl.summary.peak_memory_bytes = None;
        // It was read here without a bound.
        if let Some(memory) = &mut crawl.summary.report.memory {
            memory.bound = crawl.config.max_memory;
        }
        let now = now();
        Ok(Self {
            dir,
            crawl,
            disk_bytes: bytes_in(dir),
            now,
        })
    }

    fn is_in_pause(&self) -> bool {
        self.crawl.is_paused && self.crawl.is_running()
    }

    fn text(&self) -> String {
        let mut rows = Rows::default();
        let summary = &self.crawl.summary;
        let report = &summary.report;
        rows.add_whole("crawl", self.dir.display());
        rows.add("now", self.run_state());
        if !self.is_in_pause() {
            summary.add_held_up(&mut rows, &flag::of);
        }
        if self.crawl.is_running() && !self.is_in_pause() && summary.waits_for_others() {
            rows.add("", WAITS_FOR_OTHERS);
        }
        let ordered = self.crawl.frontier.crawl_policy();
        if *ordered != CrawlPolicy::default() {
            rows.add("ordered", show_policy(ordered));
        }
        let hosts = self.crawl.frontier.hosts_with_orders();
        if hosts > 0 {
            rows.add(
                "ordered",
                format!("{}: crawler hosts names them", counted(hosts, "host")),
            );
        }
        rows.add("last saved", self.saved());
        rows.add("elapsed", format!("{}, all runs", duration(summary.elapsed)));
        let postponed = match report.postponed {
            0 => String::new(),
            pages => format!(", {} of them postponed", grouped(pages)),
        };
        rows.add(
            "waiting",
            format!("{}{postponed}", counted(report.queued_pages, "page")),
        );
        let after = match report.leased {
            1.. if !self.crawl.is_running() => ", to be fetched again",
            _ => "",
        };
        rows.add("in flight", format!("{}{after}", grouped(report.leased)));
        rows.add_all("LOST", self.losses());
        rows.add("disk", size(self.disk_bytes));
        summary.add_rows(&mut rows, &flag::of);
        rows.to_string()
    }

    fn losses(&self) -> Vec<String> {
        let mut missing = self.crawl.summary.missing();
        missing.retain(|one| one.kind != Missing::INTERRUPTED);
        missing.iter().map(|one| one.with_names(flag::of).to_string()).collect()
    }

    fn run_state(&self) -> String {
        let running = match self.crawl.is_paused {
            true => "paused",
            false => "running",
        };
        match self.crawl.holder {
            LockHolder::Process(Some(process)) if self.crawl.is_paused => {
                format!(
                    "paused, process {process}: crawler unpause, or Resume on its page, continues it; after Ctrl-Z, fg or SIGCONT alone"
                )
            }
            LockHolder::Process(Some(process)) => format!("{running}, process {process}"),
            _ if self.crawl.is_running() => running.to_owned(),
            _ if self.crawl.summary.ending == Ending::Drained && self.crawl.summary.has_unanswered() => {
                "ended: the same command tries again what got no answer".to_owned()
            }
            _ if self.crawl.summary.ending == Ending::Drained && self.crawl.config.partition.is_some() => {
                "not running: nothing is left to fetch in this partition".to_owned()
            }
            _ if self.crawl.summary.ending == Ending::Drained => "ended: nothing is left to fetch".to_owned(),
            _ if self.crawl.is_paused => {
                "ended in a pause: the same command continues it, and the pause is over".to_owned()
            }
            _ => "not running: the same command continues it".to_owned(),
        }
    }

    fn saved(&self) -> String {
        match self.crawl.saved_at {
            Some(time) => format!("{time}, {} ago", duration(self.now.since(time))),
            None => "never".to_owned(),
        }
    }

    /// The names and units are those of the log.
    fn json(&self) -> Value {
        let summary = &self.crawl.summary;
        let report = &summary.report;
        let process = match self.crawl.holder {
            LockHolder::Process(process) => process,
            _ => None,
        };
        let mut status = json!({
            "running": self.crawl.is_running(),
            "paused": self.is_in_pause(),
            "process": process,
            "drained": summary.ending == Ending::Drained,
            "saved_at": self.crawl.saved_at.map(|time| time.to_string()),
            "done": report.pages.done,
            "rejected": report.pages.rejected,
            "gave_up": report.pages.gave_up,
            "postponed": report.postponed,
            "in_flight": report.leased,
            "refused_earlier": report.refused_earlier,
            "memory": report.memory,
            "disk_bytes": self.disk_bytes,
        });
        if let (Value::Object(status), Value::Object(summary)) = (&mut status, summary.to_json(flag::of)) {
            status.extend(summary);
            if self.crawl.is_running() {
                status.insert("ending".to_owned(), Value::Null);
                status.insert("missing".to_owned(), self.losses().into());
            }
            // Those of the process that reads the directory.
            status.remove("peak_memory_bytes");
        }
        status
    }
}

/// Returns the size of the files in a directory. A file that goes away meanwhile does not count.
fn bytes_in(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files
        .filter_map(|file| file.metadata().ok())
        .map(|file| file.len())
        .sum()
}
