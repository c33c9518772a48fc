//! What the elements of one document say, gathered in the order of the document.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;

use indexmap::IndexMap;
use indexmap::map::Entry;
use url::Url;

use super::assets::{self, Asset, Loaded};
use super::resolve::{Resolver, without_fragment};
use super::seen_cache::Hashed;
use super::tag::{Attribute, Element, has_token};
use super::{Extracted, FoundLink, LinkKey, LinkOptions, LinkSource, NewLinks, SeenLinkCache, Uncrawlable, refresh};

/// Characters of a title that are kept.
const TITLE_CHARS: usize = 512;

/// Bytes that the links of a page may have on average, if they are as many as may be.
///
/// A base of 16 kB under ten thousand short links is a page of 150 kB with links of 160 MB.
const MEAN_LINK_BYTES: usize = 1024;

/// Assets that are known when they are repeated.
const MOST_ASSETS: usize = 4096;

/// Bytes of URLs that are made for a page, and for each link that it may have: a long base makes short links long, also those for
/// which there is no room. Beyond that a repeated link counts as dropped, too.
const RESOLVED_BYTES: usize = 16 * 1024 * 1024;
const RESOLVED_LINK_BYTES: usize = 4 * MEAN_LINK_BYTES;

/// The kinds of elements that are read.
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
    /// Only if assets are asked for.
    Asset(Asset),
}

/// What the elements with one URL say of it.
struct Said {
    /// Where it was first met.
    source: LinkSource,
    /// Whether all of them say `nofollow`.
    nofollow: bool,
    /// Whether one of them loads it.
    embedded: bool,
    /// How it was first written, if that is to be remembered.
    link_key: LinkKey,
}

/// Gathers what the elements of one document say.
pub(super) struct Collector<'a> {
    options: &'a LinkOptions,
    resolver: Resolver,
    extracted: Extracted,
    /// The links in the order of the document.
    links: IndexMap<Url, Said>,
    /// What the frontier has seen, and the targets of those of this page; none of them is among the `links`.
    known_links: Option<&'a SeenLinkCache>,
    known: HashSet<u64, Hashed>,
    /// Where among the `links` each target is, if links may be known.
    targets: HashMap<u64, usize, Hashed>,
    /// The links that can be no page.
    uncrawlable: HashSet<String>,
    /// Bytes that further links may have.
    room: usize,
    /// Bytes of URLs that are still made, of links for which there is no room too.
    to_resolve: usize,
    title_seen: bool,
    base_seen: bool,
    refresh_seen: bool,
    base_used: bool,
    /// The assets that were taken, as they are written.
    assets: HashSet<u64>,
    hasher: RandomState,
    /// The words of the link that is being taken.
    words: Option<u64>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(resolver: Resolver, options: &'a LinkOptions, known_links: Option<&'a SeenLinkCache>) -> Self {
        Self {
            options,
            resolver,
            extracted: Extracted::default(),
            links: IndexMap::new(),
            known_links,
            known: HashSet::default(),
            targets: HashMap::default(),
            uncrawlable: HashSet::new(),
            room: options.max_links.saturating_mul(MEAN_LINK_BYTES),
            to_resolve: RESOLVED_BYTES.saturating_add(options.max_links.saturating_mul(RESOLVED_LINK_BYTES)),
            title_seen: false,
            base_seen: false,
            refresh_seen: false,
            base_used: false,
            assets: HashSet::new(),
            hasher: RandomState::new(),
            words: None,
        }
    }

    /// Everything that was gathered.
    pub(super) fn into_new_links(self) -> NewLinks {
        NewLinks {
            link_keys: self.links.values().map(|said| said.link_key).collect(),
            known: self.known.len(),
            extracted: self.into_extracted(),
        }
    }

    /// Everything that was gathered, if no link is known.
    pub(super) fn into_extracted(self) -> Extracted {
        let links = self.links.into_iter();
        Extracted {
            links: links
                .map(|(url, said)| FoundLink {
                    url,
                    source: said.source,
                    nofollow: said.nofollow,
                    embedded: said.embedded,
                })
                .collect(),
            ..self.extracted
        }
    }

    /// Takes note of a link to follow that is known; false if there was no room for it.
    pub(super) fn visit_known(&mut self, target: u64) -> bool {
        self.base_used = true;
        let found = self.targets.get(&target).and_then(|at| self.links.get_index_mut(*at));
        if let Some((_, said)) = found {
            // It was written in another way before.
            said.nofollow = false;
        } else if !self.known.contains(&target) {
            if self.is_full() {
                self.extracted.dropped += 1;
                return false;
            }
            self.known.insert(target);
        }
        true
    }

    /// Takes an anchor that is written in these words.
    pub(super) fn visit_anchor(&mut self, element: &impl Element, words: Option<u64>) -> bool {
        self.words = words;
        let taken = self.visit(Kind::Anchor, element);
        self.words = None;
        taken
    }

    fn is_full(&self) -> bool {
        self.links.len() + self.known.len() >= self.options.max_links
    }

    /// Takes note of an element; false if it has a link for which there was no room.
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

    /// Whether assets are asked for.
    pub(super) fn wants_assets(&self) -> bool {
        self.options.assets
    }

    /// Whether a URL was resolved on the base, so that it is too late to change it.
    pub(super) fn has_used_base(&self) -> bool {
        self.base_used
    }

    /// Resolves what follows on this base.
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

    /// Says whether a meta element of this name is meant for the crawler alone.
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

    /// The first refresh that can be carried out is the only one that is, and no base after it changes its target.
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
        url.is_none_or(|url| self.add_url(url, LinkSource::Refresh, is_nofollow(element)))
    }

    /// Takes note of a title; only the first one's text is asked for.
    pub(super) fn visit_title(&mut self, text: impl FnOnce() -> String) {
        if !self.title_seen {
            self.title_seen = true;
            self.extracted.title = collapsed(&text());
        }
    }

    fn add(&mut self, target: Option<Cow<'_, str>>, source: LinkSource, element: &impl Element) -> bool {
        target.is_none_or(|target| self.add_target(&target, source, is_nofollow(element)))
    }

    fn add_target(&mut self, target: &str, source: LinkSource, nofollow: bool) -> bool {
        self.base_used = true;
        let target = without_fragment(target);
        if self.to_resolve == 0 {
            self.extracted.dropped += 1;
            return false;
        }
        match self.resolver.parse(target) {
            Some(url) => {
                self.to_resolve = self.to_resolve.saturating_sub(url.as_str().len());
                self.add_url(url, source, nofollow)
            }
            None => self.add_uncrawlable(target.trim_end_matches('#'), |count| &mut count.unresolvable),
        }
    }

    /// Counts a link that can be no page, unless it was met before; false if there was no room for it.
    fn add_uncrawlable(&mut self, link: &str, kind: impl FnOnce(&mut Uncrawlable) -> &mut usize) -> bool {
        if self.uncrawlable.contains(link) {
            return true;
        }
        if self.uncrawlable.len() == self.options.max_links || self.room < link.len() {
            self.extracted.dropped += 1;
            return false;
        }
        self.room -= link.len();
        self.uncrawlable.insert(link.to_owned());
        *kind(&mut self.extracted.uncrawlable) += 1;
        true
    }

    /// Adds a link, or what it says about a known one; false if there was no room for it.
    fn add_url(&mut self, mut url: Url, source: LinkSource, nofollow: bool) -> bool {
        if !matches!(url.scheme(), "http" | "https") {
            return self.add_uncrawlable(url.as_str(), |count| &mut count.other_scheme);
        }
        url.set_fragment(None);
        let target = self.known_links.map(|known| known.target_of(&url));
        if target.is_some_and(|target| self.known.contains(&target)) {
            // Written in another way, it is known.
            return true;
        }
        let is_full = self.is_full();
        let at = self.links.len();
        match self.links.entry(url) {
            Entry::Occupied(mut said) => {
                said.get_mut().nofollow &= nofollow;
                said.get_mut().embedded |= source.is_asset();
            }
            Entry::Vacant(new) if !is_full && self.room >= new.key().as_str().len() => {
                self.room -= new.key().as_str().len();
                new.insert(Said {
                    source,
                    nofollow,
                    embedded: source.is_asset(),
                    link_key: match (self.words, target) {
                        (Some(words), Some(target)) => LinkKey { words, target },
                        _ => LinkKey::NONE,
                    },
                });
                if let Some(target) = target {
                    self.targets.insert(target, at);
                }
            }
            Entry::Vacant(_) => {
                self.extracted.dropped += 1;
                return false;
            }
        }
        true
    }
}

impl Loaded for Collector<'_> {
    fn add_asset(&mut self, target: Option<Cow<'_, str>>, source: LinkSource) {
        let Some(target) = target.filter(|target| !assets::is_inline(target)) else {
            return;
        };
        // Most of them are repeated, too.
        let words = self.hasher.hash_one(&*target);
        if !self.assets.contains(&words) && self.add_target(&target, source, false) && self.assets.len() < MOST_ASSETS {
            self.assets.insert(words);
        }
    }
}

/// What a frame shows from outside; nothing if its source is empty.
fn frame_source(element: &impl Element) -> Option<Cow<'_, str>> {
    element.value(Attribute::Src).filter(|source| !source.is_empty())
}

/// The link of an SVG anchor (SVG 2, 16.1.1: a plain `href` goes before `xlink:href`).
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

/// A title's text with its white space collapsed; `None` if nothing is left.
fn collapsed(text: &str) -> Option<String> {
    let mut kept = String::new();
    for (index, word) in text.split_ascii_whitespace().take(TITLE_CHARS).enumerate() {
        if index > 0 {
            kept.push(' ');
        }
        kept.push_str(word);
    }
    let kept: String = kept.chars().take(TITLE_CHARS).collect();
    // Only the cut can leave a blank at the end; other white space than ASCII's is the title's own.
    (!kept.is_empty()).then(|| kept.trim_end_matches(' ').to_owned())
}
