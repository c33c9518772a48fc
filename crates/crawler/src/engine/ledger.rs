//! What is in flight: tasks, their leases, and the numbers of links of earlier attempts at the same pages.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;

use frontier::{Lease, Purpose};
use tokio::task::{Id, JoinError, JoinSet, yield_now};

use crate::config::CrawlConfig;
use crate::engine::Start;
use crate::engine::conclusions::{Conclusion, conclude};
use crate::engine::fetch_task::Fetched;
use crate::fetch::FetchError;

/// Number of conclusions from which on the engine does not wait for more.
const ENOUGH: usize = 8;

/// The tasks in flight.
#[derive(Default)]
pub(crate) struct Ledger {
    tasks: JoinSet<Conclusion>,
    /// The lease of each task and its start. If the task panics, nothing else is left of it.
    leases: HashMap<Id, (Lease, Start)>,
    /// The conclusions of tasks that have finished. Their leases are still to be settled.
    ended: Vec<Conclusion>,
    /// How many new links earlier attempts at a page have found. It grows with the number of pages that wait for a retry.
    pub(crate) new_links: HashMap<Box<str>, usize>,
    /// The robots.txt files whose unusable sitemaps were reported: each is read again now and then.
    pub(crate) reported_robots: HashSet<Box<str>>,
}

impl Ledger {
    pub(crate) fn len(&self) -> usize {
        self.tasks.len() + self.ended.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Spawns the task of a lease. It concludes what it fetches, so that canonicalizing the links of a page, for instance, costs the loop nothing.
    pub(crate) fn spawn(
        &mut self,
        lease: Lease,
        started: Start,
        fetched: impl Future<Output = Fetched> + Send + 'static,
        config: &Arc<CrawlConfig>,
    ) {
        let (kept, config) = (lease.clone(), Arc::clone(config));
        let task = async move { conclude(lease, started, fetched.await, &config) };
        self.leases.insert(self.tasks.spawn(task).id(), (kept, started));
    }

    /// Waits for tasks to finish, and returns their conclusions. A panic becomes a failed request. Never returns while the ledger is empty.
    ///
    /// Settling uses code that has left the processor's first cache by then, and for several conclusions together it is loaded once. So
    /// it lets other tasks of its thread run until none has finished meanwhile, or until there are enough conclusions. If the future is
    /// dropped, nothing is lost.
    pub(crate) async fn next_ended(&mut self, config: &CrawlConfig) -> Vec<Conclusion> {
        if self.ended.is_empty() {
            match self.tasks.join_next_with_id().await {
                Some(result) => self.end(result, config),
                None => std::future::pending().await,
            }
        }
        self.collect_ended(config);
        while self.ended.len() < ENOUGH && !self.tasks.is_empty() {
            let before = self.ended.len();
            yield_now().await;
            self.collect_ended(config);
            if self.ended.len() == before {
                break;
            }
        }
        std::mem::take(&mut self.ended)
    }

    fn collect_ended(&mut self, config: &CrawlConfig) {
        while let Some(result) = self.tasks.try_join_next_with_id() {
            self.end(result, config);
        }
    }

    fn end(&mut self, result: Result<(Id, Conclusion), JoinError>, config: &CrawlConfig) {
        let id = result.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let Some((lease, started)) = self.leases.remove(&id) else {
            return;
        };
        self.ended.push(match result {
            Ok((_, conclusion)) => conclusion,
            Err(error) => {
                let panicked = Fetched::not_parsed(Err(FetchError::Panicked(error.to_string())));
                conclude(lease, started, panicked, config)
            }
        });
    }

    /// Aborts all tasks, and returns how many of them were fetching pages. Conclusions that wait are still returned.
    pub(crate) fn abort_all(&mut self) -> usize {
        let is_page = |(lease, _): &&(Lease, Start)| lease.entry.purpose == Purpose::Page;
        let count = self.leases.values().filter(is_page).count();
        self.tasks = JoinSet::new();
        self.leases.clear();
        count
    }
}
