//! The sieve of the crate, which counts what it accepts and loses, without a queue.

use std::convert::Infallible;

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
