//! The ids of the origins of one host.

use url::Url;

use crate::entry::{origin_text, split_scheme};
use crate::url::{HostKey, Origin};

/// The id of an origin within its host.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) struct OriginId {
    /// The number of dots at the end of the host name. They distinguish origins, but not hosts.
    dots: u32,
    port: u16,
    is_secure: bool,
}

impl OriginId {
    pub(crate) fn of(url: &str) -> Self {
        let (scheme, authority) = split_scheme(origin_text(url));
        let is_secure = scheme == "https://";
        let colon = authority.bytes().rposition(|byte| byte == b':');
        let (name, port) = match colon.filter(|_| !authority.ends_with(']')) {
            Some(colon) => (&authority[..colon], authority[colon + 1..].parse().ok()),
            None => (authority, None),
        };
        let dots = name.bytes().rev().take_while(|byte| *byte == b'.').count();
        Self {
            dots: u32::try_from(dots).unwrap_or(u32::MAX),
            port: port.unwrap_or(if is_secure { 443 } else { 80 }),
            is_secure,
        }
    }

    pub(crate) fn text(self, host: &HostKey) -> String {
        let mut text = String::with_capacity(host.as_str().len() + 16);
        let (scheme, usual) = if self.is_secure { ("https", 443) } else { ("http", 80) };
        text.push_str(scheme);
        text.push_str("://");
        text.push_str(host.as_str());
        text.extend((0..self.dots).map(|_| '.'));
        if self.port != usual {
            text.push(':');
            text.push_str(&self.port.to_string());
        }
        text
    }

    pub(crate) fn origin(self, host: &HostKey) -> Option<Origin> {
        // Looks at hosts call it each second, and the host is known: `Origin::of` would find it once more.
        let url = Url::parse(&self.text(host)).ok()?;
        Some(Origin::new(url, host.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_id_parses_its_own_text() {
        for text in [
            "http://a.example",
            "https://a.example",
            "http://a.example:443",
            "https://a.example.:8443",
            "http://[::1]",
            "https://[::1]:80",
            "http://127.0.0.1:65535",
        ] {
            let host = HostKey::of(&Url::parse(text).unwrap()).unwrap();
            assert_eq!(OriginId::of(text).text(&host), text);
            assert_eq!(OriginId::of(&format!("{text}/path?q#f")).text(&host), text);
        }
    }
}
