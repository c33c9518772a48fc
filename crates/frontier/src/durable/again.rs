//! Pages that are fetched again: their rows are read, and they are queued past the seen-set.
//!
//! Pages are read in the order in which their last ends were saved. So one [`Place`] in it is enough to know which were queued again: what lies
//! before it was, and what has ended since lies behind it. There are two: one for the pages that come of age, and one for those without an
//! answer, which are read by an index of their own. What lies before one of them is left out by the other. Both belong to the state, and move
//! in the same call that queues the pages. Those whose next visit is due are read in another order: `due.rs`.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::{Durable, pages};
use crate::class::Class;
use crate::error::FrontierError;
use crate::lease::NotFetched;
use crate::link::{Link, PreviousFetch};
use crate::scope::Refusal;
use crate::settlement::Verdict;
use crate::state::{Again, Call, Links, Place, State};
use crate::store::PageOrder;
use crate::stored_page::{OwnPlan, PageEnd, StoredPage};
use crate::time::Time;
use crate::url::CanonicalUrl;

/// Pages that are queued by one call of the journal.
pub(super) const AT_ONCE: usize = 1024;

/// Pages that one call reads in vain, so that the caller gets on.
pub(super) const MOST_PASSED: u64 = 4096;

/// Which pages are fetched again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refetch {
    /// Those whose last fetch is older than this age: they were fetched, redirected, rejected or failed, or dropped because their origin
    /// was given up or its robots.txt could not be fetched. It is asked again.
    OlderThan(Duration),
    /// Those that got no answer: they failed in all attempts without one, or were dropped because their origin was given up or its
    /// robots.txt could not be fetched. Pages that a limit or a rule refused are not among them.
    ///
    /// Such a retry begins when the frontier is [drained](crate::Report::is_drained) and all is [persisted](crate::Frontier::persist),
    /// as at the begin of a run over a directory whose crawl has ended: all origins that were given up are asked again as ones that were
    /// never away. Otherwise the call continues the retry that has begun, if any, also of an earlier run. Each page is queued once in a
    /// retry, and fewer than `up_to` at once if half of the [queue](crate::LimitConfig::max_queued) is taken.
    Unanswered,
    /// Those whose next visit is due, if pages are [kept fresh](crate::FreshnessConfig::keeps_fresh), and only as many as hosts and budget allow
    /// now: the others are planned anew.
    Due,
}

/// What a call of [`Frontier::queue_again`](crate::Frontier::queue_again) did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QueuedAgain {
    /// When the next page comes of age, or the present time if there are more pages; `None` if no page is left that will.
    pub next: Option<Time>,
    /// The pages that were queued again, as they were. Those that had failed, or were dropped, do not count as such any longer.
    pub pages: Vec<StoredPage>,
    /// Pages that were not: they are out of the scope now, or their host has no room, or their origin was given up once more.
    pub refused: u64,
    /// Pages that never are: a rule or a limit kept them from being asked. With [`Refetch::Due`], those that were planned anew.
    pub passed: u64,
}

impl QueuedAgain {
    /// Returns whether pages were read at all: queued, refused or passed.
    pub fn has_moved(&self) -> bool {
        !self.pages.is_empty() || self.refused + self.passed > 0
    }
}

/// The pages that are due, and what queues them.
#[derive(Default)]
struct Due {
    pages: Vec<(u64, StoredPage)>,
    links: Vec<Link>,
    /// Pages that were read, and are never queued.
    passed: u64,
    /// The next page to read.
    place: Place,
    /// The time of the next page that was not read, if it is too young; the time of the call if there are more pages.
    next: Option<Time>,
}

impl Durable {
    /// Queues pages again. Cost: it reads the pages behind those of the last call.
    pub(crate) fn queue_again(
        &mut self,
        state: &mut State,
        which: Refetch,
        up_to: usize,
        now: Time,
    ) -> Result<QueuedAgain, FrontierError> {
        if which == Refetch::Due {
            return self.queue_due(state, up_to, now);
        }
        let is_retry = which == Refetch::Unanswered;
        if is_retry {
            self.begin_retry(state, now)?;
        }
        let before = state.pages_read();
        if is_retry && !before.is_retrying() {
            return Ok(QueuedAgain::default());
        }
        let due = self.read_due(state, which, up_to, now)?;
        let mut queued = QueuedAgain {
            next: due.next,
            passed: due.passed,
            ..QueuedAgain::default()
        };
        let mut read = before;
        let place = if is_retry {
            &mut read.unanswered
        } else {
            &mut read.by_age
        };
        *place = due.place;
        if read == before {
            return Ok(queued);
        }
        let call = Call::QueueAgain {
            pages: Links::from(&*due.links),
            ends: due.pages.iter().map(|(number, page)| (*number, page.end)).collect(),
            why: if is_retry { Again::Retry } else { Again::Wanted },
            read,
        };
        let verdicts = self.apply(state, call, now)?.verdicts;
        for (verdict, (number, page)) in verdicts.into_iter().zip(due.pages) {
            let Verdict::Refused(why) = verdict else {
                self.waits_again(number, &page);
                queued.pages.push(page);
                continue;
            };
            queued.refused += 1;
            // It may be queued later, and counts as if it had ended now.
            if matches!(why, Refusal::QueueFull | Refusal::TooManyHosts | Refusal::HostDown) {
                let time = state.latest();
                let again = StoredPage { time, ..page.clone() };
                self.ended.insert(number, (again, Some(page)));
            }
        }
        Ok(queued)
    }

    /// Queues pages again that were dropped by order. All of it is one row of the journal: whole, or not at all.
    pub(crate) fn queue_dropped(
        &mut self,
        state: &mut State,
        is_meant: &dyn Fn(&CanonicalUrl) -> bool,
        now: Time,
    ) -> Result<(u64, u64), FrontierError> {
        if !state.report().not_fetched.contains_key(&NotFetched::ByOrder) {
            return Ok((0, 0));
        }
        let waiting = waiting_pages(state)?;
        let dropped = |number: u64, page: &StoredPage| {
            let is_dropped = page.end == PageEnd::NotFetched(NotFetched::ByOrder) && !waiting.contains(&number);
            let link = link_of(page).filter(|link| is_dropped && is_meant(&link.url))?;
            Some((number, page.end, link))
        };
        // These have no row yet, or an older one.
        let ended = self.ended.iter();
        let mut pages: Vec<_> = ended.filter_map(|(number, (page, _))| dropped(*number, page)).collect();
        let (mut place, mut queued, mut refused) = ((0, 0), 0, 0);
        loop {
            for verdict in self.queue_pages(state, std::mem::take(&mut pages), now)? {
                match verdict {
                    Verdict::Queued => queued += 1,
                    Verdict::Refused(Refusal::ByOrder) => {}
                    _ => refused += 1,
                }
            }
            let from = place;
            self.store.lock().pages(PageOrder::Failed, from, &mut |number, page| {
                let page = pages::decode(number, &page)?;
                if page.end.is_unanswered() || pages.len() >= AT_ONCE {
                    return Ok(ControlFlow::Break(()));
                }
                place = (page.saved_in, number + 1);
                if !self.ended.contains_key(&number) {
                    pages.extend(dropped(number, &page));
                }
                Ok(ControlFlow::Continue(()))
            })?;
            if pages.is_empty() {
                return Ok((queued, refused));
            }
        }
    }

    /// Queues these pages again, if they have ended and do not wait.
    pub(crate) fn queue_ended(
        &mut self,
        state: &mut State,
        urls: &[CanonicalUrl],
        now: Time,
    ) -> Result<Vec<bool>, FrontierError> {
        if urls.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<_> = urls.iter().map(CanonicalUrl::key).collect();
        let waiting = waiting_pages(state)?;
        let mut rows = pages::find(&**self.store.lock(), &keys)?;
        rows.retain(|number, page| !waiting.contains(number) && link_of(page).is_some());
        let pages = rows
            .iter()
            .filter_map(|(number, page)| Some((*number, page.end, link_of(page)?)));
        let pages: Vec<_> = pages.collect();
        let keys: Vec<_> = pages.iter().map(|(.., link)| link.url.key().to_owned()).collect();
        let verdicts = self.queue_pages(state, pages, now)?;
        for ((number, page), verdict) in rows.iter().zip(&verdicts) {
            if *verdict == Verdict::Queued {
                self.waits_again(*number, page);
            }
        }
        let queued = keys
            .iter()
            .zip(verdicts)
            .filter(|(_, verdict)| *verdict == Verdict::Queued);
        let queued: HashSet<_> = queued.map(|(key, _)| key.as_str()).collect();
        Ok(urls.iter().map(|url| queued.contains(url.key())).collect())
    }

    /// Plans the next visits of a page that has ended. Returns false if none has, or no visits are planned.
    pub(crate) fn plan(
        &mut self,
        state: &State,
        url: &CanonicalUrl,
        plan: OwnPlan,
        now: Time,
    ) -> Result<bool, FrontierError> {
        let Some(planner) = &self.planner else { return Ok(false) };
        let mut ended = self.ended.iter();
        let ended = ended.find(|(_, (page, _))| page.key() == url.key());
        let found = match ended {
            Some((number, (page, replaced))) => Some((*number, page.clone(), replaced.clone())),
            None => {
                let mut rows = pages::find(&**self.store.lock(), &[url.key()])?;
                rows.pop_first()
                    .map(|(number, page)| (number, page.clone(), Some(page)))
            }
        };
        let Some((number, mut page, replaced)) = found.filter(|(_, page, _)| again(page).is_some()) else {
            return Ok(false);
        };
        // As its row has it.
        page.own_plan = Some(OwnPlan::of_number(plan.to_number()));
        // One that waits is planned as it ends.
        if !waiting_pages(state)?.contains(&number) {
            let next = planner.next_visit(number, &url.host(), &page);
            page.next_visit = Some(next.max(now + Duration::from_millis(1)));
        }
        self.ended.insert(number, (page, replaced));
        self.has_unsaved = true;
        Ok(true)
    }

    fn queue_pages(
        &mut self,
        state: &mut State,
        pages: Vec<(u64, PageEnd, Link)>,
        now: Time,
    ) -> Result<Vec<Verdict>, FrontierError> {
        if pages.is_empty() {
            return Ok(Vec::new());
        }
        let ends = pages.iter().map(|(number, end, _)| (*number, *end)).collect();
        let links: Vec<_> = pages.into_iter().map(|(.., link)| link).collect();
        let call = Call::QueueAgain {
            pages: Links::from(&*links),
            ends,
            why: Again::Wanted,
            read: state.pages_read(),
        };
        Ok(self.apply(state, call, now)?.verdicts)
    }

    /// Begins a retry if there is none, nothing else is left, and something may be retried.
    fn begin_retry(&mut self, state: &mut State, now: Time) -> Result<(), FrontierError> {
        let read = state.pages_read();
        if read.is_retrying() || !state.is_drained() || !self.ended.is_empty() {
            return Ok(());
        }
        // An origin may be given up without a page: for a sitemap, or a robots.txt.
        if state.has_failed_pages() || state.queues().given_up > 0 {
            self.apply(state, Call::BeginRetry { end: self.next_row }, now)?;
        }
        Ok(())
    }

    /// Reads pages from the place on that the last call came to. It ends when as many are due as may be queued.
    fn read_due(&self, state: &State, which: Refetch, up_to: usize, now: Time) -> Result<Due, FrontierError> {
        let (read, queues) = (state.pages_read(), state.queues());
        let (order, place, other, room) = match which {
            Refetch::OlderThan(_) => (PageOrder::Saved, read.by_age, read.unanswered, queues.room()),
            Refetch::Unanswered | Refetch::Due => (
                PageOrder::Unanswered,
                read.unanswered,
                read.by_age,
                queues.room_for_retries(),
            ),
        };
        let most = up_to.min(usize::try_from(room).unwrap_or(usize::MAX));
        let mut due = Due {
            place,
            ..Due::default()
        };
        self.store.lock().pages(order, place, &mut |number, page| {
            let page = pages::decode(number, &page)?;
            let here = (page.saved_in, number);
            let time = match which {
                Refetch::OlderThan(age) => page.time + age,
                Refetch::Unanswered if here.0 >= read.retry_end => return Ok(ControlFlow::Break(())),
                Refetch::Unanswered | Refetch::Due => now,
            };
            // What has no answer and lies before the other place was queued there.
            let link = again(&page).filter(|_| here >= other || !page.end.is_unanswered());
            let is_full = link.is_some() && due.pages.len() >= most;
            if time > now || is_full || due.passed == MOST_PASSED {
                due.next = Some(time.max(now));
                return Ok(ControlFlow::Break(()));
            }
            due.place = (here.0, number + 1);
            due.passed += u64::from(link.is_none());
            if let Some(link) = link {
                due.links.push(link);
                due.pages.push((number, page));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if which == Refetch::Unanswered && due.next.is_none() {
            due.place = (read.retry_end, 0);
        }
        Ok(due)
    }
}

/// The numbers of pages that have ended, and wait or are in flight again. Cost: a look at each entry.
fn waiting_pages(state: &State) -> Result<HashSet<u64>, FrontierError> {
    let mut waiting: HashSet<u64> = state.in_flight().map(|entry| entry.page).collect();
    state.visit_waiting(&mut |entry| {
        waiting.insert(entry.page);
        ControlFlow::Continue(())
    })?;
    Ok(waiting)
}

/// The link to fetch a page again; `None` if no other fetch would end otherwise.
pub(super) fn again(page: &StoredPage) -> Option<Link> {
    let is_final = matches!(page.end, PageEnd::NotFetched(_)) && !page.end.is_unanswered();
    link_of(page).filter(|_| !is_final)
}

fn link_of(page: &StoredPage) -> Option<Link> {
    let previous = page.was_fetched().then(|| {
        Arc::new(PreviousFetch {
            validators: page.answer.validators.clone(),
            content: page.answer.fingerprint.content,
            is_of_this_crawl: true,
            ..PreviousFetch::default()
        })
    });
    let url = CanonicalUrl::new(Url::parse(&page.url).ok()?, page.key.clone());
    Some(Link {
        referrer: page.referrer.clone(),
        depth: page.depth,
        embedded: page.embedded,
        data: page.data.clone(),
        class: (page.class != Class::default()).then_some(page.class),
        seed: page.referrer.is_none() && page.depth == 0,
        previous,
        ..Link::seed(url)
    })
}
