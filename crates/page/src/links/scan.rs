//! From tokens to elements: passes those that hold links to the collector, in the order of the source.

use encoding_rs::Encoding;
use url::Url;

use super::assets;
use super::collector::Collector;
use super::references::{TextContext, decoded};
use super::resolve::Resolver;
use super::tag::{Attribute, Attributes, Name, Tag, code};
use super::text::ReadText;
use super::tokens::{self, Sink, TextMode};
use super::{Extracted, LinkOptions, LinkSource};

/// Does what [`extract`](super::extract) does, and passes on the visible text to a reader that has read nothing.
pub(crate) fn extract_with<R: ReadText>(
    html: &str,
    encoding: &'static Encoding,
    page_url: &Url,
    options: &LinkOptions,
    reader: &mut R,
) -> Extracted {
    // Without assets only the attributes of few elements are read, so that case is compiled separately.
    let resolver = Resolver::new(page_url, encoding);
    if options.assets {
        scan::<true, R>(html, resolver, options, reader)
    } else {
        scan::<false, R>(html, resolver, options, reader)
    }
}

fn scan<const ASSETS: bool, R: ReadText>(
    html: &str,
    mut resolver: Resolver,
    options: &LinkOptions,
    reader: &mut R,
) -> Extracted {
    loop {
        let mut scan = Scan::<ASSETS, R> {
            foreign: Foreign::default(),
            templates: 0,
            shadow_roots: 0,
            collector: Collector::new(resolver, options, html.len()),
            open: None,
            late_base: None,
            reader: &mut *reader,
            is_hidden: false,
        };
        tokens::tokenize(html, &mut scan);
        match scan.late_base {
            None => return scan.collector.into_extracted(),
            // It applies to the links before it, too. So the scan starts again, once: with the same base, it has no other.
            Some(rebased) => resolver = rebased,
        }
        *reader = R::default();
    }
}

/// Receives the tokens of a document.
struct Scan<'a, 'o, const ASSETS: bool, R> {
    foreign: Foreign,
    /// How many templates are open. What they hold is no part of the document.
    templates: usize,
    /// How many shadow roots are open, which do not set the document's base, title or directives.
    shadow_roots: usize,
    collector: Collector<'o>,
    /// What to do with the raw text that follows.
    open: Option<RawText<'a>>,
    /// The base, if it came after links that were resolved on another one.
    late_base: Option<Resolver>,
    reader: &'o mut R,
    /// Whether the last start tag hides the text behind it.
    is_hidden: bool,
}

/// Raw text that is read.
enum RawText<'a> {
    Title,
    /// The text of a `<style>`, with its `type`.
    Style(Option<&'a str>),
}

/// Whether tags are SVG or MathML.
#[derive(Default)]
struct Foreign {
    /// How many `svg` and `math` are open.
    depth: usize,
    is_svg: bool,
    /// How many of its elements with the name of a template are open.
    templates: usize,
}

impl Foreign {
    /// Processes a start tag. Returns whether its element is foreign.
    #[inline]
    fn start_tag(&mut self, tag: &Tag<'_, '_>) -> bool {
        let name = tag.name.code();
        if name == SVG || name == MATH {
            if self.depth == 0 {
                (self.is_svg, self.templates) = (name == SVG, 0);
            }
            self.depth += usize::from(!tag.self_closing);
            return true;
        }
        if self.depth > 0 && (ENDS_FOREIGN.iter().any(|end| tag.name.is(end)) || tag.name.is("blockquote")) {
            self.depth = 0;
        }
        self.depth > 0
    }

    #[inline]
    fn end_tag(&mut self, name: &Name<'_>) {
        if self.depth == 0 {
            self.templates = 0;
            return;
        }
        match name.code() {
            SVG | MATH => self.depth -= 1,
            P | BR => self.depth = 0,
            _ => {}
        }
    }
}

/// Start tags that close all SVG and MathML before them (13.2.6.5), with `blockquote`.
const ENDS_FOREIGN: [&str; 43] = [
    "b", "big", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1", "h2", "h3", "h4", "h5",
    "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p", "pre", "ruby", "s", "small",
    "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul", "var",
];

impl<'a, 'o, const ASSETS: bool, R: ReadText> Scan<'a, 'o, ASSETS, R> {
    /// Passes the links of an element of HTML to the collector.
    fn visit_html(&mut self, tag: &Tag<'_, 'a>) {
        let (to, element) = (&mut self.collector, tag.attributes);
        match tag.name.code() {
            A => to.visit_anchor(element),
            AREA => to.add(element.value(Attribute::Href), LinkSource::Area, element),
            BASE | META | TITLE if self.shadow_roots > 0 => {}
            BASE => {
                let href = element.value(Attribute::Href);
                if let Some(late) = href.and_then(|href| to.rebase(&href)) {
                    self.late_base = Some(late);
                }
            }
            FRAME => to.add(element.filled(Attribute::Src), LinkSource::Frame, element),
            IFRAME => self.visit_iframe(element),
            OBJECT if !ASSETS => to.visit_shown_page(element, Attribute::Data),
            EMBED if !ASSETS => to.visit_shown_page(element, Attribute::Src),
            LINK => to.visit_link(element),
            META => to.visit_meta(element),
            TITLE => self.open = Some(RawText::Title),
            _ => {}
        }
        if ASSETS {
            let name = tag.name.as_str().to_ascii_lowercase();
            assets::visit_html(&mut self.collector, &name, element);
        }
    }

    /// The same for an element of SVG or MathML.
    fn visit_foreign(&mut self, tag: &Tag<'_, 'a>) {
        let (is_svg, element) = (self.foreign.is_svg, tag.attributes);
        if is_svg && tag.name.code() == A {
            self.collector.add(element.svg_href(), LinkSource::Anchor, element);
        }
        if ASSETS {
            let name = tag.name.as_str().to_ascii_lowercase();
            assets::visit_foreign(&mut self.collector, &name, is_svg, element);
        }
    }

    /// Reads the document in the `srcdoc` of a frame, or adds its link.
    fn visit_iframe(&mut self, element: &Attributes<'a>) {
        let Some(document) = element.value(Attribute::Srcdoc) else {
            let source = element.filled(Attribute::Src);
            return self.collector.add(source, LinkSource::Iframe, element);
        };
        if let Some((resolver, options)) = self.collector.nested() {
            let nested = scan::<ASSETS, ()>(&document, resolver, options, &mut ());
            self.collector.add_nested(nested);
        }
    }
}

impl<'a, const ASSETS: bool, R: ReadText> Sink<'a> for Scan<'a, '_, ASSETS, R> {
    #[inline]
    fn text(&mut self, text: &'a [u8]) {
        // In SVG the text of a style sheet is text like any other, which CDATA may split.
        if ASSETS
            && self.foreign.depth > 0
            && let Some(RawText::Style(kind)) = &self.open
        {
            let text = String::from_utf8_lossy(text);
            assets::visit_style_element(&mut self.collector, *kind, &decoded(&text, TextContext::Text));
        }
        if !self.is_hidden {
            self.reader.read(text);
        }
    }

    fn raw_text(&mut self, text: &'a str) {
        self.text(text.as_bytes());
        self.is_hidden = false;
        match self.open.take() {
            Some(RawText::Title) => self
                .collector
                .visit_title(|| decoded(text, TextContext::Text).into_owned()),
            Some(RawText::Style(kind)) => assets::visit_style_element(&mut self.collector, kind, text),
            None => {}
        }
    }

    fn start_tag(&mut self, tag: &Tag<'_, 'a>) -> TextMode {
        self.is_hidden = matches!(tag.name.code(), SCRIPT | STYLE | IFRAME | NOEMBED | NOFRAMES);
        let is_foreign = self.foreign.start_tag(tag);
        let name = tag.name.code();
        if name == TEMPLATE && is_foreign {
            self.foreign.templates += usize::from(!tag.self_closing);
        } else if name == TEMPLATE && self.templates == 0 && is_shadow_root(tag.attributes) {
            self.shadow_roots += 1;
        } else if name == TEMPLATE {
            self.templates += 1;
        }
        if self.templates == 0 {
            if ASSETS && name == STYLE {
                self.open = Some(RawText::Style(tag.attributes.raw(Attribute::Type)));
            }
            match is_foreign {
                true => self.visit_foreign(tag),
                false => self.visit_html(tag),
            }
        }
        if is_foreign {
            TextMode::Data
        } else {
            text_mode_after(&tag.name)
        }
    }

    fn end_tag(&mut self, name: &Name<'a>) {
        self.is_hidden = false;
        self.open = None;
        self.foreign.end_tag(name);
        if name.code() == TEMPLATE {
            // Within a template that is no shadow root, none is one.
            let open = [&mut self.foreign.templates, &mut self.templates, &mut self.shadow_roots];
            if let Some(innermost) = open.into_iter().find(|open| **open > 0) {
                *innermost -= 1;
            }
        }
    }

    fn reads_attributes_of(name: &Name<'_>) -> bool {
        let code = name.code();
        ASSETS
            || matches!(
                code,
                A | AREA | BASE | EMBED | FRAME | IFRAME | LINK | META | OBJECT | TEMPLATE
            )
    }

    fn is_in_foreign_content(&self) -> bool {
        self.foreign.depth > 0
    }
}

fn is_shadow_root(template: &Attributes<'_>) -> bool {
    let mode = template.value(Attribute::Shadowrootmode);
    mode.is_some_and(|mode| mode.eq_ignore_ascii_case("open") || mode.eq_ignore_ascii_case("closed"))
}

/// Returns how the text after the start tag of an HTML element is tokenized. Scripts do not run, so `noscript` holds markup.
#[inline]
pub(super) fn text_mode_after(name: &Name<'_>) -> TextMode {
    match name.code() {
        TITLE | TEXTAREA => TextMode::Rcdata,
        STYLE | XMP | IFRAME | NOEMBED | NOFRAMES => TextMode::Rawtext,
        SCRIPT => TextMode::Script,
        _ if name.is("plaintext") => TextMode::Plaintext,
        _ => TextMode::Data,
    }
}

const A: u64 = code(b"a");
const AREA: u64 = code(b"area");
const BASE: u64 = code(b"base");
const BR: u64 = code(b"br");
const EMBED: u64 = code(b"embed");
const FRAME: u64 = code(b"frame");
const IFRAME: u64 = code(b"iframe");
const LINK: u64 = code(b"link");
const MATH: u64 = code(b"math");
const META: u64 = code(b"meta");
const NOEMBED: u64 = code(b"noembed");
const NOFRAMES: u64 = code(b"noframes");
const OBJECT: u64 = code(b"object");
const P: u64 = code(b"p");
const SCRIPT: u64 = code(b"script");
const STYLE: u64 = code(b"style");
const SVG: u64 = code(b"svg");
const TEMPLATE: u64 = code(b"template");
const TEXTAREA: u64 = code(b"textarea");
const TITLE: u64 = code(b"title");
const XMP: u64 = code(b"xmp");
