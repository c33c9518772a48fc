//! From a response to what is on its page.

use std::sync::Arc;

use frontier::Fingerprint;
use url::Url;

use crate::fingerprint::{TextHash, content_hash};
use crate::links::{Extracted, FoundLink, LeftOut, LinkOptions, LinkSource, RobotsMeta};
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
    /// The links not to follow, because the page or the link has `nofollow`, if [`ReadOptions::unfollowed`] asks for them.
    pub unfollowed: Vec<FoundLink>,
    /// How many links are not among those to follow.
    pub left_out: LeftOut,
    /// The title.
    pub title: Option<String>,
    /// The decoded text, if [`ReadOptions::text`] asks for it.
    pub text: Option<String>,
    /// The selected fields, if [`ReadOptions::fields`] has any and the page has markup.
    pub selected: Option<Selected>,
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
/// assert_eq!((page.links.len(), page.left_out.nofollow), (1, 1));
/// # Ok(())
/// # }
/// ```
///
/// Only HTML, SVG, sitemaps and feeds are parsed, and style sheets if assets are wanted. Other types have what their headers say, and
/// a content hash.
///
/// Never fails. Time is linear in the length of the body, but for selected fields ([`select`](crate::select::select)).
pub fn read(content: &Content<'_>, url: &Url, options: &ReadOptions) -> Page {
    let mut headers = RobotsMeta::default();
    for value in content.robots_tags {
        headers.merge_header(value, &options.links.agent);
    }
    let mut page = read_body(content, headers, url, options);
    let refresh = content.refresh.and_then(|value| links::refresh_header_link(value, url));
    page.refreshes_itself |= refresh.as_ref().is_some_and(|link| link.url == *url);
    if let Some(link) = refresh.filter(|link| link.url != *url && page.links.iter().all(|known| known.url != link.url))
    {
        if headers.nofollow && !options.follow_nofollow {
            page.left_out.nofollow += 1;
        } else {
            page.links.push(link);
        }
    }
    page
}

fn read_body(content: &Content<'_>, headers: RobotsMeta, url: &Url, options: &ReadOptions) -> Page {
    let Content { body, content_type, .. } = *content;
    // Pages may start alike and still differ, so a truncated body is not compared.
    let is_comparable = options.fingerprint && !content.is_truncated;
    let hash = is_comparable.then(|| content_hash(body)).flatten();
    if options.links.assets && is_css(content_type) {
        let css = charset::decode_style_sheet(body, content_type);
        let found = links::extract_from_style_sheet(&css, url, &options.links);
        return Page {
            fingerprint: Fingerprint::new(hash, None),
            text: options.text.then(|| css.into_owned()),
            ..page_of(found, headers, options)
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
            ..page_without_markup(sitemap, headers, options)
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
    let (found, text_hash) = if options.fingerprint {
        let mut text = TextHash::default();
        let found = links::extract_with(html, decoded.encoding, url, &options.links, &mut text);
        (found, text.finish())
    } else {
        (links::extract(html, decoded.encoding, url, &options.links), None)
    };
    let mut page = page_of(found, headers, options);
    // What an entity would have held.
    page.left_out.dropped += usize::from(is_cut);
    let selected = (!options.fields.is_empty()).then(|| select::select(html, &options.fields, options.select_limits));
    Page {
        selected,
        fingerprint: Fingerprint::new(hash, text_hash),
        text: options.text.then(|| decoded.text.into_owned()),
        ..page
    }
}

fn page_without_markup(sitemap: Option<Sitemap>, headers: RobotsMeta, options: &ReadOptions) -> Page {
    let mut page = Page {
        noindex: headers.noindex,
        ..Page::default()
    };
    match sitemap {
        Some(listed) if headers.nofollow && !options.follow_nofollow => {
            page.left_out.nofollow = listed.entries.len();
        }
        sitemap => page.sitemap = sitemap,
    }
    page
}

fn page_of(found: Extracted, headers: RobotsMeta, options: &ReadOptions) -> Page {
    let nofollow = found.robots.nofollow || headers.nofollow;
    let mut left_out = found.left_out;
    let (mut links, mut unfollowed) = (found.links, Vec::new());
    links.retain(|link| link.source != LinkSource::Sitemap || options.linked_sitemaps);
    if !options.follow_nofollow {
        if nofollow {
            left_out.nofollow = std::mem::take(&mut left_out.known);
        }
        let is_unfollowed = |link: &mut FoundLink| link.nofollow || nofollow;
        unfollowed = links.extract_if(.., is_unfollowed).collect();
    }
    left_out.nofollow += unfollowed.len();
    if !options.unfollowed {
        unfollowed.clear();
    }
    for link in links.iter_mut().chain(&mut unfollowed) {
        link.nofollow |= nofollow;
    }
    Page {
        links,
        unfollowed,
        left_out,
        title: found.title,
        noindex: found.robots.noindex || headers.noindex,
        refreshes_itself: found.refreshes_itself,
        ..Page::default()
    }
}
