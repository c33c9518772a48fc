//! Decides what a tag becomes, without a tree: the part of tree construction (13.2.6) that links depend on.
//!
//! Outside foreign content, templates and framesets, every tag that may hold a link becomes an element, whatever else
//! is open. Only its position may differ from the source. So no stack of HTML elements is kept, except for two cases:
//! - tables, because content outside of cells moves in front of the table;
//! - templates, because their content has no links.
//!
//! For SVG and MathML there is a stack. Documents that this cannot decide are refused with [`NeedsTree`].

mod foreign;
mod tables;
mod templates;

use std::fmt;

use super::tag::{Name, Tag, code};
use super::tokens::Next;
use foreign::Foreign;
use tables::Tables;
use templates::Templates;

/// Why a document needs a tree to find its links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NeedsTree {
    /// A `<frameset>`, which may replace the whole body.
    Frameset,
    /// A link between the cells of a table that already has links: it moves in front of the table.
    LinkBeforeTable,
    /// An open `<object>`, `<applet>` or `<marquee>` where a part of a table ends. Links may be reopened in front of
    /// the table.
    ObjectLeftOpen,
    /// Parts of a table in a template that may affect the text after the template.
    ///
    /// A column may make the template ignore all other tags. A link with a cell, or another element that sets a marker,
    /// may be reopened after the template.
    TableInTemplate,
    /// HTML elements within SVG or MathML.
    HtmlInForeign,
    /// An end tag in SVG or MathML that may close elements around it.
    ForeignCutShort,
    /// SVG or MathML that is nested too deep for the scanner.
    DeepForeign,
    /// A NUL in the name of an SVG or MathML element, which changes the name.
    OddName,
}

impl fmt::Display for NeedsTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frameset => "a frameset",
            Self::LinkBeforeTable => "a link that belongs before its table",
            Self::ObjectLeftOpen => "an object left open in a table",
            Self::TableInTemplate => "parts of a table in a template",
            Self::HtmlInForeign => "HTML in SVG or MathML",
            Self::ForeignCutShort => "SVG or MathML that is not closed",
            Self::DeepForeign => "SVG or MathML nested too deep",
            Self::OddName => "a NUL in the name of an element",
        })
    }
}

/// What a start tag becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Html,
    Svg,
    /// Nothing that may have links: content of a template, MathML, or no element at all.
    Unread,
}

/// Returns how the text after the start tag of an HTML element is tokenized.
#[inline]
pub(super) fn text_after(name: &Name<'_>) -> Next {
    match name.code() {
        TITLE | TEXTAREA => Next::Rcdata,
        STYLE | XMP | IFRAME | NOEMBED | NOFRAMES => Next::Rawtext,
        SCRIPT => Next::Script,
        _ if name.is("plaintext") => Next::Plaintext,
        _ => Next::Data,
    }
}

/// What is open, as far as links depend on it.
#[derive(Debug, Default)]
pub(super) struct Construction {
    tables: Tables,
    foreign: Foreign,
    templates: Templates,
}

impl Construction {
    /// Processes a start tag. Returns what it becomes, and how the text after it must be tokenized.
    pub(super) fn start_tag(&mut self, tag: &Tag<'_, '_>) -> Result<(Element, Next), NeedsTree> {
        if self.foreign.is_open() {
            self.foreign.start_tag(tag)?;
            return Ok((self.unless_in_template(self.foreign.namespace()), Next::Data));
        }
        let name = &tag.name;
        match name.code() {
            SVG | MATH => {
                self.foreign.enter(tag);
                return Ok((Element::Unread, Next::Data));
            }
            FRAMESET => return Err(NeedsTree::Frameset),
            TEMPLATE => {
                self.templates.enter();
                return Ok((Element::Unread, Next::Data));
            }
            _ => {}
        }
        if self.templates.are_open() {
            self.templates.start_tag(name)?;
        } else {
            self.tables.start_tag(name)?;
        }
        self.foreign.note_html_element(name);
        Ok((self.unless_in_template(Element::Html), text_after(name)))
    }

    pub(super) fn end_tag(&mut self, name: &Name<'_>) -> Result<(), NeedsTree> {
        if self.foreign.is_open() {
            return self.foreign.end_tag(name);
        }
        if name.code() == TEMPLATE {
            self.templates.leave();
        } else if !self.templates.are_open() {
            self.tables.end_tag(name)?;
        }
        Ok(())
    }

    /// Records that the last start tag made an element that may hold a link.
    pub(super) fn count_element(&mut self) -> Result<(), NeedsTree> {
        self.tables.count_element()
    }

    pub(super) fn is_in_foreign_content(&self) -> bool {
        self.foreign.is_open()
    }

    fn unless_in_template(&self, element: Element) -> Element {
        if self.templates.are_open() {
            Element::Unread
        } else {
            element
        }
    }
}

const FRAMESET: u64 = code(b"frameset");
const IFRAME: u64 = code(b"iframe");
const MATH: u64 = code(b"math");
const NOEMBED: u64 = code(b"noembed");
const NOFRAMES: u64 = code(b"noframes");
const SCRIPT: u64 = code(b"script");
const STYLE: u64 = code(b"style");
const SVG: u64 = code(b"svg");
const TEMPLATE: u64 = code(b"template");
const TEXTAREA: u64 = code(b"textarea");
const TITLE: u64 = code(b"title");
const XMP: u64 = code(b"xmp");
