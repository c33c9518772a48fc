//! From the answer to a page request to its settlement and report.

use std::sync::Arc;

use frontier::{
    Canonicalizer, ContentHash, Entry, Failure, Fingerprint, Link, NotFetched, Outcome, PageTask, Settlement, Time,
    Validators,
};
use page::Page;
use page::links::{LinkKey, LinkSource, Uncrawlable};
use page::select::Selected;
use page::sitemap::format_date;

use super::{bad_redirect, origin_of, outcome_of, outcome_of_error, redirect_target, sitemaps};
use crate::config::CrawlConfig;
use crate::event::LinkRecord;
use crate::event::link_record;
use crate::event::{PageRecord, SitemapRecord};
use crate::fetch::{BodyExtent, FetchError, Response, TargetCookies, TruncationReason};
use crate::known_links::validators_of_body;
use crate::timestamp::rfc3339;

/// What is reported of a page once its links are offered.
#[derive(Default)]
pub(crate) struct PageReport {
    pub(crate) record: Option<PageRecord>,
    /// The body, if the crawl keeps bodies and the page has one.
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) failure: Option<Failure>,
    /// Why the fetcher made no request, if it made none.
    pub(crate) not_fetched: Option<NotFetched>,
    /// All links, if an observer needs them.
    pub(crate) links: Vec<LinkRecord>,
    /// The decoded text, if an observer needs it.
    pub(crate) text: Option<String>,
    pub(crate) link_keys: Vec<LinkKey>,
    pub(crate) dropped: u64,
    pub(crate) nofollow: u64,
    pub(crate) uncrawlable: Uncrawlable,
    /// Of a page that is not HTML: what it lists, if it is a sitemap or a feed, or else its type, if it was not parsed.
    pub(crate) not_html: Option<Result<SitemapRecord, String>>,
    /// Whether the answer is a redirect, or refreshes itself, and the site sets cookies that are not kept.
    pub(crate) wants_cookies: bool,
}

/// Concludes a request without an answer.
pub(super) fn not_answered(task: PageTask, error: &FetchError) -> (Settlement, PageReport) {
    let outcome = outcome_of_error(error);
    let report = PageReport {
        failure: Some(error.failure()),
        not_fetched: match &outcome {
            Outcome::NotFetched(why) => Some(*why),
            _ => None,
        },
        ..PageReport::default()
    };
    (task.settle(outcome), report)
}

/// Concludes an answer. Takes its body, if the crawl keeps bodies.
pub(super) fn answered(
    task: PageTask,
    entry: &Entry,
    answer: &mut Response,
    page: Page,
    started: Time,
    config: &CrawlConfig,
) -> (Settlement, PageReport) {
    match outcome_of(answer) {
        Outcome::Redirected => redirected(task, entry, answer, config),
        Outcome::Done if page.refreshes_itself && answer.target_cookies == TargetCookies::New => {
            redirected(task, entry, answer, config)
        }
        outcome => fetched(task, outcome, entry, answer, page, started, config),
    }
}

/// Concludes a redirect, whose target is a link.
fn redirected(task: PageTask, entry: &Entry, answer: &Response, config: &CrawlConfig) -> (Settlement, PageReport) {
    let links: Vec<_> = redirect_target(entry, answer, config).into_iter().collect();
    let mut report = PageReport {
        failure: links.is_empty().then(|| bad_redirect(answer)),
        link_keys: vec![LinkKey::NONE; links.len()],
        wants_cookies: answer.target_cookies == TargetCookies::NotKept,
        ..PageReport::default()
    };
    if config.options().reports.links {
        report.links = links.iter().map(link_record::redirect).collect();
    }
    report.uncrawlable.unresolvable += usize::from(links.is_empty());
    (task.settle(Outcome::Redirected).with_links(links), report)
}

/// Concludes any other answer.
fn fetched(
    task: PageTask,
    outcome: Outcome,
    entry: &Entry,
    answer: &mut Response,
    mut page: Page,
    started: Time,
    config: &CrawlConfig,
) -> (Settlement, PageReport) {
    let options = config.options();
    let found = page.links.len() + page.sitemap.as_ref().map_or(0, |sitemap| sitemap.entries.len());
    let known = page.known;
    let records = match options.reports.needs_all_links() {
        true => link_record::records_of(&page, &options.canonicalizer),
        false => Vec::new(),
    };
    let (links, link_keys, sitemap) = page_links(entry, answer, &mut page, &options.canonicalizer);
    let uncrawlable = page.uncrawlable;
    let (dropped, nofollow) = (page.links_dropped as u64, page.links_nofollow as u64);
    let (text, fingerprint) = (page.text.take(), page.fingerprint);
    let not_html = sitemap.map(Ok).or(page.other_type.take().map(Err));
    let wants_cookies = page.refreshes_itself && answer.target_cookies == TargetCookies::NotKept;
    let mut record = record(entry, answer, page, started);
    record.links_found += found + known;
    if record.selected.is_none() && !options.reports.fields.is_empty() {
        record.selected = Some(Selected::without_values(&options.reports.fields));
    }
    let report = PageReport {
        record: Some(record),
        body: kept_body(answer, config),
        failure: match &outcome {
            Outcome::Failed { failure, .. } => Some(failure.clone()),
            _ => None,
        },
        not_fetched: None,
        links: records,
        text,
        link_keys,
        dropped,
        nofollow,
        uncrawlable,
        not_html,
        wants_cookies,
    };
    let truncation = answer.truncation.map(TruncationReason::name);
    let validators = validators_of_body(answer.status, truncation, validators_of(entry, answer));
    let settlement = task
        .settle(outcome)
        .with_links(links)
        .with_known_links(known as u64)
        .with_version(validators, content_of(entry, answer, fingerprint));
    (settlement, report)
}

/// Takes the body of a page that answered 2xx, if the crawl keeps bodies. It is copied if an archive needs the same
/// bytes.
fn kept_body(answer: &mut Response, config: &CrawlConfig) -> Option<Vec<u8>> {
    let is_kept = config.options().reports.bodies && (200..300).contains(&answer.status) && !answer.body.is_empty();
    let exchange = answer.exchange.as_ref();
    let is_archived = exchange.is_some_and(|exchange| exchange.encoded_body.is_none());
    match (is_kept, is_archived) {
        (false, _) => None,
        (true, true) => Some(answer.body.clone()),
        (true, false) => Some(std::mem::take(&mut answer.body)),
    }
}

fn page_links(
    entry: &Entry,
    answer: &Response,
    page: &mut Page,
    canonicalizer: &Canonicalizer,
) -> (Vec<Link>, Vec<LinkKey>, Option<SitemapRecord>) {
    let referrer: Arc<str> = (*entry.url).into();
    let depth = entry.depth.saturating_add(1);
    let steps = entry.metadata.embedded.saturating_add(1);
    let written = std::mem::take(&mut page.links);
    let names_sitemaps = written.iter().any(|link| link.source == LinkSource::Sitemap);
    let origin = names_sitemaps.then(|| origin_of(entry)).flatten();
    let (mut links, mut link_keys) = (Vec::with_capacity(written.len()), Vec::with_capacity(written.len()));
    for (link, link_key) in written.into_iter().zip(&page.link_keys) {
        // Canonicalization refuses some URLs, such as http://../, whose host is nothing but dots.
        let Ok(url) = canonicalizer.canonicalize(link.url) else {
            page.uncrawlable.unresolvable += 1;
            continue;
        };
        let named = origin.as_ref().filter(|_| link.source == LinkSource::Sitemap);
        links.push(match named {
            Some(origin) => Link::sitemap(url, origin.clone(), 0, Some(Arc::clone(&referrer))),
            None => Link {
                embedded: if link.embedded { steps } else { 0 },
                ..Link::found(url, depth, Arc::clone(&referrer))
            },
        });
        link_keys.push(*link_key);
    }
    let sitemap = page.sitemap.take().map(|sitemap| {
        let (listed, record) = sitemaps::of_page(entry, answer, sitemap, canonicalizer);
        link_keys.resize(links.len() + listed.len(), LinkKey::NONE);
        links.extend(listed);
        record
    });
    (links, link_keys, sitemap)
}

fn record(entry: &Entry, answer: &Response, page: Page, started: Time) -> PageRecord {
    let Validators { etag, last_modified } = validators_of(entry, answer);
    PageRecord {
        etag,
        last_modified,
        url: entry.url.to_string(),
        redirected_from: entry.metadata.redirected_from.as_deref().map(str::to_owned),
        was_redirected_from: entry
            .metadata
            .previous
            .as_ref()
            .and_then(|earlier| earlier.redirected_from.clone()),
        status: answer.status,
        depth: entry.depth,
        embedded: entry.metadata.embedded,
        referrer: entry.metadata.referrer.as_deref().map(str::to_owned),
        content_type: answer.content_type.clone(),
        bytes: answer.body.len() as u64,
        body: if answer.truncation.is_some() {
            BodyExtent::Truncated
        } else {
            answer.extent
        },
        truncation: answer.truncation,
        fetched_at: rfc3339(started),
        milliseconds: u64::try_from(answer.elapsed.as_millis()).unwrap_or(u64::MAX),
        links_found: page.links_nofollow + page.links_dropped,
        links_new: 0,
        left: 0,
        unchanged: entry
            .is_refresh()
            .then(|| is_unchanged(entry, answer, page.fingerprint)),
        noindex: page.noindex,
        content_hash: page.fingerprint.content.map(|hash| hash.to_string()),
        simhash: page.fingerprint.text.map(|hash| hash.to_string()),
        duplicate_of: None,
        near_duplicate_of: None,
        title: page.title,
        lastmod: entry.metadata.lastmod.and_then(format_date),
        selected: page.selected,
        saved_as: None,
        key: entry.key().to_owned(),
    }
}

/// Returns the validators of a page. A 304 may omit some of them; then those of the previous crawl remain valid.
fn validators_of(entry: &Entry, answer: &Response) -> Validators {
    let now = answer.validators.clone();
    match &entry.metadata.previous {
        Some(earlier) if answer.status == 304 => Validators {
            etag: now.etag.or_else(|| earlier.validators.etag.clone()),
            last_modified: now.last_modified.or_else(|| earlier.validators.last_modified.clone()),
        },
        _ => now,
    }
}

/// Returns the hash of the content of a page. One that has not changed comes without content.
fn content_of(entry: &Entry, answer: &Response, fingerprint: Fingerprint) -> Option<ContentHash> {
    let previous = entry.metadata.previous.as_ref().filter(|_| answer.status == 304);
    previous.map_or(fingerprint.content, |previous| previous.content)
}

fn is_unchanged(entry: &Entry, answer: &Response, fingerprint: Fingerprint) -> bool {
    let previous = entry.metadata.previous.as_ref().and_then(|previous| previous.content);
    answer.status == 304 || (previous.is_some() && previous == fingerprint.content)
}
