//! The links of one page as edges of the link graph, including those that are not offered to the frontier.

use frontier::{Link, Verdict};
use page::links::FoundLink;

/// One link of a page, or the target of a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkRecord {
    /// The target: an absolute URL without fragment.
    pub to: String,
    /// What all spellings of the target have in common: the `key` of its page; `None` if its URL cannot be crawled.
    pub key: Option<String>,
    /// The kind of link: the name of a [`LinkSource`](page::links::LinkSource), or `redirect`.
    pub kind: &'static str,
    /// Whether the link or its page has `nofollow`.
    pub nofollow: bool,
    /// The frontier's verdict; `None` if the link was not offered, because it has `nofollow` or its URL cannot be
    /// crawled.
    pub verdict: Option<Verdict>,
}

impl LinkRecord {
    /// Makes a record of a link that was not offered. Tests of observers need it.
    pub fn new(to: impl Into<String>, kind: &'static str) -> Self {
        Self {
            to: to.into(),
            key: None,
            kind,
            nofollow: false,
            verdict: None,
        }
    }

    /// Returns what happened to the link, in snake case: `queued`, `seen`, `elsewhere`, the name of a
    /// [`Refusal`](frontier::Refusal), `nofollow` or `not_crawlable`.
    pub fn verdict_name(&self) -> &'static str {
        match self.verdict {
            Some(Verdict::Queued) => "queued",
            Some(Verdict::Seen) => "seen",
            Some(Verdict::Elsewhere) => "elsewhere",
            Some(Verdict::Refused(why)) => why.name(),
            None if self.nofollow => "nofollow",
            None => "not_crawlable",
        }
    }
}

pub(crate) fn redirect(target: &Link) -> LinkRecord {
    LinkRecord {
        key: Some(target.url.key().to_owned()),
        ..LinkRecord::new(target.url.url().as_str(), "redirect")
    }
}

/// Its key is not known yet.
pub(crate) fn record_of(link: &FoundLink) -> LinkRecord {
    LinkRecord {
        nofollow: link.nofollow,
        ..LinkRecord::new(link.url.as_str(), link.source.name())
    }
}
