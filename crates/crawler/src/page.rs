//! From an answer to what is on the page.

use url::Url;

use crate::charset;
use crate::config::CrawlConfig;
use crate::fetch::{Answer, is_html};
use crate::links::{self, FoundLink, LinkOptions, RobotsMeta};
use crate::select::{self, Selected};

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
    /// Links that are counted in `links_nofollow`, where the crawl tells of them.
    pub unfollowed: Vec<FoundLink>,
    /// The selected fields, if there are any to select.
    pub selected: Option<Selected>,
}

/// Reads a page: charset, links, title, robots directives, selected fields. What is not HTML has none.
pub(crate) fn read(answer: &Answer, url: &Url, config: &CrawlConfig) -> Page {
    if answer.body.is_empty() || !is_html(answer.content_type.as_deref()) {
        return Page::default();
    }
    let decoded = charset::decode(&answer.body, answer.content_type.as_deref());
    let agent = config.product_token();
    let options = LinkOptions {
        max_links: config.options().max_links_per_page,
        agent,
    };
    let found = links::extract(&decoded.text, decoded.encoding, url, &options);
    let robots = with_headers(found.robots, answer, agent);
    let is_followed = |link: &FoundLink| !robots.nofollow && !link.nofollow;
    let (links, mut unfollowed): (Vec<_>, Vec<_>) = found.links.into_iter().partition(is_followed);
    let links_nofollow = unfollowed.len();
    if !config.options().tell_edges {
        unfollowed = Vec::new();
    }
    Page {
        links_nofollow,
        links,
        unfollowed,
        selected: select_fields(&decoded.text, config),
        links_dropped: found.dropped,
        title: found.title,
        cut: found.cut,
    }
}

fn select_fields(html: &str, config: &CrawlConfig) -> Option<Selected> {
    let options = config.options();
    (!options.fields.is_empty()).then(|| select::select(html, &options.fields, options.select_limits))
}

fn with_headers(mut robots: RobotsMeta, answer: &Answer, agent: &str) -> RobotsMeta {
    for value in &answer.robots_tags {
        robots.merge_header(value, agent);
    }
    robots
}
