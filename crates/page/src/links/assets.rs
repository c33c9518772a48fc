//! What a page loads: images, media, scripts, style sheets.

use std::borrow::Cow;

use super::tag::{Attribute, Attributes, has_token};
use super::{LinkSource, style};

/// What takes the links of assets.
pub(super) trait Assets {
    /// Takes in an asset, if its element names one.
    fn add_asset(&mut self, target: Option<Cow<'_, str>>, source: LinkSource);
}

/// The kinds of elements that load assets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asset {
    /// `<img>`, or `<image>`, which HTML turns into `<img>`.
    Image,
    /// `<input>`; some inputs are images.
    Input,
    /// `<source>` of a picture, audio or video.
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
    /// `name` is in lower case.
    pub(super) fn from_html_name(name: &str) -> Option<Self> {
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

    /// `name` is in lower case.
    pub(super) fn from_svg_name(name: &str) -> Option<Self> {
        Some(match name {
            "image" | "feimage" => Self::SvgImage,
            "script" => Self::SvgScript,
            "use" => Self::SvgUse,
            _ => return None,
        })
    }
}

pub(super) fn visit(assets: &mut impl Assets, asset: Asset, element: &Attributes<'_>) {
    let mut add = |attribute, source| {
        let value = element.value(attribute).filter(|value| !value.trim_ascii().is_empty());
        assets.add_asset(value, source);
    };
    match asset {
        Asset::Image => {
            add(Attribute::Src, LinkSource::Image);
            visit_candidates(assets, element, Attribute::Srcset);
        }
        Asset::Input => {
            let is_image = |kind: Cow<'_, str>| kind.eq_ignore_ascii_case("image");
            if element.value(Attribute::Type).is_some_and(is_image) {
                add(Attribute::Src, LinkSource::Image);
            }
        }
        Asset::Source => {
            add(Attribute::Src, LinkSource::Media);
            visit_candidates(assets, element, Attribute::Srcset);
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
            // A fragment refers to a part of this document, which is loaded already.
            let href = href.filter(|href| !href.trim_ascii().is_empty() && !href.trim_ascii_start().starts_with('#'));
            assets.add_asset(href, source);
        }
    }
}

pub(super) fn visit_link(assets: &mut impl Assets, rel: &str, element: &Attributes<'_>) {
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
    assets.add_asset(element.value(Attribute::Href).filter(|href| !href.is_empty()), source);
    if source == LinkSource::Preload {
        visit_candidates(assets, element, Attribute::Imagesrcset);
    }
}

pub(super) fn visit_style_attribute(assets: &mut impl Assets, element: &Attributes<'_>) {
    if let Some(declarations) = element.value(Attribute::Style) {
        visit_style(assets, &declarations);
    }
}

pub(super) fn visit_paints(assets: &mut impl Assets, element: &Attributes<'_>) {
    element.paints().for_each(|value| visit_style(assets, &value));
}

/// Adds the image in the background of an HTML element that may have one by an attribute (HTML standard, 15.3).
pub(super) fn visit_background(assets: &mut impl Assets, name: &str, element: &Attributes<'_>) {
    if matches!(
        name,
        "body" | "table" | "tbody" | "td" | "tfoot" | "th" | "thead" | "tr"
    ) {
        let image = element.value(Attribute::Background);
        assets.add_asset(image.filter(|image| !image.trim_ascii().is_empty()), LinkSource::Image);
    }
}

pub(super) fn visit_style_element(assets: &mut impl Assets, kind: Option<&str>, text: &str) {
    if kind.is_none_or(|kind| kind.is_empty() || kind.eq_ignore_ascii_case("text/css")) {
        visit_style(assets, text);
    }
}

pub(super) fn visit_style(assets: &mut impl Assets, css: &str) {
    style::each_url(css, |url, source| assets.add_asset(Some(Cow::Borrowed(url)), source));
}

fn visit_candidates(assets: &mut impl Assets, element: &Attributes<'_>, attribute: Attribute) {
    if let Some(list) = element.value(attribute) {
        for candidate in candidates(&list) {
            assets.add_asset(Some(Cow::Borrowed(candidate)), LinkSource::Image);
        }
    }
}

/// Returns the URLs of a `srcset` (HTML standard, 4.8.4.3.10, "parse a srcset attribute"). Candidates with invalid
/// descriptors count, too.
fn candidates(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = list;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return None;
        }
        let (url, after_url) = rest.split_at(rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len()));
        let trimmed = url.trim_end_matches(',');
        // A comma directly after the URL ends the candidate. Otherwise its descriptors follow.
        rest = if trimmed.len() < url.len() {
            after_url
        } else {
            after_descriptors(after_url)
        };
        Some(trimmed)
    })
}

fn after_descriptors(text: &str) -> &str {
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

/// Returns whether a URL contains the data itself. Such a URL may be as long as an image, and needs no request.
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
    fn srcset_candidates_end_where_the_standard_says() {
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
