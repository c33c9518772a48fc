//! Counts the attributes of a tag that the tokenizer has not finished yet.
//!
//! html5ever compares the name of every attribute with all names before it, and emits the tag only at its end. So one
//! tag with a million attributes would take an hour. That is why the fed text is counted outside of html5ever.
//!
//! Only the tokenizer knows where a tag begins: `<a` may be part of a script or a comment. Where a tag and its
//! attributes end depends on the tag alone.

/// Counts the attributes of the tag that is open at the end of the last piece of a page.
#[derive(Debug, Default)]
pub(super) struct AttributeCount {
    state: State,
    count: usize,
}

/// The state inside a tag: the attribute states of the HTML standard (13.2.5.32 to 13.2.5.40), with equivalent ones
/// merged.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The tokenizer has emitted all text as tokens, so no tag is open.
    #[default]
    Settled,
    /// After a `<`. The next byte decides what it opens.
    Opened,
    /// After `</`.
    OpenedEnd,
    /// A comment, a doctype, a CDATA section: markup that may be long and has no attributes.
    Other,
    TagName,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Quoted(u8),
    Unquoted,
}

impl AttributeCount {
    /// Processes a piece that was fed to the tokenizer. `token_came_out` says whether the tokenizer emitted a token.
    ///
    /// A piece is either a single `<` or contains none, so at most one tag is open at its end. That tag began with the
    /// last `<` that made a token come out, or with the first `<` after all text was emitted.
    pub(super) fn after_piece(&mut self, piece: &str, token_came_out: bool) {
        if piece == "<" && (token_came_out || self.state == State::Settled) {
            (self.state, self.count) = (State::Opened, 0);
        } else if token_came_out {
            self.state = State::Settled;
        } else {
            for byte in piece.bytes() {
                self.step(byte);
            }
        }
    }

    /// Returns the number of attributes so far, including duplicates.
    pub(super) fn get(&self) -> usize {
        self.count
    }

    fn step(&mut self, byte: u8) {
        let space = byte.is_ascii_whitespace();
        self.state = match (self.state, byte) {
            (State::Settled, _) => State::Settled,
            (State::Opened, b'/') => State::OpenedEnd,
            (State::Opened | State::OpenedEnd, _) if byte.is_ascii_alphabetic() => State::TagName,
            (State::Opened | State::OpenedEnd | State::Other, _) => State::Other,
            (State::Quoted(quote), _) if byte == quote => State::BeforeName,
            (State::Quoted(quote), _) => State::Quoted(quote),
            (_, b'>') => State::Settled,
            (State::TagName | State::Unquoted, _) if space => State::BeforeName,
            (State::TagName, b'/') => State::BeforeName,
            (State::TagName | State::Unquoted, _) => self.state,
            (State::BeforeValue, _) if space => State::BeforeValue,
            (State::BeforeValue, b'"' | b'\'') => State::Quoted(byte),
            (State::BeforeValue, _) => State::Unquoted,
            (State::Name | State::AfterName, b'=') => State::BeforeValue,
            (State::BeforeName | State::Name | State::AfterName, b'/') => State::BeforeName,
            (State::BeforeName, _) if space => State::BeforeName,
            (State::Name | State::AfterName, _) if space => State::AfterName,
            (State::Name, _) => State::Name,
            (State::BeforeName | State::AfterName, _) => {
                self.count += 1;
                State::Name
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attribute count of a tag that is not finished.
    fn attributes(tag: &str) -> usize {
        let mut count = AttributeCount::default();
        for piece in tag
            .split_inclusive('<')
            .flat_map(|piece| match piece.strip_suffix('<') {
                Some(before) => [before, "<"],
                None => [piece, ""],
            })
        {
            count.after_piece(piece, false);
        }
        count.get()
    }

    #[test]
    fn every_way_to_write_an_attribute_is_counted_once() {
        assert_eq!(attributes("<a"), 0);
        assert_eq!(attributes("<a x"), 1);
        assert_eq!(attributes("</a x y"), 2);
        assert_eq!(attributes("<a x=1 y = 2 z='3'w=\"4\"v/u/=t =s"), 7);
        assert_eq!(attributes("<a x\ty\nz\r/\u{c}w"), 4);
        assert_eq!(attributes("<a x=a/b=c y"), 2);
    }

    #[test]
    fn text_in_quotes_is_not_an_attribute() {
        assert_eq!(attributes("<a x='1 2 \" > < 3' y=\"4 5 ' 6\" z"), 3);
    }

    #[test]
    fn comments_and_doctypes_have_no_attributes() {
        for other in [
            "<!-- x y z",
            "<!doctype x y z",
            "<?x y z",
            "</ x y z",
            "<!-- <a x y z",
            "< x y z",
        ] {
            assert_eq!(attributes(other), 0, "{other}");
        }
    }

    #[test]
    fn a_token_ends_the_count_unless_it_came_out_because_a_tag_begins() {
        let mut count = AttributeCount::default();
        count.after_piece("<", false);
        count.after_piece("a x y", false);
        count.after_piece("<", true);
        count.after_piece("b z", false);
        assert_eq!(count.get(), 1);
        count.after_piece(">text", true);
        count.after_piece("more text, words", false);
        assert_eq!(count.get(), 1);
    }
}
