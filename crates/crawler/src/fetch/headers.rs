//! What the crawl reads in the headers of an answer.

use std::time::{Duration, SystemTime};

use page::media_type;
use percent_encoding::{AsciiSet, percent_encode};
use reqwest::Version;
use reqwest::header::{
    CONNECTION, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED, LOCATION, REFRESH, RETRY_AFTER,
};

use frontier::Validators;

use super::{MAX_VALIDATOR_BYTES, Response};

/// Where bytes above ASCII lie in such texts as [`text_of`] makes, in the private use area.
const RAW_BYTES: u32 = 0xe000;

/// Reads the head of an answer.
pub(super) fn read(status: u16, headers: &HeaderMap) -> Response {
    Response {
        status,
        content_type: content_type(headers),
        location: {
            // An empty one is none, as for curl.
            let location = headers.get(LOCATION).filter(|value| !value.is_empty());
            location.map(|value| escaped(value.as_bytes()))
        },
        refresh: headers.get(REFRESH).map(|value| escaped(value.as_bytes())),
        retry_after: text(headers, &RETRY_AFTER).and_then(|value| parse_retry_after(&value)),
        robots_tags: headers.get_all("x-robots-tag").iter().map(latin_1).collect(),
        validators: Validators {
            etag: validator(headers, &ETAG),
            last_modified: validator(headers, &LAST_MODIFIED),
        },
        ..Response::default()
    }
}

/// Says whether the connection of an answer may serve further requests (RFC 9112, section 9.3).
pub(super) fn keeps_alive(answer: &reqwest::Response) -> bool {
    let mut options = answer.headers().get_all(CONNECTION).iter().map(HeaderValue::as_bytes);
    answer.version() > Version::HTTP_10 && !options.any(|option| option.eq_ignore_ascii_case(b"close"))
}

/// Returns how many bytes the headers of an answer have, as HTTP/1.1 would send them.
pub(super) fn total_bytes(headers: &HeaderMap) -> usize {
    let separators = ": \r\n".len();
    let bytes = |name: &HeaderName, value: &[u8]| name.as_str().len() + value.len() + separators;
    headers.iter().map(|(name, value)| bytes(name, value.as_bytes())).sum()
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    let values: Vec<_> = headers.get_all(CONTENT_TYPE).iter().map(latin_1).collect();
    (!values.is_empty()).then(|| media_type::last_valid(&values.join(",")).to_owned())
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    // Latin-1, as browsers read header bytes (Fetch standard, "isomorphic decode").
    headers.get(name).map(latin_1)
}

fn validator(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    text(headers, name).filter(|value| value.len() <= MAX_VALIDATOR_BYTES)
}

fn latin_1(value: &HeaderValue) -> String {
    value.as_bytes().iter().map(|&byte| char::from(byte)).collect()
}

/// Reads a URL: bytes beyond ASCII are escaped as they are, as browsers do, for most are a path in bare UTF-8.
fn escaped(location: &[u8]) -> String {
    percent_encode(location, &AsciiSet::EMPTY).to_string()
}

/// Returns the bytes of a header as text, for the cookie store. Those above ASCII get a character each of the private use area, which is no
/// white space and has no case: they are kept and sent as they were received.
pub(super) fn text_of(bytes: &[u8]) -> String {
    let character = |&byte: &u8| match byte {
        0..=0x7f => Some(char::from(byte)),
        _ => char::from_u32(RAW_BYTES + u32::from(byte)),
    };
    bytes.iter().filter_map(character).collect()
}

pub(super) fn header_bytes(text: &str) -> Vec<u8> {
    let byte = |c: char| u8::try_from(u32::from(c).checked_sub(RAW_BYTES)?).ok();
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte(c) {
            Some(raw) => bytes.push(raw),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// Reads `Retry-After`: seconds, or an HTTP date.
fn parse_retry_after(value: &str) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only a number that is too large cannot be read.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_both_forms() {
        assert_eq!(parse_retry_after(" 120 "), Some(Duration::from_secs(120)));
        let in_an_hour = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3600));
        let read = parse_retry_after(&in_an_hour).unwrap().as_secs();
        assert!((3590..=3600).contains(&read), "{read}");
        assert_eq!(parse_retry_after("Thu, 01 Jan 1970 00:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(
            parse_retry_after("99999999999999999999"),
            Some(Duration::from_secs(u64::MAX))
        );
        assert_eq!(parse_retry_after(""), None);
        assert_eq!(parse_retry_after("soon"), None);
        assert_eq!(parse_retry_after("-1"), None);
    }
}
