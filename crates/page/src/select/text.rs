//! The text of an element, as a reader sees it.

use ego_tree::iter::Edge;
use scraper::{ElementRef, Node};

pub(super) fn pieces(element: ElementRef<'_>) -> impl Iterator<Item = String> {
    let texts = element.children().filter_map(|node| node.value().as_text());
    texts.filter_map(|text| collapsed(text))
}

pub(super) fn all_pieces(element: ElementRef<'_>) -> impl Iterator<Item = String> {
    let mut templates = 0_usize;
    element.traverse().filter_map(move |edge| match edge {
        Edge::Open(node) => {
            templates += usize::from(node.value().is_fragment());
            let text = node.value().as_text().filter(|_| templates == 0)?;
            collapsed(text)
        }
        Edge::Close(node) => {
            templates -= usize::from(node.value().is_fragment());
            None
        }
    })
}

fn collapsed(text: &str) -> Option<String> {
    let mut piece = Collapsed::default();
    piece.push(text, usize::MAX);
    Some(piece.text).filter(|piece| !piece.is_empty())
}

/// Returns the whole text of an element, white space collapsed, and the number of nodes visited.
///
/// Stops after the text node that brings the text to `enough` bytes, or after `max_visits` nodes.
pub(super) fn all(element: ElementRef<'_>, enough: usize, max_visits: u64) -> (String, u64) {
    let mut collapsed = Collapsed::default();
    let mut visits = 0;
    // How many hidden elements are open, not counting the selected element itself.
    let mut hidden = 0_usize;
    let inside = element.traverse().skip(1);
    for edge in inside {
        if visits >= max_visits || collapsed.text.len() >= enough {
            break;
        }
        visits += 1;
        let (node, is_open) = match edge {
            Edge::Open(node) => (node, true),
            Edge::Close(node) => (node, false),
        };
        match node.value() {
            Node::Text(text) if is_open && hidden == 0 => collapsed.push(text, enough),
            Node::Element(inner) => {
                let name = inner.name();
                if is_hidden(name) && node.id() != element.id() {
                    hidden = if is_open { hidden + 1 } else { hidden.saturating_sub(1) };
                }
                if is_block(name) {
                    collapsed.space();
                }
            }
            _ => {}
        }
    }
    (collapsed.text, visits)
}

/// Text in which each run of white space becomes one space, without any at its ends.
#[derive(Default)]
struct Collapsed {
    text: String,
    space_due: bool,
}

impl Collapsed {
    fn push(&mut self, more: &str, enough: usize) {
        for word in more.split_inclusive(|letter: char| letter.is_ascii_whitespace()) {
            if self.text.len() >= enough {
                return;
            }
            let bare = word.trim_end_matches(|letter: char| letter.is_ascii_whitespace());
            if !bare.is_empty() {
                if std::mem::take(&mut self.space_due) && !self.text.is_empty() {
                    self.text.push(' ');
                }
                self.text.push_str(bare);
            }
            self.space_due |= bare.len() < word.len();
        }
    }

    fn space(&mut self) {
        self.space_due = true;
    }
}

fn is_hidden(name: &str) -> bool {
    matches!(name, "script" | "style" | "template")
}

/// Returns whether an element is separate from the text around it.
///
/// Those are blocks, list items, table parts and line breaks in the HTML standard's style sheet (section 15.3).
fn is_block(name: &str) -> bool {
    BLOCKS.contains(&name) || matches!(name, "blockquote" | "figcaption" | "plaintext")
}

const BLOCKS: [&str; 49] = [
    "address", "article", "aside", "br", "caption", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt",
    "fieldset", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "legend",
    "li", "listing", "main", "menu", "nav", "ol", "optgroup", "option", "p", "pre", "search", "section", "summary",
    "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "xmp",
];
