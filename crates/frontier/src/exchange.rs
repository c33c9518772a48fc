//! Links for other partitions of the crawl, in numbered batches, and how far those of others were received.
//!
//! Several processes share one crawl: each owns the sites of its [`Partition`](crate::Partition). A link to a site of another partition has
//! the verdict [`Elsewhere`](crate::Verdict::Elsewhere), and waits in an **outbox**, which is a part of the state: it is committed with the
//! settlement of its page. Batches for one partition are numbered from 1, and each carries the digest of all before it. The other side
//! accepts exactly the next one, and what it has accepted is committed with the links that it queued. So whatever carries batches may lose,
//! repeat and reorder them.
//!
//! ```
//! use frontier::exchange::{Acknowledged, Received};
//! use frontier::{Canonicalizer, Frontier, FrontierConfig, Link, Partition, Time, Verdict};
//!
//! let now = Time::from_millis(1_700_000_000_000);
//! let frontier = |index| {
//!     let mut config = FrontierConfig { partition: Some(Partition::new(index, 2).unwrap()), ..FrontierConfig::default() };
//!     config.scope.reach = frontier::Reach::Any;
//!     Frontier::in_memory(config).unwrap()
//! };
//! let (mut here, mut there) = (frontier(0), frontier(1));
//! let urls = Canonicalizer::default();
//! let links = ["https://site2.example/", "https://site0.example/"].map(|url| Link::found(urls.parse(url).unwrap(), 1, "".into()));
//! assert_eq!(here.offer(&links, now)?, [Verdict::Queued, Verdict::Elsewhere]);
//!
//! here.persist(b"", now)?; // closes the batch
//! let batch = here.outgoing(1, 0)?.expect("one batch waits");
//! // ... it is sent, and may arrive twice ...
//! assert!(matches!(there.receive(0, &batch, now)?, Received::Accepted { .. }));
//! assert!(matches!(there.receive(0, &batch, now)?, Received::Repeated));
//! assert_eq!(there.report().queued_pages, 1);
//!
//! // What the other side has received and saved, the outbox need not keep.
//! let mark = there.peer(0).unwrap().received;
//! assert_eq!(here.acknowledged(1, mark, now)?, Acknowledged::Dropped(1));
//! # Ok::<(), frontier::FrontierError>(())
//! ```

use std::hash::Hasher as _;

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

use crate::link::Link;
use crate::settlement::Verdict;

/// The links at which a batch is closed.
pub(crate) const BATCH_LINKS: usize = 256;
/// The bytes of URLs at which a batch is closed.
pub(crate) const BATCH_BYTES: usize = 16 << 10;

/// A place in the batches from one partition to another: the number of a batch, and the digest of all up to it. Before the first batch,
/// both are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mark {
    /// The number of the batch, from 1.
    pub number: u64,
    /// The digest of this batch and all before it.
    pub digest: u64,
}

impl Mark {
    pub(crate) fn then(self, links: &[u8]) -> Self {
        let mut hasher = SipHasher13::new_with_keys(self.digest, self.number);
        hasher.write(links);
        Self {
            number: self.number + 1,
            digest: hasher.finish(),
        }
    }
}

/// Links from one partition to another, or a [text](crate::Frontier::tell).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkBatch {
    /// The place of the batch before it.
    pub before: Mark,
    /// The place of this one.
    pub mark: Mark,
    /// The links or the text, in a format of the frontier.
    #[serde(with = "serde_bytes")]
    pub links: Box<[u8]>,
}

/// A text from one partition to all others, with its number there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) by: u32,
    pub(crate) number: u64,
    #[serde(with = "serde_bytes")]
    pub(crate) text: Box<[u8]>,
}

/// What became of a batch that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// It was the next one: its links were offered. The next commit saves that.
    Accepted {
        /// The links.
        links: Vec<Link>,
        /// The verdict on each.
        verdicts: Vec<Verdict>,
    },
    /// It was the next one: a [text](crate::Frontier::tell) of the sender's. What you do with it is saved by the same commit, so do it before.
    Told(Box<[u8]>),
    /// It was accepted before. Nothing has changed.
    Repeated,
    /// A batch before it is missing. Nothing has changed: it has to be sent again after that one.
    Early,
    /// It is the next one, but of a sender that has sent others before it: its directory is not the one of the batches so far, or this one
    /// is not. Nothing has changed.
    OtherHistory,
    /// Its bytes are not what was sent. Nothing has changed.
    Damaged,
}

/// What became of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledged {
    /// So many batches have left the outbox.
    Dropped(u64),
    /// It is older than one before. Nothing has changed.
    Old,
    /// The other side has received batches that this frontier did not send: one of both directories is an old copy. Nothing has changed.
    OtherHistory,
}

/// The state of the exchange with one other partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peer {
    /// The last batch for it.
    pub sent: Mark,
    /// The last batch that it has acknowledged.
    pub acknowledged: Mark,
    /// The last batch from it that was accepted.
    pub received: Mark,
    /// Links that wait in the outbox, until they are acknowledged.
    pub waiting: u64,
}

/// Counts of links between partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExchangeCounts {
    /// Links that were put in the outbox.
    pub sent: u64,
    /// Links in the batches that were accepted.
    pub received: u64,
    /// Links that wait in the outbox, until they are acknowledged.
    pub waiting: u64,
    /// Batches that were given up by [`Frontier::accept_loss`](crate::Frontier::accept_loss): how many links they had is not known.
    pub lost_batches: u64,
    /// Requests for robots.txt files on sites of other partitions, to which robots.txt files of this one redirect.
    pub robots_elsewhere: u64,
}
