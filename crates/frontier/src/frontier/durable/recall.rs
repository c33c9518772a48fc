//! Recall: links that the seen-set took for seen are looked up later, and those that were new are queued then.

use std::time::Duration;

use super::super::{Frontier, FrontierError};
use super::Durable;
use super::calls::{Call, SpooledLink};
use super::keys::Recalled;
use crate::hosts::Arrival;
use crate::link::Link;
use crate::settlement::Verdict;
use crate::time::Time;

impl Frontier {
    /// Keeps those of the links that were taken for seen, if they may be new.
    pub(in super::super) fn spool_seen(
        &self,
        links: &[Link],
        verdicts: &[Verdict],
        admitted: &[usize],
        is_postponed: bool,
    ) {
        if self.sieve.filter().recalls() {
            let seen = admitted.iter().filter(|at| verdicts.get(**at) == Some(&Verdict::Seen));
            seen.filter_map(|at| links.get(*at))
                .for_each(|link| self.spool(link, is_postponed));
        }
    }

    fn spool(&self, link: &Link, is_postponed: bool) {
        let seen = self.sieve.filter();
        let Some(keys) = seen.keys() else { return };
        let digest = sieve::Filter::digest(seen, link.url.key().as_bytes());
        keys.lock()
            .spool(digest.into(), || SpooledLink::bytes_of(link, is_postponed));
    }

    /// Looks up some of the links that wait for it, if they are many, and queues those that are new.
    pub(super) fn recall_some(&mut self, durable: &mut Durable, now: Time) -> Result<(), FrontierError> {
        let seen = self.sieve.filter();
        let Some(keys) = seen.keys().filter(|_| seen.recalls()).cloned() else {
            return Ok(());
        };
        let found = keys.lock().recall_some()?;
        if let Some(call) = self.recall(&found, now)? {
            durable.add(&call, true)?;
        }
        // A host that could not be read has not taken its link.
        durable.check_read(self.sieve.filter())
    }

    /// Looks up all of them, if nothing else is left to do.
    pub(in super::super) fn recall_at_end(&mut self, now: Time) -> Result<(), FrontierError> {
        let seen = self.sieve.filter();
        let Some(keys) = seen
            .keys()
            .filter(|_| seen.recalls() && self.has_nothing_left())
            .cloned()
        else {
            return Ok(());
        };
        let found = keys.lock().recall_all()?;
        let Some(call) = self.recall(&found, now)? else {
            return Ok(());
        };
        match &mut self.durable {
            Some(durable) => durable.add(&call, true),
            None => Ok(()),
        }
    }

    /// Queues links, and returns the call for the journal, if there are any.
    fn recall<'f>(&mut self, found: &'f [Recalled], now: Time) -> Result<Option<Call<'f>>, FrontierError> {
        if found.is_empty() {
            return Ok(None);
        }
        let links = found.iter().map(|recalled| SpooledLink::of_bytes(&recalled.bytes));
        let links: Vec<_> = links
            .collect::<Result<_, _>>()
            .map_err(|error| FrontierError::not_saved(&error))?;
        let refused = self.recall_links(&links, now);
        let refused = refused.ok_or_else(|| FrontierError::not_saved(&"a link of the spool cannot be read"))?;
        if let Some(keys) = self.sieve.filter().keys() {
            let mut keys = keys.lock();
            let refused = refused.into_iter().filter_map(|at| found.get(at));
            refused.for_each(|recalled| keys.recalled_was_refused(recalled));
        }
        Ok(Some(Call::Recall { links, now }))
    }

    /// Queues links that were taken for seen, and are new. Returns the places of those that are refused; `None` if a link cannot be read.
    pub(super) fn recall_links(&mut self, links: &[SpooledLink<'_>], now: Time) -> Option<Vec<usize>> {
        self.latest = self.latest.max(now);
        self.sieve.set_now(Duration::from_millis(now.as_millis()));
        let keys = self.sieve.filter().keys().cloned()?;
        let (mut queued, mut refused) = (Vec::new(), Vec::new());
        for (at, stored) in links.iter().enumerate() {
            let (link, is_postponed) = stored.read()?;
            let digest = sieve::Filter::digest(self.sieve.filter(), link.url.key().as_bytes());
            let arrival = Arrival {
                link: &link,
                at: now,
                is_postponed,
            };
            let verdict = match self.scope.judge(&link).and_then(|()| self.sieve.queue().admit(&link)) {
                Ok(()) if self.sieve.requeue(arrival).is_ok() => {
                    keys.lock().add(digest.into());
                    queued.push(digest);
                    Verdict::Queued
                }
                Ok(()) => continue,
                Err(refusal) => {
                    refused.push(at);
                    Verdict::Refused(refusal)
                }
            };
            self.links.recalled += 1;
            // It was counted as seen.
            self.links.seen = self.links.seen.saturating_sub(1);
            self.count_link(&link, verdict);
        }
        // Layers may have become one since the filter took them for seen: it has none of their bits.
        if !queued.is_empty() && self.sieve.filter().growing().is_some() {
            self.sieve
                .reshape_filter(|seen, _| queued.iter().for_each(|digest| seen.mark(*digest)));
        }
        Some(refused)
    }

    /// Returns how many links wait to be looked up; `None` if none ever does.
    pub(in super::super) fn to_recall(&self) -> Option<u64> {
        let seen = self.sieve.filter();
        let keys = seen.keys().filter(|_| seen.recalls())?;
        Some(keys.lock().spooled() as u64)
    }
}
