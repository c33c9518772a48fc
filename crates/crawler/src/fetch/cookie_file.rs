//! Cookies from a file in the Netscape format, as curl and the exports of browsers write it.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use cookie_store::Cookie;
use httpdate::fmt_http_date;
use siphasher::sip::SipHasher13;
use url::{Host, Url};

use super::headers::{header_bytes, text_of};

/// How lines of cookies start that scripts may not read; they are no comments.
const HTTP_ONLY: &str = "#HttpOnly_";

/// The last second of the year 9999: HTTP has no later date.
const LATEST_END: u64 = 253_402_300_799;

/// The cookies of a file, to start a crawl from ([`HttpOptions::cookie_file`](crate::HttpOptions::cookie_file)).
///
/// Each line is a cookie of seven fields with tabs between them: host, whether subdomains get it too (`TRUE` or `FALSE`), path,
/// whether it needs https, end of life in seconds since 1970 (0 or less: end of the session), name, value. A dot before the host means nothing, a
/// line that starts with `#HttpOnly_` is a cookie, and any other line that starts with `#` is a comment. Expired cookies are left out.
/// Bytes above ASCII in names and values are sent as they are in the file.
///
/// A host gets its cookies on every port and, unless they need https, without TLS too, as with curl. What a site sets later stays
/// with the origin that set it. A clone is cheap.
#[derive(Clone, Default)]
pub struct CookieFile {
    cookies: Arc<[Cookie<'static>]>,
    /// The hash of its text; `None` without a file. Later versions of this program must have the same, because it is stored.
    pub(super) hash: Option<u64>,
}

/// Why a file of cookies cannot be used. Cookies are secrets, so no message has a value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CookieFileError {
    /// It cannot be read.
    #[error("the cookie file {path} cannot be read: {source}")]
    Unreadable {
        /// Which file.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// A line is no cookie.
    #[error("line {line} of the cookie file {path} {what}")]
    Line {
        /// Which file.
        path: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl CookieFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or has a line that is no cookie.
    pub fn open(path: &Path) -> Result<Self, CookieFileError> {
        let name = path.display().to_string();
        match fs::read(path) {
            Ok(text) => Self::parse(&text, &name),
            Err(source) => Err(CookieFileError::Unreadable { path: name, source }),
        }
    }

    /// Reads the text of a file; `path` is its name in errors.
    ///
    /// # Errors
    ///
    /// A line that is no cookie.
    pub fn parse(text: impl AsRef<[u8]>, path: &str) -> Result<Self, CookieFileError> {
        let bytes = text.as_ref();
        let text = text_of(bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes));
        let mut cookies = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.strip_prefix(HTTP_ONLY).unwrap_or(line);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            cookies.push(read_line(line).map_err(|what| CookieFileError::Line {
                path: path.to_owned(),
                line: index + 1,
                what,
            })?);
        }
        cookies.retain(|cookie| !cookie.is_expired());
        Ok(Self {
            cookies: cookies.into(),
            hash: Some(SipHasher13::new().hash(bytes)),
        })
    }

    pub(super) fn of_host(&self, url: &Url) -> impl Iterator<Item = &Cookie<'static>> {
        self.cookies.iter().filter(|cookie| cookie.domain.matches(url))
    }
}

impl fmt::Debug for CookieFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CookieFile({} cookies)", self.cookies.len())
    }
}

/// Reads a line, as [`text_of`] its bytes.
fn read_line(line: &str) -> Result<Cookie<'static>, &'static str> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [host, subdomains, path, secure, expires, name, value] = match fields[..] {
        [a, b, c, d, e, f, g] => [a, b, c, d, e, f, g],
        // Some editors cut the tab before an empty value.
        [a, b, c, d, e, f] => [a, b, c, d, e, f, ""],
        _ => return Err("does not have seven fields with tabs between them"),
    };
    let is_plain = |text: &str| !text.contains(|c: char| c == ';' || c.is_control());
    let no_cookie = "has a name, value or path that no cookie can have";
    if ![path, name, value].into_iter().all(is_plain) || name.contains('=') || name.trim().is_empty() {
        return Err(no_cookie);
    }
    let no_host = "does not start with a host";
    let host = String::from_utf8(header_bytes(host.strip_prefix('.').unwrap_or(host))).map_err(|_| no_host)?;
    let host = Host::parse(&host).map_err(|_| no_host)?;
    let flag = |text: &str| match text {
        "TRUE" | "true" => Ok(true),
        "FALSE" | "false" => Ok(false),
        _ => Err("has a second or fourth field that is neither TRUE nor FALSE"),
    };
    let (subdomains, is_secure) = (flag(subdomains)?, flag(secure)?);
    if !path.starts_with('/') {
        return Err("has a path that does not start with /");
    }
    // Some exports have fractions of seconds.
    let (whole, fraction) = expires.split_once('.').unwrap_or((expires, ""));
    let expires = whole.parse::<i64>().ok();
    let expires = expires
        .filter(|_| fraction.bytes().all(|byte| byte.is_ascii_digit()))
        .ok_or("has an end of life that is no number of seconds")?;
    let mut set_cookie = format!("{name}={value}; Path={path}");
    if subdomains && matches!(host, Host::Domain(_)) {
        set_cookie += &format!("; Domain={host}");
    }
    if is_secure {
        set_cookie += "; Secure";
    }
    if expires > 0 {
        let end = UNIX_EPOCH + Duration::from_secs(expires.unsigned_abs().min(LATEST_END));
        set_cookie += &format!("; Expires={}", fmt_http_date(end));
    }
    let url = Url::parse(&format!("https://{host}/")).map_err(|_| no_host)?;
    // As if the host had set it.
    Ok(Cookie::parse(set_cookie, &url).map_err(|_| no_cookie)?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_host(file: &CookieFile, url: &str) -> Vec<String> {
        let url = Url::parse(url).unwrap();
        let mut found: Vec<String> = file.of_host(&url).map(|cookie| cookie.to_string()).collect();
        found.sort();
        found
    }

    #[test]
    fn the_lines_of_curl_and_of_browsers_are_read() {
        let text = "\u{feff}# Netscape HTTP Cookie File\r\n\r\n\
            example.com\tFALSE\t/\tFALSE\t0\town\t1\r\n\
            #HttpOnly_.Example.com\tTRUE\t/x\tTRUE\t99999999999.5\tall\ta b\r\n\
            .example.com\tTRUE\t/\tFALSE\t-1\tempty\n\
            # example.com\tFALSE\t/\tFALSE\t0\tcomment\t1\n\
            example.com\tFALSE\t/\tFALSE\t1\texpired\t1\n\
            127.0.0.1\tTRUE\t/\tFALSE\t0\tip\t=\n";
        let file = CookieFile::parse(text, "c.txt").unwrap();
        assert_eq!(file.cookies.len(), 4);
        let own = of_host(&file, "https://example.com/");
        assert_eq!(own.len(), 3, "{own:?}");
        assert!(own[0].starts_with("all=a b; Secure; Path=/x; Domain=example.com; Expires="));
        assert_eq!(own[1..], ["empty=; Path=/; Domain=example.com", "own=1; Path=/"]);
        assert_eq!(of_host(&file, "http://www.example.com:8080/").len(), 2);
        assert_eq!(of_host(&file, "http://127.0.0.1/"), ["ip==; Path=/"]);
        for other in ["http://badexample.com/", "http://com/", "http://1.127.0.0.1.example/"] {
            assert!(of_host(&file, other).is_empty(), "{other}");
        }
    }

    #[test]
    fn bytes_above_ascii_are_kept_as_they_are_in_the_file() {
        // UTF-8, Latin-1, and bytes that are neither text nor a control character of HTTP.
        for bytes in [&b"caf\xc3\xa9"[..], b"caf\xe9", b"\x80\x9f\xff"] {
            let text = [b"a.example\tTRUE\t/\tFALSE\t0\t", bytes, b"\t", bytes, b"\n"].concat();
            let file = CookieFile::parse(text, "c.txt").unwrap();
            let [cookie] = &of_host(&file, "http://a.example/")[..] else {
                panic!()
            };
            let expected = [bytes, b"=", bytes, b"; Path=/; Domain=a.example"].concat();
            assert_eq!(header_bytes(cookie), expected);
        }
        let file = CookieFile::parse("b\u{fc}cher.example\tFALSE\t/\tFALSE\t0\ta\t1\n", "c.txt").unwrap();
        assert_eq!(of_host(&file, "http://xn--bcher-kva.example/").len(), 1);
    }

    #[test]
    fn a_bad_line_is_named_by_file_and_number_without_its_value() {
        for (line, what) in [
            ("example.com FALSE / FALSE 0 a secret", "seven fields"),
            ("example.com\tFALSE\t/\tFALSE\t0\ta\tsecret\tb", "seven fields"),
            ("example.com\tmaybe\t/\tFALSE\t0\ta\tsecret", "neither TRUE nor FALSE"),
            ("exa mple.com\tFALSE\t/\tFALSE\t0\ta\tsecret", "a host"),
            ("ex\u{80}ample.com\tFALSE\t/\tFALSE\t0\ta\tsecret", "a host"),
            ("example.com\tFALSE\tx\tFALSE\t0\ta\tsecret", "start with /"),
            ("example.com\tFALSE\t/\tFALSE\tsoon\ta\tsecret", "seconds"),
            ("example.com\tFALSE\t/\tFALSE\t1.999999999e+09\ta\tsecret", "seconds"),
            ("example.com\tFALSE\t/\tFALSE\t0\t\tsecret", "name"),
            ("example.com\tFALSE\t/\tFALSE\t0\ta\tsecret; Domain=x", "value"),
        ] {
            let error = CookieFile::parse(format!("# head\n{line}\n"), "c.txt").unwrap_err();
            let message = error.to_string();
            assert!(message.starts_with("line 2 of the cookie file c.txt "), "{message}");
            assert!(
                message.contains(what) && !message.contains("secret"),
                "{line}: {message}"
            );
        }
    }
}
