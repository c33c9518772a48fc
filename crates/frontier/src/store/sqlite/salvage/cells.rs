//! Rows in a leaf page of a table, each with its key, its seal and its value.
//!
//! A row is a record of three columns: the key, which lies in the head of the cell, the seal, and the value. What does not fit into the
//! page lies in a chain of other pages.

use super::super::log::number;
use super::pages::{Pages, Source};

/// The kind of a leaf page of a table.
const LEAF: u8 = 13;

/// A row as it lies there. Nothing of it was checked.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) key: u64,
    pub(super) seal: u64,
    pub(super) sealed: Vec<u8>,
}

/// Visits the rows of a page. A row with its value in other pages may come twice: with those of the log, and with those of the database.
pub(super) fn visit_rows<E>(
    pages: &mut Pages,
    source: Source,
    visit: &mut dyn FnMut(Row) -> Result<(), E>,
) -> Result<(), E> {
    let Some(page) = pages.at(source) else { return Ok(()) };
    // One bit of the kind may be wrong. What is no row has a wrong seal.
    if (page[0] ^ LEAF).count_ones() > 1 {
        return Ok(());
    }
    let cells = usize::from(u16::from_be_bytes([page[3], page[4]]));
    for cell in page[8..].chunks_exact(2).take(cells) {
        let at = usize::from(u16::from_be_bytes([cell[0], cell[1]]));
        let Some(cell) = Cell::read(&page, at) else { continue };
        let is_alone = cell.next_page.is_none();
        for with_log in [true, false] {
            let row = cell
                .payload(pages, with_log)
                .and_then(|payload| Row::read(cell.key, &payload));
            if let Some(row) = row {
                visit(row)?;
            }
            if is_alone {
                break;
            }
        }
    }
    Ok(())
}

struct Cell<'p> {
    key: u64,
    bytes: u64,
    local: &'p [u8],
    /// The first page with the rest.
    next_page: Option<u32>,
}

impl<'p> Cell<'p> {
    fn read(page: &'p [u8], at: usize) -> Option<Self> {
        let mut rest = page.get(at..)?;
        let (bytes, key) = (varint(&mut rest)?, varint(&mut rest)?);
        let usable = page.len() as u64;
        let most = usable - 35;
        if bytes <= most {
            let local = rest.get(..usize::try_from(bytes).ok()?)?;
            return Some(Self {
                key,
                bytes,
                local,
                next_page: None,
            });
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let wanted = least + (bytes - least) % (usable - 4);
        let local = usize::try_from(if wanted <= most { wanted } else { least }).ok()?;
        let next_page = Some(number(rest.get(local..local + 4)?, 0));
        Some(Self {
            key,
            bytes,
            local: rest.get(..local)?,
            next_page,
        })
    }

    /// Returns the record, joined of all its pages.
    fn payload(&self, pages: &mut Pages, with_log: bool) -> Option<Vec<u8>> {
        if self.bytes > pages.bytes() {
            return None;
        }
        let bytes = usize::try_from(self.bytes).ok()?;
        let (mut payload, mut next) = (self.local.to_vec(), self.next_page);
        while let Some(page) = next.filter(|_| payload.len() < bytes) {
            let page = pages.page(page, with_log)?;
            let left = (bytes - payload.len()).min(page.len() - 4);
            payload.extend_from_slice(&page[4..4 + left]);
            next = Some(number(&page, 0)).filter(|next| *next != 0);
        }
        (payload.len() == bytes).then_some(payload)
    }
}

impl Row {
    /// Reads a record: the types of its columns, then their values.
    fn read(key: u64, payload: &[u8]) -> Option<Self> {
        let mut types = payload;
        let head = usize::try_from(varint(&mut types)?).ok()?;
        let [of_key, of_seal, of_value] = [varint(&mut types)?, varint(&mut types)?, varint(&mut types)?];
        if of_key != 0 || head != payload.len() - types.len() {
            return None;
        }
        let width: usize = match of_seal {
            0 | 8 | 9 => 0,
            1..=4 => usize::try_from(of_seal).ok()?,
            5 => 6,
            6 => 8,
            _ => return None,
        };
        let (seal, value) = types.split_at_checked(width)?;
        let negative = seal.first().is_some_and(|byte| *byte >= 0x80);
        let start = if negative { u64::MAX } else { 0 };
        let seal = seal.iter().fold(start, |seal, byte| (seal << 8) | u64::from(*byte));
        let seal = if of_seal == 9 { 1 } else { seal };
        let is_blob = of_value >= 12 && of_value % 2 == 0 && value.len() as u64 == (of_value - 12) / 2;
        is_blob.then(|| Self {
            key,
            seal,
            sealed: value.to_vec(),
        })
    }
}

/// Takes a number of one to nine bytes, the highest bits first.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if place == 8 {
            return Some((number << 8) | u64::from(*byte));
        }
        number = (number << 7) | u64::from(byte & 0x7f);
        if *byte < 0x80 {
            break;
        }
    }
    Some(number)
}
