//! A store that fails when told.

use std::cell::Cell;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::store::{Batch, PageOrder, Space, Store, StoreError, Visit, VisitUntil};

/// How a [`FailingStore`] fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    Full,
    Io,
    /// The error comes after the commit, which was applied.
    IoAfterwards,
}

/// A store whose n-th call fails; calls are commits, ranges and last keys. After a failed commit, every call
/// answers [`StoreError::Failed`].
#[derive(Debug)]
pub(super) struct FailingStore<S> {
    inner: S,
    calls_before: Cell<u64>,
    failure: Failure,
    failed: bool,
}

impl<S: Store> FailingStore<S> {
    /// Fails once, at the call after `calls_before`.
    pub(super) fn new(inner: S, calls_before: u64, failure: Failure) -> Self {
        Self {
            inner,
            calls_before: Cell::new(calls_before),
            failure,
            failed: false,
        }
    }

    fn call(&self) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::Failed);
        }
        match self.calls_before.get() {
            u64::MAX => Ok(()),
            0 => {
                self.calls_before.set(u64::MAX);
                let path = PathBuf::from("a failing store");
                Err(match self.failure {
                    Failure::Full => StoreError::Full { path },
                    Failure::Io | Failure::IoAfterwards => StoreError::Io {
                        path,
                        source: io::Error::other("told to fail"),
                    },
                })
            }
            calls => {
                self.calls_before.set(calls - 1);
                Ok(())
            }
        }
    }
}

impl<S: Store> Store for FailingStore<S> {
    fn commit(&mut self, batch: &Batch, sync: bool) -> Result<(), StoreError> {
        let done = match self.call() {
            Err(error @ StoreError::Io { .. }) if self.failure == Failure::IoAfterwards => {
                self.inner.commit(batch, sync)?;
                Err(error)
            }
            called => called.and_then(|()| self.inner.commit(batch, sync)),
        };
        self.failed |= done.is_err();
        done
    }

    fn range(&self, space: Space, keys: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.call()?;
        self.inner.range(space, keys, visit)
    }

    fn last(&self, space: Space, at_or_below: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        self.call()?;
        self.inner.last(space, at_or_below)
    }

    fn pages(&self, order: PageOrder, from: (u64, u64), visit: &mut VisitUntil<'_>) -> Result<(), StoreError> {
        self.call()?;
        self.inner.pages(order, from, visit)
    }

    fn last_key(&self, space: Space) -> Option<u64> {
        self.inner.last_key(space)
    }
}
