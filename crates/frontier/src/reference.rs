//! From the text of a reference to a URL, as browsers read it.
//!
//! The `url` crate is the parser. Version 2.5.8 differs from the WHATWG URL Standard in three ways that links on the web
//! meet. Two are corrected here, the third by the [canonicalizer](crate::canonical):
//!
//! - `///host/path`, relative to an `http` URL, names a host ("special authority ignore slashes state");
//! - only a `file:` URL has drive letters: elsewhere `..` removes a segment such as `C:` or `C|` ("shorten a URL's path");
//! - a `^` in a path is escaped ("path percent-encode set").

use std::borrow::Cow;

use url::{EncodingOverride, ParseError, Url};

/// Resolves a reference against a base URL as browsers do (WHATWG URL, section 4.4, "URL parsing").
///
/// `encode_query` writes the query in the encoding of a document; `None` stands for UTF-8. With `encoding_rs`, it is
/// `&|query| encoding.encode(query).0`. A base is needed for relative
/// references only. Cost: one pass over the text; a second one for a path with a drive letter and `..`.
///
/// # Errors
///
/// When the text is no URL, or is relative and has no base to be resolved against.
///
/// ```
/// use std::borrow::Cow;
/// use frontier::reference::resolve;
///
/// let base = url::Url::parse("http://a.example/C:/x")?;
/// assert_eq!(resolve(Some(&base), "///b.example/y", None)?.as_str(), "http://b.example/y");
/// assert_eq!(resolve(Some(&base), "../y", None)?.as_str(), "http://a.example/y");
/// let latin_1: &dyn Fn(&str) -> Cow<'_, [u8]> = &|query| query.chars().map(|c| c as u8).collect();
/// assert_eq!(resolve(Some(&base), "?é", Some(latin_1))?.query(), Some("%E9"));
/// # Ok::<(), url::ParseError>(())
/// ```
pub fn resolve(base: Option<&Url>, text: &str, encode_query: EncodingOverride<'_>) -> Result<Url, ParseError> {
    let text = with_two_slashes(base, text);
    let parse = |base: Option<&Url>, text: &str| {
        let options = Url::options().base_url(base).encoding_override(encode_query);
        options.parse(text)
    };
    let url = parse(base, &text)?;
    if !has_drive_letter(&url) {
        return Ok(url);
    }
    // The parser stops at a drive letter only where it resolves `..`, so it is given none.
    let base = base.map(|base| with_path(base.clone(), &hide_double_dots(base.path())));
    let url = parse(base.as_ref(), &hide_in_reference(&text))?;
    let path = resolve_hidden(url.path());
    Ok(with_path(url, &path))
}

fn with_two_slashes<'a>(base: Option<&Url>, text: &'a str) -> Cow<'a, str> {
    // Most references begin with a letter, a digit or a dot.
    if text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.') {
        return Cow::Borrowed(text);
    }
    // Controls and spaces before a URL do not count, tabs and newlines nowhere.
    let mut slashes = 0;
    let host = text
        .trim_start_matches(|c: char| c <= ' ')
        .trim_start_matches(|c: char| match c {
            '/' | '\\' => {
                slashes += 1;
                true
            }
            _ => is_tab_or_newline(c),
        });
    if slashes > 2 && base.is_some_and(|base| has_slashes(base.scheme())) {
        Cow::Owned(format!("//{host}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Says whether URLs of this scheme have a host, and backslashes for slashes; `file`, which may have drive letters, is left out.
fn has_slashes(scheme: &str) -> bool {
    matches!(scheme, "http" | "https" | "ftp" | "ws" | "wss")
}

fn is_tab_or_newline(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r')
}

/// Says whether a path holds a segment that the parser takes for a drive letter.
fn has_drive_letter(url: &Url) -> bool {
    let is_drive = |segment: &str| {
        let &[letter, sign] = segment.as_bytes() else {
            return false;
        };
        letter.is_ascii_alphabetic() && matches!(sign, b':' | b'|')
    };
    let path = url.path();
    // Most paths have neither sign, and are not split.
    path.contains([':', '|']) && has_slashes(url.scheme()) && path.split('/').any(is_drive)
}

fn with_path(mut url: Url, path: &str) -> Url {
    url.set_path(path);
    url
}

/// Hides the double-dot segments of a reference from the parser.
fn hide_in_reference(text: &str) -> String {
    let mut text = text.replace(is_tab_or_newline, "");
    text.truncate(text.trim_end_matches(|c| c <= ' ').len());
    let text = text.trim_start_matches(|c| c <= ' ');
    let (path, rest) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
    // `http:../x` is a relative reference, too.
    let scheme = path.find([':', '/', '\\']).filter(|&at| is_scheme(path, at));
    let (scheme, path) = path.split_at(scheme.map_or(0, |at| at + 1));
    format!("{scheme}{}{rest}", hide_double_dots(path))
}

/// Says whether what comes before this place is a scheme, and the place its colon.
fn is_scheme(text: &str, colon: usize) -> bool {
    let (scheme, rest) = text.split_at(colon);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    rest.starts_with(':') && scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_part)
}

/// Writes each double-dot segment as three dots, and one of three dots or more with one dot more.
fn hide_double_dots(path: &str) -> String {
    let hide = |piece: &str| {
        let (segment, slash) = piece.split_at(piece.trim_end_matches(['/', '\\']).len());
        let is_double_dot = matches!(segment.to_ascii_lowercase().as_str(), ".." | ".%2e" | "%2e." | "%2e%2e");
        match segment {
            _ if is_double_dot => format!("...{slash}"),
            _ if is_hidden(segment) => format!("{segment}.{slash}"),
            _ => piece.to_owned(),
        }
    };
    path.split_inclusive(['/', '\\']).map(hide).collect()
}

fn is_hidden(segment: &str) -> bool {
    segment.len() > 2 && segment.bytes().all(|byte| byte == b'.')
}

/// Resolves the double-dot segments that were hidden.
fn resolve_hidden(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    let mut pieces = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = pieces.next() {
        match segment {
            "..." => {
                segments.pop();
                if pieces.peek().is_none() {
                    segments.push("");
                }
            }
            _ if is_hidden(segment) => segments.push(segment.get(1..).unwrap_or_default()),
            _ => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}
