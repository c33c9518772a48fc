//! Links that the filter took for seen, and that are not surely seen, until their digests are looked up.
//!
//! They decide nothing before that, so they are no part of a checkpoint, and no replay makes them again: each row has its links beside it,
//! in values of at most 64, because the whole value is read for one link. A value is removed when none of its links is left. After a crash,
//! all links of a value are looked up again, which changes nothing: those that were queued are found, and those that were refused are no
//! longer in their value.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_bytes::ByteBuf;

use super::{Keys, damaged};
use crate::frontier::durable::shelf::SharedStore;
use crate::store::{Batch, MAX_KEY, Space, StoreError};

/// The links of a value, at most.
const LINKS_OF_VALUE: usize = 64;

/// Links that wait to be looked up, in the order of their digests.
#[derive(Debug)]
pub(super) struct Spool {
    waiting: BTreeMap<u128, Place>,
    /// The links since the last row.
    fresh: Vec<SpooledBytes>,
    /// The key of the first value that these become.
    next: u64,
    /// The links that are left of each value.
    left: BTreeMap<u64, u32>,
    /// The values that have none.
    empty: Vec<u64>,
    /// The values with a link that was refused: the next crash must not bring it back.
    outdated: BTreeSet<u64>,
    /// Where a pass over all links is; none, while there is room.
    pass: Option<u128>,
}

/// A link with its digest.
type SpooledBytes = (u128, ByteBuf);

/// A link that was looked up and is new.
#[derive(Debug)]
pub(in crate::frontier::durable) struct Recalled {
    pub(in crate::frontier::durable) bytes: Vec<u8>,
    value: u64,
}

/// Where a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    value: u64,
    at: u32,
}

impl Spool {
    /// Reads what a store has.
    pub(super) fn read(store: &SharedStore) -> Result<Self, StoreError> {
        let mut spool = Self {
            waiting: BTreeMap::new(),
            fresh: Vec::new(),
            next: 0,
            left: BTreeMap::new(),
            empty: Vec::new(),
            outdated: BTreeSet::new(),
            pass: None,
        };
        store.lock().range(Space::Spool, 0..=MAX_KEY - 1, &mut |value, links| {
            for (at, (digest, link)) in (0..).zip(links_of(&links)?) {
                if !link.is_empty() {
                    spool.add(digest, Place { value, at });
                }
            }
            spool.next = value + 1;
            Ok(())
        })?;
        Ok(spool)
    }

    fn add(&mut self, digest: u128, place: Place) {
        if let Some(before) = self.waiting.insert(digest, place) {
            self.forget(before);
        }
        *self.left.entry(place.value).or_default() += 1;
    }

    fn forget(&mut self, place: Place) {
        if let Some(left) = self.left.get_mut(&place.value) {
            *left -= 1;
            if *left == 0 {
                self.left.remove(&place.value);
                self.empty.push(place.value);
            }
        }
    }

    /// Adds what came since the last row to a batch, and the removal of values of which nothing is left.
    pub(super) fn write(&mut self, store: &SharedStore, batch: &mut Batch) -> Result<(), StoreError> {
        for value in std::mem::take(&mut self.outdated) {
            if value < self.next && self.left.contains_key(&value) {
                let links = self.links(value, store)?.into_owned();
                self.put(value, links, batch)?;
            }
        }
        let mut fresh = std::mem::take(&mut self.fresh);
        while !fresh.is_empty() {
            let rest = fresh.split_off(fresh.len().min(LINKS_OF_VALUE));
            let links = std::mem::replace(&mut fresh, rest);
            if self.left.contains_key(&self.next) {
                self.put(self.next, links, batch)?;
            }
            self.next += 1;
        }
        for value in self.empty.drain(..).filter(|value| !self.left.contains_key(value)) {
            batch.delete(Space::Spool, value..=value);
        }
        Ok(())
    }

    /// Adds a value to a batch. A link that waits no more leaves an empty place.
    fn put(&self, value: u64, mut links: Vec<SpooledBytes>, batch: &mut Batch) -> Result<(), StoreError> {
        for (at, (digest, link)) in (0..).zip(&mut links) {
            if self.waiting.get(digest) != Some(&Place { value, at }) {
                link.clear();
            }
        }
        let links = postcard::to_allocvec(&links).map_err(|error| damaged(format!("links of the spool: {error}")))?;
        batch.put(Space::Spool, value, links);
        Ok(())
    }

    /// Takes the next link of the pass, or the first of all; `None` at the end of the pass.
    fn take_next(&mut self, from: u128) -> Option<(u128, Place)> {
        let (digest, place) = self
            .waiting
            .range(from..)
            .next()
            .map(|(digest, place)| (*digest, *place))?;
        self.waiting.remove(&digest);
        Some((digest, place))
    }

    /// Adds a link to those of this row.
    fn push(&mut self, digest: u128, link: ByteBuf) {
        let (value, at) = (self.fresh.len() / LINKS_OF_VALUE, self.fresh.len() % LINKS_OF_VALUE);
        let place = Place {
            value: self.next + value as u64,
            at: u32::try_from(at).unwrap_or(u32::MAX),
        };
        self.add(digest, place);
        self.fresh.push((digest, link));
    }

    /// Returns the links of a value.
    fn links(&self, value: u64, store: &SharedStore) -> Result<Cow<'_, [SpooledBytes]>, StoreError> {
        if let Some(chunk) = value.checked_sub(self.next) {
            let chunk = usize::try_from(chunk).ok();
            let links = chunk.and_then(|chunk| self.fresh.chunks(LINKS_OF_VALUE).nth(chunk));
            return Ok(Cow::Borrowed(links.unwrap_or_default()));
        }
        let found = store.lock().last(Space::Spool, value)?;
        let found = found.filter(|(at, _)| *at == value);
        let (_, links) = found.ok_or_else(|| damaged("a value of the spool is missing".to_owned()))?;
        links_of(&links).map(Cow::Owned)
    }

    /// Returns a link.
    fn link(&self, place: Place, store: &SharedStore) -> Result<Vec<u8>, StoreError> {
        let links = self.links(place.value, store)?;
        let link = usize::try_from(place.at).ok().and_then(|at| links.get(at));
        link.map(|(_, link)| link.to_vec())
            .ok_or_else(|| damaged("a link of the spool is missing".to_owned()))
    }
}

impl Keys {
    /// Reads the links that wait to be looked up, and adds others from now on.
    ///
    /// # Errors
    ///
    /// A value that cannot be read.
    pub(in crate::frontier::durable) fn open_spool(&mut self) -> Result<(), StoreError> {
        self.spool = Some(Spool::read(&self.store)?);
        Ok(())
    }

    /// Returns how many links wait to be looked up.
    pub(in crate::frontier::durable) fn spooled(&self) -> usize {
        self.spool.as_ref().map_or(0, |spool| spool.waiting.len())
    }

    /// Adds a link that the filter took for seen, unless it is surely seen or waits already.
    pub(in crate::frontier::durable) fn spool(
        &mut self,
        digest: u128,
        link: impl FnOnce() -> Result<Vec<u8>, postcard::Error>,
    ) {
        if self.is_surely_there(digest) {
            return;
        }
        let Some(spool) = &mut self.spool else { return };
        if spool.waiting.contains_key(&digest) {
            return;
        }
        match link() {
            Ok(link) => {
                spool.push(digest, ByteBuf::from(link));
                self.spooled_of_row += 1;
            }
            Err(error) => self.set_error(damaged(format!("a link of the spool cannot be written: {error}"))),
        }
    }

    /// Looks up more links once there are too many of them, as many as have come with a row at least. Returns those that are new.
    pub(in crate::frontier::durable) fn recall_some(&mut self) -> Result<Vec<Recalled>, StoreError> {
        let most = self.sizes.parts_at_once + 2 * std::mem::take(&mut self.spooled_of_row);
        let Some(spool) = &mut self.spool else {
            return Ok(Vec::new());
        };
        if spool.waiting.len() >= self.sizes.spooled_links {
            spool.pass.get_or_insert(0);
        }
        let Some(from) = spool.pass else { return Ok(Vec::new()) };
        self.recall(from, most)
    }

    /// Looks up all links. Returns those that are new.
    pub(in crate::frontier::durable) fn recall_all(&mut self) -> Result<Vec<Recalled>, StoreError> {
        self.recall(0, usize::MAX)
    }

    /// Records that a link was refused after all. It must not be looked up again: it has no digest.
    pub(in crate::frontier::durable) fn recalled_was_refused(&mut self, recalled: &Recalled) {
        if let Some(spool) = &mut self.spool {
            spool.outdated.insert(recalled.value);
        }
    }

    fn recall(&mut self, from: u128, most: usize) -> Result<Vec<Recalled>, StoreError> {
        let Some(mut spool) = self.spool.take() else {
            return Ok(Vec::new());
        };
        let mut new = Vec::new();
        let (mut left, mut next) = (most, Some(from));
        while left > 0
            && let Some(at) = next
        {
            left -= 1;
            let taken = spool.take_next(at);
            next = taken.and_then(|(digest, _)| digest.checked_add(1));
            if let Some((digest, place)) = taken {
                if !self.contains(digest) {
                    let bytes = spool.link(place, &self.store)?;
                    let value = place.value;
                    new.push(Recalled { bytes, value });
                }
                spool.forget(place);
            }
        }
        spool.pass = next;
        self.spool = Some(spool);
        Ok(new)
    }
}

fn links_of(value: &[u8]) -> Result<Vec<SpooledBytes>, StoreError> {
    postcard::from_bytes(value).map_err(|error| damaged(format!("links of the spool: {error}")))
}
