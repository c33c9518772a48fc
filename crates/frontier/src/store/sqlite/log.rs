//! The log of the database (WAL): whether bytes in its middle are wrong.
//!
//! SQLite reads a log up to the first frame whose checksum is wrong, and takes it for the end: after a power cut it is. The frames behind it
//! are lost then, with the commits that they end. Their checksums continue those of the frames before them, so frames that are intact
//! behind a wrong one can be told from those of an earlier log, and from what a crash left unfinished.
//!
//! Source of the format: <https://sqlite.org/fileformat2.html>, sections 4.1 to 4.2.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

use super::format::beside;
use crate::store::StoreError;

const HEAD: usize = 32;
const FRAME_HEAD: usize = 24;
/// The last bit of the mark says in which order the checksum takes bytes.
const MARK: u32 = 0x377f_0682;

/// The two sums of a checksum.
type Sums = (u32, u32);

/// Counts the commits in the log of a database that are intact, but cannot be read, because bytes before them are wrong. The commits that the
/// wrong bytes belong to are not counted. `page_bytes` counts if the head of the log cannot be read. Reads the log once.
pub(super) fn unread_commits(database: &Path, page_bytes: u32) -> Result<u64, StoreError> {
    let path = beside(database, "-wal");
    let count = || match File::open(&path) {
        Ok(file) => count(BufReader::with_capacity(1 << 16, file), page_bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    };
    count().map_err(|error| StoreError::io(&path, error))
}

fn count(mut log: impl Read, page_bytes: u32) -> io::Result<u64> {
    let mut head = [0; HEAD];
    if !is_filled(&mut log, &mut head)? {
        return Ok(0);
    }
    let (summed, stored) = head.split_at(24);
    let is_whole = |is_big_endian| {
        let mark = MARK | u32::from(is_big_endian);
        number(&head, 0) == mark && sums_of((0, 0), summed, is_big_endian) == (number(stored, 0), number(stored, 4))
    };
    let is_head_whole = is_whole(false) || is_whole(true);
    // SQLite takes the order of the machine.
    let is_big_endian = if is_head_whole {
        is_whole(true)
    } else {
        cfg!(target_endian = "big")
    };
    let page_bytes = if is_head_whole { number(&head, 8) } else { page_bytes };
    let mut salts = is_head_whole.then(|| (number(&head, 16), number(&head, 20)));
    // A page has at most 64 KiB.
    let mut frame = vec![0; FRAME_HEAD + page_bytes.min(1 << 16) as usize];
    let (mut before, mut is_readable, mut unread) = ((number(stored, 0), number(stored, 4)), is_head_whole, 0);
    while is_filled(&mut log, &mut frame)? {
        let (head, page) = frame.split_at(FRAME_HEAD);
        let of_frame = (number(head, 8), number(head, 12));
        if *salts.get_or_insert(of_frame) == of_frame {
            let sums = sums_of(before, head.get(..8).unwrap_or_default(), is_big_endian);
            let is_intact = sums_of(sums, page, is_big_endian) == (number(head, 16), number(head, 20));
            is_readable &= is_intact;
            let ends_commit = number(head, 4) != 0;
            unread += u64::from(is_intact && ends_commit && !is_readable);
        } else {
            is_readable = false;
        }
        before = (number(head, 16), number(head, 20));
    }
    Ok(unread)
}

/// Fills the buffer; returns whether there were enough bytes.
fn is_filled(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns four bytes as a number; 0 if they are not there.
fn number(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..).and_then(<[u8]>::first_chunk);
    four.map_or(0, |four| u32::from_be_bytes(*four))
}

fn sums_of(before: Sums, bytes: &[u8], is_big_endian: bool) -> Sums {
    let word = |four: &[u8; 4]| match is_big_endian {
        true => u32::from_be_bytes(*four),
        false => u32::from_le_bytes(*four),
    };
    let (words, _) = bytes.as_chunks();
    let (pairs, _) = words.as_chunks();
    pairs.iter().fold(before, |(first, second), [one, other]| {
        let first = first.wrapping_add(word(one)).wrapping_add(second);
        (first, second.wrapping_add(word(other)).wrapping_add(first))
    })
}
