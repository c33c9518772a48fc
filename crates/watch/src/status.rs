//! What is known of a crawl at one moment.

use std::collections::BTreeMap;

use crawler::summary::{ANSWER_SECONDS, Summary};
use crawler::{CommitRecord, FailureKind, Phase, RequestRecord};
use serde_json::{Value, json};

use crate::histogram::Histogram;
use crate::series::Series;

/// The upper bounds of the sizes of bodies, in bytes: powers of four from 1 KiB to 16 MiB.
const BODY_BYTES: [f64; 8] = [
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

/// The upper bounds of the times of commits, in seconds.
const COMMIT_SECONDS: [f64; 9] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0];

/// What is known of a crawl at one moment: the last [`Summary`], and what the requests and commits of this process were.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Status {
    /// The numbers of the crawl, as if it ended now with nothing left; at the end, those of its end. `None` before its first second.
    pub summary: Option<Summary>,
    /// What the crawl does.
    pub phase: Phase,
    /// Whether it has ended. Its ending is that of the summary, unless it has failed.
    pub is_finished: bool,
    /// Whether an error has ended it.
    pub has_failed: bool,
    /// Origins that do not answer at present.
    pub origins_away: u64,
    pub(crate) series: Series,
    pub(crate) requests: Requests,
    pub(crate) commits: Commits,
    /// In how many seconds the seen-set reaches its next level.
    pub(crate) next_level_seconds: Option<f64>,
    /// When this process began to watch, in seconds since 1970.
    pub(crate) started_at: f64,
}

/// The requests of this process.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    pub(crate) by_code: BTreeMap<u16, u64>,
    pub(crate) failures: BTreeMap<FailureKind, u64>,
    pub(crate) answer_seconds: Histogram,
    pub(crate) body_bytes: Histogram,
    /// By how many seconds a pause was longer than what was owed, at least; `None` before the second request to a host.
    pub(crate) least_slack: Option<f64>,
}

impl Requests {
    pub(crate) fn add(&mut self, request: &RequestRecord) {
        let slack = request.slack_seconds();
        self.least_slack = slack.into_iter().chain(self.least_slack).reduce(f64::min);
        if let Some(failure) = request.failure {
            *self.failures.entry(failure).or_default() += 1;
        }
        if let Some(code) = request.status {
            *self.by_code.entry(code).or_default() += 1;
            self.answer_seconds.add(request.took.as_secs_f64());
            self.body_bytes.add(request.bytes as f64);
        }
    }
}

/// The commits of this process.
#[derive(Debug, Clone)]
pub(crate) struct Commits {
    pub(crate) seconds: Histogram,
    /// The last one, in seconds since 1970.
    pub(crate) last_at: Option<f64>,
    pub(crate) database_bytes: Option<u64>,
}

impl Commits {
    pub(crate) fn add(&mut self, commit: &CommitRecord, now: f64) {
        self.seconds.add(commit.took.as_secs_f64());
        self.last_at = Some(now);
        self.database_bytes = commit.database_bytes.or(self.database_bytes);
    }
}

impl Status {
    /// Returns what is known as one JSON object. `name` returns the name of an option by its field, for the texts of what is missing.
    pub fn to_json(&self, name: impl Fn(&str) -> String) -> Value {
        let summary = self.summary.as_ref().map(|summary| {
            let mut summary = summary.to_json(name);
            // A crawl that runs has no ending yet.
            if self.has_failed {
                summary["ending"] = "error".into();
            } else if !self.is_finished {
                summary["ending"] = Value::Null;
            }
            summary
        });
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "phase": self.phase.name(),
            "finished": self.is_finished,
            "origins_away": self.origins_away,
            "next_level_seconds": self.next_level_seconds,
            "summary": summary,
        })
    }

    /// Returns some numbers over time as one JSON object of lists: at most a thousand points each.
    pub fn series_to_json(&self) -> Value {
        self.series.to_json()
    }

    pub(crate) fn new(started_at: f64) -> Self {
        Self {
            summary: None,
            phase: Phase::Running,
            is_finished: false,
            has_failed: false,
            origins_away: 0,
            series: Series::default(),
            requests: Requests {
                by_code: BTreeMap::new(),
                failures: BTreeMap::new(),
                answer_seconds: Histogram::new(&ANSWER_SECONDS),
                body_bytes: Histogram::new(&BODY_BYTES),
                least_slack: None,
            },
            commits: Commits {
                seconds: Histogram::new(&COMMIT_SECONDS),
                last_at: None,
                database_bytes: None,
            },
            next_level_seconds: None,
            started_at,
        }
    }
}
