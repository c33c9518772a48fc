//! From tree to links: exact for every document, but slower.

use std::borrow::Cow;

use encoding_rs::Encoding;
use html5ever::{local_name, ns};
use scraper::{ElementRef, Html};
use url::Url;

use super::assets::{self, Asset};
use super::collector::{Collector, Kind};
use super::document::Keep;
use super::resolve::Resolver;
use super::tag::{Attribute, Element};
use super::{Extracted, LinkOptions, document};

/// Extracts the same as [`extract`](super::extract), always with a tree.
///
/// `extract` falls back to it, and the tests compare the scanner with it. It takes ten times as long. Markup written to
/// be costly takes up to about a second and 300 MB; beyond that the document is truncated, which
/// [`Extracted::truncated`] shows.
pub fn extract_with_tree(html: &str, encoding: &'static Encoding, page_url: &Url, options: &LinkOptions) -> Extracted {
    let (document, cut) = document::parse(html, if options.assets { Keep::Assets } else { Keep::Links });
    let mut resolver = Resolver::new(page_url, encoding);
    if let Some(href) = elements(&document).find_map(base_href) {
        resolver.rebase(href);
    }
    let mut collector = Collector::new(resolver, options, None);
    elements(&document).for_each(|element| visit(&mut collector, element));
    Extracted {
        truncated: cut,
        ..collector.into_extracted()
    }
}

/// Returns the elements in tree order, without recursion, and without those in templates.
fn elements(document: &Html) -> impl Iterator<Item = ElementRef<'_>> {
    let root = document.tree.root();
    std::iter::successors(Some(root), |node| {
        let is_template =
            ElementRef::wrap(*node).is_some_and(|element| matches!(name(element), Name::Html("template")));
        let child = if is_template { None } else { node.first_child() };
        child.or_else(|| std::iter::successors(Some(*node), |node| node.parent()).find_map(|node| node.next_sibling()))
    })
    .filter_map(ElementRef::wrap)
}

/// An element's name and namespace; the name alone has no meaning.
enum Name<'a> {
    Html(&'a str),
    Svg(&'a str),
    Other,
}

fn name(element: ElementRef<'_>) -> Name<'_> {
    let name = &element.value().name;
    if name.ns == ns!(html) {
        Name::Html(&name.local)
    } else if name.ns == ns!(svg) {
        Name::Svg(&name.local)
    } else {
        Name::Other
    }
}

fn base_href(element: ElementRef<'_>) -> Option<&str> {
    match name(element) {
        Name::Html("base") => element.attr("href"),
        _ => None,
    }
}

fn visit(collector: &mut Collector<'_>, element: ElementRef<'_>) {
    let kind = match name(element) {
        Name::Html("a") => Kind::Anchor,
        Name::Html("area") => Kind::Area,
        Name::Html("base") => Kind::Base,
        Name::Html("frame") => Kind::Frame,
        Name::Html("iframe") => Kind::Iframe,
        Name::Html("link") => Kind::Link,
        Name::Html("meta") => Kind::Meta,
        Name::Html("title") => return collector.visit_title(|| element.text().collect()),
        Name::Svg("a") => Kind::SvgAnchor,
        Name::Html(_) | Name::Svg(_) if collector.wants_assets() => return visit_asset(collector, element),
        Name::Html(_) | Name::Svg(_) | Name::Other => return,
    };
    collector.visit(kind, &element);
    if collector.wants_assets() {
        visit_style_attribute(collector, element);
    }
}

fn visit_asset(collector: &mut Collector<'_>, element: ElementRef<'_>) {
    let asset = match name(element) {
        Name::Html("style") => {
            let text: String = element.text().collect();
            assets::visit_style_element(collector, element.attr("type"), &text);
            None
        }
        Name::Html(name) => Asset::from_html_name(name),
        Name::Svg(name) => Asset::from_svg_name(&name.to_ascii_lowercase()),
        Name::Other => None,
    };
    if let Some(asset) = asset {
        collector.visit(Kind::Asset(asset), &element);
    }
    visit_style_attribute(collector, element);
}

fn visit_style_attribute(collector: &mut Collector<'_>, element: ElementRef<'_>) {
    if let Name::Html(name) = name(element)
        && assets::is_styled(name)
    {
        assets::visit_style_attribute(collector, &element);
    }
}

impl Element for ElementRef<'_> {
    fn value(&self, attribute: Attribute) -> Option<Cow<'_, str>> {
        let name = match attribute {
            Attribute::Href => "href",
            Attribute::Rel => "rel",
            Attribute::Src => "src",
            Attribute::Srcdoc => "srcdoc",
            Attribute::Name => "name",
            Attribute::Content => "content",
            Attribute::HttpEquiv => "http-equiv",
            Attribute::Srcset => "srcset",
            Attribute::Imagesrcset => "imagesrcset",
            Attribute::Poster => "poster",
            Attribute::Data => "data",
            Attribute::Type => "type",
            Attribute::Style => "style",
            Attribute::XlinkHref => return xlink_href(self).map(Cow::Borrowed),
        };
        self.attr(name).map(Cow::Borrowed)
    }
}

fn xlink_href<'a>(element: &'a ElementRef<'_>) -> Option<&'a str> {
    let mut attributes = element.value().attrs.iter();
    attributes
        .find(|(name, _)| name.ns == ns!(xlink) && name.local == local_name!("href"))
        .map(|(_, value)| &**value)
}
