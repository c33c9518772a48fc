//! From text to tags: the tokenizer of the HTML standard (13.2.5), in one pass and without copying.
//!
//! It emits what a [`Sink`] needs to find links: tags with the few attributes that are read, and raw text. It skips
//! comments, doctypes and parse errors. Names, values and text are slices of the input. The reader folds case and
//! decodes character references and newlines ([`Name`], [`decoded`](super::references::decoded)).
//!
//! Time is linear in the input and memory is constant, whatever the input. No attribute is compared with those before it. A byte is looked
//! at a fixed number of times at most: bytes near to a place are loaded together, and the attributes of a tag may be read a second time.
//!
//! `scan.rs` and `meta_charset.rs` have the sinks, and which element has which [`TextMode`].

mod inside_tag;
mod raw_text;

use memchr::memchr;

use super::eight::first_of;
use super::tag::{Attributes, Name, Tag};

/// How the text after a start tag is tokenized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextMode {
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
    fn text(&mut self, _text: &'a [u8]) {}

    /// Receives the text of an element whose start tag returned anything but [`TextMode::Data`].
    fn raw_text(&mut self, _text: &'a str) {}

    /// Receives a start tag, and returns how the text after it must be tokenized.
    fn start_tag(&mut self, tag: &Tag<'_, 'a>) -> TextMode;

    /// Receives an end tag, except one that ends text begun by [`TextMode`].
    fn end_tag(&mut self, name: &Name<'a>);

    /// Whether the attributes of a start tag with this name are read.
    fn reads_attributes_of(name: &Name<'_>) -> bool;

    /// Whether the current node is an SVG or MathML element, where `<![CDATA[` has a meaning.
    fn is_in_foreign_content(&self) -> bool {
        false
    }
}

/// Sends the tokens of a document to a sink.
pub(super) fn tokenize<'a, S: Sink<'a>>(html: &'a str, sink: &mut S) {
    tokenize_while(html, sink, |_, _| true);
}

/// Sends tokens to a sink as long as the condition holds, which gets the place where the last token begins.
pub(super) fn tokenize_while<'a, S: Sink<'a>>(html: &'a str, sink: &mut S, goes_on: impl Fn(&mut S, usize) -> bool) {
    let mut tokenizer = Tokenizer { html, at: 0, opened: 0 };
    while tokenizer.step(sink) && goes_on(sink, tokenizer.opened) {}
}

/// For the limit of `document.rs`. 0 if it begins with no tag.
pub(super) fn attribute_count(html: &str) -> usize {
    let after = html
        .strip_prefix("</")
        .or_else(|| html.strip_prefix('<'))
        .unwrap_or_default();
    let mut count = 0;
    if after.starts_with(|first: char| first.is_ascii_alphabetic()) {
        let mut tokenizer = Tokenizer {
            html: after,
            at: 0,
            opened: 0,
        };
        tokenizer.read_name();
        tokenizer.read_attributes(&mut |_, _| count += 1);
    }
    count
}

/// How often eight bytes are searched before a search of any length begins, which takes longer to start.
const NEAR_EIGHTS: usize = 4;

struct Tokenizer<'a> {
    html: &'a str,
    at: usize,
    /// Where the last tag, comment or declaration begins.
    opened: usize,
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

    /// Finds the first of these bytes, which is mostly near.
    #[inline]
    fn find_near<const COUNT: usize>(&self, bytes: [u8; COUNT], from: usize) -> Option<usize> {
        let mut from = from;
        for _ in 0..NEAR_EIGHTS {
            let Some(eight) = self.eight_from(from) else { break };
            if let Some(place) = first_of(eight, bytes) {
                return Some(from + place);
            }
            from += 8;
        }
        let rest = self.bytes().get(from..)?;
        let place = match bytes[..] {
            [byte] => memchr(byte, rest),
            _ => rest.iter().position(|byte| bytes.contains(byte)),
        };
        Some(from + place?)
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
        while let Some(open) = self.find_near([b'<'], from) {
            let next = self.byte(open + 1);
            let is_markup = match next {
                Some(b'/') => self.byte(open + 2).is_some(),
                Some(byte) => byte.is_ascii_alphabetic() || matches!(byte, b'!' | b'?'),
                None => false,
            };
            if is_markup {
                sink.text(&self.bytes()[start..open]);
                (self.opened, self.at) = (open, open + 1);
                self.read_markup(next, sink);
                return true;
            }
            from = open + 1;
        }
        sink.text(&self.bytes()[start..]);
        false
    }

    /// Reads the construct that a `<` opens (13.2.5.6, "tag open state").
    fn read_markup<S: Sink<'a>>(&mut self, opened_by: Option<u8>, sink: &mut S) {
        match opened_by {
            Some(b'/') => {
                self.at += 1;
                match self.byte(self.at) {
                    Some(byte) if byte.is_ascii_alphabetic() => self.read_end_tag(sink),
                    _ => self.skip_past_end(),
                }
            }
            Some(b'!') => self.read_declaration(sink),
            Some(b'?') => self.skip_past_end(),
            _ => self.read_start_tag(sink),
        }
    }

    /// Skips a comment or a doctype, or reads a CDATA section (13.2.5.42, "markup declaration open state"). Only comments and,
    /// in foreign content, CDATA can contain a `>` that does not end them.
    fn read_declaration<S: Sink<'a>>(&mut self, sink: &mut S) {
        let content = self.at + 1;
        let rest = self.bytes().get(content..).unwrap_or_default();
        if rest.starts_with(b"--") {
            self.skip_comment(content + 2);
        } else if rest.starts_with(b"[CDATA[") && sink.is_in_foreign_content() {
            let start = content + "[CDATA[".len();
            let end = self.html.get(start..).and_then(|rest| rest.find("]]>"));
            let (end, after) = end.map_or((self.html.len(), self.html.len()), |end| (start + end, start + end + 3));
            sink.text(&self.bytes()[start..end]);
            self.at = after;
        } else {
            self.skip_past_end();
        }
    }

    /// Skips a comment whose content starts here (13.2.5.43 to 13.2.5.52).
    ///
    /// It ends with `-->`, whose dashes may be those that open the comment (`<!-->`, `<!--->`), or with `--!>`, whose
    /// dashes may not.
    fn skip_comment(&mut self, content: usize) {
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

    fn skip_past_end(&mut self) {
        self.at = self.find(b'>', self.at).map_or(self.html.len(), |found| found + 1);
    }

    fn read_start_tag<S: Sink<'a>>(&mut self, sink: &mut S) {
        let name = self.read_name();
        let mut attributes;
        let (end, attributes) = if S::reads_attributes_of(&name) {
            attributes = Attributes::default();
            (
                self.read_attributes(&mut |name, value| attributes.keep(name, value)),
                &attributes,
            )
        } else {
            (self.skip_attributes(), &Attributes::NONE)
        };
        let Some(self_closing) = end else { return };
        let tag = Tag {
            name,
            self_closing,
            attributes,
        };
        match sink.start_tag(&tag) {
            TextMode::Data => {}
            mode => self.read_raw_text(mode, &tag.name, sink),
        }
    }

    fn read_end_tag<S: Sink<'a>>(&mut self, sink: &mut S) {
        let name = self.read_name();
        if self.byte(self.at) == Some(b'>') {
            self.at += 1;
            sink.end_tag(&name);
        } else if self.skip_attributes().is_some() {
            sink.end_tag(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use html5ever::tendril::StrTendril;
    use html5ever::tokenizer::states::RawKind;
    use html5ever::tokenizer::{self, BufferQueue, TagKind, Token, TokenSink, TokenSinkResult};
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::super::scan::text_mode_after;
    use super::super::tag::Attribute;
    use super::*;

    /// A tag: its name, and whether it closes itself and its link if it is a start tag.
    type Seen = (String, Option<(bool, Option<String>)>);

    #[derive(Default)]
    struct Ours(Vec<Seen>);

    impl<'a> Sink<'a> for Ours {
        fn start_tag(&mut self, tag: &Tag<'_, 'a>) -> TextMode {
            let href = tag.attributes.value(Attribute::Href).map(|href| href.into_owned());
            self.0.push((lower(tag.name.as_str()), Some((tag.self_closing, href))));
            text_mode_after(&tag.name)
        }

        fn end_tag(&mut self, name: &Name<'a>) {
            self.0.push((lower(name.as_str()), None));
        }

        fn reads_attributes_of(name: &Name<'_>) -> bool {
            !name.is("p")
        }
    }

    fn lower(name: &str) -> String {
        name.to_ascii_lowercase()
    }

    #[derive(Default)]
    struct Theirs(RefCell<Vec<Seen>>);

    impl TokenSink for Theirs {
        type Handle = ();

        fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
            let Token::TagToken(tag) = token else {
                return TokenSinkResult::Continue;
            };
            let name = tag.name.to_string();
            let is_start = tag.kind == TagKind::StartTag;
            let read = is_start && name != "p";
            let href = tag
                .attrs
                .iter()
                .find(|attribute| read && &*attribute.name.local == "href");
            let href = href.map(|attribute| attribute.value.to_string());
            let next = match &*name {
                _ if !is_start => TokenSinkResult::Continue,
                "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
                "style" | "xmp" => TokenSinkResult::RawData(RawKind::Rawtext),
                "script" => TokenSinkResult::RawData(RawKind::ScriptData),
                "plaintext" => TokenSinkResult::Plaintext,
                _ => TokenSinkResult::Continue,
            };
            // Ours sends no end tag of raw text.
            let mut seen = self.0.borrow_mut();
            let ends_raw = !is_start
                && seen
                    .last()
                    .is_some_and(|(last, start)| start.is_some() && *last == name && RAW.contains(&&**last));
            if !ends_raw {
                seen.push((name, is_start.then_some((tag.self_closing, href))));
            } else if let Some((last, _)) = seen.last_mut() {
                last.push_str(" and its end");
            }
            next
        }
    }

    const RAW: [&str; 5] = ["title", "textarea", "style", "xmp", "script"];

    proptest! {
        #[test]
        fn tags_are_those_of_html5ever(pieces in proptest::collection::vec(select(PIECES.split('|').collect::<Vec<_>>()), 0..24)) {
            let html = pieces.concat();
            let mut ours = Ours::default();
            tokenize(&html, &mut ours);
            let theirs = tokenizer::Tokenizer::new(Theirs::default(), tokenizer::TokenizerOpts::default());
            let input = BufferQueue::default();
            input.push_back(StrTendril::from(&*html));
            while !matches!(theirs.feed(&input), html5ever::TokenizerResult::Done) {}
            theirs.end();
            let mut theirs = theirs.sink.0.into_inner();
            theirs.iter_mut().for_each(|(name, _)| *name = name.replace(" and its end", ""));
            prop_assert_eq!(ours.0, theirs);
        }
    }

    /// Separated by bars.
    const PIECES: &str = "<|>|/|=|\"|'| |\t|\n|a|b|href|é|-|!|?|&amp;|&|<a |<p |</a|</p>|href=|href=\"|href='|x=\"v\"|x='>'|y= |\
        <!--|-->|--!>|<!|</|<title>|</title>|<script>|</script>|<style |</style x>|<plaintext>|<xmp>|</xmp/|<textarea>|</textarea|\
        <b|<verylongname|data-of-several-words|text of more than eight bytes";
}
