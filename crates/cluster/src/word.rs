//! The word of a partition: all that others need to know of it, from one synced state.

use std::collections::BTreeMap;

use frontier::exchange::Mark;
use serde::{Deserialize, Serialize};

/// The last word of each partition, by its index.
pub type Words = BTreeMap<u32, Word>;

/// No batch has this number or a greater one.
const END_OF_NUMBERS: u64 = 1 << 40;

/// How a crawl has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All partitions are drained, and each has received what was sent to it.
    Complete,
    /// The same, but links were lost with a directory, and an operator has accepted that.
    Incomplete,
}

/// What one partition says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Word {
    /// A number that is drawn at each start of a process.
    pub instance: u64,
    /// Rises each time that it is said.
    pub beat: u64,
    /// Rises with each start, and when others have promised a higher one.
    pub term: u64,
    /// Whether the seeds are in, and nothing is left to fetch or may be fetched any more.
    pub is_drained: bool,
    /// How the crawl has ended, once this partition knows.
    pub ended: Option<End>,
    /// Batches that were lost, and accepted as lost.
    pub lost: u64,
    /// The exchange with each partition, by its index. The own one is empty.
    pub peers: Vec<PeerWord>,
    /// Numbers for people.
    pub status: PartitionStatus,
}

impl Word {
    /// Returns whether a partition of so many may have said it. Another program may have written anything.
    pub(crate) fn is_of(&self, partitions: u32) -> bool {
        let marks = |peer: &PeerWord| [peer.sent, peer.acknowledged, peer.received];
        let mut marks = self.peers.iter().flat_map(marks);
        self.peers.len() == partitions as usize && marks.all(|mark| mark.number < END_OF_NUMBERS)
    }
}

/// What a partition says of its exchange with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PeerWord {
    /// The last batch for it.
    pub sent: Mark,
    /// The last batch that it has acknowledged: those up to it are no longer kept.
    pub acknowledged: Mark,
    /// The last batch of it that was accepted.
    pub received: Mark,
    /// The highest term of it that was heard. Batches of lower ones are refused.
    pub promise: u64,
    /// Links for it that are not acknowledged.
    pub waiting: u64,
}

/// Numbers of a partition for people.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PartitionStatus {
    /// The machine and the process that has the partition.
    pub owner: String,
    /// When it was said last, in milliseconds since 1970, by the clock of the log.
    pub at: u64,
    /// Pages that were fetched.
    pub pages: u64,
    /// Pages per second, lately.
    pub rate: f64,
    /// Pages that wait to be fetched.
    pub waiting: u64,
    /// Links that wait to be received by others.
    pub to_send: u64,
    /// Batches that were sent again, because they were not acknowledged in time.
    pub repeated: u64,
    /// Whether the crawl is paused there.
    pub is_paused: bool,
    /// Whether the process has ended by itself, or was stopped.
    pub has_left: bool,
}

/// Sorts the fields of the hash of words: the words of partitions, and the others.
pub(crate) fn words_of(fields: Vec<(String, String)>) -> (Words, Vec<(String, String)>) {
    let (mut words, mut others) = (Words::new(), Vec::new());
    for (field, text) in fields {
        match field.parse().ok().zip(serde_json::from_str(&text).ok()) {
            Some((index, word)) => drop(words.insert(index, word)),
            None => others.push((field, text)),
        }
    }
    (words, others)
}
