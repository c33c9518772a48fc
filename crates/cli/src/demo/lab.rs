//! The unusual pages of the demo: unusual links, charsets, redirects, slow and failing answers, and traps.
//!
//! An experiment is a page with one unusual link to a page that nothing else links to. The target is under `/lab/found/` if a polite
//! crawler must follow the link, and under `/lab/hidden/` if it must not.

use encoding_rs::{SHIFT_JIS, UTF_8, WINDOWS_1252};
use hyper::StatusCode;

use super::page::{Address, Behaviour, Element, Host, Html, Link, Page, Place, Spelling};

/// The number of paragraphs that make about a megabyte.
const HUGE_PARAGRAPHS: usize = 2_400;
/// The forms in which the index links to each page.
const FORMS_OF_INDEX: [Spelling; 6] = [
    Spelling::Plain,
    Spelling::UpperCase,
    Spelling::SchemeRelative,
    Spelling::WithFragment("summary"),
    Spelling::WithFragment("details"),
    Spelling::WithFragment("reviews"),
];
/// The length at which the path trap ends, so that a walk without a repeat limit ends too.
const LONGEST_TRAP_BYTES: usize = 2_000;

/// Links in unusual spellings: name, path of the target, text of the attribute.
const SPELLINGS: [(&str, &str, &str); 4] = [
    ("entities", "entities?a=1&b=2", "found/entities?a=1&amp;b&#x3D;2"),
    ("named-entity", "café", "found/caf&eacute;"),
    ("dots", "dots", "./nowhere/../found/./dots"),
    ("spaces", "spaces", "\n\t  found/spaces \n"),
];
const FORMS: [(&str, Spelling); 3] = [
    ("fragment", Spelling::WithFragment("middle")),
    ("scheme-relative", Spelling::SchemeRelative),
    ("upper-case", Spelling::UpperCase),
];
/// Elements with links that a crawler follows, besides the plain anchor.
const FOLLOWED: [(&str, Place, &str); 6] = [
    ("unquoted", Place::Body, "<li><A HREF={href}>{label}</A></li>"),
    (
        "area",
        Place::Body,
        "<map name=m><area href=\"{href}\" alt=\"{label}\"></map>",
    ),
    (
        "iframe",
        Place::Body,
        "<iframe src=\"{href}\" title=\"{label}\"></iframe>",
    ),
    ("frame", Place::Frameset, "<frame src=\"{href}\">"),
    ("next", Place::Head, "<link rel=\"next\" href=\"{href}\">"),
    (
        "refresh",
        Place::Head,
        "<meta http-equiv=\"refresh\" content=\"0; url={href}\">",
    ),
];
/// Elements with links that a polite crawler does not follow.
const NOT_FOLLOWED: [(&str, &str); 5] = [
    (
        "nofollow",
        "<li><a rel=\"external NoFollow\" href=\"{href}\">{label}</a></li>",
    ),
    ("comment", "<!-- <li><a href=\"{href}\">{label}</a></li> -->"),
    (
        "script",
        "<script>const row = '<a href=\"{href}\">{label}</a>';</script>",
    ),
    ("template", "<template><a href=\"{href}\">{label}</a></template>"),
    ("textarea", "<textarea><a href=\"{href}\">{label}</a></textarea>"),
];
/// The redirects: a directory, a chain of three, a change of host, a loop, and two targets that may not be fetched.
const REDIRECTS: [(&str, StatusCode, Host, &str); 9] = [
    ("/catalog", StatusCode::MOVED_PERMANENTLY, Host::Www, "/catalog/"),
    ("/old/one", StatusCode::MOVED_PERMANENTLY, Host::Www, "/old/two"),
    ("/old/two", StatusCode::FOUND, Host::Www, "/old/three"),
    (
        "/old/three",
        StatusCode::TEMPORARY_REDIRECT,
        Host::Www,
        "/lab/found/after-redirects",
    ),
    (
        "/old/handbook",
        StatusCode::PERMANENT_REDIRECT,
        Host::Docs,
        "/moved-here",
    ),
    ("/old/ping", StatusCode::FOUND, Host::Www, "/old/pong"),
    ("/old/pong", StatusCode::FOUND, Host::Www, "/old/ping"),
    ("/old/secret", StatusCode::FOUND, Host::Private, "/"),
    ("/old/away", StatusCode::FOUND, Host::Elsewhere, "/"),
];
/// The links of the laboratory's contents page besides its experiments.
const OTHER_LINKS: [&str; 5] = [
    "/old/",
    "/loop/",
    "/calendar/2900",
    "/private/ledger.html",
    "/private/open.html",
];

type Row = (Address, Page);

/// Returns all unusual pages except the index.
pub(super) fn pages() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut contents = Page::html("Laboratory").links(OTHER_LINKS.map(|path| Host::Www.at(path)));
    for (name, page) in documents().into_iter().chain(unusual_links()) {
        let place = Host::Www.at(&format!("/lab/{name}"));
        let other_end = Page::html(format!("{}: the other end", page.title));
        rows.extend(page.links.iter().map(|link| (link.to.clone(), other_end.clone())));
        contents = contents.link(place.clone());
        rows.push((place, page));
    }
    rows.push((Host::Www.at("/lab/"), contents));
    rows.extend(redirects());
    rows.extend(private());
    rows
}

/// Returns the index, which links to every page several times and at its end to one more page, and that page.
pub(super) fn index<'a>(everything: impl Iterator<Item = &'a Address>) -> [Row; 2] {
    let end = found("end-of-index");
    let links =
        everything.flat_map(|address| FORMS_OF_INDEX.map(|form| Link::new(Element::ANCHOR, address.clone(), form)));
    let page = Page::html("Index of everything").links(links).link(end.clone());
    [
        (Host::Www.at("/index-of-everything"), page),
        (end, Page::html("The end of the index")),
    ]
}

fn found(name: &str) -> Address {
    Host::Www.at(&format!("/lab/found/{name}"))
}

fn hidden(name: &str) -> Address {
    Host::Www.at(&format!("/lab/hidden/{name}"))
}

/// Returns pages with an unusual link.
fn unusual_links() -> Vec<(&'static str, Page)> {
    let spelt = SPELLINGS.map(|(name, target, href)| (name, Link::spelt(found(target), href)));
    let formed = FORMS.map(|(name, form)| (name, Link::new(Element::ANCHOR, found(name), form)));
    let of = |element, to| Link::new(element, to, Spelling::Plain);
    let followed = FOLLOWED.map(|(name, place, markup)| (name, of(Element::followed(place, markup), found(name))));
    let not_followed = NOT_FOLLOWED.map(|(name, markup)| (name, of(Element::ignored(markup), hidden(name))));
    let links = spelt.into_iter().chain(formed).chain(followed).chain(not_followed);
    links
        .map(|(name, link)| (name, Page::html(format!("Unusual link: {name}")).link(link)))
        .collect()
}

/// Returns pages with ordinary links that are hard to fetch or to read.
fn documents() -> Vec<(&'static str, Page)> {
    let base = "<base href=\"/lab/found/\">";
    let nofollow = "<meta name=\"robots\" content=\"nofollow\">";
    let charset = "<meta charset=\"windows-1252\">";
    let page = |title, head, charset, link: Link| {
        let html = Html {
            head,
            charset,
            ..Html::of(1)
        };
        Page::styled(title, html).link(link)
    };
    let kana = Link::spelt(found("ｶﾀｶﾅ"), "found/ｶﾀｶﾅ");
    let latin = Link::spelt(found("déjà"), "found/déjà");
    let huge = Page::styled("A page of a megabyte", Html::of(HUGE_PARAGRAPHS)).link(found("end-of-huge"));
    let slow = page("A page that takes its time", "", UTF_8, found("after-slow").into());
    let unavailable = page("Unavailable at first", "", UTF_8, found("after-unavailable").into());
    let nofollow = page("Links not to be followed", nofollow, UTF_8, hidden("no-links").into());
    let base = page("A page with a base", base, UTF_8, Link::spelt(found("base"), "base"));
    vec![
        ("base", base),
        ("no-links", nofollow),
        ("shift-jis", page("ｼﾌﾄ JIS", "", SHIFT_JIS, kana)),
        ("windows-1252", page("Déjà vu", charset, WINDOWS_1252, latin)),
        ("huge", huge),
        ("slow", slow.behaviour(Behaviour::Slow)),
        ("unavailable-once", unavailable.behaviour(Behaviour::UnavailableOnce)),
    ]
}

/// Returns the redirects, the page that links to them, and their targets.
fn redirects() -> Vec<Row> {
    let old = ["one", "handbook", "ping", "secret", "away"];
    let old = old.map(|name| Host::Www.at(&format!("/old/{name}")));
    let mut rows = vec![
        (Host::Www.at("/old/"), Page::html("Old addresses").links(old)),
        (found("after-redirects"), Page::html("The end of three redirects")),
        (
            Host::Docs.at("/moved-here"),
            Page::html("A page that moved to another host"),
        ),
    ];
    rows.extend(REDIRECTS.map(|(from, status, host, to)| (Host::Www.at(from), Page::redirect(status, host.at(to)))));
    rows
}

/// Returns the pages that robots.txt forbids, and one exception.
fn private() -> Vec<Row> {
    let diary = Host::Private.at("/diary");
    vec![
        (
            Host::Www.at("/private/ledger.html"),
            Page::html("A ledger that is not for crawlers").forbidden(),
        ),
        (
            Host::Www.at("/private/open.html"),
            Page::html("The open page of a closed directory"),
        ),
        (
            Host::Private.at("/"),
            Page::html("Not for crawlers").link(diary.clone()).forbidden(),
        ),
        (diary, Page::html("A diary that is not for crawlers").forbidden()),
    ]
}

/// Returns a page of one of the two traps: the forbidden calendar, and the directory that seems to contain itself.
pub(super) fn endless_page(address: &Address) -> Option<Page> {
    if address.host != Host::Www {
        return None;
    }
    match address.path.strip_prefix("/calendar/") {
        Some(week) => Some(calendar_page(week.parse().ok()?)),
        None => loop_page(&address.path),
    }
}

fn calendar_page(week: u32) -> Page {
    let weeks = [week.saturating_sub(1), week.saturating_add(1)];
    Page::html(format!("Week {week}"))
        .links(weeks.map(|week| Link::spelt(Host::Www.at(&format!("/calendar/{week}")), week.to_string())))
        .forbidden()
}

fn loop_page(path: &str) -> Option<Page> {
    let depth = path
        .strip_suffix('/')?
        .strip_prefix('/')?
        .split('/')
        .try_fold(0, |depth, segment| (segment == "loop").then_some(depth + 1))?;
    let deeper = Link::spelt(Host::Www.at(&format!("{path}loop/")), "loop/");
    (path.len() <= LONGEST_TRAP_BYTES).then(|| Page::html(format!("The loop, {depth} deep")).link(deeper))
}
