//! A sieve's filter to a file and back, with what was counted beside it.

use std::io::{self, Read, Write};

use super::Sieve;
use crate::filter::Filter;
use crate::queue::Queue;
use crate::snapshot::{Counts, Snapshot, SnapshotError};

impl<F: Filter + Snapshot, Q: Queue> Sieve<F, Q> {
    /// Writes the filter and what was counted beside it in the format of [`snapshot`](crate::snapshot), the seed included: it is no
    /// secret from whoever may read the file, but for the key of [`Hashing::Hardened`](crate::Hashing::Hardened).
    ///
    /// **The queue is not part of it.** Save what waits as well, and what was popped and is not done yet: a key that is in the filter and
    /// in no queue is never visited. The [`guide`](crate::guide#recipes) has an example with a file.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::write_to`].
    pub fn save_filter(&self, writer: &mut impl Write) -> io::Result<()> {
        let counts = Counts {
            accepted: self.tally.accepted,
            lost: self.loss.lost(),
        };
        self.filter.write_to(&counts, writer)
    }

    /// Reads a filter that [`save_filter`](Self::save_filter) wrote, at most `limit` bytes, and puts it in front of a queue, which may
    /// hold the items that waited. The reader is left behind the filter's last byte, and what follows is not checked. The loss is counted on
    /// from where it was, and levels that were reported are not reported again. The policy is not part of the file: set it again by
    /// [`on_saturation`](Self::on_saturation), or a sieve that refused goes on under [`OnSaturation::Warn`](crate::OnSaturation::Warn). Of the [`tally`](Self::tally),
    /// only the accepted keys are.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::read_from`].
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
        let mut sieve = Self::from_parts(filter, queue);
        sieve.tally.accepted = counts.accepted;
        sieve.loss.resume(counts.lost);
        let saturation = sieve.saturation();
        sieve.watch.resume(&saturation, |keys| sieve.filter.ones_above(keys));
        Ok(sieve)
    }
}
