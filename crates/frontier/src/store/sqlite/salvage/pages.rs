//! The pages of a database and of its log, without SQLite, which refuses a tree with one wrong page.
//!
//! The formats are those of <https://sqlite.org/fileformat2.html>. A page that cannot be read is missing, and nothing else is.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::super::log::number;
use super::super::{format, log};
use crate::store::StoreError;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// A page of the log.
#[derive(Debug)]
struct Frame {
    page: u32,
    /// The place of its bytes in the log.
    at: u64,
}

/// The pages of both files.
#[derive(Debug)]
pub(super) struct Pages {
    database: Option<File>,
    log_file: Option<File>,
    pub(super) page_bytes: usize,
    /// Pages in the database.
    in_database: u32,
    /// Pages that belong to the last commit of the log; those behind are left over.
    committed: Option<u32>,
    frames: Vec<Frame>,
    /// The last frame of each page.
    last_frames: HashMap<u32, usize>,
    pub(super) log: Log,
}

/// How much of the log is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    /// All of it, so the last of its pages are the current ones.
    Whole,
    /// It has wrong bytes. Any of its pages may be the current one.
    Damaged,
    /// Its end is missing, and the database has pages of later commits.
    CutOff,
}

/// One place at which a page lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Database(u32),
    /// The number of a frame.
    Log(usize),
}

impl Pages {
    pub(super) fn open(database: &Path, usual_page_bytes: usize) -> Result<Self, StoreError> {
        let mut log = open(&format::beside(database, "-wal"))?;
        let mut file = open(database)?;
        let of_log = log.as_mut().and_then(page_bytes_of_log);
        let page_bytes = file.as_mut().and_then(page_bytes_of_database).or(of_log);
        let page_bytes = page_bytes.unwrap_or(usual_page_bytes);
        let length = |file: &Option<File>| {
            file.as_ref()
                .and_then(|file| file.metadata().ok())
                .map_or(0, |file| file.len())
        };
        let in_database = u32::try_from(length(&file).div_ceil(page_bytes as u64)).unwrap_or(u32::MAX);
        let mut pages = Self {
            database: file,
            page_bytes,
            in_database,
            committed: None,
            frames: Vec::new(),
            last_frames: HashMap::new(),
            log: Log::Whole,
            log_file: None,
        };
        if let Some(log) = log {
            pages.read_log(log);
        }
        Ok(pages)
    }

    /// Finds the frames of the log up to its last commit. Those of an earlier log, which it overwrites, have other salts.
    fn read_log(&mut self, mut log: File) {
        let Some(head) = read(&mut log, 0, log::HEAD) else {
            return;
        };
        let head = log::Head::of(&head);
        let Ok(Some(salts)) = head.salts(&mut log, self.page_bytes) else {
            return;
        };
        let (mut before, mut at) = (head.sums, log::HEAD as u64);
        let (mut committed, mut is_whole, mut whole_until) = (0, head.is_whole, 0);
        let frame_bytes = log::FRAME_HEAD + self.page_bytes;
        while let Some(frame) = read(&mut log, at, frame_bytes) {
            let is_intact = log::continues(before, &frame, head.is_big_endian);
            before = log::sums_of(&frame);
            if log::salts_at(&frame, 8) == salts {
                is_whole &= is_intact;
                self.frames.push(Frame {
                    page: number(&frame, 0),
                    at: at + log::FRAME_HEAD as u64,
                });
                if log::ends_commit(&frame) {
                    committed = self.frames.len();
                    self.committed = Some(number(&frame, 4));
                    whole_until = if is_whole { committed } else { whole_until };
                }
            } else {
                // Of an earlier log, or damaged: then later frames show it.
                is_whole = false;
            }
            at += frame_bytes as u64;
        }
        if whole_until != committed {
            self.log = Log::Damaged;
        }
        self.frames.truncate(committed);
        self.last_frames = self
            .frames
            .iter()
            .enumerate()
            .map(|(at, frame)| (frame.page, at))
            .collect();
        self.log_file = Some(log);
    }

    /// Returns all places at which current pages may lie, the oldest first.
    pub(super) fn sources(&mut self) -> Vec<Source> {
        let database = (1..=self.in_database).map(Source::Database);
        let log = (0..self.frames.len()).map(Source::Log);
        match self.log {
            Log::Whole => {
                let free = self.free_pages(true);
                let last = self.committed.unwrap_or(self.in_database);
                let is_current = |source: &Source| {
                    let (page, frame) = match *source {
                        Source::Database(page) => (page, None),
                        Source::Log(frame) => (self.frames[frame].page, Some(frame)),
                    };
                    page <= last && !free.contains(&page) && self.last_frames.get(&page).copied() == frame
                };
                database.chain(log).filter(is_current).collect()
            }
            Log::Damaged => database.chain(log).collect(),
            Log::CutOff => {
                let free = self.free_pages(false);
                let is_free = |page: &Source| matches!(page, Source::Database(page) if free.contains(page));
                log.chain(database).filter(|source| !is_free(source)).collect()
            }
        }
    }

    /// Returns the bytes at a place. The last page of a file that was cut off is filled with zeros.
    pub(super) fn at(&mut self, source: Source) -> Option<Vec<u8>> {
        let bytes = self.page_bytes;
        match source {
            Source::Log(frame) => {
                let at = self.frames.get(frame)?.at;
                read(self.log_file.as_mut()?, at, bytes)
            }
            Source::Database(page) => {
                let at = u64::from(page.checked_sub(1)?) * bytes as u64;
                let mut found = read_some(self.database.as_mut()?, at, bytes)?;
                found.resize(bytes, 0);
                Some(found)
            }
        }
    }

    /// Returns a page as it is with the log, or as it was before.
    pub(super) fn page(&mut self, page: u32, with_log: bool) -> Option<Vec<u8>> {
        match self.last_frames.get(&page) {
            Some(frame) if with_log => self.at(Source::Log(*frame)),
            _ if page <= self.in_database => self.at(Source::Database(page)),
            _ => None,
        }
    }

    /// Returns an upper bound of the bytes of a value.
    pub(super) fn bytes(&self) -> u64 {
        (u64::from(self.in_database) + self.frames.len() as u64) * self.page_bytes as u64
    }

    /// Returns the pages that are free, in the database with its log or by itself, as far as the list of them can be read. They have what was
    /// removed.
    fn free_pages(&mut self, with_log: bool) -> HashSet<u32> {
        let mut free = HashSet::new();
        let Some(first) = self.page(1, with_log) else {
            return free;
        };
        let mut trunk = number(&first, 32);
        while trunk != 0 && free.insert(trunk) {
            let Some(page) = self.page(trunk, with_log) else { break };
            let most = self.page_bytes / 4 - 2;
            let leaves = (number(&page, 4) as usize).min(most);
            free.extend((0..leaves).map(|at| number(&page, 8 + at * 4)));
            trunk = number(&page, 0);
        }
        free
    }
}

/// Opens a file for reading; `None` if it is not there.
fn open(path: &Path) -> Result<Option<File>, StoreError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io(path, error)),
    }
}

/// Reads exactly `bytes` bytes; `None` if they are not there, or cannot be read.
fn read(file: &mut File, at: u64, bytes: usize) -> Option<Vec<u8>> {
    read_some(file, at, bytes).filter(|found| found.len() == bytes)
}

/// Reads `bytes` bytes, or those up to the end of the file.
fn read_some(file: &mut File, at: u64, bytes: usize) -> Option<Vec<u8>> {
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut found = Vec::with_capacity(bytes);
    file.take(bytes as u64).read_to_end(&mut found).ok()?;
    Some(found)
}

fn page_bytes_of_database(database: &mut File) -> Option<usize> {
    let head = read(database, 0, 18)?;
    let bytes = usize::from(u16::from_be_bytes([head[16], head[17]]));
    (head.starts_with(MAGIC) && is_page_size(bytes)).then_some(bytes)
}

fn page_bytes_of_log(log: &mut File) -> Option<usize> {
    let bytes = number(&read(log, 8, 4)?, 0) as usize;
    is_page_size(bytes).then_some(bytes)
}

fn is_page_size(bytes: usize) -> bool {
    bytes.is_power_of_two() && (512..=32_768).contains(&bytes)
}
