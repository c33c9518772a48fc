//! The exchange of links with the frontiers of other partitions.

use std::borrow::Cow;

use super::Frontier;
use crate::error::FrontierError;
use crate::exchange::{Acknowledged, LinkBatch, Mark, Peer, Received};
use crate::partition::Partition;
use crate::state::{Call, Links, read_batch};
use crate::time::Time;

impl Frontier {
    /// Returns the share of the crawl that this frontier has; `None` for all of it.
    pub fn partition(&self) -> Option<Partition> {
        self.state.partition()
    }

    /// Returns the state of the exchange with another partition; `None` if there is none of this index.
    pub fn peer(&self, index: u32) -> Option<Peer> {
        self.state.peer(index)
    }

    /// Returns the batch for another partition that comes after this number. `None` if there is none yet, or if that one was acknowledged.
    /// [`persist`](Self::persist) closes the last batches, each time it syncs: send a batch only after such a call has returned. A power cut
    /// takes others back, and the numbers with them.
    ///
    /// Cost: in a frontier with a directory, a read of the store.
    ///
    /// # Errors
    ///
    /// [`FrontierError::NotRead`] if the batch cannot be read.
    pub fn outgoing(&self, to: u32, after: u64) -> Result<Option<LinkBatch>, FrontierError> {
        let batch = self.state.outgoing(to, after);
        if batch.is_none() && self.state.queues().config().is_broken() {
            return Err(FrontierError::NotRead);
        }
        Ok(batch)
    }

    /// Removes the batches from the outbox that another partition has received and synced. `mark` is its
    /// [`received`](Peer::received) of this one at its last sync.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn acknowledged(&mut self, by: u32, mark: Mark, now: Time) -> Result<Acknowledged, FrontierError> {
        let judged = self.state.judge_acknowledgement(by, mark);
        if let Acknowledged::Dropped(_) = judged {
            self.apply(Call::Acknowledged { by, mark }, now)?;
        }
        Ok(judged)
    }

    /// Receives a batch from another partition: offers its links, if it is the next one.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn receive(&mut self, from: u32, batch: &LinkBatch, now: Time) -> Result<Received, FrontierError> {
        let Some(peer) = self.state.peer(from) else {
            return Ok(Received::OtherHistory);
        };
        if batch.mark.number <= peer.received.number {
            return Ok(Received::Repeated);
        }
        if batch.mark.number > peer.received.number + 1 {
            return Ok(Received::Early);
        }
        if batch.before != peer.received {
            return Ok(Received::OtherHistory);
        }
        let read = read_batch(&batch.links).filter(|_| batch.before.then(&batch.links) == batch.mark);
        let Some((links, told)) = read else {
            return Ok(Received::Damaged);
        };
        let news = told.clone().filter(|told| self.state.is_news(told));
        let call = Call::Receive {
            from,
            mark: batch.mark,
            links: Links::from(links.as_slice()),
            told: told.map(Cow::Owned),
        };
        let verdicts = self.apply(call, now)?.verdicts;
        Ok(match news {
            None => Received::Accepted { links, verdicts },
            Some(told) => Received::Told(told.text),
        })
    }

    /// Tells all other partitions a text of the caller's. Each receives it once, behind the links that are sent to it before, and behind the texts that this
    /// frontier has received before. Without a [partition](Self::partition) it does nothing.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn tell(&mut self, text: &[u8], now: Time) -> Result<(), FrontierError> {
        self.apply(Call::Tell(Cow::Borrowed(serde_bytes::Bytes::new(text))), now)
            .map(drop)
    }

    /// Goes on where another partition is, after one of both directories was lost, or replaced by an older copy. `its_received` is what it
    /// has received of this one, if this one did not send that: the batches that are kept get the numbers behind it. `its_acknowledged` is
    /// what it has acknowledged, if this one did not receive that: it is taken as received. What was lost is counted in
    /// [`lost_batches`](crate::exchange::ExchangeCounts::lost_batches); the crawl is not complete any more.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn accept_loss(
        &mut self,
        peer: u32,
        its_received: Option<Mark>,
        its_acknowledged: Option<Mark>,
        now: Time,
    ) -> Result<(), FrontierError> {
        let call = Call::AcceptLoss {
            peer,
            its_received,
            its_acknowledged,
        };
        self.apply(call, now).map(drop)
    }

    pub(super) fn close_batches(&mut self, is_synced: bool, now: Time) -> Result<(), FrontierError> {
        if is_synced && self.state.has_open_batches() {
            self.apply(Call::CloseBatches, now)?;
        }
        Ok(())
    }
}
