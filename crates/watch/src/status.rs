//! What is known of a crawl at one moment.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crawler::fetch::ResourceKind;
use crawler::summary::{ANSWER_SECONDS, Summary};
use crawler::{Ending, FailureKind, Phase, RequestRecord, SavedCrawl};
use frontier::Time;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use serde_json::{Value, json};

use crate::disks::Disks;
use crate::process;
use crate::recent::Recent;
use crate::remaining::Remaining;
use crate::series::{Point, Series};

/// The upper bounds of the times of commits, in seconds.
const COMMIT_SECONDS: [f64; 9] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0];

/// The pace of the seen-set is measured over this many seconds, or a little more: since the last point of the series that is older.
const PACE_SECONDS: f64 = 60.0;

/// What is known of a crawl at one moment: the last [`Summary`], and what the requests and commits of this process were.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Status {
    /// The numbers of the crawl, as if it ended now with nothing left; at the end, those of its end. `None` before its first second.
    pub summary: Option<Summary>,
    /// What the crawl does.
    pub phase: Phase,
    /// Whether it has ended. Its ending is that of the summary.
    pub is_finished: bool,
    /// The first seeds, and how many there are besides. A state directory does not have them.
    pub(crate) seeds: (Vec<String>, usize),
    /// When the numbers were true, in seconds since 1970.
    pub(crate) as_of: f64,
    pub(crate) series: Series,
    pub(crate) recent: Recent,
    pub(crate) measured: Measured,
    pub(crate) disks: Disks,
    /// When this process began to watch, in seconds since 1970.
    pub(crate) started_at: f64,
    /// How long a run may take.
    pub(crate) max_time: Option<Duration>,
}

/// The requests and the commits of this process. The copies of a histogram are one.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) by_code: BTreeMap<u16, u64>,
    /// Of pages.
    pub(crate) by_class: BTreeMap<u8, u64>,
    pub(crate) failures: BTreeMap<FailureKind, u64>,
    pub(crate) answer_seconds: Histogram,
    pub(crate) body_bytes: Histogram,
    pub(crate) commit_seconds: Histogram,
    /// The last commit, in seconds since 1970.
    pub(crate) last_commit_at: Option<f64>,
    pub(crate) database_bytes: Option<u64>,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            by_code: BTreeMap::new(),
            by_class: BTreeMap::new(),
            failures: BTreeMap::new(),
            answer_seconds: Histogram::new(ANSWER_SECONDS),
            // From 1 KiB to 16 MiB.
            body_bytes: Histogram::new(exponential_buckets(1024.0, 4.0, 8)),
            commit_seconds: Histogram::new(COMMIT_SECONDS),
            last_commit_at: None,
            database_bytes: None,
        }
    }
}

impl Measured {
    pub(crate) fn add_request(&mut self, request: &RequestRecord) {
        if let Some(failure) = request.failure {
            *self.failures.entry(failure).or_default() += 1;
        }
        if let Some(code) = request.status {
            *self.by_code.entry(code).or_default() += 1;
            if request.kind == ResourceKind::Page {
                *self.by_class.entry(request.class.number()).or_default() += 1;
            }
            self.answer_seconds.observe(request.took.as_secs_f64());
            self.body_bytes.observe(request.bytes as f64);
        }
    }

    pub(crate) fn add_commit(&mut self, took: Duration, database_bytes: Option<u64>) {
        self.commit_seconds.observe(took.as_secs_f64());
        self.last_commit_at = Some(process::now());
        self.database_bytes = database_bytes.or(self.database_bytes);
    }
}

impl Status {
    /// Returns what is known as one JSON object. `name` returns the name of an option by its field, for the texts of what is missing.
    ///
    /// | field | value |
    /// |---|---|
    /// | `phase`, `finished` | what the crawl does, and whether it has ended |
    /// | `as_of` | when the numbers were true: RFC 3339, in UTC |
    /// | `seeds`, `more_seeds`, `state_dir` | the first three seeds, how many there are besides, and the state directory |
    /// | `summary` | those of [`Summary::to_json`]; `ending` is null while the crawl runs |
    /// | `point` | what [`series_to_json`](Self::series_to_json) has lists of, now |
    /// | `left` | how many pages are left: at least, about (null if nobody knows), and how many new ones each page led to |
    /// | `time_limit_seconds` | until the time limit of this run; null without one |
    /// | `next_level_seconds`, `next_level_keys` | in how many seconds the seen-set has so many keys that it reaches its next level |
    /// | `last_pages`, `last_failures` | at most ten each, the last one first |
    pub fn to_json(&self, name: impl Fn(&str) -> String) -> Value {
        let summary = self.summary.as_ref().map(|summary| {
            let mut summary = summary.to_json(name);
            // A crawl that runs has no ending yet.
            if !self.is_finished {
                summary["ending"] = Value::Null;
            }
            summary
        });
        let (last_pages, last_failures) = self.recent.to_json();
        let (seeds, more_seeds) = &self.seeds;
        let running = self.summary.as_ref().filter(|_| !self.is_finished);
        let left = running.and_then(|summary| Remaining::of(&self.series, &summary.host_table.hosts));
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "phase": self.phase.name(),
            "finished": self.is_finished,
            "as_of": Time::since_epoch(Duration::try_from_secs_f64(self.as_of).unwrap_or_default()).to_string(),
            "seeds": seeds,
            "more_seeds": more_seeds,
            "state_dir": self.disks.state.as_ref().map(|state| state.display().to_string()),
            "origins_away": self.origins_away(),
            "point": self.summary.as_ref().map(Point::of),
            "left": left.map(Remaining::to_json),
            "time_limit_seconds": self.time_limit().map(|left| left.as_secs_f64()),
            "next_level_seconds": self.next_level_seconds(),
            "next_level_keys": self.next_level_keys(),
            "last_pages": last_pages,
            "last_failures": last_failures,
            "summary": summary,
        })
    }

    fn time_limit(&self) -> Option<Duration> {
        let summary = self.summary.as_ref().filter(|_| !self.is_finished)?;
        let of_run = summary.elapsed.saturating_sub(summary.elapsed_before);
        Some(self.max_time?.saturating_sub(of_run))
    }

    pub(crate) fn origins_away(&self) -> u64 {
        self.summary.as_ref().map_or(0, |summary| summary.host_table.away())
    }

    /// `None` if the seen-set has no limit.
    fn next_level_keys(&self) -> Option<f64> {
        let saturation = &self.summary.as_ref()?.report.saturation;
        Some(saturation.level.next().threshold() * saturation.capacity? as f64)
    }

    /// In how many seconds the seen-set reaches its next level, at the pace of the last minute; `None` if nothing new is found.
    pub(crate) fn next_level_seconds(&self) -> Option<f64> {
        let now = Point::of(self.summary.as_ref().filter(|_| !self.is_finished)?);
        // The seeds and the links of the first page come at once.
        let mut points = self.series.points().iter().filter(|point| point.elapsed_seconds > 0.0);
        let is_before = |point: &&Point| point.elapsed_seconds + PACE_SECONDS <= now.elapsed_seconds;
        let from = points.clone().rfind(is_before).or_else(|| points.next())?;
        let seconds = now.elapsed_seconds - from.elapsed_seconds;
        let keys = now.estimated - from.estimated;
        let missing = (self.next_level_keys()? - now.estimated).max(0.0);
        (seconds >= 1.0 && keys > 0.0).then(|| missing * seconds / keys)
    }

    /// Returns some numbers over time as one JSON object of lists: at most a thousand points each.
    pub fn series_to_json(&self) -> Value {
        self.series.to_json()
    }

    /// Returns what is known of a crawl in a state directory, as of its last commit.
    pub fn of_saved(crawl: &SavedCrawl, dir: &Path) -> Self {
        let (mut summary, is_running) = (crawl.summary.clone(), crawl.is_running());
        if is_running {
            // As each second of a crawl: what is queued is not missing yet.
            summary.ending = Ending::Drained;
        }
        let mut series = Series::read(dir);
        series.cut_after(summary.elapsed);
        series.add(&summary, true);
        let saved_at = crawl.saved_at.unwrap_or(Time::EPOCH);
        Self {
            phase: match (is_running, crawl.is_paused) {
                (true, false) => Phase::Running,
                (true, true) => Phase::Paused,
                (false, _) => Phase::Stopping,
            },
            is_finished: !is_running,
            disks: Disks {
                state: Some(dir.to_owned()),
                outputs: Vec::new(),
            },
            series,
            summary: Some(summary),
            ..Self::new(Duration::from_millis(saved_at.as_millis()).as_secs_f64())
        }
    }

    pub(crate) fn new(started_at: f64) -> Self {
        Self {
            as_of: started_at,
            started_at,
            ..Self::default()
        }
    }
}
