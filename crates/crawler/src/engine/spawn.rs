//! From a lease to a running task.

use std::sync::Arc;

use frontier::{Entry, Lease, Validators};
use page::ReadOptions;
use url::Url;

use super::{Run, Start};
use crate::config::CrawlConfig;
use crate::engine::conclusions::{Conclusion, conclude, kind_of};
use crate::engine::fetch_task::{Fetched, fetch, look_up_address};
use crate::fetch::{FetchError, Fetcher, Request};

impl<S: Fetcher> Run<S> {
    /// Spawns a task for a lease.
    pub(super) fn spawn(&mut self, lease: Lease) {
        let started = Start::now();
        let (fetcher, config) = (Arc::clone(&self.fetcher), Arc::clone(&self.config));
        let Some(kind) = kind_of(&lease.entry.purpose) else {
            let looked_up = look_up_address(fetcher, lease.entry.queue.clone());
            let task = run_and_conclude(looked_up, lease.clone(), started, config);
            return self.ledger.spawn(lease, started, task);
        };
        let Ok(url) = Url::parse(&lease.entry.url) else {
            // Every entry is made from a URL, so only a bug in the frontier leads here.
            let broken = async { Fetched::not_parsed(Err(FetchError::Broken("the URL cannot be parsed".to_owned()))) };
            let task = run_and_conclude(broken, lease.clone(), started, config);
            return self.ledger.spawn(lease, started, task);
        };
        let request = Request {
            validators: stored_validators(&lease.entry),
            ..Request::new(url, kind)
        };
        // A task is moved several times until it runs, and this part of it takes six kilobytes.
        let fetched = Box::pin(fetch(fetcher, Arc::clone(&config), request, self.wanted(&lease)));
        let task = run_and_conclude(fetched, lease.clone(), started, config);
        self.ledger.spawn(lease, started, task);
    }

    fn wanted(&self, lease: &Lease) -> ReadOptions {
        let options = self.config.options();
        let mut wanted = ReadOptions {
            fingerprint: lease.wants_fingerprint || options.reports.fingerprints || options.refresh.is_some(),
            // A seed is read as what it is.
            sitemap: (options.pages.sitemaps || lease.entry.depth == 0).then(|| options.pages.sitemap_limits()),
            ..self.config.read_options().clone()
        };
        wanted.links.known = (!options.reports.needs_all_links()).then(|| Arc::clone(&self.seen_links));
        wanted
    }
}

fn stored_validators(entry: &Entry) -> Option<Validators> {
    let earlier = entry.metadata.previous.as_ref()?;
    (!earlier.validators.is_empty()).then(|| earlier.validators.clone())
}

/// Runs a fetch and its conclusion in the task. Canonicalizing the links of a page, for instance, then costs the loop
/// nothing.
async fn run_and_conclude(
    fetched: impl Future<Output = Fetched>,
    lease: Lease,
    started: Start,
    config: Arc<CrawlConfig>,
) -> Conclusion {
    conclude(lease, started, fetched.await, &config)
}
