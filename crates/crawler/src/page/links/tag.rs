//! Tags: their names, and the attributes that are read.

use std::borrow::Cow;

/// A tag's name as written, with a numeric code for fast comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<'a> {
    text: &'a str,
    code: u64,
}

/// The code of names with more than eight bytes.
const LONG: u64 = 0;

impl<'a> Name<'a> {
    #[inline]
    pub(super) fn new(text: &'a str) -> Self {
        let code = if text.len() > 8 { LONG } else { code(text.as_bytes()) };
        Self { text, code }
    }

    /// Returns the name as written, in its original case.
    pub(super) fn as_str(&self) -> &'a str {
        self.text
    }

    /// Returns the [`code`] of the lower-case name; 0 if it has more than eight bytes.
    pub(super) fn code(&self) -> u64 {
        self.code
    }

    /// Returns whether this is the name; `name` is in lower case.
    pub(super) fn is(&self, name: &str) -> bool {
        self.text.eq_ignore_ascii_case(name)
    }
}

/// Packs a name of up to eight bytes into a number, ignoring the case of letters.
#[inline]
pub(super) const fn code(name: &[u8]) -> u64 {
    let mut code = 0;
    let mut rest = name;
    while let Some((byte, before)) = rest.split_last() {
        // A NUL would look like the end of the name.
        let byte = if *byte == 0 { 0xFF } else { byte.to_ascii_lowercase() };
        code = code << 8 | byte as u64;
        rest = before;
    }
    code
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
}

impl Attribute {
    const COUNT: usize = 14;

    fn from_name(name: &str) -> Option<Self> {
        let is = |expected: &str, attribute| name.eq_ignore_ascii_case(expected).then_some(attribute);
        match name.len() {
            3 => is("rel", Self::Rel).or_else(|| is("src", Self::Src)),
            4 => is("href", Self::Href)
                .or_else(|| is("name", Self::Name))
                .or_else(|| is("type", Self::Type))
                .or_else(|| is("data", Self::Data)),
            5 => is("style", Self::Style),
            6 => is("srcset", Self::Srcset)
                .or_else(|| is("srcdoc", Self::Srcdoc))
                .or_else(|| is("poster", Self::Poster)),
            7 => is("content", Self::Content),
            10 => is("http-equiv", Self::HttpEquiv).or_else(|| is("xlink:href", Self::XlinkHref)),
            11 => is("imagesrcset", Self::Imagesrcset),
            _ => None,
        }
    }
}

/// An element that may hold a link, in the scanner or in a tree.
pub(super) trait Element {
    /// Returns the value of an attribute, if the element has it.
    fn value(&self, attribute: Attribute) -> Option<Cow<'_, str>>;
}

/// Returns whether a space-separated list such as `rel` contains a token; `token` is in lower case.
pub(super) fn has_token(list: &str, token: &str) -> bool {
    list.split_ascii_whitespace()
        .any(|word| word.eq_ignore_ascii_case(token))
}

/// The values of a tag's attributes, as written.
#[derive(Debug, Default)]
pub(super) struct Attributes<'a> {
    values: [Option<&'a str>; Attribute::COUNT],
}

impl<'a> Attributes<'a> {
    pub(super) const NONE: Self = Self {
        values: [None; Attribute::COUNT],
    };

    /// Stores an attribute if it is one that is read, and the first of its name.
    pub(super) fn keep(&mut self, name: &str, value: &'a str) {
        if let Some(attribute) = Attribute::from_name(name)
            && let Some(kept) = self.values.get_mut(attribute as usize)
        {
            kept.get_or_insert(value);
        }
    }

    /// Returns the value as written.
    pub(super) fn raw(&self, attribute: Attribute) -> Option<&'a str> {
        self.values.get(attribute as usize).copied().flatten()
    }
}
