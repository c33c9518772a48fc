//! Takes the orders of a member to the log, and brings what is new there.

use std::collections::BTreeMap;

use frontier::Partition;

use crate::link_log::{EntryId, LinkLog, LogError, StreamEntry};
use crate::member::{Batches, ToSend};
use crate::word::{Word, Words, words_of};

/// The entries of one sender that are read at once.
const ENTRIES_AT_ONCE: usize = 32;

/// A log, and how far it was read.
#[derive(Debug)]
pub struct Post<L> {
    log: L,
    window: usize,
    /// The last entry that was read of each sender. It lives in memory: a new process reads all again.
    positions: Vec<(u32, EntryId)>,
    word: Option<Word>,
    /// Up to where entries of each sender are still to be removed.
    trims: BTreeMap<u32, EntryId>,
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
            trims: BTreeMap::new(),
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
    pub fn send(&mut self, orders: ToSend) -> Result<(), LogError> {
        let is_word_new = orders.word.is_some();
        let append = self.keep(orders);
        self.trim()?;
        if is_word_new {
            self.say()?;
        }
        let mut append = append.into_iter();
        append.try_for_each(|(to, entries)| self.log.append(to, &entries, self.window))
    }

    /// Keeps the word of orders, and what they trim, for the next [`say`](Self::say). Returns what they append.
    pub(crate) fn keep(&mut self, orders: ToSend) -> Vec<(u32, Batches)> {
        self.word = orders.word.or(self.word.take());
        self.trims.extend(orders.trim);
        orders.append
    }

    /// Removes what is no longer needed. It comes first: a log that is full takes no word and no entry before.
    fn trim(&mut self) -> Result<(), LogError> {
        while let Some((from, id)) = self.trims.first_key_value() {
            self.log.trim(*from, *id)?;
            self.trims.pop_first();
        }
        Ok(())
    }

    /// Says the last word again. Others know by it that this process lives, and a log that has forgotten it has it again.
    ///
    /// # Errors
    ///
    /// As those of the log.
    pub fn say(&mut self) -> Result<(), LogError> {
        self.trim()?;
        let Some(word) = &mut self.word else { return Ok(()) };
        self.beat += 1;
        word.beat = self.beat;
        word.status.at = self.log.time()?;
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
    pub fn read(&mut self) -> Result<Vec<StreamEntry>, LogError> {
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
