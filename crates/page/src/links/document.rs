//! From text to tree within a budget, so that hostile markup costs its own page and not the crawl.
//!
//! html5ever takes linear time for honest pages only. Some markup makes its time or memory grow with the square of the
//! length (measured on one core at 3 GHz):
//!
//! | markup | cost | guard |
//! |---|---|---|
//! | 40 000 nested `<div>` | 8 s: every tag searches all open elements | [`WORK_LIMIT`] |
//! | `<p>` after `<p>` that each reopen 1 000 unclosed `<b id=…>` | gigabytes of elements | [`withhold_attributes`]: without attributes at most three equal elements are reopened |
//! | 40 000 `<b id=…>` | minutes: each is compared with all before it | the same |
//! | one tag with 500 000 attributes | minutes | [`ATTRIBUTE_LIMIT`] |
//!
//! When a limit is reached, the document ends there as if the connection had closed.
//!
//! An element that HTML reopens after wrong nesting, as in `<p><b class=x>one<p>two`, has its attributes only where it was written.

use std::borrow::Cow;
use std::cell::{Cell, Ref};

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{Attribute, QualName, TokenizerResult, local_name};
use scraper::{Html, HtmlTreeSink, Node};

use super::tokens::attribute_count;

/// Maximum number of work steps per document: about a second. A step is a visit of one open element.
///
/// A page of 10 MB with ordinary nesting takes a tenth of it. Nested `<div>`s reach it at a depth of 14 000.
const WORK_LIMIT: u64 = 100_000_000;

/// Steps that creating an element or a comment costs. They bound a tree to 200 MB with its text and attributes.
const NODE_COST: u64 = 256;

/// Maximum number of attributes per tag. Real pages stay below a hundred.
const ATTRIBUTE_LIMIT: usize = 512;

/// A tag of up to this number of bytes has no more attributes.
const UNCOUNTED_BYTES: usize = 2 * ATTRIBUTE_LIMIT;

/// Bytes fed to the tokenizer between two checks of the budget.
const PIECE_BYTES: usize = 1024;

/// Parses a document. The flag says whether a limit has truncated it.
///
/// Scripting is off, because the crawler runs no scripts: `<noscript>` holds markup.
pub(crate) fn parse(html: &str) -> (Html, bool) {
    parse_within(html, WORK_LIMIT)
}

fn parse_within(html: &str, work_limit: u64) -> (Html, bool) {
    let options = TreeBuilderOpts {
        scripting_enabled: false,
        ..TreeBuilderOpts::default()
    };
    let sink = MeteredSink {
        tree: HtmlTreeSink::new(Html::new_document()),
        work_left: Cell::new(work_limit),
        last_created: Cell::new(None),
    };
    let gate = Gate {
        builder: TreeBuilder::new(sink, options),
        token_came_out: Cell::new(false),
    };
    let tokenizer_options = TokenizerOpts {
        // Decoding has removed the byte order mark; a second one is text.
        discard_bom: false,
        ..TokenizerOpts::default()
    };
    let tokenizer = Tokenizer::new(gate, tokenizer_options);
    let cut = !feed(&tokenizer, html);
    tokenizer.end();
    (tokenizer.sink.builder.sink.tree.finish(), cut)
}

/// Feeds the document piece by piece; false if a limit stopped it.
///
/// html5ever compares the name of every attribute with all names before it, and emits a tag only at its end. So the attributes of a tag that
/// is longer than a piece are counted before they are fed. Only html5ever knows where a tag begins: `<a` may be part of a script. A piece is
/// a single `<` or has none, so the tag that is open began with the last `<` that made a token come out, or with the first after all text
/// was emitted.
fn feed(tokenizer: &Tokenizer<Gate>, html: &str) -> bool {
    let input = BufferQueue::default();
    let (mut fed, mut opened) = (0, None);
    for piece in pieces(html) {
        tokenizer.sink.token_came_out.set(false);
        input.push_back(StrTendril::from(piece));
        // Other results ask to run a script or to change the encoding. The crawler does neither, and feeds on.
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
        let token_came_out = tokenizer.sink.token_came_out.get();
        if piece == "<" && (token_came_out || opened.is_none()) {
            opened = Some((fed, false));
        } else if token_came_out {
            opened = None;
        }
        fed += piece.len();
        if let Some((from, is_counted @ false)) = &mut opened
            && fed - *from > UNCOUNTED_BYTES
        {
            *is_counted = true;
            if html
                .get(*from..)
                .is_some_and(|tag| attribute_count(tag) > ATTRIBUTE_LIMIT)
            {
                return false;
            }
        }
        if tokenizer.sink.is_exhausted() {
            return false;
        }
    }
    true
}

/// Splits text so that every `<` is a piece of its own, and no piece is longer than [`PIECE_BYTES`].
fn pieces(html: &str) -> impl Iterator<Item = &str> {
    let mut rest = html;
    std::iter::from_fn(move || {
        let limit = rest.floor_char_boundary(PIECE_BYTES);
        let end = match rest.as_bytes().iter().take(limit).position(|byte| *byte == b'<') {
            Some(0) => 1,
            Some(before) => before,
            None => limit,
        };
        let (piece, after) = rest.split_at_checked(end)?;
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Sits between tokenizer and tree builder. It drops all tokens once the budget is spent.
struct Gate {
    builder: TreeBuilder<Handle, MeteredSink>,
    token_came_out: Cell<bool>,
}

type Handle = <HtmlTreeSink as TreeSink>::Handle;

impl Gate {
    fn is_exhausted(&self) -> bool {
        self.builder.sink.work_left.get() == 0
    }
}

impl TokenSink for Gate {
    type Handle = Handle;

    fn process_token(&self, mut token: Token, line: u64) -> TokenSinkResult<Handle> {
        if !matches!(token, Token::ParseError(_)) {
            self.token_came_out.set(true);
        }
        if self.is_exhausted() && token != Token::EOFToken {
            return TokenSinkResult::Continue;
        }
        let withheld = match &mut token {
            Token::TagToken(tag) => withhold_attributes(tag),
            _ => Vec::new(),
        };
        let sink = &self.builder.sink;
        sink.last_created.set(None);
        let result = self.builder.process_token(token, line);
        if !withheld.is_empty() {
            sink.attach_to_last(withheld);
        }
        result
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// Removes the attributes of elements that HTML reopens, to give them to the element once it is created.
///
/// The tree builder limits how many *equal* elements it reopens, so it must not see attributes. (`a` may keep them: two
/// of them are never open at once.) Of a `font` it reads which of three it has, and no values.
fn withhold_attributes(tag: &mut Tag) -> Vec<Attribute> {
    let is_reopened = matches!(
        &*tag.name,
        "b" | "big" | "code" | "em" | "font" | "i" | "nobr" | "s" | "small" | "strike" | "strong" | "tt" | "u"
    );
    if tag.kind == TagKind::EndTag || !is_reopened {
        return Vec::new();
    }
    let all = tag.attrs.clone();
    let is_font = tag.name == local_name!("font");
    tag.attrs
        .retain(|attribute| is_font && matches!(&*attribute.name.local, "color" | "face" | "size"));
    tag.attrs.iter_mut().for_each(|attribute| attribute.value.clear());
    all
}

/// The tree of scraper, with a meter on what the tree builder does.
struct MeteredSink {
    tree: HtmlTreeSink,
    work_left: Cell<u64>,
    /// The element created last. When one tag creates several, reopened elements come first and its own element last.
    last_created: Cell<Option<Handle>>,
}

impl MeteredSink {
    fn charge(&self, steps: u64) {
        self.work_left.set(self.work_left.get().saturating_sub(steps));
    }

    fn attach_to_last(&self, attributes: Vec<Attribute>) {
        let Some(element) = self.last_created.take() else {
            return;
        };
        if let Some(mut node) = self.tree.0.borrow_mut().tree.get_mut(element)
            && let Node::Element(element) = node.value()
        {
            element.attrs.clear();
        }
        self.tree.add_attrs_if_missing(&element, attributes);
    }
}

impl TreeSink for MeteredSink {
    type Handle = Handle;
    type Output = Html;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Html {
        self.tree.finish()
    }

    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        self.tree.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> Ref<'a, QualName> {
        self.charge(1);
        self.tree.elem_name(target)
    }

    fn same_node(&self, x: &Handle, y: &Handle) -> bool {
        self.charge(1);
        self.tree.same_node(x, y)
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> Handle {
        self.charge(NODE_COST);
        let element = self.tree.create_element(name, attrs, flags);
        self.last_created.set(Some(element));
        element
    }

    fn create_comment(&self, _text: StrTendril) -> Handle {
        self.charge(NODE_COST);
        self.tree.create_comment(StrTendril::new())
    }

    fn create_pi(&self, _target: StrTendril, _data: StrTendril) -> Handle {
        self.create_comment(StrTendril::new())
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.tree.append(parent, child);
    }

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        self.tree.append_before_sibling(sibling, child);
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        self.tree.append_based_on_parent_node(element, previous, child);
    }

    fn append_doctype_to_document(&self, _name: StrTendril, _public_id: StrTendril, _system_id: StrTendril) {}

    fn get_template_contents(&self, target: &Handle) -> Handle {
        self.tree.get_template_contents(target)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.tree.set_quirks_mode(mode);
    }

    fn add_attrs_if_missing(&self, target: &Handle, attrs: Vec<Attribute>) {
        self.tree.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.tree.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        self.tree.reparent_children(node, new_parent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_ends_where_its_work_is_done() {
        let html = format!("<a>{}<i>", "<div>".repeat(400));
        for (work_limit, is_cut) in [(WORK_LIMIT, false), (100_000, true)] {
            let (document, cut) = parse_within(&html, work_limit);
            assert_eq!(cut, is_cut);
            let names: Vec<&str> = document
                .root_element()
                .descendent_elements()
                .map(|element| element.value().name())
                .collect();
            assert_eq!(
                (names.contains(&"a"), names.contains(&"i")),
                (true, !is_cut),
                "{work_limit}"
            );
        }
    }
}
