//! Collects the links, title and robots directives of one document, in document order.

use std::borrow::Cow;
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use indexmap::IndexMap;
use indexmap::map::Entry;
use url::Url;

use super::assets::{self, Asset, AssetSink};
use super::hashed_url::{HashedUrl, UrlHash};
use super::resolve::{Resolver, URL_BYTES, without_fragment};
use super::seen_cache::{KnownLink, PassThroughHasher};
use super::tag::{Attribute, Element, has_token};
use super::{Extracted, FoundLink, LinkKey, LinkOptions, LinkSource, NewLinks, SeenLinkCache, Uncrawlable, refresh};

/// Maximum number of characters of a title.
const TITLE_CHARS: usize = 512;

/// Maximum average length of the links, in bytes, for a page with `max_links` links.
///
/// Without it, a base of 16 kB and ten thousand short links would turn a page of 150 kB into 160 MB of links.
const MEAN_LINK_BYTES: usize = 1024;

/// How many assets are remembered, so that repeated ones are not resolved again.
const MAX_REMEMBERED_ASSETS: usize = 4096;

/// Maximum number of bytes of resolved URLs: per page, plus a part for each link that the page may have.
///
/// A long base turns short links into long URLs, even those that are dropped then. Beyond this limit repeated links
/// count as dropped, too.
const RESOLVED_BYTES: usize = 16 * 1024 * 1024;
const RESOLVED_LINK_BYTES: usize = 4 * MEAN_LINK_BYTES;

/// The kinds of elements that the collector reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Anchor,
    Area,
    Base,
    Frame,
    Iframe,
    Link,
    Meta,
    SvgAnchor,
    /// Only if assets are wanted.
    Asset(Asset),
}

/// What is known of one URL, from all elements that link to it.
struct LinkInfo {
    /// The kind of the first element.
    source: LinkSource,
    /// Whether all elements have `nofollow`.
    nofollow: bool,
    /// Whether an element loads it.
    embedded: bool,
    /// The key of its first occurrence in the cache of seen links; `NONE` if it cannot be cached.
    link_key: LinkKey,
}

/// Collects what the elements of one document contain.
pub(super) struct Collector<'a> {
    options: &'a LinkOptions,
    resolver: Resolver,
    extracted: Extracted,
    /// The links in document order, by keyed hashes: those of the cache of seen links, if there is one.
    links: IndexMap<HashedUrl, LinkInfo, PassThroughHasher>,
    /// The cache of seen links, and the URL hashes of this page's links that it has. None of these is in `links`.
    known_links: Option<&'a SeenLinkCache>,
    known: HashSet<u64, PassThroughHasher>,
    /// How many of those are out of reach.
    out_of_reach: usize,
    /// Links that cannot be crawled.
    uncrawlable: HashSet<String>,
    /// How many bytes further links may take.
    bytes_left: usize,
    /// How many bytes of URLs may still be resolved, including those of links that are dropped.
    resolvable_bytes_left: usize,
    title_seen: bool,
    base_seen: bool,
    refresh_seen: bool,
    base_used: bool,
    /// Hashes of the assets found so far, as written.
    assets: HashSet<u64>,
    hasher: RandomState,
}

impl<'a> Collector<'a> {
    pub(super) fn new(resolver: Resolver, options: &'a LinkOptions, known_links: Option<&'a SeenLinkCache>) -> Self {
        Self {
            options,
            resolver,
            extracted: Extracted::default(),
            links: IndexMap::default(),
            known_links,
            known: HashSet::default(),
            out_of_reach: 0,
            uncrawlable: HashSet::new(),
            bytes_left: options.max_links.saturating_mul(MEAN_LINK_BYTES),
            resolvable_bytes_left: RESOLVED_BYTES.saturating_add(options.max_links.saturating_mul(RESOLVED_LINK_BYTES)),
            title_seen: false,
            base_seen: false,
            refresh_seen: false,
            base_used: false,
            assets: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// Returns everything collected.
    pub(super) fn into_new_links(self) -> NewLinks {
        NewLinks {
            link_keys: self.links.values().map(|info| info.link_key).collect(),
            known: self.known.len() - self.out_of_reach,
            out_of_reach: self.out_of_reach,
            extracted: self.into_extracted(),
        }
    }

    /// Returns everything collected, for a collector without a cache.
    pub(super) fn into_extracted(self) -> Extracted {
        let links = self.links.into_iter();
        Extracted {
            links: links
                .map(|(HashedUrl { url, .. }, info)| FoundLink {
                    url,
                    source: info.source,
                    nofollow: info.nofollow,
                    embedded: info.embedded,
                })
                .collect(),
            ..self.extracted
        }
    }

    /// Adds a link to follow that the cache has; false if the page is full.
    pub(super) fn visit_known(&mut self, link: KnownLink) -> bool {
        let target = link.target;
        self.base_used = true;
        if let Some(info) = self.links.get_mut(&UrlHash(target)) {
            // It is in `links` with another spelling.
            info.nofollow = false;
        } else if !self.known.contains(&target) {
            if self.is_full() {
                self.extracted.dropped += 1;
                return false;
            }
            self.known.insert(target);
            self.out_of_reach += usize::from(link.is_out_of_reach);
        }
        true
    }

    /// Adds the link of an anchor with this spelling hash; false if it was dropped because the page is full.
    pub(super) fn add_anchor(&mut self, target: &str, nofollow: bool, spelling: Option<u64>) -> bool {
        self.add_target(target, LinkSource::Anchor, nofollow, spelling)
    }

    /// Returns whether there is room for `count` further links of [`URL_BYTES`] each. Then the next `count` links are not dropped, if
    /// neither their texts nor their URLs are longer.
    pub(super) fn has_room_for_links(&self, count: usize) -> bool {
        let links = (self.links.len() + self.known.len()).max(self.uncrawlable.len());
        let bytes = self.bytes_left.min(self.resolvable_bytes_left);
        links.saturating_add(count) <= self.options.max_links && count.saturating_mul(URL_BYTES) <= bytes
    }

    fn is_full(&self) -> bool {
        self.links.len() + self.known.len() >= self.options.max_links
    }

    /// Adds what an element contains; false if its link was dropped because the page is full.
    pub(super) fn visit(&mut self, kind: Kind, element: &impl Element) -> bool {
        let href = || element.value(Attribute::Href);
        match kind {
            Kind::Anchor => self.add(href(), LinkSource::Anchor, element),
            Kind::Area => self.add(href(), LinkSource::Area, element),
            Kind::Base => {
                self.base_seen |= href().is_some();
                true
            }
            Kind::Frame => self.add(frame_source(element), LinkSource::Frame, element),
            Kind::Iframe if element.value(Attribute::Srcdoc).is_some() => true,
            Kind::Iframe => self.add(frame_source(element), LinkSource::Iframe, element),
            Kind::Link => self.visit_link(element),
            Kind::Meta => self.visit_meta(element),
            Kind::SvgAnchor => self.add(svg_href(element), LinkSource::Anchor, element),
            Kind::Asset(asset) => {
                assets::visit(self, asset, element);
                true
            }
        }
    }

    /// Returns whether assets are wanted.
    pub(super) fn wants_assets(&self) -> bool {
        self.options.assets
    }

    /// Returns whether a URL was resolved on the base. Then it is too late to change the base.
    pub(super) fn has_used_base(&self) -> bool {
        self.base_used
    }

    /// Sets the base of all following links.
    pub(super) fn rebase(&mut self, href: &str) -> &Resolver {
        self.resolver.rebase(href);
        &self.resolver
    }

    fn visit_link(&mut self, element: &impl Element) -> bool {
        let rel = element.value(Attribute::Rel).unwrap_or_default();
        let source = if has_token(&rel, "next") {
            Some(LinkSource::Next)
        } else if has_token(&rel, "canonical") {
            Some(LinkSource::Canonical)
        } else if has_token(&rel, "alternate") && !has_token(&rel, "stylesheet") {
            Some(LinkSource::Alternate)
        } else {
            None
        };
        let href = || element.value(Attribute::Href).filter(|href| !href.is_empty());
        let taken = source.is_none_or(|source| self.add(href(), source, element));
        if self.wants_assets() {
            assets::visit_link(self, &rel, element);
        }
        taken
    }

    /// Returns whether a meta element with this name addresses this crawler.
    fn is_agent(&self, name: &str) -> bool {
        !self.options.agent.is_empty() && name.eq_ignore_ascii_case(&self.options.agent)
    }

    fn visit_meta(&mut self, element: &impl Element) -> bool {
        let content = element.value(Attribute::Content).unwrap_or_default();
        if let Some(name) = element.value(Attribute::Name)
            && (name.eq_ignore_ascii_case("robots") || self.is_agent(&name))
        {
            self.extracted.robots.merge_content(&content);
        }
        let is_refresh = |pragma: Cow<'_, str>| pragma.eq_ignore_ascii_case("refresh");
        !element.value(Attribute::HttpEquiv).is_some_and(is_refresh) || self.visit_refresh(&content, element)
    }

    /// Adds the target of a refresh. Only the first valid refresh counts, and a later base does not change its target.
    fn visit_refresh(&mut self, content: &str, element: &impl Element) -> bool {
        if self.refresh_seen {
            return true;
        }
        let Some(target) = refresh::parse(content) else {
            return true;
        };
        let url = match target {
            None => None,
            Some(target) if self.base_seen => self.resolver.parse(target),
            Some(target) => self.resolver.parse_without_base(target),
        };
        let url = url.filter(|url| url.scheme() != "javascript");
        self.refresh_seen = target.is_none() || url.is_some();
        url.is_none_or(|url| self.add_url(url, LinkSource::Refresh, is_nofollow(element), None))
    }

    /// Sets the title. Only the first one counts; `text` is not called for others.
    pub(super) fn visit_title(&mut self, text: impl FnOnce() -> String) {
        if !self.title_seen {
            self.title_seen = true;
            self.extracted.title = collapsed(&text());
        }
    }

    fn add(&mut self, target: Option<Cow<'_, str>>, source: LinkSource, element: &impl Element) -> bool {
        target.is_none_or(|target| self.add_target(&target, source, is_nofollow(element), None))
    }

    fn add_target(&mut self, target: &str, source: LinkSource, nofollow: bool, spelling: Option<u64>) -> bool {
        self.base_used = true;
        let target = without_fragment(target);
        if self.resolvable_bytes_left == 0 {
            self.extracted.dropped += 1;
            return false;
        }
        match self.resolver.parse(target) {
            Some(url) => {
                self.resolvable_bytes_left = self.resolvable_bytes_left.saturating_sub(url.as_str().len());
                self.add_url(url, source, nofollow, spelling)
            }
            None => self.add_uncrawlable(target.trim_end_matches('#'), |count| &mut count.unresolvable),
        }
    }

    /// Counts a link that cannot be crawled, each once; false if it was dropped because the page is full.
    fn add_uncrawlable(&mut self, link: &str, kind: impl FnOnce(&mut Uncrawlable) -> &mut usize) -> bool {
        if self.uncrawlable.contains(link) {
            return true;
        }
        if self.uncrawlable.len() == self.options.max_links || self.bytes_left < link.len() {
            self.extracted.dropped += 1;
            return false;
        }
        self.bytes_left -= link.len();
        self.uncrawlable.insert(link.to_owned());
        *kind(&mut self.extracted.uncrawlable) += 1;
        true
    }

    /// Adds a link, or updates the one with the same URL; false if it was dropped because the page is full.
    fn add_url(&mut self, mut url: Url, source: LinkSource, nofollow: bool, spelling: Option<u64>) -> bool {
        if !matches!(url.scheme(), "http" | "https") {
            return self.add_uncrawlable(url.as_str(), |count| &mut count.other_scheme);
        }
        url.set_fragment(None);
        let hash = match self.known_links {
            Some(known) => known.url_hash(&url),
            None => self.hasher.hash_one(url.as_str()),
        };
        if self.known.contains(&hash) {
            // The cache has it with another spelling.
            return true;
        }
        let is_full = self.is_full();
        match self.links.entry(HashedUrl { hash, url }) {
            Entry::Occupied(mut info) => {
                info.get_mut().nofollow &= nofollow;
                info.get_mut().embedded |= source.is_asset();
            }
            Entry::Vacant(new) if !is_full && self.bytes_left >= new.key().url.as_str().len() => {
                self.bytes_left -= new.key().url.as_str().len();
                new.insert(LinkInfo {
                    source,
                    nofollow,
                    embedded: source.is_asset(),
                    link_key: spelling.map_or(LinkKey::NONE, |spelling| LinkKey { spelling, target: hash }),
                });
            }
            Entry::Vacant(_) => {
                self.extracted.dropped += 1;
                return false;
            }
        }
        true
    }
}

impl AssetSink for Collector<'_> {
    fn add_asset(&mut self, target: Option<Cow<'_, str>>, source: LinkSource) {
        let Some(target) = target.filter(|target| !assets::is_inline(target)) else {
            return;
        };
        // Most assets are repeated on a page, so hash before resolving.
        let text_hash = self.hasher.hash_one(&*target);
        if !self.assets.contains(&text_hash)
            && self.add_target(&target, source, false, None)
            && self.assets.len() < MAX_REMEMBERED_ASSETS
        {
            self.assets.insert(text_hash);
        }
    }
}

/// Returns the source of a frame; `None` if it is empty.
fn frame_source(element: &impl Element) -> Option<Cow<'_, str>> {
    element.value(Attribute::Src).filter(|source| !source.is_empty())
}

/// Returns the link of an SVG anchor. A plain `href` takes precedence over `xlink:href` (SVG 2, 16.1.1).
fn svg_href(element: &impl Element) -> Option<Cow<'_, str>> {
    element
        .value(Attribute::Href)
        .or_else(|| element.value(Attribute::XlinkHref))
}

pub(super) fn is_nofollow(element: &impl Element) -> bool {
    element
        .value(Attribute::Rel)
        .is_some_and(|rel| has_token(&rel, "nofollow"))
}

/// Collapses the white space of a title; `None` if nothing is left.
fn collapsed(text: &str) -> Option<String> {
    let mut kept = String::new();
    for (index, word) in text.split_ascii_whitespace().take(TITLE_CHARS).enumerate() {
        if index > 0 {
            kept.push(' ');
        }
        kept.push_str(word);
    }
    let kept: String = kept.chars().take(TITLE_CHARS).collect();
    // The cut may leave a space at the end. White space beyond ASCII belongs to the title.
    (!kept.is_empty()).then(|| kept.trim_end_matches(' ').to_owned())
}
