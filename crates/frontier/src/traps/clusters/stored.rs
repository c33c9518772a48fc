//! Clusters as a checkpoint has them: each URL once. The tables follow from the leaders, so they are not stored.

use std::collections::HashMap;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{BLOCK_BITS, BLOCKS, Cluster, Clusters, Leader, Original, ResemblanceCounts};
use crate::fingerprint::{ContentHash, SimHash};

/// No number of a crawl comes near it: with a larger one, which a damaged state may have, sums would overflow.
const MOST: u64 = u64::MAX / 2;

#[derive(Serialize, Deserialize)]
struct StoredClusters<'a> {
    #[serde(borrow)]
    urls: Vec<&'a str>,
    /// The oldest first.
    leaders: Vec<StoredLeader>,
    /// The oldest first.
    pages: Vec<StoredPage>,
    oldest: u64,
    bits: u32,
    counts: ResemblanceCounts,
}

/// URLs are stored as their places among all.
#[derive(Serialize, Deserialize)]
struct StoredLeader {
    simhash: SimHash,
    cluster: u64,
    first: u32,
}

#[derive(Serialize, Deserialize)]
struct StoredPage {
    content: u128,
    cluster: u64,
    first: u32,
    url: u32,
}

/// Gives each URL a place. The texts of a crawl are shared, so a pointer tells them apart.
#[derive(Default)]
struct Urls<'a> {
    urls: Vec<&'a str>,
    places: HashMap<*const u8, u32>,
}

impl<'a> Urls<'a> {
    fn place(&mut self, url: &'a Arc<str>) -> u32 {
        *self.places.entry(url.as_ptr()).or_insert_with(|| {
            self.urls.push(url);
            (self.urls.len() - 1) as u32
        })
    }
}

impl Serialize for Clusters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut urls = Urls::default();
        let leaders = self.leaders.iter().map(|leader| StoredLeader {
            simhash: leader.simhash,
            cluster: leader.cluster.number,
            first: urls.place(&leader.cluster.first),
        });
        let leaders = leaders.collect();
        let pages = self.in_order.iter().filter_map(|content| {
            let Original { url, cluster } = self.exact.get(content)?;
            Some(StoredPage {
                content: content.value(),
                cluster: cluster.number,
                first: urls.place(&cluster.first),
                url: urls.place(url),
            })
        });
        let pages = pages.collect();
        let stored = StoredClusters {
            urls: urls.urls,
            leaders,
            pages,
            oldest: self.oldest,
            bits: self.bits,
            counts: self.counts,
        };
        stored.serialize(serializer)
    }
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
        let clusters = || self.leaders.iter().map(|leader| leader.cluster);
        self.bits <= BLOCK_BITS
            && numbers.iter().all(|number| *number <= MOST)
            && clusters().is_sorted_by(|one, next| one < next)
    }

    /// Returns the clusters; `None` if a URL has no place.
    fn read(self) -> Option<Clusters> {
        let urls: Vec<Arc<str>> = self.urls.into_iter().map(Into::into).collect();
        let url = |place: u32| urls.get(place as usize).cloned();
        let mut clusters = Clusters {
            oldest: self.oldest,
            bits: self.bits,
            counts: self.counts,
            ..Clusters::new(self.pages.len())
        };
        for stored in self.leaders {
            let cluster = Cluster {
                number: stored.cluster,
                first: url(stored.first)?,
            };
            clusters.leaders.push_back(Leader {
                simhash: stored.simhash,
                cluster,
                before: [0; BLOCKS],
            });
        }
        for stored in self.pages {
            let cluster = Cluster {
                number: stored.cluster,
                first: url(stored.first)?,
            };
            let content = ContentHash::from(stored.content);
            let url = url(stored.url)?;
            clusters.in_order.push_back(content);
            clusters.exact.insert(content, Original { url, cluster });
        }
        if !clusters.leaders.is_empty() {
            clusters.rebuild_tables();
        }
        Some(clusters)
    }
}

impl<'de> Deserialize<'de> for Clusters {
    /// Reads clusters of any number of pages: [`configure`](Clusters::configure) sets how many are remembered.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredClusters::deserialize(deserializer)?;
        if !stored.has_possible_numbers() {
            return Err(D::Error::custom("a number that no crawl has"));
        }
        stored.read().ok_or_else(|| D::Error::custom("a URL is missing"))
    }
}

#[cfg(test)]
mod tests;
