//! Deltas: the new bits of a filter, compressed.
//!
//! A delta stores the gaps between new bits, counted in bits that were zero before; the receiver knows the ones. The gaps are nearly
//! geometric. For these, S. W. Golomb's run-length code ("Run-length encodings", IEEE Trans. Inf. Theory 12(3), 1966), with a power
//! of two as its parameter (R. F. Rice, 1979), is within a few percent of the minimum.

use std::io::{self, Read, Write};

use crate::hash::{Hashing, checksum};
use crate::sizing::{ConfigError, Sizing};
use crate::snapshot::{Header, Kind, SnapshotCounts, SnapshotError, check_field, fingerprint, hashing_of};

/// The bits that a filter gained since a copy of it was made; see [`BloomFilter::delta`](crate::BloomFilter::delta).
#[derive(Debug, Clone, PartialEq)]
pub struct Delta {
    pub(crate) sizing: Sizing,
    pub(crate) hashing: Hashing,
    /// The fingerprint of the state that it belongs to.
    pub(crate) base: u64,
    added: u64,
    parameter: u32,
    code: Vec<u8>,
}

/// The largest Rice parameter: one read of the code has this many bits at least.
const MAX_PARAMETER: u32 = 48;

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
            let (mut free, mut fresh) = (!old, new & !old);
            while fresh != 0 {
                let bit = fresh & fresh.wrapping_neg();
                code.push_rice(gap + u64::from((free & (bit - 1)).count_ones()), parameter);
                gap = 0;
                fresh ^= bit;
                // The bits above this one are still to be counted.
                free &= !(bit | (bit - 1));
            }
            gap += u64::from(free.count_ones());
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

    /// Decodes the delta over the words that it belongs to, and sets its bits if `add`. `None` if the code points past the words, or to a
    /// bit that no probe can have.
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
    /// The errors of the writer.
    pub fn write_to(&self, writer: &mut impl Write) -> io::Result<()> {
        let mut header = Header::new(Kind::Delta, &self.sizing, &self.hashing, &SnapshotCounts::default());
        header.ones = self.added;
        header.extra = u64::from(self.parameter);
        header.base = self.base;
        let sum = header.write(writer)?;
        let mut framed = (self.code.len() as u64).to_le_bytes().to_vec();
        framed.extend_from_slice(&self.code);
        writer.write_all(&framed)?;
        writer.write_all(&checksum(&framed, sum).to_le_bytes())
    }

    /// Reads a delta of at most `limit` bytes. `secret` is the key of the hardened hash; other hashes ignore it.
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::read_from`](crate::snapshot::Snapshot::read_from).
    pub fn read_from(reader: &mut impl Read, limit: u64, secret: Option<[u8; 16]>) -> Result<Self, SnapshotError> {
        let (header, sum) = Header::read_kind(Kind::Delta, reader)?;
        Header::expect_unused(&[
            u64::from(header.layers),
            header.counts.accepted,
            header.counts.lost.to_bits(),
        ])?;
        let hashing = hashing_of(&header, secret)?;
        let parameter = u32::try_from(header.extra)
            .ok()
            .filter(|parameter| *parameter <= MAX_PARAMETER)
            .ok_or(SnapshotError::Field("parameter"))?;
        let mut length = [0; 8];
        reader.read_exact(&mut length)?;
        let bytes = u64::from_le_bytes(length);
        Header::check_limit(bytes.saturating_add(16), limit)?;
        // Each added bit takes at least one bit of code.
        check_field(header.ones <= bytes.saturating_mul(8), "number of ones")?;
        let mut framed = length.to_vec();
        // Reserved exactly: a vector that grows by itself would take up to twice the memory.
        framed
            .try_reserve_exact(usize::try_from(bytes).unwrap_or(usize::MAX))
            .map_err(|_| SnapshotError::Memory(ConfigError::CannotAllocate { bytes }))?;
        let read = reader.take(bytes).read_to_end(&mut framed)?;
        let mut stored = [0; 8];
        reader.read_exact(&mut stored)?;
        if read as u64 != bytes || checksum(&framed, sum) != u64::from_le_bytes(stored) {
            return Err(SnapshotError::Damaged);
        }
        framed.drain(..length.len());
        Ok(Self {
            sizing: header.sizing,
            hashing,
            base: header.base,
            added: header.ones,
            parameter,
            code: framed,
        })
    }
}

fn ones(words: impl Iterator<Item = u64>) -> u64 {
    words.map(|word| u64::from(word.count_ones())).sum()
}

/// Returns the position of the one with `below` ones below it. There must be one.
fn nth_one(mut word: u64, below: u64) -> u32 {
    for _ in 0..below {
        word &= word - 1;
    }
    word.trailing_zeros()
}

fn rice_parameter(zeros: u64, added: u64) -> u32 {
    let mean = zeros as f64 / added.max(1) as f64;
    (mean * std::f64::consts::LN_2)
        .log2()
        .round()
        .clamp(0.0, f64::from(MAX_PARAMETER)) as u32
}

#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    pending_bits: u32,
}

impl BitWriter {
    fn push_rice(&mut self, value: u64, parameter: u32) {
        let mut quotient = value >> parameter;
        while quotient >= 32 {
            self.push(u64::from(u32::MAX), 32);
            quotient -= 32;
        }
        self.push((1 << quotient) - 1, quotient as u32 + 1);
        self.push(value & ((1 << parameter) - 1), parameter);
    }

    /// Appends up to 48 bits, the lowest first. Fewer than eight bits are pending before.
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

    fn ahead(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let word = match rest.first_chunk() {
            Some(whole) => u64::from_le_bytes(*whole),
            None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        word >> (self.at % 8)
    }

    /// Skips a number of bits; `None` past the end of the code.
    fn skip(&mut self, bits: u32) -> Option<()> {
        self.at += bits as usize;
        (self.at <= self.bytes.len() * 8).then_some(())
    }

    fn take_rice(&mut self, parameter: u32) -> Option<u64> {
        let mut quotient = 0_u64;
        loop {
            let ones = self.ahead().trailing_ones().min(57);
            quotient += u64::from(ones);
            self.skip(ones)?;
            if ones < 57 {
                self.skip(1)?;
                break;
            }
        }
        let low = self.ahead() & ((1 << parameter) - 1);
        self.skip(parameter)?;
        quotient.checked_mul(1 << parameter)?.checked_add(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::AlgebraError;
    use crate::bloom::BloomFilter;

    /// A delta to any words.
    fn crafted(filter: &BloomFilter, change: impl FnOnce(&mut [u64])) -> Delta {
        let mut new = filter.memory.words().to_vec();
        change(&mut new);
        Delta::between(filter.memory.words(), &new, filter.sizing(), filter.hashing())
    }

    #[track_caller]
    fn is_refused_without_a_change(filter: &BloomFilter, delta: &Delta) {
        let mut target = filter.clone();
        assert_eq!(target.apply(delta), Err(AlgebraError::WrongBase));
        assert_eq!(target.memory.words(), filter.memory.words());
        assert_eq!(target.ones(), filter.ones());
    }

    #[test]
    fn an_invalid_delta_is_refused_and_changes_nothing() {
        let mut blocks = BloomFilter::with_hashing(Sizing::explicit_blocks(3, 8).unwrap(), Hashing::default()).unwrap();
        let mut classic = BloomFilter::with_hashing(Sizing::explicit(100, 3).unwrap(), Hashing::default()).unwrap();
        for filter in [&mut blocks, &mut classic] {
            filter.insert(b"a key");
        }
        // A bit that no probe has, behind one that might be.
        let lock = crafted(&blocks, |words| (words[0], words[15]) = (u64::MAX, 1 << 63));
        is_refused_without_a_change(&blocks, &lock);
        let beyond = crafted(&classic, |words| words[1] |= 1 << 36);
        is_refused_without_a_change(&classic, &beyond);
        let mut last = classic.clone();
        last.apply(&crafted(&classic, |words| words[1] |= 1 << 35)).unwrap();

        let good = crafted(&blocks, |words| words[3] |= 0xff00);
        let more = Delta {
            added: good.added + 1,
            ..good.clone()
        };
        is_refused_without_a_change(&blocks, &more);
        for parameter in [0, 20, 47, 63] {
            for code in [vec![], vec![0xff; 40], vec![0x55; 40], vec![0x7f, 0xff, 0xff, 0xff]] {
                is_refused_without_a_change(
                    &blocks,
                    &Delta {
                        added: 300,
                        parameter,
                        code,
                        ..good.clone()
                    },
                );
            }
        }
        is_refused_without_a_change(
            &blocks,
            &Delta {
                base: good.base ^ 1,
                ..good.clone()
            },
        );
        blocks.apply(&good).unwrap();
        is_refused_without_a_change(&blocks, &good);
    }

    #[test]
    fn a_file_with_impossible_numbers_is_refused() {
        let filter = BloomFilter::new(100, 0.01).unwrap();
        let good = crafted(&filter, |words| words[3] |= 0xff00);
        let read = |delta: &Delta| {
            let mut file = Vec::new();
            delta.write_to(&mut file).unwrap();
            assert_eq!(file.len() as u64, delta.encoded_len());
            Delta::read_from(&mut file.as_slice(), file.len() as u64, None)
        };
        assert_eq!(read(&good).unwrap(), good);
        for parameter in [64, u32::MAX] {
            let delta = Delta {
                parameter,
                ..good.clone()
            };
            assert!(matches!(read(&delta), Err(SnapshotError::Field("parameter"))));
        }
        for added in [good.code.len() as u64 * 8 + 1, u64::MAX] {
            let delta = Delta { added, ..good.clone() };
            assert!(matches!(read(&delta), Err(SnapshotError::Field("number of ones"))));
        }
    }

    #[test]
    fn a_delta_is_within_six_percent_of_the_entropy_of_its_new_bits() {
        let mut filter = BloomFilter::new(20_000, 0.01).unwrap();
        for n in 0_u32..10_000 {
            filter.insert(n.to_le_bytes());
        }
        for more in [10, 100, 1_000, 5_000] {
            let older = filter.clone();
            for n in 0_u32..more {
                filter.insert(format!("{more} {n}"));
            }
            let delta = filter.delta(&older).unwrap();
            let zeros = (older.sizing().bits() - older.ones()) as f64;
            let share = delta.added() as f64 / zeros;
            let entropy = -zeros * (share * share.log2() + (1.0 - share) * (1.0 - share).log2()) / 8.0;
            let overhead = delta.code.len() as f64 / entropy;
            assert!((0.98..1.06).contains(&overhead), "{more} keys: {overhead}");
        }
    }
}
