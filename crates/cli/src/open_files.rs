//! The limit of open files: raised as far as the system allows, with a number of requests and idle connections that fits into it.

use std::num::NonZeroUsize;

use crawler::HttpOptions;

/// File handles that are not connections: standard streams, the runtime, input and output files, name look-ups.
const OTHER_HANDLES: usize = 32;

/// The maximum number of handles of one request. A host with IPv4 and IPv6 addresses is connected to over both at once.
const HANDLES_PER_REQUEST: usize = 2;

/// Raises the limit of open files as far as the system allows, and lowers the number of requests and of idle connections to fit into it.
///
/// An output that finds no handle ends the crawl. A request that finds none is only repeated, but what it takes an output may lack.
pub(crate) fn raise_limit(http: &mut HttpOptions, concurrency: &mut NonZeroUsize) {
    let raised = rlimit::increase_nofile_limit(u64::MAX).or_else(|error| {
        log::debug!(target: "crawler::open_files", "the limit of open files cannot be raised: {error}");
        rlimit::getrlimit(rlimit::Resource::NOFILE).map(|(limit, _)| limit)
    });
    let Ok(limit) = raised else {
        return;
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let for_connections = limit.saturating_sub(OTHER_HANDLES);
    let possible = at_least_one(for_connections / HANDLES_PER_REQUEST);
    if possible < *concurrency {
        log::warn!(
            target: "crawler::open_files",
            limit, concurrency = possible.get();
            "the limit of {limit} open files leaves room for {possible} of {concurrency} concurrent requests: raise it (ulimit -n) for more"
        );
        *concurrency = possible;
    }
    let left = for_connections.saturating_sub(concurrency.get() * HANDLES_PER_REQUEST);
    http.max_idle_connections = http.max_idle_connections.min(at_least_one(left));
}

fn at_least_one(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN)
}
