//! What runs in a fetch task: fetch, then read. It changes nothing that is shared, and returns one value.

use std::net::IpAddr;
use std::sync::Arc;

use frontier::HostKey;
use url::Url;

use crate::config::CrawlConfig;
use crate::fetch::{FetchError, Fetcher, Request, ResourceKind, Response, TruncationReason};
use crate::page::sitemap::{self, NotASitemap, Sitemap, SitemapLimits};
use crate::page::{self, Page, Wanted};

/// A body above this many bytes is parsed off the threads that wait for sockets.
const INLINE_PARSE_BYTES: usize = 1024 * 1024;

/// So is a sitemap above this many, for it may be packed.
const INLINE_SITEMAP_BYTES: usize = 64 * 1024;

/// What a fetch task returns.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) result: Result<Response, FetchError>,
    pub(crate) page: Page,
    /// What a sitemap lists, if one was asked for and answered.
    pub(crate) sitemap: Option<Result<Sitemap, NotASitemap>>,
    /// The address of a host, if one was looked up and found.
    pub(crate) address: Option<IpAddr>,
}

impl Fetched {
    pub(crate) fn unread(result: Result<Response, FetchError>) -> Self {
        Self {
            result,
            page: Page::default(),
            sitemap: None,
            address: None,
        }
    }
}

/// Looks up the address of a host.
pub(crate) async fn look_up<S: Fetcher>(fetcher: Arc<S>, host: HostKey) -> Fetched {
    Fetched {
        address: fetcher.address(host.as_str()).await,
        ..Fetched::unread(Ok(Response::default()))
    }
}

pub(crate) async fn fetch<S: Fetcher>(
    fetcher: Arc<S>,
    config: Arc<CrawlConfig>,
    request: Request,
    wanted: Wanted,
) -> Fetched {
    let kind = request.kind;
    let url = request.url.clone();
    let answer = match fetcher.fetch(request).await {
        Ok(answer) => answer,
        Err(error) => return Fetched::unread(Err(error)),
    };
    let inline = match kind {
        ResourceKind::Page => INLINE_PARSE_BYTES,
        ResourceKind::Sitemap => INLINE_SITEMAP_BYTES,
        ResourceKind::Robots => return Fetched::unread(Ok(answer)),
    };
    if !(200..300).contains(&answer.status) {
        return Fetched::unread(Ok(answer));
    }
    if answer.body.len() <= inline {
        return read(answer, kind, &wanted, &url, &config);
    }
    match tokio::task::spawn_blocking(move || read(answer, kind, &wanted, &url, &config)).await {
        Ok(fetched) => fetched,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Fetched::unread(Err(FetchError::Broken("parsing was cancelled".to_owned()))),
        },
    }
}

fn read(mut answer: Response, kind: ResourceKind, wanted: &Wanted, url: &Url, config: &CrawlConfig) -> Fetched {
    let options = config.options();
    if kind == ResourceKind::Page {
        let page = page::read(&answer, url, config, wanted);
        return Fetched {
            page,
            ..Fetched::unread(Ok(answer))
        };
    }
    let limits = SitemapLimits {
        max_bytes: options.max_sitemap_bytes,
        max_urls: options.max_sitemap_urls,
    };
    let body = whole_lines(&answer);
    let mut sitemap = sitemap::read(body, answer.content_type.as_deref(), url, &limits);
    if let (Some(cut), Ok(sitemap)) = (answer.truncation, &mut sitemap) {
        sitemap
            .broken
            .get_or_insert_with(|| format!("it was cut: {}", cut.name()));
    }
    if answer.exchange.is_none() {
        // Nobody else wants the body, which may be large.
        answer.body = Vec::new();
    }
    Fetched {
        sitemap: Some(sitemap),
        ..Fetched::unread(Ok(answer))
    }
}

/// The body of an answer; of one that was cut, up to the end of the last line or tag: the beginning of a URL is another URL.
fn whole_lines(answer: &Response) -> &[u8] {
    // One that is too long is cut by whoever reads it, who says so.
    if answer.truncation.is_none_or(|cut| cut == TruncationReason::Size) {
        return &answer.body;
    }
    let end = answer
        .body
        .iter()
        .rposition(|byte| matches!(byte, b'\n' | b'\r' | b'>'));
    answer.body.get(..=end.unwrap_or(0)).unwrap_or_default()
}
