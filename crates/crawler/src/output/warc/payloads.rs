//! The payloads that are in the archive already.

use std::collections::{HashMap, VecDeque};
use std::time::SystemTime;

use ring::digest::{SHA256, digest};
use uuid::Uuid;

use crate::event::Capture;
use crate::fetch::BodyExtent;

/// The maximum memory for remembered payloads, in bytes.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The memory of one payload without its URL, in bytes: its places in the two tables at their lowest load, and the allocator's cost.
const ENTRY_BYTES: usize = 240;

/// The SHA-256 of a payload.
pub(super) type PayloadDigest = [u8; 32];

/// The record that has a payload.
#[derive(Debug)]
pub(super) struct Original {
    pub(super) id: Uuid,
    pub(super) url: Box<str>,
    pub(super) started: SystemTime,
}

/// `None` for one that is empty or truncated, which is never compared.
pub(super) fn payload_digest(capture: &Capture) -> Option<PayloadDigest> {
    if capture.body.is_empty() || capture.extent != BodyExtent::Complete {
        return None;
    }
    digest(&SHA256, &capture.body).as_ref().try_into().ok()
}

/// The latest payloads, up to [`MAX_BYTES`] of memory.
#[derive(Debug, Default)]
pub(super) struct Payloads {
    originals: HashMap<PayloadDigest, Original>,
    /// The digests, the oldest first.
    oldest_first: VecDeque<PayloadDigest>,
    bytes: usize,
    pub(super) forgotten: u64,
}

impl Payloads {
    pub(super) fn get(&self, digest: &PayloadDigest) -> Option<&Original> {
        self.originals.get(digest)
    }

    pub(super) fn remember(&mut self, digest: PayloadDigest, original: Original) {
        self.bytes += ENTRY_BYTES + original.url.len();
        if self.originals.insert(digest, original).is_none() {
            self.oldest_first.push_back(digest);
        }
        while self.bytes > MAX_BYTES
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            if let Some(original) = self.originals.remove(&oldest) {
                self.bytes -= ENTRY_BYTES + original.url.len();
                self.forgotten += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_payloads_are_forgotten_when_the_memory_is_used_up() {
        let mut payloads = Payloads::default();
        let digest_of = |n: u64| {
            let mut digest = PayloadDigest::default();
            digest[..8].copy_from_slice(&n.to_le_bytes());
            digest
        };
        let count = 40_000;
        for n in 0..count {
            let original = Original {
                id: Uuid::nil(),
                url: "x".repeat(1000).into(),
                started: SystemTime::UNIX_EPOCH,
            };
            payloads.remember(digest_of(n), original);
        }
        let kept = (MAX_BYTES / (ENTRY_BYTES + 1000)) as u64;
        assert_eq!(payloads.forgotten, count - kept);
        assert_eq!(payloads.originals.len() as u64, kept);
        assert!(payloads.get(&digest_of(count - kept)).is_some());
        assert!(payloads.get(&digest_of(count - kept - 1)).is_none());
    }
}
