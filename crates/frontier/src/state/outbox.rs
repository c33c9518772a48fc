//! The outbox for one partition: batches that are not acknowledged, the oldest first.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::Links;
use crate::exchange::{BATCH_BYTES, BATCH_LINKS, LinkBatch, Mark, Told};
use crate::hosts::{Closed, SegmentStore};
use crate::link::Link;

/// Where the batches of an outbox lie; `None` for memory.
pub(super) type Segments<'s> = Option<&'s dyn SegmentStore>;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Outbox {
    /// Links that have no number yet.
    open: Links<'static>,
    closed: Closed,
    /// The digest and the links of each closed batch.
    facts: VecDeque<(u64, u32)>,
    pub(super) sent: Mark,
    pub(super) acknowledged: Mark,
    pub(super) waiting: u64,
}

impl Outbox {
    /// Adds a link. It closes the batch when that is full.
    pub(super) fn push(&mut self, link: Link, segments: Segments<'_>) {
        self.open.links.to_mut().push(link);
        self.waiting += 1;
        let data = |link: &Link| link.data.as_ref().map_or(0, |data| data.as_bytes().len());
        let bytes = self.open.links.iter().map(|link| link.url.as_str().len() + data(link));
        let bytes: usize = bytes.sum();
        if self.open.links.len() >= BATCH_LINKS || bytes >= BATCH_BYTES {
            self.close(segments);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.open.links.is_empty()
    }

    pub(super) fn close(&mut self, segments: Segments<'_>) {
        if !self.is_open() {
            return;
        }
        let open = std::mem::take(&mut self.open);
        self.add(encode(&open.links, None), open.links.len() as u32, segments);
    }

    /// Adds a text as a batch of its own, behind all links. It waits as one link does.
    pub(super) fn push_text(&mut self, told: &Told, segments: Segments<'_>) {
        self.close(segments);
        self.waiting += 1;
        self.add(encode(&[], Some(told)), 1, segments);
    }

    fn add(&mut self, bytes: Vec<u8>, links: u32, segments: Segments<'_>) {
        self.sent = self.sent.then(&bytes);
        self.facts.push_back((self.sent.digest, links));
        self.closed.push(bytes.into(), segments);
    }

    fn mark(&self, number: u64) -> Option<Mark> {
        let digest = match number.checked_sub(self.acknowledged.number)? {
            0 => self.acknowledged.digest,
            at => self.facts.get(usize::try_from(at - 1).ok()?)?.0,
        };
        Some(Mark { number, digest })
    }

    pub(super) fn has_sent(&self, mark: Mark) -> bool {
        self.mark(mark.number) == Some(mark)
    }

    /// `None` if there is none, or as in [`SegmentStore`].
    pub(super) fn after(&self, number: u64, segments: Segments<'_>) -> Option<LinkBatch> {
        let before = self.mark(number)?;
        let mark = self.mark(number + 1)?;
        let at = usize::try_from(number - self.acknowledged.number).ok()?;
        let links = self.closed.get(at, segments)?;
        let links = links.into_owned().into();
        Some(LinkBatch { before, mark, links })
    }

    /// Visits the links that wait, but for those that cannot be read.
    pub(super) fn visit(&self, segments: Segments<'_>, visit: &mut dyn FnMut(&Link)) {
        for batch in self.closed.iter(segments).flatten() {
            let links = read_batch(&batch).map(|(links, _)| links);
            links.iter().flatten().for_each(&mut *visit);
        }
        self.open.links.iter().for_each(visit);
    }

    /// Removes the batches up to a place that was sent from here.
    pub(super) fn drop_to(&mut self, mark: Mark, segments: Segments<'_>) {
        for _ in self.acknowledged.number..mark.number {
            self.closed.drop_oldest(segments);
            if let Some((_, links)) = self.facts.pop_front() {
                self.waiting -= u64::from(links);
            }
        }
        self.acknowledged = mark;
    }

    /// Goes on behind a place of another history. What is kept gets the numbers behind it.
    pub(super) fn continue_after(&mut self, mark: Mark, segments: Segments<'_>) {
        let links = self.facts.iter().map(|(_, links)| *links);
        let kept: Vec<_> = self
            .closed
            .iter(segments)
            .zip(links)
            .filter_map(|(bytes, links)| Some((bytes?.into_owned(), links)))
            .collect();
        while !self.closed.is_empty() {
            self.closed.drop_oldest(segments);
        }
        self.facts.clear();
        (self.sent, self.acknowledged) = (mark, mark);
        for (bytes, links) in kept {
            self.add(bytes, links, segments);
        }
    }
}

fn encode(links: &[Link], told: Option<&Told>) -> Vec<u8> {
    // Writing to memory cannot fail, and each part of a link can be written.
    postcard::to_allocvec(&(Links::from(links), told)).unwrap_or_default()
}

/// Reads the bytes of a batch: links, or a text.
pub(crate) fn read_batch(bytes: &[u8]) -> Option<(Vec<Link>, Option<Told>)> {
    let (links, told): (Links<'_>, _) = postcard::from_bytes(bytes).ok()?;
    Some((links.links.into_owned(), told))
}
