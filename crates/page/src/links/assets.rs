//! What a page loads: images, media, scripts, style sheets.

use super::collector::Collector;
use super::tag::{Attribute, Attributes, has_token};
use super::{LinkSource, style};

/// Adds what an element of HTML loads. `name` is in lower case.
pub(super) fn visit_html(to: &mut Collector<'_>, name: &str, element: &Attributes<'_>) {
    match name {
        // HTML turns `<image>` into `<img>`.
        "img" | "image" => {
            add(to, element, Attribute::Src, LinkSource::Image);
            add_candidates(to, element, Attribute::Srcset);
        }
        "input" if is_image_button(element) => add(to, element, Attribute::Src, LinkSource::Image),
        // Of a picture, audio or video.
        "source" => {
            add(to, element, Attribute::Src, LinkSource::Media);
            add_candidates(to, element, Attribute::Srcset);
        }
        "audio" | "embed" | "track" => add(to, element, Attribute::Src, LinkSource::Media),
        "video" => {
            add(to, element, Attribute::Src, LinkSource::Media);
            add(to, element, Attribute::Poster, LinkSource::Image);
        }
        "object" => add(to, element, Attribute::Data, LinkSource::Media),
        "script" => add(to, element, Attribute::Src, LinkSource::Script),
        "link" => visit_link(to, element),
        // An image in the background (HTML standard, 15.3).
        "body" | "table" | "tbody" | "td" | "tfoot" | "th" | "thead" | "tr" => {
            add(to, element, Attribute::Background, LinkSource::Image);
        }
        _ => {}
    }
    visit_style_attribute(to, element);
}

/// Adds what an element of SVG or MathML loads. `name` is in lower case.
pub(super) fn visit_foreign(to: &mut Collector<'_>, name: &str, is_svg: bool, element: &Attributes<'_>) {
    let source = match name {
        // `<use>` may show a part of another file.
        "image" | "feimage" | "use" => Some(LinkSource::Image),
        "script" => Some(LinkSource::Script),
        _ => None,
    };
    if let (Some(source), Some(href)) = (source.filter(|_| is_svg), element.svg_href()) {
        let target = href.trim_ascii_start();
        // A fragment refers to a part of this document, which is loaded already.
        if !target.is_empty() && !target.starts_with('#') {
            to.add_asset(&href, source);
        }
    }
    visit_style_attribute(to, element);
    element.paints().for_each(|value| visit_style(to, &value));
}

fn visit_link(to: &mut Collector<'_>, element: &Attributes<'_>) {
    let rel = element.value(Attribute::Rel).unwrap_or_default();
    let is_any = |relations: &[&str]| relations.iter().any(|relation| has_token(&rel, relation));
    let source = if has_token(&rel, "stylesheet") {
        LinkSource::StyleSheet
    } else if is_any(&["icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon"]) {
        LinkSource::Image
    } else if has_token(&rel, "modulepreload") {
        LinkSource::Script
    } else if is_any(&["preload", "manifest"]) {
        LinkSource::Preload
    } else {
        return;
    };
    if let Some(href) = element.filled(Attribute::Href) {
        to.add_asset(&href, source);
    }
    if source == LinkSource::Preload {
        add_candidates(to, element, Attribute::Imagesrcset);
    }
}

fn visit_style_attribute(to: &mut Collector<'_>, element: &Attributes<'_>) {
    if let Some(declarations) = element.value(Attribute::Style) {
        visit_style(to, &declarations);
    }
}

pub(super) fn visit_style_element(to: &mut Collector<'_>, kind: Option<&str>, text: &str) {
    if kind.is_none_or(|kind| kind.is_empty() || kind.eq_ignore_ascii_case("text/css")) {
        visit_style(to, text);
    }
}

pub(super) fn visit_style(to: &mut Collector<'_>, css: &str) {
    style::each_url(css, |url, source| to.add_asset(url, source));
}

fn is_image_button(input: &Attributes<'_>) -> bool {
    let kind = input.value(Attribute::Type);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("image"))
}

fn add(to: &mut Collector<'_>, element: &Attributes<'_>, attribute: Attribute, source: LinkSource) {
    if let Some(target) = element
        .value(attribute)
        .filter(|target| !target.trim_ascii().is_empty())
    {
        to.add_asset(&target, source);
    }
}

fn add_candidates(to: &mut Collector<'_>, element: &Attributes<'_>, attribute: Attribute) {
    let list = element.value(attribute).unwrap_or_default();
    candidates(&list).for_each(|candidate| to.add_asset(candidate, LinkSource::Image));
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
