//! Where in its tables a document stands (13.2.6.4.9 to 13.2.6.4.15).
//!
//! What stands in a table but in none of its cells is put before the table ("foster parenting"). That moves a link in
//! front of those that the table already has. As no end tag but those of tables reaches across a cell or a table, they
//! can be followed without the rest of the stack.

use super::NeedsTree;
use crate::links::tag::{Name, code};

/// The tables that are open, the innermost last.
#[derive(Debug, Default)]
pub(super) struct Tables {
    open: Vec<Table>,
    /// How many elements that count the document has so far.
    read: u32,
}

#[derive(Debug)]
struct Table {
    part: Part,
    /// `tbody`, `thead` or `tfoot`, where the part is in one.
    section: u64,
    /// How many elements that count came before the table.
    read_before: u32,
}

/// The innermost part of a table that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The table itself, or a column group, which anything but a column closes.
    Table,
    Section,
    Row,
    /// A `td` or `th`.
    Cell(u64),
    Caption,
}

impl Table {
    fn holds_content(&self) -> bool {
        matches!(self.part, Part::Cell(_) | Part::Caption)
    }

    fn is_in_section(&self) -> bool {
        matches!(self.part, Part::Section | Part::Row | Part::Cell(_))
    }

    fn open_section(&mut self, name: u64) {
        self.section = name;
        self.part = Part::Section;
    }

    /// Opens what a row or a cell needs around it and is not there.
    fn open_section_if_none(&mut self) {
        if !self.is_in_section() {
            self.section = TBODY;
        }
    }
}

impl Tables {
    /// Takes the start tag of an HTML element that is not in a template.
    #[inline]
    pub(super) fn start_tag(&mut self, name: &Name<'_>) {
        match name.code() {
            TABLE => self.start_table(),
            CAPTION | COL | COLGROUP => self.start_part(name, |table, name| {
                table.part = if name == CAPTION { Part::Caption } else { Part::Table };
            }),
            TBODY | THEAD | TFOOT => self.start_part(name, Table::open_section),
            TR => self.start_part(name, |table, _| {
                table.open_section_if_none();
                table.part = Part::Row;
            }),
            TD | TH => self.start_part(name, |table, name| {
                table.open_section_if_none();
                table.part = Part::Cell(name);
            }),
            _ => {}
        }
    }

    /// A table in a cell or a caption is nested; between cells it ends the one before.
    fn start_table(&mut self) {
        if self.open.last().is_some_and(|table| !table.holds_content()) {
            self.open.pop();
        }
        self.open.push(Table {
            part: Part::Table,
            section: 0,
            read_before: self.read,
        });
    }

    /// A part of a table closes what is open in that table; outside of tables it is nothing.
    fn start_part(&mut self, name: &Name<'_>, start: impl FnOnce(&mut Table, u64)) {
        if let Some(table) = self.open.last_mut() {
            start(table, name.code());
        }
    }

    /// Takes an end tag that is neither in foreign content nor in a template.
    #[inline]
    pub(super) fn end_tag(&mut self, name: &Name<'_>) {
        let Some(table) = self.open.last_mut() else {
            return;
        };
        table.part = match (name.code(), table.part) {
            (TABLE, _) => {
                self.open.pop();
                return;
            }
            (CAPTION, Part::Caption) => Part::Table,
            (section @ (TBODY | THEAD | TFOOT), _) if table.is_in_section() && table.section == section => Part::Table,
            (TR, Part::Row | Part::Cell(_)) => Part::Section,
            (cell @ (TD | TH), Part::Cell(open)) if cell == open => Part::Row,
            (_, part) => part,
        };
    }

    /// Takes note of an element that counts and stands here.
    pub(super) fn is_read(&mut self) -> Result<(), NeedsTree> {
        let moves = |table: &Table| !table.holds_content() && self.read > table.read_before;
        if self.open.last().is_some_and(moves) {
            return Err(NeedsTree::LinkBeforeTable);
        }
        self.read = self.read.saturating_add(1);
        Ok(())
    }
}

const CAPTION: u64 = code(b"caption");
const COL: u64 = code(b"col");
const COLGROUP: u64 = code(b"colgroup");
const TABLE: u64 = code(b"table");
const TBODY: u64 = code(b"tbody");
const TD: u64 = code(b"td");
const TFOOT: u64 = code(b"tfoot");
const TH: u64 = code(b"th");
const THEAD: u64 = code(b"thead");
const TR: u64 = code(b"tr");
