//! The rows of pages: what is written of them with each commit, and how one is found by its key.
//!
//! The state numbers them in the order of their first ends. A later end replaces the row; the one before is kept under the row of the journal
//! that replaced it, until a checkpoint has that one. So each way back restores it.
//!
//! Two bytes of a hash of each key are its **tag**, and some thousand tags a block. A key is looked for among the pages with its tag. Those of the
//! last pages are no block yet: they are made again when a directory is opened.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::Durable;
use crate::error::{FrontierError, OpenError};
use crate::store::{Batch, MAX_KEY, PageOrder, Space, Store, StoreError};
use crate::stored_page::StoredPage;

/// Small in tests.
const PAGES_OF_BLOCK: u64 = if cfg!(test) { 8 } else { 4096 };

/// The pages that have ended since the last commit, each with the row that it replaces.
pub(super) type EndedPages = BTreeMap<u64, (StoredPage, Option<StoredPage>)>;

/// The tags that are not in a block of the store.
#[derive(Debug, Default)]
pub(super) struct Tags {
    next_block: u64,
    tail: Vec<u8>,
}

impl Tags {
    pub(super) fn load(store: &dyn Store) -> Result<Self, StoreError> {
        let next_block = store.last_key(Space::Tag).map_or(0, |last| last + 1);
        let tail = Vec::new();
        let mut tags = Self { next_block, tail };
        store.range(Space::Page, tags.last() + 1..=MAX_KEY, &mut |number, page| {
            tags.add(number, decode(number, &page)?.key());
            Ok(())
        })?;
        Ok(tags)
    }

    /// The number of the last page that has a tag.
    fn last(&self) -> u64 {
        self.next_block * PAGES_OF_BLOCK + self.tail.len() as u64 / 2
    }

    fn add(&mut self, number: u64, key: &str) {
        // A repair may have left gaps. What was lost may end again.
        while let Some(gap) = number.checked_sub(self.last() + 1) {
            let tag = if gap == 0 { tag(key) } else { [0; 2] };
            self.tail.extend(tag);
        }
    }

    fn write(&mut self, batch: &mut Batch) {
        let bytes = PAGES_OF_BLOCK as usize * 2;
        while self.tail.len() >= bytes {
            let rest = self.tail.split_off(bytes);
            batch.put(Space::Tag, self.next_block, std::mem::replace(&mut self.tail, rest));
            self.next_block += 1;
        }
    }
}

fn tag(key: &str) -> [u8; 2] {
    (xxh3_64(key.as_bytes()) as u16).to_le_bytes()
}

/// The hash of a page's number, by which samples are taken.
pub(super) fn hash_of(number: u64) -> u64 {
    xxh3_64(&number.to_le_bytes())
}

pub(super) fn decode(number: u64, page: &[u8]) -> Result<StoredPage, StoreError> {
    let damaged = |error| StoreError::damaged(Path::new("the store"), format!("page {number} cannot be read: {error}"));
    postcard::from_bytes(page).map_err(damaged)
}

/// Reads the page with a number.
fn page(store: &dyn Store, number: u64) -> Result<Option<StoredPage>, StoreError> {
    let page = store.get(Space::Page, number)?;
    page.map(|page| decode(number, &page)).transpose()
}

/// Finds the pages with these keys, and their numbers. Cost: two bytes of each page, and for each key a look at one in 65 536, and at those
/// without a tag.
pub(crate) fn find(store: &dyn Store, keys: &[&str]) -> Result<BTreeMap<u64, StoredPage>, StoreError> {
    let keys: HashSet<&str> = keys.iter().copied().collect();
    let wanted: HashSet<[u8; 2]> = keys.iter().map(|key| tag(key)).collect();
    let (tags, mut found) = (Tags::load(store)?, Vec::new());
    let mut look = |block: u64, tags: &[u8]| {
        let numbered = tags.chunks_exact(2).zip(block * PAGES_OF_BLOCK + 1..);
        let numbered = numbered.filter(|(tag, _)| **tag == [0; 2] || wanted.contains(*tag));
        found.extend(numbered.map(|(_, number)| number));
    };
    store.range(Space::Tag, 0..=MAX_KEY, &mut |block, tags| {
        look(block, &tags);
        Ok(())
    })?;
    look(tags.next_block, &tags.tail);
    let mut pages = BTreeMap::new();
    for number in found {
        let page = page(store, number)?.filter(|page| keys.contains(page.key()));
        pages.extend(page.map(|page| (number, page)));
    }
    Ok(pages)
}

/// Visits all pages in the order of their numbers, or those that ended without a page.
pub(crate) fn visit(store: &dyn Store, failed_only: bool, visit: &mut dyn FnMut(StoredPage)) -> Result<(), StoreError> {
    if failed_only {
        return store.pages(PageOrder::Failed, (0, 0), &mut |number, page| {
            visit(decode(number, &page)?);
            Ok(ControlFlow::Continue(()))
        });
    }
    store.range(Space::Page, 0..=MAX_KEY, &mut |number, page| {
        visit(decode(number, &page)?);
        Ok(())
    })
}

/// Takes back what was done to pages after a row: those that had ended before are as they were, the others go.
pub(super) fn go_back(row: u64, store: &dyn Store, batch: &mut Batch) -> Result<(), OpenError> {
    let mut before = BTreeMap::new();
    for (_, replaced) in store.values(Space::Undo, row + 1..=MAX_KEY)?.into_iter().rev() {
        let replaced: Vec<(u64, StoredPage)> = postcard::from_bytes(&replaced).map_err(OpenError::damaged)?;
        before.extend(replaced);
    }
    before.retain(|_, page| page.saved_in <= row);
    for (number, page) in &before {
        put(*number, page, batch).map_err(OpenError::damaged)?;
    }
    let mut first_new = MAX_KEY;
    store.pages(PageOrder::Saved, (row + 1, 0), &mut |number, _| {
        if !before.contains_key(&number) {
            batch.delete(Space::Page, number..=number);
            first_new = first_new.min(number);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    batch.delete(Space::Undo, row + 1..=MAX_KEY);
    batch.delete(Space::Tag, first_new.saturating_sub(1) / PAGES_OF_BLOCK..=MAX_KEY);
    Ok(())
}

fn put(number: u64, page: &StoredPage, batch: &mut Batch) -> postcard::Result<()> {
    batch.put(Space::Page, number, postcard::to_allocvec(page)?);
    Ok(())
}

impl Durable {
    /// Notes the end of a page, which its next row has. `leads_on` says whether it has links to new URLs.
    pub(super) fn page_has_ended(&mut self, number: u64, end: StoredPage, leads_on: bool) -> Result<(), FrontierError> {
        let is_first = number > self.tags.last();
        let replaced = if is_first {
            None
        } else {
            page(&**self.store.lock(), number)?
        };
        let mut page = match replaced.clone() {
            Some(earlier) => end.after(earlier, leads_on),
            None => end,
        };
        let planned = self.ended.get(&number).and_then(|(page, _)| page.own_plan);
        page.own_plan = planned.or(page.own_plan);
        let changes = replaced.as_ref().map_or(0, |earlier| earlier.visits.changes);
        let has_changed = leads_on || page.visits.changes > changes;
        match &mut self.planner {
            Some(planner) => planner.plan(number, &mut page, has_changed),
            None => page.observed = None,
        }
        self.ended.insert(number, (page, replaced));
        Ok(())
    }

    /// Writes the pages that have ended since the last commit, with this row of the journal.
    pub(super) fn write_pages(&mut self, row: u64, batch: &mut Batch) -> postcard::Result<()> {
        let mut all_replaced = Vec::new();
        for (number, (mut page, replaced)) in std::mem::take(&mut self.ended) {
            page.saved_in = row;
            put(number, &page, batch)?;
            self.tags.add(number, page.key());
            all_replaced.extend(replaced.map(|page| (number, page)));
        }
        if !all_replaced.is_empty() {
            batch.put(Space::Undo, row, postcard::to_allocvec(&all_replaced)?);
        }
        self.tags.write(batch);
        Ok(())
    }
}
