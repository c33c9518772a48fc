//! The files at well-known locations: the robots.txt of each host, and the sitemap.
//!
//! The host of the handbook answers 404 for its robots.txt, which allows everything (RFC 9309 section 2.3.1.3).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hyper::StatusCode;

use super::page::{Address, Host, Page};

const ROBOTS: &str = "/robots.txt";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Returns these files. The sitemap lists the catalogue in `pages`.
pub(super) fn pages(port: u16, pages: &BTreeMap<Address, Page>) -> Vec<(Address, Page)> {
    let www = format!("http://{}:{port}", Host::Www.name());
    let www_robots = format!(
        "User-agent: *\nDisallow: /private/\nAllow: /private/open.html\nDisallow: /calendar/\nCrawl-delay: 0.02\n\n\
         Sitemap: {www}/sitemap.xml\n"
    );
    let robots = |text: &str| Page::file("robots.txt", PLAIN, text);
    let blog_robots = Host::Www.at("/robots-blog.txt");
    vec![
        (Host::Www.at(ROBOTS), robots(&www_robots)),
        (Host::Private.at(ROBOTS), robots("User-agent: *\nDisallow: /\n")),
        (
            Host::Blog.at(ROBOTS),
            Page::redirect(StatusCode::FOUND, blog_robots.clone()),
        ),
        (blog_robots, robots("User-agent: *\nDisallow: /drafts/\n")),
        (
            Host::Www.at("/sitemap.xml"),
            Page::file("Sitemap", "application/xml", sitemap(&www, pages)),
        ),
    ]
}

fn sitemap(www: &str, pages: &BTreeMap<Address, Page>) -> String {
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n"
        .to_owned();
    let listed = pages
        .keys()
        .filter(|address| address.host == Host::Www && address.path.starts_with("/catalog/"));
    for address in listed {
        let _ = writeln!(xml, "<url><loc>{www}{}</loc></url>", address.path.replace('&', "&amp;"));
    }
    xml + "</urlset>\n"
}
