//! Collects the links, title and robots directives of one document, in document order.

use std::borrow::Cow;

use memchr::memchr2;

use super::assets::{self, Asset, Assets};
use super::list::{LinkList, MEAN_LINK_BYTES};
use super::references::{TextContext, decoded};
use super::repeats::RepeatedLinks;
use super::resolve::{Resolver, without_fragment};
use super::seen_cache::Directory;
use super::tag::{Attribute, Attributes, has_token};
use super::{Extracted, LeftOut, LinkOptions, LinkSource, refresh};

/// Maximum number of characters of a title.
const TITLE_CHARS: usize = 512;

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
    /// `<object>`, which may show a page.
    Object,
    /// `<embed>`, likewise.
    Embed,
    SvgAnchor,
    /// Only if assets are wanted.
    Asset(Asset),
}

/// Collects what the elements of one document contain.
pub(super) struct Collector<'a> {
    options: &'a LinkOptions,
    resolver: Resolver,
    extracted: Extracted,
    links: LinkList,
    repeats: RepeatedLinks,
    /// Of the base, if links may be left out.
    directory: Option<Directory<'a>>,
    /// How many bytes of URLs may still be resolved, including those of links that are dropped.
    resolvable_bytes_left: usize,
    title_seen: bool,
    base_seen: bool,
    refresh_seen: bool,
    base_used: bool,
}

impl<'a> Collector<'a> {
    pub(super) fn new(resolver: Resolver, options: &'a LinkOptions, length: usize) -> Self {
        Self {
            options,
            repeats: RepeatedLinks::new(length),
            directory: resolver.directory(options.known.as_deref()),
            resolver,
            extracted: Extracted::default(),
            links: LinkList::new(options),
            resolvable_bytes_left: RESOLVED_BYTES.saturating_add(options.max_links.saturating_mul(RESOLVED_LINK_BYTES)),
            title_seen: false,
            base_seen: false,
            refresh_seen: false,
            base_used: false,
        }
    }

    pub(super) fn into_extracted(self) -> Extracted {
        let (links, left_out) = self.links.finish();
        Extracted {
            links,
            left_out,
            ..self.extracted
        }
    }

    /// Adds the link of an anchor, as written. Most links of a page are repeated, and repeated ones are skipped.
    pub(super) fn add_anchor(&mut self, href: &str, nofollow: bool) {
        let target = without_plain_fragment(href);
        let text = RepeatedLinks::hash(target, u64::from(nofollow));
        if self.repeats.is_known(text) {
            return;
        }
        let directory = self.directory.filter(|_| !nofollow);
        let spelling = directory.and_then(|directory| directory.spelling(target));
        let known = directory
            .zip(spelling)
            .and_then(|(directory, spelling)| directory.find(spelling));
        let is_taken = match known {
            Some(target) => {
                self.base_used = true;
                self.links.add_known(target)
            }
            None => self.add_target(
                &decoded(target, TextContext::Attribute),
                LinkSource::Anchor,
                nofollow,
                spelling,
            ),
        };
        // A link that was taken is skipped when it is repeated, but one that was dropped counts as dropped each time.
        if is_taken {
            self.repeats.remember(text);
        }
    }

    pub(super) fn visit(&mut self, kind: Kind, element: &Attributes<'_>) {
        let href = || element.value(Attribute::Href);
        match kind {
            Kind::Anchor => {
                if let Some(href) = element.raw(Attribute::Href) {
                    self.add_anchor(href, is_nofollow(element));
                }
            }
            Kind::Area => self.add(href(), LinkSource::Area, element),
            Kind::Base => self.base_seen |= element.raw(Attribute::Href).is_some(),
            Kind::Frame => self.add(frame_source(element), LinkSource::Frame, element),
            Kind::Iframe if element.raw(Attribute::Srcdoc).is_some() => {}
            Kind::Iframe => self.add(frame_source(element), LinkSource::Iframe, element),
            Kind::Object => self.add(shown_page(element, Attribute::Data), LinkSource::Iframe, element),
            Kind::Embed => self.add(shown_page(element, Attribute::Src), LinkSource::Iframe, element),
            Kind::Link => self.visit_link(element),
            Kind::Meta => self.visit_meta(element),
            Kind::SvgAnchor => self.add(svg_href(element), LinkSource::Anchor, element),
            Kind::Asset(asset) => assets::visit(self, asset, element),
        }
    }

    /// `None` if it is dropped.
    pub(super) fn nested(&mut self) -> Option<(Resolver, &'a LinkOptions)> {
        self.base_used = true;
        let resolver = self.resolver.nested().filter(|_| self.resolvable_bytes_left > 0);
        self.links.left_out.dropped += usize::from(resolver.is_none());
        Some((resolver?, self.options))
    }

    pub(super) fn add_nested(&mut self, nested: Extracted) {
        let LeftOut {
            other_scheme,
            unresolvable,
            dropped,
            ..
        } = nested.left_out;
        self.links.left_out.other_scheme += other_scheme;
        self.links.left_out.unresolvable += unresolvable;
        self.links.left_out.dropped += dropped;
        for link in nested.links {
            let nofollow = link.nofollow || nested.robots.nofollow;
            self.resolvable_bytes_left = self.resolvable_bytes_left.saturating_sub(link.url.as_str().len());
            self.links.add(link.url.clone(), link.source, nofollow, None);
            if link.embedded {
                self.links.add(link.url, LinkSource::Media, nofollow, None);
            }
        }
    }

    /// False if a link before it was resolved on the old one.
    pub(super) fn rebase(&mut self, href: &str) -> bool {
        if self.base_used {
            return false;
        }
        self.resolver.rebase(href);
        self.directory = self.resolver.directory(self.options.known.as_deref());
        true
    }

    fn visit_link(&mut self, element: &Attributes<'_>) {
        let rel = element.value(Attribute::Rel).unwrap_or_default();
        let source = if has_token(&rel, "sitemap") {
            Some(LinkSource::Sitemap)
        } else if ["next", "prev", "previous"].iter().any(|token| has_token(&rel, token)) {
            Some(LinkSource::Next)
        } else if has_token(&rel, "canonical") {
            Some(LinkSource::Canonical)
        } else if has_token(&rel, "alternate") && !has_token(&rel, "stylesheet") {
            Some(LinkSource::Alternate)
        } else {
            None
        };
        let href = || element.value(Attribute::Href).filter(|href| !href.is_empty());
        if let Some(source) = source {
            self.add(href(), source, element);
        }
        if self.options.assets {
            assets::visit_link(self, &rel, element);
        }
    }

    fn is_agent(&self, name: &str) -> bool {
        !self.options.agent.is_empty() && name.eq_ignore_ascii_case(&self.options.agent)
    }

    fn visit_meta(&mut self, element: &Attributes<'_>) {
        let content = element.value(Attribute::Content).unwrap_or_default();
        if let Some(name) = element.value(Attribute::Name)
            && (name.eq_ignore_ascii_case("robots") || self.is_agent(&name))
        {
            self.extracted.robots.merge_content(&content);
        }
        let is_refresh = |pragma: Cow<'_, str>| pragma.eq_ignore_ascii_case("refresh");
        if element.value(Attribute::HttpEquiv).is_some_and(is_refresh) {
            self.visit_refresh(&content, element);
        }
    }

    /// Adds the target of a refresh. Only the first valid refresh counts, and a later base does not change its target.
    fn visit_refresh(&mut self, content: &str, element: &Attributes<'_>) {
        let Some(target) = refresh::parse(content).filter(|_| !self.refresh_seen) else {
            return;
        };
        let url = match target {
            None => None,
            Some(target) if self.base_seen => self.resolver.parse(target),
            Some(target) => self.resolver.parse_without_base(target),
        };
        let url = url.filter(|url| url.scheme() != "javascript");
        self.refresh_seen = target.is_none() || url.is_some();
        self.extracted.refreshes_itself |=
            target.is_none() || url.is_some() && url == self.resolver.parse_without_base("");
        if let Some(url) = url {
            self.links.add(url, LinkSource::Refresh, is_nofollow(element), None);
        }
    }

    /// Sets the title. Only the first one counts; `text` is not called for others.
    pub(super) fn visit_title(&mut self, text: impl FnOnce() -> String) {
        if !self.title_seen {
            self.title_seen = true;
            self.extracted.title = collapsed(&text());
        }
    }

    fn add(&mut self, target: Option<Cow<'_, str>>, source: LinkSource, element: &Attributes<'_>) {
        if let Some(target) = target {
            self.add_target(&target, source, is_nofollow(element), None);
        }
    }

    fn add_target(&mut self, target: &str, source: LinkSource, nofollow: bool, spelling: Option<u64>) -> bool {
        self.base_used = true;
        let target = without_fragment(target);
        if self.resolvable_bytes_left == 0 {
            return self.links.drop_one();
        }
        match self.resolver.parse(target) {
            Some(url) => {
                self.resolvable_bytes_left = self.resolvable_bytes_left.saturating_sub(url.as_str().len());
                self.links.add(url, source, nofollow, spelling)
            }
            None => self
                .links
                .add_uncrawlable(target.trim_end_matches('#'), |count| &mut count.unresolvable),
        }
    }
}

impl Assets for Collector<'_> {
    fn add_asset(&mut self, target: Option<Cow<'_, str>>, source: LinkSource) {
        let Some(target) = target.filter(|target| !assets::is_inline(target)) else {
            return;
        };
        // Most assets are repeated on a page, so hash before resolving.
        let text = RepeatedLinks::hash(&target, 2 + source as u64);
        if !self.repeats.is_known(text) && self.add_target(&target, source, false, None) {
            self.repeats.remember(text);
        }
    }
}

/// `None` if it is empty.
fn frame_source<'a>(element: &Attributes<'a>) -> Option<Cow<'a, str>> {
    element.value(Attribute::Src).filter(|source| !source.is_empty())
}

/// `None` if its type is that of another file.
fn shown_page<'a>(element: &Attributes<'a>, attribute: Attribute) -> Option<Cow<'a, str>> {
    let kind = element.value(Attribute::Type);
    let shown = element.value(attribute).filter(|shown| !shown.is_empty());
    let may_be_page = kind.is_none_or(|kind| {
        let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        essence.is_empty() || essence.ends_with("html") || essence.ends_with("xml")
    });
    shown.filter(|_| may_be_page)
}

/// Returns the link of an SVG anchor. A plain `href` takes precedence over `xlink:href` (SVG 2, 16.1.1).
fn svg_href<'a>(element: &Attributes<'a>) -> Option<Cow<'a, str>> {
    element
        .value(Attribute::Href)
        .or_else(|| element.value(Attribute::XlinkHref))
}

/// Returns the reference without its fragment, unless a character reference comes before the first `#`. The `#` of
/// `&#35;` starts no fragment.
fn without_plain_fragment(href: &str) -> &str {
    match memchr2(b'#', b'&', href.as_bytes()) {
        Some(at) if href.as_bytes().get(at) == Some(&b'#') => without_fragment(href),
        _ => href,
    }
}

fn is_nofollow(element: &Attributes<'_>) -> bool {
    element
        .value(Attribute::Rel)
        .is_some_and(|rel| has_token(&rel, "nofollow"))
}

/// Collapses the white space of a title; `None` if nothing is left.
fn collapsed(text: &str) -> Option<String> {
    let words: Vec<_> = text.split_ascii_whitespace().take(TITLE_CHARS).collect();
    let kept: String = words.join(" ").chars().take(TITLE_CHARS).collect();
    // The cut may leave a space at the end. White space beyond ASCII belongs to the title.
    (!kept.is_empty()).then(|| kept.trim_end_matches(' ').to_owned())
}
