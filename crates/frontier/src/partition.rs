//! Sites shared out over the processes of one crawl: each partition has one owner.

use std::fmt;
use std::hash::Hasher as _;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

use crate::url::{CanonicalUrl, site};

/// The most partitions of a crawl. Each process reads what all others say of each other: the square of this, each second.
pub const MAX_PARTITIONS: u32 = 64;

/// One share of the sites of a crawl. Its text is `3/16`: the fourth of sixteen, because they are counted from 0.
///
/// A URL belongs to the partition that the hash of its [site](crate::HostKey::site) names, so that the budgets of a site, its traps and its
/// robots.txt files are in one place. The hash is SipHash-1-3 with a key of zeros, modulo the number of partitions.
///
/// ```
/// use frontier::{Canonicalizer, Partition};
///
/// let partition: Partition = "3/16".parse()?;
/// assert_eq!((partition.index(), partition.count()), (3, 16));
/// let urls = Canonicalizer::default();
/// let [page, other] = ["https://a.example.org/", "https://b.example.org:8443/x"].map(|url| urls.parse(url).unwrap());
/// assert_eq!(partition.owner_of(&page), partition.owner_of(&other));
/// # Ok::<(), frontier::partition::PartitionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "(u32, u32)", into = "(u32, u32)")]
pub struct Partition {
    index: u32,
    count: NonZeroU32,
}

impl Partition {
    /// Returns the partition with this index, from 0, of so many.
    ///
    /// # Errors
    ///
    /// Fails if there is no such partition, or if there are more than [`MAX_PARTITIONS`].
    pub fn new(index: u32, count: u32) -> Result<Self, PartitionError> {
        match NonZeroU32::new(count) {
            Some(count) if index < count.get() && count.get() <= MAX_PARTITIONS => Ok(Self { index, count }),
            _ => Err(PartitionError),
        }
    }

    /// Returns its index, from 0.
    pub fn index(self) -> u32 {
        self.index
    }

    /// Returns how many partitions the crawl has.
    pub fn count(self) -> u32 {
        self.count.get()
    }

    /// Returns the indices of the other partitions.
    pub fn peers(self) -> impl Iterator<Item = u32> {
        (0..self.count()).filter(move |index| *index != self.index)
    }

    /// Returns the index of the partition that a URL belongs to.
    pub fn owner_of(self, url: &CanonicalUrl) -> u32 {
        if self.count() == 1 {
            return 0;
        }
        let mut hasher = SipHasher13::new();
        hasher.write(site(url.host_str()).as_bytes());
        (hasher.finish() % u64::from(self.count())) as u32
    }

    /// Returns whether a URL belongs to this partition.
    pub fn owns(self, url: &CanonicalUrl) -> bool {
        self.owner_of(url) == self.index
    }

    /// Returns this partition's share of a number for the whole crawl. The shares of all partitions add up to it.
    pub fn share_of(self, all: u64) -> u64 {
        let count = u64::from(self.count());
        all / count + u64::from(u64::from(self.index) < all % count)
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// A text or a pair of numbers is no [`Partition`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no such partition: give an index and the number of partitions, at most {MAX_PARTITIONS}, such as 0/4, 1/4, 2/4 or 3/4"
)]
pub struct PartitionError;

impl FromStr for Partition {
    type Err = PartitionError;

    fn from_str(text: &str) -> Result<Self, PartitionError> {
        let (index, count) = text.split_once('/').ok_or(PartitionError)?;
        match (index.parse(), count.parse()) {
            (Ok(index), Ok(count)) => Self::new(index, count),
            _ => Err(PartitionError),
        }
    }
}

impl TryFrom<(u32, u32)> for Partition {
    type Error = PartitionError;

    fn try_from((index, count): (u32, u32)) -> Result<Self, PartitionError> {
        Self::new(index, count)
    }
}

impl From<Partition> for (u32, u32) {
    fn from(partition: Partition) -> Self {
        (partition.index, partition.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_indices_below_the_count_are_partitions() {
        for text in ["0/1", "3/4", "63/64"] {
            assert_eq!(text.parse::<Partition>().unwrap().to_string(), text);
        }
        for text in ["", "1", "4/4", "0/0", "0/65", "-1/4", "1/4/4", "a/4"] {
            assert_eq!(text.parse::<Partition>(), Err(PartitionError), "{text}");
        }
    }

    #[test]
    fn shares_add_up() {
        for (all, count) in [(10, 4), (3, 4), (0, 2), (1_000_003, 7)] {
            let share = |index| Partition::new(index, count).unwrap().share_of(all);
            assert_eq!((0..count).map(share).sum::<u64>(), all);
            assert!((0..count).all(|index| share(index).abs_diff(all / u64::from(count)) <= 1));
        }
    }

    #[test]
    fn sites_are_shared_out_evenly_and_for_ever_alike() {
        let urls = crate::Canonicalizer::default();
        let partition = Partition::new(0, 4).unwrap();
        let owner = |n: u32| partition.owner_of(&urls.parse(&format!("https://www.site{n}.example/")).unwrap());
        let mut sites = [0; 4];
        (0..4000).for_each(|n| sites[owner(n) as usize] += 1);
        assert!(sites.iter().all(|sites| (900..1100).contains(sites)), "{sites:?}");
        // Directories of earlier runs rest on it.
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(owner), [1, 3, 0, 0, 3, 0, 1, 2]);
    }
}
