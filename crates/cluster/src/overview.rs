//! A look at all partitions of a crawl, and signals to all.

use std::fmt;

use serde::Serialize;

use crate::founded::Founded;
use crate::link_log::{LinkLog as _, LogError};
use crate::redis_log::RedisLog;
use crate::signal::{Signal, Signalled};
use crate::url::Address;
use crate::word::{End, Words, words_of};

/// After how many milliseconds without a word a process is taken for dead.
const DEAD_AFTER: u64 = 5_000;
/// How many times the mean of all partitions is much.
const SKEWED: u64 = 3;

/// What all partitions of a crawl say.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Overview {
    /// The name of the crawl.
    pub name: String,
    /// How it has ended, once a partition knows.
    pub ended: Option<End>,
    /// What is wrong, the worst first.
    pub problems: Vec<String>,
    /// A row for each partition, by its index.
    pub partitions: Vec<Row>,
    /// The sums.
    pub total: Numbers,
}

/// What one partition says.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// Its index.
    pub partition: u32,
    /// `running`, `paused`, `drained` (it has nothing left that it may fetch, and waits for the others), `ended`, `stopped`, `unreadable`, or `silent`: it has
    /// said nothing for five seconds, or never.
    pub state: &'static str,
    /// The machine and the process that has it; nothing before its first word.
    pub owner: String,
    /// Milliseconds since its last word, by the clock of Redis; `None` before the first.
    pub age_milliseconds: Option<u64>,
    /// How much it has done, and has left.
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// The numbers of one partition, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Numbers {
    /// Pages that were fetched.
    pub pages: u64,
    /// Pages per second, lately.
    pub rate: f64,
    /// Pages that wait to be fetched.
    pub waiting: u64,
    /// Links for others that are not acknowledged.
    pub to_send: u64,
    /// Links of others for it that it has not acknowledged.
    pub to_receive: u64,
    /// Batches that were sent again.
    pub repeated: u64,
    /// Batches that were lost with a directory.
    pub lost_batches: u64,
}

/// Why there is no overview.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OverviewError {
    /// Redis does not answer as it should.
    #[error(transparent)]
    Log(#[from] LogError),
    /// There is no crawl of this name.
    #[error(
        "there is no crawl {0} in Redis: check the name at the end of the address, or start the process of partition 0"
    )]
    NoCrawl(String),
}

fn observe(address: Address) -> Result<(RedisLog, Founded), OverviewError> {
    let name = address.name().to_owned();
    let mut log = RedisLog::connect(address)?;
    let Some(founded) = Founded::read(&mut log)? else {
        // A crawl cannot begin while Redis is full.
        return Err(match log.check_writable() {
            Err(full @ LogError::OutOfMemory { .. }) => full.into(),
            _ => OverviewError::NoCrawl(name),
        });
    };
    log.observe(&founded.id);
    Ok((log, founded))
}

/// Sends a signal to all processes of a crawl, but not to those that start later. Returns how many run.
///
/// # Errors
///
/// See [`OverviewError`].
pub fn signal(address: Address, what: Signal) -> Result<usize, OverviewError> {
    let (mut log, _) = observe(address)?;
    let (words, _) = words_of(log.words()?);
    let at = log.time()?;
    let here: Vec<_> = words.values().filter(|word| !word.status.has_left).collect();
    let ages = here.iter().map(|word| at.abs_diff(word.status.at));
    let live = ages.filter(|age| *age <= DEAD_AFTER).count();
    let instances = here.iter().map(|word| word.instance).collect();
    // Numbers can always be written.
    let text = serde_json::to_string(&Signalled { what, at, instances }).unwrap_or_default();
    log.order(Signal::FIELDS[what.field()], &text)?;
    Ok(live)
}

impl Overview {
    /// Reads the words of all partitions.
    ///
    /// # Errors
    ///
    /// See [`OverviewError`].
    pub fn read(address: Address) -> Result<Self, OverviewError> {
        let name = address.name().to_owned();
        let (mut log, founded) = observe(address)?;
        let (words, others) = words_of(log.words()?);
        let now = log.time()?;
        let row = |index| Row::of(index, &words, &others, now);
        let partitions: Vec<Row> = (0..founded.partitions).map(row).collect();
        let mut total = Numbers::default();
        partitions.iter().for_each(|row| total.add(&row.numbers));
        // The first node may be a replica, and the next call asks another one.
        let refusal = log.check_writable().or_else(|_| log.check_writable()).err();
        let ended = words.values().find_map(|word| word.ended);
        Ok(Self {
            name,
            ended,
            problems: problems(&partitions, &total, ended, refusal),
            partitions,
            total,
        })
    }
}

impl Numbers {
    fn add(&mut self, other: &Self) {
        self.pages += other.pages;
        self.rate += other.rate;
        self.waiting += other.waiting;
        self.to_send += other.to_send;
        self.to_receive += other.to_receive;
        self.repeated += other.repeated;
        self.lost_batches += other.lost_batches;
    }
}

impl Row {
    fn of(partition: u32, words: &Words, others: &[(String, String)], now: u64) -> Self {
        let for_it = words
            .values()
            .filter_map(|word| Some(word.peers.get(partition as usize)?.waiting));
        let mut row = Self {
            partition,
            state: "silent",
            ..Self::default()
        };
        row.numbers.to_receive = for_it.sum();
        let Some(word) = words.get(&partition) else {
            if others.iter().any(|(field, _)| *field == partition.to_string()) {
                row.state = "unreadable";
            }
            return row;
        };
        let (status, age) = (&word.status, now.abs_diff(word.status.at));
        row.owner.clone_from(&status.owner);
        row.age_milliseconds = Some(age);
        row.state = match () {
            () if word.ended.is_some() => "ended",
            () if status.has_left => "stopped",
            () if age > DEAD_AFTER => "silent",
            () if status.is_paused => "paused",
            () if word.is_drained => "drained",
            () => "running",
        };
        row.numbers = Numbers {
            pages: status.pages,
            rate: if row.state == "running" { status.rate } else { 0.0 },
            waiting: status.waiting,
            to_send: status.to_send,
            repeated: status.repeated,
            lost_batches: word.lost,
            ..row.numbers
        };
        row
    }

    fn problem(&self) -> Option<String> {
        let (index, links) = (self.partition, self.numbers.to_receive);
        let (what, remedy) = match (self.state, self.age_milliseconds) {
            ("silent", None) => ("has not begun".to_owned(), "start its process"),
            ("silent", Some(age)) => (
                format!("has said nothing for {} s", age / 1000),
                "start its process again",
            ),
            ("unreadable", _) => (
                "says what this version cannot read".to_owned(),
                "start its process with this version",
            ),
            ("stopped", _) => ("is stopped".to_owned(), "start its process to continue"),
            _ => return None,
        };
        Some(format!(
            "partition {index} {what}: {remedy} ({links} links wait for it)"
        ))
    }
}

/// Lists what is wrong, the worst first.
fn problems(partitions: &[Row], total: &Numbers, ended: Option<End>, refusal: Option<LogError>) -> Vec<String> {
    // Other errors are of this reader.
    let refusal = refusal.filter(|error| matches!(error, LogError::OutOfMemory { .. } | LogError::NotReady { .. }));
    let refused = refusal.map(|error| format!("{error}. Until then no process can say that it runs"));
    let silent = if refused.is_some() { "" } else { "silent" };
    let in_states = [silent, "unreadable", "stopped"]
        .into_iter()
        // After the end, nothing waits for a process.
        .filter(|_| ended.is_none())
        .flat_map(|state| partitions.iter().filter(move |row| row.state == state));
    let mut problems: Vec<_> = refused.into_iter().chain(in_states.filter_map(Row::problem)).collect();
    if total.lost_batches > 0 {
        problems.push(format!(
            "{} batches of links were lost with a state directory: the crawl ends as incomplete",
            total.lost_batches
        ));
    }
    let mean = total.waiting / partitions.len().max(1) as u64;
    for row in partitions {
        let (index, waiting) = (row.partition, row.numbers.waiting);
        if mean > 0 && waiting > SKEWED * mean {
            let times = waiting / mean;
            problems.push(format!(
                "partition {index} has {times} times as many waiting pages as the mean: a large site is not split"
            ));
        }
    }
    problems
}

impl fmt::Display for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "! {problem}")?;
        }
        writeln!(
            f,
            "{:>9}  {:<10} {:>10} {:>8} {:>10} {:>9} {:>10}  {:>5}  owner",
            "partition", "state", "pages", "per s", "waiting", "to send", "to receive", "word"
        )?;
        let row = |f: &mut fmt::Formatter<'_>, name: &dyn fmt::Display, state: &str, numbers: &Numbers| {
            write!(
                f,
                "{name:>9}  {state:<10} {:>10} {:>8.1} {:>10} {:>9} {:>10}",
                numbers.pages, numbers.rate, numbers.waiting, numbers.to_send, numbers.to_receive
            )
        };
        for of in &self.partitions {
            row(f, &of.partition, of.state, &of.numbers)?;
            let age = of
                .age_milliseconds
                .map_or(String::new(), |age| format!("{} s", age / 1000));
            writeln!(f, "  {age:>5}  {}", of.owner)?;
        }
        row(f, &"all", "", &self.total)?;
        writeln!(f)?;
        match self.ended {
            None => Ok(()),
            Some(End::Complete) => writeln!(f, "the crawl has ended"),
            Some(End::Incomplete) => writeln!(f, "the crawl has ended, and is incomplete"),
        }
    }
}
