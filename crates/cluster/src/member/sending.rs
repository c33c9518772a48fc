//! What a member sends: batches, again after a silence, its word, and what the log need not keep.

use frontier::{Frontier, Time};

use super::{Member, MemberError, ToSend};
use crate::link_log::EntryId;
use crate::wire;

/// The batches for one partition that are handed out at once.
const BATCHES_AT_ONCE: usize = 32;

impl Member {
    /// Returns what is to be done with the log now. Call it again if it returned entries to append.
    ///
    /// # Errors
    ///
    /// A batch that cannot be read.
    pub fn orders(&mut self, frontier: &Frontier, now: Time) -> Result<ToSend, MemberError> {
        let mut orders = ToSend::default();
        let Some(synced) = &self.synced else { return Ok(orders) };
        if std::mem::take(&mut self.is_word_new) {
            orders.word = Some(synced.clone());
        }
        let all = self.peers.iter_mut().zip(&synced.peers).zip(0_u32..);
        for ((peer, synced_peer), to) in all.filter(|(_, to)| *to != self.partition.index()) {
            let acknowledged = frontier.peer(to).unwrap_or_default().acknowledged.number;
            if peer.has_answered {
                if peer.published > acknowledged && now.since(peer.moved) > peer.patience {
                    self.repeated += peer.published - acknowledged;
                    peer.round += 1;
                    (peer.published, peer.moved) = (acknowledged, now);
                    // Else a slow receiver is drowned in repetitions.
                    peer.patience = (peer.patience * 2).min(self.limits.silence * 8);
                }
                let last = synced_peer.sent.number.min(acknowledged + self.limits.window);
                let mut entries = Vec::new();
                let mut after = peer.published.max(acknowledged);
                while after < last && entries.len() < BATCHES_AT_ONCE {
                    let Some(batch) = frontier.outgoing(to, after)? else {
                        break;
                    };
                    after = batch.mark.number;
                    let id = EntryId {
                        term: self.kept.term,
                        round: peer.round,
                        number: after,
                    };
                    entries.push((id, wire::write(&batch)));
                }
                if !entries.is_empty() {
                    if peer.published <= acknowledged {
                        peer.moved = now;
                    }
                    peer.published = after;
                    orders.append.push((to, entries));
                }
            }
            let mut trim = None;
            while let Some((id, number)) = peer.read.front().copied() {
                if number > synced_peer.received.number {
                    break;
                }
                peer.read.pop_front();
                trim = Some(id);
            }
            orders.trim.extend(trim.map(|id| (to, id)));
        }
        Ok(orders)
    }
}
