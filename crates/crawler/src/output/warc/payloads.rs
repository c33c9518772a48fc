//! Which payloads are in the archive already.

use std::collections::{HashMap, VecDeque};
use std::time::SystemTime;

use ring::digest::{SHA256, digest};
use uuid::Uuid;

use crate::fetch::BodyExtent;
use crate::fetch::Capture;

/// Memory for payloads that were seen, in bytes.
const ROOM: usize = 32 * 1024 * 1024;

/// What one takes beside its URL: the two tables at their emptiest, and what the allocator adds.
const ENTRY_BYTES: usize = 240;

/// The SHA-256 of a payload.
pub(super) type Name = [u8; 32];

/// The record that has a payload.
#[derive(Debug)]
pub(super) struct Original {
    pub(super) id: Uuid,
    pub(super) url: Box<str>,
    pub(super) started: SystemTime,
}

impl Original {
    pub(super) fn new(id: Uuid, capture: &Capture) -> Self {
        Self {
            id,
            url: capture.url.as_str().into(),
            started: capture.started,
        }
    }
}

/// Names the payload of an answer; `None` for one that is empty or not whole, which is never taken for another.
pub(super) fn name_of(capture: &Capture) -> Option<Name> {
    if capture.body.is_empty() || capture.extent != BodyExtent::Complete {
        return None;
    }
    digest(&SHA256, &capture.body).as_ref().try_into().ok()
}

/// The youngest payloads, as many as there is room for.
#[derive(Debug, Default)]
pub(super) struct Payloads {
    originals: HashMap<Name, Original>,
    /// The oldest first.
    ages: VecDeque<Name>,
    bytes: usize,
    forgotten: u64,
}

impl Payloads {
    pub(super) fn get(&self, name: &Name) -> Option<&Original> {
        self.originals.get(name)
    }

    pub(super) fn remember(&mut self, name: Name, original: Original) {
        self.bytes += ENTRY_BYTES + original.url.len();
        if self.originals.insert(name, original).is_none() {
            self.ages.push_back(name);
        }
        while self.bytes > ROOM
            && let Some(oldest) = self.ages.pop_front()
        {
            if let Some(original) = self.originals.remove(&oldest) {
                self.bytes -= ENTRY_BYTES + original.url.len();
                self.forgotten += 1;
            }
        }
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_payloads_are_forgotten_when_the_room_is_full() {
        let mut payloads = Payloads::default();
        let name = |n: u64| {
            let mut name = Name::default();
            name[..8].copy_from_slice(&n.to_le_bytes());
            name
        };
        let count = 40_000;
        for n in 0..count {
            let original = Original {
                id: Uuid::nil(),
                url: "x".repeat(1000).into(),
                started: SystemTime::UNIX_EPOCH,
            };
            payloads.remember(name(n), original);
        }
        let kept = (ROOM / (ENTRY_BYTES + 1000)) as u64;
        assert_eq!(payloads.forgotten(), count - kept);
        assert_eq!(payloads.originals.len() as u64, kept);
        assert!(payloads.get(&name(count - kept)).is_some());
        assert!(payloads.get(&name(count - kept - 1)).is_none());
    }
}
