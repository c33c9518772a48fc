//! The log of the database (WAL), as its bytes are: whether some in its middle are wrong.
//!
//! SQLite reads a log up to the first frame whose checksum is wrong, and takes it for the end: after a power cut it is. The frames behind it
//! are lost then, with the commits that they end. Their checksums continue those of the frames before them, so frames that are intact
//! behind a wrong one can be told from those of an earlier log, and from what a crash left unfinished.
//!
//! Source of the format: <https://sqlite.org/fileformat2.html>, sections 4.1 to 4.2.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use super::format::beside;
use crate::store::StoreError;

pub(super) const HEAD: usize = 32;
pub(super) const FRAME_HEAD: usize = 24;
/// The log's magic number, but for its last bit: that says in which order its checksums take the bytes.
const MAGIC: u32 = 0x377f_0682;

/// The two sums of a checksum.
pub(super) type Sums = [u32; 2];
pub(super) type Salts = [u8; 8];

/// The first bytes of a log.
pub(super) struct Head {
    pub(super) is_whole: bool,
    /// If the head is not whole, that of this machine, which SQLite takes.
    pub(super) is_big_endian: bool,
    page_bytes: u32,
    salts: Salts,
    pub(super) sums: Sums,
}

impl Head {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let sums = [number(bytes, 24), number(bytes, 28)];
        let is_whole = |is_big_endian| {
            let summed = bytes.get(..24).unwrap_or_default();
            number(bytes, 0) == MAGIC | u32::from(is_big_endian) && checksum([0, 0], summed, is_big_endian) == sums
        };
        let (little, big) = (is_whole(false), is_whole(true));
        Self {
            is_whole: little || big,
            is_big_endian: if little || big {
                big
            } else {
                cfg!(target_endian = "big")
            },
            page_bytes: number(bytes, 8),
            salts: salts_at(bytes, 16),
            sums,
        }
    }

    /// Returns the salts that all frames of the log have. If the head is wrong, they are those of the first frame whose checksum continues
    /// that of the frame before, or else those of the first frame. Reads the log from its first frame up to the one that says so.
    pub(super) fn salts(&self, log: &mut (impl Read + Seek), page_bytes: usize) -> io::Result<Option<Salts>> {
        if self.is_whole {
            return Ok(Some(self.salts));
        }
        log.seek(SeekFrom::Start(HEAD as u64))?;
        let (mut frame, mut first, mut before) = (vec![0; FRAME_HEAD + page_bytes], None, self.sums);
        while is_filled(log, &mut frame)? {
            let salts = salts_at(&frame, 8);
            let sums = sums_of(&frame);
            if continues(before, &frame, self.is_big_endian) {
                return Ok(Some(salts));
            }
            first.get_or_insert(salts);
            before = sums;
        }
        Ok(first)
    }
}

/// Counts the commits in the log of a database that are intact, but cannot be read, because bytes before them are wrong. The commits that the
/// wrong bytes belong to are not counted. If SQLite can read no commit of the log, the database may have some of them. `page_bytes` counts if
/// the head of the log is wrong. Reads the log once.
pub(super) fn unread_commits(database: &Path, page_bytes: u32) -> Result<u64, StoreError> {
    let path = beside(database, "-wal");
    let count = || match File::open(&path) {
        Ok(file) => count(BufReader::with_capacity(1 << 16, file), page_bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    };
    count().map_err(|error| StoreError::io(&path, error))
}

fn count(mut log: impl Read + Seek, page_bytes: u32) -> io::Result<u64> {
    let mut head = [0; HEAD];
    if !is_filled(&mut log, &mut head)? {
        return Ok(0);
    }
    let head = Head::of(&head);
    let page_bytes = if head.is_whole { head.page_bytes } else { page_bytes };
    // A page has at most 64 KiB.
    let page_bytes = page_bytes.min(1 << 16) as usize;
    let Some(salts) = head.salts(&mut log, page_bytes)? else {
        return Ok(0);
    };
    log.seek(SeekFrom::Start(HEAD as u64))?;
    let mut frame = vec![0; FRAME_HEAD + page_bytes];
    let (mut before, mut is_readable, mut unread) = (head.sums, head.is_whole, 0);
    while is_filled(&mut log, &mut frame)? {
        if salts_at(&frame, 8) == salts {
            let is_intact = continues(before, &frame, head.is_big_endian);
            is_readable &= is_intact;
            unread += u64::from(is_intact && ends_commit(&frame) && !is_readable);
        } else {
            is_readable = false;
        }
        before = sums_of(&frame);
    }
    Ok(unread)
}

/// Returns where the log ends without its last `commits`, of those that can be read; `None` if it has fewer. Reads the log once.
pub(super) fn end_without_last(log: File, commits: u64, page_bytes: u32) -> io::Result<Option<u64>> {
    let mut log = BufReader::with_capacity(1 << 16, log);
    let mut head = [0; HEAD];
    if !is_filled(&mut log, &mut head)? {
        return Ok(None);
    }
    let head = Head::of(&head);
    if !head.is_whole || head.page_bytes != page_bytes {
        return Ok(None);
    }
    let mut frame = vec![0; FRAME_HEAD + page_bytes as usize];
    let (mut before, mut at, mut ends) = (head.sums, HEAD as u64, VecDeque::from([HEAD as u64]));
    while is_filled(&mut log, &mut frame)?
        && salts_at(&frame, 8) == head.salts
        && continues(before, &frame, head.is_big_endian)
    {
        at += frame.len() as u64;
        before = sums_of(&frame);
        if ends_commit(&frame) {
            ends.push_back(at);
            // The first is the one that is wanted, once the log has as many behind it.
            if ends.len() as u64 > commits.saturating_add(1) {
                ends.pop_front();
            }
        }
    }
    Ok(ends
        .front()
        .copied()
        .filter(|_| ends.len() as u64 == commits.saturating_add(1)))
}

/// Fills the buffer; returns whether there were enough bytes.
fn is_filled(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the number at a place; 0 if there is none.
pub(super) fn number(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..).and_then(<[u8]>::first_chunk);
    four.map_or(0, |four| u32::from_be_bytes(*four))
}

pub(super) fn salts_at(bytes: &[u8], at: usize) -> Salts {
    let salts = bytes.get(at..).and_then(<[u8]>::first_chunk);
    salts.copied().unwrap_or_default()
}

/// Returns the checksum in a frame.
pub(super) fn sums_of(frame: &[u8]) -> Sums {
    [number(frame, 16), number(frame, 20)]
}

pub(super) fn ends_commit(frame: &[u8]) -> bool {
    number(frame, 4) > 0
}

/// Returns whether the checksum of a frame is right, and continues that of the frame before.
pub(super) fn continues(before: Sums, frame: &[u8], is_big_endian: bool) -> bool {
    let (Some(head), Some(page)) = (frame.get(..8), frame.get(FRAME_HEAD..)) else {
        return false;
    };
    checksum(checksum(before, head, is_big_endian), page, is_big_endian) == sums_of(frame)
}

/// Continues a checksum over bytes, whose number is a multiple of 8.
fn checksum(before: Sums, bytes: &[u8], is_big_endian: bool) -> Sums {
    let word = |four: &[u8; 4]| match is_big_endian {
        true => u32::from_be_bytes(*four),
        false => u32::from_le_bytes(*four),
    };
    let (words, _) = bytes.as_chunks();
    let (pairs, _) = words.as_chunks();
    pairs.iter().fold(before, |[first, second], [one, other]| {
        let first = first.wrapping_add(word(one)).wrapping_add(second);
        [first, second.wrapping_add(word(other)).wrapping_add(first)]
    })
}
