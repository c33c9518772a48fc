//! The limit of open files: raised as far as the system allows, with a number of requests and idle connections that fits into it.

use std::num::NonZeroUsize;

use crawler::HttpOptions;

use crate::failure::Failure;

/// File handles that are not connections: standard streams, the runtime, input and output files, name look-ups. A crawl with a state
/// directory and all outputs has up to 26 of them at once.
const OTHER_HANDLES: usize = 32;

/// The maximum number of handles of one request. A host with IPv4 and IPv6 addresses is connected to over both at once.
const HANDLES_PER_REQUEST: usize = 2;

/// The least limit for a crawl. With 14 handles, a crawl without outputs fetches pages over TLS; with fewer than 10, it may wait for handles for ever.
const LEAST: usize = 16;

/// Raises the limit of open files as far as the system allows. Call it before the runtime starts, which panics with too few of them.
///
/// # Errors
///
/// Fails if the limit stays so low that any crawl may stop, or wait for handles for ever.
pub(crate) fn raise_limit() -> Result<(), Failure> {
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        log::debug!(target: "crawler::open_files", "the limit of open files cannot be raised: {error}");
    }
    match limit() {
        Some(limit) if limit < LEAST => Err(Failure::OpenFiles { limit, needed: LEAST }),
        _ => Ok(()),
    }
}

/// Lowers the number of requests and of idle connections to fit into the limit of open files.
///
/// An output that finds no handle ends the crawl. A request that finds none is only repeated, but what it takes an output may lack.
/// `reserved` handles serve other connections.
pub(crate) fn fit_into_limit(http: &mut HttpOptions, concurrency: &mut NonZeroUsize, reserved: usize) {
    let Some(limit) = limit() else {
        return;
    };
    let for_connections = limit.saturating_sub(OTHER_HANDLES + reserved);
    let possible = at_least_one(for_connections / HANDLES_PER_REQUEST);
    if possible < *concurrency {
        log::warn!(
            target: "crawler::open_files",
            limit, concurrency = possible.get();
            "the limit of {limit} open files leaves room for {possible} of {concurrency} concurrent requests: raise the hard limit (ulimit -Hn) for more"
        );
        *concurrency = possible;
    }
    let left = for_connections.saturating_sub(concurrency.get() * HANDLES_PER_REQUEST);
    http.max_idle_connections = http.max_idle_connections.min(at_least_one(left));
}

fn limit() -> Option<usize> {
    let (limit, _) = rlimit::getrlimit(rlimit::Resource::NOFILE).ok()?;
    Some(usize::try_from(limit).unwrap_or(usize::MAX))
}

fn at_least_one(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN)
}
