//! A server of Redis as the tests of the log use it.

use cluster::{EntryId, LogError, PartitionStatus, PeerWord, RedisLog, Word};

pub(crate) use crate::redis_server::{Server, eventually, free_port};

impl Server {
    /// Connects as the partition `index` of three.
    pub(crate) fn log(&self, index: u32) -> RedisLog {
        let mut log = connect(&format!("redis://{}/web", self.at())).unwrap();
        log.enter("id", index, 3);
        log
    }
}

pub(crate) fn connect(address: &str) -> Result<RedisLog, LogError> {
    RedisLog::connect(address.parse().unwrap())
}

/// Returns entries of one term and round with these numbers. Each batch says its number.
pub(crate) fn entries(numbers: impl IntoIterator<Item = u64>) -> Vec<(EntryId, Vec<u8>)> {
    let batch = |number| format!("batch {number}").into_bytes();
    numbers.into_iter().map(|number| (id(number), batch(number))).collect()
}

pub(crate) fn id(number: u64) -> EntryId {
    EntryId {
        term: 7,
        round: 2,
        number,
    }
}

/// Returns a word with one number in it.
pub(crate) fn word(instance: u64) -> Word {
    Word {
        instance,
        beat: 0,
        term: 1,
        is_drained: false,
        ended: None,
        lost: 0,
        peers: vec![PeerWord::default(); 3],
        status: PartitionStatus::default(),
    }
}
