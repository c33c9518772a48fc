//! Clusters as a checkpoint has them: each URL once, without what it shares with the one before. The tables follow from the leaders, so
//! they are not stored.

use std::collections::{HashMap, VecDeque};
use std::iter::zip;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{BLOCK_BITS, BLOCKS, Cluster, Clusters, Leader, Original, ResemblanceCounts};
use crate::fingerprint::{ContentHash, SimHash};

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
    /// The URL of the first page of the cluster; `None` if the leader of the cluster has it.
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
        let same = zip(text.bytes(), last.bytes()).take_while(|(one, other)| one == other);
        let shared = text.floor_char_boundary(same.count());
        *last = text;
        Self {
            shared,
            rest: &text[shared..],
        }
    }

    /// Returns the text, unless the one before is too short.
    fn read(&self, last: &mut Arc<str>) -> Option<Arc<str>> {
        *last = [last.get(..self.shared)?, self.rest].concat().into();
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
        let stored = |content: &ContentHash| {
            let Original { url, cluster } = self.exact.get(content)?;
            let leader = leader_of.find(cluster.number);
            let is_of_leader = leader.is_some_and(|leader| leader.cluster.first == cluster.first);
            Some(StoredPage {
                content: content.value().to_le_bytes(),
                cluster: cluster.number,
                first: (!is_of_leader).then(|| StoredText::of(&cluster.first, last)),
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
    /// Returns `None` if the text before is too short.
    fn add_leader(&mut self, stored: &StoredLeader<'_>) -> Option<()> {
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

    /// Returns `None` if a text before is too short, or if the cluster has no leader that would have the URL.
    fn add_page(&mut self, stored: &StoredPage<'_>) -> Option<()> {
        let first = match &stored.first {
            Some(first) => first.read(&mut self.last)?,
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
        let mut reading = Reading {
            clusters: Self {
                // Of a damaged store, which a repair may read, these may be too large.
                oldest: stored.oldest.min(u64::MAX / 2),
                bits: stored.bits.min(BLOCK_BITS),
                counts: stored.counts,
                ..Self::new(stored.pages.len())
            },
            first_of: HashMap::with_capacity(stored.leaders.len()),
            last: "".into(),
        };
        let leaders = stored.leaders.iter().try_for_each(|leader| reading.add_leader(leader));
        leaders.ok_or_else(|| D::Error::custom("the URL of a leader lacks its beginning"))?;
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
mod tests {
    use super::*;
    use crate::fingerprint::Fingerprint;

    /// SplitMix64.
    fn random(number: u64) -> u64 {
        let mut word = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ word >> 31
    }

    /// New pages, pages near an earlier one or equal to it, and pages that lack one of the hashes.
    fn page(n: u64) -> (String, Fingerprint) {
        let earlier = n - random(n) % n.min(900);
        let (content, text) = match random(n + 1) % 8 {
            0 => (Some(earlier), Some(random(earlier))),
            1 | 2 => (Some(n), Some(random(earlier) ^ 1 << (n % 64) ^ 1 << (n * 7 % 64))),
            3 => (Some(n), None),
            4 => (None, Some(random(n))),
            _ => (Some(n), Some(random(n))),
        };
        let content = content.map(|content| ContentHash::from(u128::from(content) << 64 | u128::from(random(content))));
        (
            format!("http://host.example/page/{n}"),
            Fingerprint::new(content, text.map(SimHash::from)),
        )
    }

    fn bytes(clusters: &Clusters) -> Vec<u8> {
        postcard::to_allocvec(clusters).unwrap()
    }

    fn read(bytes: &[u8], room: usize) -> Clusters {
        let mut clusters: Clusters = postcard::from_bytes(bytes).unwrap();
        clusters.configure(room);
        clusters
    }

    #[test]
    fn clusters_that_were_stored_find_what_they_would_have_found() {
        // The tables grow at 1 024 leaders, and pages and leaders are forgotten from 2 000 on.
        let room = 2_000;
        let (mut kept, mut stored) = (Clusters::new(room), Clusters::new(room));
        for n in 1..8_000 {
            let (url, fingerprint) = page(n);
            assert_eq!(
                stored.classify(&url, fingerprint),
                kept.classify(&url, fingerprint),
                "page {n}"
            );
            if n % 501 == 0 {
                stored = read(&bytes(&stored), room);
                assert_eq!(bytes(&stored), bytes(&kept), "page {n}");
            }
        }
        let counts = kept.counts();
        assert_eq!(stored.counts(), counts);
        assert!(
            counts.exact > 500 && counts.near > 500 && counts.forgotten > 500,
            "{counts:?}"
        );
    }

    #[test]
    fn with_less_room_than_before_the_latest_are_remembered() {
        let mut clusters = Clusters::new(1_000);
        for n in 1..1_000 {
            let (url, fingerprint) = page(n);
            clusters.classify(&url, fingerprint);
        }
        let mut clusters = read(&bytes(&clusters), 10);
        clusters.classify(
            "new",
            Fingerprint::new(Some(ContentHash::from(1)), Some(SimHash::from(1))),
        );
        assert_eq!((clusters.exact.len(), clusters.leaders.len()), (10, 10));
        let again = clusters.classify("again", Fingerprint::new(None, Some(SimHash::from(3))));
        assert_eq!(again.near_duplicate_of.as_deref(), Some("new"));
    }

    #[test]
    fn each_url_is_stored_once() {
        let mut clusters = Clusters::new(1_000);
        let url = |n: u64| format!("{:<80}{n:20}", random(n));
        for n in 0..500 {
            let fingerprint = Fingerprint::new(Some(ContentHash::from(u128::from(n))), Some(SimHash::from(random(n))));
            clusters.classify(&url(n), fingerprint);
        }
        let stored = bytes(&clusters);
        // Of a leader 10 bytes of its simhash and 2 of its number; of a page 17 of its hash, 2 of its number and 2 marks.
        let most = 500 * (url(0).len() + 40);
        assert!(stored.len() < most, "{} bytes", stored.len());
        let again = read(&stored, 1_000);
        let is_shared = |original: &Original| Arc::ptr_eq(&original.url, &original.cluster.first);
        assert!(again.exact.values().all(is_shared), "nor is it in memory twice");
    }

    #[test]
    fn a_page_whose_first_page_is_missing_is_an_error() {
        let mut clusters = Clusters::new(10);
        clusters.classify(
            "first",
            Fingerprint::new(Some(ContentHash::from(1)), Some(SimHash::from(1))),
        );
        let mut stored = bytes(&clusters);
        assert_eq!(stored.first(), Some(&1), "the number of leaders");
        // The leader is 1 byte of a simhash, 1 of a number and 7 of a URL.
        stored.drain(1..10);
        stored[0] = 0;
        assert!(postcard::from_bytes::<Clusters>(&stored).is_err());
    }

    #[test]
    fn texts_are_stored_without_what_they_share_with_the_one_before() {
        let texts = [
            "",
            "http://é.example/",
            "http://è.example/",
            "http://è.example/a",
            "http://è.exa",
            "b",
        ];
        let mut last = "";
        let stored = texts.map(|text| StoredText::of(text, &mut last));
        // The two letters have the same first byte, which is no text.
        assert_eq!(stored.each_ref().map(|text| text.shared), [0, 0, 7, 18, 13, 0]);
        let mut last = "".into();
        let read = stored.map(|text| text.read(&mut last).unwrap());
        assert_eq!(read.each_ref().map(|text| &**text), texts);
        let after = |shared, last: &str| StoredText { shared, rest: "c" }.read(&mut last.into());
        assert_eq!(after(1, "b").as_deref(), Some("bc"));
        assert_eq!(after(2, "b"), None);
        assert_eq!(after(1, "é"), None);
    }
}
