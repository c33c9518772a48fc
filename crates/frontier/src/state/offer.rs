//! Offering links: the scope, then the seen-set in front of the queues.

use std::time::Duration;

use sieve::RefusedBy;

use super::State;
use super::exchange::Sending;
use crate::entry::Entry;
use crate::hosts::Arrival;
use crate::link::Link;
use crate::scope::Refusal;
use crate::settlement::{OtherLinks, Settlement, Verdict};
use crate::time::Time;

impl State {
    /// Checks the scope, then pushes the links that are left into the sieve, all links of a page in one batch.
    /// `from` is the page that they were found on, if any.
    pub(super) fn offer_links(
        &mut self,
        links: &[Link],
        is_postponed: bool,
        from: Option<&Entry>,
        sending: Sending,
        now: Time,
    ) -> Vec<Verdict> {
        self.sieve.set_now(Duration::from_millis(now.as_millis()));
        let mut verdicts = Vec::with_capacity(links.len());
        let mut admitted = Vec::with_capacity(links.len());
        for (at, link) in links.iter().enumerate() {
            let judged = self.scope.judge(link).map(|()| self.owner_elsewhere(link));
            verdicts.push(match judged {
                Ok(Some(owner)) => self.send(link, owner, sending),
                Ok(None) if link.sitemap_of.is_some() => self.offer_sitemap(link, now),
                Ok(None) if self.tables.sitemaps.has_read(link.url.key()) => Verdict::Seen,
                Ok(None) => {
                    admitted.push(at);
                    // The sieve's answer overwrites it.
                    Verdict::Seen
                }
                Err(refusal) => Verdict::Refused(refusal),
            });
        }
        let mut places = admitted.iter();
        let arrivals = admitted.iter().filter_map(|&at| links.get(at));
        let arrivals = arrivals.map(|link| Arrival {
            link,
            at: now,
            is_postponed,
            is_late: from.is_some_and(|page| page.postponed),
        });
        self.sieve.try_push_all(arrivals, |outcome| {
            let Some(verdict) = places.next().and_then(|&at| verdicts.get_mut(at)) else {
                return;
            };
            *verdict = match outcome {
                Ok(true) => Verdict::Queued,
                Ok(false) => Verdict::Seen,
                Err(refused) => Verdict::Refused(match refused.by {
                    RefusedBy::Queue(refusal) => refusal,
                    RefusedBy::Saturation => Refusal::Saturated,
                }),
            };
        });
        self.seen_over_refused(links, &mut verdicts);
        for (link, verdict) in links.iter().zip(&verdicts) {
            self.count_link(link, *verdict);
        }
        verdicts
    }

    pub(super) fn count_link(&mut self, link: &Link, verdict: Verdict) {
        let counts = match link.sitemap_of {
            Some(_) => &mut self.tables.sitemaps.counts,
            None => &mut self.tables.links,
        };
        counts.count(verdict);
    }

    pub(super) fn count_omitted(&mut self, settlement: &Settlement) {
        self.tables.links.count_others(None, settlement.links_known);
        self.count_others(&settlement.other_links);
    }

    pub(super) fn count_others(&mut self, others: &[OtherLinks]) {
        for one in others {
            let counts = match one.are_sitemaps {
                true => &mut self.tables.sitemaps.counts,
                false => &mut self.tables.links,
            };
            counts.count_others(one.refused, one.count);
        }
    }

    /// Queues a sitemap, unless it was seen. Sitemaps have a seen-set of their own, which is exact.
    fn offer_sitemap(&mut self, link: &Link, now: Time) -> Verdict {
        if let Err(refusal) = self.sieve.queue().admit(link, false) {
            return Verdict::Refused(refusal);
        }
        let most = self.sieve.queue().config().limits.max_sitemaps;
        let again_after = self.freshness.sitemaps_after();
        let verdict = self.tables.sitemaps.insert(link, most, again_after, now);
        if verdict == Verdict::Queued {
            self.hosts().queue_link(link, 0, false, now);
        }
        verdict
    }

    /// Replaces the refusal of a link that was seen by [`Verdict::Seen`]: its page was or will be fetched by another link.
    fn seen_over_refused(&self, links: &[Link], verdicts: &mut [Verdict]) {
        for (link, verdict) in links.iter().zip(verdicts) {
            if matches!(verdict, Verdict::Refused(why) if !why.is_out_of_reach())
                && link.sitemap_of.is_none()
                && self.sieve.contains(link.url.key())
            {
                *verdict = Verdict::Seen;
            }
        }
    }

    /// Refuses all links that were not seen before.
    pub(super) fn refuse_new(&mut self, links: &[Link], why: Refusal) -> Vec<Verdict> {
        let judge = |link: &Link| Verdict::Refused(self.scope.judge(link).err().unwrap_or(why));
        let mut verdicts: Vec<_> = links.iter().map(judge).collect();
        self.seen_over_refused(links, &mut verdicts);
        for (link, verdict) in links.iter().zip(&verdicts) {
            self.count_link(link, *verdict);
        }
        verdicts
    }

    /// Queues the target of a redirect past the seen-set. Another spelling of the page goes on in its place.
    pub(super) fn offer_past_seen(&mut self, link: &Link, from: &Entry, now: Time) -> Verdict {
        let elsewhere = self.owner_elsewhere(link);
        let admitted = self
            .scope
            .judge(link)
            .and_then(|()| self.sieve.queue().admit(link, false));
        let verdict = match (admitted, elsewhere) {
            (Ok(()), Some(owner)) => self.send(link, owner, Sending::All),
            (Ok(()), None) => {
                let page = if link.url.key() == from.key() { from.page } else { 0 };
                self.hosts().queue_link(link, page, from.postponed, now);
                Verdict::Queued
            }
            (Err(refusal), _) => Verdict::Refused(refusal),
        };
        self.count_link(link, verdict);
        verdict
    }
}
