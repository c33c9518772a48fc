//! From an answer to the contents of its page: links, title, robots directives, fields, fingerprint.

pub mod charset;
pub mod fingerprint;
pub(crate) mod link_graph;
pub mod links;
pub(crate) mod media_type;
pub mod robots;
pub mod select;
pub mod sitemap;
pub(crate) mod xml;

use std::sync::Arc;

use frontier::Fingerprint;
use url::Url;

use crate::config::CrawlConfig;
use crate::fetch::{BodyExtent, Response};
use crate::page::fingerprint::{TextHash, content_hash};
use crate::page::links::{FoundLink, LinkKey, LinkSource, NewLinks, RobotsMeta, SeenLinkCache, Uncrawlable};
use crate::page::media_type::{Syntax, essence, is_css, syntax_of};
use crate::page::select::Selected;
use crate::page::sitemap::Sitemap;

/// What was found on a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    /// The links to follow.
    pub(crate) links: Vec<FoundLink>,
    /// The key of each link in the cache of seen links.
    pub(crate) link_keys: Vec<LinkKey>,
    /// How many links were left out, because the cache says that the frontier has seen them.
    pub(crate) known: usize,
    /// How many links were dropped, because the page has more than `max_links`.
    pub(crate) links_dropped: usize,
    /// How many links are not followed, because the page or the link has `nofollow`.
    pub(crate) links_nofollow: usize,
    /// The title.
    pub(crate) title: Option<String>,
    /// The links that `links_nofollow` counts, if an observer needs them.
    pub(crate) unfollowed: Vec<FoundLink>,
    /// The decoded text, if an observer needs it.
    pub(crate) text: Option<String>,
    /// The selected fields, if the crawl has any.
    pub(crate) selected: Option<Selected>,
    /// Links whose URLs cannot be crawled.
    pub(crate) uncrawlable: Uncrawlable,
    /// Whether the page or its `X-Robots-Tag` has `noindex`.
    pub(crate) noindex: bool,
    /// The type of a page that was not parsed because it is not HTML.
    pub(crate) other_type: Option<String>,
    /// What it lists, if it is a sitemap or a feed.
    pub(crate) sitemap: Option<Sitemap>,
    /// Whether it refreshes itself, by its header or in its HTML.
    pub(crate) refreshes_itself: bool,
    /// The fingerprint for near-duplicates; empty unless asked for.
    pub(crate) fingerprint: Fingerprint,
}

/// What to read from a page besides its links, title and directives.
#[derive(Debug, Clone)]
pub(crate) struct ReadOptions {
    /// Whether to compute its fingerprint.
    pub(crate) fingerprint: bool,
    /// Whether to keep its decoded text.
    pub(crate) text: bool,
    /// Whether to read it as a sitemap if it is one.
    pub(crate) sitemap: bool,
    /// Links to leave out, because the frontier has seen them.
    pub(crate) known: Option<Arc<SeenLinkCache>>,
}

/// Reads a page: charset, links, title, robots directives, selected fields, and its fingerprint if asked for.
///
/// Only HTML, SVG, sitemaps and feeds are parsed, and style sheets if the crawl fetches assets. Other types have what their headers say, and
/// a content hash.
pub(crate) fn read(answer: &Response, url: &Url, config: &CrawlConfig, wanted: &ReadOptions) -> Page {
    let mut page = read_body(answer, url, config, wanted);
    let header = answer.refresh.as_deref();
    let refresh = header.and_then(|value| links::refresh_header_link(value, url));
    page.refreshes_itself |= refresh.as_ref().is_some_and(|link| link.url == *url);
    if let Some(link) = refresh.filter(|link| link.url != *url && page.links.iter().all(|known| known.url != link.url))
    {
        let robots = with_headers(RobotsMeta::default(), answer, config.product_token());
        if robots.nofollow && !config.options().follow_nofollow {
            page.links_nofollow += 1;
        } else {
            page.links.push(link);
            page.link_keys.push(LinkKey::NONE);
        }
    }
    page
}

fn read_body(answer: &Response, url: &Url, config: &CrawlConfig, wanted: &ReadOptions) -> Page {
    // Pages may start alike and still differ, so a truncated body is not compared.
    let is_comparable = wanted.fingerprint && answer.extent == BodyExtent::Complete && answer.truncation.is_none();
    let content = is_comparable.then(|| content_hash(&answer.body)).flatten();
    let options = config.link_options();
    let content_type = answer.content_type.as_deref();
    if options.assets && is_css(content_type) {
        let css = charset::decode_style_sheet(&answer.body, content_type);
        let extracted = links::extract_from_style_sheet(&css, url, options);
        let found = NewLinks {
            link_keys: vec![LinkKey::NONE; extracted.links.len()],
            extracted,
            known: 0,
        };
        return Page {
            fingerprint: Fingerprint::new(content, None),
            text: wanted.text.then(|| css.into_owned()),
            ..page_of(found, answer, config)
        };
    }
    let limits = config.options().sitemap_limits();
    let may_be_sitemap = wanted.sitemap && !answer.body.is_empty();
    let sitemap = may_be_sitemap.then(|| sitemap::recognize(&answer.body, content_type, url, &limits));
    let sitemap = sitemap.flatten();
    let syntax = syntax_of(content_type, &answer.body).filter(|_| sitemap.is_none());
    let Some(syntax) = syntax.filter(|_| !answer.body.is_empty()) else {
        let is_other = syntax.is_none() && sitemap.is_none();
        return Page {
            other_type: is_other.then(|| content_type.and_then(essence).unwrap_or_else(|| "no type".to_owned())),
            fingerprint: Fingerprint::new(content, None),
            ..page_without_markup(sitemap, answer, config)
        };
    };
    let decoded = match syntax {
        Syntax::Html => charset::decode(&answer.body, content_type),
        Syntax::Xml => charset::decode_xml(&answer.body, content_type),
    };
    let rewritten = (syntax == Syntax::Xml).then(|| xml::to_html(&decoded.text));
    let (html, is_cut) = match &rewritten {
        Some((html, is_cut)) => (&**html, *is_cut),
        None => (&*decoded.text, false),
    };
    let known = wanted.known.as_deref();
    let (found, text_hash) = if wanted.fingerprint {
        let mut text = TextHash::default();
        let found = links::extract_new(html, decoded.encoding, url, options, known, &mut text);
        (found, text.finish())
    } else {
        (
            links::extract_new(html, decoded.encoding, url, options, known, &mut ()),
            None,
        )
    };
    let page = page_of(found, answer, config);
    Page {
        // What an entity would have held.
        links_dropped: page.links_dropped + usize::from(is_cut),
        selected: select_fields(html, config),
        fingerprint: Fingerprint::new(content, text_hash),
        text: wanted.text.then(|| decoded.text.into_owned()),
        ..page
    }
}

fn page_without_markup(sitemap: Option<Sitemap>, answer: &Response, config: &CrawlConfig) -> Page {
    let robots = with_headers(RobotsMeta::default(), answer, config.product_token());
    let mut page = Page {
        noindex: robots.noindex,
        ..Page::default()
    };
    match sitemap {
        Some(listed) if robots.nofollow && !config.options().follow_nofollow => {
            page.links_nofollow = listed.entries.len();
        }
        sitemap => page.sitemap = sitemap,
    }
    page
}

fn page_of(new: NewLinks, answer: &Response, config: &CrawlConfig) -> Page {
    let found = new.extracted;
    let robots = with_headers(found.robots, answer, config.product_token());
    let follows = config.options().follow_nofollow;
    let follows_none = robots.nofollow && !follows;
    let count = if follows_none { 0 } else { found.links.len() };
    let (mut links, mut link_keys) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut unfollowed = Vec::new();
    for (mut link, key) in found.links.into_iter().zip(new.link_keys) {
        if link.source == LinkSource::Sitemap && !config.options().sitemaps {
            continue;
        }
        link.nofollow |= robots.nofollow;
        if link.nofollow && !follows {
            unfollowed.push(link);
        } else {
            links.push(link);
            link_keys.push(key);
        }
    }
    let (known, known_nofollow) = if follows_none { (0, new.known) } else { (new.known, 0) };
    let links_nofollow = known_nofollow + unfollowed.len();
    if !config.options().needs_all_links() {
        unfollowed.clear();
    }
    Page {
        links_nofollow,
        links,
        link_keys,
        known,
        unfollowed,
        links_dropped: found.dropped,
        title: found.title,
        uncrawlable: found.uncrawlable,
        noindex: robots.noindex,
        refreshes_itself: found.refreshes_itself,
        ..Page::default()
    }
}

fn select_fields(html: &str, config: &CrawlConfig) -> Option<Selected> {
    let options = config.options();
    (!options.fields.is_empty()).then(|| select::select(html, &options.fields, options.select_limits))
}

fn with_headers(mut robots: RobotsMeta, answer: &Response, agent: &str) -> RobotsMeta {
    for value in &answer.robots_tags {
        robots.merge_header(value, agent);
    }
    robots
}
