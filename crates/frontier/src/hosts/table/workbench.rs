//! The workbench: what resident hosts take, and which of them is evicted first.
//!
//! A host with a request in flight stays: its settlement would bring it back at once. All others are in one line:
//!
//! ```text
//! next to go ◀─── nothing waits there ─── passes ─── has a seat ───▶ last to go
//!                 (each of the three: in the order in which they came there)
//! ```
//!
//! A host takes a seat when it comes into memory and after each request, if one is free. Without seats, each host would be evicted just
//! before its turn, because hosts are asked in a circle: the one that was not used for longest is the next. With them, as many as fit
//! stay for a whole round. Those that pass are evicted in the order in which they were used, so they come back together, too.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::hosts::host::Host;
use crate::url::HostKey;

/// What a host takes in the line, about, in bytes.
pub(super) const BYTES_IN_LINE: usize = 48;

/// A host in memory.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Resident {
    pub(super) host: Host,
    /// The number of the last copy in which it is.
    #[serde(skip)]
    pub(super) copied_in: u16,
    /// The bytes that are counted for it.
    #[serde(skip)]
    bytes: u32,
    /// `None` while a request is in flight.
    #[serde(skip)]
    place: Option<Place>,
}

/// A place in the line, of which the smallest goes first: its rank in the two highest bits, and a number that grows from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(NonZeroU64);

impl Place {
    const RANK_AT: u32 = 62;

    fn new(rank: Rank, number: NonZeroU64) -> Self {
        Self(number | (rank as u64) << Self::RANK_AT)
    }

    fn rank(self) -> Rank {
        match self.0.get() >> Self::RANK_AT {
            0 => Rank::NothingWaits,
            1 => Rank::Passes,
            _ => Rank::HasSeat,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    NothingWaits,
    Passes,
    /// Seats have seven eighths of the room.
    HasSeat,
}

impl Resident {
    pub(super) fn new(host: Host, copied_in: u16) -> Self {
        Self {
            host,
            copied_in,
            bytes: 0,
            place: None,
        }
    }

    fn rank(&self) -> Option<Rank> {
        self.place.map(Place::rank)
    }
}

/// What resident hosts take, and their line.
#[derive(Debug, Default)]
pub(super) struct Workbench {
    /// The bytes that residents may take; `None` for no bound.
    pub(super) most: Option<u64>,
    pub(super) bytes: u64,
    /// The bytes of those with a seat.
    seated_bytes: u64,
    pub(super) residents: usize,
    line: BTreeMap<Place, HostKey>,
    /// The places that were given so far.
    places: u64,
}

impl Workbench {
    #[cfg(test)]
    pub(super) fn in_line(&self) -> usize {
        self.line.len()
    }

    /// How many bytes are too many.
    pub(super) fn excess(&self) -> u64 {
        self.most.map_or(0, |most| self.bytes.saturating_sub(most))
    }

    pub(super) fn add(&mut self, key: &HostKey, resident: &mut Resident) {
        self.residents += 1;
        self.count(key, resident);
    }

    /// Learns what the changes of a host have added or taken away. They may move it in the line.
    pub(super) fn count(&mut self, key: &HostKey, resident: &mut Resident) {
        self.set_bytes(resident, resident.host.bytes() + BYTES_IN_LINE);
        let rank = self.next_rank(resident);
        if rank == resident.rank() {
            return;
        }
        self.leave_line(resident);
        if let Some(rank) = rank {
            self.enter_line(key, resident, rank);
        }
    }

    fn set_bytes(&mut self, resident: &mut Resident, bytes: usize) {
        let before = u64::from(resident.bytes);
        resident.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let after = u64::from(resident.bytes);
        self.bytes = self.bytes + after - before;
        if resident.rank() == Some(Rank::HasSeat) {
            self.seated_bytes = self.seated_bytes + after - before;
        }
    }

    fn next_rank(&self, resident: &Resident) -> Option<Rank> {
        let host = &resident.host;
        if host.pace.in_flight() > 0 {
            return None;
        }
        if host.queued() + host.postponed() == 0 {
            return Some(Rank::NothingWaits);
        }
        let seated_bytes = match resident.rank() {
            // Until it was requested: a host with requests in flight has no rank, and gets one anew.
            Some(Rank::Passes) => return Some(Rank::Passes),
            Some(Rank::HasSeat) => self.seated_bytes,
            Some(Rank::NothingWaits) | None => self.seated_bytes + u64::from(resident.bytes),
        };
        let has_room = self.most.is_none_or(|most| seated_bytes <= most / 8 * 7);
        Some(if has_room { Rank::HasSeat } else { Rank::Passes })
    }

    fn enter_line(&mut self, key: &HostKey, resident: &mut Resident, rank: Rank) {
        self.places += 1;
        let place = Place::new(rank, NonZeroU64::MIN.saturating_add(self.places));
        resident.place = Some(place);
        self.line.insert(place, key.clone());
        if rank == Rank::HasSeat {
            self.seated_bytes += u64::from(resident.bytes);
        }
    }

    fn leave_line(&mut self, resident: &mut Resident) {
        let Some(place) = resident.place.take() else { return };
        self.line.remove(&place);
        if place.rank() == Rank::HasSeat {
            self.seated_bytes -= u64::from(resident.bytes);
        }
    }

    /// Removes a host that leaves the memory.
    pub(super) fn remove(&mut self, resident: &mut Resident) {
        self.leave_line(resident);
        self.set_bytes(resident, 0);
        self.residents -= 1;
    }

    /// The host that is evicted next; `None` if requests to all of them are in flight.
    pub(super) fn first_to_go(&self) -> Option<HostKey> {
        self.line.first_key_value().map(|(_, key)| key.clone())
    }
}
