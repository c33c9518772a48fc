//! The work of a fetch task: fetch, then parse. It changes no shared state, and returns one value.

use std::net::IpAddr;
use std::sync::Arc;

use frontier::{Answer, HostKey};
use page::sitemap::{self, NotASitemap, Sitemap};
use page::{Content, Page, ReadOptions};
use url::Url;

use crate::config::CrawlConfig;
use crate::fetch::{BodyExtent, FetchError, Fetcher, Request, ResourceKind, Response, TruncationReason};

/// Bodies with more bytes are parsed on a blocking thread, so that parsing does not delay other tasks.
const INLINE_PARSE_BYTES: usize = 1024 * 1024;

/// The same limit for sitemaps. It is lower, because a sitemap may be compressed.
const INLINE_SITEMAP_BYTES: usize = 64 * 1024;

/// What was fetched, and what was parsed from it.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) result: Result<Response, FetchError>,
    pub(crate) page: Page,
    /// The sitemap, if the request was for one and the answer was 2xx.
    pub(crate) sitemap: Option<Result<Sitemap, NotASitemap>>,
    /// The address of a host, if the task was to look one up and found it.
    pub(crate) address: Option<IpAddr>,
}

impl Fetched {
    pub(crate) fn not_parsed(result: Result<Response, FetchError>) -> Self {
        Self {
            result,
            page: Page::default(),
            sitemap: None,
            address: None,
        }
    }
}

/// Looks up the address of a host.
pub(crate) async fn look_up_address<S: Fetcher>(fetcher: Arc<S>, host: HostKey) -> Fetched {
    Fetched {
        address: fetcher.address(host.as_str()).await,
        ..Fetched::not_parsed(Ok(Response::default()))
    }
}

pub(crate) async fn fetch<S: Fetcher>(
    fetcher: Arc<S>,
    config: Arc<CrawlConfig>,
    request: Request,
    wanted: ReadOptions,
) -> Fetched {
    let kind = request.kind;
    let url = request.url.clone();
    let has_validators = request.validators.is_some();
    let answer = match fetcher.fetch(request).await {
        Ok(answer) => answer,
        Err(error) => return Fetched::not_parsed(Err(error)),
    };
    let status = answer.status;
    let head = Answer {
        status,
        conditional: has_validators || answer.has_own_condition,
        ..Answer::default()
    };
    // `conclusions.rs` takes every answer to a page for one that was asked for. It says nothing of the host, unlike a status that fails.
    if kind == ResourceKind::Page && head.is_unasked() {
        let why = format!("status {status} answers what was not asked");
        return Fetched::not_parsed(Err(FetchError::Other(why)));
    }
    let inline = match kind {
        ResourceKind::Page if !sitemap::is_packed(&answer.body) => INLINE_PARSE_BYTES,
        ResourceKind::Page | ResourceKind::Sitemap => INLINE_SITEMAP_BYTES,
        ResourceKind::Robots => return Fetched::not_parsed(Ok(answer)),
    };
    // A 300 that prefers none of its choices lists them.
    let is_list = answer.status == 300 && answer.location.is_none();
    if !(200..300).contains(&answer.status) && !is_list {
        return Fetched::not_parsed(Ok(answer));
    }
    if answer.body.len() <= inline {
        return read(answer, kind, &wanted, &url, &config);
    }
    match tokio::task::spawn_blocking(move || read(answer, kind, &wanted, &url, &config)).await {
        Ok(fetched) => fetched,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Fetched::not_parsed(Err(FetchError::Broken("parsing was cancelled".to_owned()))),
        },
    }
}

fn read(answer: Response, kind: ResourceKind, wanted: &ReadOptions, url: &Url, config: &CrawlConfig) -> Fetched {
    let options = config.options();
    if kind == ResourceKind::Page {
        let content = Content {
            body: &answer.body,
            content_type: answer.content_type.as_deref(),
            refresh: answer.refresh.as_deref(),
            robots_tags: &answer.robots_tags,
            is_truncated: answer.extent != BodyExtent::Complete || answer.truncation.is_some(),
        };
        let page = page::read(&content, url, wanted);
        return Fetched {
            page,
            ..Fetched::not_parsed(Ok(answer))
        };
    }
    let limits = options.pages.sitemap_limits();
    let body = complete_part(&answer);
    let mut sitemap = sitemap::read(body, answer.content_type.as_deref(), url, &limits);
    if let (Some(cut), Ok(sitemap)) = (answer.truncation, &mut sitemap) {
        sitemap
            .broken
            .get_or_insert_with(|| format!("the body is truncated: {}", cut.name()));
    }
    Fetched {
        sitemap: Some(sitemap),
        ..Fetched::not_parsed(Ok(answer))
    }
}

/// Returns the part of the body that can be read safely.
///
/// If the body was truncated, that part ends with the last complete line or tag. A truncated URL would be a different
/// URL.
fn complete_part(answer: &Response) -> &[u8] {
    // A body over the size limit stays as it is: the sitemap parser stops at the limit and reports it.
    if answer.truncation.is_none_or(|cut| cut == TruncationReason::Size) {
        return &answer.body;
    }
    let end = answer
        .body
        .iter()
        .rposition(|byte| matches!(byte, b'\n' | b'\r' | b'>'));
    answer.body.get(..=end.unwrap_or(0)).unwrap_or_default()
}
