//! The limit of open files: raised as far as the system allows, with a number of idle connections that fits into it.

use std::num::NonZeroUsize;

use crawler::HttpOptions;

/// File handles that are not connections: standard streams, the runtime, input and output files, name look-ups.
const OTHER_HANDLES: usize = 32;

/// The maximum number of handles of one request. A host with IPv4 and IPv6 addresses is connected to over both at once.
const HANDLES_PER_REQUEST: usize = 2;

/// Raises the limit of open files as far as the system allows, and lowers the number of idle connections to fit into it.
pub(crate) fn raise_limit(http: &mut HttpOptions, concurrency: NonZeroUsize) {
    let limit = match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        Err(error) => {
            log::debug!(target: "crawler::open_files", "the limit of open files cannot be raised: {error}");
            return;
        }
    };
    let requests = concurrency.get().saturating_mul(HANDLES_PER_REQUEST);
    let left = limit.saturating_sub(OTHER_HANDLES.saturating_add(requests));
    if left == 0 {
        log::warn!(
            target: "crawler::open_files",
            limit;
            "the limit of {limit} open files is too low for {} concurrent requests: raise it (ulimit -n), or lower --concurrency",
            concurrency
        );
    }
    http.max_idle_connections = http
        .max_idle_connections
        .min(NonZeroUsize::MIN.saturating_add(left.saturating_sub(1)));
}
