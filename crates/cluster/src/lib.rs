//! Carries links between the processes of one crawl, each of which owns a partition of the sites.
//!
//! A process of the command [joins](Joining::join) the others with an address of Redis, and gives the [`Cluster`] that it gets to its crawl:
//! `crawler::Crawl::share`. That is all, unless you carry links by other means.
//!
//! # The parts
//!
//! | | it is | it does not |
//! |---|---|---|
//! | [`LinkLog`] | a stream of entries for each pair of partitions, and a word of each partition | promise much, see below |
//! | [`Member`] | one partition in its exchange: it decides what is sent, accepted and said, and when the crawl has ended | do input or output, read a clock, or wait |
//! | [`Post`] | a log, and how far its streams were read: it takes the [`ToSend`] of a member there, and brings what is new | decide anything |
//! | [`RedisLog`] | the log in a Redis server or a Redis Cluster | decide anything, or remember anything that has to last |
//! | [`Cluster`] | a member in the loop of the crawl, and a post over a `RedisLog` on a thread, which waits for the network | – |
//! | [`Overview`], [`signal`] | what a person sees of all partitions, and signals to all: stop, pause, go on | belong to the protocol |
//!
//! A [`Word`] says what a partition has synced: how far it has sent and received, and whether it is drained. Other members hear it.
//! [`Kept`] is what a member needs after a restart: commit it together with the frontier.
//!
//! # Another log than Redis
//!
//! Implement [`LinkLog`]. It may lose entries, repeat and reorder them, forget all, and go back to an earlier state. The members make sure
//! themselves that
//!
//! - each batch is accepted once, and in order: batches have numbers, and digests of all before them;
//! - a batch that was lost is sent again, from the outbox in the frontier;
//! - what a process of the past sends is refused: each start has a higher term, which receivers promise;
//! - the end is found from the words of all alone, and never too soon.
//!
//! This is left to the log: what is read was written by a partition of this crawl; a call ends within seconds; and while nothing fails, entries
//! and words arrive. Whoever can write to it can add links, and end the crawl.
//!
//! Then drive member and post from the loop that owns the frontier. `tests/it/simulation/process.rs` does it, with a log that fails at random:
//!
//! 1. [`Member::new`] from what was kept, [`Member::start`] with [`Post::last_sent`], a commit, and its sync.
//! 2. After each sync, [`Member::synced`]. Nothing else is told to others.
//! 3. Again and again: [`Post::words`] to [`Member::hear`], each entry of [`Post::read`] to [`Member::receive`], [`Member::orders`] to
//!    [`Post::send`], and [`Post::say`] each second. An error of the post costs nothing: go on after a pause.
//! 4. A commit with [`Member::kept`] when [`Member::is_unsaved`] says so.
//! 5. When [`Member::finished`] says how the crawl has ended, [`Post::leave`].
//!
//! # What it costs
//!
//! A member has a row for each other partition, and each process reads the words of all once a second: N partitions read about 215 N³ bytes per
//! second. In the log are at most 256 batches of a pair ([`Limits::window`]). What waits beyond lies in the directories.

mod cluster;
mod founded;
mod join;
mod link_log;
mod member;
mod overview;
mod post;
mod redis_log;
mod signal;
mod url;
mod wire;
mod word;

pub use cluster::Cluster;
pub use founded::Joining;
pub use join::JoinError;
pub use link_log::{EntryId, LinkLog, LogError, StreamEntry};
pub use member::{Batches, Kept, Limits, Member, MemberError, ToSend};
pub use overview::{Numbers, Overview, OverviewError, Row, signal};
pub use post::Post;
pub use redis_log::{RedisLog, TIMEOUT};
pub use signal::Signal;
pub use url::{Address, AddressError};
pub use word::{End, PartitionStatus, PeerWord, Word, Words};
