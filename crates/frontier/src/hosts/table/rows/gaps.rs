//! Rows of a copy with gaps, and rows that are missing.

use super::{Count, Evicted, Rows};

impl Rows {
    /// Adds a row that a copy names, unless it is known.
    pub(in super::super) fn add_if_new(&mut self, row: u64, total: u32) {
        let count = self.counts.entry(row).or_insert(Count { total: 0, live: 0 });
        let more = total.saturating_sub(count.total);
        count.total += more;
        self.total += u64::from(more);
    }

    /// Counts an evicted host, also if the copy does not name its row any more.
    pub(in super::super) fn count_anyway(&mut self, evicted: &Evicted) {
        let count = self.counts.entry(evicted.row).or_insert(Count { total: 0, live: 0 });
        count.live += 1;
        self.live += 1;
        if count.live > count.total {
            count.total += 1;
            self.total += 1;
        }
    }

    /// Removes the rows of which no host is left.
    pub(in super::super) fn remove_empty(&mut self) {
        self.counts.retain(|_, count| count.live > 0);
        self.total = self.counts.values().map(|count| u64::from(count.total)).sum();
    }

    /// Forgets rows that are missing, with their hosts.
    pub(in super::super) fn drop_rows(&mut self, is_missing: &dyn Fn(u64) -> bool) {
        self.counts.retain(|row, _| !is_missing(*row));
        self.total = self.counts.values().map(|count| u64::from(count.total)).sum();
        self.live = self.counts.values().map(|count| u64::from(count.live)).sum();
    }
}
