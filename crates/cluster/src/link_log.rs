//! What carries batches of links from one partition to another.

/// Identifies an entry of a stream. The ids of one stream rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntryId {
    /// Rises with each start of the sender.
    pub term: u64,
    /// Rises each time that the sender sends again what was not acknowledged. Below 2^24: a larger one counts as 2^24 − 1.
    pub round: u32,
    /// The number of the batch. Below 2^40: a larger one counts as 2^40 − 1.
    pub number: u64,
}

/// An entry of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEntry {
    /// The partition that sent it.
    pub from: u32,
    /// Its place in the stream.
    pub id: EntryId,
    /// What was sent: bytes that mean nothing to the log.
    pub batch: Vec<u8>,
}

/// A stream of entries for each pair of partitions and a word of each partition, as one partition sees them.
///
/// The log promises little: it may lose, repeat and reorder entries, and go back to an earlier state, words and ids included. A call either
/// succeeds or returns an error within seconds. A call that failed may have done its work or a part of it, and may be repeated.
pub trait LinkLog: Send {
    /// Returns the greatest id that was ever appended to the stream from this partition to `to`, as far as the log remembers.
    ///
    /// # Errors
    ///
    /// When the log cannot be read now.
    fn last(&mut self, to: u32) -> Result<Option<EntryId>, LogError>;

    /// Appends entries to the stream from this partition to `to`, and keeps the last `window` entries of that stream. An entry whose id does
    /// not rise, and one with the id of zeros, is left out without an error.
    ///
    /// # Errors
    ///
    /// When the log cannot be written now.
    fn append(&mut self, to: u32, entries: &[(EntryId, Vec<u8>)], window: usize) -> Result<(), LogError>;

    /// Reads entries of streams to this partition: of each named sender those behind the given id, at most `up_to`, in the order of the stream.
    /// The id of zeros is before the first entry.
    ///
    /// # Errors
    ///
    /// When the log cannot be read now.
    fn read(&mut self, after: &[(u32, EntryId)], up_to: usize) -> Result<Vec<StreamEntry>, LogError>;

    /// Removes the entries of the stream from `from` up to this id, itself included.
    ///
    /// # Errors
    ///
    /// When the log cannot be written now.
    fn trim(&mut self, from: u32, up_to: EntryId) -> Result<(), LogError>;

    /// Replaces the word of this partition.
    ///
    /// # Errors
    ///
    /// When the log cannot be written now.
    fn say(&mut self, word: &str) -> Result<(), LogError>;

    /// Returns all words and orders by their field, in no order. The field of a partition's word is its number.
    ///
    /// # Errors
    ///
    /// When the log cannot be read now.
    fn words(&mut self) -> Result<Vec<(String, String)>, LogError>;

    /// Returns the time by the clock of the log, in milliseconds since 1970. It is for people: those of the machines may differ.
    ///
    /// # Errors
    ///
    /// When the log cannot be read now.
    fn time(&mut self) -> Result<u64, LogError>;
}

/// Why a call of a log failed. Each message says what to do, and none has a password in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The server cannot be reached, or gave no answer in time.
    #[error(
        "Redis at {server} cannot be reached ({why}): check that it runs, and that the address is right, with rediss:// for TLS"
    )]
    NotReachable {
        /// Its host and port.
        server: String,
        /// What failed.
        why: String,
    },
    /// The server does not let this user in, or not do this.
    #[error(
        "Redis at {server} refuses access ({answer}): give a user and a password that may read and write the keys of the crawl, in the \
         address or as REDISCLI_AUTH"
    )]
    Refused {
        /// Its host and port.
        server: String,
        /// What the server answered.
        answer: String,
    },
    /// The server has no memory for more.
    #[error("Redis at {server} is out of memory: raise its maxmemory, or remove what others keep in it")]
    OutOfMemory {
        /// Its host and port.
        server: String,
    },
    /// The server takes no calls now: it is a replica, is starting, or fails over.
    #[error(
        "Redis at {server} is not ready ({answer}): wait until it has started or failed over, or name its master in the address"
    )]
    NotReady {
        /// Its host and port.
        server: String,
        /// What the server answered.
        answer: String,
    },
    /// Something else is where the log has its own, or what another version has written.
    #[error(
        "Redis at {server} has under {key} what this version cannot read. If another crawl or program uses that, give all processes another NAME \
         (redis://…/NAME), else remove it (redis-cli DEL)"
    )]
    Unreadable {
        /// Its host and port.
        server: String,
        /// The keys of which one is meant.
        key: String,
    },
    /// Anything else.
    #[error(
        "Redis at {server} gave an unexpected answer ({answer}): check that it is Redis 6.2 or later, or Valkey, and no Sentinel"
    )]
    Other {
        /// Its host and port.
        server: String,
        /// What the server answered.
        answer: String,
    },
}
