//! One origin's share of its host's queue: what waits, what is known of its robots.txt, and how often it failed.

use std::collections::VecDeque;

use crate::entry::{Entry, Purpose};
use crate::time::Time;

/// Entries that there is room for whether they come or not.
const SMALL: usize = 64;

/// What is known of an origin's robots.txt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Robots {
    #[default]
    Unknown,
    Asking,
    KnownUntil(Time),
}

/// What waits of one origin and may be handed out as soon as its robots.txt is known.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    pub(crate) robots: Robots,
    /// Whether it is in the round of its host's lanes.
    pub(crate) in_round: bool,
    sitemaps: VecDeque<Entry>,
    retries: VecDeque<Entry>,
    pages: VecDeque<Entry>,
    /// A sitemap was handed out last: however many there are, the pages get every second turn.
    page_is_next: bool,
    /// How often in a row it failed. Nobody listening on one port says nothing of the host's others.
    pub(crate) failures: u32,
    /// How often in a row it answered that it wants less traffic.
    pub(crate) throttles: u32,
    pub(crate) given_up: bool,
}

impl Lane {
    /// Lets an entry wait behind all others of its kind.
    pub(crate) fn push(&mut self, entry: Entry) {
        match entry.purpose {
            Purpose::Sitemap(_) => self.sitemaps.push_back(entry),
            Purpose::Page | Purpose::Robots(_) | Purpose::Address => self.pages.push_back(entry),
        }
    }

    /// Lets an entry wait that was handed out before, and whose time has come.
    pub(crate) fn push_again(&mut self, entry: Entry) {
        match entry.purpose {
            Purpose::Sitemap(_) => self.sitemaps.push_back(entry),
            Purpose::Page | Purpose::Robots(_) | Purpose::Address => self.retries.push_back(entry),
        }
    }

    /// Takes out the entry whose turn it is: a sitemap and a page in turn, as long as there are both. After a failure, a page
    /// that has not failed goes before one that has: so a few pages that are slow, or always throttle, are not taken for a
    /// host that is down.
    pub(crate) fn take(&mut self) -> Option<Entry> {
        let sitemap = if self.page_is_next {
            None
        } else {
            take_first(&mut self.sitemaps)
        };
        let fresh = if sitemap.is_none() && !self.is_well() {
            take_first(&mut self.pages)
        } else {
            sitemap
        };
        let first = fresh
            .or_else(|| take_first(&mut self.retries))
            .or_else(|| take_first(&mut self.pages))
            .or_else(|| take_first(&mut self.sitemaps))?;
        self.page_is_next = matches!(first.purpose, Purpose::Sitemap(_));
        Some(first)
    }

    /// Goes through all that waits.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Entry> {
        self.sitemaps.iter().chain(&self.retries).chain(&self.pages)
    }

    /// Takes out all that waits.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Entry> + use<> {
        let sitemaps = std::mem::take(&mut self.sitemaps).into_iter();
        sitemaps.chain(self.drain_pages())
    }

    /// Takes out all pages that wait.
    pub(crate) fn drain_pages(&mut self) -> impl Iterator<Item = Entry> + use<> {
        let retries = std::mem::take(&mut self.retries).into_iter();
        retries.chain(std::mem::take(&mut self.pages))
    }

    /// Says whether there is nothing to remember it for.
    pub(crate) fn is_forgettable(&self) -> bool {
        self.is_empty() && self.robots == Robots::Unknown && self.is_well()
    }

    /// Gives it up for a reason that holds. Returns how many were given up by that, one or none.
    pub(crate) fn give_up_if(&mut self, reason: bool) -> u32 {
        let is_new = reason && !self.given_up;
        self.given_up |= reason;
        u32::from(is_new)
    }

    /// Says whether its last answer was one.
    pub(crate) fn is_well(&self) -> bool {
        self.failures == 0 && self.throttles == 0 && !self.given_up
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sitemaps.is_empty() && self.retries.is_empty() && self.pages.is_empty()
    }

    pub(crate) fn knows_robots(&self, now: Time) -> bool {
        matches!(self.robots, Robots::KnownUntil(until) if until > now)
    }
}

/// Takes out the first entry, and gives memory back once three quarters of it are idle: a queue that was long once is not
/// for ever. Over its time, that moves about one entry for each that is taken out at the most.
fn take_first(queue: &mut VecDeque<Entry>) -> Option<Entry> {
    let first = queue.pop_front();
    if queue.capacity() > SMALL && queue.len() < queue.capacity() / 4 {
        queue.shrink_to(queue.capacity() / 2);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Metadata;
    use crate::url::HostKey;
    use url::Url;

    fn entry(number: usize) -> Entry {
        Entry {
            queue: HostKey::of(&Url::parse("http://site.example/").unwrap()).unwrap(),
            url: format!("http://site.example/{number}").into(),
            key: None,
            due: Time::default(),
            depth: 0,
            hops: 0,
            attempts: 0,
            put_off: 0,
            purpose: Purpose::Page,
            metadata: Metadata::default(),
        }
    }

    #[test]
    fn a_queue_that_was_long_gives_its_memory_back_and_keeps_its_order() {
        let mut lane = Lane::default();
        (0..100_000).for_each(|number| lane.push(entry(number)));
        for number in 0..100_000 {
            assert_eq!(lane.take(), Some(entry(number)));
            let (waiting, room) = (lane.pages.len(), lane.pages.capacity());
            assert!(
                room <= SMALL.max(4 * waiting + 4),
                "room for {room} with {waiting} waiting"
            );
        }
        assert_eq!(lane.take(), None);
    }
}
