//! Sitemaps: where they are looked for, and the settlement and record of each answer.

use std::sync::Arc;

use frontier::{
    CanonicalUrl, Canonicalizer, Entry, Failure, Lease, Link, NotFetched, Origin, Outcome, Purpose, Settlement,
};
use page::robots::RobotsTxt;
use page::sitemap::{Lists, NotASitemap, Sitemap};
use url::Url;

use super::{bad_redirect, inherit_data, origin_of, outcome_of, outcome_of_error, redirect_target};
use crate::config::CrawlConfig;
use crate::event::{SitemapEnd, SitemapRecord};
use crate::fetch::{FetchError, Response};

/// Paths that are tried in turn when robots.txt names no sitemap.
const WELL_KNOWN: [&str; 2] = ["/sitemap.xml", "/sitemap_index.xml"];

/// The most values of a robots.txt that are reported as no sitemaps, and the characters of each: the file may have half a megabyte.
const UNUSABLE_REPORTED: usize = 10;
const UNUSABLE_CHARS: usize = 200;

/// Returns links to the sitemaps that a robots.txt names, or to the first well-known path if it names none; and records of those that cannot
/// be fetched.
pub(super) fn sitemap_links(
    robots: &Entry,
    origin: &Origin,
    rules: Option<&RobotsTxt>,
    config: &CrawlConfig,
) -> (Vec<Link>, Vec<SitemapRecord>) {
    let options = config.options();
    let (mut links, mut unusable, mut more) = (Vec::new(), Vec::new(), 0_u64);
    if !options.pages.sitemaps {
        return (links, unusable);
    }
    let referrer: Arc<str> = (*robots.url).into();
    let file = Url::parse(&robots.url).ok();
    let named = rules.zip(file).map(|(rules, file)| rules.sitemaps(&file));
    for named in named.unwrap_or_default() {
        let canonical = named.map(|url| (url.to_string(), options.canonicalizer.canonicalize(url).ok()));
        match canonical {
            Ok((_, Some(url))) => links.push(Link::sitemap(url, origin.clone(), 0, Some(Arc::clone(&referrer)))),
            Ok((_, None)) | Err(_) if unusable.len() >= UNUSABLE_REPORTED => more += 1,
            Ok((url, None)) | Err(url) => unusable.push(SitemapRecord {
                url: url.chars().take(UNUSABLE_CHARS).collect(),
                referrer: Some(robots.url.to_string()),
                end: SitemapEnd::Failed("robots.txt names it, and it is not a URL that can be crawled".to_owned()),
                ..SitemapRecord::default()
            }),
        }
    }
    if more > 0
        && let Some(last) = unusable.last_mut()
    {
        let why = format!("robots.txt names it and {more} more that are not URLs that can be crawled");
        last.end = SitemapEnd::Failed(why);
    }
    if links.is_empty() {
        links.extend(well_known(origin, 0, &options.canonicalizer));
    }
    (links, unusable)
}

/// Returns a link to the well-known path with this index. It has no referrer, which marks it as guessed.
pub(crate) fn well_known(origin: &Origin, index: usize, canonicalizer: &Canonicalizer) -> Option<Link> {
    let url = origin.robots_url().join(WELL_KNOWN.get(index)?).ok()?;
    let url = canonicalizer.canonicalize(url).ok()?;
    Some(Link::sitemap(url, origin.clone(), 0, None))
}

fn next_well_known(entry: &Entry, origin: &Origin, canonicalizer: &Canonicalizer) -> Option<Link> {
    let requested = entry.metadata.redirected_from.as_deref().unwrap_or(&entry.url);
    let is_requested = |link: &Link| link.url.url().as_str() == requested;
    let index =
        (0..WELL_KNOWN.len()).find(|&n| well_known(origin, n, canonicalizer).as_ref().is_some_and(is_requested))?;
    well_known(origin, index + 1, canonicalizer)
}

pub(super) fn conclude(
    lease: &Lease,
    origin: &Origin,
    result: &Result<Response, FetchError>,
    sitemap: Option<Result<Sitemap, NotASitemap>>,
    config: &CrawlConfig,
) -> (Settlement, SitemapRecord) {
    let entry = &lease.entry;
    let answered = |answer: &Response| outcome_of(answer, &entry.purpose);
    let mut outcome = result.as_ref().map_or_else(outcome_of_error, answered);
    let canonicalizer = &config.options().canonicalizer;
    let mut record = record(entry, result.as_ref().ok());
    let mut links = Vec::new();
    match (result, &outcome, sitemap) {
        (Ok(answer), Outcome::Redirected, _) => match redirect_target(entry, answer, config) {
            Some(target) => {
                record.end = SitemapEnd::Moved;
                links.push(target);
            }
            None => record.end = SitemapEnd::Failed(bad_redirect(answer).to_string()),
        },
        // A truncated sitemap counts as far as it was read, even if it will be retried.
        (Ok(_), _, Some(Ok(sitemap))) => {
            fill_counts(&mut record, &sitemap);
            links = listed_links(entry, origin, sitemap, canonicalizer);
            inherit_data(&mut links, entry, config);
        }
        (Ok(_), _, Some(Err(why))) => {
            if outcome == Outcome::Done {
                outcome = Outcome::Rejected;
            }
            record.end = SitemapEnd::Failed(why.to_string());
        }
        (Ok(_), Outcome::Failed { failure, .. }, None) => record.end = SitemapEnd::Failed(failure.to_string()),
        (Ok(answer), _, None) => record.end = SitemapEnd::Failed(format!("status {}", answer.status)),
        (Err(error), _, _) => record.end = SitemapEnd::Failed(error.to_string()),
    }
    let was_guessed = entry.metadata.referrer.is_none();
    if was_guessed && outcome == Outcome::Rejected {
        record.end = SitemapEnd::NotThere;
    }
    let has_failed = matches!(outcome, Outcome::Failed { .. });
    record.unanswered = !was_guessed && has_failed && matches!(record.end, SitemapEnd::Failed(_));
    // A server may fail at this path only. So the next path is tried while this one is retried.
    let has_answered = result.is_ok();
    let is_elsewhere = outcome == Outcome::Rejected || has_answered && has_failed;
    if was_guessed && is_elsewhere && links.is_empty() {
        links.extend(next_well_known(entry, origin, canonicalizer));
    }
    (lease.settle(outcome).with_links(links), record)
}

fn record(entry: &Entry, answer: Option<&Response>) -> SitemapRecord {
    SitemapRecord {
        url: entry.url.to_string(),
        referrer: entry.metadata.referrer.as_deref().map(str::to_owned),
        status: answer.map(|answer| answer.status),
        ..SitemapRecord::default()
    }
}

/// Makes the record of a sitemap that was not requested. A guessed one counts as not there, not as failed.
pub(crate) fn unfetched_record(entry: &Entry, why: NotFetched, cause: Option<&Failure>) -> SitemapRecord {
    let was_named = entry.metadata.referrer.is_some();
    let unanswered = was_named && matches!(why, NotFetched::HostDown | NotFetched::RobotsUnreachable);
    let why = cause.map_or_else(|| why.to_string(), |cause| format!("{why}: {cause}"));
    SitemapRecord {
        unanswered,
        end: if was_named {
            SitemapEnd::Failed(why)
        } else {
            SitemapEnd::NotThere
        },
        ..record(entry, None)
    }
}

pub(super) fn of_page(
    entry: &Entry,
    answer: &Response,
    sitemap: Sitemap,
    canonicalizer: &Canonicalizer,
) -> (Vec<Link>, SitemapRecord) {
    let mut record = record(entry, Some(answer));
    fill_counts(&mut record, &sitemap);
    let links = origin_of(entry).map(|origin| listed_links(entry, &origin, sitemap, canonicalizer));
    (links.unwrap_or_default(), record)
}

fn fill_counts(record: &mut SitemapRecord, sitemap: &Sitemap) {
    let count = |lists| sitemap.entries.iter().filter(|entry| entry.lists == lists).count() as u64;
    (record.urls, record.sitemaps) = (count(Lists::Pages), count(Lists::Sitemaps));
    record.urls_dropped = sitemap.cut;
    record.urls_invalid = sitemap.invalid;
    record.broken.clone_from(&sitemap.broken);
}

/// Makes the links of a sitemap. A page is one step from its sitemap, as it is from a seed.
fn listed_links(entry: &Entry, origin: &Origin, sitemap: Sitemap, canonicalizer: &Canonicalizer) -> Vec<Link> {
    let referrer: Arc<str> = (*entry.url).into();
    let next = entry.depth.saturating_add(1);
    // A page that is a sitemap is a step from the page that links to it.
    let is_page = entry.purpose == Purpose::Page;
    // The next part of a feed is none of its entries.
    let below = if sitemap.lists == Lists::Pages {
        entry.depth
    } else {
        next
    };
    let (depth, indexes) = if is_page { (next, 1) } else { (1, below) };
    let link = |url: CanonicalUrl, lists, lastmod| match lists {
        Lists::Sitemaps => Link {
            lastmod,
            ..Link::sitemap(url, origin.clone(), indexes, Some(Arc::clone(&referrer)))
        },
        Lists::Pages => Link {
            lastmod,
            ..Link::found(url, depth, Arc::clone(&referrer))
        },
    };
    let entries = sitemap.entries.into_iter();
    entries
        .filter_map(|one| Some(link(canonicalizer.canonicalize(one.url).ok()?, one.lists, one.lastmod)))
        .collect()
}
