//! Searches the whole head of a page for a declared encoding. The head may be longer than the prescan.
//!
//! By the HTML standard ("changing the encoding while parsing", 13.2.3.4) the parser restarts when a `<meta>` element
//! contradicts a tentative encoding, wherever it stands. Chromium searches only the head, before it parses: up to the
//! first tag that cannot be in a head, but at least 1024 bytes. So do we. Browsers disagree about pages that declare
//! their encoding later.

use encoding_rs::Encoding;
use memchr::memchr;

use super::scanner::{OutOfBytes, Scanner, is_space};

/// Maximum length of the head, in bytes. Scripts and style sheets before the declaration rarely take a tenth of it.
const HEAD_BYTES: usize = 1024 * 1024;

/// Bytes that are searched even if the head ends earlier.
const UNCONDITIONAL_BYTES: usize = 1024;

/// Tags, start or end, that do not end the head. The list is Chromium's.
const HEAD_TAGS: [&[u8]; 8] = [
    b"script",
    b"noscript",
    b"style",
    b"link",
    b"meta",
    b"object",
    b"title",
    b"base",
];

/// Tags whose start tag does not end the head, but whose end tag does.
const OPENING_TAGS: [&[u8]; 2] = [b"html", b"head"];

/// Elements whose content is text up to their own end tag. (`script` and `plaintext` have their own rules.)
const RAW_TEXT: [&[u8]; 7] = [
    b"title",
    b"textarea",
    b"style",
    b"xmp",
    b"iframe",
    b"noembed",
    b"noframes",
];

/// Returns the encoding of the first `<meta>` element of the head that declares a known one.
///
/// Text in comments, scripts, style sheets and titles is skipped. Costs one pass over the head, at most [`HEAD_BYTES`].
pub(super) fn meta_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let bytes = bytes.get(..HEAD_BYTES).unwrap_or(bytes);
    let mut head = Head {
        scanner: Scanner { bytes, at: 0 },
        has_ended: false,
    };
    head.find().ok().flatten()
}

struct Head<'a> {
    scanner: Scanner<'a>,
    has_ended: bool,
}

impl Head<'_> {
    fn find(&mut self) -> Result<Option<&'static Encoding>, OutOfBytes> {
        loop {
            self.scanner.at += memchr(b'<', self.scanner.rest()).ok_or(OutOfBytes)?;
            if self.has_ended && self.scanner.at >= UNCONDITIONAL_BYTES {
                return Ok(None);
            }
            match self.scanner.rest() {
                [b'<', b'!', b'-', b'-', ..] => self.skip_comment()?,
                [b'<', b'/', letter, ..] if letter.is_ascii_alphabetic() => {
                    self.scanner.at += 2;
                    let name = self.tag_name()?;
                    self.finish_tag()?;
                    self.has_ended |= !matches_any(name, &HEAD_TAGS);
                }
                [b'<', b'!' | b'?' | b'/', ..] => {
                    self.scanner.skip_past(b">")?;
                    self.scanner.at += 1;
                }
                [b'<', letter, ..] if letter.is_ascii_alphabetic() => {
                    self.scanner.at += 1;
                    if let Some(found) = self.start_tag()? {
                        return Ok(Some(found));
                    }
                }
                _ => self.scanner.at += 1,
            }
        }
    }

    /// Skips a start tag and the text that belongs to it. Returns the declared encoding if it is a `<meta>`.
    fn start_tag(&mut self) -> Result<Option<&'static Encoding>, OutOfBytes> {
        let name = self.tag_name()?;
        self.has_ended |= !matches_any(name, &HEAD_TAGS) && !matches_any(name, &OPENING_TAGS);
        if name.eq_ignore_ascii_case(b"meta") {
            let found = self.scanner.meta()?;
            self.scanner.at += 1;
            return Ok(found);
        }
        self.finish_tag()?;
        if name.eq_ignore_ascii_case(b"plaintext") {
            return Err(OutOfBytes);
        } else if name.eq_ignore_ascii_case(b"script") {
            self.skip_script()?;
        } else if matches_any(name, &RAW_TEXT) {
            self.skip_to_end_tag(name)?;
        }
        Ok(None)
    }

    fn finish_tag(&mut self) -> Result<(), OutOfBytes> {
        while self.scanner.attribute()?.is_some() {}
        self.scanner.at += 1;
        Ok(())
    }

    /// Skips a comment. It ends with `-->`, whose dashes may be those that open it, or with `--!>`.
    fn skip_comment(&mut self) -> Result<(), OutOfBytes> {
        let opened = self.scanner.at + b"<!--".len();
        self.scanner.at += b"<!".len();
        loop {
            match self.scanner.rest() {
                [b'-', b'-', b'>', ..] => {
                    self.scanner.at += 3;
                    return Ok(());
                }
                [b'-', b'-', b'!', b'>', ..] if self.scanner.at >= opened => {
                    self.scanner.at += 4;
                    return Ok(());
                }
                [] => return Err(OutOfBytes),
                _ => self.scanner.at += 1,
            }
        }
    }

    /// Skips to the end tag of a script. That is not the first one if `<!-- <script>` comes before it (13.2.5.4 and the
    /// script data states after it).
    fn skip_script(&mut self) -> Result<(), OutOfBytes> {
        let mut in_comment = false;
        let mut in_nested = false;
        loop {
            let rest = self.scanner.rest();
            self.scanner.at += match rest {
                [] => return Err(OutOfBytes),
                [b'<', b'!', b'-', b'-', ..] if !in_comment => {
                    in_comment = true;
                    b"<!".len()
                }
                [b'-', b'-', b'>', ..] => {
                    (in_comment, in_nested) = (false, false);
                    b"-->".len()
                }
                [b'<', b'/', name @ ..] if starts_with_name(name, b"script") => {
                    if !in_nested {
                        return Ok(());
                    }
                    in_nested = false;
                    b"</script".len()
                }
                [b'<', name @ ..] if in_comment && starts_with_name(name, b"script") => {
                    in_nested = true;
                    b"<script".len()
                }
                _ => 1,
            };
        }
    }

    fn skip_to_end_tag(&mut self, of: &[u8]) -> Result<(), OutOfBytes> {
        let is_end = |rest: &[u8]| rest.strip_prefix(b"</").is_some_and(|name| starts_with_name(name, of));
        while !is_end(self.scanner.rest()) {
            self.scanner.peek()?;
            self.scanner.at += 1;
        }
        Ok(())
    }
}

impl<'a> Head<'a> {
    /// Skips the name of a tag, and returns it.
    fn tag_name(&mut self) -> Result<&'a [u8], OutOfBytes> {
        let rest = self.scanner.rest();
        let length = rest.iter().position(|byte| ends_name(*byte)).ok_or(OutOfBytes)?;
        self.scanner.at += length;
        rest.get(..length).ok_or(OutOfBytes)
    }
}

fn ends_name(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'/' | b'>')
}

fn matches_any(name: &[u8], names: &[&[u8]]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns whether a tag's name begins here and equals `name`.
fn starts_with_name(rest: &[u8], name: &[u8]) -> bool {
    rest.split_at_checked(name.len())
        .is_some_and(|(start, after)| start.eq_ignore_ascii_case(name) && after.first().copied().is_some_and(ends_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KOI8: &str = "<meta charset=koi8-r>";

    /// The encoding that is declared after this markup, far beyond the prescan.
    fn after(markup: &str) -> Option<&'static str> {
        declared(&format!("<!-- {} -->{markup}{KOI8}", "x".repeat(2000)))
    }

    fn declared(page: &str) -> Option<&'static str> {
        meta_encoding(page.as_bytes()).map(Encoding::name)
    }

    #[test]
    fn elements_of_the_head_do_not_end_it() {
        for markup in [
            "",
            "<!doctype html><html lang=x><HEAD>",
            "<title>t</title><base><link><style>p{}</style><noscript></noscript>",
            "text & text < text </> </ x> <?php ?> <![CDATA[ > ",
            "<meta charset=klingon><meta name=x>",
            "<object></object>",
        ] {
            assert_eq!(after(markup), Some("KOI8-R"), "{markup}");
        }
    }

    #[test]
    fn the_head_ends_at_the_first_tag_that_cannot_be_in_it() {
        for markup in ["<p>", "</p>", "<body>", "</head>", "</html>", "<h1/>", "<template>"] {
            assert_eq!(after(markup), None, "{markup}");
        }
    }

    #[test]
    fn the_first_1024_bytes_are_searched_even_if_the_head_ends_earlier() {
        let page = |blanks: usize| format!("<p>{}{KOI8}", " ".repeat(blanks));
        assert_eq!(declared(&page(1020)), Some("KOI8-R"));
        assert_eq!(declared(&page(1021)), None);
    }

    #[test]
    fn text_that_looks_like_a_declaration_is_ignored() {
        for markup in [
            "<script>'<meta charset=gbk>'</script>",
            "<script><!-- <script> </script> <meta charset=gbk> --></script>",
            "<script><!--> <script> </script >",
            "<script><!-- </script/x>",
            "<SCRIPT></scripty><meta charset=gbk></Script>",
            "<style><meta charset=gbk></style>",
            "<title><meta charset=gbk></titles></title\n>",
            "<!-- <meta charset=gbk> -->",
            "<!--><!---><!----!><!---!> <meta charset=gbk> --!>",
            "<link title='<meta charset=gbk>'>",
            "<!x <meta charset=gbk <meta charset=gbk>",
        ] {
            assert_eq!(after(markup), Some("KOI8-R"), "{markup}");
        }
    }

    #[test]
    fn an_element_that_is_never_closed_hides_the_rest() {
        for markup in [
            "<script>",
            "<title>",
            "<!-- ",
            "<plaintext>",
            "<link title='",
            "<script><!-- <script></script>",
        ] {
            assert_eq!(after(markup), None, "{markup}");
        }
    }

    #[test]
    fn the_search_ends_at_its_limit() {
        let page = |blanks: usize| format!("{}{KOI8}", " ".repeat(blanks));
        assert_eq!(declared(&page(HEAD_BYTES - KOI8.len())), Some("KOI8-R"));
        assert_eq!(declared(&page(HEAD_BYTES - KOI8.len() + 1)), None);
    }
}
