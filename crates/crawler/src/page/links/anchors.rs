//! Takes the anchors of a page in batches.
//!
//! Resolving a link runs through far more code than reading a tag. Where both take turns, each pushes the code of the other out of the
//! processor's first cache: without batches, a crawl of the Python manual has half as many misses more there. So anchors wait until there
//! are enough of them, or until something else of the page comes to the collector. Long links do not wait, nor any link near a limit of
//! the page: then it must be known at once whether the link is taken.

use memchr::memchr2;

use super::collector::Collector;
use super::references::{TextContext, decoded};
use super::repeats::RepeatedLinks;
use super::resolve::{URL_BYTES, without_fragment};
use super::seen_cache::{Directory, SeenLinkCache};

/// How many anchors wait at most.
const BATCH: usize = 64;

/// Maximum length of a link that waits, in bytes. Decoded, it has at most three times as many.
const WAITING_BYTES: usize = URL_BYTES / 4;

/// The anchors of a page before they come to the collector.
pub(super) struct Anchors<'a, 'o> {
    collector: Collector<'o>,
    repeats: RepeatedLinks<'a>,
    known: Option<(&'o SeenLinkCache, Directory)>,
    waiting: Vec<Anchor<'a>>,
}

/// An anchor with its link as written, without a plain fragment.
#[derive(Clone, Copy)]
struct Anchor<'a> {
    target: &'a str,
    nofollow: bool,
}

impl<'a, 'o> Anchors<'a, 'o> {
    /// Takes the anchors of a page of this length.
    pub(super) fn new(collector: Collector<'o>, known: Option<(&'o SeenLinkCache, Directory)>, length: usize) -> Self {
        Self {
            collector,
            repeats: RepeatedLinks::new(length),
            known,
            waiting: Vec::new(),
        }
    }

    /// Returns the collector. It has all anchors so far.
    pub(super) fn collector(&mut self) -> &mut Collector<'o> {
        self.take_waiting();
        &mut self.collector
    }

    /// Returns the collector at the end of the page.
    pub(super) fn into_collector(mut self) -> Collector<'o> {
        self.take_waiting();
        self.collector
    }

    /// Sets the base of all following links; false if a link before it was resolved on the old one.
    pub(super) fn rebase(&mut self, href: &str) -> bool {
        if self.collector().has_used_base() {
            return false;
        }
        let resolver = self.collector.rebase(href);
        self.known = self
            .known
            .and_then(|(known, _)| Some((known, resolver.directory(known)?)));
        true
    }

    /// Adds an anchor. Most links of a page are repeated, and repeated ones are skipped.
    pub(super) fn add(&mut self, href: &'a str, nofollow: bool) {
        let target = without_plain_fragment(href);
        if self.repeats.is_known(target, nofollow) {
            return;
        }
        let anchor = Anchor { target, nofollow };
        // A link that was taken is skipped when it is repeated, but one that was dropped counts as dropped each time. So only a link that
        // will surely be taken may wait.
        if target.len() > WAITING_BYTES || self.waiting.is_empty() && !self.collector.has_room_for_links(BATCH) {
            self.take_waiting();
            if !self.take(anchor) {
                return;
            }
        } else {
            self.waiting.push(anchor);
            if self.waiting.len() == BATCH {
                self.take_waiting();
            }
        }
        self.repeats.remember(target, nofollow);
    }

    // Inlined, it would be in the way of the tokenizer's code.
    #[inline(never)]
    fn take_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for anchor in waiting.drain(..) {
            self.take(anchor);
        }
        self.waiting = waiting;
    }

    /// Passes an anchor to the collector; false if it was dropped because the page is full.
    fn take(&mut self, Anchor { target, nofollow }: Anchor<'_>) -> bool {
        let known = self.known.as_ref().filter(|_| !nofollow);
        let spelling = known.and_then(|(known, directory)| known.spelling(directory, target));
        match spelling.and_then(|spelling| known?.0.find(spelling)) {
            Some(link) => self.collector.visit_known(link),
            None => self
                .collector
                .add_anchor(&decoded(target, TextContext::Attribute), nofollow, spelling),
        }
    }
}

/// Returns the reference without its fragment, unless a character reference comes before the first `#`. The `#` of
/// `&#35;` starts no fragment.
fn without_plain_fragment(href: &str) -> &str {
    match memchr2(b'#', b'&', href.as_bytes()) {
        Some(at) if href.as_bytes().get(at) == Some(&b'#') => without_fragment(href),
        _ => href,
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;
    use url::Url;

    use super::super::{LinkKey, LinkOptions, extract_new};
    use super::*;

    #[test]
    fn links_behind_a_full_page_of_known_links_count_as_dropped_as_often_as_they_come() {
        let page = Url::parse("http://site.example/").unwrap();
        let known = SeenLinkCache::default();
        let directory = known.directory(&page, UTF_8).unwrap();
        for n in 0..1_000 {
            let href = format!("known-{n}");
            known.remember(LinkKey {
                spelling: known.spelling(&directory, &href).unwrap(),
                target: known.url_hash(&page.join(&href).unwrap()),
            });
        }
        let anchors = |kind, count| -> String { (0..count).map(|n| format!("<a href={kind}-{n}>")).collect() };
        let options = LinkOptions {
            max_links: 1_087,
            ..LinkOptions::default()
        };
        let news = |times| {
            let html = anchors("known", 1_000) + &anchors("new", 200).repeat(times);
            extract_new(&html, UTF_8, &page, &options, Some(&known))
        };
        let (once, twice) = (news(1), news(2));
        assert!(once.known > 800, "some slots are overwritten: {}", once.known);
        assert_eq!(once.known + once.extracted.links.len(), 1_087);
        assert_eq!((once.extracted.dropped, twice.extracted.dropped), (113, 226));
    }
}
