//! What the answer to a request for a page means, and what is told of it.

use std::sync::Arc;

use frontier::{Canonicalizer, Entry, Fate, Fingerprint, Link, NotFetched, Outcome, Time, Validators, Verdict};
use sieve::Filter;

use super::failure::{Failure, no_target, unusable};
use super::redirect_target;
use crate::clock::Clock;
use crate::config::CrawlConfig;
use crate::edges::{self, Edge};
use crate::engine::Crawl;
use crate::event::{Event, PageRecord};
use crate::fetch::{Answer, Cut, Extent, Fetcher};
use crate::judge::{Judgement, judge};
use crate::links::{Uncrawlable, Wording};
use crate::page::Page;
use crate::select::Selected;
use crate::sitemap;
use crate::task::Fetched;

/// What is left of a page once its links are offered.
pub(super) struct PageEnd {
    record: Option<PageRecord>,
    failure: Option<Failure>,
    /// No request was made after all, for this reason.
    refused: Option<NotFetched>,
    edges: Vec<Edge>,
    moved_to: Option<Box<str>>,
    wordings: Vec<Wording>,
    known: usize,
    dropped: u64,
    nofollow: u64,
    fingerprint: Fingerprint,
    uncrawlable: Uncrawlable,
}

impl PageEnd {
    /// The page to be written, if there is one, and what it is compared by.
    pub(super) fn page(&mut self) -> Option<(&mut PageRecord, Fingerprint)> {
        self.record.as_mut().map(|record| (record, self.fingerprint))
    }
}

pub(super) fn conclude(
    entry: &Entry,
    fetched: &mut Fetched,
    started: Time,
    config: &CrawlConfig,
) -> (Judgement, Vec<Link>, PageEnd) {
    let judgement = judge(&fetched.result);
    let canonicalizer = &config.options().canonicalizer;
    let tells_edges = config.options().tell_edges;
    let (found, known) = (fetched.page.links.len(), fetched.page.known);
    let mut edges = Vec::new();
    let (links, wordings): (Vec<_>, Vec<_>) = match &fetched.result {
        Ok(answer) if judgement.outcome == Outcome::Moved => redirect_target(entry, answer, canonicalizer)
            .map(|target| (entry.redirected(target), Wording::NONE))
            .into_iter()
            .unzip(),
        _ => {
            if tells_edges {
                edges = edges::of_page(&fetched.page, canonicalizer);
            }
            page_links(entry, &mut fetched.page, canonicalizer)
        }
    };
    if tells_edges && judgement.outcome == Outcome::Moved {
        edges = links.iter().map(edges::redirect).collect();
    }
    let (dropped, nofollow) = (fetched.page.links_dropped as u64, fetched.page.links_nofollow as u64);
    let fingerprint = fetched.page.fingerprint;
    let mut uncrawlable = fetched.page.uncrawlable;
    if judgement.outcome == Outcome::Moved {
        uncrawlable.unresolvable += usize::from(links.is_empty());
    } else {
        // Such as those to http://../, a host that is nothing but dots.
        uncrawlable.unresolvable += found - links.len();
    }
    let page = std::mem::take(&mut fetched.page);
    let (record, failure) = match &fetched.result {
        Ok(answer) if judgement.outcome == Outcome::Moved => (None, links.is_empty().then(|| no_target(answer))),
        Ok(answer) => {
            let failure = judgement.asks_again().then(|| unusable(answer));
            let mut record = record(entry, answer, page, started);
            record.links_found += found + known;
            if record.selected.is_none() && !config.options().fields.is_empty() {
                record.selected = Some(Selected::nothing(&config.options().fields));
            }
            (Some(record), failure)
        }
        Err(error) => {
            let (kind, why) = (error.kind(), error.to_string());
            (None, Some(Failure { kind, why }))
        }
    };
    let moved_to = links
        .first()
        .filter(|_| judgement.outcome == Outcome::Moved)
        .map(|target| target.url.url().as_str().into());
    let refused = match judgement.outcome {
        Outcome::NotFetched(why) => Some(why),
        _ => None,
    };
    (
        judgement,
        links,
        PageEnd {
            record,
            failure,
            refused,
            edges,
            moved_to,
            wordings,
            known,
            dropped,
            nofollow,
            fingerprint,
            uncrawlable,
        },
    )
}

/// The links of a page that can be crawled, and how each is written.
fn page_links(entry: &Entry, page: &mut Page, canonicalizer: &Canonicalizer) -> (Vec<Link>, Vec<Wording>) {
    let referrer: Arc<str> = (*entry.url).into();
    let depth = entry.depth.saturating_add(1);
    let steps = entry.metadata.embedded.saturating_add(1);
    let written = std::mem::take(&mut page.links).into_iter().zip(&page.wordings);
    let links = written.filter_map(|(link, wording)| {
        let url = canonicalizer.canonicalize(link.url).ok()?;
        let found = Link::found(url, depth, Arc::clone(&referrer));
        let embedded = if link.embedded { steps } else { 0 };
        Some((Link { embedded, ..found }, *wording))
    });
    links.unzip()
}

fn record(entry: &Entry, answer: &Answer, page: Page, started: Time) -> PageRecord {
    let Validators { etag, last_modified } = version(entry, answer);
    PageRecord {
        etag,
        last_modified,
        url: entry.url.to_string(),
        redirected_from: entry.metadata.redirected_from.as_deref().map(str::to_owned),
        was_redirected_from: entry
            .metadata
            .earlier
            .as_ref()
            .and_then(|earlier| earlier.redirected_from.clone()),
        status: answer.status,
        depth: entry.depth,
        embedded: entry.metadata.embedded,
        referrer: entry.metadata.referrer.as_deref().map(str::to_owned),
        content_type: answer.content_type.clone(),
        bytes: answer.body.len() as u64,
        body: if page.cut { Extent::Truncated } else { answer.extent },
        body_cut: answer.cut.or(page.cut.then_some(Cut::Markup)),
        fetched_at: Clock::rfc3339(started),
        milliseconds: u64::try_from(answer.elapsed.as_millis()).unwrap_or(u64::MAX),
        links_found: page.links_nofollow + page.links_dropped,
        links_new: 0,
        noindex: page.noindex,
        content_hash: page.fingerprint.content.map(|hash| hash.to_string()),
        simhash: page.fingerprint.text.map(|hash| hash.to_string()),
        duplicate_of: None,
        near_duplicate_of: None,
        title: page.title,
        lastmod: entry.metadata.lastmod.and_then(sitemap::rfc3339),
        selected: page.selected,
    }
}

/// What tells the version of a page: of one that is still the same, what its server says now, or else has said before.
fn version(entry: &Entry, answer: &Answer) -> Validators {
    let now = answer.validators.clone();
    match &entry.metadata.earlier {
        Some(earlier) if answer.status == 304 => Validators {
            etag: now.etag.or_else(|| earlier.validators.etag.clone()),
            last_modified: now.last_modified.or_else(|| earlier.validators.last_modified.clone()),
        },
        _ => now,
    }
}

impl<S: Fetcher, F: Filter> Crawl<S, F> {
    /// Tells of a page what there is to tell. What became of its links is told once, when it does not come again.
    pub(super) fn follow_up_page(&mut self, entry: &Entry, end: PageEnd, fate: Fate, verdicts: &[Verdict]) {
        let PageEnd {
            record,
            failure,
            refused,
            mut edges,
            moved_to,
            wordings,
            known,
            dropped,
            nofollow,
            fingerprint: _,
            uncrawlable,
        } = end;

        self.remember(&wordings, verdicts, known);
        edges::judge(&mut edges, verdicts);
        let is_over = matches!(fate, Fate::Final | Fate::GaveUp);
        let new = self.attempts.new_links(&entry.url, is_over, verdicts, &mut edges);
        if is_over {
            self.count_uncrawlable(uncrawlable);
            self.count_links(dropped, nofollow);
            if !edges.is_empty() {
                self.tell(&Event::Edges {
                    from: entry,
                    edges: &edges,
                });
            }
        }
        if let Some(target) = moved_to {
            self.follow_up_redirect(entry, target, verdicts);
        }
        if let Some(why) = refused {
            self.tell(&Event::NotFetched {
                url: &entry.url,
                why,
                entry,
            });
        } else if let Some(Failure { kind, why }) = &failure {
            self.tell(&Event::Failed {
                url: &entry.url,
                why,
                kind: *kind,
                fate,
                entry,
            });
        }
        if let Some(mut record) = record.filter(|_| is_over) {
            record.links_new = new;
            self.tell(&Event::Page(&record));
        }
    }

    /// What the frontier has seen need not be offered again.
    fn remember(&mut self, wordings: &[Wording], verdicts: &[Verdict], known: usize) {
        self.frontier_mut().count_seen(known as u64);
        let written = wordings.iter().zip(verdicts);
        let seen = written.filter(|(_, verdict)| matches!(verdict, Verdict::Queued | Verdict::Seen));
        self.remember_links(seen.map(|(wording, _)| *wording));
    }
}
