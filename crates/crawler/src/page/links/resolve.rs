//! From an attribute's text to the URL that a browser would ask for.

use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding, UTF_8};
use frontier::reference;
use memchr::memchr;
use url::{ParseError, Url};

use super::seen_cache::{Directory, SeenLinkCache};

/// Longest URL that is ever made, in bytes.
///
/// A short link on top of a long base gives a long URL: a base of a megabyte under a thousand links would fill a
/// gigabyte. Nothing that servers accept is so long.
const URL_BYTES: usize = 16 * 1024;

/// Resolves one reference against a base URL, exactly as the links of a page are resolved.
///
/// Redirects, refreshes and sitemaps are resolved by it, too. The rules are those of browsers (WHATWG URL Standard,
/// section 4.4; [`frontier::reference::resolve`]): white space around the text and the number and kind of slashes before a host do
/// not matter. The query is written in UTF-8, and the fragment is kept. Any scheme is returned, and any length: only of a page's
/// links those beyond 16 KiB are dropped.
///
/// # Errors
///
/// When the text is no URL, or is relative to a base such as `mailto:` that has no path.
///
/// ```
/// use crawler::page::links::resolve_reference;
///
/// let base = url::Url::parse("https://a.example/dir/page")?;
/// assert_eq!(resolve_reference(&base, " ../x #top")?.as_str(), "https://a.example/x%20#top");
/// assert_eq!(resolve_reference(&base, r"\\b.example\x")?.as_str(), "https://b.example/x");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn resolve_reference(base: &Url, text: &str) -> Result<Url, ParseError> {
    reference::resolve(Some(base), text, None)
}

/// Returns the part of a reference that is requested: what comes before its fragment.
///
/// The `#` stays behind a space, which it makes a part of the path: white space is ignored only at the end of the whole
/// reference.
pub(super) fn without_fragment(text: &str) -> &str {
    let (before, fragment) = text.split_at(memchr(b'#', text.as_bytes()).unwrap_or(text.len()));
    let is_last = fragment.is_empty() || !before.ends_with(|c| c <= ' ');
    let kept = before.len() + usize::from(!is_last);
    text.get(..kept).unwrap_or(before)
}

/// Resolves the links of one document.
pub(super) struct Resolver {
    page: Url,
    base: Url,
    encoding: &'static Encoding,
}

impl Resolver {
    /// A resolver for a page, whose query strings are written in the page's encoding (UTF-8 where that is UTF-16).
    pub(super) fn new(page_url: &Url, encoding: &'static Encoding) -> Self {
        Self {
            page: page_url.clone(),
            base: page_url.clone(),
            encoding: encoding.output_encoding(),
        }
    }

    /// Takes the `href` of the document's first `<base>` as base, unless it is one that browsers refuse.
    ///
    /// HTML standard, "set the frozen base URL" (4.2.3): what does not parse or has the scheme `data` or `javascript`
    /// leaves the page's own URL in place. Its own query is written in the page's encoding, as any other.
    pub(super) fn rebase(&mut self, href: &str) {
        if let Some(base) = self
            .parse_without_base(href)
            .filter(|url| !matches!(url.scheme(), "data" | "javascript"))
        {
            self.base = base;
        }
    }

    /// Where relative links start from.
    pub(super) fn directory(&self, known: &SeenLinkCache) -> Option<Directory> {
        known.directory(&self.base, self.encoding)
    }

    /// The URL that this text stands for, if it stands for one.
    pub(super) fn parse(&self, text: &str) -> Option<Url> {
        self.parse_on(&self.base, text)
    }

    /// The URL that this text stands for before any `<base>` has been met.
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

/// Encodes a query; what the encoding lacks becomes `&#…;`, percent-encoded (URL standard, "percent-encode after
/// encoding").
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
