//! Canonicalization: when two spellings are one URL.
//!
//! # Rules that always apply
//!
//! The standards define these spellings as one URL, or the difference is never sent:
//!
//! - dot segments are resolved, also as `%2e` (WHATWG URL, "path state"; RFC 3986, section
//!   6.2.2.3);
//! - scheme and host are in lower case, international names in their ASCII form, IPv4 addresses in
//!   four decimal parts (WHATWG URL, "host parsing"; RFC 3986, section 6.2.2.1);
//! - the default port is left out (WHATWG URL, "port state"; RFC 3986, section 6.2.3);
//! - the fragment is left out: it is never sent (RFC 9110, section 7.1), see
//!   [`Rules::keep_fragment`];
//! - user name and password are left out, and never sent. A link must not log the crawler in: the author of the page would choose
//!   the account. Secrets in links would end in logs and output. `http://bank.example@evil.example/` is written to be misread (RFC
//!   9110, section 4.2.4);
//! - in path and query, the digits of percent-escapes are in upper case, and an escaped letter, digit, `-`, `.`, `_` or `~` is
//!   decoded (RFC 3986, sections 6.2.2.1 and 6.2.2.2). Other escapes stay; a `%` that begins no escape stays.
//!
//! All but the last also apply to the URL that is fetched. There, a `^` in the path is escaped, as browsers do. The rule on escapes
//! changes the key only.
//!
//! Texts are parsed by [`reference::resolve`], which corrects the parser where it differs from
//! the standard.
//!
//! # Rules that you choose
//!
//! Some servers distinguish these spellings, so the rules are off by default: see [`Rules`]. Without them, the query keeps its order
//! and its duplicates, `+` differs from `%20`, and `/?` from `/`. The path keeps its case, its doubled slashes and its final slash.
//! The dot at the end of `example.com.` stays.

use std::borrow::Cow;
use std::sync::Arc;

use percent_encoding::percent_encode_byte;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::reference;
use crate::url::{CanonicalUrl, host_name, is_web, remove_credentials};

/// How much of an unsupported scheme an error repeats, in bytes. The text comes from a page and may have any length.
const SHOWN_SCHEME_BYTES: usize = 32;

/// Rules that may merge URLs which a server distinguishes. All are off by default. Most crawls need
/// [`drop_query_params`](Self::drop_query_params) alone, for `utm_*` and session ids.
///
/// They change the key, not the URL that is fetched, except [`keep_fragment`](Self::keep_fragment). Serde reads them from any
/// self-describing format. Rules that are left out are off; unknown names are an error.
///
/// ```
/// use frontier::canonical::{Canonicalizer, Rules};
///
/// let drop_query_params = vec!["utm_*".to_owned()];
/// let rules = Rules { sort_query: true, drop_query_params, ..Rules::default() };
/// let url = Canonicalizer::new(rules).parse("http://a.example/?b=2&utm_source=x&a=1")?;
/// assert_eq!(url.key(), "http://a.example/?a=1&b=2");
/// assert_eq!(url.url().as_str(), "http://a.example/?b=2&utm_source=x&a=1");
/// # Ok::<(), frontier::canonical::NotCrawlable>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Treats `/?` as `/`. They may differ (RFC 3986, section 6.2.3).
    pub drop_empty_query: bool,
    /// Sorts the query parameters by name. Parameters with the same name keep their order: servers read them as a list.
    pub sort_query: bool,
    /// Ignores the query parameters with these names, such as `sessionid`. `utm_*` stands for all names that begin with `utm_`.
    ///
    /// Names are compared after normalising escapes, and case-sensitively. A query without remaining parameters loses its `?`.
    pub drop_query_params: Vec<String>,
    /// Treats `/a/` as `/a`, for any number of final slashes. The root stays `/`.
    pub drop_trailing_slash: bool,
    /// Treats `http` as `https`, unless the URL has a port: on a given port, a server speaks one of them only.
    pub ignore_scheme: bool,
    /// Treats `www.example.com` as `example.com`. The `www.` stays if only one label would be left.
    pub ignore_www: bool,
    /// Keeps a non-empty fragment in the key and in the URL, for sites whose pages differ only after `#!`. HTTP does not send it, so
    /// this helps only a fetcher that runs scripts.
    pub keep_fragment: bool,
    /// Treats `/Index.HTML` as `/index.html`, for servers that ignore case. ASCII letters only.
    pub lower_case_path: bool,
}

/// Why a text or a URL cannot be crawled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCrawlable {
    /// The text is not an absolute URL.
    #[error("not a URL ({0}): write it in full, as in https://example.com/page")]
    NotAUrl(url::ParseError),
    /// The scheme is neither `http` nor `https`. A host with a port, but without a scheme, also parses as this.
    #[error(
        "`{scheme}:` is neither http: nor https:, the only ones fetched: write the URL in full, \
         as in https://example.com/page"
    )]
    Scheme {
        /// The scheme found, cut short if it is long.
        scheme: Box<str>,
    },
    /// The URL has no host, or a host of dots only.
    #[error("the URL names no host: write one between // and the path, as in https://example.com/page")]
    NoHost,
}

/// Turns URLs into [`CanonicalUrl`]s by a fixed set of rules.
///
/// Use the same rules for all URLs of a crawl: keys by different rules cannot be compared. A clone costs a reference count.
#[derive(Clone, Debug, Default)]
pub struct Canonicalizer {
    rules: Arc<Rules>,
}

impl Canonicalizer {
    /// Creates a canonicalizer. `Canonicalizer::default()` applies only the rules that always apply.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { rules: Arc::new(rules) }
    }

    /// Returns the rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Parses an absolute URL as a browser does (WHATWG URL), and canonicalizes it.
    ///
    /// # Errors
    ///
    /// A text that is not an absolute URL, and the errors of [`canonicalize`](Self::canonicalize).
    pub fn parse(&self, text: &str) -> Result<CanonicalUrl, NotCrawlable> {
        self.canonicalize(reference::resolve(None, text, None).map_err(NotCrawlable::NotAUrl)?)
    }

    /// Canonicalizes a URL that was parsed, or [resolved](reference::resolve) against its page.
    ///
    /// Cost: one pass over the URL, and an allocation if the key differs from it.
    ///
    /// # Errors
    ///
    /// A scheme other than `http` and `https`, or no host.
    pub fn canonicalize(&self, mut url: Url) -> Result<CanonicalUrl, NotCrawlable> {
        if !is_web(&url) {
            let scheme = url.scheme().chars().take(SHOWN_SCHEME_BYTES).collect::<String>().into();
            return Err(NotCrawlable::Scheme { scheme });
        }
        if host_name(&url).is_empty() {
            return Err(NotCrawlable::NoHost);
        }
        remove_credentials(&mut url).ok_or(NotCrawlable::NoHost)?;
        if !self.rules.keep_fragment || url.fragment() == Some("") {
            url.set_fragment(None);
        }
        escape_carets(&mut url);
        let key = self.rules.key(&url);
        Ok(CanonicalUrl::new(url, key))
    }
}

impl Rules {
    /// `None` if it is the URL itself.
    fn key(&self, url: &Url) -> Option<Box<str>> {
        // Most links are canonical already: there is nothing to build and compare.
        if !url.as_str().contains('%') && *self == Self::default() {
            return None;
        }
        let mut key = String::with_capacity(url.as_str().len() + "s".len());
        key.push_str(self.scheme(url));
        key.push_str("://");
        key.push_str(self.host(url));
        if let Some(port) = url.port() {
            key.push(':');
            key.push_str(&port.to_string());
        }
        key.push_str(&self.path(url));
        if let Some(query) = self.query(url) {
            key.push('?');
            key.push_str(&query);
        }
        if let Some(fragment) = url.fragment() {
            key.push('#');
            key.push_str(fragment);
        }
        (key != url.as_str()).then(|| key.into_boxed_str())
    }

    fn scheme<'u>(&self, url: &'u Url) -> &'u str {
        // `http://a.example:443` must not become `https://a.example:443`: read again, that is
        // `https://a.example`.
        if self.ignore_scheme && url.port().is_none() {
            "https"
        } else {
            url.scheme()
        }
    }

    fn host<'u>(&self, url: &'u Url) -> &'u str {
        let mut host = url.host_str().unwrap_or_default();
        if !self.ignore_www {
            return host;
        }
        // All of them, so that the key of the key is the key.
        while let Some(parent) = host.strip_prefix("www.") {
            if parent.starts_with('.') || !parent.trim_end_matches('.').contains('.') {
                break;
            }
            host = parent;
        }
        host
    }

    fn path<'u>(&self, url: &'u Url) -> Cow<'u, str> {
        let mut path = normalize_escapes(url.path());
        if self.lower_case_path {
            // Once more, because the digits of the escapes that remain have lost their upper case.
            path = Cow::Owned(normalize_escapes(&path.to_ascii_lowercase()).into_owned());
        }
        if self.drop_trailing_slash {
            let kept = path.trim_end_matches('/').len().max("/".len());
            path = Cow::Owned(path[..kept].to_owned());
        }
        path
    }

    fn query<'u>(&self, url: &'u Url) -> Option<Cow<'u, str>> {
        let query = normalize_escapes(url.query()?);
        if query.is_empty() {
            return (!self.drop_empty_query).then_some(query);
        }
        if !self.sort_query && self.drop_query_params.is_empty() {
            return Some(query);
        }
        let mut parameters: Vec<&str> = query
            .split('&')
            .filter(|parameter| !self.drops(name_of(parameter)))
            .collect();
        if self.sort_query {
            parameters.sort_by_key(|parameter| name_of(parameter));
        }
        let query = parameters.join("&");
        (!query.is_empty()).then_some(Cow::Owned(query))
    }

    fn drops(&self, name: &str) -> bool {
        self.drop_query_params
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == pattern,
            })
    }
}

/// Escapes each `^` of a path, as the standard says and browsers do (WHATWG URL, "path percent-encode set"). The `url` crate does
/// not: the only difference in this set.
fn escape_carets(url: &mut Url) {
    if url.path().contains('^') {
        let path = url.path().replace('^', "%5E");
        url.set_path(&path);
    }
}

/// The name of a query parameter, up to its first `=`.
fn name_of(parameter: &str) -> &str {
    parameter.split_once('=').map_or(parameter, |(name, _)| name)
}

/// Normalises the percent-escapes of a path or a query without changing what they mean (RFC 3986,
/// section 6.2.2).
///
/// Dot segments cannot arise: the `url` crate has resolved them, escaped or not, before. Nor can
/// escapes: in `%%341` the `4` stays escaped, for `%41` would be read as the letter `A`.
fn normalize_escapes(text: &str) -> Cow<'_, str> {
    let mut pieces = text.split('%');
    let Some(plain) = pieces.next().filter(|plain| plain.len() < text.len()) else {
        return Cow::Borrowed(text);
    };
    let mut normal = String::with_capacity(text.len());
    normal.push_str(plain);
    // Whether the text so far ends in a stray `%`, or in one and a digit, that a decoded digit
    // could complete.
    let mut unfinished = false;
    for piece in pieces {
        match split_escape(piece) {
            Some((byte, plain)) => {
                if is_unreserved(byte) && !unfinished {
                    normal.push(char::from(byte));
                } else {
                    normal.push_str(percent_encode_byte(byte));
                }
                normal.push_str(plain);
                unfinished = false;
            }
            None => {
                normal.push('%');
                normal.push_str(piece);
                unfinished = piece.len() < 2 && is_hex(piece);
            }
        }
    }
    Cow::Owned(normal)
}

/// Splits what follows a `%` into the byte it stands for and the rest; `None` unless it begins with
/// two hex digits.
fn split_escape(piece: &str) -> Option<(u8, &str)> {
    let (digits, rest) = piece.split_at_checked(2)?;
    // Asked first, because the parser of numbers would also take a sign.
    if !is_hex(digits) {
        return None;
    }
    let byte = u8::from_str_radix(digits, 16).ok()?;
    Some((byte, rest))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// RFC 3986, section 2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}
