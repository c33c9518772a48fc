//! Counts of frequent keys in bounded memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Counts how often each key occurs, for a bounded number of keys.
///
/// When it is full, the smallest count is subtracted from all counts, and keys at zero are removed (J. Misra, D. Gries, "Finding
/// repeated elements", 1982). So frequent keys stay. A count is never too high, and too low by at most the sum of all counts divided
/// by the number of keys. A budget that uses it never refuses too early, and no flood of keys makes it forget a trap.
///
/// Cost: a look-up. When it is full, one pass over all keys, amortised over as many new keys.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct FrequentItems {
    // Keys in halves: a place takes 12 bytes, not 16.
    counts: HashMap<[u32; 2], u32>,
    room: usize,
    /// No count was ever higher.
    highest: u32,
}

impl FrequentItems {
    pub(crate) fn new(room: usize) -> Self {
        Self {
            counts: HashMap::new(),
            room,
            highest: 0,
        }
    }

    pub(crate) fn get(&self, key: u64) -> u32 {
        self.counts.get(&halves(key)).copied().unwrap_or_default()
    }

    pub(crate) fn highest(&self) -> u32 {
        self.highest
    }

    pub(crate) fn add(&mut self, key: u64) -> u32 {
        self.add_times(key, 1)
    }

    pub(crate) fn add_times(&mut self, key: u64, times: u32) -> u32 {
        let count = self.raise(key, times);
        self.highest = self.highest.max(count);
        count
    }

    fn raise(&mut self, key: u64, times: u32) -> u32 {
        let is_full = self.counts.len() >= self.room;
        match self.counts.entry(halves(key)) {
            Entry::Occupied(mut count) => {
                *count.get_mut() = count.get().saturating_add(times);
                *count.get()
            }
            Entry::Vacant(place) if !is_full => *place.insert(times),
            Entry::Vacant(_) => {
                let least = self.counts.values().copied().min().unwrap_or_default().min(times);
                self.counts.retain(|_, count| {
                    *count -= least;
                    *count > 0
                });
                let left = times - least;
                if left > 0 {
                    self.counts.insert(halves(key), left);
                }
                left
            }
        }
    }
}

fn halves(key: u64) -> [u32; 2] {
    [key as u32, (key >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_there_is_room_every_count_is_exact() {
        let mut items = FrequentItems::new(10);
        for round in 1..=100 {
            for key in 0..10 {
                assert_eq!(items.add(key), round);
            }
        }
        assert_eq!((items.get(3), items.get(10)), (100, 0));
    }

    #[test]
    fn a_key_with_a_higher_count_replaces_keys_with_lower_counts() {
        let mut items = FrequentItems::new(2);
        assert_eq!((items.add_times(1, 3), items.add_times(2, 5)), (3, 5));
        assert_eq!(items.add_times(3, 2), 0);
        assert_eq!((items.get(1), items.get(2), items.get(3)), (1, 3, 0));
        assert_eq!(items.add_times(3, 8), 7);
        assert_eq!((items.get(1), items.get(2), items.get(3)), (0, 2, 7));
    }

    #[test]
    fn a_frequent_key_stays_among_millions_that_occur_once() {
        let (room, rounds) = (1_000, 1_000_000);
        let mut items = FrequentItems::new(room);
        for round in 0..rounds {
            items.add(u64::MAX);
            items.add(round);
            assert!(items.counts.len() <= room);
        }
        let count = u64::from(items.get(u64::MAX));
        assert!(count <= rounds);
        assert!(count >= rounds - 2 * rounds / room as u64, "{count}");
    }
}
