//! From text to tags: the tokenizer of the HTML standard (13.2.5), in one pass and without copying.
//!
//! It emits what a [`Sink`] needs to find links: tags with the few attributes that are read, and raw text. It skips
//! comments, doctypes and parse errors. Names, values and text are slices of the input. The reader folds case and
//! decodes character references and newlines ([`Name`], [`decoded`](super::references::decoded)).
//!
//! Time is linear in the input and memory is constant, whatever the input. No attribute is compared with those before it. A byte is looked
//! at a fixed number of times at most: bytes near to a place are loaded together, and the attributes of a tag may be read a second time.

mod inside_tag;
mod raw_text;

use memchr::memchr;

use super::eight::first_of;
use super::tag::{Attributes, Name, Tag};
use inside_tag::TagEnd;

/// How the text after a start tag is tokenized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// As tags and text.
    Data,
    /// As text with character references, up to the end tag of the same name (`title`, `textarea`).
    Rcdata,
    /// As text, up to the end tag of the same name.
    Rawtext,
    /// As text, up to the end tag of the same name that is not inside a comment of the script.
    Script,
    /// As text, up to the end of the input.
    Plaintext,
}

/// The receiver of tokens. It corresponds to the standard's tree construction stage, which decides how text is
/// tokenized.
pub(super) trait Sink<'a> {
    /// Receives text between two tags, as written. Comments split it.
    fn text(&mut self, text: &'a str);

    /// Receives the text of an element whose start tag returned anything but [`Next::Data`].
    fn raw_text(&mut self, text: &'a str);

    /// Receives a start tag, and returns how the text after it must be tokenized.
    fn start_tag(&mut self, tag: &Tag<'_, 'a>) -> Next;

    /// Receives an end tag, except one that ends text begun by [`Next`].
    fn end_tag(&mut self, name: &Name<'a>);

    /// Returns whether the attributes of a start tag with this name are read.
    fn reads_attributes_of(name: &Name<'_>) -> bool;

    /// Returns whether the current node is an SVG or MathML element, where `<![CDATA[` has a meaning.
    fn is_in_foreign_content(&self) -> bool;
}

/// Sends the tokens of a document to a sink.
pub(super) fn tokenize<'a, S: Sink<'a>>(html: &'a str, sink: &mut S) {
    tokenize_while(html, sink, |_, _| true);
}

/// Sends tokens to a sink as long as the condition holds, which gets the place behind the last token.
pub(super) fn tokenize_while<'a, S: Sink<'a>>(html: &'a str, sink: &mut S, goes_on: impl Fn(&S, usize) -> bool) {
    let mut tokenizer = Tokenizer { html, at: 0 };
    while tokenizer.step(sink) && goes_on(sink, tokenizer.at) {}
}

/// How often eight bytes are searched before a search of any length begins, which takes longer to start.
const NEAR_EIGHTS: usize = 4;

struct Tokenizer<'a> {
    html: &'a str,
    at: usize,
}

impl<'a> Tokenizer<'a> {
    fn bytes(&self) -> &'a [u8] {
        self.html.as_bytes()
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes().get(at).copied()
    }

    fn slice(&self, from: usize, until: usize) -> &'a str {
        self.html.get(from..until).unwrap_or_default()
    }

    fn find(&self, byte: u8, from: usize) -> Option<usize> {
        let rest = self.bytes().get(from..)?;
        memchr(byte, rest).map(|found| from + found)
    }

    /// Finds a byte that is mostly near.
    #[inline]
    fn find_near(&self, byte: u8, from: usize) -> Option<usize> {
        let mut from = from;
        for _ in 0..NEAR_EIGHTS {
            let Some(eight) = self.eight_from(from) else { break };
            if let Some(place) = first_of(eight, [byte]) {
                return Some(from + place);
            }
            from += 8;
        }
        self.find(byte, from)
    }

    /// Returns eight bytes, unless the input ends before.
    #[inline]
    fn eight_from(&self, at: usize) -> Option<u64> {
        self.bytes()
            .get(at..)?
            .first_chunk()
            .map(|eight| u64::from_le_bytes(*eight))
    }

    /// Emits the text up to the next tag, and that tag; false at the end.
    fn step<S: Sink<'a>>(&mut self, sink: &mut S) -> bool {
        let start = self.at;
        let mut from = start;
        while let Some(open) = self.find_near(b'<', from) {
            let next = self.byte(open + 1);
            let is_markup = match next {
                Some(b'/') => self.byte(open + 2).is_some(),
                Some(byte) => byte.is_ascii_alphabetic() || matches!(byte, b'!' | b'?'),
                None => false,
            };
            if is_markup {
                sink.text(self.slice(start, open));
                self.at = open + 1;
                self.markup(next, sink);
                return true;
            }
            from = open + 1;
        }
        sink.text(self.slice(start, self.html.len()));
        false
    }

    /// Reads the construct that a `<` opens (13.2.5.6, "tag open state").
    fn markup<S: Sink<'a>>(&mut self, opened_by: Option<u8>, sink: &mut S) {
        match opened_by {
            Some(b'/') => {
                self.at += 1;
                match self.byte(self.at) {
                    Some(byte) if byte.is_ascii_alphabetic() => self.end_tag(sink),
                    _ => self.skip_past(b'>'),
                }
            }
            Some(b'!') => self.declaration(sink),
            Some(b'?') => self.skip_past(b'>'),
            _ => self.start_tag(sink),
        }
    }

    /// Skips a comment, a doctype or a CDATA section (13.2.5.42, "markup declaration open state"). Only comments and,
    /// in foreign content, CDATA can contain a `>` that does not end them.
    fn declaration<S: Sink<'a>>(&mut self, sink: &mut S) {
        let content = self.at + 1;
        let rest = self.bytes().get(content..).unwrap_or_default();
        if rest.starts_with(b"--") {
            self.comment(content + 2);
        } else if rest.starts_with(b"[CDATA[") && sink.is_in_foreign_content() {
            let start = content + "[CDATA[".len();
            let end = self.html.get(start..).and_then(|rest| rest.find("]]>"));
            let (end, after) = end.map_or((self.html.len(), self.html.len()), |end| (start + end, start + end + 3));
            sink.text(self.slice(start, end));
            self.at = after;
        } else {
            self.skip_past(b'>');
        }
    }

    /// Skips a comment whose content starts here (13.2.5.43 to 13.2.5.52).
    ///
    /// It ends with `-->`, whose dashes may be those that open the comment (`<!-->`, `<!--->`), or with `--!>`, whose
    /// dashes may not.
    fn comment(&mut self, content: usize) {
        let mut from = content;
        while let Some(close) = self.find(b'>', from) {
            let before = self.bytes().get(content - 2..close).unwrap_or_default();
            let own = before.get(2..).unwrap_or_default();
            if before.ends_with(b"--") || own.ends_with(b"--!") {
                self.at = close + 1;
                return;
            }
            from = close + 1;
        }
        self.at = self.html.len();
    }

    fn skip_past(&mut self, byte: u8) {
        self.at = self.find(byte, self.at).map_or(self.html.len(), |found| found + 1);
    }

    fn start_tag<S: Sink<'a>>(&mut self, sink: &mut S) {
        let name = self.tag_name();
        let mut attributes;
        let (end, attributes) = if S::reads_attributes_of(&name) {
            attributes = Attributes::default();
            (
                self.attributes(&mut |name, value| attributes.keep(name, value)),
                &attributes,
            )
        } else {
            (self.rest_of_tag(), &Attributes::NONE)
        };
        let Some(TagEnd { self_closing }) = end else {
            return;
        };
        let tag = Tag {
            name,
            self_closing,
            attributes,
        };
        match sink.start_tag(&tag) {
            Next::Data => {}
            next => self.raw_text(next, &tag.name, sink),
        }
    }

    fn end_tag<S: Sink<'a>>(&mut self, sink: &mut S) {
        let name = self.tag_name();
        if self.byte(self.at) == Some(b'>') {
            self.at += 1;
            sink.end_tag(&name);
        } else if self.rest_of_tag().is_some() {
            sink.end_tag(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_found_at_any_distance() {
        for (before, behind) in (0..70).flat_map(|before| [(before, 0), (before, 40)]) {
            let html = "x".repeat(before) + "<" + &"y".repeat(behind);
            let tokenizer = Tokenizer { html: &html, at: 0 };
            assert_eq!(tokenizer.find_near(b'<', 0), Some(before), "{before} and {behind}");
            assert_eq!(tokenizer.find_near(b'<', before + 1), None);
            assert_eq!(tokenizer.find_near(b'>', 0), None);
        }
    }
}
