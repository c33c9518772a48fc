//! Finds where raw text ends.

use memchr::{memchr, memchr2};

use super::super::tag::Name;
use super::inside_tag::{TAG_NAME_ENDS, is_space_or};
use super::{Sink, TextMode, Tokenizer};

impl<'a> Tokenizer<'a> {
    /// Emits the text after a start tag that switched the tokenizer, and skips the end tag.
    pub(super) fn read_raw_text<S: Sink<'a>>(&mut self, mode: TextMode, name: &Name<'a>, sink: &mut S) {
        let start = self.at;
        let rest = self.html.get(start..).unwrap_or_default().as_bytes();
        let end = match mode {
            TextMode::Plaintext | TextMode::Data => None,
            TextMode::Rcdata | TextMode::Rawtext => find_end_tag(rest, name.as_str()),
            TextMode::Script => find_end_of_script(rest),
        };
        let Some(end) = end else {
            self.at = self.html.len();
            sink.raw_text(self.slice(start, self.at));
            return;
        };
        sink.raw_text(self.slice(start, start + end));
        self.at = start + end + "</".len() + name.as_str().len();
        // The name is complete, so this is a tag. If the input ends inside it, nothing follows that could matter.
        self.skip_attributes();
    }
}

fn find_end_tag(text: &[u8], name: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let open = from + memchr(b'<', text.get(from..)?)?;
        if is_end_tag(text.get(open + 1..)?, name) {
            return Some(open);
        }
        from = open + 1;
    }
}

fn is_end_tag(text: &[u8], name: &str) -> bool {
    text.strip_prefix(b"/").is_some_and(|text| is_word(text, name))
}

fn is_word(text: &[u8], word: &str) -> bool {
    text.split_at_checked(word.len()).is_some_and(|(start, rest)| {
        start.eq_ignore_ascii_case(word.as_bytes())
            && rest.first().is_some_and(|byte| is_space_or(*byte, TAG_NAME_ENDS))
    })
}

/// How deep the position is in a script's own comment syntax, which once hid scripts from old browsers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    /// After `<!--`.
    Comment,
    /// After `<!--` and `<script`: the next end tag ends the inner script only.
    Script,
}

/// Returns where the end tag of a script begins (13.2.5.4 and 13.2.5.15 to 13.2.5.31).
fn find_end_of_script(text: &[u8]) -> Option<usize> {
    const SCRIPT: &str = "script";
    let mut escape = Escape::None;
    let mut from = 0;
    loop {
        let rest = text.get(from..)?;
        let mark = match escape {
            Escape::None => memchr(b'<', rest),
            Escape::Comment | Escape::Script => memchr2(b'<', b'-', rest),
        };
        let at = from + mark?;
        from = at + 1;
        if text.get(at) == Some(&b'-') {
            let dashes = text.get(at..)?.iter().position(|byte| *byte != b'-')?;
            if dashes >= 2 && text.get(at + dashes) == Some(&b'>') {
                escape = Escape::None;
            }
            from = at + dashes;
            continue;
        }
        let after = text.get(from..)?;
        match escape {
            Escape::None | Escape::Comment if is_end_tag(after, SCRIPT) => return Some(at),
            Escape::None if after.starts_with(b"!--") => {
                escape = Escape::Comment;
                // The dashes may already belong to `-->`.
                from = at + "<!".len();
            }
            Escape::Comment if is_word(after, SCRIPT) => escape = Escape::Script,
            Escape::Script if is_end_tag(after, SCRIPT) => escape = Escape::Comment,
            _ => {}
        }
    }
}
