//! From a lease to a task.

use std::sync::Arc;

use frontier::{Entry, FrontierError, Lease, Outcome, Purpose, Settlement, Time, Validators};
use sieve::Filter;
use url::Url;

use super::Crawl;
use crate::config::CrawlConfig;
use crate::fetch::{Ask, Fetcher, Want};
use crate::page::Wanted;
use crate::settling::{Conclusion, Returned, conclude};
use crate::task::{Fetched, fetch, look_up};

impl<S: Fetcher, F: Filter> Crawl<S, F> {
    /// Spawns a task for each lease; what robots.txt forbids is settled without one.
    pub(super) fn start(&mut self, leases: Vec<Lease>) -> Result<(), FrontierError> {
        let mut unwanted = Vec::new();
        for lease in leases {
            match self.refusal(&lease) {
                Ok(url) => self.spawn(lease, url),
                Err(outcome) => {
                    self.tell_not_fetched(&lease.entry, outcome);
                    unwanted.push(Settlement {
                        lease: lease.id,
                        outcome,
                        links: Vec::new(),
                    });
                }
            }
        }
        self.frontier.settle(&unwanted, self.clock.now())?;
        Ok(())
    }

    fn spawn(&mut self, lease: Lease, url: Url) {
        let started = self.clock.now();
        let (fetcher, config) = (Arc::clone(&self.fetcher), Arc::clone(&self.config));
        let want = match lease.entry.purpose {
            Purpose::Page => Want::Page,
            Purpose::Robots(_) => Want::Robots,
            Purpose::Sitemap(_) => Want::Sitemap,
            Purpose::Address => {
                let looked_up = look_up(fetcher, lease.entry.queue.clone());
                let task = concluded(looked_up, lease.clone(), started, config);
                self.leases.insert(self.tasks.spawn(task).id(), (lease, started));
                return;
            }
        };
        let fetched = fetch(
            fetcher,
            Arc::clone(&config),
            Ask {
                validators: known_version(&lease.entry),
                ..Ask::new(url, want)
            },
            self.wanted(&lease.entry),
        );
        let task = concluded(fetched, lease.clone(), started, config);
        self.leases.insert(self.tasks.spawn(task).id(), (lease, started));
    }

    fn wanted(&self, entry: &Entry) -> Wanted {
        let options = self.config.options();
        Wanted {
            fingerprint: self.wants_fingerprint(entry),
            // A graph has all links.
            known: (!options.tell_edges).then(|| Arc::clone(&self.known)),
        }
    }

    fn refusal(&self, lease: &Lease) -> Result<Url, Outcome> {
        let url = Url::parse(&lease.entry.url).map_err(|_| Outcome::Gone)?;
        let forbidden = self.policies.forbids(&url);
        match forbidden.or_else(|| self.frontier.second_thought(lease)) {
            Some(why) if !matches!(lease.entry.purpose, Purpose::Robots(_) | Purpose::Address) => {
                Err(Outcome::NotFetched(why))
            }
            _ => Ok(url),
        }
    }
}

/// What tells the version of a page that an earlier crawl had, if there is something to tell it by.
fn known_version(entry: &Entry) -> Option<Validators> {
    let earlier = entry.metadata.earlier.as_ref()?;
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
