//! What all processes of a crawl have to agree on.

use serde::{Deserialize, Serialize};

use frontier::Partition;

use crate::link_log::LogError;
use crate::redis_log::RedisLog;

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
