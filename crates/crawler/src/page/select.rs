//! Selected fields of a page: `title=h1`, `price=.price::text`, `image=img::attr(src)`.
//!
//! A field is a name and a CSS selector with one of three endings, which are those of Scrapy's `parsel`:
//!
//! | ending | the values |
//! |---|---|
//! | none | one per element: its text, that of its descendants included, as a reader sees it: white space collapsed, a space between blocks, without what is in `<script>`, `<style>` and `<template>` (unless one of these is selected itself) |
//! | `::text` | one per piece of text that stands directly in an element, white space collapsed |
//! | `::attr(NAME)` | one per element that has the attribute: its value as it was written |
//!
//! A space before `::text` means the text of descendants too, piece by piece. Values come in the order of the document;
//! text that is blank gives none. Selectors are those of the `scraper` crate: CSS level 3, and of level 4 `:is`, `:where`,
//! `:has` and lists in `:not`. Elements in a `<template>` are not selected, as in a browser.

mod field;
mod text;

use ego_tree::iter::Edge;
use scraper::{ElementRef, Html};
use serde::ser::{Serialize, SerializeMap, Serializer};

use self::field::What;
pub use self::field::{Field, FieldError};
use crate::page::links::document::{self, Keep};

/// Looks at nodes that the fields of one page may cost. Only markup that is made for it needs more.
const LOOK_LIMIT: u64 = 100_000_000;

/// How much of a page is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectLimits {
    /// Values that a field may have on one page.
    pub values: usize,
    /// Bytes that the values of a field may have together on one page.
    pub bytes: usize,
}

/// The values of all fields on one page.
///
/// It is serialized as an object with a list of strings per field, the fields in the order in which they were asked for; a
/// field that is not on the page has an empty list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selected {
    /// Each field's name and values.
    pub fields: Vec<(String, Vec<String>)>,
    /// Values that were left out or shortened, because a field has too many or they are too long.
    pub cut: u64,
    /// Whether the page was so costly that its end, or a field, was left out.
    pub incomplete: bool,
}

impl Serialize for Selected {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (name, values) in &self.fields {
            map.serialize_entry(name, values)?;
        }
        map.end()
    }
}

impl Selected {
    /// What a page has that is not HTML: all fields, without values.
    pub(crate) fn nothing(fields: &[Field]) -> Self {
        let empty = |field: &Field| (field.name().to_owned(), Vec::new());
        Self {
            fields: fields.iter().map(empty).collect(),
            ..Self::default()
        }
    }
}

/// Finds the fields in a page.
///
/// Never fails. It builds a tree of the whole page, with text and attributes, which takes most of its time. Time is bounded as
/// for [`extract`](crate::page::links::extract), and by a hundred million looks at nodes; memory by 200 MB for a page of 10 MB.
pub fn select(html: &str, fields: &[Field], limits: SelectLimits) -> Selected {
    let (document, cut) = document::parse(html, Keep::Everything);
    let mut reader = Reader {
        limits,
        looks_left: LOOK_LIMIT,
        selected: Selected {
            incomplete: cut,
            ..Selected::default()
        },
    };
    let cost = Cost::of(&document);
    for field in fields {
        let values = reader.read(&document, field, &cost);
        reader.selected.fields.push((field.name().to_owned(), values));
    }
    reader.selected
}

/// What looking for a selector costs in this document, in looks at nodes.
struct Cost {
    nodes: u64,
    /// All elements with all that they stand in.
    ancestors: u64,
    /// All elements with all that stand before them in their parent.
    siblings: u64,
}

impl Cost {
    fn of(document: &Html) -> Self {
        let mut cost = Self {
            nodes: 0,
            ancestors: 0,
            siblings: 0,
        };
        let mut ranks: Vec<u64> = vec![0];
        for edge in document.tree.root().traverse() {
            match edge {
                Edge::Open(_) => {
                    let rank = ranks.last_mut().map_or(0, |rank| std::mem::replace(rank, *rank + 1));
                    cost.nodes += 1;
                    cost.siblings += rank;
                    cost.ancestors += ranks.len() as u64;
                    ranks.push(0);
                }
                Edge::Close(_) => {
                    ranks.pop();
                }
            }
        }
        cost
    }

    /// Matching looks at ancestors for a descendant combinator and at descendants for `:has`, which are as many in all, and
    /// at siblings for `~` alone: the counting pseudo-classes keep what they have counted.
    fn of_field(&self, field: &Field) -> u64 {
        let siblings = if field.looks_at_siblings() { self.siblings } else { 0 };
        self.nodes
            .saturating_add(self.ancestors)
            .saturating_add(siblings)
            .saturating_mul(field.steps())
    }
}

struct Reader {
    limits: SelectLimits,
    looks_left: u64,
    selected: Selected,
}

impl Reader {
    fn read(&mut self, document: &Html, field: &Field, cost: &Cost) -> Vec<String> {
        let mut values = Values {
            limits: self.limits,
            kept: Vec::new(),
            bytes: 0,
            cut: 0,
            covered: None,
        };
        if self.spend(cost.of_field(field)) {
            // scraper gives every document an `<html>`; a tree that was cut at once may be without.
            let root = document.tree.root().children().find_map(ElementRef::wrap);
            let root = root.as_slice().iter();
            let mut elements = root.flat_map(|root| field.matches(*root));
            while elements
                .next()
                .is_some_and(|element| self.read_element(element, field.what(), &mut values))
            {}
        }
        self.selected.cut += values.cut;
        values.kept
    }

    /// Reads one element; false when nothing more is to be read.
    fn read_element<'a>(&mut self, element: ElementRef<'a>, what: &What, values: &mut Values<'a>) -> bool {
        let depth = element.ancestors().count() as u64;
        if !self.spend(depth) {
            return false;
        }
        if is_in_template(element) {
            return true;
        }
        match what {
            What::Attribute(name) => element
                .attr(name)
                .into_iter()
                .for_each(|value| values.push(value.to_owned())),
            What::Pieces => text::pieces(element).for_each(|piece| values.push(piece)),
            What::AllPieces if values.cover(element) => text::all_pieces(element).for_each(|piece| values.push(piece)),
            What::AllPieces => {}
            What::All => {
                // One byte more than there is room for shows that something is left out.
                let (text, looks) = text::all(element, values.room().saturating_add(1), self.looks_left);
                values.push(text);
                return self.spend(looks);
            }
        }
        true
    }

    fn spend(&mut self, looks: u64) -> bool {
        match self.looks_left.checked_sub(looks) {
            Some(left) => self.looks_left = left,
            None => {
                self.looks_left = 0;
                self.selected.incomplete = true;
            }
        }
        self.looks_left > 0
    }
}

fn is_in_template(element: ElementRef<'_>) -> bool {
    element.ancestors().any(|node| node.value().is_fragment())
}

/// The values of one field, as many as may be.
struct Values<'a> {
    limits: SelectLimits,
    kept: Vec<String>,
    bytes: usize,
    cut: u64,
    /// The last element of which the text of all descendants was taken.
    covered: Option<ElementRef<'a>>,
}

impl<'a> Values<'a> {
    /// Notes that all text below an element is taken; false if that was done with all that an ancestor has.
    fn cover(&mut self, element: ElementRef<'a>) -> bool {
        let is_covered = self
            .covered
            .is_some_and(|last| element.ancestors().any(|node| node.id() == last.id()));
        if !is_covered {
            self.covered = Some(element);
        }
        !is_covered
    }

    fn room(&self) -> usize {
        self.limits.bytes.saturating_sub(self.bytes)
    }

    fn push(&mut self, mut value: String) {
        if value.is_empty() {
            return;
        }
        let room = self.room();
        if room == 0 || self.kept.len() >= self.limits.values {
            self.cut += 1;
            return;
        }
        if value.len() > room {
            self.cut += 1;
            value.truncate(value.floor_char_boundary(room));
            self.bytes = self.limits.bytes;
        } else {
            self.bytes += value.len();
        }
        self.kept.push(value);
    }
}
