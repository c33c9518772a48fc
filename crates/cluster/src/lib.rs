//! Carries links between the processes of one crawl, each of which owns a partition of the sites.

mod link_log;
mod member;
mod post;
mod wire;
mod word;

pub use link_log::{Entry, EntryId, LinkLog, LogError};
pub use member::{Batches, Kept, Limits, Member, MemberError, Offered, Orders};
pub use post::Post;
pub use word::{End, PeerWord, Status, Word, Words};
