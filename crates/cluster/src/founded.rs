//! What a process joins a crawl with, and what all processes have to agree on.

use serde::{Deserialize, Serialize};

use frontier::Partition;

use crate::link_log::LogError;
use crate::redis_log::RedisLog;
use crate::url::Address;

/// Which crawl a process shares, and what it has of it.
#[derive(Debug, Clone)]
pub struct Joining {
    /// Where the crawl is.
    pub address: Address,
    /// The partition of this process.
    pub partition: Partition,
    /// The hash of the rules of which URLs are the same, and of when the crawl ends: `CrawlBuilder::hash_of_rules`.
    pub rules: u64,
    /// The hash of the seeds: `CrawlBuilder::hash_of_seeds`.
    pub seeds: u64,
    /// What an earlier run has kept, a [`Kept`](crate::Kept) as bytes: `Crawl::kept_of_peers`.
    pub kept: Vec<u8>,
    /// Whether Redis has answered at this address: then it is waited for. [`check`](Self::check) sets it.
    pub has_answered: bool,
    /// Whether a directory that is an old copy, or new, continues all the same.
    pub accepts_loss: bool,
    /// The machine and the process, for people.
    pub owner: String,
}

/// What all processes of a crawl have to agree on, with the id of the crawl.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Founded {
    pub(crate) id: String,
    pub(crate) partitions: u32,
    pub(crate) rules: u64,
    pub(crate) seeds: u64,
    /// Of this program: other versions may share sites out in another way.
    pub(crate) version: String,
}

impl Founded {
    /// Reads the crawl that has the name of an address.
    pub(crate) fn read(log: &mut RedisLog) -> Result<Option<Self>, LogError> {
        let Some(text) = log.crawl()? else { return Ok(None) };
        let is_usable = |found: &Self| !found.id.is_empty() && Partition::new(0, found.partitions).is_ok();
        match serde_json::from_str(&text).ok().filter(is_usable) {
            Some(found) => Ok(Some(found)),
            None => Err(log.unreadable(log.crawl_key())),
        }
    }

    pub(crate) fn text(&self) -> String {
        // Numbers and texts can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}
