//! Saving and resuming the filter of a sieve.

use std::io::{self, Read, Write};

use super::Sieve;
use crate::filter::Filter;
use crate::loss::drops_per_accepted;
use crate::queue::Queue;
use crate::snapshot::{Snapshot, SnapshotCounts, SnapshotError};

impl<F: Filter + Snapshot, Q: Queue> Sieve<F, Q> {
    /// Writes the filter and its counts in the format of [`snapshot`](crate::snapshot).
    ///
    /// **The queue is not part of it.** Save the queued keys, too, and those that were popped and are not done: a key that is in the
    /// filter, but in no queue, is never visited. The [`guide`](crate::guide#save-and-resume) has an example with a file.
    ///
    /// The file contains the seed: whoever can read the file knows it. It does not contain the key of
    /// [`Hashing::Hardened`](crate::Hashing::Hardened).
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::write_to`].
    pub fn save_filter(&self, writer: &mut impl Write) -> io::Result<()> {
        let counts = SnapshotCounts {
            accepted: self.counters.accepted,
            lost: self.counters.loss.lost(),
        };
        self.filter.write_to(&counts, writer)
    }

    /// Reads a filter of at most `limit` bytes that [`save_filter`](Self::save_filter) wrote, and puts it in front of a queue.
    ///
    /// - `queue` may contain the items that were queued; if they follow the filter in the file, give an empty one, and
    ///   [`requeue`](Self::requeue) them.
    /// - `secret` is the key of the hardened hash; other hashes ignore it.
    /// - The reader stops after the last byte of the filter. What follows is not checked.
    /// - The counts of accepted and lost keys continue, and levels that were logged are not logged again. Those of seen and refused items
    ///   begin anew, unless you save the [`counters`](Self::counters), too, and restore them by [`with_counters`](Self::with_counters).
    /// - The policy is not part of the file: set it by [`on_saturation`](Self::on_saturation). The default is
    ///   [`OnSaturation::Warn`](crate::OnSaturation::Warn). The kind of the filter is part of it: one of fixed size never grows, whatever
    ///   policy you set.
    /// - A queue of items of your own is named in the type: `Sieve::<SeenSet, VecDeque<Item>>::resume(..)`.
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::read_from`].
    ///
    /// ```
    /// use std::collections::VecDeque;
    /// use sieve::Sieve;
    ///
    /// let mut to_visit = Sieve::new(1000)?;
    /// to_visit.push("https://example.com/");
    /// let mut file = Vec::new();
    /// to_visit.save_filter(&mut file)?;
    ///
    /// let limit = file.len() as u64;
    /// let mut again: Sieve = Sieve::resume(&mut file.as_slice(), limit, None, VecDeque::new())?;
    /// assert!(!again.push("https://example.com/"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resume(
        reader: &mut impl Read,
        limit: u64,
        secret: Option<[u8; 16]>,
        queue: Q,
    ) -> Result<Self, SnapshotError> {
        let (filter, counts) = F::read_from(reader, limit, secret)?;
        Ok(Self::from_parts(filter, queue).with_snapshot_counts(&counts))
    }
}

impl<F: Filter, Q: Queue> Sieve<F, Q> {
    /// Sets the counts of the keys that are in a filter that was read, or in a union. [`with_counters`](Self::with_counters) sets all counts.
    #[must_use]
    pub fn with_snapshot_counts(mut self, counts: &SnapshotCounts) -> Self {
        let (filter, load) = (&self.filter, self.filter.load());
        self.counters.accepted = counts.accepted;
        self.counters.loss.resume(counts.lost, drops_per_accepted(load.rate));
        let saturation = self.counters.saturation(load);
        self.counters.watch.resume(&saturation, |keys| filter.ones_above(keys));
        self
    }
}
