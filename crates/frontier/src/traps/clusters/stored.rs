//! Clusters as a checkpoint has them: each URL once, without what it shares with the one before. The tables follow from the leaders, so
//! they are not stored.

use std::collections::{HashMap, HashSet, VecDeque};
use std::iter::zip;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{BLOCK_BITS, BLOCKS, Cluster, Clusters, Leader, Original, ResemblanceCounts};
use crate::fingerprint::{ContentHash, SimHash};

/// The most bytes that a text can share with the one before, so that a short state does not become a long one.
const MOST_SHARED: usize = 1024;
/// No number of a crawl comes near it: with a larger one, which a damaged state may have, sums would overflow.
const MOST: u64 = u64::MAX / 2;

#[derive(Serialize, Deserialize)]
struct StoredClusters<'a> {
    #[serde(borrow)]
    leaders: Vec<StoredLeader<'a>>,
    /// The oldest first.
    #[serde(borrow)]
    pages: Vec<StoredPage<'a>>,
    oldest: u64,
    bits: u32,
    counts: ResemblanceCounts,
}

impl StoredClusters<'_> {
    fn has_possible_numbers(&self) -> bool {
        let ResemblanceCounts {
            compared,
            exact,
            near,
            forgotten,
            cut_short,
        } = self.counts;
        let numbers = [self.oldest, compared, exact, near, forgotten, cut_short];
        self.bits <= BLOCK_BITS && numbers.iter().all(|number| *number <= MOST)
    }
}

#[derive(Serialize, Deserialize)]
struct StoredLeader<'a> {
    simhash: SimHash,
    number: u64,
    #[serde(borrow)]
    url: StoredText<'a>,
}

#[derive(Serialize, Deserialize)]
struct StoredPage<'a> {
    #[serde(with = "serde_bytes")]
    content: [u8; 16],
    cluster: u64,
    /// The URL of the first page of the cluster; `None` if the leader of the cluster has it, or an earlier page.
    #[serde(borrow)]
    first: Option<StoredText<'a>>,
    /// Its own URL; `None` if it is the first page.
    #[serde(borrow)]
    url: Option<StoredText<'a>>,
}

/// A text without the bytes that it shares with the one before.
#[derive(Serialize, Deserialize)]
struct StoredText<'a> {
    shared: usize,
    rest: &'a str,
}

impl<'a> StoredText<'a> {
    fn of(text: &'a str, last: &mut &'a str) -> Self {
        let same = zip(text.bytes(), last.bytes()).take(MOST_SHARED);
        let same = same.take_while(|(one, other)| one == other);
        let shared = text.floor_char_boundary(same.count());
        *last = text;
        Self {
            shared,
            rest: &text[shared..],
        }
    }

    /// Returns the text, unless the one before is too short, or shares too much.
    fn read(&self, last: &mut Arc<str>) -> Option<Arc<str>> {
        let shared = last.get(..self.shared).filter(|shared| shared.len() <= MOST_SHARED)?;
        *last = [shared, self.rest].concat().into();
        Some(Arc::clone(last))
    }
}

/// Finds leaders by their clusters. The clusters of most pages are those of one leader after the other.
struct LeaderOf<'a> {
    leaders: &'a VecDeque<Leader>,
    next: usize,
}

impl<'a> LeaderOf<'a> {
    fn find(&mut self, cluster: u64) -> Option<&'a Leader> {
        let number = |at: usize| Some(self.leaders.get(at)?.cluster.number);
        if number(self.next) != Some(cluster) {
            let found = self
                .leaders
                .binary_search_by_key(&cluster, |leader| leader.cluster.number);
            self.next = found.ok()?;
        }
        self.next += 1;
        self.leaders.get(self.next - 1)
    }
}

impl Clusters {
    fn stored_leaders<'a>(&'a self, last: &mut &'a str) -> Vec<StoredLeader<'a>> {
        let stored = |leader: &'a Leader| StoredLeader {
            simhash: leader.simhash,
            number: leader.cluster.number,
            url: StoredText::of(&leader.cluster.first, last),
        };
        self.leaders.iter().map(stored).collect()
    }

    fn stored_pages<'a>(&'a self, last: &mut &'a str) -> Vec<StoredPage<'a>> {
        let mut leader_of = LeaderOf {
            leaders: &self.leaders,
            next: 0,
        };
        let mut without_leader = HashSet::new();
        let stored = |content: &ContentHash| {
            let Original { url, cluster } = self.exact.get(content)?;
            let is_new = leader_of.find(cluster.number).is_none() && without_leader.insert(cluster.number);
            Some(StoredPage {
                content: content.value().to_le_bytes(),
                cluster: cluster.number,
                first: is_new.then(|| StoredText::of(&cluster.first, last)),
                url: (*url != cluster.first).then(|| StoredText::of(url, last)),
            })
        };
        self.in_order.iter().filter_map(stored).collect()
    }
}

impl Serialize for Clusters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut last = "";
        let stored = StoredClusters {
            leaders: self.stored_leaders(&mut last),
            pages: self.stored_pages(&mut last),
            oldest: self.oldest,
            bits: self.bits,
            counts: self.counts,
        };
        stored.serialize(serializer)
    }
}

/// What is read, with what later texts and pages refer to.
struct Reading {
    clusters: Clusters,
    first_of: HashMap<u64, Arc<str>>,
    last: Arc<str>,
}

impl Reading {
    /// Returns `None` if its URL cannot be read, or if it is not in the order of the clusters.
    fn add_leader(&mut self, stored: &StoredLeader<'_>) -> Option<()> {
        let last = self.clusters.leaders.back();
        if last.is_some_and(|last| stored.number <= last.cluster.number) {
            return None;
        }
        let cluster = Cluster {
            number: stored.number,
            first: stored.url.read(&mut self.last)?,
        };
        self.first_of.insert(cluster.number, Arc::clone(&cluster.first));
        self.clusters.leaders.push_back(Leader {
            simhash: stored.simhash,
            cluster,
            before: [0; BLOCKS],
        });
        Some(())
    }

    /// Returns `None` if a URL cannot be read, or if neither a leader nor an earlier page has that of the first page.
    fn add_page(&mut self, stored: &StoredPage<'_>) -> Option<()> {
        let first = match &stored.first {
            Some(first) => {
                let first = first.read(&mut self.last)?;
                self.first_of.insert(stored.cluster, Arc::clone(&first));
                first
            }
            None => Arc::clone(self.first_of.get(&stored.cluster)?),
        };
        let url = match &stored.url {
            Some(url) => url.read(&mut self.last)?,
            None => Arc::clone(&first),
        };
        let cluster = Cluster {
            number: stored.cluster,
            first,
        };
        let content = ContentHash::from(u128::from_le_bytes(stored.content));
        self.clusters.in_order.push_back(content);
        self.clusters.exact.insert(content, Original { url, cluster });
        Some(())
    }
}

impl<'de> Deserialize<'de> for Clusters {
    /// Reads clusters of any number of pages: [`configure`](Clusters::configure) sets how many are remembered.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredClusters::deserialize(deserializer)?;
        if !stored.has_possible_numbers() {
            return Err(D::Error::custom("a number that no crawl has"));
        }
        let mut reading = Reading {
            clusters: Self {
                oldest: stored.oldest,
                bits: stored.bits,
                counts: stored.counts,
                ..Self::new(stored.pages.len())
            },
            first_of: HashMap::with_capacity(stored.leaders.len()),
            last: "".into(),
        };
        let leaders = stored.leaders.iter().try_for_each(|leader| reading.add_leader(leader));
        leaders.ok_or_else(|| D::Error::custom("a leader lacks the beginning of its URL, or its place"))?;
        let pages = stored.pages.iter().try_for_each(|page| reading.add_page(page));
        pages.ok_or_else(|| D::Error::custom("a page lacks its URL, or that of the first page of its cluster"))?;
        let mut clusters = reading.clusters;
        if !clusters.leaders.is_empty() {
            clusters.rebuild_tables();
        }
        Ok(clusters)
    }
}

#[cfg(test)]
mod tests;
