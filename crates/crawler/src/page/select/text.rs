//! The text of an element, as a reader sees it.

use ego_tree::iter::Edge;
use scraper::{ElementRef, Node};

/// The pieces of text that stand directly in an element, white space collapsed, blank ones left out.
pub(super) fn pieces(element: ElementRef<'_>) -> impl Iterator<Item = String> {
    let texts = element.children().filter_map(|node| node.value().as_text());
    texts.filter_map(|text| collapsed(text))
}

/// The pieces of text in an element and in its descendants; those in templates are no descendants.
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

/// All text in an element, white space collapsed, up to the first piece with which it has `enough` bytes; and how many nodes
/// were looked at, which are no more than `most_looks`.
pub(super) fn all(element: ElementRef<'_>, enough: usize, most_looks: u64) -> (String, u64) {
    let mut collapsed = Collapsed::default();
    let mut looks = 0;
    // How many unseen elements are open, the selected one aside.
    let mut unseen = 0_usize;
    let inside = element.traverse().skip(1);
    for edge in inside {
        if looks >= most_looks || collapsed.text.len() >= enough {
            break;
        }
        looks += 1;
        let (node, is_open) = match edge {
            Edge::Open(node) => (node, true),
            Edge::Close(node) => (node, false),
        };
        match node.value() {
            Node::Text(text) if is_open && unseen == 0 => collapsed.push(text, enough),
            Node::Element(inner) => {
                let name = inner.name();
                if is_unseen(name) && node.id() != element.id() {
                    unseen = if is_open { unseen + 1 } else { unseen.saturating_sub(1) };
                }
                if is_block(name) {
                    collapsed.space();
                }
            }
            _ => {}
        }
    }
    (collapsed.text, looks)
}

/// Text with each run of white space made one space, and none at its ends.
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

/// Elements whose content no reader sees.
fn is_unseen(name: &str) -> bool {
    matches!(name, "script" | "style" | "template")
}

/// Elements that stand apart from the text around them: what the HTML standard shows as blocks, list items, table parts and
/// line breaks (section 15.3).
fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "br"
            | "caption"
            | "center"
            | "dd"
            | "details"
            | "dialog"
            | "dir"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hgroup"
            | "hr"
            | "legend"
            | "li"
            | "listing"
            | "main"
            | "menu"
            | "nav"
            | "ol"
            | "optgroup"
            | "option"
            | "p"
            | "plaintext"
            | "pre"
            | "search"
            | "section"
            | "summary"
            | "table"
            | "tbody"
            | "td"
            | "tfoot"
            | "th"
            | "thead"
            | "tr"
            | "ul"
            | "xmp"
    )
}
