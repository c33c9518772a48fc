//! From text to tree within a budget, so that hostile markup costs its own page and not the crawl.
//!
//! html5ever takes linear time for honest pages only. Some markup makes its time or memory grow with the square of the
//! length (measured on one core at 3 GHz):
//!
//! | markup | cost | guard |
//! |---|---|---|
//! | 40 000 nested `<div>` | 8 s: every tag searches all open elements | [`WORK_LIMIT`] |
//! | `<p>` after `<p>` that each reopen 1 000 unclosed `<b id=…>` | gigabytes of elements | [`is_read`]: without attributes at most three equal elements are reopened |
//! | 40 000 `<b id=…>` | minutes: each is compared with all before it | the same |
//! | one tag with 500 000 attributes | minutes | [`ATTRIBUTE_LIMIT`] |
//!
//! When a limit is reached, the document ends there as if the connection had closed. Links before that point are kept.

use std::borrow::Cow;
use std::cell::{Cell, Ref};

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{Attribute, LocalName, QualName, TokenizerResult, local_name};
use scraper::{Html, HtmlTreeSink, Node};

use super::assets;
use super::attributes::AttributeCount;

/// Maximum number of work steps per document: about a second. A step is a visit of one open element.
///
/// A page of 10 MB with ordinary nesting takes a tenth of it. Nested `<div>`s reach it at a depth of 14 000.
const WORK_LIMIT: u64 = 100_000_000;

/// Steps that creating an element costs. This bounds a tree to 1.5 million elements (some 300 MB).
const ELEMENT_COST: u64 = 64;

/// Maximum number of attributes per tag. Real pages stay below a hundred.
const ATTRIBUTE_LIMIT: usize = 512;

/// Bytes fed to the tokenizer between two checks of the budget.
const PIECE_BYTES: usize = 1024;

/// Which parts of a document its tree keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All elements, the text of titles, and the attributes that links and directives are read from.
    Links,
    /// The same, with the text of `<style>` and the attributes that name assets.
    Assets,
    /// All elements, text and attributes, with one exception. An element that HTML reopens after wrong nesting, as in
    /// `<p><b class=x>one<p>two`, has its attributes only where it was written, not where it was reopened.
    Everything,
}

impl Keep {
    /// Steps that creating an element costs. They bound a tree to some 300 MB, or to 200 MB with text and attributes.
    fn element_cost(self) -> u64 {
        match self {
            Self::Links => ELEMENT_COST,
            Self::Assets => 2 * ELEMENT_COST,
            Self::Everything => 4 * ELEMENT_COST,
        }
    }
}

/// Parses a document. The flag says whether a limit has truncated it.
///
/// Scripting is off, because the crawler runs no scripts: `<noscript>` holds markup.
pub(crate) fn parse(html: &str, keep: Keep) -> (Html, bool) {
    let options = TreeBuilderOpts {
        scripting_enabled: false,
        ..TreeBuilderOpts::default()
    };
    let sink = MeteredSink {
        tree: HtmlTreeSink::new(Html::new_document()),
        work: Cell::new(0),
        keep,
        last_created: Cell::new(None),
    };
    let gate = Gate {
        builder: TreeBuilder::new(sink, options),
        token_came_out: Cell::new(false),
        keep,
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
fn feed(tokenizer: &Tokenizer<Gate>, html: &str) -> bool {
    let input = BufferQueue::default();
    let mut attributes = AttributeCount::default();
    for piece in pieces(html) {
        tokenizer.sink.token_came_out.set(false);
        input.push_back(StrTendril::from(piece));
        // Other results ask to run a script or to change the encoding. The crawler does neither, and feeds on.
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
        attributes.after_piece(piece, tokenizer.sink.token_came_out.get());
        if attributes.get() > ATTRIBUTE_LIMIT || tokenizer.sink.is_exhausted() {
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

/// Sits between tokenizer and tree builder. It drops tokens that nobody reads, and all tokens once the budget is spent.
struct Gate {
    builder: TreeBuilder<Handle, MeteredSink>,
    token_came_out: Cell<bool>,
    keep: Keep,
}

type Handle = <HtmlTreeSink as TreeSink>::Handle;

impl Gate {
    fn is_exhausted(&self) -> bool {
        self.builder.sink.work.get() > WORK_LIMIT
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
        let mut withheld = Vec::new();
        if let Token::TagToken(tag) = &mut token {
            match self.keep {
                Keep::Links => drop_unread_attributes(tag, self.keep),
                Keep::Assets => withheld = withhold_style(tag),
                Keep::Everything => withheld = withhold_attributes(tag),
            }
        }
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

fn drop_unread_attributes(tag: &mut Tag, keep: Keep) {
    match tag.kind {
        TagKind::EndTag => tag.attrs.clear(),
        TagKind::StartTag => tag.attrs.retain(|attribute| {
            let name = &attribute.name.local;
            is_read(&tag.name, name) || keep == Keep::Assets && assets::is_asset_attribute(&tag.name, name)
        }),
    }
    if tag.name == local_name!("font") {
        // Only the presence of these attributes matters. Different values would make elements unequal, and all of them
        // would be reopened.
        let rest = tag.attrs.iter_mut();
        rest.filter(|attribute| attribute.name.local != local_name!("style"))
            .for_each(|attribute| attribute.value.clear());
    }
}

/// Removes the attributes of elements that HTML reopens, to give them to the element once it is created.
///
/// The tree builder limits how many *equal* elements it reopens, so it must not see attributes. (`a` may keep them: two
/// of them are never open at once.)
fn withhold_attributes(tag: &mut Tag) -> Vec<Attribute> {
    if tag.kind == TagKind::EndTag || !is_reopened(&tag.name) {
        return Vec::new();
    }
    let all = tag.attrs.clone();
    drop_unread_attributes(tag, Keep::Links);
    all
}

/// Removes attributes that nobody reads, and the `style` of elements that HTML reopens, `a` included. Otherwise a long
/// style would be parsed once per reopening.
fn withhold_style(tag: &mut Tag) -> Vec<Attribute> {
    drop_unread_attributes(tag, Keep::Assets);
    let is_withheld = is_reopened(&tag.name) || tag.name == local_name!("a");
    let is_style = |attribute: &Attribute| attribute.name.local == local_name!("style");
    if !is_withheld || !tag.attrs.iter().any(is_style) {
        return Vec::new();
    }
    let all = tag.attrs.clone();
    tag.attrs.retain(|attribute| !is_style(attribute));
    all
}

fn is_reopened(name: &LocalName) -> bool {
    matches!(
        &**name,
        "b" | "big" | "code" | "em" | "font" | "i" | "nobr" | "s" | "small" | "strike" | "strong" | "tt" | "u"
    )
}

/// Returns whether the tree builder or the link extractor reads this attribute.
///
/// The elements that HTML reopens (`b`, `i`, `font` and similar ones) must have no attribute values here. The tree
/// builder reopens at most three equal elements, but any number of different ones. (`a` may keep them: two of them are
/// never open at once.)
fn is_read(tag: &LocalName, attribute: &LocalName) -> bool {
    match &**tag {
        "a" | "area" | "base" | "link" => matches!(&**attribute, "href" | "xlink:href" | "rel"),
        "iframe" | "frame" => matches!(&**attribute, "src" | "srcdoc"),
        "meta" => matches!(&**attribute, "name" | "content" | "http-equiv"),
        "font" => matches!(&**attribute, "color" | "face" | "size"),
        "input" => matches!(&**attribute, "type"),
        "annotation-xml" => matches!(&**attribute, "encoding"),
        _ => false,
    }
}

/// The tree of scraper, with a meter on what the tree builder does, and without text that nobody reads.
struct MeteredSink {
    tree: HtmlTreeSink,
    work: Cell<u64>,
    keep: Keep,
    /// The element created last. When one tag creates several, reopened elements come first and its own element last.
    last_created: Cell<Option<Handle>>,
}

impl MeteredSink {
    fn charge(&self, steps: u64) {
        self.work.set(self.work.get().saturating_add(steps));
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

    fn keeps_text_of(&self, parent: &Handle) -> bool {
        match self.keep {
            Keep::Everything => true,
            Keep::Links => self.is(parent, &local_name!("title")),
            Keep::Assets => self.is(parent, &local_name!("title")) || self.is(parent, &local_name!("style")),
        }
    }

    fn is(&self, parent: &Handle, name: &LocalName) -> bool {
        self.tree.0.borrow().tree.get(*parent).is_some_and(|node| {
            node.value()
                .as_element()
                .is_some_and(|element| element.name.local == *name)
        })
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
        self.charge(self.keep.element_cost());
        let element = self.tree.create_element(name, attrs, flags);
        self.last_created.set(Some(element));
        element
    }

    fn create_comment(&self, _text: StrTendril) -> Handle {
        self.charge(ELEMENT_COST);
        self.tree.create_comment(StrTendril::new())
    }

    fn create_pi(&self, _target: StrTendril, _data: StrTendril) -> Handle {
        self.create_comment(StrTendril::new())
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        if matches!(child, NodeOrText::AppendNode(_)) || self.keeps_text_of(parent) {
            self.tree.append(parent, child);
        }
    }

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        if self.keep == Keep::Everything || matches!(child, NodeOrText::AppendNode(_)) {
            self.tree.append_before_sibling(sibling, child);
        }
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        if self.keep == Keep::Everything || matches!(child, NodeOrText::AppendNode(_)) {
            self.tree.append_based_on_parent_node(element, previous, child);
        }
    }

    fn append_doctype_to_document(&self, _name: StrTendril, _public_id: StrTendril, _system_id: StrTendril) {}

    fn get_template_contents(&self, target: &Handle) -> Handle {
        self.tree.get_template_contents(target)
    }

    /// Returns whether this `<annotation-xml>` declares that it holds HTML (13.2.6, "HTML integration point").
    ///
    /// scraper does not store what the tree builder has found out about it.
    fn is_mathml_annotation_xml_integration_point(&self, target: &Handle) -> bool {
        self.tree.0.borrow().tree.get(*target).is_some_and(|node| {
            node.value().as_element().is_some_and(|element| {
                element.name.local == local_name!("annotation-xml")
                    && element.attr("encoding").is_some_and(|encoding| {
                        encoding.eq_ignore_ascii_case("text/html")
                            || encoding.eq_ignore_ascii_case("application/xhtml+xml")
                    })
            })
        })
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
