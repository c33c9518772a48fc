//! Carries links between the processes of one crawl, each of which owns a partition of the sites.

mod cluster;
mod founded;
mod join;
mod link_log;
mod member;
mod overview;
mod post;
mod redis_log;
mod url;
mod wire;
mod word;

pub use cluster::Cluster;
pub use join::{JoinError, Joining};
pub use link_log::{Entry, EntryId, LinkLog, LogError};
pub use member::{Batches, Kept, Limits, Member, MemberError, Offered, Orders};
pub use overview::{Numbers, Overview, OverviewError, Row, stop};
pub use post::Post;
pub use redis_log::{RedisLog, TIMEOUT};
pub use url::{Address, AddressError};
pub use word::{End, PeerWord, Status, Word, Words};
