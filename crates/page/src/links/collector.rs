//! Collects the links, title and robots directives of one document, in document order.

use std::borrow::Cow;

use memchr::memchr2;

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

/// What a `<link>` with these types leads to; of several, the first one decides. A style sheet is no page, even an alternate one.
const LINK_TYPES: [(&str, Option<LinkSource>); 7] = [
    ("sitemap", Some(LinkSource::Sitemap)),
    ("next", Some(LinkSource::Next)),
    ("prev", Some(LinkSource::Next)),
    ("previous", Some(LinkSource::Next)),
    ("canonical", Some(LinkSource::Canonical)),
    ("stylesheet", None),
    ("alternate", Some(LinkSource::Alternate)),
];

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

    /// Adds the link of an anchor. Most links of a page are repeated, and repeated ones are skipped.
    pub(super) fn visit_anchor(&mut self, element: &Attributes<'_>) {
        let Some(href) = element.raw(Attribute::Href) else {
            return;
        };
        let (target, nofollow) = (without_plain_fragment(href), is_nofollow(element));
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

    /// An `<object>` or `<embed>` shows a page, unless its type is that of another file.
    pub(super) fn visit_shown_page(&mut self, element: &Attributes<'_>, attribute: Attribute) {
        let is_other = |kind: Cow<'_, str>| {
            let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            !essence.is_empty() && !essence.ends_with("html") && !essence.ends_with("xml")
        };
        if !element.value(Attribute::Type).is_some_and(is_other) {
            self.add(element.filled(attribute), LinkSource::Iframe, element);
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

    /// Sets the base, unless it is set. Returns it instead if links before it were resolved on another one.
    pub(super) fn rebase(&mut self, href: &str) -> Option<Resolver> {
        if std::mem::replace(&mut self.base_seen, true) {
            return None;
        }
        let rebased = self.resolver.rebased(href);
        if self.base_used && rebased.base != self.resolver.base {
            return Some(rebased);
        }
        self.directory = rebased.directory(self.options.known.as_deref());
        self.resolver = rebased;
        None
    }

    pub(super) fn visit_link(&mut self, element: &Attributes<'_>) {
        let rel = element.value(Attribute::Rel).unwrap_or_default();
        let place = |word: &str| LINK_TYPES.iter().position(|(name, _)| word.eq_ignore_ascii_case(name));
        let first = rel.split_ascii_whitespace().filter_map(place).min();
        if let Some((_, Some(source))) = first.and_then(|place| LINK_TYPES.get(place)) {
            self.add(element.filled(Attribute::Href), *source, element);
        }
    }

    fn is_agent(&self, name: &str) -> bool {
        !self.options.agent.is_empty() && name.eq_ignore_ascii_case(&self.options.agent)
    }

    pub(super) fn visit_meta(&mut self, element: &Attributes<'_>) {
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

    pub(super) fn add(&mut self, target: Option<Cow<'_, str>>, source: LinkSource, element: &Attributes<'_>) {
        if let Some(target) = target {
            self.add_target(&target, source, is_nofollow(element), None);
        }
    }

    pub(super) fn add_asset(&mut self, target: &str, source: LinkSource) {
        if is_inline(target) {
            return;
        }
        // Most assets are repeated on a page, so hash before resolving.
        let text = RepeatedLinks::hash(target, 2 + source as u64);
        if !self.repeats.is_known(text) && self.add_target(target, source, false, None) {
            self.repeats.remember(text);
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

/// Returns whether a URL contains the data itself. Such a URL may be as long as an image, and needs no request.
fn is_inline(target: &str) -> bool {
    let start = target.trim_ascii_start().as_bytes();
    start
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data:") || scheme.eq_ignore_ascii_case(b"blob:"))
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
