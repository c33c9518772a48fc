//! From the answer to a page request to its settlement and report.

use std::sync::Arc;

use frontier::{
    CanonicalUrl, ContentHash, Failure, Fingerprint, Lease, Link, Outcome, PreviousFetch, Settlement, Time, Validators,
};
use page::Page;
use page::fingerprint::content_hash;
use page::links::{LinkKey, LinkSource};
use page::select::Selected;
use page::sitemap::format_date;

use super::{bad_redirect, inherit_data, origin_of, outcome_of, redirect_target, sitemaps};
use crate::config::CrawlConfig;
use crate::event::{LinkRecord, PageRecord, SitemapRecord};
use crate::fetch::{BodyExtent, Response, TargetCookies, TruncationReason};
use crate::known_links::validators_of_body;
use crate::records::link::{self as link_records, record_of};

/// What is reported of a page once its links are offered.
#[derive(Default)]
pub(crate) struct PageReport {
    pub(crate) record: Option<PageRecord>,
    /// The body, if the crawl keeps bodies and the page has one.
    pub(crate) body: Option<Vec<u8>>,
    /// Of a redirect whose target cannot be crawled. All other failures are in the outcome.
    pub(crate) bad_redirect: Option<Failure>,
    /// All links, if an observer needs them: those that are offered first.
    pub(crate) links: Vec<LinkRecord>,
    /// The key of each link that is offered in the cache of seen links, but for those of a sitemap.
    pub(crate) link_keys: Vec<Option<LinkKey>>,
    /// What it lists, if it is a sitemap or a feed.
    pub(crate) sitemap: Option<SitemapRecord>,
    /// What else was found on it.
    pub(crate) found: Page,
    /// Whether the answer is a redirect, or refreshes itself, and the site sets cookies that are not kept.
    pub(crate) wants_cookies: bool,
}

/// An answer to the request for a page.
pub(super) struct Answered<'a> {
    pub(super) lease: &'a Lease,
    pub(super) answer: &'a mut Response,
    pub(super) started: Time,
    pub(super) config: &'a CrawlConfig,
}

impl Answered<'_> {
    /// Concludes it. Takes its body, if the crawl keeps bodies.
    pub(super) fn conclude(mut self, page: Page) -> (Settlement, PageReport) {
        let status = self.answer.status;
        let is_asked_again = page.refreshes_itself && self.answer.target_cookies == TargetCookies::New;
        let (settlement, report) = match outcome_of(self.answer, &self.lease.entry.purpose) {
            Outcome::Redirected => self.redirected(),
            Outcome::Done if is_asked_again => self.redirected(),
            outcome => self.fetched(outcome, page),
        };
        (settlement.with_status(status), report)
    }

    /// Concludes a redirect, whose target is a link.
    fn redirected(&self) -> (Settlement, PageReport) {
        let target = redirect_target(&self.lease.entry, self.answer, self.config);
        let links = Vec::from_iter(target);
        let mut report = PageReport {
            bad_redirect: links.is_empty().then(|| bad_redirect(self.answer)),
            wants_cookies: self.answer.target_cookies == TargetCookies::NotKept,
            ..PageReport::default()
        };
        if self.config.options().reports.links {
            report.links = links.iter().map(link_records::redirect).collect();
        }
        report.found.left_out.unresolvable += usize::from(links.is_empty());
        (self.lease.settle(Outcome::Redirected).with_links(links), report)
    }

    /// Concludes any other answer.
    fn fetched(&mut self, outcome: Outcome, mut page: Page) -> (Settlement, PageReport) {
        let options = self.config.options();
        let mut record = self.record(&mut page);
        let content = self.content(&record, page.fingerprint);
        record.unchanged = self.lease.entry.is_refresh().then(|| self.is_unchanged(content));
        if record.selected.is_none() && !options.reports.fields.is_empty() {
            record.selected = Some(Selected::without_values(&options.reports.fields));
        }
        let truncation = self.answer.truncation.map(TruncationReason::name);
        let validators = validators_of_body(self.answer.status, truncation, self.validators());
        let mut report = PageReport {
            record: Some(record),
            body: self.take_body(),
            wants_cookies: page.refreshes_itself && self.answer.target_cookies == TargetCookies::NotKept,
            ..PageReport::default()
        };
        let offered = self.links(&mut page, &mut report);
        report.found = page;
        let settlement = self
            .lease
            .settle(outcome)
            .with_links(offered)
            .with_known_links(report.found.left_out.known as u64)
            .with_version(validators, content);
        (settlement, report)
    }

    /// Takes the body of a page that answered 2xx, if the crawl keeps bodies. It is copied if an archive needs the same
    /// bytes.
    fn take_body(&mut self) -> Option<Vec<u8>> {
        let answer = &mut *self.answer;
        let is_kept =
            self.config.options().reports.bodies && (200..300).contains(&answer.status) && !answer.body.is_empty();
        let exchange = answer.exchange.as_ref();
        let is_archived = exchange.is_some_and(|exchange| exchange.encoded_body.is_none());
        match (is_kept, is_archived) {
            (false, _) => None,
            (true, true) => Some(answer.body.clone()),
            (true, false) => Some(std::mem::take(&mut answer.body)),
        }
    }

    /// Takes the links of a page, as they are offered. The report gets their keys, and the records of all links if an observer needs them.
    fn links(&self, page: &mut Page, report: &mut PageReport) -> Vec<Link> {
        let (entry, options) = (&*self.lease.entry, self.config.options());
        let canonicalizer = &options.canonicalizer;
        let referrer: Arc<str> = (*entry.url).into();
        let depth = entry.depth.saturating_add(1);
        let steps = entry.metadata.embedded.saturating_add(1);
        let found = std::mem::take(&mut page.links);
        let names_sitemaps = found.iter().any(|link| link.source == LinkSource::Sitemap);
        let origin = names_sitemaps.then(|| origin_of(entry)).flatten();
        let key_of = |url: &Option<CanonicalUrl>| url.as_ref().map(|url| url.key().to_owned());
        let (mut links, mut not_offered) = (Vec::with_capacity(found.len()), Vec::new());
        for link in found {
            let mut record = options.reports.needs_all_links().then(|| record_of(&link));
            let url = canonicalizer.canonicalize(link.url).ok();
            if let Some(record) = &mut record {
                record.key = key_of(&url);
            }
            // Canonicalization refuses some URLs, such as http://../, whose host is nothing but dots.
            let Some(url) = url else {
                page.left_out.unresolvable += 1;
                not_offered.extend(record);
                continue;
            };
            report.links.extend(record);
            report.link_keys.push(link.key);
            let named = origin.as_ref().filter(|_| link.source == LinkSource::Sitemap);
            links.push(match named {
                Some(origin) => Link::sitemap(url, origin.clone(), 0, Some(Arc::clone(&referrer))),
                None => Link {
                    embedded: if link.embedded { steps } else { 0 },
                    ..Link::found(url, depth, Arc::clone(&referrer))
                },
            });
        }
        report.links.append(&mut not_offered);
        for link in page.unfollowed.drain(..) {
            let mut record = record_of(&link);
            record.key = key_of(&canonicalizer.canonicalize(link.url).ok());
            report.links.push(record);
        }
        if let Some(sitemap) = page.sitemap.take() {
            let (listed, record) = sitemaps::of_page(entry, self.answer, sitemap, canonicalizer);
            links.extend(listed);
            report.sitemap = Some(record);
        }
        inherit_data(&mut links, entry, self.config);
        links
    }

    /// Takes title and selected fields from the page; its links are still to be there.
    fn record(&self, page: &mut Page) -> PageRecord {
        let (entry, answer) = (&*self.lease.entry, &*self.answer);
        let metadata = &entry.metadata;
        let listed = page.sitemap.as_ref().map_or(0, |sitemap| sitemap.entries.len());
        let left_out = page.left_out;
        let Validators { etag, last_modified } = self.validators();
        PageRecord {
            etag,
            last_modified,
            url: entry.url.to_string(),
            redirected_from: metadata.redirected_from.as_deref().map(str::to_owned),
            was_redirected_from: self.previous().and_then(|earlier| earlier.redirected_from.clone()),
            status: answer.status,
            depth: entry.depth,
            embedded: metadata.embedded,
            referrer: metadata.referrer.as_deref().map(str::to_owned),
            content_type: answer.content_type.clone(),
            bytes: answer.body.len() as u64,
            body: if answer.truncation.is_some() {
                BodyExtent::Truncated
            } else {
                answer.extent
            },
            truncation: answer.truncation,
            fetched_at: self.started.to_string(),
            milliseconds: u64::try_from(answer.elapsed.as_millis()).unwrap_or(u64::MAX),
            links_found: page.links.len() + listed + left_out.known + left_out.nofollow + left_out.dropped,
            is_new: !entry.is_refresh(),
            noindex: page.noindex,
            content_hash: page.fingerprint.content.map(|hash| hash.to_string()),
            simhash: page.fingerprint.text.map(|hash| hash.to_string()),
            title: page.title.take(),
            lastmod: metadata.lastmod.and_then(format_date),
            selected: page.selected.take(),
            key: entry.key().to_owned(),
            data: metadata.data.as_ref().map(|data| data.to_text().into_owned()),
            ..PageRecord::default()
        }
    }

    fn previous(&self) -> Option<&PreviousFetch> {
        self.lease.entry.metadata.previous.as_deref()
    }

    /// A 304 may omit some validators; then those of the previous crawl remain valid.
    fn validators(&self) -> Validators {
        let now = self.answer.validators.clone();
        match self.previous() {
            Some(earlier) if self.answer.status == 304 => Validators {
                etag: now.etag.or_else(|| earlier.validators.etag.clone()),
                last_modified: now.last_modified.or_else(|| earlier.validators.last_modified.clone()),
            },
            _ => now,
        }
    }

    /// The hash of what says whether it has changed: of the selected values, if there are some, else of all. A page that has not changed comes without
    /// content.
    fn content(&self, record: &PageRecord, fingerprint: Fingerprint) -> Option<ContentHash> {
        if let Some(previous) = self.previous().filter(|_| self.answer.status == 304) {
            return previous.content;
        }
        let selected = record.selected.as_ref().filter(|_| fingerprint.content.is_some());
        let of_values = selected.and_then(|selected| content_hash(&serde_json::to_vec(selected).ok()?));
        of_values.or(fingerprint.content)
    }

    fn is_unchanged(&self, content: Option<ContentHash>) -> bool {
        let previous = self.previous().and_then(|previous| previous.content);
        self.answer.status == 304 || (previous.is_some() && previous == content)
    }
}
