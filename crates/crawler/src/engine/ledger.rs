//! What is in flight: tasks, their leases, and the links of earlier attempts at the same pages.

mod earlier_attempts;

use std::collections::HashMap;
use std::future::Future;

use frontier::{Lease, Purpose, Time};
use tokio::task::{Id, JoinError, JoinSet, yield_now};

use crate::config::CrawlConfig;
use crate::engine::conclusions::{Conclusion, FinishedTask, conclude};
pub(crate) use earlier_attempts::EarlierAttempts;

/// How many conclusions are enough to be processed together.
const AT_ONCE: usize = 8;

/// The tasks in flight.
#[derive(Default)]
pub(crate) struct Ledger {
    tasks: JoinSet<Conclusion>,
    /// The lease of each task and its start time. If the task panics, nothing else is left of it.
    leases: HashMap<Id, (Lease, Time)>,
    pub(crate) earlier: EarlierAttempts,
}

/// A task that returned or panicked.
pub(crate) type TaskResult = Result<(Id, Conclusion), JoinError>;

impl Ledger {
    /// Returns how many tasks are in flight.
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns whether no task is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Spawns the task of a lease.
    pub(crate) fn spawn(
        &mut self,
        lease: Lease,
        started: Time,
        task: impl Future<Output = Conclusion> + Send + 'static,
    ) {
        self.leases.insert(self.tasks.spawn(task).id(), (lease, started));
    }

    /// Waits for the next task to finish. Never returns while no task is in flight.
    pub(crate) async fn next(&mut self) -> TaskResult {
        match self.tasks.join_next_with_id().await {
            Some(result) => result,
            None => std::future::pending().await,
        }
    }

    /// Removes the finished tasks and returns their conclusions, also of those that finish soon. A panic becomes a failed request.
    ///
    /// All that follows for a conclusion runs through code that the processor has no longer in its first cache. For several at once it
    /// is fetched once. So tasks that can go on now do so first, as long as one of them finishes.
    pub(crate) async fn collect_ended(&mut self, first: TaskResult, config: &CrawlConfig) -> Vec<Conclusion> {
        let mut conclusions = Vec::new();
        let mut next = Some(first);
        while let Some(result) = next {
            conclusions.extend(self.conclusion(result, config));
            next = self.tasks.try_join_next_with_id();
            if next.is_none() && conclusions.len() < AT_ONCE && !self.is_empty() {
                yield_now().await;
                next = self.tasks.try_join_next_with_id();
            }
        }
        conclusions
    }

    fn conclusion(&mut self, result: TaskResult, config: &CrawlConfig) -> Option<Conclusion> {
        let id = result.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let (lease, started) = self.leases.remove(&id)?;
        Some(result.map_or_else(
            |error| {
                let result = Err(error.to_string());
                conclude(FinishedTask { lease, started, result }, config)
            },
            |(_, conclusion)| conclusion,
        ))
    }

    /// Aborts all tasks, and returns how many of them were fetching pages.
    pub(crate) fn abort_all(&mut self) -> usize {
        let is_page = |(lease, _): &&(Lease, Time)| lease.entry.purpose == Purpose::Page;
        let count = self.leases.values().filter(is_page).count();
        self.tasks = JoinSet::new();
        self.leases.clear();
        count
    }
}
