//! Clusters of pages: exact duplicates by their content hash, near-duplicates by their simhash.
//!
//! The first page of a cluster is its leader. A later page joins the cluster of the first leader within
//! [`NEAR_BITS`](crate::fingerprint::NEAR_BITS) bits. Two numbers that differ in at most three bits are equal in one of four blocks of
//! sixteen bits, so four tables by block find the leaders (Manku et al., WWW 2007, section 3, with blocks as keys).
//!
//! Only the latest pages and leaders are kept, up to a fixed number: a page whose original is older is not recognized. A look-up
//! compares at most [`MAX_COMPARED`] leaders per block, the latest first, so that crafted pages with one block cannot slow it down.
//!
//! The result depends on the pages and their order only. All state is plain data that can be stored. The random seed of the hash map
//! has no effect, because the map is used for look-ups only.

mod stored;

use std::collections::{HashMap, VecDeque};
use std::hint::black_box;
use std::sync::Arc;

use crate::fingerprint::{ContentHash, Fingerprint, SimHash};

/// Leaders that are compared with a page for each of its blocks.
const MAX_COMPARED: usize = 256;

const BLOCKS: usize = 4;
const BLOCK_BITS: u32 = 16;

/// Bits of a block that index the tables at first. Each further bit doubles the room for leaders.
const FIRST_BITS: u32 = 10;

/// The earlier pages that a page is similar to, if any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resemblance {
    /// The URL of the first page with the same bytes.
    pub duplicate_of: Option<Arc<str>>,
    /// The URL of the first page of its cluster. An exact duplicate is in the cluster of its original.
    pub near_duplicate_of: Option<Arc<str>>,
    /// The number of that cluster.
    pub cluster: Option<u64>,
}

/// Counts of compared pages: exact duplicates and near-duplicates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ResemblanceCounts {
    /// Pages that were compared.
    pub compared: u64,
    /// Pages with the same bytes as an earlier page.
    pub exact: u64,
    /// Pages with different bytes, but nearly the same text as an earlier page.
    pub near: u64,
    /// Content hashes that were evicted for later ones.
    pub forgotten: u64,
    /// Look-ups that stopped before all leaders of a block were compared.
    pub cut_short: u64,
}

/// The latest pages, in clusters.
///
/// Memory: up to about 200 bytes and the URL per page kept, and tables of 16 to 32 bytes per leader, 1 MiB at the most.
#[derive(Debug, serde::Deserialize)]
#[serde(try_from = "stored::Stored")]
pub(crate) struct Clusters {
    room: usize,
    exact: HashMap<ContentHash, Original>,
    in_order: VecDeque<ContentHash>,
    leaders: VecDeque<Leader>,
    /// The number of the oldest leader that is kept; leaders are numbered from 1 on.
    oldest: u64,
    /// For each block and each of its values, the number of the latest leader with that value; 0 for none. Only the low 32 bits of a
    /// number are kept: after a wrap-around it points to a leader that is not near, and one leader in 2³² is not found. Values with
    /// the same low `bits` share a slot.
    latest: [Vec<u32>; BLOCKS],
    bits: u32,
    counts: ResemblanceCounts,
}

/// The first page with its bytes.
#[derive(Debug)]
struct Original {
    url: Arc<str>,
    cluster: Arc<Cluster>,
}

#[derive(Debug)]
struct Cluster {
    number: u64,
    first: Arc<str>,
}

/// The first page of a cluster. A look-up reads many, so it takes half a line of the processor's cache.
#[derive(Debug)]
struct Leader {
    simhash: SimHash,
    cluster: Arc<Cluster>,
    /// For each block, the number of the previous leader in the same slot.
    before: [u32; BLOCKS],
}

impl Clusters {
    pub(crate) fn new(room: usize) -> Self {
        Self {
            room: room.max(1),
            exact: HashMap::new(),
            in_order: VecDeque::new(),
            leaders: VecDeque::new(),
            oldest: 1,
            latest: [const { Vec::new() }; BLOCKS],
            bits: FIRST_BITS,
            counts: ResemblanceCounts::default(),
        }
    }

    pub(crate) fn set_room(&mut self, room: usize) {
        self.room = room.max(1);
    }

    pub(crate) fn bytes(&self) -> u64 {
        300 * (self.in_order.len() + self.leaders.len()) as u64
    }

    /// Finds the earlier pages that a page is similar to, and remembers it.
    ///
    /// A page with an empty fingerprint is similar to no page, and is neither counted nor remembered.
    pub(crate) fn classify(&mut self, url: &str, fingerprint: Fingerprint) -> Resemblance {
        if fingerprint == Fingerprint::default() {
            return Resemblance::default();
        }
        self.counts.compared += 1;
        let exact = fingerprint.content.and_then(|content| self.exact.get(&content));
        if let Some(known) = exact {
            self.counts.exact += 1;
            return Resemblance {
                duplicate_of: Some(Arc::clone(&known.url)),
                near_duplicate_of: Some(Arc::clone(&known.cluster.first)),
                cluster: Some(known.cluster.number),
            };
        }
        let url: Arc<str> = url.into();
        let found = fingerprint.text.and_then(|simhash| self.find(simhash));
        let cluster = found.clone().unwrap_or_else(|| {
            Arc::new(Cluster {
                number: self.counts.compared,
                first: Arc::clone(&url),
            })
        });
        if let Some(simhash) = fingerprint.text.filter(|_| found.is_none()) {
            self.add_leader(simhash, Arc::clone(&cluster));
        }
        if let Some(content) = fingerprint.content {
            self.remember(content, Original { url, cluster });
        }
        self.counts.near += u64::from(found.is_some());
        Resemblance {
            duplicate_of: None,
            cluster: found.as_ref().map(|cluster| cluster.number),
            near_duplicate_of: found.map(|cluster| Arc::clone(&cluster.first)),
        }
    }

    pub(crate) fn counts(&self) -> ResemblanceCounts {
        self.counts
    }

    fn find(&mut self, simhash: SimHash) -> Option<Arc<Cluster>> {
        for (block, latest) in self.latest.iter().enumerate() {
            let mut number = latest.get(self.place_of(simhash, block)).copied().unwrap_or_default();
            let mut compared = 0;
            while let Some(leader) = self.leader(number) {
                if value(leader.simhash, block) == value(simhash, block) && leader.simhash.is_near(simhash) {
                    return Some(Arc::clone(&leader.cluster));
                }
                compared += 1;
                if compared == MAX_COMPARED {
                    self.counts.cut_short += 1;
                    break;
                }
                number = leader.before[block];
            }
        }
        None
    }

    /// The leader of a number, unless it was forgotten.
    fn leader(&self, number: u32) -> Option<&Leader> {
        let at = number.wrapping_sub(self.oldest as u32);
        self.leaders.get(usize::try_from(at).ok()?).filter(|_| number != 0)
    }

    fn add_leader(&mut self, simhash: SimHash, cluster: Arc<Cluster>) {
        // More than one, if the room is smaller than before.
        while self.leaders.len() >= self.room {
            self.leaders.pop_front();
            self.oldest += 1;
        }
        if self.leaders.is_empty() {
            self.rebuild_tables();
        } else if self.leaders.len() >> self.bits > 0 && self.bits < BLOCK_BITS {
            self.bits += 1;
            self.rebuild_tables();
        }
        let before = self.insert_into_tables(simhash, self.leaders.len());
        self.leaders.push_back(Leader {
            simhash,
            cluster,
            before,
        });
    }

    /// Rebuilds the tables with `bits` bits.
    fn rebuild_tables(&mut self) {
        // Written explicitly: a zero page that is read before it is written is mapped twice.
        self.latest = [(); BLOCKS].map(|()| (0..1 << self.bits).map(|_| black_box(0)).collect());
        for at in 0..self.leaders.len() {
            if let Some(simhash) = self.leaders.get(at).map(|leader| leader.simhash) {
                let before = self.insert_into_tables(simhash, at);
                self.leaders[at].before = before;
            }
        }
    }

    fn insert_into_tables(&mut self, simhash: SimHash, at: usize) -> [u32; BLOCKS] {
        let number = (self.oldest + at as u64) as u32;
        std::array::from_fn(|block| {
            let place = self.place_of(simhash, block);
            let latest = self.latest[block].get_mut(place);
            latest.map_or(0, |latest| std::mem::replace(latest, number))
        })
    }

    fn place_of(&self, simhash: SimHash, block: usize) -> usize {
        usize::from(value(simhash, block)) & ((1 << self.bits) - 1)
    }

    fn remember(&mut self, content: ContentHash, known: Original) {
        while self.in_order.len() >= self.room
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.exact.remove(&oldest);
            self.counts.forgotten += 1;
        }
        self.in_order.push_back(content);
        self.exact.insert(content, known);
    }
}

fn value(simhash: SimHash, block: usize) -> u16 {
    (simhash.bits() >> (BLOCK_BITS as usize * block)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of its own bytes with this simhash.
    fn page(n: u64, simhash: u64) -> Fingerprint {
        Fingerprint::new(Some(ContentHash::from(u128::from(n))), Some(SimHash::from(simhash)))
    }

    #[test]
    fn every_difference_of_three_bits_is_found_and_none_of_four() {
        let mut clusters = Clusters::new(1_000_000);
        let first = 0x0123_4567_89AB_CDEF;
        clusters.classify("first", page(0, first));
        let mut n = 0;
        for a in 0..64 {
            for b in a + 1..64 {
                for c in b + 1..64 {
                    n += 1;
                    let flipped = first ^ (1 << a) ^ (1 << b) ^ (1 << c);
                    let resemblance = clusters.classify("near", page(n, flipped));
                    assert_eq!(resemblance.near_duplicate_of.as_deref(), Some("first"));
                    assert_eq!((resemblance.duplicate_of, resemblance.cluster), (None, Some(1)));
                }
            }
        }
        let far = clusters.classify("far", page(u64::MAX, first ^ 0x8001_0000_0001_8000));
        assert_eq!(far, Resemblance::default());
        assert_eq!((clusters.counts().near, clusters.counts().exact), (n, 0));
    }

    #[test]
    fn an_exact_duplicate_is_in_the_cluster_of_its_original() {
        let mut clusters = Clusters::new(100);
        clusters.classify("first", page(1, 0b000));
        clusters.classify("second", page(2, 0b011));
        let resemblance = clusters.classify("third", page(2, 0b011));
        assert_eq!(resemblance.duplicate_of.as_deref(), Some("second"));
        assert_eq!(resemblance.near_duplicate_of.as_deref(), Some("first"));
        assert_eq!(resemblance.cluster, Some(1));
    }

    #[test]
    fn the_oldest_is_forgotten_and_counted() {
        let mut clusters = Clusters::new(10);
        let spread = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for n in 0..1_000 {
            assert_eq!(clusters.classify("page", page(n, spread(n))), Resemblance::default());
        }
        assert!(clusters.classify("page", page(999, spread(999))).duplicate_of.is_some());
        assert!(
            clusters
                .classify("page", page(5_000, spread(995)))
                .near_duplicate_of
                .is_some()
        );
        assert_eq!(clusters.classify("page", page(0, spread(0))), Resemblance::default());
        assert!(clusters.counts().forgotten > 980);
        assert!(clusters.leaders.len() <= 10 && clusters.exact.len() <= 10 && clusters.in_order.len() <= 10);
    }

    #[test]
    fn a_leader_is_found_however_many_come_after_it() {
        let mut clusters = Clusters::new(1_000_000);
        let spread = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let leaders = 70_000;
        for n in 0..leaders {
            let resemblance = clusters.classify(&n.to_string(), page(n, spread(n)));
            assert_eq!(resemblance, Resemblance::default(), "{n} is far from all before");
        }
        for n in 0..leaders {
            let near = clusters.classify("near", page(leaders + n, spread(n) ^ 0x8000_0000_0001_0001));
            assert_eq!(near.near_duplicate_of, Some(n.to_string().into()));
        }
        assert_eq!((clusters.bits, clusters.counts().cut_short), (BLOCK_BITS, 0));
    }

    #[test]
    fn the_leader_that_is_found_does_not_depend_on_how_many_there_are() {
        let asked = 0x1111_1111_1111_1111;
        let leaders = [("a", asked ^ 0x7_0000), ("b", asked ^ 0x8000)];
        for others in [0, 3_000] {
            let mut clusters = Clusters::new(1_000_000);
            for (name, simhash) in leaders {
                clusters.classify(name, page(simhash, simhash));
            }
            for n in 0..others {
                clusters.classify("other", page(n, n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
            }
            let found = clusters.classify("asked", page(u64::MAX, asked));
            assert_eq!(found.near_duplicate_of.as_deref(), Some("a"), "among {others} others");
        }
    }

    #[test]
    fn of_pages_made_to_share_a_block_only_the_latest_are_compared() {
        let mut clusters = Clusters::new(100_000);
        let many = 20_000_u64;
        for n in 0..many {
            // Far from each other in the upper blocks, one value in the lowest.
            let upper = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) << 16;
            clusters.classify("page", page(1_000 + n, upper | 0x1234));
        }
        assert!(clusters.counts().cut_short > many / 2, "{:?}", clusters.counts());
    }

    #[test]
    fn a_page_with_an_empty_fingerprint_resembles_nothing() {
        let mut clusters = Clusters::new(10);
        for _ in 0..2 {
            assert_eq!(
                clusters.classify("empty", Fingerprint::default()),
                Resemblance::default()
            );
        }
        assert_eq!(clusters.counts().compared, 0);
    }
}
