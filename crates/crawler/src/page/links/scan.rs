//! From text to links in one pass without a tree.

use std::borrow::Cow;

use encoding_rs::Encoding;
use url::Url;

use super::anchors::Anchors;
use super::assets::{self, Asset};
use super::collector::{self, Collector, Kind};
use super::construction::{Construction, Element, NeedsTree};
use super::references::{TextContext, decoded};
use super::resolve::Resolver;
use super::tag::{self, Attribute, Attributes, Element as _, Name, Tag, code};
use super::text::{ReadText, Unread, VisibleText};
use super::tokens::{self, Next, Sink, TextRun};
use super::{Extracted, LinkOptions, NewLinks, SeenLinkCache};

/// Extracts the same as [`extract`](super::extract), in one pass and without a tree.
///
/// Time is linear in the length of `html`, and memory in that of the links.
///
/// # Errors
///
/// Fails if only a tree can decide which links the page has, or their order: see [`NeedsTree`].
pub fn extract_without_tree(
    html: &str,
    encoding: &'static Encoding,
    page_url: &Url,
    options: &LinkOptions,
) -> Result<Extracted, NeedsTree> {
    extract_new(html, encoding, page_url, options, None, &mut Unread).map(|news| news.extracted)
}

/// Does the same, but leaves out links that the cache has. The visible text is read in the same pass.
pub(super) fn extract_new<R: ReadText>(
    html: &str,
    encoding: &'static Encoding,
    page_url: &Url,
    options: &LinkOptions,
    known: Option<&SeenLinkCache>,
    reader: &mut R,
) -> Result<NewLinks, NeedsTree> {
    // Without assets only the attributes of few elements are read, so that case is compiled separately.
    if options.assets {
        scan::<true, R>(html, encoding, page_url, options, known, reader)
    } else {
        scan::<false, R>(html, encoding, page_url, options, known, reader)
    }
}

fn scan<const ASSETS: bool, R: ReadText>(
    html: &str,
    encoding: &'static Encoding,
    page_url: &Url,
    options: &LinkOptions,
    known: Option<&SeenLinkCache>,
    reader: &mut R,
) -> Result<NewLinks, NeedsTree> {
    let text = VisibleText::new(reader);
    let mut scan = Scan::<ASSETS, R>::new(Resolver::new(page_url, encoding), options, known, text, html.len());
    tokens::tokenize(html, &mut scan)?;
    if let Some(base) = scan.late_base {
        // The base also applies to the links before it, and it is the first one. So the scan starts again with it.
        let mut resolver = Resolver::new(page_url, encoding);
        resolver.rebase(&base);
        let mut text = scan.text;
        text.start_again();
        scan = Scan::new(resolver, options, known, text, html.len());
        scan.base_is_set = true;
        tokens::tokenize(html, &mut scan)?;
    }
    Ok(scan.anchors.into_collector().into_new_links())
}

/// Receives the tokens of a document, and passes the elements to the collector that a tree would contain.
struct Scan<'a, 'o, const ASSETS: bool, R> {
    construction: Construction,
    anchors: Anchors<'a, 'o>,
    /// What to do with the raw text that follows.
    open: Option<RawText>,
    /// Whether the first base is set, so that later ones are ignored.
    base_is_set: bool,
    /// The first base, if it came after links that it applies to.
    late_base: Option<String>,
    text: VisibleText<'o, R>,
}

/// Raw text that is read.
enum RawText {
    Title,
    /// The text of a `<style>`, with its `type`.
    Style(Option<String>),
}

impl<'a, 'o, const ASSETS: bool, R: ReadText> Scan<'a, 'o, ASSETS, R> {
    fn new(
        resolver: Resolver,
        options: &'o LinkOptions,
        known: Option<&'o SeenLinkCache>,
        text: VisibleText<'o, R>,
        length: usize,
    ) -> Self {
        let directory = known.and_then(|known| Some((known, resolver.directory(known)?)));
        Self {
            construction: Construction::default(),
            anchors: Anchors::new(Collector::new(resolver, options, known), directory, length),
            open: None,
            base_is_set: false,
            late_base: None,
            text,
        }
    }

    /// Passes an element to the collector.
    fn visit(&mut self, kind: Kind, attributes: &Attributes<'a>) -> Result<(), NeedsTree> {
        if !is_of_interest(kind, attributes) {
            return Ok(());
        }
        self.construction.count_element()?;
        match kind {
            Kind::Anchor => {
                let href = attributes.raw(Attribute::Href).unwrap_or_default();
                self.anchors.add(href, collector::is_nofollow(attributes));
            }
            Kind::Base => self.visit_base(attributes),
            _ => {
                self.anchors.collector().visit(kind, attributes);
            }
        }
        Ok(())
    }

    /// Passes what an element loads to the collector.
    fn visit_asset(&mut self, element: Element, tag: &Tag<'_, 'a>) -> Result<(), NeedsTree> {
        let name = tag.name.as_str().to_ascii_lowercase();
        let asset = match element {
            Element::Html if tag.name.code() == STYLE => {
                self.construction.count_element()?;
                self.open = Some(RawText::Style(
                    tag.attributes.value(Attribute::Type).map(Cow::into_owned),
                ));
                None
            }
            Element::Html => Asset::from_html_name(&name),
            Element::Svg => Asset::from_svg_name(&name),
            Element::Unread => None,
        };
        if let Some(asset) = asset {
            self.visit(Kind::Asset(asset), tag.attributes)?;
        }
        if element == Element::Html && tag.attributes.raw(Attribute::Style).is_some() && assets::is_styled(&name) {
            self.construction.count_element()?;
            assets::visit_style_attribute(self.anchors.collector(), tag.attributes);
        }
        Ok(())
    }

    fn visit_base(&mut self, attributes: &Attributes<'a>) {
        if let Some(href) = attributes.value(Attribute::Href).filter(|_| !self.base_is_set) {
            self.base_is_set = true;
            if !self.anchors.rebase(&href) {
                self.late_base = Some(href.into_owned());
            }
        }
        self.anchors.collector().visit(Kind::Base, attributes);
    }
}

/// Returns whether an element with these attributes can contain anything to collect.
fn is_of_interest(kind: Kind, attributes: &Attributes<'_>) -> bool {
    let has = |attribute| attributes.raw(attribute).is_some();
    match kind {
        Kind::Anchor | Kind::Area | Kind::Base => has(Attribute::Href),
        Kind::Frame | Kind::Iframe => has(Attribute::Src),
        Kind::Link => has(Attribute::Rel) && (has(Attribute::Href) || has(Attribute::Imagesrcset)),
        Kind::Meta => has(Attribute::Name) || has(Attribute::HttpEquiv),
        Kind::SvgAnchor => has(Attribute::Href) || has(Attribute::XlinkHref),
        Kind::Asset(_) => true,
    }
}

impl<'a, const ASSETS: bool, R: ReadText> Sink<'a> for Scan<'a, '_, ASSETS, R> {
    type Error = NeedsTree;

    #[inline]
    fn text(&mut self, text: TextRun<'a>) {
        self.text.text(&text);
    }

    fn raw_text(&mut self, text: TextRun<'a>) {
        self.text.raw_text(&text);
        let text = text.as_str();
        match self.open.take() {
            Some(RawText::Title) => self
                .anchors
                .collector()
                .visit_title(|| decoded(text, TextContext::Text).into_owned()),
            Some(RawText::Style(kind)) => assets::visit_style_element(self.anchors.collector(), kind.as_deref(), text),
            None => {}
        }
    }

    fn start_tag(&mut self, tag: &Tag<'_, 'a>) -> Result<Next, NeedsTree> {
        self.text.start_tag(&tag.name);
        let (element, next) = self.construction.start_tag(tag)?;
        let kind = match (element, tag.name.code()) {
            (Element::Html, A) => Kind::Anchor,
            (Element::Html, AREA) => Kind::Area,
            (Element::Html, BASE) => Kind::Base,
            (Element::Html, IFRAME) => Kind::Iframe,
            (Element::Html, LINK) => Kind::Link,
            (Element::Html, META) => Kind::Meta,
            (Element::Html, TITLE) => {
                self.construction.count_element()?;
                self.open = Some(RawText::Title);
                return Ok(next);
            }
            (Element::Svg, A) => Kind::SvgAnchor,
            _ => {
                if ASSETS {
                    self.visit_asset(element, tag)?;
                }
                return Ok(next);
            }
        };
        self.visit(kind, tag.attributes)?;
        if ASSETS {
            self.visit_asset(element, tag)?;
        }
        Ok(next)
    }

    fn end_tag(&mut self, name: &Name<'a>) -> Result<(), NeedsTree> {
        self.text.end_tag();
        self.construction.end_tag(name)
    }

    fn reads_attributes_of(name: &Name<'_>) -> bool {
        ASSETS || matches!(name.code(), A | AREA | BASE | IFRAME | LINK | META)
    }

    fn is_in_foreign_content(&self) -> bool {
        self.construction.is_in_foreign_content()
    }
}

impl tag::Element for Attributes<'_> {
    fn value(&self, attribute: Attribute) -> Option<Cow<'_, str>> {
        self.raw(attribute).map(|raw| decoded(raw, TextContext::Attribute))
    }
}

const A: u64 = code(b"a");
const AREA: u64 = code(b"area");
const BASE: u64 = code(b"base");
const IFRAME: u64 = code(b"iframe");
const LINK: u64 = code(b"link");
const META: u64 = code(b"meta");
const STYLE: u64 = code(b"style");
const TITLE: u64 = code(b"title");
