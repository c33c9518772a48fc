//! How a member finds that the crawl has ended, and when it may leave.

use frontier::Time;

use super::{Member, MemberError};
use crate::word::{End, Word, Words};

impl Member {
    fn word_of<'w>(&'w self, index: u32, words: &'w Words) -> Option<&'w Word> {
        match index == self.partition.index() {
            true => self.synced.as_ref(),
            false => words.get(&index).filter(|word| word.is_of(self.partition.count())),
        }
    }

    /// Returns how the crawl has ended, if it has.
    ///
    /// One reading of the words suffices: if the number and the digest of what was sent equal those of what was received for each pair, the
    /// states that said so form a consistent cut with nothing under way (F. Mattern, "Algorithms for distributed termination detection",
    /// 1987, the four counter method; here the counts come from states that cannot go back).
    pub(super) fn end(&self, words: &Words) -> Result<Option<End>, MemberError> {
        let Some(synced) = &self.synced else { return Ok(None) };
        let others = || self.partition.peers().map(|peer| (peer, self.word_of(peer, words)));
        if let Some(end) = others().find_map(|(_, word)| word?.ended) {
            let agrees = |peer: u32, word: &Word| {
                let pair = synced.peers.get(peer as usize).zip(word.peers.get(self.index()));
                pair.is_some_and(|(ours, theirs)| ours.sent == theirs.received && ours.received == theirs.sent)
            };
            // What is said after the end is final; before it, it may be old.
            let mut ended = others()
                .filter_map(|(peer, word)| Some((peer, word?)))
                .filter(|(_, word)| word.ended.is_some());
            let is_outside = !synced.is_drained || ended.any(|(peer, word)| !agrees(peer, word));
            let agrees_with_all = others().all(|(peer, word)| word.is_some_and(|word| agrees(peer, word)));
            return match (is_outside, self.accepts_loss) {
                (true, true) => Ok(Some(End::Incomplete)),
                (true, false) => Err(MemberError::EndedWithout),
                (false, _) if !agrees_with_all => Ok(None),
                (false, _) if synced.lost == 0 => Ok(Some(end)),
                (false, _) => Ok(Some(End::Incomplete)),
            };
        }
        let all: Option<Vec<&Word>> = (0..self.partition.count())
            .map(|index| self.word_of(index, words))
            .collect();
        let Some(all) = all.filter(|all| all.iter().all(|word| word.is_drained)) else {
            return Ok(None);
        };
        let is_received = |i: usize, j: usize| {
            let sender = all.get(i).and_then(|word| Some((word.term, word.peers.get(j)?.sent)));
            let receiver = all.get(j).and_then(|word| word.peers.get(i));
            receiver.map(|peer| (peer.promise, peer.received)) == sender && sender.is_some()
        };
        let pairs = (0..all.len()).flat_map(|i| (0..all.len()).map(move |j| (i, j)));
        if !pairs.filter(|(i, j)| i != j).all(|(i, j)| is_received(i, j)) {
            return Ok(None);
        }
        let is_lossless = all.iter().all(|word| word.lost == 0);
        Ok(Some(if is_lossless { End::Complete } else { End::Incomplete }))
    }

    /// Returns how the crawl has ended, once all others know it or have had the time to.
    pub fn finished(&self, now: Time) -> Option<End> {
        let since = self.end_since?;
        let end = self.kept.ended?;
        (self.do_all_know || now.since(since) > self.limits.linger).then_some(end)
    }

    /// Returns how the crawl has ended, as far as this member knows.
    pub fn ended(&self) -> Option<End> {
        self.kept.ended
    }
}
