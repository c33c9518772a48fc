//! A store in memory, for tests.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{Batch, Change, PageOrder, Space, Store, StoreError, Visit, VisitUntil};
use crate::stored_page::StoredPage;

/// A store in memory. A clone is a copy of all of it, as a crash at this moment would leave it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MemoryStore {
    spaces: [BTreeMap<u64, Vec<u8>>; Space::ALL.len()],
}

impl MemoryStore {
    /// The values of a space.
    pub(crate) fn space(&self, space: Space) -> &BTreeMap<u64, Vec<u8>> {
        &self.spaces[space as usize]
    }

    pub(crate) fn apply(&mut self, batch: &Batch) {
        for change in &batch.changes {
            match change {
                Change::Put(space, key, value) => {
                    self.spaces[*space as usize].insert(*key, value.clone());
                }
                Change::Delete(space, keys) => self.spaces[*space as usize].retain(|key, _| !keys.contains(key)),
            }
        }
    }
}

impl Store for MemoryStore {
    fn commit(&mut self, batch: &Batch, _sync: bool) -> Result<(), StoreError> {
        self.apply(batch);
        Ok(())
    }

    fn range(&self, space: Space, keys: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut found = self.space(space).range(keys);
        found.try_for_each(|(key, value)| visit(*key, value.clone()))
    }

    fn last(&self, space: Space, at_or_below: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        let found = self.space(space).range(..=at_or_below).next_back();
        Ok(found.map(|(key, value)| (*key, value.clone())))
    }

    fn pages(&self, order: PageOrder, from: (u64, u64), visit: &mut VisitUntil<'_>) -> Result<(), StoreError> {
        let mut pages = BTreeMap::new();
        for (number, bytes) in self.space(Space::Page) {
            let Ok(page) = postcard::from_bytes::<StoredPage>(bytes) else {
                continue;
            };
            let (failed, at) = (page.end.failed_unanswered(), (page.saved_in, *number));
            let place = match order {
                PageOrder::Saved => Some((false, at)),
                PageOrder::Failed => failed.map(|is_unanswered| (is_unanswered, at)),
                PageOrder::Unanswered => failed.filter(|is_unanswered| *is_unanswered).map(|_| (true, at)),
                PageOrder::Due => page.next_visit.map(|time| (false, (time.as_millis(), *number))),
            };
            let place = place.filter(|(_, at)| *at >= from);
            pages.extend(place.map(|place| (place, bytes)));
        }
        for ((_, (_, number)), bytes) in pages {
            if visit(number, bytes.clone())?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn last_key(&self, space: Space) -> Option<u64> {
        self.space(space).keys().next_back().copied()
    }
}
