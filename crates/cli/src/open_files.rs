//! File handles: as many as may be had, and no more idle connections than they leave room for.

use std::num::NonZeroUsize;

use crawler::HttpOptions;

/// Handles that are no connections: standard streams, the runtime's, files that are written or read, look-ups of names.
const OTHER_HANDLES: usize = 32;

/// Handles that a request may have at a time: a name with addresses of both families is dialled by both.
const PER_REQUEST: usize = 2;

/// Raises the limit of open files as far as this process may, and fits the idle connections into what it is then.
pub(crate) fn fit(http: &mut HttpOptions, concurrency: NonZeroUsize) {
    let limit = match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        Err(error) => {
            log::debug!(target: "crawler::open_files", "the limit of open files cannot be raised: {error}");
            return;
        }
    };
    let requests = concurrency.get().saturating_mul(PER_REQUEST);
    let left = limit.saturating_sub(OTHER_HANDLES.saturating_add(requests));
    if left == 0 {
        log::warn!(
            target: "crawler::open_files",
            limit;
            "{limit} files may be open at a time, which is few for {} requests: raise the limit (ulimit -n), or lower --concurrency",
            concurrency
        );
    }
    http.max_idle_connections = http
        .max_idle_connections
        .min(NonZeroUsize::MIN.saturating_add(left.saturating_sub(1)));
}
