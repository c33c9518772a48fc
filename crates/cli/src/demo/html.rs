//! Writes a page of the tables as HTML.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::page::{Address, Charset, Element, Html, Link, Page, Spelling, home};
use super::site::DemoSite;

const STYLE: &str = "body{font:1rem/1.5 Georgia,serif;max-width:42rem;margin:2rem auto;padding:0 1rem;color:#222;\
    background:#fdfcf8}nav,footer{font:.85rem sans-serif;color:#777}a{color:#0b5d7a}h1{font-weight:400}";
const WORDS: [&str; 32] = [
    "the", "a", "page", "small", "garden", "reads", "slowly", "under", "every", "bright", "window", "writes", "letter",
    "over", "quiet", "river", "and", "turns", "with", "old", "machine", "keeps", "near", "green", "harbour", "some",
    "finds", "story", "before", "winter", "leaves", "again",
];
const WORDS_PER_PARAGRAPH: usize = 70;

impl Charset {
    /// Returns the value of `Content-Type`.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Charset::Utf8 => "text/html; charset=utf-8",
            Charset::ShiftJis => "text/html; charset=Shift_JIS",
            Charset::Windows1252 => "text/html",
        }
    }

    fn meta(self) -> &'static str {
        match self {
            Charset::Utf8 | Charset::ShiftJis => "",
            Charset::Windows1252 => "<meta charset=\"windows-1252\">\n",
        }
    }

    fn encode(self, html: String) -> Vec<u8> {
        match self {
            Charset::Utf8 => html.into_bytes(),
            Charset::ShiftJis => transcode(&html, |code| match code {
                // JIS X 0201: half-width kana are single bytes from 0xA1 on.
                0xFF61..=0xFF9F => u8::try_from(code - 0xFF61 + 0xA1).ok(),
                _ => None,
            }),
            Charset::Windows1252 => transcode(&html, |code| match code {
                0xA0..=0xFF => u8::try_from(code).ok(),
                _ => None,
            }),
        }
    }
}

/// Encodes a text in a single-byte encoding that extends ASCII. A character without a byte becomes a character reference.
fn transcode(html: &str, byte_of: impl Fn(u32) -> Option<u8>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(html.len());
    for character in html.chars() {
        let code = u32::from(character);
        match u8::try_from(code).ok().filter(u8::is_ascii).or_else(|| byte_of(code)) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(format!("&#{code};").into_bytes()),
        }
    }
    bytes
}

/// Returns the bytes of the page, in its character encoding.
pub(super) fn write(site: &DemoSite, address: &Address, page: &Page, html: &Html) -> Vec<u8> {
    let title = escaped(&page.title);
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n{}<title>{title}</title>\n<style>{STYLE}</style>\n{}</head>\n",
        html.charset.meta(),
        head(site, address, page, html)
    );
    if page.links.iter().any(|link| link.element == Element::Frame) {
        text += &format!(
            "<frameset cols=\"*\">\n{}</frameset>\n</html>\n",
            links(site, address, page)
        );
    } else {
        text += &format!(
            "<body>\n<nav><a href=\"{}\">Demo</a> &rsaquo; {title}</nav>\n<main>\n<h1>{title}</h1>\n{}<ul>\n{}</ul>\n\
             </main>\n<footer>Made for crawlers. <a href=\"mailto:nobody@demo.localhost\">Write to nobody</a>\n\
             <a href=\"javascript:history.back()\">Back</a></footer>\n</body>\n</html>\n",
            site.url(&home()),
            prose(&address.path, html.paragraphs),
            links(site, address, page)
        );
    }
    html.charset.encode(text)
}

fn head(site: &DemoSite, address: &Address, page: &Page, html: &Html) -> String {
    let mut head = String::new();
    if let Some(base) = html.base {
        let _ = writeln!(head, "<base href=\"{base}\">");
    }
    if html.nofollow {
        head += "<meta name=\"robots\" content=\"nofollow\">\n";
    }
    for link in &page.links {
        let href = href(site, address, link);
        let _ = match link.element {
            Element::Next => writeln!(head, "<link rel=\"next\" href=\"{href}\">"),
            Element::Refresh => writeln!(head, "<meta http-equiv=\"refresh\" content=\"0; url={href}\">"),
            _ => Ok(()),
        };
    }
    head
}

fn links(site: &DemoSite, address: &Address, page: &Page) -> String {
    let mut list = String::new();
    for link in &page.links {
        let href = href(site, address, link);
        let label = site
            .page(&link.to)
            .map_or_else(|| link.to.path.clone(), |target| target.title.clone());
        let label = escaped(&label);
        let _ = match link.element {
            Element::Anchor => writeln!(list, "<li><a href=\"{href}\">{label}</a></li>"),
            Element::Unquoted => writeln!(list, "<li><A HREF={href}>{label}</A></li>"),
            Element::Area => writeln!(
                list,
                "<li><map name=\"map\"><area href=\"{href}\" alt=\"{label}\"></map></li>"
            ),
            Element::Iframe => writeln!(list, "<li><iframe src=\"{href}\" title=\"{label}\"></iframe></li>"),
            Element::Frame => writeln!(list, "<frame src=\"{href}\">"),
            Element::Nofollow => writeln!(
                list,
                "<li><a rel=\"external NoFollow\" href=\"{href}\">{label}</a></li>"
            ),
            Element::Comment => writeln!(list, "<!-- <li><a href=\"{href}\">{label}</a></li> -->"),
            Element::Script => writeln!(list, "<script>const row = '<a href=\"{href}\">{label}</a>';</script>"),
            Element::Template => {
                writeln!(list, "<template><a href=\"{href}\">{label}</a></template>")
            }
            Element::Textarea => writeln!(list, "<li><textarea><a href=\"{href}\">{label}</a></textarea></li>"),
            Element::Next | Element::Refresh | Element::Location => Ok(()),
        };
    }
    list
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
