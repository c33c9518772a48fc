//! Which pages repeat which: exact duplicates by their hash, near-duplicates by their simhash.
//!
//! The first page of its kind leads a cluster; a later one joins the cluster of the first leader found within
//! [`NEAR_BITS`](crate::fingerprint::NEAR_BITS) bits. Two numbers that differ in at most three bits are equal in one of
//! four blocks of sixteen bits, so leaders are found through four tables by block (Manku et al., WWW 2007, section 3,
//! with blocks as keys).
//!
//! The latest pages and leaders are kept, so many of each; a page whose original is older is not marked. A look-up goes
//! through at most [`MOST_LOOKED_AT`] leaders per block, the latest first: pages made to share a block cannot make it
//! slow.

use std::collections::{HashMap, VecDeque};
use std::hint::black_box;
use std::sync::Arc;

use crate::fingerprint::{ContentHash, Fingerprint, SimHash};

/// Leaders that are looked at for one block of one page.
pub const MOST_LOOKED_AT: usize = 256;

const BLOCKS: usize = 4;
const BLOCK_BITS: u32 = 16;

/// Bits of a block that the tables tell apart at first. With each further bit there is room for twice as many leaders.
const FIRST_BITS: u32 = 10;

/// What a page repeats.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repeated {
    /// The first page with the same bytes.
    pub duplicate_of: Option<Arc<str>>,
    /// The first page of its cluster. An exact duplicate is in the cluster of its original.
    pub near_duplicate_of: Option<Arc<str>>,
    /// The number of that cluster.
    pub cluster: Option<u64>,
}

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct DuplicateCounts {
    /// Pages that were compared.
    pub compared: u64,
    /// Pages with the same bytes as an earlier one.
    pub exact: u64,
    /// Further pages with nearly the same text as an earlier one.
    pub near: u64,
    /// Pages that had to be forgotten to make room.
    pub forgotten: u64,
    /// Look-ups that ended before all candidates were compared.
    pub cut_short: u64,
}

/// The pages so far.
///
/// Cost: up to about 200 bytes and the URL per page kept, and tables of 16 to 32 bytes per leader, 1 MiB at the most.
#[derive(Debug)]
pub struct Duplicates {
    room: usize,
    exact: HashMap<ContentHash, Known>,
    in_order: VecDeque<ContentHash>,
    leaders: VecDeque<Leader>,
    /// The number of the oldest leader that is kept; leaders are numbered from 1 on.
    oldest: u64,
    /// For each block and each of its values, the number of the latest leader with it; 0 for none. Of numbers the low bits are
    /// kept: one that comes round again leads to a leader that is not near, and one leader of 2³² is not found. Values
    /// with the same low `bits` share a place.
    latest: [Vec<u32>; BLOCKS],
    bits: u32,
    counts: DuplicateCounts,
}

/// A page that can be repeated exactly.
#[derive(Debug)]
struct Known {
    url: Arc<str>,
    cluster: Cluster,
}

#[derive(Debug, Clone)]
struct Cluster {
    number: u64,
    first: Arc<str>,
}

/// The first page of a cluster.
#[derive(Debug)]
struct Leader {
    simhash: SimHash,
    cluster: Cluster,
    /// For each block, the number of the leader before at the same place.
    before: [u32; BLOCKS],
}

impl Duplicates {
    /// Remembers the latest `room` pages.
    pub fn new(room: usize) -> Self {
        Self {
            room: room.max(1),
            exact: HashMap::new(),
            in_order: VecDeque::new(),
            leaders: VecDeque::new(),
            oldest: 1,
            latest: [const { Vec::new() }; BLOCKS],
            bits: FIRST_BITS,
            counts: DuplicateCounts::default(),
        }
    }

    /// Says what a page repeats, and remembers it.
    pub fn place(&mut self, url: &str, fingerprint: Fingerprint) -> Repeated {
        if fingerprint == Fingerprint::default() {
            return Repeated::default();
        }
        self.counts.compared += 1;
        let exact = fingerprint.content.and_then(|content| self.exact.get(&content));
        if let Some(known) = exact {
            self.counts.exact += 1;
            return Repeated {
                duplicate_of: Some(Arc::clone(&known.url)),
                near_duplicate_of: Some(Arc::clone(&known.cluster.first)),
                cluster: Some(known.cluster.number),
            };
        }
        let url: Arc<str> = url.into();
        let found = fingerprint.text.and_then(|simhash| self.find(simhash));
        let cluster = found.clone().unwrap_or_else(|| Cluster {
            number: self.counts.compared,
            first: Arc::clone(&url),
        });
        if let Some(simhash) = fingerprint.text.filter(|_| found.is_none()) {
            self.lead(simhash, cluster.clone());
        }
        if let Some(content) = fingerprint.content {
            self.remember(content, Known { url, cluster });
        }
        self.counts.near += u64::from(found.is_some());
        Repeated {
            duplicate_of: None,
            cluster: found.as_ref().map(|cluster| cluster.number),
            near_duplicate_of: found.map(|cluster| cluster.first),
        }
    }

    /// Returns what was counted.
    pub fn counts(&self) -> DuplicateCounts {
        self.counts
    }

    fn find(&mut self, simhash: SimHash) -> Option<Cluster> {
        for (block, latest) in self.latest.iter().enumerate() {
            let mut number = latest.get(self.place_of(simhash, block)).copied().unwrap_or_default();
            let mut looked_at = 0;
            while let Some(leader) = self.leader(number) {
                if value(leader.simhash, block) == value(simhash, block) && leader.simhash.is_near(simhash) {
                    return Some(leader.cluster.clone());
                }
                looked_at += 1;
                if looked_at == MOST_LOOKED_AT {
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

    fn lead(&mut self, simhash: SimHash, cluster: Cluster) {
        if self.leaders.len() == self.room {
            self.leaders.pop_front();
            self.oldest += 1;
        }
        if self.leaders.is_empty() {
            self.lay_out();
        } else if self.leaders.len() >> self.bits > 0 && self.bits < BLOCK_BITS {
            self.bits += 1;
            self.lay_out();
        }
        let before = self.enter(simhash, self.leaders.len());
        self.leaders.push_back(Leader {
            simhash,
            cluster,
            before,
        });
    }

    /// Makes the tables anew, for as many bits as they have now.
    fn lay_out(&mut self) {
        // Written, not just set aside as zeros: what is read before it is written is mapped twice.
        self.latest = [(); BLOCKS].map(|()| (0..1 << self.bits).map(|_| black_box(0)).collect());
        for at in 0..self.leaders.len() {
            if let Some(simhash) = self.leaders.get(at).map(|leader| leader.simhash) {
                let before = self.enter(simhash, at);
                self.leaders[at].before = before;
            }
        }
    }

    /// Makes a leader the latest one at its places; the numbers of those that were.
    fn enter(&mut self, simhash: SimHash, at: usize) -> [u32; BLOCKS] {
        let number = (self.oldest + at as u64) as u32;
        std::array::from_fn(|block| {
            let place = self.place_of(simhash, block);
            let latest = self.latest[block].get_mut(place);
            latest.map_or(0, |latest| std::mem::replace(latest, number))
        })
    }

    /// Where a block of a simhash stands in its table.
    fn place_of(&self, simhash: SimHash, block: usize) -> usize {
        usize::from(value(simhash, block)) & ((1 << self.bits) - 1)
    }

    fn remember(&mut self, content: ContentHash, known: Known) {
        if self.in_order.len() == self.room
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.exact.remove(&oldest);
            self.counts.forgotten += 1;
        }
        self.in_order.push_back(content);
        self.exact.insert(content, known);
    }
}

/// The bits of a block.
fn value(simhash: SimHash, block: usize) -> u16 {
    (simhash.bits() >> (BLOCK_BITS as usize * block)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of its own bytes with this simhash.
    fn page(n: u64, simhash: u64) -> Fingerprint {
        Fingerprint {
            content: ContentHash::of(&n.to_le_bytes()),
            text: Some(SimHash::from(simhash)),
        }
    }

    #[test]
    fn every_difference_of_three_bits_is_found_and_none_of_four() {
        let mut duplicates = Duplicates::new(1_000_000);
        let first = 0x0123_4567_89AB_CDEF;
        duplicates.place("first", page(0, first));
        let mut n = 0;
        for a in 0..64 {
            for b in a + 1..64 {
                for c in b + 1..64 {
                    n += 1;
                    let flipped = first ^ (1 << a) ^ (1 << b) ^ (1 << c);
                    let repeated = duplicates.place("near", page(n, flipped));
                    assert_eq!(repeated.near_duplicate_of.as_deref(), Some("first"));
                    assert_eq!((repeated.duplicate_of, repeated.cluster), (None, Some(1)));
                }
            }
        }
        let far = duplicates.place("far", page(u64::MAX, first ^ 0x8001_0000_0001_8000));
        assert_eq!(far, Repeated::default());
        assert_eq!((duplicates.counts().near, duplicates.counts().exact), (n, 0));
    }

    #[test]
    fn an_exact_duplicate_is_told_with_its_original_and_the_leader_of_that() {
        let mut duplicates = Duplicates::new(100);
        duplicates.place("first", page(1, 0b000));
        duplicates.place("second", page(2, 0b011));
        let repeated = duplicates.place("third", page(2, 0b011));
        assert_eq!(repeated.duplicate_of.as_deref(), Some("second"));
        assert_eq!(repeated.near_duplicate_of.as_deref(), Some("first"));
        assert_eq!(repeated.cluster, Some(1));
    }

    #[test]
    fn the_oldest_is_forgotten_and_counted() {
        let mut duplicates = Duplicates::new(10);
        let spread = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for n in 0..1_000 {
            assert_eq!(duplicates.place("page", page(n, spread(n))), Repeated::default());
        }
        assert!(duplicates.place("page", page(999, spread(999))).duplicate_of.is_some());
        assert!(
            duplicates
                .place("page", page(5_000, spread(995)))
                .near_duplicate_of
                .is_some()
        );
        assert_eq!(duplicates.place("page", page(0, spread(0))), Repeated::default());
        assert!(duplicates.counts().forgotten > 980);
        assert!(duplicates.leaders.len() <= 10 && duplicates.exact.len() <= 10 && duplicates.in_order.len() <= 10);
    }

    #[test]
    fn a_leader_is_found_however_many_come_after_it() {
        let mut duplicates = Duplicates::new(1_000_000);
        let spread = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let leaders = 70_000;
        for n in 0..leaders {
            let repeated = duplicates.place(&n.to_string(), page(n, spread(n)));
            assert_eq!(repeated, Repeated::default(), "{n} is far from all before");
        }
        for n in 0..leaders {
            let near = duplicates.place("near", page(leaders + n, spread(n) ^ 0x8000_0000_0001_0001));
            assert_eq!(near.near_duplicate_of, Some(n.to_string().into()));
        }
        assert_eq!((duplicates.bits, duplicates.counts().cut_short), (BLOCK_BITS, 0));
    }

    #[test]
    fn the_leader_that_is_found_does_not_depend_on_how_many_there_are() {
        let asked = 0x1111_1111_1111_1111;
        let leaders = [("a", asked ^ 0x7_0000), ("b", asked ^ 0x8000)];
        for others in [0, 3_000] {
            let mut duplicates = Duplicates::new(1_000_000);
            for (name, simhash) in leaders {
                duplicates.place(name, page(simhash, simhash));
            }
            for n in 0..others {
                duplicates.place("other", page(n, n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
            }
            let found = duplicates.place("asked", page(u64::MAX, asked));
            assert_eq!(found.near_duplicate_of.as_deref(), Some("a"), "among {others} others");
        }
    }

    #[test]
    fn pages_made_to_share_their_blocks_are_looked_at_so_far_and_no_further() {
        let mut duplicates = Duplicates::new(100_000);
        let many = 20_000_u64;
        for n in 0..many {
            // Far from each other in the upper blocks, one value in the lowest.
            let upper = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) << 16;
            duplicates.place("page", page(1_000 + n, upper | 0x1234));
        }
        assert!(duplicates.counts().cut_short > many / 2, "{:?}", duplicates.counts());
    }

    #[test]
    fn a_page_without_bytes_repeats_nothing() {
        let mut duplicates = Duplicates::new(10);
        for _ in 0..2 {
            assert_eq!(duplicates.place("empty", Fingerprint::default()), Repeated::default());
        }
        assert_eq!(duplicates.counts().compared, 0);
    }
}
