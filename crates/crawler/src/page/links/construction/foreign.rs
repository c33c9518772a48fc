//! Inline SVG and MathML (13.2.6.5, "the rules for parsing tokens in foreign content").
//!
//! A small stack is enough if every end tag in a drawing or formula names an element of its own. HTML inside it, and
//! end tags that reach out of it, need a tree.

use super::{Element, NeedsTree};
use crate::page::links::tag::{Name, Tag, code};

/// Maximum depth of nested SVG or MathML elements. It bounds the search of every end tag.
const DEPTH_LIMIT: usize = 128;

/// The open elements of SVG or MathML.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    /// From the `svg` or `math` inward, in lower case.
    open: Vec<String>,
    is_svg: bool,
    /// Whether an element with one of the [`DRAWING`] names occurred outside of drawings.
    drawing_in_html: bool,
}

impl Foreign {
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn namespace(&self) -> Element {
        if self.is_svg { Element::Svg } else { Element::Unread }
    }

    /// Enters an `svg` or `math` in HTML.
    pub(super) fn enter(&mut self, tag: &Tag<'_, '_>) {
        self.is_svg = tag.name.code() == SVG;
        if !tag.self_closing {
            self.open.push(tag.name.as_str().to_ascii_lowercase());
        }
    }

    /// Processes a start tag in foreign content.
    pub(super) fn start_tag(&mut self, tag: &Tag<'_, '_>) -> Result<(), NeedsTree> {
        let name = tag.name.as_str().to_ascii_lowercase();
        if name.contains('\0') {
            return Err(NeedsTree::OddName);
        }
        if self.holds_html() || BREAKS_OUT.contains(&&*name) {
            return Err(NeedsTree::HtmlInForeign);
        }
        if self.open.len() == DEPTH_LIMIT {
            return Err(NeedsTree::DeepForeign);
        }
        if !tag.self_closing {
            self.open.push(name);
        }
        Ok(())
    }

    /// Returns whether a start tag inside the innermost element is HTML ("integration point").
    fn holds_html(&self) -> bool {
        self.open.last().is_some_and(|name| match &**name {
            "foreignobject" | "desc" | "title" => self.is_svg,
            "mi" | "mo" | "mn" | "ms" | "mtext" | "annotation-xml" => !self.is_svg,
            _ => false,
        })
    }

    /// Processes an end tag in foreign content.
    pub(super) fn end_tag(&mut self, name: &Name<'_>) -> Result<(), NeedsTree> {
        if name.as_str().contains('\0') {
            return Err(NeedsTree::OddName);
        }
        if name.is("p") || name.is("br") {
            return Err(NeedsTree::HtmlInForeign);
        }
        match self.open.iter().rposition(|open| name.is(open)) {
            Some(position) => self.open.truncate(position),
            // It would close an HTML element of this name around the drawing, but there is none.
            None if is_drawing(name) && !self.drawing_in_html => {}
            None => return Err(NeedsTree::ForeignCutShort),
        }
        Ok(())
    }

    /// Records an element in HTML.
    #[inline]
    pub(super) fn note_html_element(&mut self, name: &Name<'_>) {
        self.drawing_in_html |= is_drawing(name);
    }
}

/// Returns whether this is an empty element of drawings. Those are often closed twice: `<path d=… /></path>`.
fn is_drawing(name: &Name<'_>) -> bool {
    DRAWING.contains(&name.code())
}

const SVG: u64 = code(b"svg");

const DRAWING: [u64; 10] = [
    code(b"circle"),
    code(b"ellipse"),
    code(b"g"),
    code(b"line"),
    code(b"path"),
    code(b"polygon"),
    code(b"polyline"),
    code(b"rect"),
    code(b"stop"),
    code(b"use"),
];

/// Start tags that end foreign content; `font` only with certain attributes.
const BREAKS_OUT: [&str; 45] = [
    "b",
    "big",
    "blockquote",
    "body",
    "br",
    "center",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "embed",
    "font",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "i",
    "img",
    "li",
    "listing",
    "menu",
    "meta",
    "nobr",
    "ol",
    "p",
    "pre",
    "ruby",
    "s",
    "small",
    "span",
    "strong",
    "strike",
    "sub",
    "sup",
    "table",
    "tt",
    "u",
    "ul",
    "var",
];
