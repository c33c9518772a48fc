//! The unusual pages of the demo: unusual links, charsets, redirects, slow and failing answers, traps, and the files at well-known
//! locations.
//!
//! An experiment is a page with one unusual link to a page that nothing else links to. The target is under `/lab/found/` if a polite
//! crawler must follow the link, and under `/lab/hidden/` if it must not.

use encoding_rs::{SHIFT_JIS, WINDOWS_1252};
use hyper::StatusCode;
use url::{Position, Url};

use super::page::{Hosts, Page, at, without_scheme};

/// The number of paragraphs that make about a megabyte.
const HUGE_PARAGRAPHS: usize = 2_400;
/// The length at which the path trap ends, so that a walk without a repeat limit ends too.
const LONGEST_TRAP_BYTES: usize = 2_000;

/// Answers after about a second.
pub(super) const SLOW: &str = "/lab/slow";
/// Answers the first request with 503 and `Retry-After: 0`, later ones with the page.
pub(super) const UNAVAILABLE_ONCE: &str = "/lab/unavailable-once";

const PLAIN: &str = "text/plain; charset=utf-8";

/// The experiments: the name, the target below `/lab/`, and the head and body of the page. `{break}` is a line break and a tab.
const EXPERIMENTS: &str = r#"
# Unusual spellings.
entities | found/entities?a=1&b=2 | | <a href="found/entities?a=1&amp;b&#x3D;2">x</a>
named-entity | found/café | | <a href="found/caf&eacute;">x</a>
dots | found/dots | | <a href="./nowhere/../found/./dots">x</a>
spaces | found/spaces | | <a href="{break}  found/spaces {break}">x</a>
fragment | found/fragment | | <a href="/lab/found/fragment#middle">x</a>
scheme-relative | found/scheme-relative | | <a href="//{host}/lab/found/scheme-relative">x</a>
upper-case | found/upper-case | | <a href="HTTP://{HOST}/lab/found/upper-case">x</a>
# Elements with links that a crawler follows, besides the plain anchor.
unquoted | found/unquoted | | <A HREF=found/unquoted>x</A>
area | found/area | | <map name=m><area href="found/area" alt="x"></map>
iframe | found/iframe | | <iframe src="found/iframe" title="x"></iframe>
frame | found/frame | | <frameset cols="*"><frame src="found/frame"></frameset>
next | found/next | <link rel="next" href="found/next"> |
refresh | found/refresh | <meta http-equiv="refresh" content="0; url=found/refresh"> |
# Elements with links that a polite crawler does not follow.
nofollow | hidden/nofollow | | <a rel="external NoFollow" href="hidden/nofollow">x</a>
comment | hidden/comment | | <!-- <a href="hidden/comment">x</a> -->
script | hidden/script | | <script>const row = '<a href="hidden/script">x</a>';</script>
template | hidden/template | | <template><a href="hidden/template">x</a></template>
textarea | hidden/textarea | | <textarea><a href="hidden/textarea">x</a></textarea>
no-links | hidden/no-links | <meta name="robots" content="nofollow"> | <a href="hidden/no-links">x</a>
# Ordinary links on pages that are hard to fetch or to read.
base | found/base | <base href="/lab/found/"> | <a href="base">x</a>
shift-jis | found/ｶﾀｶﾅ | | <a href="found/ｶﾀｶﾅ">ｼﾌﾄ JIS</a>
windows-1252 | found/déjà | <meta charset="windows-1252"> | <a href="found/déjà">Déjà vu</a>
huge | found/end-of-huge | | <a href="found/end-of-huge">x</a>
slow | found/after-slow | | <a href="found/after-slow">x</a>
unavailable-once | found/after-unavailable | | <a href="found/after-unavailable">x</a>
"#;

pub(super) fn pages(hosts: &Hosts) -> Vec<Page> {
    let www = &hosts.www;
    let others = "/old/ /loop/ /calendar/2900 /private/ledger.html /private/open.html";
    let contents = Page::html(at(www, "/lab/"), "Laboratory").links(others.split(' '));
    let mut pages = vec![contents.links(experiments().map(|[name, ..]| format!("/lab/{name}")))];
    pages.extend(experiments().flat_map(|experiment| self::experiment(www, experiment)));
    pages.extend(redirects(hosts));
    pages.extend(private(hosts));
    pages
}

fn experiments() -> impl Iterator<Item = [&'static str; 4]> {
    let columns = |line: &'static str| line.split('|').map(str::trim).collect::<Vec<_>>();
    EXPERIMENTS
        .lines()
        .filter_map(move |line| columns(line).try_into().ok())
}

fn experiment(www: &Url, [name, target, head, body]: [&str; 4]) -> [Page; 2] {
    let lab = at(www, "/lab/");
    let mut page = Page::html(at(&lab, name), format!("Experiment: {name}"));
    if target.starts_with("found/") {
        page = page.follow(target);
    }
    let host = without_scheme(www).trim_matches('/');
    head.clone_into(&mut page.head);
    let body = body.replace("{break}", "\n\t").replace("{host}", host);
    page.body = body.replace("{HOST}", &host.to_uppercase());
    match name {
        "shift-jis" => page.charset = SHIFT_JIS,
        "windows-1252" => page.charset = WINDOWS_1252,
        "huge" => page.paragraphs = HUGE_PARAGRAPHS,
        _ => {}
    }
    [page, Page::html(at(&lab, target), format!("The other end of {name}"))]
}

pub(super) fn index(www: &Url, everything: &[Page]) -> [Page; 2] {
    let mut index = Page::html(at(www, "/index-of-everything"), "Index of everything");
    for Page { address, .. } in everything {
        let whole = address.as_str();
        let upper_case = address[..Position::BeforePath].to_uppercase() + &address[Position::BeforePath..];
        index = index.links([whole, &upper_case, without_scheme(address)]);
        index = index.links(["summary", "details", "reviews"].map(|part| format!("{whole}#{part}")));
    }
    let end = "/lab/found/end-of-index";
    [index.link(end), Page::html(at(www, end), "The end of the index")]
}

/// Returns the redirects, the page that links to them, and their targets: a directory, a chain of three, a change of host, a loop, and two
/// targets that may not be fetched.
fn redirects(Hosts { www, docs, private, .. }: &Hosts) -> Vec<Page> {
    let moved = at(docs, "/moved-here");
    let rows = [
        ("/catalog", StatusCode::MOVED_PERMANENTLY, "/catalog/"),
        ("/old/one", StatusCode::MOVED_PERMANENTLY, "/old/two"),
        ("/old/two", StatusCode::FOUND, "/old/three"),
        (
            "/old/three",
            StatusCode::TEMPORARY_REDIRECT,
            "/lab/found/after-redirects",
        ),
        ("/old/handbook", StatusCode::PERMANENT_REDIRECT, moved.as_str()),
        ("/old/ping", StatusCode::FOUND, "/old/pong"),
        ("/old/pong", StatusCode::FOUND, "/old/ping"),
        ("/old/secret", StatusCode::FOUND, private.as_str()),
        ("/old/away", StatusCode::FOUND, "http://elsewhere.example/"),
    ];
    let mut pages = rows
        .map(|(from, status, to)| Page::redirect(at(www, from), status, to))
        .to_vec();
    pages.extend([
        Page::html(at(www, "/old/"), "Old addresses").links(["one", "handbook", "ping", "secret", "away"]),
        Page::html(at(www, "/lab/found/after-redirects"), "The end of three redirects"),
        Page::html(moved, "A page that moved to another host"),
    ]);
    pages
}

/// Returns the pages that robots.txt forbids, and one exception.
fn private(Hosts { www, private, .. }: &Hosts) -> [Page; 4] {
    [
        Page::html(at(www, "/private/ledger.html"), "A ledger that is not for crawlers").forbidden(),
        Page::html(at(www, "/private/open.html"), "The open page of a closed directory"),
        Page::html(private.clone(), "Not for crawlers")
            .link("/diary")
            .forbidden(),
        Page::html(at(private, "/diary"), "A diary that is not for crawlers").forbidden(),
    ]
}

/// Returns the robots.txt of each host, and the sitemap, which lists the catalogue. The host of the handbook has no robots.txt, which
/// allows everything (RFC 9309 section 2.3.1.3).
pub(super) fn well_known(Hosts { www, blog, private, .. }: &Hosts, everything: &[Page]) -> [Page; 5] {
    let robots = |host: &Url, text: String| Page::file(at(host, "/robots.txt"), PLAIN, text);
    let of_blog = at(www, "/robots-blog.txt");
    let in_catalogue = everything
        .iter()
        .filter(|page| page.address.path().starts_with("/catalog/"));
    let listed = in_catalogue.map(|page| {
        format!(
            "<url><loc>{}</loc></url>\n",
            page.address.as_str().replace('&', "&amp;")
        )
    });
    let sitemap = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{}</urlset>\n",
        listed.collect::<String>()
    );
    let of_www = format!(
        "User-agent: *\nDisallow: /private/\nAllow: /private/open.html\nDisallow: /calendar/\nCrawl-delay: 0.02\n\n\
         Sitemap: {www}sitemap.xml\n"
    );
    [
        robots(www, of_www),
        robots(private, "User-agent: *\nDisallow: /\n".to_owned()),
        Page::redirect(at(blog, "/robots.txt"), StatusCode::FOUND, of_blog.as_str()),
        Page::file(of_blog, PLAIN, "User-agent: *\nDisallow: /drafts/\n"),
        Page::file(at(www, "/sitemap.xml"), "application/xml", sitemap),
    ]
}

pub(super) fn endless_page(address: &Url) -> Option<Page> {
    if let Some(week) = address.path().strip_prefix("/calendar/") {
        let week: u32 = week.parse().ok()?;
        let weeks = [week.saturating_sub(1), week.saturating_add(1)];
        let page = Page::html(address.clone(), format!("Week {week}"));
        return Some(page.links(weeks.map(|week| week.to_string())).forbidden());
    }
    let inner = address.path().strip_prefix('/')?.strip_suffix('/')?;
    let is_loop = inner.len() < LONGEST_TRAP_BYTES && inner.split('/').all(|segment| segment == "loop");
    is_loop.then(|| Page::html(address.clone(), format!("The loop: {inner}")).link("loop/"))
}
