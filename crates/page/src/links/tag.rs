//! Tags: their names, and the attributes that are read.

use std::borrow::Cow;
use std::ops::Range;

use super::eight::{below, each};
use super::references::{TextContext, decoded};

/// A tag's name as written, with a numeric code for fast comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<'a> {
    text: &'a [u8],
    code: u64,
}

/// The code of names with more than eight bytes.
const LONG: u64 = 0;

impl<'a> Name<'a> {
    /// Returns the name at a place in the markup.
    #[inline]
    pub(super) fn at(html: &'a [u8], range: Range<usize>) -> Self {
        let text = html.get(range.clone()).unwrap_or_default();
        let code = match html.get(range.start..).and_then(<[u8]>::first_chunk) {
            Some(eight) if text.len() <= 8 => folded(u64::from_le_bytes(*eight)) & below(text.len()),
            None if text.len() <= 8 => folded_one_by_one(text),
            _ => LONG,
        };
        Self { text, code }
    }

    pub(super) fn as_str(&self) -> &'a str {
        // A name is a slice of text between ASCII characters.
        str::from_utf8(self.text).unwrap_or_default()
    }

    /// Returns a number to compare with the [`code`] of a name: they are equal if this is that name, in any case. It is 0 if this has more
    /// than eight bytes.
    pub(super) fn code(&self) -> u64 {
        self.code
    }

    /// `name` is in lower case.
    pub(super) fn is(&self, name: &str) -> bool {
        self.text.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// Sets the bit of each byte that distinguishes the cases of a letter. No other byte becomes a letter, nor a zero.
const fn folded(bytes: u64) -> u64 {
    bytes | each(0x20)
}

/// Packs up to eight bytes into a number, the first one lowest.
const fn folded_one_by_one(bytes: &[u8]) -> u64 {
    let mut code = 0;
    let mut rest = bytes;
    while let Some((byte, before)) = rest.split_last() {
        code = code << 8 | (*byte | 0x20) as u64;
        rest = before;
    }
    code
}

/// Returns the code of a name of up to eight letters in lower case. Only that name has it, in any case.
pub(super) const fn code(name: &[u8]) -> u64 {
    assert!(!name.is_empty() && name.len() <= 8, "longer names have no code");
    let mut rest = name;
    while let Some((byte, before)) = rest.split_last() {
        assert!(
            byte.is_ascii_lowercase(),
            "other characters may have the code of another"
        );
        rest = before;
    }
    folded_one_by_one(name)
}

/// A start tag.
#[derive(Debug)]
pub(super) struct Tag<'t, 'a> {
    pub(super) name: Name<'a>,
    /// Whether the tag ends with `/>`.
    pub(super) self_closing: bool,
    /// The attributes that are read; empty if those of this element are not read.
    pub(super) attributes: &'t Attributes<'a>,
}

/// The attributes that links, titles and robots directives are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attribute {
    Href,
    XlinkHref,
    Rel,
    Src,
    Srcdoc,
    Name,
    Content,
    HttpEquiv,
    Srcset,
    Imagesrcset,
    Poster,
    Data,
    Type,
    Style,
    Charset,
    Background,
    Shadowrootmode,
}

impl Attribute {
    const COUNT: usize = 17;

    #[inline]
    fn from_name(name: &Name<'_>) -> Option<Self> {
        Some(match name.code() {
            HREF => Self::Href,
            REL => Self::Rel,
            SRC => Self::Src,
            SRCDOC => Self::Srcdoc,
            NAME => Self::Name,
            CONTENT => Self::Content,
            SRCSET => Self::Srcset,
            POSTER => Self::Poster,
            DATA => Self::Data,
            TYPE => Self::Type,
            STYLE => Self::Style,
            CHARSET => Self::Charset,
            LONG if name.is("xlink:href") => Self::XlinkHref,
            LONG if name.is("http-equiv") => Self::HttpEquiv,
            LONG if name.is("imagesrcset") => Self::Imagesrcset,
            LONG if name.is("background") => Self::Background,
            LONG if name.is("shadowrootmode") => Self::Shadowrootmode,
            _ => return None,
        })
    }
}

const CHARSET: u64 = code(b"charset");
const CONTENT: u64 = code(b"content");
const DATA: u64 = code(b"data");
const HREF: u64 = code(b"href");
const NAME: u64 = code(b"name");
const POSTER: u64 = code(b"poster");
const REL: u64 = code(b"rel");
const SRC: u64 = code(b"src");
const SRCDOC: u64 = code(b"srcdoc");
const SRCSET: u64 = code(b"srcset");
const STYLE: u64 = code(b"style");
const TYPE: u64 = code(b"type");

/// `token` is in lower case.
pub(super) fn has_token(list: &str, token: &str) -> bool {
    list.split_ascii_whitespace()
        .any(|word| word.eq_ignore_ascii_case(token))
}

/// How many values that begin with `url(` are kept of a tag.
const PAINTS: usize = 4;

/// The values of a tag's attributes, as written.
#[derive(Debug, Default)]
pub(super) struct Attributes<'a> {
    values: [Option<&'a str>; Attribute::COUNT],
    /// Other values that begin with `url(`: those of SVG's presentation attributes, such as `fill` and `marker-end`.
    paints: [Option<&'a str>; PAINTS],
}

impl<'a> Attributes<'a> {
    pub(super) const NONE: Self = Self {
        values: [None; Attribute::COUNT],
        paints: [None; PAINTS],
    };

    /// Stores an attribute if it is one that is read, and the first of its name.
    #[inline]
    pub(super) fn keep(&mut self, name: &Name<'_>, value: &'a str) {
        if let Some(attribute) = Attribute::from_name(name)
            && let Some(kept) = self.values.get_mut(attribute as usize)
        {
            kept.get_or_insert(value);
        } else if value
            .as_bytes()
            .first_chunk()
            .is_some_and(|start: &[u8; 4]| start.eq_ignore_ascii_case(b"url("))
            && let Some(free) = self.paints.iter_mut().find(|paint| paint.is_none())
        {
            *free = Some(value);
        }
    }

    pub(super) fn paints(&self) -> impl Iterator<Item = Cow<'a, str>> {
        let values = self.paints.into_iter().flatten();
        values.map(|raw| decoded(raw, TextContext::Attribute))
    }

    pub(super) fn raw(&self, attribute: Attribute) -> Option<&'a str> {
        self.values.get(attribute as usize).copied().flatten()
    }

    pub(super) fn value(&self, attribute: Attribute) -> Option<Cow<'a, str>> {
        self.raw(attribute).map(|raw| decoded(raw, TextContext::Attribute))
    }

    /// `None` if it is empty.
    pub(super) fn filled(&self, attribute: Attribute) -> Option<Cow<'a, str>> {
        self.value(attribute).filter(|value| !value.is_empty())
    }

    /// Returns the link of an element of SVG. A plain `href` takes precedence over `xlink:href` (SVG 2, 16.1.1).
    pub(super) fn svg_href(&self) -> Option<Cow<'a, str>> {
        self.value(Attribute::Href).or_else(|| self.value(Attribute::XlinkHref))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    proptest! {
        #[test]
        fn a_name_has_the_code_of_its_bytes_whatever_stands_behind_it(
            name in proptest::collection::vec(select(&["\0", "A", "Z", "@", "[", "`", "{", "a", "z", "\x7F", "é"][..]), 0..10),
            behind in "[a-z\0>]{0,10}",
        ) {
            let name = name.concat();
            let html = format!("<{name}{behind}");
            let at = Name::at(html.as_bytes(), 1..1 + name.len());
            prop_assert_eq!(at.as_str(), &name);
            let alone = Name::at(name.as_bytes(), 0..name.len());
            prop_assert_eq!(at.code(), alone.code());
            prop_assert_eq!(at.code() == LONG, name.is_empty() || name.len() > 8);
        }
    }

    #[test]
    fn only_a_letter_has_the_code_of_a_letter() {
        for letter in b'a'..=b'z' {
            let [first, last] = [code(&[letter, b'x']), code(&[b'x', letter])];
            for byte in 0..=u8::MAX {
                for behind in ["", "=behind"] {
                    let code_of = |name: [u8; 2]| Name::at(&[&name, behind.as_bytes()].concat(), 0..2).code();
                    let is_letter = byte.eq_ignore_ascii_case(&letter);
                    assert_eq!(code_of([byte, b'X']) == first, is_letter, "{byte} and {letter}");
                    assert_eq!(code_of([b'x', byte]) == last, is_letter, "{byte} and {letter}");
                }
            }
        }
    }

    #[test]
    fn attributes_are_known_by_their_names_in_any_case() {
        let names = "href xlink:href rel src srcdoc name content http-equiv srcset imagesrcset poster data type style charset background shadowrootmode";
        let known = |name: &str, behind: &str| {
            let html = name.to_owned() + behind;
            Attribute::from_name(&Name::at(html.as_bytes(), 0..name.len()))
        };
        assert_eq!(names.split(' ').count(), Attribute::COUNT);
        for (place, name) in names.split(' ').enumerate() {
            for behind in ["", "='a value'"] {
                for name in [name.to_owned(), name.to_ascii_uppercase()] {
                    assert_eq!(known(&name, behind).map(|found| found as usize), Some(place), "{name}");
                }
                for other in [
                    format!("{name}\0"),
                    format!("{name}s"),
                    format!("x{name}"),
                    name[1..].to_owned(),
                ] {
                    assert_eq!(known(&other, behind), None, "{other:?}");
                }
            }
        }
        assert_eq!(known("", "=a"), None);
    }
}
