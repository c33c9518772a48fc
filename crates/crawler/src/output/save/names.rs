//! The name of the file for a URL. It is safe on every file system, for every URL.

use std::fmt::Write as _;

use page::fingerprint::content_hash;
use url::Url;

/// The maximum length of a file or folder name, without a hash or an extension. File systems accept 255 bytes, encrypted ones 143.
const MAX_NAME_BYTES: usize = 110;

/// The maximum length of a path below the folder. Systems accept 4096 bytes, including the folder.
const MAX_PATH_BYTES: usize = 1000;

/// The maximum length of an extension that is kept when a name is shortened, including its dot.
const MAX_EXTENSION_BYTES: usize = 9;

/// The bytes that are not escaped, besides letters and digits. The slash and the reserved `\ : * ? " < > |` of Windows are not here.
const PLAIN: &[u8] = b"-._~!$&'()+,;=@%[]";

/// The names of devices on Windows, with any extension. COM and LPT with a digit are devices too.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// The path of a saved body: folders, and the name of the file in two parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SafePath {
    pub(super) folders: Vec<String>,
    pub(super) stem: String,
    /// With its dot, or empty.
    pub(super) extension: String,
}

impl SafePath {
    pub(super) fn of(url: &str, is_html: bool) -> Self {
        let parsed = Url::parse(url).ok();
        let host = parsed.as_ref().map_or_else(|| "unknown".to_owned(), host_folder);
        let segments = parsed.as_ref().and_then(Url::path_segments);
        let mut segments: Vec<&str> = segments.map_or_else(Vec::new, Iterator::collect);
        let last = segments.pop().filter(|last| !last.is_empty()).unwrap_or("index");
        let name = match parsed.as_ref().and_then(Url::query) {
            Some(query) => format!("{last}?{query}"),
            None => last.to_owned(),
        };
        let name = escaped(&name);
        let (stem, extension) = match extension_of(&name) {
            ("", _) => (name.as_str(), ""),
            (stem, found) if !is_html || is_html_extension(found) => (stem, found),
            _ => (name.as_str(), ".html"),
        };
        let extension = match extension {
            "" if is_html => ".html",
            other => other,
        };
        let folders = std::iter::once(host).chain(segments.into_iter().map(|name| shortened(&escaped(name))));
        let path = Self {
            folders: folders.collect(),
            stem: shortened(stem),
            extension: extension.to_owned(),
        };
        if path.len() <= MAX_PATH_BYTES {
            return path;
        }
        Self {
            folders: path.folders.into_iter().take(1).collect(),
            stem: format!("long~{}", hash_of(url)),
            ..path
        }
    }

    fn len(&self) -> usize {
        let folders: usize = self.folders.iter().map(|name| name.len() + 1).sum();
        folders + self.stem.len() + self.extension.len()
    }
}

/// The name itself, and then without end others for the case that it is in use: each has another hash, of `about`.
pub(super) fn variants(stem: &str, about: &str) -> impl Iterator<Item = String> {
    (0_u64..).map(move |attempt| match attempt {
        0 => stem.to_owned(),
        _ => format!("{stem}~{}", short_hash(&format!("{about} {attempt}"))),
    })
}

fn host_folder(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let folder = match url.port() {
        Some(port) => format!("{host}_{port}"),
        None => host.to_owned(),
    };
    shortened(&escaped(&folder))
}

/// Percent-escapes a name, so that it is not a path, a hidden file, `..` or a device.
fn escaped(name: &str) -> String {
    if name.is_empty() {
        return "%2F".to_owned();
    }
    let last = name.len() - 1;
    let is_device = is_device(name);
    let mut safe = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || PLAIN.contains(&byte);
        // Windows drops a dot at the end. A dot at the start hides a file, and programs read .git and .htaccess.
        let is_unsafe_edge = byte == b'.' && (at == 0 || at == last) || is_device && at == 0;
        if is_plain && !is_unsafe_edge {
            safe.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(safe, "%{byte:02X}");
        }
    }
    safe
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_numbered = |kind| {
        let number = stem.strip_prefix(kind);
        number.is_some_and(|number: &str| number.len() == 1 && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    DEVICES.contains(&stem.as_str()) || is_numbered("com") || is_numbered("lpt")
}

/// Shortens a name that is too long, and adds a hash of the whole name.
fn shortened(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let hash = short_hash(name);
    let kept: String = name.chars().take(MAX_NAME_BYTES - hash.len() - 1).collect();
    format!("{kept}~{hash}")
}

/// Splits a name before its extension, if it has a short alphanumeric one.
fn extension_of(name: &str) -> (&str, &str) {
    let at = name.rfind('.').unwrap_or(name.len());
    let (stem, extension) = name.split_at(at);
    let is_usual = extension.len() > 1
        && extension.len() <= MAX_EXTENSION_BYTES
        && extension.bytes().skip(1).all(|byte| byte.is_ascii_alphanumeric());
    if is_usual { (stem, extension) } else { (name, "") }
}

fn is_html_extension(extension: &str) -> bool {
    [".html", ".htm", ".xhtml"]
        .iter()
        .any(|html| extension.eq_ignore_ascii_case(html))
}

fn hash_of(text: &str) -> String {
    content_hash(text.as_bytes()).map_or_else(String::new, |hash| hash.to_string())
}

fn short_hash(text: &str) -> String {
    hash_of(text).chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(url: &str, content_type: &str) -> String {
        let SafePath {
            mut folders,
            stem,
            extension,
        } = SafePath::of(url, content_type.starts_with("text/html"));
        folders.push(stem + &extension);
        folders.join("/")
    }

    #[test]
    fn a_file_is_named_after_its_url() {
        for (url, kind, expected) in [
            ("https://a.example/", "text/html", "a.example/index.html"),
            (
                "https://a.example:8080/x/",
                "text/html; charset=utf-8",
                "a.example_8080/x/index.html",
            ),
            ("https://a.example/about", "text/html", "a.example/about.html"),
            ("https://a.example/about.htm", "text/html", "a.example/about.htm"),
            (
                "https://a.example/p.php?id=1&x=/y",
                "text/html",
                "a.example/p.php%3Fid=1&x=%2Fy.html",
            ),
            ("https://a.example/?q", "text/html", "a.example/index%3Fq.html"),
            ("https://a.example/i/logo.png", "image/png", "a.example/i/logo.png"),
            ("https://a.example/feed/", "application/xml", "a.example/feed/index"),
            ("https://a.example/v1.2", "text/html", "a.example/v1.2.html"),
            ("https://a.example/caf%C3%A9", "text/plain", "a.example/caf%C3%A9"),
            ("http://[::1]:81/x", "text/plain", "[%3A%3A1]_81/x"),
        ] {
            assert_eq!(path(url, kind), expected, "{url}");
        }
    }

    #[test]
    fn no_url_gives_a_path_outside_the_folder_or_a_reserved_name() {
        for (url, expected) in [
            ("http://a/../../etc/passwd", "a/etc/passwd"),
            ("http://a/%2e%2e/%2E%2e%2fx", "a/%2E%2e%2fx"),
            ("http://a/x/..%2f..%2fy", "a/x/%2E.%2f..%2fy"),
            ("http://a/...", "a/%2E.%2E"),
            ("http://a//etc//x", "a/%2F/etc/%2F/x"),
            ("http://a/x%00y", "a/x%00y"),
            ("http://a/.git/config", "a/%2Egit/config"),
            ("http://a/C:/x", "a/C%3A/x"),
            ("http://a/a*b|c", "a/a%2Ab%7Cc"),
            ("http://a/dot./x.", "a/dot%2E/x%2E"),
            ("http://con/nul/Aux.txt", "%63on/%6Eul/%41ux.txt"),
            ("http://a/com1/lpt9.x/com10", "a/%63om1/%6Cpt9.x/com10"),
            ("not a url", "unknown/index"),
        ] {
            assert_eq!(path(url, "text/plain"), expected, "{url}");
        }
    }

    #[test]
    fn long_names_are_shortened_and_stay_different() {
        let long = "x".repeat(400);
        let name = |end: &str| path(&format!("http://a/{long}{end}.png"), "image/png");
        assert!(name("1").len() < 140 && name("1").ends_with(".png"), "{}", name("1"));
        assert_ne!(name("1"), name("2"));
        let deep = path(&format!("http://a/{}", "d/".repeat(900)), "text/html");
        assert!(deep.starts_with("a/long~") && deep.ends_with(".html"), "{deep}");
    }

    proptest! {
        #[test]
        fn every_part_of_every_path_is_a_plain_name(path in "[ -~]{0,300}", query in "([ -~]{0,300})?") {
            let url = format!("http://a.example/{path}?{query}");
            let Ok(url) = Url::parse(&url) else { return Ok(()) };
            let safe = SafePath::of(url.as_str(), true);
            let name = safe.stem.clone() + &safe.extension;
            prop_assert!(safe.len() <= MAX_PATH_BYTES + 10);
            for name in safe.folders.iter().chain([&name]) {
                prop_assert!(!name.is_empty() && name.len() <= 140, "{}", name);
                prop_assert!(!name.starts_with('.') && !name.ends_with('.') && !is_device(name), "{}", name);
                prop_assert!(!name.contains(['/', '\\', ':', '*', '?', '"', '<', '>', '|', ' ', '\0']), "{}", name);
            }
        }
    }
}
