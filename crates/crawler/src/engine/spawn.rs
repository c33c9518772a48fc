//! From a lease to a running task.

use std::sync::Arc;

use frontier::Lease;
use page::ReadOptions;
use url::Url;

use super::{Run, Start};
use crate::engine::conclusions::kind_of;
use crate::engine::fetch_task::{Fetched, fetch, look_up_address};
use crate::fetch::{FetchError, Fetcher, Request};

impl<S: Fetcher> Run<S> {
    /// Spawns a task for a lease.
    pub(super) fn spawn(&mut self, lease: Lease) {
        let started = Start::now();
        let fetcher = Arc::clone(&self.fetcher);
        let Some(kind) = kind_of(&lease.entry.purpose) else {
            let looked_up = look_up_address(fetcher, lease.entry.queue.clone());
            return self.ledger.spawn(lease, started, looked_up, &self.config);
        };
        let Ok(url) = Url::parse(&lease.entry.url) else {
            // Every entry is made from a URL, so only a bug in the frontier leads here.
            let broken = async { Fetched::not_parsed(Err(FetchError::Broken("the URL cannot be parsed".to_owned()))) };
            return self.ledger.spawn(lease, started, broken, &self.config);
        };
        let earlier = lease
            .entry
            .metadata
            .previous
            .as_ref()
            .map(|earlier| &earlier.validators);
        let request = Request {
            validators: earlier.filter(|validators| !validators.is_empty()).cloned(),
            ..Request::new(url, kind)
        };
        // A task is moved several times until it runs, and this part of it takes six kilobytes.
        let fetched = Box::pin(fetch(fetcher, Arc::clone(&self.config), request, self.wanted(&lease)));
        self.ledger.spawn(lease, started, fetched, &self.config);
    }

    fn wanted(&self, lease: &Lease) -> ReadOptions {
        let options = self.config.options();
        let mut wanted = ReadOptions {
            fingerprint: lease.wants_fingerprint
                || options.reports.fingerprints
                || options.refresh.is_some()
                || options.frontier.freshness.keeps_fresh,
            // A seed is read as what it is.
            sitemap: (options.pages.sitemaps || lease.entry.depth == 0).then(|| options.pages.sitemap_limits()),
            ..self.config.read_options.clone()
        };
        wanted.links.known = (!options.reports.needs_all_links()).then(|| Arc::clone(&self.seen_links));
        wanted
    }
}
