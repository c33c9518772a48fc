//! A page of the demo, how it is written as HTML, and the hosts.

use encoding_rs::{Encoding, UTF_8};
use hyper::StatusCode;
use url::Url;

const STYLE: &str = "body{font:1rem/1.5 Georgia,serif;max-width:42rem;margin:2rem auto;padding:0 1rem;color:#222;\
    background:#fdfcf8}nav,footer{font:.85rem sans-serif;color:#777}a{color:#0b5d7a}h1{font-weight:400}";
const WORDS: [&str; 32] = [
    "the", "a", "page", "small", "garden", "reads", "slowly", "under", "every", "bright", "window", "writes", "letter",
    "over", "quiet", "river", "and", "turns", "with", "old", "machine", "keeps", "near", "green", "harbour", "some",
    "finds", "story", "before", "winter", "leaves", "again",
];
const WORDS_PER_PARAGRAPH: usize = 70;

/// The front pages of the hosts.
#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) www: Url,
    pub(super) docs: Url,
    pub(super) blog: Url,
    /// Served, but its robots.txt forbids everything.
    pub(super) private: Url,
}

/// A page.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) address: Url,
    /// What links are relative to.
    base: Url,
    title: String,
    pub(super) content: Content,
    /// The targets of the links that a polite crawler follows.
    pub(super) followed: Vec<Url>,
    /// What HTML has in its head besides the title, and in its list of links.
    pub(super) head: String,
    pub(super) body: String,
    pub(super) charset: &'static Encoding,
    pub(super) paragraphs: usize,
    /// Whether the robots.txt of its host forbids it.
    pub(super) is_forbidden: bool,
}

/// The content of an answer.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Html,
    /// Any other file: its type and its bytes.
    File(&'static str, Vec<u8>),
    /// A redirect, with its `Location`.
    Redirect(StatusCode, String),
}

/// Returns what a reference means on this URL. All references of the tables are valid.
pub(super) fn at(base: &Url, reference: &str) -> Url {
    let mut url = base.join(reference).unwrap_or_else(|_| base.clone());
    url.set_fragment(None);
    url
}

/// Returns a URL without its scheme: `//www.demo.localhost:8080/a`.
pub(super) fn without_scheme(url: &Url) -> &str {
    url.as_str().trim_start_matches("http:")
}

impl Page {
    pub(super) fn html(address: Url, title: impl Into<String>) -> Self {
        Self {
            base: address.clone(),
            address,
            title: title.into(),
            content: Content::Html,
            followed: Vec::new(),
            head: String::new(),
            body: String::new(),
            charset: UTF_8,
            paragraphs: 2,
            is_forbidden: false,
        }
    }

    pub(super) fn file(address: Url, content_type: &'static str, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            content: Content::File(content_type, bytes.into()),
            ..Self::html(address, "")
        }
    }

    pub(super) fn redirect(address: Url, status: StatusCode, location: &str) -> Self {
        Self {
            content: Content::Redirect(status, location.to_owned()),
            ..Self::html(address, "").follow(location)
        }
    }

    pub(super) fn based(mut self, base: &str) -> Self {
        self.head += &format!("<base href=\"{base}\">");
        self.base = at(&self.address, base);
        self
    }

    /// Says that a polite crawler goes there from here.
    pub(super) fn follow(mut self, target: &str) -> Self {
        self.followed.push(at(&self.base, target));
        self
    }

    pub(super) fn link(mut self, reference: &str) -> Self {
        let reference_in_html = escaped(reference);
        self.body += &format!("<li><a href=\"{reference_in_html}\">{reference_in_html}</a></li>\n");
        self.follow(reference)
    }

    pub(super) fn links<R: AsRef<str>>(self, references: impl IntoIterator<Item = R>) -> Self {
        let references = references.into_iter();
        references.fold(self, |page, reference| page.link(reference.as_ref()))
    }

    pub(super) fn forbidden(mut self) -> Self {
        self.is_forbidden = true;
        self
    }

    pub(super) fn segment_repeats(address: &Url) -> usize {
        let segments: Vec<&str> = address
            .path()
            .split('/')
            .filter(|segment| !segment.is_empty())
            .collect();
        let occurrences = |wanted: &&str| segments.iter().filter(|segment| *segment == wanted).count();
        segments.iter().map(occurrences).max().unwrap_or(0)
    }

    pub(super) fn html_type(&self) -> String {
        match self.head.contains("charset") {
            true => "text/html".to_owned(),
            false => format!("text/html; charset={}", self.charset.name()),
        }
    }

    pub(super) fn to_html(&self) -> Vec<u8> {
        let (title, head, body) = (escaped(&self.title), &self.head, &self.body);
        let mut text = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n{head}\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n"
        );
        if body.starts_with("<frameset") {
            text += body;
        } else {
            let prose = prose(self.address.path(), self.paragraphs);
            text += &format!(
                "<body>\n<nav><a href=\"/\">Home</a> &rsaquo; {title}</nav>\n<main>\n<h1>{title}</h1>\n{prose}<ul>\n{body}</ul>\n\
                 </main>\n<footer>Made for crawlers. <a href=\"mailto:nobody@demo.localhost\">Write to nobody</a>\n\
                 <a href=\"javascript:history.back()\">Back</a></footer>\n</body>\n"
            );
        }
        text += "</html>\n";
        self.charset.encode(&text).0.into_owned()
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
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
