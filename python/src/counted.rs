//! The sieve of the crate, which counts what it accepts and loses, without a queue.

use std::convert::Infallible;

use sieve::snapshot::SnapshotCounts;
use sieve::{Accepts, Queue, SeenSet};

/// A queue that keeps nothing: the caller has the key.
#[derive(Clone, Copy)]
pub(crate) struct Nothing;

impl Queue for Nothing {
    fn len(&self) -> usize {
        0
    }
}

impl Accepts<&[u8]> for Nothing {
    type Refusal = Infallible;

    fn admit(&self, _: &&[u8]) -> Result<(), Infallible> {
        Ok(())
    }

    fn push(&mut self, _: &[u8]) {}

    fn admits_next(&self, _: usize) -> bool {
        true
    }
}

/// A filter with its counts.
pub(crate) type Counted = sieve::Sieve<SeenSet, Nothing>;

/// Returns a sieve of the keys of both, without a policy.
///
/// It has no count of the keys that both have accepted. So what it has accepted is the estimate of its keys less what both have lost.
///
/// # Errors
///
/// Why they have no union.
pub(crate) fn united(one: Counted, two: &Counted) -> Result<Counted, String> {
    let (before, other) = (one.saturation(), two.saturation());
    let (SeenSet::Fixed(mut filter), SeenSet::Fixed(others)) = (one.into_parts().0, two.filter()) else {
        return Err("sieves that grow have no union: make both with on_saturation=\"warn\" or \"refuse\"".into());
    };
    filter.union(others).map_err(|error| error.to_string())?;
    let lost = before.lost + other.lost;
    let accepted = (filter.estimated_len() - lost).round() as u64;
    let (least, most) = (before.accepted.max(other.accepted), before.accepted + other.accepted);
    let counts = SnapshotCounts {
        accepted: accepted.clamp(least, most),
        lost,
    };
    Ok(Counted::from_parts(SeenSet::Fixed(filter), Nothing).with_snapshot_counts(&counts))
}
