//! From an attribute's text to the URL that a browser would ask for.

use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding, UTF_8};
use url::Url;

use super::seen_cache::{Directory, SeenLinkCache};

/// Longest URL that is ever made, in bytes.
///
/// A short link on top of a long base gives a long URL: a base of a megabyte under a thousand links would fill a
/// gigabyte. Nothing that servers accept is so long.
const URL_BYTES: usize = 16 * 1024;

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
        let mut options = Url::options().base_url(Some(base));
        if self.encoding != UTF_8 {
            options = options.encoding_override(Some(in_page_encoding));
        }
        options
            .parse(&two_slashes(base, text))
            .ok()
            .filter(|url| url.as_str().len() <= URL_BYTES)
    }
}

/// A reference to another host with no more than two slashes before it.
///
/// URL standard, "special authority ignore slashes state": `///h.test` is `//h.test` on a page of a scheme like http,
/// in backslashes as well. url 2.5.8 takes the host for empty then.
fn two_slashes<'a>(base: &Url, text: &'a str) -> Cow<'a, str> {
    // Tabs and newlines count nowhere in a URL, controls and spaces not before it.
    let mut slashes = 0;
    let host = text
        .trim_start_matches(|c: char| c <= ' ')
        .trim_start_matches(|c: char| match c {
            '/' | '\\' => {
                slashes += 1;
                true
            }
            _ => matches!(c, '\t' | '\n' | '\r'),
        });
    if slashes > 2 && matches!(base.scheme(), "http" | "https" | "ftp" | "ws" | "wss") {
        Cow::Owned(format!("//{host}"))
    } else {
        Cow::Borrowed(text)
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
