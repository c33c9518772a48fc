//! What the state has of the other partitions: outboxes, and marks of what was received.

use serde::{Deserialize, Serialize};

use super::outbox::{Outbox, Segments};
use super::{Links, State};
use crate::exchange::{Acknowledged, ExchangeCounts, LinkBatch, Mark, Peer, Told};
use crate::link::Link;
use crate::partition::Partition;
use crate::settlement::Verdict;
use crate::time::Time;

/// The places in the memory of links that were sent. Each takes 8 bytes.
const SENT_LINKS: usize = 1 << 20;

/// What is kept of the other partitions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Exchange {
    /// By their indices.
    peers: Vec<WithPeer>,
    /// The number of the last text of each that is known here, by their indices.
    told: Vec<u64>,
    counts: ExchangeCounts,
    /// The hashes of the links that were sent last: each has one place, where a later one replaces it.
    ///
    /// It is no part of the stored state. A journal holds just the links that were sent, so a replay finds in each place what was there, or
    /// nothing, if that was sent before the checkpoint: a link that was sent then is sent again now.
    #[serde(skip)]
    sent_links: Vec<u64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct WithPeer {
    outbox: Outbox,
    received: Mark,
}

/// Which links for other partitions are put in the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    /// Those that were not sent lately. A journal stores only these.
    New,
    /// All: a journal stores all links of the call, so the answer may not depend on what was sent before.
    All,
    /// None: the other processes have them, too.
    Nothing,
}

impl Exchange {
    pub(super) fn new(partition: Option<Partition>) -> Self {
        let count = partition.map_or(0, Partition::count) as usize;
        Self {
            peers: (0..count).map(|_| WithPeer::default()).collect(),
            told: vec![0; count],
            ..Self::default()
        }
    }

    fn peer(&self, index: u32) -> Option<&WithPeer> {
        self.peers.get(index as usize)
    }

    fn waiting(&self) -> u64 {
        self.peers.iter().map(|peer| peer.outbox.waiting).sum()
    }
}

impl State {
    pub(crate) fn partition(&self) -> Option<Partition> {
        self.partition
    }

    pub(super) fn owner_elsewhere(&self, link: &Link) -> Option<u32> {
        let partition = self.partition?;
        let owner = partition.owner_of(&link.url);
        (owner != partition.index()).then_some(owner)
    }

    /// Decides about a link of another partition.
    pub(super) fn send(&mut self, link: &Link, to: u32, sending: Sending) -> Verdict {
        match sending {
            Sending::Nothing => return Verdict::Elsewhere,
            Sending::New if !self.note_sent(link) => return Verdict::Seen,
            Sending::New | Sending::All => {}
        }
        self.put_in_outbox(link, to);
        Verdict::Elsewhere
    }

    fn put_in_outbox(&mut self, link: &Link, to: u32) {
        // Cookies stay in this process.
        let link = Link {
            has_new_cookies: false,
            ..link.clone()
        };
        self.change_outbox(to, |outbox, segments| outbox.push(link, segments));
        self.tables.exchange.counts.sent += 1;
    }

    /// Adds the target of a redirected seed, or a later seed, to the reach, and tells all other partitions if that has grown.
    ///
    /// Who is told tells all others, too. So each partition knows of it before it gets links that were found thanks to it, whoever sends them.
    pub(super) fn widen_reach(&mut self, target: &Link) {
        if self.scope.add_seed(&target.url) {
            for peer in self.partition.into_iter().flat_map(Partition::peers) {
                self.put_in_outbox(target, peer);
            }
        }
    }

    /// Tells all other partitions a text of the caller's. A directory that takes the place of a lost one goes on with higher numbers.
    pub(super) fn tell(&mut self, text: &[u8], now: Time) {
        let Some(by) = self.partition.map(Partition::index) else {
            return;
        };
        let last = self.tables.exchange.told.get(by as usize).copied().unwrap_or_default();
        let (number, text) = (now.as_millis().max(last + 1), text.into());
        self.pass_on(&Told { by, number, text }, by);
    }

    pub(crate) fn is_news(&self, told: &Told) -> bool {
        let last = self.tables.exchange.told.get(told.by as usize);
        last.is_some_and(|last| told.number > *last) && self.partition.is_some_and(|own| own.index() != told.by)
    }

    /// Who is told tells all others, too: so all that is told after it, by whomever, arrives after it.
    fn pass_on(&mut self, told: &Told, from: u32) {
        if let Some(last) = self.tables.exchange.told.get_mut(told.by as usize) {
            *last = told.number;
        }
        let peers = self.partition.into_iter().flat_map(Partition::peers);
        for peer in peers.filter(|peer| ![from, told.by].contains(peer)) {
            self.change_outbox(peer, |outbox, segments| outbox.push_text(told, segments));
        }
    }

    /// Notes that a link is sent. Returns whether it was not sent lately.
    fn note_sent(&mut self, link: &Link) -> bool {
        // A sitemap is another link than a page of the same URL.
        let hash = self.tables.hash.of(link.url.key()) ^ u64::from(link.sitemap_of.is_some());
        let sent = &mut self.tables.exchange.sent_links;
        if sent.is_empty() {
            // Its memory is taken as places are used.
            *sent = vec![0; SENT_LINKS];
        }
        let place = sent.get_mut(hash as usize % SENT_LINKS);
        place.is_none_or(|was| std::mem::replace(was, hash) != hash)
    }

    pub(super) fn is_outbox_full(&self) -> bool {
        self.tables.exchange.waiting() >= self.config.limits.max_outbox
    }

    pub(crate) fn has_open_batches(&self) -> bool {
        self.tables.exchange.peers.iter().any(|peer| peer.outbox.is_open())
    }

    pub(crate) fn peer(&self, index: u32) -> Option<Peer> {
        let peer = self.tables.exchange.peer(index)?;
        Some(Peer {
            sent: peer.outbox.sent,
            acknowledged: peer.outbox.acknowledged,
            received: peer.received,
            waiting: peer.outbox.waiting,
        })
    }

    pub(crate) fn outgoing(&self, to: u32, after: u64) -> Option<LinkBatch> {
        let segments = self.sieve.queue().config().segments();
        self.tables.exchange.peer(to)?.outbox.after(after, segments)
    }

    /// Visits the links that wait for other partitions, but for those that cannot be read, which the store then knows.
    pub(crate) fn visit_outboxes(&self, visit: &mut dyn FnMut(&Link)) {
        let segments = self.sieve.queue().config().segments();
        for peer in &self.tables.exchange.peers {
            peer.outbox.visit(segments, visit);
        }
    }

    /// Returns what an acknowledgement means. It changes nothing yet.
    pub(crate) fn judge_acknowledgement(&self, by: u32, mark: Mark) -> Acknowledged {
        let Some(peer) = self.tables.exchange.peer(by) else {
            return Acknowledged::OtherHistory;
        };
        let before = peer.outbox.acknowledged;
        match () {
            () if mark.number < before.number || mark == before => Acknowledged::Old,
            () if peer.outbox.has_sent(mark) => Acknowledged::Dropped(mark.number - before.number),
            () => Acknowledged::OtherHistory,
        }
    }

    fn change_outbox(&mut self, of: u32, change: impl FnOnce(&mut Outbox, Segments<'_>)) {
        let segments = self.sieve.queue().config().segments.clone();
        if let Some(peer) = self.tables.exchange.peers.get_mut(of as usize) {
            change(&mut peer.outbox, segments.as_deref());
        }
    }

    pub(super) fn close_batches(&mut self) {
        for peer in self.partition.into_iter().flat_map(Partition::peers) {
            self.change_outbox(peer, |outbox, segments| outbox.close(segments));
        }
    }

    pub(super) fn acknowledge(&mut self, by: u32, mark: Mark) {
        self.change_outbox(by, |outbox, segments| outbox.drop_to(mark, segments));
    }

    /// Offers the links of a batch, passes its text on if it is new, and moves the mark of its sender.
    pub(super) fn receive(
        &mut self,
        (from, mark): (u32, Mark),
        links: &Links<'_>,
        told: Option<&Told>,
        now: Time,
    ) -> Vec<Verdict> {
        if let Some(told) = told.filter(|told| self.is_news(told)) {
            self.pass_on(told, from);
        }
        let exchange = &mut self.tables.exchange;
        if let Some(peer) = exchange.peers.get_mut(from as usize) {
            peer.received = mark;
        }
        exchange.counts.received += links.links.len() as u64 + links.others.iter().map(|one| one.count).sum::<u64>();
        let seeds = links.links.iter().filter(|link| link.seed);
        seeds.for_each(|target| self.widen_reach(target));
        let verdicts = self.offer_links(&links.links, false, None, Sending::Nothing, now);
        self.count_others(&links.others);
        verdicts
    }

    /// Goes on where the other side is, after batches were lost in one direction or in both.
    pub(super) fn accept_loss(&mut self, peer: u32, its_received: Option<Mark>, its_acknowledged: Option<Mark>) {
        if let Some(mark) = its_received {
            self.change_outbox(peer, |outbox, segments| outbox.continue_after(mark, segments));
            self.tables.exchange.counts.lost_batches += 1;
        }
        let exchange = &mut self.tables.exchange;
        if let (Some(mark), Some(peer)) = (its_acknowledged, exchange.peers.get_mut(peer as usize)) {
            let lost = mark.number.saturating_sub(peer.received.number).max(1);
            exchange.counts.lost_batches += lost;
            peer.received = mark;
        }
    }

    pub(super) fn count_robots_elsewhere(&mut self) {
        self.tables.exchange.counts.robots_elsewhere += 1;
    }

    pub(super) fn exchange_counts(&self) -> ExchangeCounts {
        ExchangeCounts {
            waiting: self.tables.exchange.waiting(),
            ..self.tables.exchange.counts
        }
    }

    pub(super) fn exchange_bytes(&self) -> u64 {
        (self.tables.exchange.sent_links.len() * size_of::<u64>()) as u64
    }
}
