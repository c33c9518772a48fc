//! Where in its tables a document stands (13.2.6.4.9 to 13.2.6.4.15).
//!
//! What stands in a table but in none of its cells is put before the table ("foster parenting"). That moves a link in
//! front of those that the table already has. As no end tag but those of tables reaches across a cell or a table, they
//! can be followed without the rest of the stack.

use super::NeedsTree;
use crate::page::links::tag::{Name, code};

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
    /// How many elements that count came before the table.
    read_before: u32,
    object: Object,
}

/// The innermost part of a table that is open, with what is around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The table itself, or a column group, which anything but a column closes.
    Table,
    Section(Section),
    Row(Section),
    Cell(Section, Cell),
    Caption,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Body,
    Head,
    Foot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Data,
    Header,
}

/// What of `<applet>`, `<marquee>` and `<object>` is open in a cell: they share its mark on the list of active formatting
/// elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Object {
    None,
    Open(ObjectKind),
    /// More than one, or one whose end tag may be ignored.
    Unsure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectKind {
    Applet,
    Marquee,
    Object,
}

impl Part {
    fn holds_content(self) -> bool {
        matches!(self, Self::Cell(..) | Self::Caption)
    }

    fn section(self) -> Option<Section> {
        match self {
            Self::Section(section) | Self::Row(section) | Self::Cell(section, _) => Some(section),
            Self::Table | Self::Caption => None,
        }
    }

    /// What this start tag opens in a table that stands here; `None` if it is none of a table's parts.
    fn after_start(self, name: u64) -> Option<Self> {
        let section = self.section().unwrap_or(Section::Body);
        Some(match name {
            CAPTION => Self::Caption,
            COL | COLGROUP => Self::Table,
            TBODY => Self::Section(Section::Body),
            THEAD => Self::Section(Section::Head),
            TFOOT => Self::Section(Section::Foot),
            TR => Self::Row(section),
            TD => Self::Cell(section, Cell::Data),
            TH => Self::Cell(section, Cell::Header),
            _ => return None,
        })
    }

    /// Where a table stands after this end tag; `None` if it closes no part.
    fn after_end(self, name: u64) -> Option<Self> {
        match (name, self) {
            (CAPTION, Self::Caption) => Some(Self::Table),
            (TBODY, _) if self.section() == Some(Section::Body) => Some(Self::Table),
            (THEAD, _) if self.section() == Some(Section::Head) => Some(Self::Table),
            (TFOOT, _) if self.section() == Some(Section::Foot) => Some(Self::Table),
            (TR, Self::Row(section) | Self::Cell(section, _)) => Some(Self::Section(section)),
            (TD, Self::Cell(section, Cell::Data)) | (TH, Self::Cell(section, Cell::Header)) => Some(Self::Row(section)),
            _ => None,
        }
    }
}

impl Table {
    /// Leaves a part of the table for another one.
    fn turn_to(&mut self, part: Part) -> Result<(), NeedsTree> {
        self.leave()?;
        self.part = part;
        Ok(())
    }

    /// A cell that is closed over an open object leaves its links to be opened again, before the table maybe.
    fn leave(&self) -> Result<(), NeedsTree> {
        match self.object {
            Object::None => Ok(()),
            Object::Open(_) | Object::Unsure => Err(NeedsTree::ObjectLeftOpen),
        }
    }

    fn start_object(&mut self, kind: ObjectKind) {
        self.object = match self.object {
            Object::None => Object::Open(kind),
            Object::Open(_) | Object::Unsure => Object::Unsure,
        };
    }
}

impl Tables {
    /// Takes the start tag of an HTML element that is not in a template.
    #[inline]
    pub(super) fn start_tag(&mut self, name: &Name<'_>) -> Result<(), NeedsTree> {
        if name.code() == TABLE {
            return self.start_table();
        }
        // Outside of tables their parts are nothing.
        let Some(table) = self.open.last_mut() else {
            return Ok(());
        };
        match name.code() {
            APPLET => table.start_object(ObjectKind::Applet),
            MARQUEE => table.start_object(ObjectKind::Marquee),
            OBJECT => table.start_object(ObjectKind::Object),
            // No end tag reaches out of it.
            SELECT if table.object != Object::None => table.object = Object::Unsure,
            name => {
                if let Some(part) = table.part.after_start(name) {
                    return table.turn_to(part);
                }
            }
        }
        Ok(())
    }

    /// A table in a cell or a caption is nested; between cells it ends the one before.
    fn start_table(&mut self) -> Result<(), NeedsTree> {
        if let Some(table) = self.open.last().filter(|table| !table.part.holds_content()) {
            table.leave()?;
            self.open.pop();
        }
        self.open.push(Table {
            part: Part::Table,
            read_before: self.read,
            object: Object::None,
        });
        Ok(())
    }

    /// Takes an end tag that is neither in foreign content nor in a template.
    #[inline]
    pub(super) fn end_tag(&mut self, name: &Name<'_>) -> Result<(), NeedsTree> {
        let Some(table) = self.open.last_mut() else {
            return Ok(());
        };
        match (name.code(), table.object) {
            (TABLE, _) => {
                table.leave()?;
                self.open.pop();
            }
            (APPLET, Object::Open(ObjectKind::Applet))
            | (MARQUEE, Object::Open(ObjectKind::Marquee))
            | (OBJECT, Object::Open(ObjectKind::Object)) => table.object = Object::None,
            (name, _) => {
                if let Some(part) = table.part.after_end(name) {
                    return table.turn_to(part);
                }
            }
        }
        Ok(())
    }

    /// Takes note of an element that counts and stands here.
    pub(super) fn is_read(&mut self) -> Result<(), NeedsTree> {
        let moves = |table: &Table| !table.part.holds_content() && self.read > table.read_before;
        if self.open.last().is_some_and(moves) {
            return Err(NeedsTree::LinkBeforeTable);
        }
        self.read = self.read.saturating_add(1);
        Ok(())
    }
}

const APPLET: u64 = code(b"applet");
const CAPTION: u64 = code(b"caption");
const COL: u64 = code(b"col");
const COLGROUP: u64 = code(b"colgroup");
const MARQUEE: u64 = code(b"marquee");
const OBJECT: u64 = code(b"object");
const SELECT: u64 = code(b"select");
const TABLE: u64 = code(b"table");
const TBODY: u64 = code(b"tbody");
const TD: u64 = code(b"td");
const TFOOT: u64 = code(b"tfoot");
const TH: u64 = code(b"th");
const THEAD: u64 = code(b"thead");
const TR: u64 = code(b"tr");
