//! Takes the orders of a member to the log, and brings what is new there.

use std::time::SystemTime;

use frontier::Partition;

use crate::link_log::{Entry, EntryId, LinkLog, LogError};
use crate::member::Orders;
use crate::word::{Word, Words, words_of};

/// The entries of one sender that are read at once.
const ENTRIES_AT_ONCE: usize = 32;

/// Returns the time of the system, in milliseconds since 1970.
pub(crate) fn now_millis() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_epoch.map_or(0, |time| time.as_millis() as u64)
}

/// A log, and how far it was read.
#[derive(Debug)]
pub struct Post<L> {
    log: L,
    window: usize,
    /// The last entry that was read of each sender. It lives in memory: a new process reads all again.
    positions: Vec<(u32, EntryId)>,
    word: Option<Word>,
    beat: u64,
}

impl<L: LinkLog> Post<L> {
    /// Begins to read the streams to a partition. `window` is that of the [`Limits`](crate::member::Limits).
    pub fn new(log: L, partition: Partition, window: u64) -> Self {
        Self {
            log,
            window: window as usize,
            positions: partition.peers().map(|peer| (peer, EntryId::default())).collect(),
            word: None,
            beat: 0,
        }
    }

    /// Returns the greatest ids that were ever sent, as far as the log remembers.
    ///
    /// # Errors
    ///
    /// As those of the log.
    pub fn last_sent(&mut self) -> Result<Vec<EntryId>, LogError> {
        let ids = self.positions.iter().map(|(peer, _)| self.log.last(*peer));
        let ids: Vec<_> = ids.collect::<Result<_, _>>()?;
        Ok(ids.into_iter().flatten().collect())
    }

    /// Takes orders to the log. If it fails, some may be lost: the member sends again what is not acknowledged.
    ///
    /// # Errors
    ///
    /// As those of the log.
    pub fn send(&mut self, orders: Orders) -> Result<(), LogError> {
        if let Some(word) = orders.word {
            self.word = Some(word);
            self.say()?;
        }
        for (to, entries) in orders.append {
            self.log.append(to, &entries, self.window)?;
        }
        orders
            .trim
            .into_iter()
            .try_for_each(|(from, id)| self.log.trim(from, id))
    }

    /// Keeps only the word of orders, which is said at the next [`say`](Self::say).
    pub(crate) fn keep_word(&mut self, orders: Orders) {
        self.word = orders.word.or(self.word.take());
    }

    /// Says the last word again. Others know by it that this process lives, and a log that has forgotten it has it again.
    ///
    /// # Errors
    ///
    /// As those of the log.
    pub fn say(&mut self) -> Result<(), LogError> {
        let Some(word) = &mut self.word else { return Ok(()) };
        self.beat += 1;
        word.beat = self.beat;
        word.status.at = now_millis();
        // Numbers and texts can always be written.
        self.log.say(&serde_json::to_string(word).unwrap_or_default())
    }

    /// Says that this process has left.
    ///
    /// # Errors
    ///
    /// As those of the log.
    pub fn leave(&mut self) -> Result<(), LogError> {
        if let Some(word) = &mut self.word {
            word.status.has_left = true;
        }
        self.say()
    }

    /// Returns the log.
    pub fn log_mut(&mut self) -> &mut L {
        &mut self.log
    }

    /// Reads the next entries of all senders.
    ///
    /// # Errors
    ///
    /// As those of the log.
    pub fn read(&mut self) -> Result<Vec<Entry>, LogError> {
        let entries = self.log.read(&self.positions, ENTRIES_AT_ONCE)?;
        for entry in &entries {
            let position = self.positions.iter_mut().find(|(from, _)| *from == entry.from);
            if let Some((_, position)) = position {
                *position = entry.id;
            }
        }
        Ok(entries)
    }

    /// Reads the words of all partitions, and the texts of other fields.
    ///
    /// # Errors
    ///
    /// As those of the log.
    pub fn words(&mut self) -> Result<(Words, Vec<(String, String)>), LogError> {
        self.log.words().map(words_of)
    }
}
