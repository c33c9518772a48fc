//! Pages whose `lastmod` in a sitemap or feed is newer than their last fetch are due at once, as far as the dates of their host were right before.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::{Durable, pages};
use crate::error::FrontierError;
use crate::link::Link;
use crate::settlement::Verdict;
use crate::time::Time;
use crate::url::HostKey;

/// The most pages of one sitemap. The others are looked for when it is read next.
const AT_ONCE: usize = 1000;
/// A change that is older was seen by an earlier reading, or a visit.
const RECENT: Duration = Duration::from_secs(2 * 24 * 3600);
/// So many more dates may have been wrong than right.
const FAULTS: u32 = 3;

/// Whose dates are believed. After a restart, those of all are.
#[derive(Debug, Default)]
pub(super) struct Dates {
    /// The pages that are due by their dates, and whether they have waited for a slot of their host.
    due: HashMap<u64, bool>,
    /// How many more dates were wrong than right, if any.
    wrong: HashMap<HostKey, u32>,
}

impl Dates {
    pub(super) fn make_due(&self, number: u64) -> bool {
        self.due.contains_key(&number)
    }

    /// Whether such a page was put off, as it is now.
    pub(super) fn put_off(&mut self, number: u64) -> bool {
        self.due
            .get_mut(&number)
            .is_some_and(|was_put_off| std::mem::replace(was_put_off, true))
    }

    /// Learns whether a page of a host has changed that was due by its date; without a host, it has no answer.
    pub(super) fn ended(&mut self, number: u64, host: Option<&HostKey>, has_changed: bool) {
        let (Some(_), Some(host)) = (self.due.remove(&number), host) else {
            return;
        };
        let before = self.wrong.remove(host).unwrap_or_default();
        let wrong = match has_changed {
            true => before.saturating_sub(1),
            false => (before + 1).min(FAULTS),
        };
        if wrong > 0 {
            self.wrong.insert(host.clone(), wrong);
        }
    }

    fn are_believed(&self, host: &HostKey) -> bool {
        self.wrong.get(host).is_none_or(|wrong| *wrong < FAULTS)
    }
}

impl Durable {
    /// Plans pages for now that have changed by the dates of links to them.
    pub(super) fn note_dates(&mut self, links: &[Link], verdicts: &[Verdict], now: Time) -> Result<(), FrontierError> {
        let Some(planner) = &mut self.planner else {
            return Ok(());
        };
        let dated = links.iter().zip(verdicts).filter_map(|(link, verdict)| {
            let date = link.lastmod.filter(|date| *date + RECENT > now && *date < now)?;
            let is_meant = *verdict == Verdict::Seen && planner.dates.are_believed(&link.url.host());
            is_meant.then(|| (link.url.key(), date))
        });
        let dated: Vec<_> = dated.collect();
        // Others at each reading.
        let from = (now.as_millis() / 3_600_000) as usize * AT_ONCE % dated.len().max(1);
        let dated: BTreeMap<_, _> = dated
            .iter()
            .cycle()
            .skip(from)
            .take(AT_ONCE.min(dated.len()))
            .copied()
            .collect();
        if dated.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = dated.keys().copied().collect();
        let found = pages::find(&**self.store.lock(), &keys)?;
        for (number, page) in found {
            let (last, due) = (page.visits.last.unwrap_or(now), planner.earliest(&page, now));
            let is_later = page.next_visit.is_some_and(|next| next > due) && !self.ended.contains_key(&number);
            if is_later && dated[page.key()] > last {
                planner.dates.due.insert(number, false);
                let planned = page.clone().planned_for(due);
                self.ended.insert(number, (planned, Some(page)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_believed_until_three_more_were_wrong_than_right() {
        let mut dates = Dates::default();
        let host = |name| HostKey::of(&url::Url::parse(name).unwrap()).unwrap();
        let hosts = ["http://liar.example", "http://other.example"].map(host);
        let mut visited = |number: u64, has_changed: bool| {
            dates.due.insert(number, false);
            dates.ended(number, Some(&hosts[0]), has_changed);
            // It was not due by its date.
            dates.ended(number, Some(&hosts[0]), has_changed);
            hosts.each_ref().map(|host| dates.are_believed(host))
        };
        assert_eq!(visited(1, true), [true, true]);
        assert_eq!([2, 3].map(|number| visited(number, false)), [[true, true]; 2]);
        assert_eq!(visited(5, false), [false, true]);
        assert_eq!(visited(6, true), [true, true], "what was promised before");
    }
}
