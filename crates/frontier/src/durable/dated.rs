//! Pages whose `lastmod` in a sitemap or feed is newer than their last fetch are due at once, as far as the dates of their host were right before.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use super::{Durable, pages};
use crate::error::FrontierError;
use crate::link::Link;
use crate::time::Time;
use crate::url::HostKey;

/// The most pages of one sitemap. The others are found when it is read next.
const AT_ONCE: usize = 1000;
/// A change that is older was seen by an earlier reading, or a visit.
const RECENT: Duration = Duration::from_secs(2 * 24 * 3600);
/// So many more dates may have been wrong than right.
const FAULTS: i64 = 3;

/// Whose dates are believed. After a restart, those of all are.
#[derive(Debug, Default)]
pub(super) struct Dates {
    /// The pages that are due by their dates.
    due: HashSet<u64>,
    /// How many more dates were right than wrong.
    right: HashMap<HostKey, i64>,
}

impl Dates {
    pub(super) fn make_due(&self, number: u64) -> bool {
        self.due.contains(&number)
    }

    /// Learns whether a page that was due by its date has changed.
    pub(super) fn visited(&mut self, number: u64, host: &HostKey, has_changed: bool) {
        if self.due.remove(&number) {
            let right = self.right.entry(host.clone()).or_default();
            *right = (*right + if has_changed { 1 } else { -1 }).clamp(-FAULTS, FAULTS);
        }
    }

    fn are_believed(&self, host: &HostKey) -> bool {
        self.right.get(host).is_none_or(|right| *right > -FAULTS)
    }
}

impl Durable {
    /// Plans pages for now that have changed by the dates of links to them.
    pub(super) fn note_dates(&mut self, links: &[Link], now: Time) -> Result<(), FrontierError> {
        let Some(planner) = &mut self.planner else {
            return Ok(());
        };
        let dated = links.iter().filter_map(|link| {
            let date = link.lastmod.filter(|date| *date + RECENT > now && *date < now)?;
            Some((link.url.key(), date)).filter(|_| planner.dates.are_believed(&link.url.host()))
        });
        let dated: BTreeMap<_, _> = dated.take(AT_ONCE).collect();
        if dated.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = dated.keys().copied().collect();
        let found = pages::find(&**self.store.lock(), &keys)?;
        for (number, page) in found {
            let (last, due) = (page.visits.last.unwrap_or(now), planner.earliest(&page, now));
            let is_later = page.next_visit.is_some_and(|next| next > due) && !self.ended.contains_key(&number);
            if is_later && dated[page.key()] > last {
                planner.dates.due.insert(number);
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
            dates.due.insert(number);
            dates.visited(number, &hosts[0], has_changed);
            // It was not due by its date.
            dates.visited(number, &hosts[0], has_changed);
            hosts.each_ref().map(|host| dates.are_believed(host))
        };
        assert_eq!(visited(1, true), [true, true]);
        assert_eq!([2, 3, 4].map(|number| visited(number, false)), [[true, true]; 3]);
        assert_eq!(visited(5, false), [false, true]);
        assert_eq!(visited(6, true), [true, true], "what was promised before");
    }
}
