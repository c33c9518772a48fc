//! One origin's share of its host's queue: what waits, what its robots.txt says, and whether it is away.

use std::collections::VecDeque;
use std::sync::Arc;

use url::Url;

use super::outage::{OriginHealth, Outage};
use super::packed_entries::{OriginRef, PackedEntries};
use crate::entry::{Entry, Purpose, origin_text};
use crate::failure::Failure;
use crate::lease::NotFetched;
use crate::rules::KnownRules;
use crate::time::Time;
use crate::url::{HostKey, Origin};

/// An origin among those of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OriginId {
    /// Dots at the end of the host's name, which robots.txt tells apart and the host does not.
    dots: u32,
    port: u16,
    is_secure: bool,
}

impl OriginId {
    /// Reads the origin of a URL, or of the text of an origin.
    pub(crate) fn of(url: &str) -> Self {
        let origin = origin_text(url);
        let (scheme, authority) = origin.split_once("://").unwrap_or(("", origin));
        let is_secure = scheme == "https";
        let (name, port) = match authority.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (authority, None),
        };
        let dots = name.len() - name.trim_end_matches('.').len();
        Self {
            dots: u32::try_from(dots).unwrap_or(u32::MAX),
            port: port.unwrap_or(if is_secure { 443 } else { 80 }),
            is_secure,
        }
    }

    /// Returns the origin as text, as the WHATWG serialises it.
    pub(crate) fn text(self, host: &HostKey) -> String {
        let mut text = String::with_capacity(host.as_str().len() + 16);
        let (scheme, usual) = if self.is_secure { ("https", 443) } else { ("http", 80) };
        text.push_str(scheme);
        text.push_str("://");
        text.push_str(host.as_str());
        text.extend((0..self.dots).map(|_| '.'));
        if self.port != usual {
            text.push(':');
            text.push_str(&self.port.to_string());
        }
        text
    }

    /// Returns the origin itself.
    pub(crate) fn origin(self, host: &HostKey) -> Option<Origin> {
        Origin::of(&Url::parse(&self.text(host)).ok()?)
    }
}

/// What waits of one origin, and all that is known of it.
#[derive(Debug)]
pub(crate) struct OriginQueue {
    pub(crate) id: OriginId,
    /// What its robots.txt says, if it was asked for, and until when.
    pub(crate) known: Option<KnownRules>,
    /// Its robots.txt is asked for.
    pub(crate) is_asking: bool,
    /// Nothing was handed out since its robots.txt was read. However short the rules hold, and however long it has to wait for its
    /// turn, they are used once: else it would be asked for its robots.txt again and again, and never for a page.
    pub(crate) rules_are_fresh: bool,
    /// How often its robots.txt was asked for in vain, in a row.
    pub(crate) robots_attempts: u8,
    /// It has answered in this crawl.
    pub(crate) has_answered: bool,
    pub(crate) is_given_up: bool,
    /// Whether it is in the round of its host's origins.
    pub(crate) in_round: bool,
    /// A sitemap was handed out last: however many there are, the pages get every second turn.
    page_is_next: bool,
    pages: PackedEntries,
    rare: Option<Box<Rare>>,
}

/// What most origins have nothing of.
#[derive(Debug, Default)]
struct Rare {
    /// Its robots.txt is not to be asked for before.
    robots_due: Time,
    /// When its host looks at it next.
    timer: Time,
    sitemaps: VecDeque<Entry>,
    retries: VecDeque<Entry>,
    /// What waits behind everything else of the crawl.
    postponed: PackedEntries,
    health: OriginHealth,
}

/// What an origin hands out.
#[derive(Debug)]
pub(crate) enum OriginTurn {
    /// Its robots.txt must be asked for.
    Robots,
    /// This is to be fetched.
    Fetch(Entry),
    /// This waited and is not to be fetched.
    Drop(Entry, NotFetched, Option<Arc<Failure>>),
}

impl OriginQueue {
    pub(crate) fn new(id: OriginId) -> Self {
        Self {
            id,
            known: None,
            is_asking: false,
            rules_are_fresh: false,
            robots_attempts: 0,
            has_answered: false,
            is_given_up: false,
            in_round: false,
            page_is_next: false,
            pages: PackedEntries::default(),
            rare: None,
        }
    }

    /// Lets an entry wait behind all others of its kind. Pages that were asked for before wait behind those that were not.
    pub(crate) fn push(&mut self, entry: Entry) {
        if let Purpose::Sitemap(_) = entry.purpose {
            self.rare().sitemaps.push_back(entry);
        } else if entry.was_asked_for() {
            self.rare().retries.push_back(entry);
        } else {
            let origin = origin_text(&entry.url);
            self.pages.push(
                &entry,
                OriginRef {
                    host: &entry.queue,
                    origin,
                },
            );
        }
    }

    /// Lets a page wait behind everything else of the crawl.
    pub(crate) fn postpone(&mut self, entry: &Entry) {
        let origin = origin_text(&entry.url);
        self.rare().postponed.push(
            entry,
            OriginRef {
                host: &entry.queue,
                origin,
            },
        );
    }

    /// Takes back the oldest page that was postponed.
    pub(crate) fn take_postponed(&mut self, host: &HostKey) -> Option<Entry> {
        let origin = self.id.text(host);
        self.rare.as_mut()?.postponed.pop(OriginRef { host, origin: &origin })
    }

    /// Returns from when on something of it can be handed out; `None` if that needs a settlement first.
    pub(crate) fn ready_at(&self, now: Time, ask_robots: bool) -> Option<Time> {
        if self.is_given_up || self.is_empty() {
            return None;
        }
        if let Some(away) = self.outage() {
            return (!away.is_probing && !self.is_asking).then_some(away.next);
        }
        if ask_robots && !self.knows_robots(now) {
            return (!self.is_asking).then(|| self.rare.as_ref().map_or(Time::EPOCH, |rare| rare.robots_due));
        }
        Some(Time::EPOCH)
    }

    /// Takes out what is to be handed out next: a sitemap and a page in turn, as long as there are both; then what was asked for
    /// before. While the origin is away, this is its probe.
    pub(crate) fn take(&mut self, host: &HostKey, now: Time, ask_robots: bool) -> Option<OriginTurn> {
        if let Some(away) = self.rare.as_mut().and_then(|rare| rare.health.outage.as_mut()) {
            away.is_probing = true;
            if ask_robots {
                self.is_asking = true;
                return Some(OriginTurn::Robots);
            }
        }
        if ask_robots && !self.knows_robots(now) {
            self.is_asking = true;
            return Some(OriginTurn::Robots);
        }
        let entry = self.take_entry(host)?;
        self.rules_are_fresh = false;
        let forbidden = self.known.as_ref().filter(|_| ask_robots).and_then(|known| {
            let why = known.policy.forbids(entry.path())?;
            Some((why, known.policy.cause()))
        });
        Some(match forbidden {
            Some((why, cause)) => OriginTurn::Drop(entry, why, cause),
            None => OriginTurn::Fetch(entry),
        })
    }

    fn take_entry(&mut self, host: &HostKey) -> Option<Entry> {
        let sitemap = if self.page_is_next {
            None
        } else {
            self.take_rare(|rare| &mut rare.sitemaps)
        };
        let first = sitemap
            .or_else(|| {
                let origin = self.id.text(host);
                self.pages.pop(OriginRef { host, origin: &origin })
            })
            .or_else(|| self.take_rare(|rare| &mut rare.retries))
            .or_else(|| self.take_rare(|rare| &mut rare.sitemaps))?;
        self.page_is_next = matches!(first.purpose, Purpose::Sitemap(_));
        Some(first)
    }

    fn take_rare(&mut self, queue: fn(&mut Rare) -> &mut VecDeque<Entry>) -> Option<Entry> {
        let queue = queue(self.rare.as_mut()?);
        let entry = queue.pop_front();
        if queue.len() < queue.capacity() / 4 {
            queue.shrink_to(queue.capacity() / 2);
        }
        entry
    }

    /// Goes through all that waits, in no particular order. Costs a copy of each.
    pub(crate) fn waiting<'a>(&'a self, host: &'a HostKey, origin: &'a str) -> impl Iterator<Item = Entry> + 'a {
        let origin_ref = OriginRef { host, origin };
        let rare = self.rare.iter();
        let postponed = rare.clone().flat_map(move |rare| rare.postponed.iter(origin_ref));
        let others = rare.flat_map(|rare| rare.sitemaps.iter().chain(&rare.retries).cloned());
        self.pages.iter(origin_ref).chain(postponed).chain(others)
    }

    /// Says whether a key waits behind everything else of the crawl. Costs a look at all that does.
    pub(crate) fn is_postponed(&self, host: &HostKey, key: &str) -> bool {
        let origin = self.id.text(host);
        let origin_ref = OriginRef { host, origin: &origin };
        let rare = self.rare.iter();
        rare.flat_map(|rare| rare.postponed.iter(origin_ref))
            .any(|entry| entry.key() == key)
    }

    /// Takes out all pages that wait, packed and not.
    pub(crate) fn drain_pages(&mut self) -> (Vec<PackedEntries>, Vec<Entry>) {
        let pages = std::mem::take(&mut self.pages);
        match &mut self.rare {
            None => (vec![pages], Vec::new()),
            Some(rare) => {
                let postponed = std::mem::take(&mut rare.postponed);
                (vec![postponed, pages], std::mem::take(&mut rare.retries).into())
            }
        }
    }

    /// Takes out all sitemaps that wait.
    pub(crate) fn drain_sitemaps(&mut self) -> Vec<Entry> {
        let sitemaps = self.rare.as_mut().map(|rare| std::mem::take(&mut rare.sitemaps));
        sitemaps.unwrap_or_default().into()
    }

    /// Returns how many pages are postponed.
    pub(crate) fn postponed_len(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.postponed.len())
    }

    /// Says whether nothing of it waits for a turn.
    pub(crate) fn is_empty(&self) -> bool {
        let is_empty = |rare: &Rare| rare.sitemaps.is_empty() && rare.retries.is_empty();
        self.pages.is_empty() && self.rare.as_deref().is_none_or(is_empty)
    }

    /// Says whether something is known of it that would be lost with it, but for its robots.txt.
    pub(crate) fn must_be_kept(&self) -> bool {
        let is_over = |rare: &Rare| rare.postponed.is_empty() && rare.health.is_over();
        self.is_given_up || self.is_asking || !self.rare.as_deref().is_none_or(is_over)
    }

    /// Returns since when it is away, and how it was found out.
    pub(crate) fn outage(&self) -> Option<&Outage> {
        self.rare.as_ref()?.health.outage.as_ref()
    }

    /// Returns what went wrong of late, if anything did.
    pub(crate) fn health(&mut self) -> Option<&mut OriginHealth> {
        self.rare.as_mut().map(|rare| &mut rare.health)
    }

    /// Returns what went wrong of late, to add to it.
    pub(crate) fn health_mut(&mut self) -> &mut OriginHealth {
        &mut self.rare().health
    }

    /// Says whether it was away before.
    pub(crate) fn was_away(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.health.was_away())
    }

    /// Returns how often in a row it has asked for less traffic.
    pub(crate) fn throttles(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.health.throttles)
    }

    /// Sets when its robots.txt is to be asked for.
    pub(crate) fn set_robots_due(&mut self, due: Time) {
        self.rare().robots_due = due;
    }

    /// Returns when its host looks at it next; the epoch for no time.
    pub(crate) fn timer(&self) -> Time {
        self.rare.as_ref().map_or(Time::EPOCH, |rare| rare.timer)
    }

    /// Sets when its host looks at it next.
    pub(crate) fn set_timer(&mut self, time: Time) {
        if time > Time::EPOCH || self.rare.is_some() {
            self.rare().timer = time;
        }
    }

    pub(crate) fn knows_robots(&self, now: Time) -> bool {
        self.known
            .as_ref()
            .is_some_and(|known| known.until > now || self.rules_are_fresh)
    }

    pub(crate) fn is_away(&self) -> bool {
        self.outage().is_some()
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_read_back_as_it_was_written() {
        for text in [
            "http://a.example",
            "https://a.example",
            "http://a.example:443",
            "https://a.example.:8443",
            "http://[::1]",
            "https://[::1]:80",
            "http://127.0.0.1:65535",
        ] {
            let host = HostKey::of(&Url::parse(text).unwrap()).unwrap();
            assert_eq!(OriginId::of(text).text(&host), text);
            assert_eq!(OriginId::of(&format!("{text}/path?q#f")).text(&host), text);
        }
    }
}
