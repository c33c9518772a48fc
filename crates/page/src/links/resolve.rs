//! From an attribute's text to the URL that a browser would request.

use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding, UTF_8};
use frontier::reference;
use memchr::memchr;
use url::Url;

use super::seen_cache::{Directory, SeenLinkCache};

/// Maximum length of a link's URL, in bytes.
///
/// A short link on a long base gives a long URL. A base of a megabyte and a thousand links would take a gigabyte. No
/// server accepts longer URLs.
pub(super) const URL_BYTES: usize = 16 * 1024;

/// Maximum depth of documents in the `srcdoc` of others.
const NESTED_DOCUMENTS: usize = 8;

/// Returns the reference without its fragment.
///
/// After a space the `#` stays. White space at the end of a reference is ignored, but this space belongs to the path.
pub(super) fn without_fragment(text: &str) -> &str {
    let (before, fragment) = text.split_at(memchr(b'#', text.as_bytes()).unwrap_or(text.len()));
    let is_last = fragment.is_empty() || !before.ends_with(|c| c <= ' ');
    let kept = before.len() + usize::from(!is_last);
    text.get(..kept).unwrap_or(before)
}

/// Resolves the links of one document.
#[derive(Clone)]
pub(super) struct Resolver {
    page: Url,
    pub(super) base: Url,
    encoding: &'static Encoding,
    /// How many documents this one is nested in.
    depth: usize,
}

impl Resolver {
    /// Makes a resolver for a page. Query strings are written in the page's encoding, or in UTF-8 if that is UTF-16.
    pub(super) fn new(page_url: &Url, encoding: &'static Encoding) -> Self {
        Self {
            page: page_url.clone(),
            base: page_url.clone(),
            encoding: encoding.output_encoding(),
            depth: 0,
        }
    }

    /// `None` if it is nested too deep.
    pub(super) fn nested(&self) -> Option<Self> {
        (self.depth < NESTED_DOCUMENTS).then(|| Self {
            page: self.base.clone(),
            base: self.base.clone(),
            encoding: UTF_8,
            depth: self.depth + 1,
        })
    }

    /// Returns a resolver with the base of the document's first `<base>`, unless browsers would refuse it.
    ///
    /// HTML standard, "set the frozen base URL" (4.2.3): if the text does not parse, or has the scheme `data` or
    /// `javascript`, the page's own URL stays the base. The query of the base is written in the page's encoding, as
    /// that of any link.
    pub(super) fn rebased(&self, href: &str) -> Self {
        let is_refused = |url: &Url| matches!(url.scheme(), "data" | "javascript");
        let base = self.parse_without_base(href).filter(|url| !is_refused(url));
        Self {
            base: base.unwrap_or_else(|| self.page.clone()),
            ..self.clone()
        }
    }

    /// `None` if links may not be left out, or depend on more than a directory. Those of a nested document belong to the one around it.
    pub(super) fn directory<'c>(&self, known: Option<&'c SeenLinkCache>) -> Option<Directory<'c>> {
        known.filter(|_| self.depth == 0)?.directory(&self.base, self.encoding)
    }

    /// Resolves a link on the base; `None` if it is not a URL.
    pub(super) fn parse(&self, text: &str) -> Option<Url> {
        self.parse_on(&self.base, text)
    }

    /// Resolves a link on the page's own URL, for text before any `<base>`.
    pub(super) fn parse_without_base(&self, text: &str) -> Option<Url> {
        self.parse_on(&self.page, text)
    }

    fn parse_on(&self, base: &Url, text: &str) -> Option<Url> {
        if text.len() > URL_BYTES {
            return None;
        }
        let in_page_encoding: &dyn Fn(&str) -> Cow<'_, [u8]> = &|query| Cow::Owned(encoded(self.encoding, query));
        let encode_query = (self.encoding != UTF_8).then_some(in_page_encoding);
        reference::resolve(Some(base), text, encode_query)
            .ok()
            .filter(|url| url.as_str().len() <= URL_BYTES)
    }
}

/// Encodes a query. Characters that the encoding lacks become `&#…;`, percent-encoded (URL standard, "percent-encode
/// after encoding").
fn encoded(encoding: &'static Encoding, query: &str) -> Vec<u8> {
    let mut encoder = encoding.new_encoder();
    let mut bytes = Vec::new();
    let mut rest = query;
    loop {
        bytes.reserve(rest.len() + 16);
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
        rest = rest.get(read..).unwrap_or_default();
        match result {
            EncoderResult::InputEmpty => return bytes,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(c) => {
                bytes.extend_from_slice(format!("%26%23{}%3B", u32::from(c)).as_bytes());
            }
        }
    }
}
