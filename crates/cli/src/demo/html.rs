//! Writes a page of the tables as HTML.

use std::borrow::Cow;

use super::page::{Address, Html, Link, Page, Place, Spelling, home};
use super::site::DemoSite;

const STYLE: &str = "body{font:1rem/1.5 Georgia,serif;max-width:42rem;margin:2rem auto;padding:0 1rem;color:#222;\
    background:#fdfcf8}nav,footer{font:.85rem sans-serif;color:#777}a{color:#0b5d7a}h1{font-weight:400}";
const WORDS: [&str; 32] = [
    "the", "a", "page", "small", "garden", "reads", "slowly", "under", "every", "bright", "window", "writes", "letter",
    "over", "quiet", "river", "and", "turns", "with", "old", "machine", "keeps", "near", "green", "harbour", "some",
    "finds", "story", "before", "winter", "leaves", "again",
];
const WORDS_PER_PARAGRAPH: usize = 70;

/// Returns the value of `Content-Type`, without the character encoding if the page declares it itself.
pub(super) fn content_type(html: &Html) -> String {
    if html.head.contains("charset") {
        return "text/html".to_owned();
    }
    format!("text/html; charset={}", html.charset.name())
}

/// Returns the bytes of the page, in its character encoding.
pub(super) fn write(site: &DemoSite, address: &Address, page: &Page, html: &Html) -> Vec<u8> {
    let title = escaped(&page.title);
    let (head, links_of_head) = (html.head, links(site, address, page, Place::Head));
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n{head}\n<title>{title}</title>\n<style>{STYLE}</style>\n{links_of_head}</head>\n"
    );
    let frames = links(site, address, page, Place::Frameset);
    if frames.is_empty() {
        text += &format!(
            "<body>\n<nav><a href=\"{}\">Demo</a> &rsaquo; {title}</nav>\n<main>\n<h1>{title}</h1>\n{}<ul>\n{}</ul>\n\
             </main>\n<footer>Made for crawlers. <a href=\"mailto:nobody@demo.localhost\">Write to nobody</a>\n\
             <a href=\"javascript:history.back()\">Back</a></footer>\n</body>\n</html>\n",
            site.url(&home()),
            prose(&address.path, html.paragraphs),
            links(site, address, page, Place::Body)
        );
    } else {
        text += &format!("<frameset cols=\"*\">\n{frames}</frameset>\n</html>\n");
    }
    html.charset.encode(&text).0.into_owned()
}

/// Returns the links of a page that stand in one place of it, a line for each.
fn links(site: &DemoSite, address: &Address, page: &Page, place: Place) -> String {
    let links = page.links.iter().filter(|link| link.element.place == place);
    let markup = links.map(|link| {
        let target = site.page(&link.to);
        let label = target.as_ref().map_or(&link.to.path, |target| &target.title);
        let markup = link.element.markup.replace("{label}", &escaped(label));
        markup.replace("{href}", &href(site, address, link)) + "\n"
    });
    markup.collect()
}

/// Returns the link as the text of an attribute, with character references.
fn href<'a>(site: &DemoSite, from: &Address, link: &'a Link) -> Cow<'a, str> {
    let plain = || escaped(&location(site, from, link)).into_owned();
    match &link.spelling {
        Spelling::Verbatim(attribute) => Cow::Borrowed(attribute),
        Spelling::WithFragment(fragment) => Cow::Owned(format!("{}#{fragment}", plain())),
        Spelling::Plain | Spelling::SchemeRelative | Spelling::UpperCase => Cow::Owned(plain()),
    }
}

/// Returns the link as the value of a `Location` header.
pub(super) fn location(site: &DemoSite, from: &Address, link: &Link) -> String {
    let to = &link.to;
    match &link.spelling {
        Spelling::Verbatim(location) => location.clone(),
        Spelling::SchemeRelative => format!("//{}{}", site.authority(to.host), to.path),
        Spelling::UpperCase => format!("HTTP://{}{}", site.authority(to.host).to_uppercase(), to.path),
        Spelling::Plain | Spelling::WithFragment(_) if from.host == to.host => to.path.clone(),
        Spelling::Plain | Spelling::WithFragment(_) => site.url(to),
    }
}

fn escaped(text: &str) -> Cow<'_, str> {
    if text.contains(['&', '<', '>', '"']) {
        let text = text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;");
        Cow::Owned(text)
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns paragraphs of words. They are the same for each request, and differ between pages.
fn prose(seed: &str, paragraphs: usize) -> String {
    let mut state = seed.bytes().fold(1_u64, |state, byte| {
        state.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    let mut text = String::new();
    for _ in 0..paragraphs {
        text += "<p>";
        for _ in 0..WORDS_PER_PARAGRAPH {
            // Knuth's MMIX generator. Only its high bits are random enough.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text += WORDS[(state >> 59) as usize];
            text.push(' ');
        }
        text += "</p>\n";
    }
    text
}
