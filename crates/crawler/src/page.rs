//! From an answer to what is on the page.

use url::Url;

use crate::charset;
use crate::fetch::{Answer, is_html};
use crate::links::{self, FoundLink, LinkOptions, RobotsMeta};

/// What was found on a page.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The links to follow.
    pub links: Vec<FoundLink>,
    /// Links beyond the cap, which were dropped.
    pub links_dropped: usize,
    /// Links that are not followed because the page or the link says `nofollow`.
    pub links_nofollow: usize,
    /// The title.
    pub title: Option<String>,
    /// Whether the page was so costly to parse that its end was left out.
    pub cut: bool,
}

/// Reads a page: charset, links, title, robots directives. What is not HTML has none.
pub(crate) fn read(answer: &Answer, url: &Url, max_links: usize, agent: &str) -> Page {
    if answer.body.is_empty() || !is_html(answer.content_type.as_deref()) {
        return Page::default();
    }
    let decoded = charset::decode(&answer.body, answer.content_type.as_deref());
    let options = LinkOptions { max_links, agent };
    let found = links::extract(&decoded.text, decoded.encoding, url, &options);
    let robots = with_headers(found.robots, answer, agent);
    let all = found.links.len();
    let links: Vec<_> = found
        .links
        .into_iter()
        .filter(|link| !robots.nofollow && !link.nofollow)
        .collect();
    Page {
        links_nofollow: all - links.len(),
        links,
        links_dropped: found.dropped,
        title: found.title,
        cut: found.cut,
    }
}

fn with_headers(mut robots: RobotsMeta, answer: &Answer, agent: &str) -> RobotsMeta {
    for value in &answer.robots_tags {
        robots.merge_header(value, agent);
    }
    robots
}
