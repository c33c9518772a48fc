//! How links come in: the host queues as the queue behind the frontier's sieve.

use super::HostQueues;
use crate::admission::entry;
use crate::link::Link;
use crate::scope::Refusal;
use crate::time::Time;

impl sieve::Queue for HostQueues {
    fn len(&self) -> usize {
        usize::try_from(self.queued).unwrap_or(usize::MAX)
    }
}

impl sieve::Accepts<Arrival<'_>> for HostQueues {
    type Refusal = Refusal;

    fn admit(&self, arrival: &Arrival<'_>) -> Result<(), Refusal> {
        self.admit(arrival.link)
    }

    fn push(&mut self, arrival: Arrival<'_>) {
        let is_first_of_host = !self.hosts.contains_key(arrival.link.url.host_str());
        self.budgets.count(arrival.link, is_first_of_host);
        self.enqueue(entry(arrival.link), arrival.at);
    }
}

/// A link on its way through the filter into its host's queue, with the time of its arrival. An entry is made only of one that is new.
#[derive(Debug)]
pub(crate) struct Arrival<'l> {
    pub(crate) link: &'l Link,
    pub(crate) at: Time,
}

impl AsRef<[u8]> for Arrival<'_> {
    /// The bytes of the key, which is what the filter sees.
    fn as_ref(&self) -> &[u8] {
        self.link.url.key().as_bytes()
    }
}
