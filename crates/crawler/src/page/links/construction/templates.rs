//! Templates, whose content is no part of the document (13.2.6.4.22).

use super::NeedsTree;
use crate::page::links::tag::{Name, code};

/// The open templates.
///
/// No tag in a template closes anything outside of it. Two effects still reach further:
/// - A column in a template may make it ignore all tags but columns.
/// - An `<a>` left open is reopened after the template, if a cell or another element that sets a marker was left open
///   after it.
#[derive(Debug, Default)]
pub(super) struct Templates {
    open: usize,
    /// Whether the outermost open template, or anything in it, holds an `<a>`.
    anchor: bool,
    /// Whether it holds an element that sets a marker on the list of active formatting elements.
    marker: bool,
}

impl Templates {
    pub(super) fn are_open(&self) -> bool {
        self.open > 0
    }

    pub(super) fn enter(&mut self) {
        if self.open == 0 {
            (self.anchor, self.marker) = (false, false);
        }
        self.open += 1;
    }

    pub(super) fn leave(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Processes the start tag of an HTML element in a template.
    pub(super) fn start_tag(&mut self, name: &Name<'_>) -> Result<(), NeedsTree> {
        match name.code() {
            COL => return Err(NeedsTree::TableInTemplate),
            A => self.anchor = true,
            APPLET | CAPTION | MARQUEE | OBJECT | TD | TH => self.marker = true,
            _ => {}
        }
        if self.anchor && self.marker {
            return Err(NeedsTree::TableInTemplate);
        }
        Ok(())
    }
}

const A: u64 = code(b"a");
const APPLET: u64 = code(b"applet");
const CAPTION: u64 = code(b"caption");
const COL: u64 = code(b"col");
const MARQUEE: u64 = code(b"marquee");
const OBJECT: u64 = code(b"object");
const TD: u64 = code(b"td");
const TH: u64 = code(b"th");
