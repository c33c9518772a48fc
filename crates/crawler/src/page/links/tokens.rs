//! From text to tags: the tokenizer of the HTML standard (13.2.5), in one pass and without copying.
//!
//! It emits what a [`Sink`] needs to find links: tags with the few attributes that are read, and raw text. It skips
//! comments, doctypes and parse errors. Names, values and text are slices of the input. The reader folds case and
//! decodes character references and newlines ([`Name`], [`decoded`](super::references::decoded)).
//!
//! Time is linear in the input and memory is constant, whatever the input. No attribute is compared with those before it. A byte is looked
//! at a fixed number of times at most: bytes near to a place are loaded together, and the attributes of a tag may be read a second time.

mod raw_text;

use std::ops::Range;

use memchr::memchr;

use super::tag::{Attributes, Name, Tag};
use crate::page::bytes::{Sixteen, first_in};

/// A part of the markup that is text. What follows it is no letter and no digit, or the end.
#[derive(Debug, Clone)]
pub(crate) struct TextRun<'a> {
    html: &'a str,
    range: Range<usize>,
}

impl<'a> TextRun<'a> {
    #[inline]
    fn new(html: &'a str, range: Range<usize>) -> Self {
        Self { html, range }
    }

    pub(crate) fn as_str(&self) -> &'a str {
        self.html.get(self.range.clone()).unwrap_or_default()
    }

    /// Returns the whole markup, for readers that look at several bytes at once.
    pub(crate) fn markup(&self) -> &'a [u8] {
        self.html.as_bytes()
    }

    /// Returns where in the markup the text is.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }
}

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
    /// Why the document is abandoned.
    type Error;

    /// Receives text between two tags, as written. Comments split it.
    fn text(&mut self, text: TextRun<'a>);

    /// Receives the text of an element whose start tag returned anything but [`Next::Data`].
    fn raw_text(&mut self, text: TextRun<'a>);

    /// Receives a start tag, and returns how the text after it must be tokenized.
    fn start_tag(&mut self, tag: &Tag<'_, 'a>) -> Result<Next, Self::Error>;

    /// Receives an end tag, except one that ends text begun by [`Next`].
    fn end_tag(&mut self, name: &Name<'a>) -> Result<(), Self::Error>;

    /// Returns whether the attributes of a start tag with this name are read.
    fn reads_attributes_of(name: &Name<'_>) -> bool;

    /// Returns whether the current node is an SVG or MathML element, where `<![CDATA[` has a meaning.
    fn is_in_foreign_content(&self) -> bool;
}

/// Sends the tokens of a document to a sink, until the end or the first error.
pub(super) fn tokenize<'a, S: Sink<'a>>(html: &'a str, sink: &mut S) -> Result<(), S::Error> {
    let mut tokenizer = Tokenizer { html, at: 0 };
    while tokenizer.step(sink)? {}
    Ok(())
}

/// How a tag ends. If the input ends inside a tag, there is none, and the tag is ignored.
struct TagEnd {
    self_closing: bool,
}

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

    fn run(&self, from: usize, until: usize) -> TextRun<'a> {
        TextRun::new(self.html, from..until)
    }

    fn find(&self, byte: u8, from: usize) -> Option<usize> {
        let rest = self.bytes().get(from..)?;
        memchr(byte, rest).map(|found| from + found)
    }

    /// Finds a byte that is mostly near.
    #[inline]
    fn find_near(&self, byte: u8, from: usize) -> Option<usize> {
        let Some(near) = self.bytes().get(from..)?.first_chunk() else {
            return self.find(byte, from);
        };
        match first_in(near, byte) {
            Some(place) => Some(from + place),
            None => self.find(byte, from + near.len()),
        }
    }

    /// Returns sixteen bytes, unless the input ends before.
    #[inline]
    fn sixteen_from(&self, at: usize) -> Option<Sixteen> {
        self.bytes().get(at..)?.first_chunk().map(Sixteen::of)
    }

    /// Emits the text up to the next tag, and that tag; false at the end.
    fn step<S: Sink<'a>>(&mut self, sink: &mut S) -> Result<bool, S::Error> {
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
                sink.text(self.run(start, open));
                self.at = open + 1;
                return self.markup(next, sink).map(|()| true);
            }
            from = open + 1;
        }
        sink.text(self.run(start, self.html.len()));
        Ok(false)
    }

    /// Reads the construct that a `<` opens (13.2.5.6, "tag open state").
    fn markup<S: Sink<'a>>(&mut self, opened_by: Option<u8>, sink: &mut S) -> Result<(), S::Error> {
        match opened_by {
            Some(b'/') => {
                self.at += 1;
                match self.byte(self.at) {
                    Some(byte) if byte.is_ascii_alphabetic() => self.end_tag(sink),
                    _ => {
                        self.skip_past(b'>');
                        Ok(())
                    }
                }
            }
            Some(b'!') => {
                self.declaration(sink);
                Ok(())
            }
            Some(b'?') => {
                self.skip_past(b'>');
                Ok(())
            }
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
            sink.text(self.run(start, end));
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

    fn start_tag<S: Sink<'a>>(&mut self, sink: &mut S) -> Result<(), S::Error> {
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
            return Ok(());
        };
        let tag = Tag {
            name,
            self_closing,
            attributes,
        };
        match sink.start_tag(&tag)? {
            Next::Data => {}
            next => self.raw_text(next, &tag.name, sink),
        }
        Ok(())
    }

    fn end_tag<S: Sink<'a>>(&mut self, sink: &mut S) -> Result<(), S::Error> {
        let name = self.tag_name();
        if self.byte(self.at) == Some(b'>') {
            self.at += 1;
            return sink.end_tag(&name);
        }
        match self.rest_of_tag() {
            Some(_) => sink.end_tag(&name),
            None => Ok(()),
        }
    }

    /// Reads the name of a tag (13.2.5.8).
    #[inline]
    fn tag_name(&mut self) -> Name<'a> {
        let start = self.at;
        self.at = self
            .end_in_sixteen(start, [b'>', b'/'], ENDS_TAG_NAME)
            .unwrap_or_else(|| {
                let rest = self.bytes().get(start..).unwrap_or_default();
                let length = rest.iter().position(|byte| is(*byte, ENDS_TAG_NAME));
                start + length.unwrap_or(rest.len())
            });
        Name::at(self.html, start..self.at)
    }

    /// Returns the place of the first byte of a class that has white space and these bytes, if it is among the next sixteen, and no other
    /// byte below the space is before it.
    #[inline]
    fn end_in_sixteen<const COUNT: usize>(&self, from: usize, bytes: [u8; COUNT], class: u8) -> Option<usize> {
        let end = from + self.sixteen_from(from)?.first_of_or_space(bytes)?;
        self.byte(end).is_some_and(|byte| is(byte, class)).then_some(end)
    }

    /// Skips the rest of a tag after its name, with attributes that are not read, including its `>`.
    ///
    /// A `>` ends the tag, unless a value in quotes has it. Only values in their usual form are read here: a name, `=` and a quote, with
    /// nothing between them. From anything else with a `=` on, [`attributes`](Self::attributes) reads the tag.
    #[inline]
    fn rest_of_tag(&mut self) -> Option<TagEnd> {
        let mut from = self.at;
        while let Some(place) = self.sixteen_from(from).map(|near| near.first_of([b'>', b'='])) {
            let Some(place) = place else {
                from += 16;
                continue;
            };
            let found = from + place;
            let before = self.byte(found.saturating_sub(1)).unwrap_or(b' ');
            if self.byte(found) == Some(b'>') {
                self.at = found + 1;
                return Some(TagEnd {
                    self_closing: before == b'/',
                });
            }
            let Some(quote @ (b'"' | b'\'')) = self.byte(found + 1) else {
                break;
            };
            // A `=` may also begin a name, and opens no value then.
            if found == self.at || is(before, SPACE) || before == b'/' {
                break;
            }
            let Some(end) = self.find_near(quote, found + 2) else {
                break;
            };
            self.at = end + 1;
            from = self.at;
        }
        self.attributes(&mut |_, _| {})
    }

    /// Reads the rest of a tag after its name (13.2.5.32 to 13.2.5.40), including its `>`.
    #[inline]
    fn attributes(&mut self, keep: &mut impl FnMut(&Name<'a>, &'a str)) -> Option<TagEnd> {
        let mut self_closing = false;
        let end = loop {
            match self.byte(self.at) {
                Some(b'>') => break Some(TagEnd { self_closing }),
                Some(b'/') => {
                    self.at += 1;
                    self_closing = self.byte(self.at) == Some(b'>');
                }
                Some(byte) if is(byte, SPACE) => self.at += 1,
                Some(_) => {
                    if self.attribute(keep).is_none() {
                        break None;
                    }
                }
                None => break None,
            }
        };
        self.at = if end.is_some() { self.at + 1 } else { self.html.len() };
        end
    }

    /// Reads an attribute; `None` if the input ends inside it.
    #[inline]
    fn attribute(&mut self, keep: &mut impl FnMut(&Name<'a>, &'a str)) -> Option<()> {
        let start = self.at;
        // Even a `=` belongs to the name if it is the first byte.
        let name_end = match self.end_in_sixteen(start + 1, [b'>', b'/', b'='], ENDS_ATTRIBUTE_NAME) {
            Some(end) => end,
            None => {
                let rest = self.bytes().get(start + 1..)?;
                start + 1 + rest.iter().position(|byte| is(*byte, ENDS_ATTRIBUTE_NAME))?
            }
        };
        self.at = name_end;
        let value = if self.skip_space()? == b'=' {
            self.at += 1;
            self.value()?
        } else {
            ""
        };
        keep(&Name::at(self.html, start..name_end), value);
        Some(())
    }

    /// Reads the value after a `=`.
    #[inline]
    fn value(&mut self) -> Option<&'a str> {
        match self.skip_space()? {
            quote @ (b'"' | b'\'') => {
                let start = self.at + 1;
                let end = self.find_near(quote, start)?;
                self.at = end + 1;
                Some(self.slice(start, end))
            }
            _ => {
                let start = self.at;
                let rest = self.bytes().get(start..)?;
                let length = rest.iter().position(|byte| is(*byte, ENDS_VALUE))?;
                self.at = start + length;
                Some(self.slice(start, self.at))
            }
        }
    }

    /// Skips white space. Returns the byte after it, if there is one.
    #[inline]
    fn skip_space(&mut self) -> Option<u8> {
        loop {
            let byte = self.byte(self.at)?;
            if !is(byte, SPACE) {
                return Some(byte);
            }
            self.at += 1;
        }
    }
}

/// White space within tags.
const SPACE: u8 = 1;
/// Ends the name of a tag.
const ENDS_TAG_NAME: u8 = 2;
/// Ends the name of an attribute, except as its first byte.
const ENDS_ATTRIBUTE_NAME: u8 = 4;
/// Ends a value without quotes.
const ENDS_VALUE: u8 = 8;

/// The classes of each byte inside a tag: one look-up instead of up to eight comparisons.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < 256 {
        classes[at] = match at as u8 {
            byte if byte.is_ascii_whitespace() => SPACE | ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME | ENDS_VALUE,
            b'>' => ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME | ENDS_VALUE,
            b'/' => ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME,
            b'=' => ENDS_ATTRIBUTE_NAME,
            _ => 0,
        };
        at += 1;
    }
    classes
};

#[inline]
fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Where a tag ends, whether it closes itself, and the names and values of its attributes.
    type Ended<'a> = (usize, Option<bool>, Vec<(&'a str, &'a str)>);

    fn ended<'a>(html: &'a str, read: impl FnOnce(&mut Tokenizer<'a>) -> Option<TagEnd>) -> (usize, Option<bool>) {
        let mut tokenizer = Tokenizer { html, at: 0 };
        let end = read(&mut tokenizer);
        (tokenizer.at, end.map(|end| end.self_closing))
    }

    /// Reads a tag after its name byte after byte, as the standard says (13.2.5.32 to 13.2.5.40).
    fn one_by_one(html: &str) -> Ended<'_> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            BeforeName,
            Name,
            AfterName,
            BeforeValue,
            Quoted(u8),
            Unquoted,
            Slash,
        }
        let mut state = State::BeforeName;
        let mut found: Vec<(Range<usize>, Range<usize>)> = Vec::new();
        for (at, byte) in html.bytes().enumerate() {
            let is_space = matches!(byte, b'\t' | b'\n' | b'\x0C' | b'\r' | b' ');
            let is_self_closing = state == State::Slash;
            if byte == b'>' && !matches!(state, State::Quoted(_)) {
                let text = |range: &Range<usize>| &html[range.clone()];
                let attributes = found.iter().map(|(name, value)| (text(name), text(value))).collect();
                return (at + 1, Some(is_self_closing), attributes);
            }
            if state == State::Slash {
                state = State::BeforeName;
            }
            state = match (state, byte) {
                (State::Quoted(quote), _) if byte == quote => State::BeforeName,
                (State::Quoted(_), _) => {
                    found.last_mut().unwrap().1.end = at + 1;
                    state
                }
                (State::Unquoted, _) if !is_space => {
                    found.last_mut().unwrap().1.end = at + 1;
                    state
                }
                (State::Unquoted, _) => State::BeforeName,
                (State::BeforeValue, _) if is_space => state,
                (State::BeforeValue, b'"' | b'\'') => {
                    found.last_mut().unwrap().1 = at + 1..at + 1;
                    State::Quoted(byte)
                }
                (State::BeforeValue, _) => {
                    found.last_mut().unwrap().1 = at..at + 1;
                    State::Unquoted
                }
                (State::BeforeName, _) if is_space => state,
                (State::Name | State::AfterName, _) if is_space => State::AfterName,
                (_, b'/') => State::Slash,
                (State::Name | State::AfterName, b'=') => State::BeforeValue,
                (State::Name, _) => {
                    found.last_mut().unwrap().0.end = at + 1;
                    state
                }
                _ => {
                    found.push((at..at + 1, at..at));
                    State::Name
                }
            };
        }
        (html.len(), None, Vec::new())
    }

    proptest! {
        #[test]
        fn a_tag_ends_where_the_standard_says(
            pieces in proptest::collection::vec(select(PIECES), 0..12),
            first in select(&[" ", "\n", "/"][..]),
            rest in select(&["", ">", "> and text, in which a = \"b\" and '>' follow", "'\">"][..]),
        ) {
            // What precedes is the name of a tag, so one of these bytes comes first.
            let html = first.to_owned() + &pieces.concat() + rest;
            let (at, self_closing, expected) = one_by_one(&html);
            prop_assert_eq!(ended(&html, Tokenizer::rest_of_tag), (at, self_closing));
            let mut found = Vec::new();
            let read = ended(&html, |tokenizer| tokenizer.attributes(&mut |name, value| found.push((name.as_str(), value))));
            prop_assert_eq!(read, (at, self_closing));
            if self_closing.is_some() {
                prop_assert_eq!(found, expected);
            }
        }
    }

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

    const PIECES: &[&str] = &[
        " ",
        "\t",
        "\x0B",
        "/",
        "=",
        "\"",
        "'",
        ">",
        "a",
        "b",
        "href",
        "é",
        "=\"",
        "='",
        "=\"v\"",
        "='>'",
        "= ",
        "data-of-several-words",
        "\0",
        "<",
        "class=\"a name that is longer than sixteen bytes\"",
        "title='and one of more than thirty-two bytes, too > so'",
    ];
}
