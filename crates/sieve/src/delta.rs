//! The new bits of a filter, compressed.
//!
//! The new bits are counted among those that were zero before: the receiver knows the ones too. The gaps between them are nearly geometric,
//! for which S. W. Golomb's run-length code ("Run-length encodings", IEEE Trans. Inf. Theory 12(3), 1966), with a power of two as
//! its parameter (R. F. Rice, 1979), lies within a few percent of the least possible.

use std::io::{self, Read, Write};

use crate::hash::{Hashing, checksum};
use crate::sizing::Sizing;
use crate::snapshot::{Counts, Header, Kind, SnapshotError, fingerprint, hashing_of};

/// What a filter has learnt since a copy of it was made; see [`BloomFilter::delta`](crate::BloomFilter::delta).
#[derive(Debug, Clone, PartialEq)]
pub struct Delta {
    sizing: Sizing,
    hashing: Hashing,
    base: u64,
    added: u64,
    parameter: u32,
    code: Vec<u8>,
}

/// The bytes of a delta beside its code: header, length, checksum.
const FRAME_BYTES: u64 = 96 + 8 + 8;

impl Delta {
    pub(crate) fn between(old: &[u64], new: &[u64], sizing: Sizing, hashing: Hashing) -> Self {
        let added: u64 = ones(old.iter().zip(new).map(|(old, new)| new & !old));
        let zeros = old.len() as u64 * 64 - ones(old.iter().copied());
        let parameter = rice_parameter(zeros, added);
        let mut code = BitWriter::default();
        let mut gap = 0;
        for (old, new) in old.iter().zip(new) {
            let fresh = new & !old;
            if fresh == 0 {
                gap += u64::from(old.count_zeros());
                continue;
            }
            for bit in (0..64).filter(|bit| old >> bit & 1 == 0) {
                if fresh >> bit & 1 == 1 {
                    code.push_rice(gap, parameter);
                    gap = 0;
                } else {
                    gap += 1;
                }
            }
        }
        Self {
            sizing,
            hashing,
            base: fingerprint(old),
            added,
            parameter,
            code: code.finish(),
        }
    }

    /// Walks through the words that the delta belongs to and, if told to, adds its bits; `None` when the code leads beyond them, or to a
    /// bit that no probe has.
    pub(crate) fn walk(&self, words: &mut [u64], add: bool) -> Option<()> {
        let mut code = BitReader::new(&self.code);
        let mut left = self.added;
        let mut gap = if left > 0 { code.take_rice(self.parameter)? } else { 0 };
        for (at, word) in words.iter_mut().enumerate() {
            if left == 0 {
                break;
            }
            let (mut from, mut fresh) = (0, 0);
            while left > 0 {
                let free = !*word & u64::MAX.checked_shl(from).unwrap_or(0);
                if gap >= u64::from(free.count_ones()) {
                    gap -= u64::from(free.count_ones());
                    break;
                }
                let bit = nth_one(free, gap);
                fresh |= 1 << bit;
                from = bit + 1;
                left -= 1;
                if left > 0 {
                    gap = code.take_rice(self.parameter)?;
                }
            }
            if fresh & !self.sizing.probe_bits(at as u64) != 0 {
                return None;
            }
            if add {
                *word |= fresh;
            }
        }
        (left == 0).then_some(())
    }

    /// Returns the number of bits that were added.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Returns the length of the delta when it is written, in bytes.
    pub fn encoded_len(&self) -> u64 {
        FRAME_BYTES + self.code.len() as u64
    }

    /// Writes the delta in the format of [`snapshot`](crate::snapshot): its header, the length of the code, the code, a checksum.
    ///
    /// # Errors
    ///
    /// What the writer says.
    pub fn write_to(&self, writer: &mut impl Write) -> io::Result<()> {
        let mut header = Header::new(Kind::Delta, &self.sizing, &self.hashing, &Counts::default());
        header.ones = self.added;
        header.extra = u64::from(self.parameter);
        header.base = self.base;
        let sum = header.write(writer)?;
        let mut framed = (self.code.len() as u64).to_le_bytes().to_vec();
        framed.extend_from_slice(&self.code);
        writer.write_all(&framed)?;
        writer.write_all(&checksum(&framed, sum).to_le_bytes())
    }

    /// Reads a delta of at most `limit` bytes; `secret` is the key of the hardened hash, and is not looked at for others.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::read_from`](crate::snapshot::Snapshot::read_from).
    pub fn read_from(reader: &mut impl Read, limit: u64, secret: Option<[u8; 16]>) -> Result<Self, SnapshotError> {
        let (header, sum) = Header::read_kind(Kind::Delta, reader)?;
        let sizing = header.sizing()?;
        let hashing = hashing_of(&header, secret)?;
        let parameter = u32::try_from(header.extra)
            .ok()
            .filter(|parameter| *parameter < 64)
            .ok_or(SnapshotError::Field("parameter"))?;
        let mut length = [0; 8];
        reader.read_exact(&mut length)?;
        let bytes = u64::from_le_bytes(length);
        Header::check_limit(bytes.saturating_add(16), limit)?;
        // A bit takes at least one bit of code: more would make `apply` allocate for what is not there.
        if header.ones > bytes.saturating_mul(8) {
            return Err(SnapshotError::Field("number of ones"));
        }
        let mut framed = length.to_vec();
        let read = reader.take(bytes).read_to_end(&mut framed)?;
        let mut stored = [0; 8];
        reader.read_exact(&mut stored)?;
        if read as u64 != bytes || checksum(&framed, sum) != u64::from_le_bytes(stored) {
            return Err(SnapshotError::Damaged);
        }
        Ok(Self {
            sizing,
            hashing,
            base: header.base,
            added: header.ones,
            parameter,
            code: framed.split_off(8),
        })
    }

    pub(crate) fn sizing(&self) -> Sizing {
        self.sizing
    }

    pub(crate) fn hashing(&self) -> Hashing {
        self.hashing
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }
}

fn ones(words: impl Iterator<Item = u64>) -> u64 {
    words.map(|word| u64::from(word.count_ones())).sum()
}

/// The position of the one with so many others below it; there must be one.
fn nth_one(mut word: u64, below: u64) -> u32 {
    for _ in 0..below {
        word &= word - 1;
    }
    word.trailing_zeros()
}

/// The low bits of a gap that are written as they are: log₂ of ln 2 times the mean gap, which is the best for a geometric one.
fn rice_parameter(zeros: u64, added: u64) -> u32 {
    let mean = zeros as f64 / added.max(1) as f64;
    (mean * std::f64::consts::LN_2).log2().round().clamp(0.0, 48.0) as u32
}

#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    pending_bits: u32,
}

impl BitWriter {
    fn push_rice(&mut self, value: u64, parameter: u32) {
        for _ in 0..value >> parameter {
            self.push(1, 1);
        }
        self.push(0, 1);
        self.push(value & ((1 << parameter) - 1), parameter);
    }

    /// Appends up to 48 bits, the lowest first.
    fn push(&mut self, bits: u64, count: u32) {
        self.pending |= bits << self.pending_bits;
        self.pending_bits += count;
        while self.pending_bits >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.pending_bits -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.pending_bits > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn bit(&mut self) -> Option<u64> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (self.at % 8) & 1;
        self.at += 1;
        Some(u64::from(bit))
    }

    fn take_rice(&mut self, parameter: u32) -> Option<u64> {
        let mut value = 0_u64;
        while self.bit()? == 1 {
            value += 1;
        }
        value = value.checked_mul(1 << parameter)?;
        for position in 0..parameter {
            value |= self.bit()? << position;
        }
        Some(value)
    }
}
