//! Selected fields of a page: `title=h1`, `price=.price::text`, `image=img::attr(src)`.
//!
//! A field is a name and a CSS selector with an optional ending. The endings are those of Scrapy's `parsel`:
//!
//! | ending | the values |
//! |---|---|
//! | none | one per element: its text and that of its descendants, as a reader sees it. White space is collapsed, and a space separates blocks. The contents of `<script>`, `<style>` and `<template>` do not count, unless such an element itself is selected. |
//! | `::text` | one per text node directly in an element, white space collapsed |
//! | `::attr(NAME)` | one per element with the attribute: its value as written |
//!
//! A space before `::text` selects the text nodes of descendants too. Values are in document order, and blank text is
//! no value.
//!
//! Selectors are those of the `scraper` crate: CSS level 3, and from level 4 `:is`, `:where`, `:has` and lists in
//! `:not`. Elements in a `<template>` are not selected, as in a browser.

mod field;
mod text;

use ego_tree::iter::Edge;
use scraper::{ElementRef, Html};
use serde::ser::{Serialize, SerializeMap, Serializer};

use self::field::ValueKind;
pub use self::field::{Field, FieldError};
use crate::links::document;

/// Maximum number of node visits that the fields of one page may cost. Only markup written to be costly needs more.
const VISIT_LIMIT: u64 = 100_000_000;

/// The default of [`SelectLimits::values`].
pub const DEFAULT_MAX_SELECT_VALUES: usize = 1000;
/// The default of [`SelectLimits::bytes`].
pub const DEFAULT_MAX_SELECT_BYTES: usize = 256 * 1024;

/// Limits on the values of one field on one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectLimits {
    /// Maximum number of values.
    pub values: usize,
    /// Maximum number of bytes of all values together.
    pub bytes: usize,
}

impl Default for SelectLimits {
    fn default() -> Self {
        Self {
            values: DEFAULT_MAX_SELECT_VALUES,
            bytes: DEFAULT_MAX_SELECT_BYTES,
        }
    }
}

/// The values of all fields on one page.
///
/// It serializes as an object with a list of strings per field, in the order of the fields. A field without a match has
/// an empty list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selected {
    /// The name and the values of each field.
    pub fields: Vec<(String, Vec<String>)>,
    /// How many values were left out or shortened by [`SelectLimits`].
    pub cut: u64,
    /// Whether the end of the page, or a field, was left out because it was too costly.
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
    /// Makes the result of a page on which no field has a value.
    pub fn without_values(fields: &[Field]) -> Self {
        let empty = |field: &Field| (field.name().to_owned(), Vec::new());
        Self {
            fields: fields.iter().map(empty).collect(),
            ..Self::default()
        }
    }
}

/// Finds the fields in a page.
///
/// Never fails. Builds a tree of the whole page, which takes most of the time: up to about a second for markup written to be costly, plus a
/// hundred million node visits. Memory is bounded by 200 MB for a page of 10 MB.
pub fn select(html: &str, fields: &[Field], limits: SelectLimits) -> Selected {
    let (document, cut) = document::parse(html);
    let mut reader = Reader {
        limits,
        visits_left: VISIT_LIMIT,
        selected: Selected {
            incomplete: cut,
            ..Selected::default()
        },
    };
    let cost = MatchCost::of(&document);
    for field in fields {
        let values = reader.read(&document, field, &cost);
        reader.selected.fields.push((field.name().to_owned(), values));
    }
    reader.selected
}

/// The cost of matching a selector in this document, in node visits.
struct MatchCost {
    nodes: u64,
    /// The number of pairs of an element and one of its ancestors.
    ancestors: u64,
    /// The number of pairs of an element and one of its preceding siblings.
    siblings: u64,
}

impl MatchCost {
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

    /// Returns the cost of a field.
    ///
    /// Matching visits ancestors for a descendant combinator, and descendants for `:has`; both are equally many in
    /// total. It visits siblings for `~` only, because the counting pseudo-classes cache their counts.
    fn of_field(&self, field: &Field) -> u64 {
        let siblings = if field.visits_siblings { self.siblings } else { 0 };
        self.nodes
            .saturating_add(self.ancestors)
            .saturating_add(siblings)
            .saturating_mul(field.steps)
    }
}

struct Reader {
    limits: SelectLimits,
    visits_left: u64,
    selected: Selected,
}

impl Reader {
    fn read(&mut self, document: &Html, field: &Field, cost: &MatchCost) -> Vec<String> {
        let mut values = FieldValues {
            limits: self.limits,
            kept: Vec::new(),
            bytes: 0,
            cut: 0,
            covered: None,
        };
        if self.spend(cost.of_field(field)) {
            // scraper gives every document an `<html>`, but the tree of a document truncated at its start may have
            // none.
            let root = document.tree.root().children().find_map(ElementRef::wrap);
            let root = root.as_slice().iter();
            let mut elements = root.flat_map(|root| field.matches(*root));
            while elements
                .next()
                .is_some_and(|element| self.read_element(element, &field.kind, &mut values))
            {}
        }
        self.selected.cut += values.cut;
        values.kept
    }

    /// Reads one element; false if the field has reached a limit.
    fn read_element<'a>(&mut self, element: ElementRef<'a>, kind: &ValueKind, values: &mut FieldValues<'a>) -> bool {
        let depth = element.ancestors().count() as u64;
        if !self.spend(depth) {
            return false;
        }
        if is_in_template(element) {
            return true;
        }
        match kind {
            ValueKind::Attribute(name) => element
                .attr(name)
                .into_iter()
                .for_each(|value| values.push(value.to_owned())),
            ValueKind::Pieces => text::pieces(element).for_each(|piece| values.push(piece)),
            ValueKind::AllPieces if values.cover(element) => {
                text::all_pieces(element).for_each(|piece| values.push(piece));
            }
            ValueKind::AllPieces => {}
            ValueKind::All => {
                // One byte more than allowed shows that something is left out.
                let (text, visits) = text::all(element, values.room().saturating_add(1), self.visits_left);
                values.push(text);
                return self.spend(visits);
            }
        }
        true
    }

    fn spend(&mut self, visits: u64) -> bool {
        match self.visits_left.checked_sub(visits) {
            Some(left) => self.visits_left = left,
            None => {
                self.visits_left = 0;
                self.selected.incomplete = true;
            }
        }
        self.visits_left > 0
    }
}

fn is_in_template(element: ElementRef<'_>) -> bool {
    element.ancestors().any(|node| node.value().is_fragment())
}

/// The values of one field, within its limits.
struct FieldValues<'a> {
    limits: SelectLimits,
    kept: Vec<String>,
    bytes: usize,
    cut: u64,
    /// The last element whose whole text was taken, descendants included.
    covered: Option<ElementRef<'a>>,
}

impl<'a> FieldValues<'a> {
    /// Marks all text below an element as taken; false if an ancestor has already covered it.
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
