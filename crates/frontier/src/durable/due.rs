//! Pages whose next visit is due.
//!
//! As a page ends, its row gets the time of its next visit. When that has come, its value is asked once more, as thresholds move; then it is queued, if its
//! host has a turn for a revisit soon, or else it gets a later time. What is queued again goes into the call, and how far the plan was read:
//! the state reads no row, and no number of the policy.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

use super::again::{AT_ONCE, QueuedAgain, again};
use super::planning::{BUDGET_AHEAD, FreshnessReport, LANE};
use super::{Durable, pages};
use crate::error::FrontierError;
use crate::freshness::LONGEST_REST;
use crate::link::Link;
use crate::scope::Refusal;
use crate::settlement::Verdict;
use crate::state::{Again, Call, Links, Place, State};
use crate::store::PageOrder;
use crate::stored_page::StoredPage;
use crate::time::Time;

/// How often it is looked for sitemaps that are read again. What is refused is offered again as often.
const SITEMAPS_EVERY: Duration = Duration::from_secs(60);

/// What is read of the plan at once.
#[derive(Default)]
struct Due {
    pages: Vec<(u64, StoredPage)>,
    links: Vec<Link>,
    /// Pages that are visited later.
    put_off: Vec<(u64, StoredPage, Time)>,
    place: Place,
    next: Option<Time>,
}

impl Durable {
    pub(crate) fn freshness(&self, now: Time) -> Option<FreshnessReport> {
        self.planner.as_ref().map(|planner| planner.report(now))
    }

    /// Queues pages whose next visit is due.
    pub(super) fn queue_due(
        &mut self,
        state: &mut State,
        up_to: usize,
        now: Time,
    ) -> Result<QueuedAgain, FrontierError> {
        // The next commit writes what was planned anew.
        let has_room = self.ended.len() < 2 * AT_ONCE;
        let Some(planner) = self.planner.as_mut().filter(|_| has_room) else {
            return Ok(QueuedAgain::default());
        };
        planner.read(&**self.store.lock(), state.pages_ended())?;
        planner.solve(state, now);
        if planner.next_sitemaps <= now {
            planner.next_sitemaps = now + SITEMAPS_EVERY;
            let sitemaps = state.sitemaps_due(now);
            if !sitemaps.is_empty() {
                self.apply(state, Call::Offer(Links::from(&*sitemaps)), now)?;
            }
        }
        let moved = self.plan_sooner(now)?;
        let before = state.pages_read();
        let unplanned = self.read_unplanned(before.by_age, before.planned_from)?;
        // What has ended since the last commit is in no row yet, and must not be passed.
        let of_ended = self.ended.values().filter_map(|(page, _)| page.next_visit).min();
        let before_these = of_ended.map(|time| Time::from_millis(time.as_millis().saturating_sub(1)));
        let until = now.min(before_these.unwrap_or(now));
        let due = self.read_planned(state, before.due, up_to, until)?;
        let mut queued = QueuedAgain {
            next: [due.next, of_ended, unplanned.next].into_iter().flatten().min(),
            passed: (due.put_off.len() + unplanned.put_off.len() + moved) as u64,
            ..QueuedAgain::default()
        };
        let mut read = before;
        (read.due, read.by_age) = (due.place, unplanned.place);
        if read == before {
            return Ok(queued);
        }
        let call = Call::QueueAgain {
            pages: Links::from(&*due.links),
            ends: due.pages.iter().map(|(number, page)| (*number, page.end)).collect(),
            why: Again::Revisit,
            read,
        };
        let verdicts = self.apply(state, call, now)?.verdicts;
        for (number, page, later) in due.put_off.into_iter().chain(unplanned.put_off) {
            // The plan was read up to now.
            self.put_off(number, page, later.max(now + Duration::from_millis(1)));
        }
        for (verdict, (number, page)) in verdicts.into_iter().zip(due.pages) {
            let Verdict::Refused(why) = verdict else {
                queued.pages.push(page);
                continue;
            };
            queued.refused += 1;
            let rest = match why {
                Refusal::QueueFull | Refusal::TooManyHosts => LANE,
                _ => LONGEST_REST,
            };
            self.put_off(number, page, now + rest);
        }
        Ok(queued)
    }

    /// Keeps a page that waits already, for another reason, from being due meanwhile: its end plans it anew.
    pub(super) fn waits_again(&mut self, number: u64, page: &StoredPage) {
        if self.planner.is_some() {
            let row = || (page.clone(), Some(page.clone()));
            self.ended.entry(number).or_insert_with(row).0.next_visit = None;
        }
    }

    fn put_off(&mut self, number: u64, page: StoredPage, later: Time) {
        let planned = page.clone().planned_for(later);
        self.ended.entry(number).or_insert((planned, Some(page)));
        self.has_unsaved = true;
    }

    /// Plans pages anew whose next visit is much later than it would be planned now. Returns how many were read.
    fn plan_sooner(&mut self, now: Time) -> Result<usize, FrontierError> {
        // The thresholds of a part of the pages are others.
        let Some(planner) = self.planner.as_mut().filter(|planner| planner.is_complete) else {
            return Ok(0);
        };
        let Some(place) = planner.late.take() else { return Ok(0) };
        let mut rows = Vec::new();
        self.store.lock().pages(PageOrder::Due, place, &mut |number, page| {
            let page = pages::decode(number, &page)?;
            if rows.len() >= AT_ONCE {
                planner.late = page.next_visit.map(|next| (next.as_millis(), number));
                return Ok(ControlFlow::Break(()));
            }
            rows.push((number, page));
            Ok(ControlFlow::Continue(()))
        })?;
        let read = rows.len();
        let sooner = rows.into_iter().filter_map(|(number, page)| {
            let planned = planner.next_visit(number, &again(&page)?.url.host(), &page);
            // Thresholds move a little all the time.
            let is_much = page.next_visit?.since(planned) > planned.since(page.time) / 8;
            is_much.then_some((number, page, planned))
        });
        for (number, page, planned) in sooner.collect::<Vec<_>>() {
            self.put_off(number, page, planned.max(now + Duration::from_millis(1)));
        }
        Ok(read)
    }

    /// Reads pages that have ended while none were planned.
    fn read_unplanned(&mut self, place: Place, end: u64) -> Result<Due, FrontierError> {
        let mut due = Due {
            place,
            ..Due::default()
        };
        let Some(planner) = self.planner.as_mut().filter(|_| place.0 < end) else {
            return Ok(due);
        };
        let mut visit = |number, page: StoredPage| {
            if due.put_off.len() >= AT_ONCE {
                due.next = Some(Time::EPOCH);
            } else if page.saved_in >= end {
                due.place = (end, 0);
            } else {
                due.place = (page.saved_in, number + 1);
                if let Some(link) = again(&page).filter(|_| page.next_visit.is_none()) {
                    let next = planner.next_visit(number, &link.url.host(), &page);
                    due.put_off.push((number, page, next));
                }
                return ControlFlow::Continue(());
            }
            ControlFlow::Break(())
        };
        self.store.lock().pages(PageOrder::Saved, place, &mut |number, page| {
            Ok(visit(number, pages::decode(number, &page)?))
        })?;
        if due.next.is_none() {
            due.place = (end, 0);
        }
        Ok(due)
    }

    /// Reads pages whose next visit is due, from the place on that the last call came to.
    fn read_planned(&mut self, state: &State, place: Place, up_to: usize, now: Time) -> Result<Due, FrontierError> {
        let mut due = Due {
            place,
            ..Due::default()
        };
        let Some(planner) = &mut self.planner else {
            return Ok(due);
        };
        let (room, by_budget) = (state.queues().room_for_retries(), planner.most_at_once(now));
        if by_budget == 0 {
            due.next = Some(planner.next_of_all);
            return Ok(due);
        }
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let (most, mut rows) = (up_to.min(room).min(by_budget), Vec::new());
        // Hosts may lie in the store, too: none is looked at meanwhile.
        self.store.lock().pages(PageOrder::Due, place, &mut |number, page| {
            let page = pages::decode(number, &page)?;
            let time = page.next_visit.unwrap_or_default();
            if time > now || rows.len() >= most {
                due.next = Some(time);
                return Ok(ControlFlow::Break(()));
            }
            rows.push((number, time, page));
            Ok(ControlFlow::Continue(()))
        })?;
        let mut slots = HashMap::new();
        for (number, time, page) in rows {
            let budget = planner.next_of_all;
            if budget > now + BUDGET_AHEAD {
                due.next = Some(budget);
                break;
            }
            due.place = (time.as_millis(), number + 1);
            // Its row is older than what is known of it.
            let link = again(&page).filter(|_| !self.ended.contains_key(&number));
            let Some(link) = link else { continue };
            let host = link.url.host();
            if state.queues().gave_up(&host, link.url.url().as_str())
                && let Err(later) = planner.ask_again(&host, now)
            {
                due.put_off.push((number, page, later));
                continue;
            }
            let slot = slots.entry(host.clone());
            let slot = slot.or_insert_with(|| state.queues().next_revisit(&host).unwrap_or_default());
            if let Err(later) = planner.visit_now(number, &host, &page, slot, now) {
                due.put_off.push((number, page, later));
            } else {
                due.links.push(link);
                due.pages.push((number, page));
            }
        }
        Ok(due)
    }
}
