//! What is in flight: the tasks, the leases that they work on, and what came of earlier attempts.

mod earlier_attempts;

use std::collections::HashMap;
use std::future::Future;

use frontier::{Lease, Purpose, Time};
use tokio::task::{Id, JoinError, JoinSet};

use crate::config::CrawlConfig;
use crate::engine::conclusions::{Conclusion, Returned, conclude};
pub(crate) use earlier_attempts::EarlierAttempts;

/// What is in flight.
#[derive(Default)]
pub(crate) struct Ledger {
    tasks: JoinSet<Conclusion>,
    /// The lease of each task, and when it started: what is left of a task that panics.
    leases: HashMap<Id, (Lease, Time)>,
    pub(crate) earlier: EarlierAttempts,
}

/// A task that came back, or panicked.
pub(crate) type TaskResult = Result<(Id, Conclusion), JoinError>;

impl Ledger {
    /// Returns how many tasks are in flight.
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Says whether none is.
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

    /// Waits for the next task; never ends while there is none.
    pub(crate) async fn next(&mut self) -> TaskResult {
        match self.tasks.join_next_with_id().await {
            Some(result) => result,
            None => std::future::pending().await,
        }
    }

    /// Takes out all tasks that have ended. What panicked is concluded as such.
    pub(crate) fn collect_ended(&mut self, first: TaskResult, config: &CrawlConfig) -> Vec<Conclusion> {
        let mut conclusions = Vec::new();
        let mut next = Some(first);
        while let Some(result) = next {
            let id = result.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
            if let Some((lease, started)) = self.leases.remove(&id) {
                conclusions.push(result.map_or_else(
                    |error| {
                        let result = Err(error.to_string());
                        conclude(Returned { lease, started, result }, config)
                    },
                    |(_, conclusion)| conclusion,
                ));
            }
            next = self.tasks.try_join_next_with_id();
        }
        conclusions
    }

    /// Drops all tasks, and returns how many pages were in flight.
    pub(crate) fn abort_all(&mut self) -> usize {
        let is_page = |(lease, _): &&(Lease, Time)| lease.entry.purpose == Purpose::Page;
        let count = self.leases.values().filter(is_page).count();
        self.tasks = JoinSet::new();
        self.leases.clear();
        count
    }
}
