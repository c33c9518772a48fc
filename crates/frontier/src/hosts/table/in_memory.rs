//! Without a store all hosts are resident, and there is no copy of them.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::facts::Facts;
use super::reference::HostRef;
use super::{HostTable, Slot};
use crate::hosts::host::{Host, HostState};
use crate::url::HostKey;

#[derive(Debug, Clone, Copy)]
pub(super) struct CopyMark;

#[derive(Debug)]
pub(super) struct Resident {
    pub(super) host: Host,
    pub(super) mark: CopyMark,
}

impl Resident {
    pub(super) fn new(host: Host, mark: CopyMark) -> Self {
        Self { host, mark }
    }
}

#[derive(Debug, Default)]
pub(super) struct Workbench;

impl Workbench {
    pub(super) fn add(&mut self, _key: &HostKey, _resident: &mut Resident) {}

    pub(super) fn touch<'r>(&mut self, resident: &'r mut Resident) -> &'r mut Host {
        &mut resident.host
    }

    pub(super) fn remove(&mut self, _resident: &Resident) {}
}

/// No host is evicted.
#[derive(Debug)]
pub(super) enum Evicted {}

impl Evicted {
    pub(super) fn state(&self) -> HostState {
        match *self {}
    }

    pub(super) fn facts(&self) -> Facts {
        match *self {}
    }

    pub(super) fn mark(&self) -> CopyMark {
        match *self {}
    }
}

#[derive(Debug, Default)]
pub(super) struct Rows;

impl Rows {
    pub(super) fn are_used(&self) -> bool {
        false
    }

    pub(super) fn read(&self, _name: &str, evicted: &Evicted) -> Option<Host> {
        match *evicted {}
    }

    pub(super) fn leave(&mut self, evicted: &Evicted) {
        match *evicted {}
    }

    pub(super) fn rows_of<'e>(&self, _evicted: impl Iterator<Item = &'e Evicted>) -> BTreeSet<u64> {
        BTreeSet::new()
    }

    pub(super) fn read_row<'t>(
        &self,
        _row: u64,
        _slots: &'t IndexMap<HostKey, Slot>,
    ) -> Vec<(&'t HostKey, HostRef<'t>)> {
        Vec::new()
    }
}

#[derive(Debug, Default)]
pub(super) struct HostCopy;

impl HostCopy {
    pub(super) fn mark_of_new(&self) -> CopyMark {
        CopyMark
    }

    pub(super) fn before_change(&mut self, _key: &HostKey, _slot: &mut Slot) {}

    pub(super) fn before_removal(&mut self, _slots: &mut IndexMap<HostKey, Slot>, _index: usize) {}
}

impl HostTable {
    pub(super) fn make_room(&mut self) {}
}
