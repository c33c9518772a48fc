//! Hostile pages.

use super::server::{ReceivedRequest, Script, html};

/// A page with more links than the limit.
pub(crate) fn a_million_links(request: &ReceivedRequest) -> Script {
    if request.target != "/" {
        return Script::say(html("ok"));
    }
    let links: String = (0..100_000).map(|n| format!("<a href=/{n}>")).collect();
    Script::say(html(links))
}

pub(crate) fn a_url_of_a_megabyte(_: &ReceivedRequest) -> Script {
    Script::say(html(format!("<a href=/{}>x</a><a href=/short>", "x".repeat(1_000_000))))
}

pub(crate) fn deep_nesting(_: &ReceivedRequest) -> Script {
    Script::say(html(format!(
        "<a href=/before>{}<a href=/after>",
        "<div>".repeat(100_000)
    )))
}

pub(crate) fn an_attribute_flood(_: &ReceivedRequest) -> Script {
    let attributes: String = (0..100_000).map(|n| format!(" a{n}=b")).collect();
    Script::say(html(format!("<a href=/before><p{attributes}><a href=/after>")))
}

/// A page with elements that never end.
pub(crate) fn an_open_end(_: &ReceivedRequest) -> Script {
    Script::say(html(format!(
        "<a href=/before><!-- {} <a href='{}",
        "- ".repeat(200_000),
        "x".repeat(100_000)
    )))
}

/// A body of pseudo-random bytes.
pub(crate) fn noise(_: &ReceivedRequest) -> Script {
    let bytes: Vec<u8> = (0..400_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    Script::say(html(bytes))
}

/// A page that links to two new hosts.
pub(crate) fn infinite_subdomains(request: &ReceivedRequest) -> Script {
    let host = &request.host;
    Script::say(html(format!(
        "<a href=http://a.{host}/></a><a href=http://b.{host}/></a>"
    )))
}

/// A page of a calendar, which links to the next day.
pub(crate) fn a_calendar(request: &ReceivedRequest) -> Script {
    let day: u64 = request
        .target
        .rsplit('=')
        .next()
        .and_then(|day| day.parse().ok())
        .unwrap_or(0);
    Script::say(html(format!("<a href=/calendar?day={}>tomorrow</a>", day + 1)))
}

/// A page with a relative link that repeats a part of its path.
pub(crate) fn a_repeating_path(_: &ReceivedRequest) -> Script {
    Script::say(html("<a href=about/us/>about us</a>"))
}

/// A page with a link that has a user name and a password.
pub(crate) fn credentials_in_a_link(request: &ReceivedRequest) -> Script {
    Script::say(html(format!("<a href=http://user:secret@{}/inside>", request.host)))
}
