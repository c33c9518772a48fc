//! A link log in Redis.
//!
//! | key | type | it is |
//! |---|---|---|
//! | `NAME:crawl` | string | the crawl with this name: its id, and what all processes have to agree on, as JSON |
//! | `NAME:ID:words` | hash | the word of each partition by its number, and orders by their names |
//! | `{NAME:ID:TO}:from:FROM` | stream | batches, with the id `TERM-(ROUND << 40 \| NUMBER)` |
//!
//! The braces put all streams to one partition into one slot of a cluster, so that one command reads them.

mod errors;
mod nodes;

use std::collections::HashMap;

use redis::{Cmd, FromRedisValue, Value, cmd, from_redis_value};

use self::nodes::Nodes;
pub use self::nodes::TIMEOUT;
use crate::link_log::{EntryId, LinkLog, LogError, StreamEntry};
use crate::url::Address;

/// Bits of the number of a batch in the second half of a Redis id. The others are of the round.
const NUMBER_BITS: u32 = 40;
const LAST_NUMBER: u64 = (1 << NUMBER_BITS) - 1;
const LAST_ROUND: u32 = (1 << (u64::BITS - NUMBER_BITS)) - 1;

/// A [`LinkLog`] in a Redis server or a Redis Cluster: which one it is, the server tells.
///
/// A call that finds the connection broken returns an error, and the next call connects again: the caller waits in between. Each call ends within
/// a few times [`TIMEOUT`].
pub struct RedisLog {
    nodes: Nodes,
    /// The id of the crawl.
    id: String,
    index: u32,
    count: u32,
}

impl RedisLog {
    /// Connects to Redis. Before the functions of [`LinkLog`], orders and expiry, [`enter`](Self::enter) or [`observe`](Self::observe) a crawl.
    ///
    /// # Errors
    ///
    /// When no server of the address answers, or it refuses the user or the password.
    pub fn connect(address: Address) -> Result<Self, LogError> {
        Ok(Self {
            nodes: Nodes::connect(address)?,
            id: String::new(),
            index: 0,
            count: 0,
        })
    }

    /// Returns the text with which the crawl was begun that has the name of the address. The members write its id there, and what they agree on.
    ///
    /// # Errors
    ///
    /// When Redis cannot be read now.
    pub fn crawl(&mut self) -> Result<Option<String>, LogError> {
        let key = self.crawl_key();
        self.call(&key, cmd("GET").arg(&key))
    }

    pub(crate) fn unreadable_word(&self, others: &[(String, String)]) -> Option<LogError> {
        let (index, _) = others.iter().find(|(field, _)| field.parse::<u32>().is_ok())?;
        Some(self.unreadable(format!("{}, field {index},", self.words_key())))
    }

    /// Checks that the words can be written, but writes nothing.
    ///
    /// # Errors
    ///
    /// When Redis cannot be written now.
    pub(crate) fn check_writable(&mut self) -> Result<(), LogError> {
        let key = self.words_key();
        // A server that takes no writes says so before it looks what is there: no string.
        let command = cmd("SETRANGE").arg(&key).arg(0).arg("").take();
        let is_nothing = |error: &str| error.starts_with("WRONGTYPE");
        self.nodes.call(&key, &[command], is_nothing).map(drop)
    }

    /// Gives the name of the address to the crawl that is begun with this text, or only if no crawl has it. Returns the text that is there now.
    ///
    /// # Errors
    ///
    /// When Redis cannot be written now.
    pub fn set_crawl(&mut self, text: &str, only_if_absent: bool) -> Result<String, LogError> {
        let key = self.crawl_key();
        let condition = only_if_absent.then_some("NX");
        let _: Value = self.call(&key, cmd("SET").arg(&key).arg(text).arg(condition))?;
        Ok(self.crawl()?.unwrap_or_else(|| text.to_owned()))
    }

    /// Enters the crawl with this id as the partition `index` of `count`.
    pub fn enter(&mut self, id: &str, index: u32, count: u32) {
        id.clone_into(&mut self.id);
        (self.index, self.count) = (index, count);
    }

    /// Enters the crawl with this id without a partition, which suffices to read the words and to give orders.
    pub fn observe(&mut self, id: &str) {
        self.enter(id, 0, 0);
    }

    /// Writes an order for all partitions to the hash of words. Its field is no number.
    ///
    /// # Errors
    ///
    /// When Redis cannot be written now.
    pub fn order(&mut self, field: &str, text: &str) -> Result<(), LogError> {
        let key = self.words_key();
        self.call(&key, cmd("HSET").arg(&key).arg(field).arg(text))
    }

    /// Lets Redis remove the words, the id of the crawl and the streams to this partition after this time. For the end of the crawl.
    ///
    /// # Errors
    ///
    /// When Redis cannot be written now.
    pub fn expire(&mut self, seconds: u32) -> Result<(), LogError> {
        for key in [self.words_key(), self.crawl_key()] {
            let _: Value = self.call(&key, cmd("EXPIRE").arg(&key).arg(seconds))?;
        }
        let of_stream = |from| cmd("EXPIRE").arg(self.stream(from, self.index)).arg(seconds).take();
        let commands: Vec<_> = (0..self.count).map(of_stream).collect();
        self.nodes.call(&self.tag(self.index), &commands, |_| false).map(drop)
    }

    /// Returns what Redis does when its memory is full, such as `noeviction`, if this user may ask it. In a cluster, one node is asked.
    ///
    /// # Errors
    ///
    /// When Redis does not answer.
    pub fn eviction_policy(&mut self) -> Result<Option<String>, LogError> {
        let command = cmd("CONFIG").arg("GET").arg("maxmemory-policy").take();
        let answers = self.nodes.call("", &[command], |_| true)?;
        Ok(self.parsed::<Vec<String>>("", answers)?.pop())
    }

    /// Sends a command whose key has this hash tag.
    fn call<T: FromRedisValue>(&mut self, tag: &str, command: &mut Cmd) -> Result<T, LogError> {
        let answers = self.nodes.call(tag, &[command.take()], |_| false)?;
        self.parsed(tag, answers)
    }

    fn parsed<T: FromRedisValue>(&self, tag: &str, mut answers: Vec<Value>) -> Result<T, LogError> {
        let parsed = from_redis_value(answers.pop().unwrap_or(Value::Nil));
        parsed.map_err(|_| self.unreadable(tag.to_owned()))
    }

    pub(crate) fn unreadable(&self, key: String) -> LogError {
        let server = self.nodes.address.to_string();
        LogError::Unreadable { server, key }
    }

    pub(crate) fn crawl_key(&self) -> String {
        format!("{}:crawl", self.nodes.address.name())
    }

    fn words_key(&self) -> String {
        format!("{}:{}:words", self.nodes.address.name(), self.id)
    }

    fn tag(&self, to: u32) -> String {
        format!("{}:{}:{to}", self.nodes.address.name(), self.id)
    }

    fn stream(&self, from: u32, to: u32) -> String {
        format!("{{{}}}:from:{from}", self.tag(to))
    }
}

impl LinkLog for RedisLog {
    fn last(&mut self, to: u32) -> Result<Option<EntryId>, LogError> {
        let command = cmd("XINFO").arg("STREAM").arg(self.stream(self.index, to)).take();
        let is_nothing = |error: &str| error.contains("no such key");
        let answers = self.nodes.call(&self.tag(to), &[command], is_nothing)?;
        let mut info: HashMap<String, Value> = self.parsed(&self.tag(to), answers)?;
        let id = info
            .remove("last-generated-id")
            .and_then(|id| from_redis_value::<String>(id).ok());
        Ok(id.and_then(|id| entry_id(&id)))
    }

    fn append(&mut self, to: u32, entries: &[(EntryId, Vec<u8>)], window: usize) -> Result<(), LogError> {
        let key = self.stream(self.index, to);
        let add = |(id, batch): &(EntryId, Vec<u8>)| {
            let mut command = cmd("XADD");
            command.arg(&key).arg("MAXLEN").arg(window);
            command.arg(redis_id(place(*id))).arg("batch").arg(batch).take()
        };
        let commands: Vec<_> = entries.iter().map(add).collect();
        let does_not_rise = |error: &str| error.contains("The ID specified in XADD");
        self.nodes.call(&self.tag(to), &commands, does_not_rise).map(drop)
    }

    fn read(&mut self, after: &[(u32, EntryId)], up_to: usize) -> Result<Vec<StreamEntry>, LogError> {
        if after.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = cmd("XREAD");
        command.arg("COUNT").arg(up_to).arg("STREAMS");
        for (from, _) in after {
            command.arg(self.stream(*from, self.index));
        }
        for (_, id) in after {
            command.arg(redis_id(place(*id)));
        }
        type Fields = Vec<Vec<u8>>;
        let streams: Vec<(String, Vec<(String, Fields)>)> = self.call(&self.tag(self.index), &mut command)?;
        let mut found = Vec::new();
        for (key, entries) in streams {
            let from = key.rsplit(':').next().and_then(|from| from.parse().ok());
            for (id, mut fields) in entries {
                if let (Some(from), Some(id), Some(batch)) = (from, entry_id(&id), fields.pop()) {
                    found.push(StreamEntry { from, id, batch });
                }
            }
        }
        Ok(found)
    }

    fn trim(&mut self, from: u32, up_to: EntryId) -> Result<(), LogError> {
        let (key, tag) = (self.stream(from, self.index), self.tag(self.index));
        let first_kept = redis_id(place(up_to).saturating_add(1));
        self.call(&tag, cmd("XTRIM").arg(key).arg("MINID").arg(first_kept))
    }

    fn say(&mut self, word: &str) -> Result<(), LogError> {
        self.order(&self.index.to_string(), word)
    }

    fn words(&mut self) -> Result<Vec<(String, String)>, LogError> {
        let key = self.words_key();
        self.call(&key, cmd("HGETALL").arg(&key))
    }

    fn time(&mut self) -> Result<u64, LogError> {
        // The node that has the words, once they were read or written.
        let (seconds, micros): (u64, u64) = self.call(&self.words_key(), &mut cmd("TIME"))?;
        Ok(seconds * 1000 + micros / 1000)
    }
}

fn place(id: EntryId) -> u128 {
    let round = u64::from(id.round.min(LAST_ROUND));
    u128::from(id.term) << u64::BITS | u128::from(round << NUMBER_BITS | id.number.min(LAST_NUMBER))
}

fn redis_id(place: u128) -> String {
    format!("{}-{}", place >> u64::BITS, place & u128::from(u64::MAX))
}

fn entry_id(redis_id: &str) -> Option<EntryId> {
    let (term, rest) = redis_id.split_once('-')?;
    let (term, rest) = (term.parse().ok()?, rest.parse::<u64>().ok()?);
    Some(EntryId {
        term,
        round: u32::try_from(rest >> NUMBER_BITS).ok()?,
        number: rest & LAST_NUMBER,
    })
}
