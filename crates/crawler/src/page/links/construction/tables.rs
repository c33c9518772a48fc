//! Tracks the position of a document inside its tables (13.2.6.4.9 to 13.2.6.4.15).
//!
//! Content of a table outside its cells moves in front of the table ("foster parenting"). That also moves a link in
//! front of the links that the table already has. Only end tags of tables and their parts close tables and cells. So
//! tables can be tracked without the rest of the stack.

use super::NeedsTree;
use crate::page::links::tag::{Name, code};

/// The open tables, the innermost last.
#[derive(Debug, Default)]
pub(super) struct Tables {
    open: Vec<Table>,
    /// How many elements that may hold a link the document has so far.
    elements: u32,
}

#[derive(Debug)]
struct Table {
    part: Part,
    /// How many of them came before the table.
    elements_before: u32,
    object: Object,
}

/// The innermost open part of a table, and the parts around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The table itself, or a column group, which any tag but a column closes.
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

/// The open `<applet>`, `<marquee>` and `<object>` in a cell. All three set the same marker on the list of active
/// formatting elements.
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

    /// Returns the part after this start tag; `None` if it opens no part of a table.
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

    /// Returns the part after this end tag; `None` if it closes no part.
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
    /// Moves from this part of the table to another.
    fn move_to(&mut self, part: Part) -> Result<(), NeedsTree> {
        self.leave()?;
        self.part = part;
        Ok(())
    }

    /// Leaves a cell. If an object is open in it, its links may be reopened in front of the table.
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
    /// Processes the start tag of an HTML element outside templates.
    #[inline]
    pub(super) fn start_tag(&mut self, name: &Name<'_>) -> Result<(), NeedsTree> {
        if name.code() == TABLE {
            return self.start_table();
        }
        // Outside a table its parts are ignored.
        let Some(table) = self.open.last_mut() else {
            return Ok(());
        };
        match name.code() {
            APPLET => table.start_object(ObjectKind::Applet),
            MARQUEE => table.start_object(ObjectKind::Marquee),
            OBJECT => table.start_object(ObjectKind::Object),
            // No end tag closes elements outside of a `<select>`.
            SELECT if table.object != Object::None => table.object = Object::Unsure,
            name => {
                if let Some(part) = table.part.after_start(name) {
                    return table.move_to(part);
                }
            }
        }
        Ok(())
    }

    /// Starts a table. In a cell or a caption it is nested; between cells it ends the table before it.
    fn start_table(&mut self) -> Result<(), NeedsTree> {
        if let Some(table) = self.open.last().filter(|table| !table.part.holds_content()) {
            table.leave()?;
            self.open.pop();
        }
        self.open.push(Table {
            part: Part::Table,
            elements_before: self.elements,
            object: Object::None,
        });
        Ok(())
    }

    /// Processes an end tag outside foreign content and templates.
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
                    return table.move_to(part);
                }
            }
        }
        Ok(())
    }

    /// Counts an element that may hold a link at this position.
    pub(super) fn count_element(&mut self) -> Result<(), NeedsTree> {
        let moves = |table: &Table| !table.part.holds_content() && self.elements > table.elements_before;
        if self.open.last().is_some_and(moves) {
            return Err(NeedsTree::LinkBeforeTable);
        }
        self.elements = self.elements.saturating_add(1);
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
