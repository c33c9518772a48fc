//! The visible text of a page, in runs between tags: for whom a pass of its own over the markup would be too slow.

use super::construction::{self, Construction};
use super::tag::{Name, Tag, code};
use super::tokens::{self, Next, Sink, TextRun};

/// Receives the visible text of a page, in order and as written. The default has read nothing.
///
/// Visible is what a browser without scripts and style sheets shows, and the title: no scripts, style sheets and comments, no content
/// of `iframe`, `noembed` and `noframes`. The content of templates counts.
pub(crate) trait ReadText: Default {
    /// Receives text without a tag or comment inside.
    fn read(&mut self, text: &TextRun<'_>);
}

/// Reads nothing.
#[derive(Debug, Default)]
pub(super) struct Unread;

impl ReadText for Unread {
    #[inline]
    fn read(&mut self, _: &TextRun<'_>) {}
}

/// Passes on the text that is visible.
#[derive(Debug)]
pub(super) struct VisibleText<'r, R> {
    reader: &'r mut R,
    /// What the last start tag says of the text behind it.
    is_hidden: bool,
}

impl<'r, R: ReadText> VisibleText<'r, R> {
    pub(super) fn new(reader: &'r mut R) -> Self {
        Self {
            reader,
            is_hidden: false,
        }
    }

    #[inline]
    pub(super) fn start_tag(&mut self, name: &Name<'_>) {
        self.is_hidden = matches!(name.code(), SCRIPT | STYLE | IFRAME | NOEMBED | NOFRAMES);
    }

    #[inline]
    pub(super) fn end_tag(&mut self) {
        self.is_hidden = false;
    }

    #[inline]
    pub(super) fn text(&mut self, text: &TextRun<'_>) {
        if !self.is_hidden {
            self.reader.read(text);
        }
    }

    /// Receives the text of an element whose end tag is not received.
    pub(super) fn raw_text(&mut self, text: &TextRun<'_>) {
        self.text(text);
        self.end_tag();
    }

    /// Forgets what was read.
    pub(super) fn start_again(&mut self) {
        *self.reader = R::default();
        self.is_hidden = false;
    }
}

/// Passes on the visible text of a page, and reads nothing else. Time is linear in the length, and memory is constant.
pub(crate) fn read_text(html: &str, reader: &mut impl ReadText) {
    let mut sink = TextOnly {
        visible: VisibleText::new(reader),
        construction: Some(Construction::default()),
    };
    match tokens::tokenize(html, &mut sink) {
        Ok(()) => {}
        Err(never) => match never {},
    }
}

/// Receives the tokens of a document, and reads the text.
struct TextOnly<'r, R> {
    visible: VisibleText<'r, R>,
    /// Until something needs a tree. From then on, all elements are taken for HTML.
    construction: Option<Construction>,
}

impl<'a, R: ReadText> Sink<'a> for TextOnly<'_, R> {
    type Error = std::convert::Infallible;

    fn text(&mut self, text: TextRun<'a>) {
        self.visible.text(&text);
    }

    fn raw_text(&mut self, text: TextRun<'a>) {
        self.visible.raw_text(&text);
    }

    fn start_tag(&mut self, tag: &Tag<'_, 'a>) -> Result<Next, Self::Error> {
        self.visible.start_tag(&tag.name);
        let next = match &mut self.construction {
            Some(construction) => construction.start_tag(tag).map(|(_, next)| next).ok(),
            None => None,
        };
        Ok(next.unwrap_or_else(|| {
            self.construction = None;
            construction::text_after(&tag.name)
        }))
    }

    fn end_tag(&mut self, name: &Name<'a>) -> Result<(), Self::Error> {
        self.visible.end_tag();
        if let Some(construction) = &mut self.construction
            && construction.end_tag(name).is_err()
        {
            self.construction = None;
        }
        Ok(())
    }

    fn reads_attributes_of(_: &Name<'_>) -> bool {
        false
    }

    fn is_in_foreign_content(&self) -> bool {
        self.construction
            .as_ref()
            .is_some_and(Construction::is_in_foreign_content)
    }
}

const IFRAME: u64 = code(b"iframe");
const NOEMBED: u64 = code(b"noembed");
const NOFRAMES: u64 = code(b"noframes");
const SCRIPT: u64 = code(b"script");
const STYLE: u64 = code(b"style");

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;
    use proptest::prelude::*;
    use url::Url;

    use super::super::{LinkOptions, extract_new_and_text};
    use super::*;

    /// Keeps the runs of text that are not blank.
    #[derive(Debug, Default, PartialEq)]
    struct Kept(Vec<String>);

    impl ReadText for Kept {
        fn read(&mut self, text: &TextRun<'_>) {
            let text = text.as_str().trim();
            if !text.is_empty() {
                self.0.push(text.to_owned());
            }
        }
    }

    #[track_caller]
    fn assert_text(html: &str, expected: &[&str]) {
        let mut kept = Kept::default();
        read_text(html, &mut kept);
        assert_eq!(kept.0, expected, "{html}");
    }

    #[test]
    fn visible_is_what_a_browser_shows_and_the_title() {
        assert_text(
            "<title>a &amp; b</title><p>c<b>d</b> 1 < 2",
            &["a &amp; b", "c", "d", "1 < 2"],
        );
        assert_text("a<!-- b > c -->d<?e?>f<!g>h", &["a", "d", "f", "h"]);
        assert_text(
            "a<script>if (b</c>) '<p>d'</script>e<style>f > g</style>h",
            &["a", "e", "h"],
        );
        assert_text(
            "a<svg><style>b</style><text>c</text><script>d</script>e</svg>f",
            &["a", "c", "e", "f"],
        );
        assert_text(
            "a<iframe><p>b</iframe>c<noembed>d</noembed>e<noscript>f</noscript>",
            &["a", "c", "e", "f"],
        );
        assert_text(
            "<textarea><p>a</textarea><xmp><b></xmp><plaintext>c</plaintext>",
            &["<p>a", "<b>", "c</plaintext>"],
        );
        assert_text("<p title='a > b'>c</p title='d > e'>f", &["c", "f"]);
        assert_text("<svg><![CDATA[a > <b>]]></svg><![CDATA[c > d", &["a > <b>", "d"]);
        assert_text("a<script>never closed", &["a"]);
    }

    proptest! {
        #[test]
        fn the_text_read_with_the_links_is_the_same(pieces in proptest::collection::vec(0..PIECES.len(), 0..20)) {
            let html: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
            let mut alone = Kept::default();
            read_text(&html, &mut alone);
            let url = Url::parse("http://a.example/").unwrap();
            for assets in [false, true] {
                let options = LinkOptions { assets, ..LinkOptions::default() };
                let mut with_links = Kept::default();
                extract_new_and_text(&html, UTF_8, &url, &options, None, &mut with_links);
                prop_assert_eq!(&with_links, &alone);
            }
        }
    }

    const PIECES: &[&str] = &[
        "one ",
        "2",
        " < ",
        "<p>",
        "</p>",
        "<a href=/x>x</a>",
        "<a href=y>",
        "<base href=/z/>",
        "<title>t</title>",
        "<script>s",
        "</script>",
        "<style>c",
        "</style>",
        "<svg>",
        "</svg>",
        "<table>",
        "<tr><td>",
        "</table>",
        "<template>",
        "</template>",
        "<!-- n -->",
        "<![CDATA[d]]>",
        "<iframe src=i>f</iframe>",
        "<frameset>",
        "<math><mi>",
        "<object>",
        "<b title='>'>",
        "<title",
    ];
}
