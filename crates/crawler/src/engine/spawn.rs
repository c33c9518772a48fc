//! From a lease to a task.

use std::sync::Arc;

use frontier::{Entry, Lease, Purpose, Time, Validators};
use url::Url;

use super::Crawl;
use crate::config::CrawlConfig;
use crate::engine::conclusions::{Conclusion, Returned, conclude};
use crate::engine::fetch_task::{Fetched, fetch, look_up};
use crate::fetch::{FetchError, Fetcher, Request, ResourceKind};
use crate::page::Wanted;

impl<S: Fetcher> Crawl<S> {
    /// Spawns a task for a lease.
    pub(super) fn spawn(&mut self, lease: Lease) {
        let started = self.clock.now();
        let (fetcher, config) = (Arc::clone(&self.fetcher), Arc::clone(&self.config));
        let kind = match lease.entry.purpose {
            Purpose::Page => ResourceKind::Page,
            Purpose::Robots(_) => ResourceKind::Robots,
            Purpose::Sitemap(_) => ResourceKind::Sitemap,
            Purpose::Address => {
                let looked_up = look_up(fetcher, lease.entry.queue.clone());
                let task = concluded(looked_up, lease.clone(), started, config);
                return self.ledger.spawn(lease, started, task);
            }
        };
        let Ok(url) = Url::parse(&lease.entry.url) else {
            // An entry is made of a URL; that it is none any more is nobody's fault but ours.
            let broken = async { Fetched::unread(Err(FetchError::Broken("its URL cannot be read".to_owned()))) };
            let task = concluded(broken, lease.clone(), started, config);
            return self.ledger.spawn(lease, started, task);
        };
        let request = Request {
            validators: known_version(&lease.entry),
            ..Request::new(url, kind)
        };
        let fetched = fetch(fetcher, Arc::clone(&config), request, self.wanted(&lease));
        let task = concluded(fetched, lease.clone(), started, config);
        self.ledger.spawn(lease, started, task);
    }

    fn wanted(&self, lease: &Lease) -> Wanted {
        let options = self.config.options();
        Wanted {
            fingerprint: lease.wants_fingerprint || options.fingerprints,
            text: options.report_content,
            known: (!options.needs_all_links()).then(|| Arc::clone(&self.seen_links)),
        }
    }
}

/// Returns the validators that a previous crawl stored for a page.
fn known_version(entry: &Entry) -> Option<Validators> {
    let earlier = entry.metadata.previous.as_ref()?;
    (!earlier.validators.is_empty()).then(|| earlier.validators.clone())
}

/// All that needs no frontier is done in the task: so the links of a page are made canonical beside the loop, not in it.
async fn concluded(
    fetched: impl Future<Output = Fetched>,
    lease: Lease,
    started: Time,
    config: Arc<CrawlConfig>,
) -> Conclusion {
    let result = Ok(fetched.await);
    conclude(Returned { lease, started, result }, &config)
}
