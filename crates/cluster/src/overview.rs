//! A look at all partitions of a crawl, and the order to stop them.

use std::fmt;

use serde::Serialize;

use crate::cluster::STOP;
use crate::founded::Founded;
use crate::link_log::{LinkLog as _, LogError};
use crate::post::now_millis;
use crate::redis_log::RedisLog;
use crate::url::Address;
use crate::word::{End, Word, Words, words_of};

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
    pub total: Row,
}

/// The numbers of one partition.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// The machine and the process that has it; nothing before its first word.
    pub owner: String,
    /// `running`, `ended`, `stopped`, or `silent`: it has said nothing for five seconds, or never.
    pub state: &'static str,
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
    /// Milliseconds since its last word, by the clocks of both machines; `None` before the first.
    pub age_milliseconds: Option<u64>,
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
    let founded = Founded::read(&mut log)?.ok_or(OverviewError::NoCrawl(name))?;
    log.observe(&founded.id);
    Ok((log, founded))
}

/// Tells all processes of a crawl to stop, as by Ctrl-C. Processes that start later are not meant. Returns how many were told.
///
/// # Errors
///
/// See [`OverviewError`].
pub fn stop(address: Address) -> Result<usize, OverviewError> {
    let (mut log, _) = observe(address)?;
    let (words, _) = words_of(log.words()?);
    let live = words.values().filter(|word| !word.status.has_left);
    let instances: Vec<u64> = live.map(|word| word.instance).collect();
    // Numbers can always be written.
    log.order(STOP, &serde_json::to_string(&instances).unwrap_or_default())?;
    Ok(instances.len())
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
        let (words, _) = words_of(log.words()?);
        Ok(Self::of(name, founded.partitions, &words, now_millis()))
    }

    fn of(name: String, count: u32, words: &Words, now: u64) -> Self {
        let partitions: Vec<Row> = (0..count).map(|index| Row::of(index, words, now)).collect();
        let mut total = Row::default();
        for row in &partitions {
            total.pages += row.pages;
            total.rate += row.rate;
            total.waiting += row.waiting;
            total.to_send += row.to_send;
            total.to_receive += row.to_receive;
            total.repeated += row.repeated;
            total.lost_batches += row.lost_batches;
        }
        Self {
            name,
            ended: words.values().find_map(|word| word.ended),
            problems: problems(&partitions, &total),
            partitions,
            total,
        }
    }
}

impl Row {
    fn of(index: u32, words: &Words, now: u64) -> Self {
        let received = words
            .values()
            .filter_map(|word| Some(word.peers.get(index as usize)?.waiting));
        let to_receive = received.sum();
        let Some(word) = words.get(&index) else {
            return Self {
                state: "silent",
                to_receive,
                ..Self::default()
            };
        };
        let age = now.saturating_sub(word.status.at);
        Self {
            owner: word.status.owner.clone(),
            state: state_of(word, age),
            pages: word.status.pages,
            rate: word.status.rate,
            waiting: word.status.waiting,
            to_send: word.status.to_send,
            to_receive,
            repeated: word.status.repeated,
            lost_batches: word.lost,
            age_milliseconds: Some(age),
        }
    }
}

fn state_of(word: &Word, age: u64) -> &'static str {
    match () {
        () if word.status.has_left && word.ended.is_some() => "ended",
        () if word.status.has_left => "stopped",
        () if age > DEAD_AFTER => "silent",
        () => "running",
    }
}

/// Lists what is wrong, the worst first.
fn problems(partitions: &[Row], total: &Row) -> Vec<String> {
    let mut problems = Vec::new();
    if total.lost_batches > 0 {
        problems.push(format!(
            "{} batches of links were lost with a state directory: the crawl ends as incomplete",
            total.lost_batches
        ));
    }
    for (index, row) in partitions.iter().enumerate() {
        let links = format!("{} links wait for it", row.to_receive);
        match (row.state, row.age_milliseconds) {
            ("silent", None) => problems.push(format!("partition {index} has not begun: start its process ({links})")),
            ("silent", Some(age)) => problems.push(format!(
                "partition {index} has said nothing for {} s: start its process again ({links})",
                age / 1000
            )),
            ("stopped", _) => problems.push(format!(
                "partition {index} is stopped: start its process to go on ({links})"
            )),
            _ => {}
        }
    }
    let mean = total.waiting / partitions.len().max(1) as u64;
    for (index, row) in partitions.iter().enumerate() {
        if mean > 0 && row.waiting > SKEWED * mean {
            let times = row.waiting / mean;
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
            "{:>9}  {:<8} {:>10} {:>8} {:>10} {:>9} {:>10}  {:>5}  owner",
            "partition", "state", "pages", "per s", "waiting", "to send", "to receive", "word"
        )?;
        let row = |f: &mut fmt::Formatter<'_>, name: &dyn fmt::Display, row: &Row| {
            let age = row
                .age_milliseconds
                .map_or(String::new(), |age| format!("{} s", age / 1000));
            writeln!(
                f,
                "{name:>9}  {:<8} {:>10} {:>8.1} {:>10} {:>9} {:>10}  {age:>5}  {}",
                row.state, row.pages, row.rate, row.waiting, row.to_send, row.to_receive, row.owner
            )
        };
        for (index, of) in self.partitions.iter().enumerate() {
            row(f, &index, of)?;
        }
        row(f, &"all", &self.total)?;
        match self.ended {
            None => Ok(()),
            Some(End::Complete) => writeln!(f, "the crawl has ended"),
            Some(End::Incomplete) => writeln!(f, "the crawl has ended, and is incomplete"),
        }
    }
}
