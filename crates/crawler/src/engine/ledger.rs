//! What is in flight: tasks, their leases, and the links of earlier attempts at the same pages.

mod earlier_attempts;

use std::collections::HashMap;
use std::future::Future;

use frontier::{Lease, Purpose, Time};
use tokio::task::{Id, JoinError, JoinSet};

use crate::config::CrawlConfig;
use crate::engine::conclusions::{Conclusion, FinishedTask, conclude};
pub(crate) use earlier_attempts::EarlierAttempts;

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

    /// Removes all finished tasks and returns their conclusions. A panic becomes a failed request.
    pub(crate) fn collect_ended(&mut self, first: TaskResult, config: &CrawlConfig) -> Vec<Conclusion> {
        let mut conclusions = Vec::new();
        let mut next = Some(first);
        while let Some(result) = next {
            let id = result.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
            if let Some((lease, started)) = self.leases.remove(&id) {
                conclusions.push(result.map_or_else(
                    |error| {
                        let result = Err(error.to_string());
                        conclude(FinishedTask { lease, started, result }, config)
                    },
                    |(_, conclusion)| conclusion,
                ));
            }
            next = self.tasks.try_join_next_with_id();
        }
        conclusions
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
