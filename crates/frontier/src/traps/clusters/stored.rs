//! Clusters as a checkpoint has them: each URL once. The tables follow from the leaders, so they are not stored.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::{BLOCK_BITS, BLOCKS, Cluster, Clusters, Leader, Original, ResemblanceCounts};
use crate::fingerprint::{ContentHash, SimHash};

/// No number of a crawl comes near it: with a larger one, which a damaged state may have, sums would overflow.
const MOST: u64 = u64::MAX / 2;

/// What is stored. URLs are given by their places among all, leaders and pages with the oldest first.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Stored {
    urls: Vec<Arc<str>>,
    /// Each with the number and the first URL of its cluster.
    leaders: Vec<(SimHash, u64, u32)>,
    /// Each with the number and the first URL of its cluster, and its own URL.
    pages: Vec<(ContentHash, u64, u32, u32)>,
    oldest: u64,
    bits: u32,
    counts: ResemblanceCounts,
}

impl Serialize for Clusters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut urls = Vec::new();
        // The texts of a crawl are shared, so a pointer tells them apart.
        let mut places = HashMap::new();
        let mut place = |url: &Arc<str>| {
            *places.entry(url.as_ptr()).or_insert_with(|| {
                urls.push(Arc::clone(url));
                (urls.len() - 1) as u32
            })
        };
        let leaders = self.leaders.iter();
        let leaders = leaders.map(|leader| (leader.simhash, leader.cluster.number, place(&leader.cluster.first)));
        let leaders = leaders.collect();
        let pages = self.in_order.iter().filter_map(|content| {
            let Original { url, cluster } = self.exact.get(content)?;
            Some((*content, cluster.number, place(&cluster.first), place(url)))
        });
        let pages = pages.collect();
        let (oldest, bits, counts) = (self.oldest, self.bits, self.counts);
        Stored {
            urls,
            leaders,
            pages,
            oldest,
            bits,
            counts,
        }
        .serialize(serializer)
    }
}

impl TryFrom<Stored> for Clusters {
    type Error = &'static str;

    /// Reads clusters of any number of pages: [`set_room`](Clusters::set_room) sets how many are remembered.
    fn try_from(stored: Stored) -> Result<Self, Self::Error> {
        let ResemblanceCounts {
            compared,
            exact,
            near,
            forgotten,
            cut_short,
        } = stored.counts;
        let numbers = [stored.oldest, compared, exact, near, forgotten, cut_short];
        let are_in_order = stored.leaders.is_sorted_by(|(_, one, _), (_, next, _)| one < next);
        if stored.bits > BLOCK_BITS || numbers.iter().any(|number| *number > MOST) || !are_in_order {
            return Err("a number that no crawl has");
        }
        let url = |place: u32| stored.urls.get(place as usize).cloned().ok_or("a URL is missing");
        let cluster = |number, first| {
            let first = url(first)?;
            Ok::<_, &str>(Arc::new(Cluster { number, first }))
        };
        let mut clusters = Self {
            oldest: stored.oldest,
            bits: stored.bits,
            counts: stored.counts,
            ..Self::new(stored.pages.len())
        };
        for (simhash, number, first) in stored.leaders {
            clusters.leaders.push_back(Leader {
                simhash,
                cluster: cluster(number, first)?,
                before: [0; BLOCKS],
            });
        }
        for (content, number, first, own) in stored.pages {
            let original = Original {
                url: url(own)?,
                cluster: cluster(number, first)?,
            };
            clusters.in_order.push_back(content);
            clusters.exact.insert(content, original);
        }
        if !clusters.leaders.is_empty() {
            clusters.rebuild_tables();
        }
        Ok(clusters)
    }
}

#[cfg(test)]
mod tests;
