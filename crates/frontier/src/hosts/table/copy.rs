//! A copy of all hosts as they were when it began, made in slices. A host is copied just before it changes or moves, and the others one
//! after the other. Of an evicted host the copy has its place only: rows that a copy names are kept.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::rows::{Evicted, Rows};
use super::{HostTable, Resident, Slot};
use crate::hosts::host::Host;
use crate::rules::ParseRules;
use crate::url::HostKey;

/// One piece of a copy.
#[derive(Debug, Serialize)]
enum PieceRef<'a> {
    Resident(&'a HostKey, &'a Host),
    Evicted(&'a HostKey, &'a Evicted),
    /// A row, and the number of hosts that it ever had.
    Row(u64, u32),
}

#[derive(Debug, Deserialize)]
pub(super) enum Piece {
    Resident(HostKey, Box<Host>),
    Evicted(HostKey, Evicted),
    Row(u64, u32),
}

/// A copy that is made.
#[derive(Debug, Default)]
pub(super) struct HostCopy {
    /// The number of the copy that is made, or of the last one.
    number: u32,
    is_made: bool,
    /// All before this place in the table are copied.
    next: usize,
    /// What is copied, as bytes.
    copied: Vec<u8>,
    error: Option<postcard::Error>,
}

impl HostCopy {
    /// Returns the number that a new host has, which is in no copy that is made.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Copies a host as it is, if it is not copied yet.
    pub(super) fn before_change(&mut self, key: &HostKey, slot: &mut Slot) {
        if !self.is_made || slot.copied_in() == self.number {
            return;
        }
        match slot {
            Slot::Resident(resident) => {
                resident.copied_in = self.number;
                self.add(&PieceRef::Resident(key, &resident.host));
            }
            Slot::Evicted(evicted) => {
                evicted.copied_in = self.number;
                self.add(&PieceRef::Evicted(key, evicted));
            }
        }
    }

    /// Copies what the removal of a host would remove, or move to where all are copied.
    pub(super) fn before_removal(&mut self, slots: &mut IndexMap<HostKey, Slot>, index: usize) {
        for at in [index, slots.len().saturating_sub(1)] {
            if let Some((key, slot)) = slots.get_index_mut(at) {
                self.before_change(key, slot);
            }
        }
    }

    fn add(&mut self, piece: &PieceRef<'_>) {
        match postcard::to_extend(piece, std::mem::take(&mut self.copied)) {
            Ok(copied) => self.copied = copied,
            Err(error) => self.error = Some(error),
        }
    }
}

impl HostTable {
    /// Begins a copy of all hosts as they are now. A copy that was not finished is dropped.
    ///
    /// Cost: O(rows).
    pub(crate) fn begin_copy(&mut self) {
        let copy = &mut self.copy;
        copy.number = copy.number.wrapping_add(1);
        copy.is_made = true;
        copy.next = 0;
        copy.copied.clear();
        for (row, total) in self.rows.totals() {
            copy.add(&PieceRef::Row(row, total));
        }
    }

    /// Copies more hosts, until there are about `bytes` more or all are copied. Returns what was copied since the last call, and whether
    /// that was the rest.
    ///
    /// # Errors
    ///
    /// A host that cannot be written as bytes.
    pub(crate) fn copy_more(&mut self, bytes: usize) -> Result<(Vec<u8>, bool), postcard::Error> {
        let copy = &mut self.copy;
        while copy.copied.len() < bytes {
            let Some((key, slot)) = self.slots.get_index_mut(copy.next) else {
                break;
            };
            copy.before_change(key, slot);
            copy.next += 1;
        }
        let is_all = copy.next >= self.slots.len();
        copy.is_made &= !is_all;
        match copy.error.take() {
            Some(error) => Err(error),
            None => Ok((std::mem::take(&mut copy.copied), is_all)),
        }
    }
}

/// Why a copy cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostsError {
    #[error("its hosts cannot be read: {0}")]
    Piece(#[from] postcard::Error),
    #[error("its hosts do not fit together")]
    Disagree,
}

/// Reads a copy, part by part.
pub(crate) struct HostReader<'p> {
    pub(super) hosts: HostTable,
    pub(super) parse: &'p ParseRules,
    /// The beginning of a piece whose end is in the next part.
    rest: Vec<u8>,
}

impl<'p> HostReader<'p> {
    pub(crate) fn new(parse: &'p ParseRules) -> Self {
        Self {
            hosts: HostTable::default(),
            parse,
            rest: Vec::new(),
        }
    }

    /// Reads a part.
    ///
    /// # Errors
    ///
    /// Bytes that are no part of a copy.
    pub(crate) fn read(&mut self, part: &[u8]) -> Result<(), HostsError> {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend_from_slice(part);
        let mut left = &bytes[..];
        while !left.is_empty() {
            match postcard::take_from_bytes(left) {
                Ok((piece, after)) => {
                    self.add(piece)?;
                    left = after;
                }
                Err(postcard::Error::DeserializeUnexpectedEnd) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.rest = left.to_vec();
        Ok(())
    }

    fn add(&mut self, piece: Piece) -> Result<(), HostsError> {
        let HostTable { slots, rows, .. } = &mut self.hosts;
        let (is_new, fits) = match piece {
            Piece::Row(row, total) => (true, rows.add(row, total)),
            Piece::Evicted(key, evicted) => {
                let fits = rows.count(&evicted);
                (slots.insert(key, Slot::Evicted(evicted)).is_none(), fits)
            }
            Piece::Resident(key, mut host) => {
                host.parse_rules(self.parse);
                let resident = Slot::Resident(Box::new(Resident::new(*host, 0)));
                (slots.insert(key, resident).is_none(), true)
            }
        };
        if is_new && fits {
            Ok(())
        } else {
            Err(HostsError::Disagree)
        }
    }

    /// Returns the hosts.
    ///
    /// # Errors
    ///
    /// A copy that is not complete.
    pub(crate) fn finish(self) -> Result<HostTable, HostsError> {
        let rows: &Rows = &self.hosts.rows;
        if !self.rest.is_empty() {
            return Err(postcard::Error::DeserializeUnexpectedEnd.into());
        }
        if rows.are_whole() {
            Ok(self.hosts)
        } else {
            Err(HostsError::Disagree)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;
    use url::Url;

    use super::*;
    use crate::hosts::{HostRules, RowSizes, Shelf};
    use crate::time::Time;

    /// A shelf that keeps what a copy may name, and nothing else that was discarded.
    #[derive(Debug, Default)]
    struct TestShelf(Mutex<Rows>);

    #[derive(Debug, Default)]
    struct Rows {
        next: u64,
        first_young: u64,
        rows: BTreeMap<u64, Box<[u8]>>,
    }

    impl Shelf for TestShelf {
        fn put(&self, row: Box<[u8]>) -> u64 {
            let mut rows = self.0.lock().unwrap();
            let number = rows.next;
            rows.next += 1;
            rows.rows.insert(number, row);
            number
        }

        fn discard(&self, number: u64) {
            let mut rows = self.0.lock().unwrap();
            if number >= rows.first_young {
                rows.rows.remove(&number);
            }
        }

        fn set_damaged(&self, number: u64) {
            panic!("row {number} is damaged");
        }

        fn is_broken(&self) -> bool {
            false
        }

        fn read(&self, number: u64) -> Option<Box<[u8]>> {
            self.0.lock().unwrap().rows.get(&number).cloned()
        }
    }

    #[derive(Debug, Clone, Copy)]
    enum Step {
        /// Changes a host, or makes it.
        Change(u8),
        Remove(u8),
        Copy(usize),
        /// Begins another copy.
        Begin,
    }

    fn steps() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => any::<u8>().prop_map(Step::Change),
            4 => any::<u8>().prop_map(Step::Remove),
            3 => (1_usize..200).prop_map(Step::Copy),
            1 => Just(Step::Begin),
        ]
    }

    fn name(host: u8) -> HostKey {
        HostKey::of(&Url::parse(&format!("http://host{}.example", host % 24)).unwrap()).unwrap()
    }

    fn configured(mut table: HostTable, shelf: &Arc<TestShelf>, most: u64) -> HostTable {
        let sizes = RowSizes {
            row_bytes: 1_000,
            holes: 2,
        };
        let shelf = Arc::clone(shelf) as Arc<dyn Shelf>;
        table.configure(HostRules::default(), shelf, Arc::new(|_| unreachable!()), sizes);
        table.set_most_resident(most);
        table
    }

    fn content(table: &HostTable) -> BTreeMap<HostKey, Time> {
        let all: Vec<_> = table
            .iter()
            .map(|(key, host)| (key.clone(), host.blocked_until()))
            .collect();
        assert_eq!(all.len(), table.len(), "each host is met once");
        all.into_iter().collect()
    }

    #[test]
    fn hosts_that_have_ended_do_not_stay_in_memory() {
        let shelf = Arc::new(TestShelf::default());
        let most = 400_000;
        let mut table = configured(HostTable::default(), &shelf, most);
        let named = |n: usize| HostKey::of(&Url::parse(&format!("http://host{n}.example")).unwrap()).unwrap();
        // Each host is used five times until `life` others have come; then never again.
        let (hosts, life) = (60_000, 240);
        let mut peak = 0;
        for step in 0..hosts {
            for use_of in 0..5 {
                let age = life * use_of / 4;
                if let Some(host) = (step as usize).checked_sub(age) {
                    table.change(&named(host), |host| host.block(Time::from_millis(step)));
                }
            }
            peak = peak.max(table.memory().residents);
        }
        assert!(peak < most + most / 20, "{peak} bytes of at most {most}");
    }

    #[test]
    fn what_a_change_adds_is_counted_at_once() {
        let mut table = configured(HostTable::default(), &Arc::new(TestShelf::default()), u64::MAX);
        let named = |n: usize| HostKey::of(&Url::parse(&format!("http://host{n}.example")).unwrap()).unwrap();
        for n in 0..100 {
            table.change(&named(n), |host| host.block(Time::from_millis(1)));
        }
        let taken: usize = table.iter().map(|(_, host)| host.bytes()).sum();
        assert_eq!(table.memory().residents, taken as u64);
    }

    proptest! {
        #[test]
        fn a_copy_has_all_hosts_as_they_were_when_it_began(
            most in prop_oneof![Just(0_u64), 0_u64..6_000, Just(u64::MAX)],
            before in prop::collection::vec(any::<u8>(), 0..60),
            steps in prop::collection::vec(steps(), 0..120),
        ) {
            let shelf = Arc::new(TestShelf::default());
            let mut table = configured(HostTable::default(), &shelf, most);
            let mut now = 0;
            let mut model = BTreeMap::new();
            let mut change = |table: &mut HostTable, model: &mut BTreeMap<_, _>, host| {
                now += 1;
                let time = Time::from_millis(now);
                table.change(&name(host), |host| host.block(time));
                model.insert(name(host), time);
            };
            for host in before {
                change(&mut table, &mut model, host);
            }
            let begin = |table: &mut HostTable| {
                let mut rows = shelf.0.lock().unwrap();
                rows.first_young = rows.next;
                table.begin_copy();
            };
            let mut expected = content(&table);
            begin(&mut table);
            let (mut copied, mut is_all) = (Vec::new(), false);
            for step in steps.into_iter().chain([Step::Copy(usize::MAX)]) {
                match step {
                    Step::Change(host) => change(&mut table, &mut model, host),
                    Step::Remove(host) => {
                        table.remove(&name(host));
                        model.remove(&name(host));
                    }
                    Step::Copy(_) if is_all => {}
                    Step::Copy(bytes) => {
                        let (more, is_rest) = table.copy_more(bytes).unwrap();
                        copied.extend(more);
                        is_all = is_rest;
                    }
                    Step::Begin => {
                        expected = content(&table);
                        begin(&mut table);
                        copied.clear();
                        is_all = false;
                    }
                }
            }
            prop_assert!(is_all);
            prop_assert_eq!(content(&table), model);
            let parse: ParseRules = Arc::new(|_| unreachable!());
            let mut reader = HostReader::new(&parse);
            for part in copied.chunks(17) {
                reader.read(part).unwrap();
            }
            let read = configured(reader.finish().unwrap(), &shelf, u64::MAX);
            prop_assert_eq!(content(&read), expected);
        }
    }
}
