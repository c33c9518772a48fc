//! The header of a file: 96 bytes.

use std::io::{self, Read, Write};

use super::{SnapshotCounts, SnapshotError};
use crate::hash::{Hashing, checksum};
use crate::sizing::{BLOCK_BITS, Layout, Sizing};

const MAGIC: [u8; 8] = *b"SIEVE\r\n\x1a";
const VERSION: u16 = 1;
const INDEX_RULE: u8 = 1;
pub(crate) const HEADER_BYTES: usize = 96;
/// More than any program can count one by one.
const MAX_COUNTED: u64 = 1 << 63;

/// The kind of filter in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Standard = 1,
    Counting = 2,
    Scalable = 3,
    Delta = 4,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Standard, Self::Counting, Self::Scalable, Self::Delta];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard filter",
            Self::Counting => "counting filter",
            Self::Scalable => "scalable filter",
            Self::Delta => "delta",
        }
    }
}

/// The header's fields, as [`crate::snapshot`] lists them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) sizing: Sizing,
    pub(crate) hash: u8,
    pub(crate) layers: u32,
    pub(crate) seed: u64,
    pub(crate) ones: u64,
    pub(crate) counts: SnapshotCounts,
    pub(crate) extra: u64,
    pub(crate) base: u64,
}

impl Header {
    pub(crate) fn new(kind: Kind, sizing: &Sizing, hashing: &Hashing, counts: &SnapshotCounts) -> Self {
        Self {
            kind,
            sizing: *sizing,
            hash: hashing.id(),
            layers: 0,
            seed: hashing.stored_seed(),
            ones: 0,
            counts: *counts,
            extra: 0,
            base: 0,
        }
    }

    /// The words before the checksum, as [`crate::snapshot`] lists their bytes.
    fn words(&self) -> [u64; 11] {
        let layout = match self.sizing.layout() {
            Layout::Classic => 1,
            Layout::Blocks => 2,
        };
        let [version, of_version] = VERSION.to_le_bytes();
        let kind = self.kind as u8;
        [
            u64::from_le_bytes(MAGIC),
            u64::from_le_bytes([version, of_version, kind, layout, INDEX_RULE, self.hash, 0, 0]),
            u64::from(self.sizing.hashes()) | u64::from(self.layers) << 32,
            self.sizing.bits(),
            self.sizing.capacity(),
            self.seed,
            self.ones,
            stored_count(self.counts.accepted),
            stored_lost(self.counts.lost).to_bits(),
            self.extra,
            self.base,
        ]
    }

    /// Writes the header, and returns its checksum, the seed of the first chunk's.
    pub(crate) fn write(&self, writer: &mut impl Write) -> io::Result<u64> {
        let mut bytes: Vec<u8> = self.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        let sum = checksum(&bytes, 0);
        bytes.extend_from_slice(&sum.to_le_bytes());
        writer.write_all(&bytes)?;
        Ok(sum)
    }

    /// Reads a header and its checksum.
    pub(crate) fn read(reader: &mut impl Read) -> Result<(Self, u64), SnapshotError> {
        let mut bytes = [0; HEADER_BYTES];
        reader.read_exact(&mut bytes)?;
        let words = bytemuck::cast::<_, [u64; HEADER_BYTES / 8]>(bytes).map(u64::from_le);
        let [version, of_version, kind, layout, index_rule, hash, reserved @ ..] = words[1].to_le_bytes();
        if !bytes.starts_with(&MAGIC) {
            return Err(SnapshotError::NotAFilter);
        }
        let version = u16::from_le_bytes([version, of_version]);
        if version != VERSION {
            return Err(SnapshotError::Version(version));
        }
        let sum = checksum(&bytes[..HEADER_BYTES - 8], 0);
        if words[11] != sum {
            return Err(SnapshotError::Damaged);
        }
        check_field(index_rule == INDEX_RULE, "index rule")?;
        check_field(reserved == [0, 0], "reserved field")?;
        let header = Self {
            kind: Kind::ALL
                .into_iter()
                .find(|known| *known as u8 == kind)
                .ok_or(SnapshotError::Field("kind"))?,
            sizing: sizing_of(layout, words[3], words[2] as u32, words[4])?,
            hash,
            layers: (words[2] >> 32) as u32,
            seed: words[5],
            ones: words[6],
            counts: SnapshotCounts {
                accepted: words[7],
                lost: f64::from_bits(words[8]),
            },
            extra: words[9],
            base: words[10],
        };
        expect_counted("number of accepted keys", header.counts.accepted)?;
        expect_lost(header.counts.lost)?;
        Ok((header, sum))
    }

    /// Reads a header of this kind.
    pub(crate) fn read_kind(kind: Kind, reader: &mut impl Read) -> Result<(Self, u64), SnapshotError> {
        let (header, sum) = Self::read(reader)?;
        header.expect(kind)?;
        Ok((header, sum))
    }

    pub(crate) fn expect(&self, kind: Kind) -> Result<(), SnapshotError> {
        if self.kind == kind {
            Ok(())
        } else {
            Err(SnapshotError::Kind {
                wanted: kind.name(),
                found: self.kind.name(),
            })
        }
    }

    /// Refuses values in fields that this kind does not use.
    pub(crate) fn expect_unused(fields: &[u64]) -> Result<(), SnapshotError> {
        check_field(fields.iter().all(|&field| field == 0), "unused field")
    }

    /// Refuses a file that needs more bytes than the limit.
    pub(crate) fn check_limit(payload: u64, limit: u64) -> Result<(), SnapshotError> {
        let needed = payload.saturating_add(HEADER_BYTES as u64);
        if needed > limit {
            return Err(SnapshotError::TooLong { needed, limit });
        }
        Ok(())
    }
}

fn sizing_of(layout: u8, bits: u64, hashes: u32, capacity: u64) -> Result<Sizing, SnapshotError> {
    let sizing = match layout {
        1 => Sizing::explicit(bits, hashes),
        2 => Sizing::explicit_blocks(bits / BLOCK_BITS, hashes),
        _ => return Err(SnapshotError::Field("layout")),
    };
    sizing
        .and_then(|sizing| sizing.with_capacity(capacity))
        .ok()
        .filter(|sizing| sizing.bits() == bits)
        .ok_or(SnapshotError::Field("shape"))
}

/// Refuses a field that has no meaning.
pub(crate) fn check_field(is_valid: bool, field: &'static str) -> Result<(), SnapshotError> {
    is_valid.then_some(()).ok_or(SnapshotError::Field(field))
}

/// Refuses a count that no program can reach, and that could overflow later.
pub(crate) fn expect_counted(what: &'static str, count: u64) -> Result<(), SnapshotError> {
    check_field(count < MAX_COUNTED, what)
}

/// As [`expect_counted`], for lost keys.
pub(crate) fn expect_lost(lost: f64) -> Result<(), SnapshotError> {
    // A NaN is in no range. A sign is never written.
    let is_valid = lost.is_sign_positive() && (0.0..MAX_COUNTED as f64).contains(&lost);
    check_field(is_valid, "loss")
}

/// A count as it is written, so that reading accepts it.
pub(crate) fn stored_count(count: u64) -> u64 {
    count.min(MAX_COUNTED - 1)
}

/// As [`stored_count`], for lost keys.
pub(crate) fn stored_lost(lost: f64) -> f64 {
    lost.min((MAX_COUNTED as f64).next_down())
}
