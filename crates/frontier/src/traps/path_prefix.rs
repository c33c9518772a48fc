//! The path prefix of a URL.

/// Returns the path prefix of a URL: what the URLs of a crawler trap share, and few other URLs do.
///
/// | URL | prefix |
/// |---|---|
/// | `http://a.example/list?page=2` | `http://a.example/list?`: all queries of a path |
/// | `http://a.example/list;jsessionid=1F` | `http://a.example/list;`: all parameters of a path |
/// | `http://a.example/calendar/2031/01/` | `http://a.example/calendar/#/#/`: any numbers in these places |
/// | `http://a.example/api/Vec.html` | `http://a.example/api/*`: the directory, but not the directories in it |
///
/// A path segment with a digit stands for all such segments; digits of percent-escapes do not count. A prefix does not include the
/// directories below it, because documentation has many similar pages in different directories.
pub(super) fn path_prefix(url: &str) -> String {
    let path_at = url
        .find("://")
        .map_or(0, |at| at + 3 + url[at + 3..].find('/').unwrap_or(url.len() - at - 3));
    let (origin, rest) = url.split_at(path_at);
    let end = rest.find(['?', ';', '#']).unwrap_or(rest.len());
    let (path, tail) = rest.split_at(end);
    let mut prefix = String::with_capacity(url.len());
    prefix.push_str(origin);
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        match part {
            "" => {}
            _ if has_digit(part) => prefix.push('#'),
            _ if is_last && tail.is_empty() => prefix.push('*'),
            _ => prefix.push_str(part),
        }
        if !is_last {
            prefix.push('/');
        }
    }
    prefix.extend(tail.chars().next());
    prefix
}

fn has_digit(part: &str) -> bool {
    let mut bytes = part.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'0'..=b'9' => return true,
            b'%' => {
                bytes.next();
                bytes.next();
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_one_trap_have_one_prefix() {
        for (url, prefix) in [
            ("http://a.example/", "http://a.example/"),
            ("http://a.example/about", "http://a.example/*"),
            ("http://a.example/calendar/2031/01/", "http://a.example/calendar/#/#/"),
            ("http://a.example/calendar/2031/01", "http://a.example/calendar/#/#"),
            ("http://a.example/calendar/about", "http://a.example/calendar/*"),
            ("http://a.example/list?page=2", "http://a.example/list?"),
            ("http://a.example/list7?page=2", "http://a.example/#?"),
            ("http://a.example/shop/;sid=2/x?y", "http://a.example/shop/;"),
            ("http://a.example/(S(k3x))/a.aspx", "http://a.example/#/*"),
            ("http://a.example/%E6%97%A5/%41", "http://a.example/%E6%97%A5/*"),
            ("http://a.example/%E6%97%A5%2", "http://a.example/*"),
            ("http://a.example:8080/x1", "http://a.example:8080/#"),
            ("http://[::1]/x/y", "http://[::1]/x/*"),
            ("http://a.example", "http://a.example"),
            ("?;#", "?"),
            ("", ""),
        ] {
            assert_eq!(path_prefix(url), prefix, "{url}");
        }
    }
}
