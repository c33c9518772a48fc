//! What becomes of a tag: as much of the standard's tree construction (13.2.6) as links depend on, without a tree.
//!
//! Outside of foreign content, templates and framesets every tag that may hold a link becomes an element, whatever is
//! open: only its place can surprise. So of HTML's elements no stack is kept, but for tables (what stands wrongly in a
//! table goes before it) and templates (whose content gives nothing). Of SVG and MathML one is kept.
//!
//! What cannot be known so is not guessed: [`NeedsTree`] says why.

mod foreign;
mod tables;
mod templates;

use std::fmt;

use super::tag::{Name, Tag, code};
use super::tokens::Next;
use foreign::Foreign;
use tables::Tables;
use templates::Templates;

/// What a document holds that only a tree can answer for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NeedsTree {
    /// A `<frameset>`, which may take the place of the whole body.
    Frameset,
    /// A link between the cells of a table that has links already: it belongs before the table.
    LinkBeforeTable,
    /// An `<object>` or the like that is open where a part of a table ends: links may be opened again before the table.
    ObjectLeftOpen,
    /// A column in a template, after which the template may ignore anything; or links and cells, and the like, of which
    /// the one may keep the other open beyond the template.
    TableInTemplate,
    /// HTML elements within SVG or MathML.
    HtmlInForeign,
    /// An end tag in SVG or MathML that may close elements outside of it.
    ForeignCutShort,
    /// SVG or MathML nested deeper than any drawing is.
    DeepForeign,
    /// The name of an element of SVG or MathML with a NUL in it, which is another name then.
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
    /// Nothing that links are looked for in: content of a template, MathML, or no element at all.
    Unread,
}

/// What is open, as far as it matters.
#[derive(Debug, Default)]
pub(super) struct Construction {
    tables: Tables,
    foreign: Foreign,
    templates: Templates,
}

impl Construction {
    /// Takes a start tag: what it becomes, and how its content is to be read.
    pub(super) fn start_tag(&mut self, tag: &Tag<'_, '_>) -> Result<(Element, Next), NeedsTree> {
        if self.foreign.is_open() {
            self.foreign.start_tag(tag)?;
            return Ok((self.unless_in_template(self.foreign.namespace()), Next::Data));
        }
        let name = &tag.name;
        let next = match name.code() {
            SVG | MATH => {
                self.foreign.enter(tag);
                return Ok((Element::Unread, Next::Data));
            }
            FRAMESET => return Err(NeedsTree::Frameset),
            TEMPLATE => {
                self.templates.enter();
                return Ok((Element::Unread, Next::Data));
            }
            TITLE | TEXTAREA => Next::Rcdata,
            STYLE | XMP | IFRAME | NOEMBED | NOFRAMES => Next::Rawtext,
            SCRIPT => Next::Script,
            _ if name.is("plaintext") => Next::Plaintext,
            _ => Next::Data,
        };
        if self.templates.are_open() {
            self.templates.start_tag(name)?;
        } else {
            self.tables.start_tag(name)?;
        }
        self.foreign.saw_html(name);
        Ok((self.unless_in_template(Element::Html), next))
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

    /// Takes note that the start tag just taken made an element that counts.
    pub(super) fn is_read(&mut self) -> Result<(), NeedsTree> {
        self.tables.is_read()
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
