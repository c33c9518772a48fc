//! Cookies from a file in the Netscape format, as curl and the exports of browsers write it.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use siphasher::sip::SipHasher13;
use url::{Host, Url};

/// How lines of cookies start that scripts may not read; they are no comments.
const HTTP_ONLY: &str = "#HttpOnly_";

/// The cookies of a file, to start a crawl from ([`HttpOptions::cookie_file`](crate::HttpOptions::cookie_file)).
///
/// Each line is a cookie of seven fields with tabs between them: host, whether subdomains get it too (`TRUE` or `FALSE`), path,
/// whether it needs https, end of life in seconds since 1970 (0 or less: end of the session), name, value. A dot before the host means nothing, a
/// line that starts with `#HttpOnly_` is a cookie, and any other line that starts with `#` is a comment. Expired cookies are left out.
///
/// A host gets its cookies on every port and, unless they need https, without TLS too, as with curl. What a site sets later stays
/// with the origin that set it. A clone is cheap.
#[derive(Clone, Default)]
pub struct CookieFile {
    /// By host. Those that have expired are there, too, so that time does not change their hash.
    cookies: Arc<HashMap<String, Vec<FileCookie>>>,
    /// How many have not expired.
    valid: usize,
}

/// One line.
struct FileCookie {
    subdomains: bool,
    /// As a server would set it; `None` if it has expired.
    set_cookie: Option<String>,
    /// The hash of its line.
    hash: u64,
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
    /// A file that cannot be read, or is not UTF-8, or has a line that is no cookie.
    pub fn open(path: &Path) -> Result<Self, CookieFileError> {
        let name = path.display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, &name),
            Err(source) => Err(CookieFileError::Unreadable { path: name, source }),
        }
    }

    /// Reads the text of a file; `path` is its name in errors.
    ///
    /// # Errors
    ///
    /// A line that is no cookie.
    pub fn parse(text: &str, path: &str) -> Result<Self, CookieFileError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let mut cookies: HashMap<String, Vec<FileCookie>> = HashMap::new();
        let mut valid = 0;
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.strip_prefix(HTTP_ONLY).unwrap_or(line);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let read = read_line(line, now).map_err(|what| CookieFileError::Line {
                path: path.to_owned(),
                line: index + 1,
                what,
            });
            let (host, cookie) = read?;
            valid += usize::from(cookie.set_cookie.is_some());
            cookies.entry(host).or_default().push(cookie);
        }
        Ok(Self {
            cookies: Arc::new(cookies),
            valid,
        })
    }

    /// Returns how many cookies it has; expired ones do not count.
    pub fn len(&self) -> usize {
        self.valid
    }

    /// Says whether it has none.
    pub fn is_empty(&self) -> bool {
        self.valid == 0
    }

    /// Returns the `Set-Cookie` values of the cookies for a host, whatever their paths. Costs a look-up per label of its name.
    pub(super) fn set_cookies<'f>(&'f self, url: &'f Url) -> impl Iterator<Item = &'f str> {
        self.of_host(url).filter_map(|cookie| cookie.set_cookie.as_deref())
    }

    /// Returns a hash of the cookies for a host, whatever their order and the time; `None` if there are none. Later versions of this
    /// program must return the same, because it is stored.
    pub(super) fn hash_for_host(&self, url: &Url) -> Option<u64> {
        let mut hashes: Vec<u64> = self.of_host(url).map(|cookie| cookie.hash).collect();
        hashes.sort_unstable();
        let bytes: Vec<u8> = hashes.into_iter().flat_map(u64::to_le_bytes).collect();
        (!bytes.is_empty()).then(|| SipHasher13::new().hash(&bytes))
    }

    fn of_host<'f>(&'f self, url: &'f Url) -> impl Iterator<Item = &'f FileCookie> {
        let host = url.host_str().unwrap_or_default();
        let labels = if matches!(url.host(), Some(Host::Domain(_))) {
            host
        } else {
            ""
        };
        let parents = labels.match_indices('.').map(|(at, _)| &host[at + 1..]);
        let own = self.cookies.get(host).into_iter().flatten();
        let inherited = parents.filter_map(|parent| self.cookies.get(parent)).flatten();
        own.chain(inherited.filter(|cookie| cookie.subdomains))
    }
}

impl fmt::Debug for CookieFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CookieFile({} cookies)", self.len())
    }
}

/// Reads a line: the host, and the cookie.
fn read_line(line: &str, now: i64) -> Result<(String, FileCookie), &'static str> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [host, subdomains, path, secure, expires, name, value] = match fields[..] {
        [a, b, c, d, e, f, g] => [a, b, c, d, e, f, g],
        // Some editors cut the tab before an empty value.
        [a, b, c, d, e, f] => [a, b, c, d, e, f, ""],
        _ => return Err("does not have seven fields with tabs between them"),
    };
    let is_plain = |text: &str| !text.contains(|c: char| c == ';' || c.is_control());
    if ![path, name, value].into_iter().all(is_plain) || name.contains('=') || name.trim().is_empty() {
        return Err("has a name, value or path that no cookie can have");
    }
    let host = Host::parse(host.strip_prefix('.').unwrap_or(host)).map_err(|_| "does not start with a host")?;
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
    let whole = expires.split_once('.').map_or(expires, |(whole, _)| whole);
    let expires: i64 = whole
        .parse()
        .map_err(|_| "has an end of life that is no number of seconds")?;
    let mut set_cookie = format!("{name}={value}; Path={path}");
    if subdomains && matches!(host, Host::Domain(_)) {
        set_cookie += &format!("; Domain={host}");
    }
    if is_secure {
        set_cookie += "; Secure";
    }
    if expires > 0 {
        set_cookie += &format!("; Max-Age={}", expires - now);
    }
    let has_expired = expires > 0 && expires <= now;
    let cookie = FileCookie {
        subdomains,
        set_cookie: (!has_expired).then_some(set_cookie),
        hash: SipHasher13::new().hash(line.as_bytes()),
    };
    Ok((host.to_string(), cookie))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_host(file: &CookieFile, url: &str) -> Vec<String> {
        let url = Url::parse(url).unwrap();
        let mut found: Vec<String> = file.set_cookies(&url).map(str::to_owned).collect();
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
        assert_eq!(file.len(), 4);
        let own = of_host(&file, "https://example.com/");
        assert_eq!(own.len(), 3, "{own:?}");
        assert!(own[0].starts_with("all=a b; Path=/x; Domain=example.com; Secure; Max-Age="));
        assert_eq!(own[1..], ["empty=; Path=/; Domain=example.com", "own=1; Path=/"]);
        assert_eq!(of_host(&file, "http://www.example.com:8080/").len(), 2);
        assert_eq!(of_host(&file, "http://127.0.0.1/"), ["ip==; Path=/"]);
        for other in ["http://badexample.com/", "http://com/", "http://1.127.0.0.1.example/"] {
            assert!(of_host(&file, other).is_empty(), "{other}");
        }
    }

    #[test]
    fn the_hash_for_a_host_follows_from_its_cookies_alone() {
        let hash = |lines: &[&str], url: &str| {
            let file = CookieFile::parse(&lines.join("\n"), "c.txt").unwrap();
            file.hash_for_host(&Url::parse(url).unwrap())
        };
        let a = "a.example\tFALSE\t/\tFALSE\t0\ta\t1";
        let expired = "a.example\tFALSE\t/\tFALSE\t1\texpired\t1";
        let other = "b.example\tFALSE\t/\tFALSE\t0\tb\t1";
        let both = hash(&[a, expired], "http://a.example/");
        assert_eq!(hash(&["# new", other, expired, a], "http://a.example:81/x"), both);
        assert_ne!(hash(&[a], "http://a.example/"), both);
        assert_ne!(hash(&[&a.replace("\t1", "\t2"), expired], "http://a.example/"), both);
        assert_eq!(hash(&[a, expired], "http://b.example/"), None);
        // It is stored, so it must not change.
        assert_eq!(hash(&[a], "http://a.example/"), Some(16_223_040_354_422_000_972));
    }

    #[test]
    fn a_bad_line_is_named_by_file_and_number_without_its_value() {
        for (line, what) in [
            ("example.com FALSE / FALSE 0 a secret", "seven fields"),
            ("example.com\tFALSE\t/\tFALSE\t0\ta\tsecret\tb", "seven fields"),
            ("example.com\tmaybe\t/\tFALSE\t0\ta\tsecret", "neither TRUE nor FALSE"),
            ("exa mple.com\tFALSE\t/\tFALSE\t0\ta\tsecret", "a host"),
            ("example.com\tFALSE\tx\tFALSE\t0\ta\tsecret", "start with /"),
            ("example.com\tFALSE\t/\tFALSE\tsoon\ta\tsecret", "seconds"),
            ("example.com\tFALSE\t/\tFALSE\t0\t\tsecret", "name"),
            ("example.com\tFALSE\t/\tFALSE\t0\ta\tsecret; Domain=x", "value"),
        ] {
            let error = CookieFile::parse(&format!("# head\n{line}\n"), "c.txt").unwrap_err();
            let message = error.to_string();
            assert!(message.starts_with("line 2 of the cookie file c.txt "), "{message}");
            assert!(
                message.contains(what) && !message.contains("secret"),
                "{line}: {message}"
            );
        }
    }
}
