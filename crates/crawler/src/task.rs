//! What runs in a fetch task: fetch, then read. It shares nothing, and returns one value.

use std::sync::Arc;

use crate::config::CrawlConfig;
use crate::fetch::{Answer, Ask, FetchError, Fetcher, Want};
use crate::page::{self, Page};

/// A body above this many bytes is parsed off the threads that wait for sockets.
const INLINE_PARSE_BYTES: usize = 1024 * 1024;

/// What a fetch task returns.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) result: Result<Answer, FetchError>,
    pub(crate) page: Page,
}

pub(crate) async fn fetch<S: Fetcher>(fetcher: Arc<S>, config: Arc<CrawlConfig>, ask: Ask) -> Fetched {
    let is_page = ask.want == Want::Page;
    let url = ask.url.clone();
    let mut answer = match fetcher.fetch(ask).await {
        Ok(answer) => answer,
        Err(error) => {
            return Fetched {
                result: Err(error),
                page: Page::default(),
            };
        }
    };
    if !is_page || !(200..300).contains(&answer.status) {
        return Fetched {
            result: Ok(answer),
            page: Page::default(),
        };
    }
    let read = move |answer: &Answer| {
        page::read(
            answer,
            &url,
            config.options().max_links_per_page,
            config.product_token(),
        )
    };
    if answer.body.len() <= INLINE_PARSE_BYTES {
        let page = read(&answer);
        return Fetched {
            result: Ok(answer),
            page,
        };
    }
    let parsing = tokio::task::spawn_blocking(move || {
        let page = read(&answer);
        (answer, page)
    });
    let page;
    (answer, page) = match parsing.await {
        Ok(parsed) => parsed,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => {
                let result = Err(FetchError::Broken("parsing was cancelled".to_owned()));
                return Fetched {
                    result,
                    page: Page::default(),
                };
            }
        },
    };
    Fetched {
        result: Ok(answer),
        page,
    }
}
