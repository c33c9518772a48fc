//! From a response to what is on its page.

use std::sync::Arc;

use frontier::Fingerprint;
use url::Url;

use crate::fingerprint::{TextHash, content_hash};
use crate::links::{FoundLink, LinkKey, LinkOptions, LinkSource, NewLinks, RobotsMeta, SeenLinkCache, Uncrawlable};
use crate::media_type::{Syntax, essence, is_css, syntax_of};
use crate::select::{Field, SelectLimits, Selected};
use crate::sitemap::{Sitemap, SitemapLimits};
use crate::{charset, links, select, sitemap, xml};

/// The parts of a response that [`read`] needs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Content<'r> {
    /// The body, without content codings.
    pub body: &'r [u8],
    /// The `Content-Type` header, [one value](crate::media_type::last_valid) of several.
    pub content_type: Option<&'r str>,
    /// The `Refresh` header.
    pub refresh: Option<&'r str>,
    /// The `X-Robots-Tag` headers.
    pub robots_tags: &'r [String],
    /// Whether the end of the body is missing. Such a page gets no content hash.
    pub is_truncated: bool,
}

/// What was found on a page.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Page {
    /// The links to follow.
    pub links: Vec<FoundLink>,
    /// The key of each link in the cache of seen links.
    pub link_keys: Vec<LinkKey>,
    /// How many links were left out, because the cache has them.
    pub known: usize,
    /// How many links were dropped, because the page has more than [`LinkOptions::max_links`].
    pub links_dropped: usize,
    /// How many links are not to be followed, because the page or the link has `nofollow`.
    pub links_nofollow: usize,
    /// The title.
    pub title: Option<String>,
    /// The links that `links_nofollow` counts, if [`ReadOptions::unfollowed`] asks for them.
    pub unfollowed: Vec<FoundLink>,
    /// The decoded text, if [`ReadOptions::text`] asks for it.
    pub text: Option<String>,
    /// The selected fields, if [`ReadOptions::fields`] has any and the page has markup.
    pub selected: Option<Selected>,
    /// Links whose URLs cannot be crawled.
    pub uncrawlable: Uncrawlable,
    /// Whether the page or its `X-Robots-Tag` has `noindex`.
    pub noindex: bool,
    /// The type of a page that was not parsed because it is not HTML.
    pub other_type: Option<String>,
    /// What it lists, if it is a sitemap or a feed and [`ReadOptions::sitemap`] asks for it.
    pub sitemap: Option<Sitemap>,
    /// Whether it refreshes itself, by its header or in its HTML.
    pub refreshes_itself: bool,
    /// The fingerprint for near-duplicates; empty unless [`ReadOptions::fingerprint`] asks for it.
    pub fingerprint: Fingerprint,
}

/// What to read from a page. By default: its links, title and robots directives.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Which links, and for which crawler the directives count.
    pub links: LinkOptions,
    /// Whether links to follow include those with `nofollow`.
    pub follow_nofollow: bool,
    /// Whether links to follow include those to sitemaps.
    pub linked_sitemaps: bool,
    /// Whether to return the links that are not to be followed.
    pub unfollowed: bool,
    /// The limits under which a sitemap or a feed is read as one; `None` if it is to be read like other files.
    pub sitemap: Option<SitemapLimits>,
    /// The fields to select.
    pub fields: Arc<[Field]>,
    /// The limits of what is selected, for each field.
    pub select_limits: SelectLimits,
    /// Whether to compute its fingerprint.
    pub fingerprint: bool,
    /// Whether to return its decoded text.
    pub text: bool,
    /// Links to leave out, because they were seen before.
    pub known: Option<Arc<SeenLinkCache>>,
}

/// Reads a page: charset, links, title, robots directives, and what else the options ask for.
///
/// ```
/// use page::{Content, ReadOptions, read};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let content = Content {
///     body: b"<title>Tea</title> <a href=/green>green</a> <a href=/black rel=nofollow>black</a>",
///     content_type: Some("text/html; charset=utf-8"),
///     ..Content::default()
/// };
/// let page = read(&content, &"https://example.com/tea".parse()?, &ReadOptions::default());
/// assert_eq!(page.title.as_deref(), Some("Tea"));
/// assert_eq!(page.links[0].url.as_str(), "https://example.com/green");
/// assert_eq!((page.links.len(), page.links_nofollow), (1, 1));
/// # Ok(())
/// # }
/// ```
///
/// Only HTML, SVG, sitemaps and feeds are parsed, and style sheets if assets are wanted. Other types have what their headers say, and
/// a content hash.
///
/// Never fails. Time is linear in the length of the body, but for selected fields ([`select`](crate::select::select)).
pub fn read(content: &Content<'_>, url: &Url, options: &ReadOptions) -> Page {
    let mut page = read_body(content, url, options);
    let refresh = content.refresh.and_then(|value| links::refresh_header_link(value, url));
    page.refreshes_itself |= refresh.as_ref().is_some_and(|link| link.url == *url);
    if let Some(link) = refresh.filter(|link| link.url != *url && page.links.iter().all(|known| known.url != link.url))
    {
        let robots = with_headers(RobotsMeta::default(), content, options);
        if robots.nofollow && !options.follow_nofollow {
            page.links_nofollow += 1;
        } else {
            page.links.push(link);
            page.link_keys.push(LinkKey::NONE);
        }
    }
    page
}

fn read_body(content: &Content<'_>, url: &Url, options: &ReadOptions) -> Page {
    let Content { body, content_type, .. } = *content;
    // Pages may start alike and still differ, so a truncated body is not compared.
    let is_comparable = options.fingerprint && !content.is_truncated;
    let hash = is_comparable.then(|| content_hash(body)).flatten();
    if options.links.assets && is_css(content_type) {
        let css = charset::decode_style_sheet(body, content_type);
        let extracted = links::extract_from_style_sheet(&css, url, &options.links);
        let found = NewLinks {
            link_keys: vec![LinkKey::NONE; extracted.links.len()],
            extracted,
            known: 0,
        };
        return Page {
            fingerprint: Fingerprint::new(hash, None),
            text: options.text.then(|| css.into_owned()),
            ..page_of(found, content, options)
        };
    }
    let limits = options.sitemap.filter(|_| !body.is_empty());
    let sitemap = limits.and_then(|limits| sitemap::recognize(body, content_type, url, &limits));
    let syntax = syntax_of(content_type, body).filter(|_| sitemap.is_none());
    let Some(syntax) = syntax.filter(|_| !body.is_empty()) else {
        let is_other = syntax.is_none() && sitemap.is_none();
        return Page {
            other_type: is_other.then(|| content_type.and_then(essence).unwrap_or_else(|| "no type".to_owned())),
            fingerprint: Fingerprint::new(hash, None),
            ..page_without_markup(sitemap, content, options)
        };
    };
    let decoded = match syntax {
        Syntax::Html => charset::decode(body, content_type),
        Syntax::Xml => charset::decode_xml(body, content_type),
    };
    let rewritten = (syntax == Syntax::Xml).then(|| xml::to_html(&decoded.text));
    let (html, is_cut) = match &rewritten {
        Some((html, is_cut)) => (&**html, *is_cut),
        None => (&*decoded.text, false),
    };
    let known = options.known.as_deref();
    let (found, text_hash) = if options.fingerprint {
        let mut text = TextHash::default();
        let found = links::extract_new(html, decoded.encoding, url, &options.links, known, &mut text);
        (found, text.finish())
    } else {
        (
            links::extract_new(html, decoded.encoding, url, &options.links, known, &mut ()),
            None,
        )
    };
    let page = page_of(found, content, options);
    Page {
        // What an entity would have held.
        links_dropped: page.links_dropped + usize::from(is_cut),
        selected: select_fields(html, options),
        fingerprint: Fingerprint::new(hash, text_hash),
        text: options.text.then(|| decoded.text.into_owned()),
        ..page
    }
}

fn page_without_markup(sitemap: Option<Sitemap>, content: &Content<'_>, options: &ReadOptions) -> Page {
    let robots = with_headers(RobotsMeta::default(), content, options);
    let mut page = Page {
        noindex: robots.noindex,
        ..Page::default()
    };
    match sitemap {
        Some(listed) if robots.nofollow && !options.follow_nofollow => {
            page.links_nofollow = listed.entries.len();
        }
        sitemap => page.sitemap = sitemap,
    }
    page
}

fn page_of(new: NewLinks, content: &Content<'_>, options: &ReadOptions) -> Page {
    let found = new.extracted;
    let robots = with_headers(found.robots, content, options);
    let follows_none = robots.nofollow && !options.follow_nofollow;
    let count = if follows_none { 0 } else { found.links.len() };
    let (mut links, mut link_keys) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut unfollowed = Vec::new();
    for (mut link, key) in found.links.into_iter().zip(new.link_keys) {
        if link.source == LinkSource::Sitemap && !options.linked_sitemaps {
            continue;
        }
        link.nofollow |= robots.nofollow;
        if link.nofollow && !options.follow_nofollow {
            unfollowed.push(link);
        } else {
            links.push(link);
            link_keys.push(key);
        }
    }
    let (known, known_nofollow) = if follows_none { (0, new.known) } else { (new.known, 0) };
    let links_nofollow = known_nofollow + unfollowed.len();
    if !options.unfollowed {
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

fn select_fields(html: &str, options: &ReadOptions) -> Option<Selected> {
    (!options.fields.is_empty()).then(|| select::select(html, &options.fields, options.select_limits))
}

fn with_headers(mut robots: RobotsMeta, content: &Content<'_>, options: &ReadOptions) -> RobotsMeta {
    for value in content.robots_tags {
        robots.merge_header(value, &options.links.agent);
    }
    robots
}
