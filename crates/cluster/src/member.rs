//! A partition as a member of the cluster: what it sends, accepts and says. It does no input or output, and reads no clock.
//!
//! What it keeps from one run to the next is [`Kept`], which has to be committed together with the frontier. All else lives in memory.

mod ending;
mod sending;

use std::collections::VecDeque;
use std::time::Duration;

use frontier::exchange::{Acknowledged, Received};
use frontier::{Frontier, FrontierError, Partition, Time};
use serde::{Deserialize, Serialize};

use crate::link_log::{EntryId, StreamEntry};
use crate::wire;
use crate::word::{End, PartitionStatus, PeerWord, Word, Words};

/// How much is under way, and how long a member waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The batches for one partition that are in the log, beyond what it has acknowledged.
    pub window: u64,
    /// How long nothing is acknowledged before it is sent again. It doubles each time, up to eight times this.
    pub silence: Duration,
    /// How long a member says the end if others do not say that they know it.
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            window: 256,
            silence: Duration::from_secs(5),
            linger: Duration::from_secs(60),
        }
    }
}

/// What a member keeps in the commits of its crawl.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Kept {
    /// The id of the crawl to which the directory belongs; empty before the first start. A process that joins continues this crawl or none.
    pub crawl: String,
    /// The hash of the seeds with which it was begun: a start with others is refused. `None` before the first start.
    pub seeds: Option<u64>,
    /// Of the last start; each start takes a higher one.
    term: u64,
    /// The highest term of each partition that was heard.
    pub(crate) promises: Vec<u64>,
    ended: Option<End>,
}

/// Entries of one stream, in order.
pub type Batches = Vec<(EntryId, Vec<u8>)>;

/// What is to be done with the log.
#[derive(Debug, Default)]
pub struct ToSend {
    /// Entries to append, by their receivers.
    pub append: Vec<(u32, Batches)>,
    /// The entries of each sender, up to which they are no longer needed.
    pub trim: Vec<(u32, EntryId)>,
    /// What to say from now on, if it has changed.
    pub word: Option<Word>,
}

impl ToSend {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.append.is_empty() && self.trim.is_empty() && self.word.is_none()
    }
}

/// Why a member cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemberError {
    /// This directory lacks what another partition has received from it, or knows that it has received.
    #[error(
        "this state directory is an old copy, or a new one: it lacks links that went to partition {peer}, or came from it. Go on with the directory \
         that was used last. If that is lost, start this process with --accept-loss: the crawl continues, and ends as incomplete"
    )]
    OldCopy {
        /// The other partition.
        peer: u32,
    },
    /// What this partition has sent is not what another one has received.
    #[error(
        "the state directory of this partition or of partition {peer} is an old copy, or a new one: they do not agree on the links that went \
         from one to the other. Go on with the directory that was used last. If that is lost, start the process that says so with \
         --accept-loss: the crawl continues, and ends as incomplete"
    )]
    OtherHistory {
        /// The other partition.
        peer: u32,
    },
    /// The crawl has ended, and this directory does not have what the others have sent or received.
    #[error(
        "the crawl has ended without this directory, which is an old copy, or a new one. Keep the outputs of the one that was used last; with \
         --accept-loss this one ends, too"
    )]
    EndedWithout,
    /// The state directory is of another crawl than the processes that run.
    #[error(
        "another crawl runs under the name {name}, to which this state directory does not belong: give the right directory, or start this crawl under another name \
         (redis://…/NAME). If the directory of partition 0 was lost, start it with --accept-loss: the crawl continues, and ends as \
         incomplete"
    )]
    OtherCrawl {
        /// The name.
        name: String,
    },
    /// The frontier cannot be used.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
}

impl MemberError {
    /// Returns whether the same start would fail again, until somebody changes something.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::OldCopy { .. } | Self::OtherHistory { .. } | Self::OtherCrawl { .. } | Self::EndedWithout
        )
    }
}

/// One partition of a crawl, in its exchange with the others.
#[derive(Debug)]
pub struct Member {
    partition: Partition,
    limits: Limits,
    accepts_loss: bool,
    instance: u64,
    kept: Kept,
    is_unsaved: bool,
    /// What is true on the medium. Nothing else is said or sent.
    synced: Option<Word>,
    is_word_new: bool,
    peers: Vec<PeerMember>,
    /// Since when the end is known to be on the medium.
    end_since: Option<Time>,
    do_all_know: bool,
    repeated: u64,
}

/// What a member remembers of another one while it runs.
#[derive(Debug, Default)]
struct PeerMember {
    /// Whether it has promised the present term.
    has_answered: bool,
    /// The last batch that was handed out.
    published: u64,
    round: u32,
    /// When its mark has moved last.
    moved: Time,
    patience: Duration,
    /// Whether it was said that an entry of it cannot be read.
    has_unreadable: bool,
    /// What was read of its entries and is not trimmed, with their numbers.
    read: VecDeque<(EntryId, u64)>,
}

impl Member {
    /// Begins a run. `instance` is a number that no other start has drawn.
    pub fn new(partition: Partition, limits: Limits, mut kept: Kept, accepts_loss: bool, instance: u64) -> Self {
        let count = partition.count() as usize;
        kept.promises.resize(count, 0);
        Self {
            partition,
            limits,
            accepts_loss,
            instance,
            kept,
            is_unsaved: true,
            synced: None,
            is_word_new: false,
            peers: (0..count).map(|_| PeerMember::default()).collect(),
            end_since: None,
            do_all_know: false,
            repeated: 0,
        }
    }

    /// Takes a term above its own last one and those of the entries in the log. If others have promised a higher one, [`hear`](Self::hear) takes
    /// one above that.
    pub fn start(&mut self, last: impl IntoIterator<Item = EntryId>) {
        let of_log = last.into_iter().map(|id| id.term);
        self.take_term_above(of_log.fold(self.kept.term, u64::max));
    }

    fn take_term_above(&mut self, term: u64) {
        self.kept.term = term.saturating_add(1);
        self.is_unsaved = true;
        self.peers.iter_mut().for_each(|peer| peer.has_answered = false);
    }

    fn index(&self) -> usize {
        self.partition.index() as usize
    }

    /// Returns what has to be in the next commit.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Returns whether it has changed since the last [`saved`](Self::saved).
    pub fn is_unsaved(&self) -> bool {
        self.is_unsaved
    }

    /// Notes that it was committed.
    pub fn saved(&mut self) {
        self.is_unsaved = false;
    }

    /// Returns the number that was drawn for this run.
    pub fn instance(&self) -> u64 {
        self.instance
    }

    /// Returns how many batches were sent again, because they were not acknowledged in time.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Notes that the state of the frontier and what is kept are on the medium as they are now: from now on, this is said and sent.
    ///
    /// `is_drained` says that the seeds are in, and nothing is left to fetch, or may be fetched any more.
    pub fn synced(&mut self, frontier: &Frontier, is_drained: bool, status: PartitionStatus, now: Time) {
        let peers = (0..self.partition.count()).zip(&self.kept.promises);
        let peers = peers.map(|(index, promise)| {
            let peer = frontier.peer(index).unwrap_or_default();
            PeerWord {
                sent: peer.sent,
                acknowledged: peer.acknowledged,
                received: peer.received,
                promise: *promise,
                waiting: peer.waiting,
            }
        });
        self.synced = Some(Word {
            instance: self.instance,
            beat: 0,
            term: self.kept.term,
            is_drained,
            ended: self.kept.ended,
            lost: frontier.report().exchange.lost_batches,
            peers: peers.collect(),
            status,
        });
        self.is_word_new = true;
        if self.kept.ended.is_some() {
            self.end_since.get_or_insert(now);
        }
    }

    /// Checks that no other one has more of what this one sent, or misses more of what it received, than this directory has. It changes nothing.
    ///
    /// # Errors
    ///
    /// [`MemberError::OldCopy`], as [`hear`](Self::hear) answers later.
    pub fn check(&self, words: &Words, frontier: &Frontier) -> Result<(), MemberError> {
        for peer in self.partition.peers() {
            let word = words.get(&peer).filter(|word| word.is_of(self.partition.count()));
            let ours = frontier.peer(peer).unwrap_or_default();
            let is_older = |of_me: &PeerWord| {
                of_me.acknowledged.number > ours.received.number || of_me.received.number > ours.sent.number
            };
            if word.and_then(|word| word.peers.get(self.index())).is_some_and(is_older) {
                self.accept_or_halt(MemberError::OldCopy { peer })?;
            }
        }
        Ok(())
    }

    /// Hears what the others say, and what the log has of this one.
    ///
    /// # Errors
    ///
    /// See [`MemberError`].
    pub fn hear(&mut self, words: &Words, frontier: &mut Frontier, now: Time) -> Result<(), MemberError> {
        for peer in self.partition.peers() {
            if let Some(word) = words.get(&peer).filter(|word| word.is_of(self.partition.count())) {
                self.listen(peer, word, frontier, now)?;
            }
        }
        if self.kept.ended.is_none()
            && let Some(end) = self.end(words)?
        {
            self.kept.ended = Some(end);
            self.is_unsaved = true;
        }
        self.do_all_know =
            (0..self.partition.count()).all(|index| words.get(&index).is_some_and(|word| word.ended.is_some()));
        Ok(())
    }

    fn listen(&mut self, from: u32, word: &Word, frontier: &mut Frontier, now: Time) -> Result<(), MemberError> {
        let (index, me) = (from as usize, self.index());
        let (Some(of_me), Some(promise)) = (word.peers.get(me), self.kept.promises.get_mut(index)) else {
            return Ok(());
        };
        if word.term > *promise {
            *promise = word.term;
            self.is_unsaved = true;
        }
        if of_me.promise > self.kept.term {
            // The log has forgotten, and this directory or that of another process of this partition was used before.
            self.take_term_above(of_me.promise);
            return Ok(());
        }
        let ours = frontier.peer(from).unwrap_or_default();
        if of_me.acknowledged.number > ours.received.number {
            // The sender no longer has what this directory lacks.
            self.accept_or_halt(MemberError::OldCopy { peer: from })?;
            frontier.accept_loss(from, None, Some(of_me.acknowledged), now)?;
        }
        if of_me.promise != self.kept.term {
            return Ok(());
        }
        let acknowledged = frontier.acknowledged(from, of_me.received, now)?;
        if acknowledged == Acknowledged::OtherHistory {
            self.accept_or_halt(match of_me.received.number > ours.sent.number {
                true => MemberError::OldCopy { peer: from },
                false => MemberError::OtherHistory { peer: from },
            })?;
            frontier.accept_loss(from, Some(of_me.received), None, now)?;
            // What is kept has other numbers now, which are not on the medium.
            self.synced = None;
        }
        let silence = self.limits.silence;
        let Some(peer) = self.peers.get_mut(index) else {
            return Ok(());
        };
        if let Acknowledged::Dropped(_) = acknowledged {
            peer.moved = now;
            peer.patience = (peer.patience / 2).max(silence);
        }
        if !peer.has_answered {
            (peer.has_answered, peer.moved, peer.patience) = (true, now, silence);
        }
        Ok(())
    }

    fn accept_or_halt(&self, why: MemberError) -> Result<(), MemberError> {
        match self.accepts_loss {
            true => Ok(()),
            false => Err(why),
        }
    }

    /// Receives an entry of the log. If it is the next one of its sender, its links are offered, or its text is returned.
    ///
    /// Whatever is not the next one is dropped, and the sender sends it again: waiting at a gap would hide that behind it.
    ///
    /// # Errors
    ///
    /// See [`MemberError`].
    pub fn receive(
        &mut self,
        entry: &StreamEntry,
        frontier: &mut Frontier,
        now: Time,
    ) -> Result<Received, MemberError> {
        let index = entry.from as usize;
        let (Some(promise), Some(peer)) = (self.kept.promises.get(index), self.peers.get_mut(index)) else {
            return Ok(Received::Damaged);
        };
        // Entries of a process of the past are dropped, and what is no batch.
        let batch = wire::read(&entry.batch);
        let is_unreadable = batch.is_none();
        let batch = batch.filter(|_| entry.id.term >= *promise);
        let received = match &batch {
            Some(batch) => frontier.receive(entry.from, batch, now)?,
            None => Received::Damaged,
        };
        if is_unreadable && !std::mem::replace(&mut peer.has_unreadable, true) {
            log::warn!(
                target: "crawler::cluster",
                "an entry of partition {index} in Redis cannot be read, and is left out. If its links stay away, start the process of partition {index} \
                 again"
            );
        }
        // What is dropped is not needed in the log: it is sent again.
        let is_needed = matches!(
            received,
            Received::Accepted { .. } | Received::Told(_) | Received::Repeated
        );
        let number = batch.filter(|_| is_needed).map_or(0, |batch| batch.mark.number);
        peer.read.push_back((entry.id, number));
        Ok(received)
    }
}
