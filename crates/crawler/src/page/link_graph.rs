//! The links of one answer as edges of a graph: with those that nobody offers to the frontier.

use frontier::{Canonicalizer, Link, Verdict};

use crate::page::Page;
use crate::page::links::FoundLink;

/// One link of a page, or the one of a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkRecord {
    /// Where it leads: an absolute URL without fragment.
    pub to: String,
    /// What it is: the name of a [`LinkSource`](crate::page::links::LinkSource), or `redirect`.
    pub kind: &'static str,
    /// Whether the link, or its page, says that it is not to be followed.
    pub nofollow: bool,
    /// What the frontier made of it; `None` when it was not offered: with `nofollow`, or a URL that cannot be crawled.
    pub verdict: Option<Verdict>,
}

impl LinkRecord {
    /// Makes an edge that may be followed and was not offered, such as to test an observer.
    pub fn new(to: impl Into<String>, kind: &'static str) -> Self {
        Self {
            to: to.into(),
            kind,
            nofollow: false,
            verdict: None,
        }
    }

    /// Returns what became of the link as one word in snake case: `queued`, `seen`, the name of a
    /// [`Refusal`](frontier::Refusal), `nofollow` or `not_crawlable`.
    pub fn verdict_name(&self) -> &'static str {
        match self.verdict {
            Some(Verdict::Queued) => "queued",
            Some(Verdict::Seen) => "seen",
            Some(Verdict::Refused(why)) => why.name(),
            None if self.nofollow => "nofollow",
            None => "not_crawlable",
        }
    }
}

/// The edge of a redirect.
pub(crate) fn redirect(target: &Link) -> LinkRecord {
    LinkRecord::new(target.url.url().as_str(), "redirect")
}

/// The edges of a page: first, in their order, those of the links that are offered, then the others.
pub(crate) fn of_page(page: &Page, canonicalizer: &Canonicalizer) -> Vec<LinkRecord> {
    let mut edges = Vec::with_capacity(page.links.len() + page.unfollowed.len());
    let mut not_crawlable = Vec::new();
    for link in &page.links {
        match canonicalizer.canonicalize(link.url.clone()) {
            Ok(_) => edges.push(of_link(link, false)),
            Err(_) => not_crawlable.push(of_link(link, false)),
        }
    }
    edges.append(&mut not_crawlable);
    edges.extend(page.unfollowed.iter().map(|link| of_link(link, true)));
    edges
}

fn of_link(link: &FoundLink, nofollow: bool) -> LinkRecord {
    LinkRecord {
        nofollow,
        ..LinkRecord::new(link.url.as_str(), link.source.name())
    }
}

/// Notes what became of those that were offered.
pub(crate) fn judge(edges: &mut [LinkRecord], verdicts: &[Verdict]) {
    for (edge, verdict) in edges.iter_mut().zip(verdicts) {
        edge.verdict = Some(*verdict);
    }
}
