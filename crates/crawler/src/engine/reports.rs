//! What observers get once a settlement is made or an entry is dropped.

use std::cell::OnceCell;

use frontier::{Dropped, Entry, Failure, FailureKind, Fate, Outcome, Purpose, Settled, Settlement, Verdict};
use page::links::LinkKey;

use super::Run;
use crate::engine::conclusions::sitemaps::unfetched_record;
use crate::engine::conclusions::{PageReport, PendingReport};
use crate::event::{Event, PageRecord};
use crate::fetch::Fetcher;

impl<S: Fetcher> Run<S> {
    /// Reports a settled lease.
    pub(super) fn report_settled(&mut self, settlement: &Settlement, pending: PendingReport, settled: &Settled) {
        self.observers.notify(&Event::Offered {
            links: settlement.links(),
            verdicts: &settled.verdicts,
        });
        let entry = &pending.entry;
        if let Some(mut request) = pending.request {
            let spent = pending.started.elapsed();
            let is_retried = request.failure.is_some() && matches!(settled.fate, Fate::Requeued { .. });
            if request.status.is_none() {
                request.took = spent;
            }
            self.answer_times.count(&entry.queue, spent, &request, is_retried);
            self.observers.notify(&Event::Requested(&request));
        }
        self.observers.counts.cookies_dropped += pending.cookies_dropped as u64;
        if let Some(capture) = &pending.capture {
            self.observers.notify(&Event::Captured(capture));
        }
        for notice in &settled.notices {
            self.observers.notify(&Event::Notice(notice));
        }
        let is_final = matches!(settled.fate, Fate::Final | Fate::GaveUp);
        let are_reported = match entry.purpose {
            Purpose::Robots(_) => !pending.sitemaps.is_empty() && self.ledger.reported_robots.insert(entry.url.clone()),
            _ => is_final,
        };
        for sitemap in pending.sitemaps.iter().filter(|_| are_reported) {
            self.observers.notify(&Event::Sitemap(sitemap));
        }
        if let Some(page) = pending.page {
            self.report_page(entry, settlement.outcome(), *page, settled);
        }
    }

    /// Reports a page. Its record and its links are reported once, after the last attempt.
    fn report_page(&mut self, entry: &Entry, outcome: &Outcome, mut page: PageReport, settled: &Settled) {
        let fate = settled.fate;
        let is_final = matches!(fate, Fate::Final | Fate::GaveUp);
        self.remember_links(&page.link_keys, &settled.verdicts);
        for (link, verdict) in page.links.iter_mut().zip(&settled.verdicts) {
            link.verdict = Some(*verdict);
        }
        let queued = settled.verdicts.iter().filter(|one| **one == Verdict::Queued).count();
        let new = queued + self.ledger.new_links.remove(&entry.url).unwrap_or_default();
        if is_final {
            self.report_content(entry, &mut page);
        } else if new > 0 {
            self.ledger.new_links.insert(entry.url.clone(), new);
        }
        self.report_redirect_loop(entry, settled, page.wants_cookies);
        if let Outcome::NotFetched(why) = *outcome {
            let cause = None;
            self.observers.notify(&Event::NotFetched { entry, why, cause });
        }
        let failure = match outcome {
            Outcome::Failed { failure, .. } => Some(failure),
            _ => page.bad_redirect.as_ref(),
        };
        if let Some(failure) = failure {
            self.observers.notify(&Event::Failed { entry, failure, fate });
        }
        if let Some(mut record) = page.record.take().filter(|_| is_final) {
            record.links_new = new;
            record.is_throttled = failure.is_some_and(|failure| failure.kind == FailureKind::Throttled);
            record.left = self.frontier.pages_left();
            record.duplicate_of = settled.duplicate_of.as_deref().map(str::to_owned);
            record.near_duplicate_of = settled.near_duplicate_of.as_deref().map(str::to_owned);
            self.report_record(record, &page);
        }
    }

    fn report_content(&mut self, entry: &Entry, page: &mut PageReport) {
        let (counts, found) = (&mut self.observers.counts, &mut page.found);
        counts.unfollowed.other_scheme += found.left_out.other_scheme as u64;
        counts.unfollowed.unresolvable += found.left_out.unresolvable as u64;
        counts.unfollowed.dropped += found.left_out.dropped as u64;
        counts.unfollowed.nofollow += found.left_out.nofollow as u64;
        counts.failures.wants_cookies += u64::from(page.wants_cookies && page.record.is_some());
        match (&page.sitemap, found.other_type.take()) {
            (Some(sitemap), _) => self.observers.notify(&Event::Sitemap(sitemap)),
            (None, Some(name)) if !entry.is_refresh() => counts.failures.count_other_type(name),
            _ => {}
        }
        if !page.links.is_empty() && self.config.options().reports.links {
            self.observers.notify(&Event::Links {
                from: entry,
                links: &page.links,
            });
        }
    }

    fn report_record(&mut self, mut record: PageRecord, page: &PageReport) {
        if let Some(bytes) = &page.body {
            let saved_as = OnceCell::new();
            self.observers.notify(&Event::Body {
                page: &record,
                bytes,
                saved_as: &saved_as,
            });
            record.saved_as = saved_as.into_inner();
        }
        self.observers.notify(&Event::Page(&record));
        if let Some(text) = &page.found.text {
            self.observers.notify(&Event::Content {
                page: &record,
                text,
                links: &page.links,
            });
        }
    }

    /// Reports each URL of a redirect loop as failed. Their pages are never fetched, so no other report names them.
    fn report_redirect_loop(&mut self, entry: &Entry, settled: &Settled, wants_cookies: bool) {
        if settled.redirect_loop.is_empty() {
            return;
        }
        let mut looped = settled.redirect_loop.clone();
        let first = entry.metadata.redirected_from.as_deref();
        if let Some(first) = first
            && looped.iter().all(|url| **url != *first)
        {
            looped.push(first.into());
        }
        let mut why = "redirect loop: the redirects lead back to an earlier URL".to_owned();
        if wants_cookies {
            why += ", and the site sets cookies: keeping them may help";
            self.observers.counts.failures.wants_cookies += looped.len() as u64;
        }
        let failure = Failure::new(FailureKind::Redirect, why);
        for url in looped {
            let mut entry = entry.clone();
            entry.url = url;
            self.observers.notify(&Event::Failed {
                entry: &entry,
                failure: &failure,
                fate: Fate::Final,
            });
        }
    }

    /// Reports entries that left the queue without a request.
    pub(super) fn report_dropped(&mut self, dropped: Vec<Dropped>) {
        for Dropped { entry, why, cause, .. } in dropped {
            self.ledger.new_links.remove(&entry.url);
            match entry.purpose {
                Purpose::Sitemap(_) => {
                    let record = unfetched_record(&entry, why, cause.as_deref());
                    self.observers.notify(&Event::Sitemap(&record));
                }
                Purpose::Page | Purpose::Robots(_) | Purpose::Address => self.observers.notify(&Event::NotFetched {
                    entry: &entry,
                    why,
                    cause: cause.as_deref(),
                }),
            }
        }
    }

    /// Puts links into the cache that the frontier has seen, so that later pages do not offer them again.
    fn remember_links(&mut self, keys: &[Option<LinkKey>], verdicts: &[Verdict]) {
        for (key, verdict) in keys.iter().zip(verdicts) {
            match (key, verdict) {
                (Some(key), Verdict::Queued | Verdict::Seen | Verdict::Elsewhere) => self.seen_links.remember(*key),
                (None, _) | (_, Verdict::Refused(_)) => {}
            }
        }
    }
}
