//! What a page is made of besides itself: images, media, scripts, style sheets.

use std::borrow::Cow;

use super::tag::{Attribute, Element, has_token};
use super::{LinkSource, style};

/// Takes what elements load.
pub(super) trait Loaded {
    /// Takes note of what an element loads, if it is not in the document itself.
    fn add_asset(&mut self, target: Option<Cow<'_, str>>, source: LinkSource);
}

/// The kinds of elements that load something else than a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asset {
    /// `<img>`, or `<image>`, which is another spelling of it.
    Image,
    /// `<input>`, of which some are images.
    Input,
    /// `<source>`, of a picture or of media.
    Source,
    /// `<audio>`, `<embed>` or `<track>`.
    Media,
    Video,
    Object,
    Script,
    /// `<image>` or `<feImage>` of SVG.
    SvgImage,
    /// `<script>` of SVG.
    SvgScript,
    /// `<use>` of SVG, which may show a part of another file.
    SvgUse,
}

impl Asset {
    /// The kind of an HTML element with this name in lower case.
    pub(super) fn of_html(name: &str) -> Option<Self> {
        Some(match name {
            "img" | "image" => Self::Image,
            "input" => Self::Input,
            "source" => Self::Source,
            "audio" | "embed" | "track" => Self::Media,
            "video" => Self::Video,
            "object" => Self::Object,
            "script" => Self::Script,
            _ => return None,
        })
    }

    /// The kind of an SVG element with this name in lower case.
    pub(super) fn of_svg(name: &str) -> Option<Self> {
        Some(match name {
            "image" | "feimage" => Self::SvgImage,
            "script" => Self::SvgScript,
            "use" => Self::SvgUse,
            _ => return None,
        })
    }
}

/// Elements whose `style` attribute is not read: HTML drops or merges them, or not, depending on what is open.
const UNSTYLED: [&str; 19] = [
    "body", "caption", "col", "colgroup", "form", "frame", "frameset", "head", "html", "noscript", "select", "style",
    "tbody", "td", "template", "tfoot", "th", "thead", "tr",
];

/// Whether the `style` attribute of an HTML element with this name in lower case is read.
pub(super) fn is_styled(name: &str) -> bool {
    !UNSTYLED.contains(&name)
}

/// Whether an attribute of the HTML or SVG element with this name names an asset, both in lower case.
pub(super) fn is_asset_attribute(tag: &str, attribute: &str) -> bool {
    match attribute {
        "style" => is_styled(tag),
        "src" | "srcset" | "poster" | "data" => Asset::of_html(tag).is_some(),
        "href" | "xlink:href" => Asset::of_svg(tag).is_some(),
        "type" => matches!(tag, "input" | "style"),
        "imagesrcset" => tag == "link",
        _ => false,
    }
}

/// Takes note of what an element loads.
pub(super) fn visit(loaded: &mut impl Loaded, asset: Asset, element: &impl Element) {
    let mut add = |attribute, source| {
        let value = element.value(attribute).filter(|value| !value.trim_ascii().is_empty());
        loaded.add_asset(value, source);
    };
    match asset {
        Asset::Image => {
            add(Attribute::Src, LinkSource::Image);
            visit_candidates(loaded, element, Attribute::Srcset);
        }
        Asset::Input => {
            let is_image = |kind: Cow<'_, str>| kind.eq_ignore_ascii_case("image");
            if element.value(Attribute::Type).is_some_and(is_image) {
                add(Attribute::Src, LinkSource::Image);
            }
        }
        Asset::Source => {
            add(Attribute::Src, LinkSource::Media);
            visit_candidates(loaded, element, Attribute::Srcset);
        }
        Asset::Media => add(Attribute::Src, LinkSource::Media),
        Asset::Video => {
            add(Attribute::Src, LinkSource::Media);
            add(Attribute::Poster, LinkSource::Image);
        }
        Asset::Object => add(Attribute::Data, LinkSource::Media),
        Asset::Script => add(Attribute::Src, LinkSource::Script),
        Asset::SvgImage | Asset::SvgScript | Asset::SvgUse => {
            let source = if asset == Asset::SvgScript {
                LinkSource::Script
            } else {
                LinkSource::Image
            };
            let href = element
                .value(Attribute::Href)
                .or_else(|| element.value(Attribute::XlinkHref));
            // What is a part of this document is there.
            let href = href.filter(|href| !href.trim_ascii().is_empty() && !href.trim_ascii_start().starts_with('#'));
            loaded.add_asset(href, source);
        }
    }
}

/// Takes note of what a `<link>` with this list of relations loads.
pub(super) fn visit_link(loaded: &mut impl Loaded, rel: &str, element: &impl Element) {
    let is_any = |relations: &[&str]| relations.iter().any(|relation| has_token(rel, relation));
    let source = if has_token(rel, "stylesheet") {
        LinkSource::StyleSheet
    } else if is_any(&["icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon"]) {
        LinkSource::Image
    } else if has_token(rel, "modulepreload") {
        LinkSource::Script
    } else if is_any(&["preload", "manifest"]) {
        LinkSource::Preload
    } else {
        return;
    };
    loaded.add_asset(element.value(Attribute::Href).filter(|href| !href.is_empty()), source);
    if source == LinkSource::Preload {
        visit_candidates(loaded, element, Attribute::Imagesrcset);
    }
}

/// Takes note of what a `style` attribute names.
pub(super) fn visit_style_attribute(loaded: &mut impl Loaded, element: &impl Element) {
    if let Some(declarations) = element.value(Attribute::Style) {
        visit_style(loaded, &declarations);
    }
}

/// Takes note of what the text of a `<style>` names, unless it is in another language than CSS.
pub(super) fn visit_style_element(loaded: &mut impl Loaded, kind: Option<&str>, text: &str) {
    if kind.is_none_or(|kind| kind.is_empty() || kind.eq_ignore_ascii_case("text/css")) {
        visit_style(loaded, text);
    }
}

/// Takes note of what a style sheet, or a part of one, names.
pub(super) fn visit_style(loaded: &mut impl Loaded, css: &str) {
    style::each_url(css, |url, source| loaded.add_asset(Some(Cow::Borrowed(url)), source));
}

fn visit_candidates(loaded: &mut impl Loaded, element: &impl Element, attribute: Attribute) {
    if let Some(list) = element.value(attribute) {
        for candidate in candidates(&list) {
            loaded.add_asset(Some(Cow::Borrowed(candidate)), LinkSource::Image);
        }
    }
}

/// The URLs of a `srcset` (HTML standard, 4.8.4.3.10, "parse a srcset attribute"), also of candidates whose descriptors make no
/// sense.
fn candidates(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = list;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return None;
        }
        let (url, behind) = rest.split_at(rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len()));
        let trimmed = url.trim_end_matches(',');
        // A comma right behind the URL ends the candidate; else its descriptors come first.
        rest = if trimmed.len() < url.len() {
            behind
        } else {
            behind_descriptors(behind)
        };
        Some(trimmed)
    })
}

/// What follows the next comma that is in no parentheses.
fn behind_descriptors(text: &str) -> &str {
    let mut in_parentheses = false;
    let end = text.find(|c| {
        match c {
            '(' => in_parentheses = true,
            ')' => in_parentheses = false,
            _ => {}
        }
        c == ',' && !in_parentheses
    });
    end.and_then(|end| text.get(end..)).unwrap_or_default()
}

/// Whether a URL holds what it names: it may be as long as an image, and asks nobody.
pub(super) fn is_inline(target: &str) -> bool {
    let start = target.trim_ascii_start().as_bytes();
    start
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data:") || scheme.eq_ignore_ascii_case(b"blob:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_end_where_the_standard_ends_them() {
        for (list, expected) in [
            ("a", &["a"][..]),
            (" a 1x , b 2x ", &["a", "b"]),
            ("a,b", &["a,b"]),
            ("a, b", &["a", "b"]),
            ("a,, ,b 3x", &["a", "b"]),
            (",a", &["a"]),
            ("a 1x,b 2x", &["a", "b"]),
            ("a (1,2) 3w, b", &["a", "b"]),
            ("a (1,2 3w, b", &["a"]),
            ("data:,x 1x, b", &["data:,x", "b"]),
            ("a\n100w\t,\r\nb\x0c200w", &["a", "b"]),
            ("", &[]),
            (" ,\n", &[]),
        ] {
            assert_eq!(candidates(list).collect::<Vec<_>>(), expected, "{list:?}");
        }
    }
}
