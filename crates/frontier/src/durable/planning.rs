//! When pages are visited next: the policy of [`freshness`](crate::freshness) on the rows of pages. `due.rs` reads the plan.
//!
//! The thresholds are found from a sample of the pages: those whose numbers have the least hashes.

mod report;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

pub use report::{FreshnessReport, HostFreshness};

use super::again::{AT_ONCE, again};
use super::dated::Dates;
use super::pages::{self, hash_of};
use crate::class::Class;
use crate::freshness::{
    Ages, FreshnessConfig, LONGEST_REST, Observed, Page, SHORTEST_REST, USUAL, importance, threshold,
};
use crate::state::{Place, State};
use crate::store::{Space, Store, StoreError};
use crate::stored_page::{OwnPlan, PageEnd, StoredPage};
use crate::time::Time;
use crate::url::HostKey;

/// The most pages of a sample.
const SAMPLE: usize = 65_536;
/// The fewest pages of a host in the sample from which it gets a threshold of its own.
const LEAST_OF_HOST: usize = 8;
/// Pages that are read for the sample at once, after a directory was opened.
const READ_AT_ONCE: u64 = 4096;
/// The share of what a host allows that is planned: the rest drains a backlog.
const PLANNED: f64 = 0.95;
/// What is taken to be usual counts as so many pages.
const PRIOR_PAGES: f64 = 4.0;
/// How often what is usual is learned anew at once, after a start.
const MOST_ROUNDS: u32 = 12;
/// The longest time that a revisit waits in the queue of its host, or an interval of the host, or four for a better page.
pub(super) const LANE: Duration = Duration::from_secs(2);
/// How long before the budget of all hosts allows a revisit it is queued.
pub(super) const BUDGET_AHEAD: Duration = Duration::from_secs(1);

/// Plans visits.
#[derive(Debug)]
pub(super) struct Planner {
    config: FreshnessConfig,
    ages: Ages,
    sample: BTreeMap<u64, Sampled>,
    /// Numbers with a hash up to this are in the sample.
    most_hash: u64,
    /// The pages up to this number were read.
    read: u64,
    /// The mean logarithm of the rates of pages.
    usual: f64,
    all: Plan,
    /// Of the hosts that are the bottleneck.
    hosts: HashMap<HostKey, Plan>,
    solved: Option<Time>,
    /// Whether all pages were read for the sample that have ended in earlier runs.
    pub(super) is_complete: bool,
    /// The next of the pages whose visit may be planned too late, as the settings have changed; `None` if they were read.
    pub(super) late: Option<Place>,
    /// When the budget of all hosts allows another revisit.
    pub(super) next_of_all: Time,
    pub(super) dates: Dates,
    pub(super) next_sitemaps: Time,
    /// When hosts that were given up are asked again, and how long they rest.
    given_up: HashMap<HostKey, (Time, Duration)>,
    /// Until when the revisits of hosts are promised that are the bottleneck: to other pages, and to better ones.
    crowded: [HashMap<HostKey, Time>; 2],
}

#[derive(Debug)]
struct Sampled {
    host: HostKey,
    page: Page,
    seen: Option<Observed>,
    last: Time,
}

/// The value from which a visit is worth its cost, and the longest time between two.
#[derive(Debug, Clone, Copy)]
struct Plan {
    threshold: f64,
    max_age: f64,
    /// By how much more is planned than the budget: as thresholds move, pages are put off, and never preferred.
    excess: f64,
    /// Visits since it was made.
    made: u32,
}

impl Plan {
    /// The budget that is planned: what was missing since the last time raises it within a round of all pages.
    fn planned(&mut self, budget: f64, pages: f64, elapsed: f64) -> f64 {
        let missing = budget * elapsed - f64::from(std::mem::take(&mut self.made));
        self.excess = (self.excess + missing / pages).clamp(0.0, 1.0);
        budget * (1.0 + self.excess)
    }
}

impl Planner {
    pub(super) fn new(config: FreshnessConfig, now: Time) -> Self {
        Self {
            config,
            ages: Ages::new(),
            sample: BTreeMap::new(),
            most_hash: u64::MAX,
            read: 0,
            usual: USUAL,
            all: Plan {
                threshold: 0.0,
                max_age: millis(config.max_age),
                excess: 0.0,
                made: 0,
            },
            hosts: HashMap::new(),
            solved: None,
            is_complete: false,
            late: Some(((now + config.max_age).as_millis(), 0)),
            next_of_all: Time::EPOCH,
            dates: Dates::default(),
            next_sitemaps: Time::EPOCH,
            given_up: HashMap::new(),
            crowded: Default::default(),
        }
    }

    /// Sets the next visit of a page that has ended: none, if no other fetch would end otherwise.
    pub(super) fn plan(&mut self, number: u64, page: &mut StoredPage, has_changed: bool) {
        let host = again(page).map(|link| link.url.host());
        let answered = host.as_ref().filter(|_| page.end.has_answer());
        self.dates.ended(number, answered, has_changed);
        if let Some(host) = answered {
            self.given_up.remove(host);
        }
        page.next_visit = host.as_ref().map(|host| self.next_visit(number, host, page));
        self.note(number, host, page);
    }

    /// The earliest time of a visit.
    pub(super) fn earliest(&self, page: &StoredPage, now: Time) -> Time {
        let last = page.visits.last.unwrap_or_default();
        (last + self.config.min_age).max(now + Duration::from_millis(1))
    }

    /// When a page is worth a visit.
    pub(super) fn next_visit(&self, number: u64, host: &HostKey, page: &StoredPage) -> Time {
        match page.own_plan {
            Some(OwnPlan::At(time)) if time > page.time => return time,
            Some(OwnPlan::Every(every)) => return page.time + every.max(Duration::from_millis(1)),
            _ => {}
        }
        let (begin, age) = match (page.end, page.visits.last) {
            (PageEnd::Done | PageEnd::Redirected | PageEnd::Rejected, Some(last)) => (last, self.age(host, page)),
            // The longer it fails, the longer it rests.
            (_, Some(last)) => {
                let rest = page
                    .time
                    .since(last)
                    .clamp(self.config.min_age.min(LONGEST_REST), LONGEST_REST);
                (page.time, rest)
            }
            // Those of a host that was given up come one after the other.
            (_, None) => {
                let spread = hash_of(number) % millis(LONGEST_REST - SHORTEST_REST) as u64;
                (page.time, SHORTEST_REST + Duration::from_millis(spread))
            }
        };
        (begin + age).max(page.time + Duration::from_millis(1))
    }

    /// The age at which a page that was fetched is worth a visit.
    fn age(&self, host: &HostKey, page: &StoredPage) -> Duration {
        let plan = self.hosts.get(host).unwrap_or(&self.all);
        let age = match page.answer.status {
            Some(404 | 410) => plan.max_age,
            _ => self.ages.of(self.of_row(page), plan.threshold),
        };
        let least = millis(self.config.min_age);
        Duration::from_millis(age.clamp(least, plan.max_age.max(least)) as u64)
    }

    fn of_row(&self, page: &StoredPage) -> Page {
        Page {
            importance: importance(page.class),
            rate: page.observed.unwrap_or_default().rate(self.usual),
        }
    }

    /// Learns how often pages change, and so what those do of which little is known: as that counts for the others, too, until it does not change.
    fn learn(&mut self) {
        for _ in 0..MOST_ROUNDS {
            let known = self.sample.values().filter(|one| one.seen.is_some());
            let (pages, logs) = known.fold((PRIOR_PAGES, PRIOR_PAGES * USUAL), |(pages, logs), one| {
                (pages + 1.0, logs + one.page.rate.ln())
            });
            let before = std::mem::replace(&mut self.usual, logs / pages);
            for one in self.sample.values_mut() {
                one.page.rate = one.seen.unwrap_or_default().rate(self.usual);
            }
            if (self.usual - before).abs() < 0.05 {
                break;
            }
        }
    }

    /// Puts a page into the sample, if it belongs there.
    fn note(&mut self, number: u64, host: Option<HostKey>, page: &StoredPage) {
        // One that is gone is not stale.
        let is_meant = hash_of(number) <= self.most_hash && !matches!(page.answer.status, Some(404 | 410));
        match host.zip(page.visits.last).filter(|_| is_meant) {
            Some((host, last)) => {
                let sampled = Sampled {
                    host,
                    page: self.of_row(page),
                    seen: page.observed,
                    last,
                };
                self.sample.insert(number, sampled);
            }
            None => _ = self.sample.remove(&number),
        }
        while self.sample.len() > SAMPLE {
            self.most_hash /= 2;
            self.sample.retain(|number, _| hash_of(*number) <= self.most_hash);
        }
    }

    /// Reads more pages for the sample that have ended in earlier runs.
    pub(super) fn read(&mut self, store: &dyn Store, last: u64) -> Result<(), StoreError> {
        let mut left = READ_AT_ONCE;
        while left > 0 && self.read < last {
            self.read += 1;
            if hash_of(self.read) > self.most_hash || self.sample.contains_key(&self.read) {
                continue;
            }
            left -= 1;
            if let Some(page) = store.get(Space::Page, self.read)? {
                let page = pages::decode(self.read, &page)?;
                let host = again(&page).map(|link| link.url.host());
                self.note(self.read, host, &page);
            }
        }
        Ok(())
    }

    /// Finds the thresholds anew, if it is time to.
    pub(super) fn solve(&mut self, state: &State, now: Time) {
        if self.config != state.freshness() {
            self.config = state.freshness();
            // At a start, only what no setting would plan is read.
            let from = self.solved.map_or(now + self.config.max_age, |_| now);
            (self.solved, self.late) = (None, Some((from.as_millis(), 0)));
        }
        if !self.is_complete && self.read >= state.pages_ended() {
            (self.is_complete, self.solved) = (true, None);
        }
        let (shortest, longest) = (Duration::from_secs(10), Duration::from_secs(3600));
        let every = self.config.min_age.clamp(shortest, longest);
        if self.sample.is_empty() || self.solved.is_some_and(|solved| now.since(solved) < every) {
            return;
        }
        let elapsed = self.solved.replace(now).map_or(0.0, |solved| millis(now.since(solved)));
        self.learn();
        let (mut all, mut hosts) = (self.all, std::mem::take(&mut self.hosts));
        let demand = Demand::of(self, state);
        all.max_age = demand.max_age;
        all.threshold = 0.0;
        if let Some(budget) = self.config.revisits_per_second {
            let pages = demand.scale * self.sample.len() as f64;
            let budget = all.planned(budget / 1000.0, pages, elapsed);
            all.max_age = demand.longest(pages, budget);
            all.threshold = threshold(|threshold| demand.of_all(Plan { threshold, ..all }), budget, 0.0);
        }
        let bottlenecks = demand.hosts.iter().filter_map(|(host, allowed, pages)| {
            let has_own = pages.len() >= LEAST_OF_HOST && demand.of_pages(pages, all) > *allowed;
            let fresh = Plan {
                excess: 0.0,
                made: 0,
                ..all
            };
            let mut plan = has_own.then(|| hosts.remove(*host).unwrap_or(fresh))?;
            let of_host = demand.scale * pages.len() as f64;
            let allowed = plan.planned(*allowed, of_host, elapsed);
            plan.max_age = all.max_age.max(demand.longest(of_host, allowed));
            let visits = |threshold| demand.of_pages(pages, Plan { threshold, ..plan });
            plan.threshold = threshold(visits, allowed, all.threshold);
            Some(((*host).clone(), plan))
        });
        self.hosts = bottlenecks.collect();
        self.all = all;
        for crowded in &mut self.crowded {
            crowded.retain(|_, until| *until > now);
        }
    }

    /// The most rows that are read of the plan at once: none before the budget allows a revisit soon.
    pub(super) fn most_at_once(&self, now: Time) -> usize {
        match self.config.revisits_per_second {
            _ if self.next_of_all > now + BUDGET_AHEAD => 0,
            // Some are put off.
            Some(budget) => AT_ONCE.min((2.0 * budget) as usize + 32),
            None => AT_ONCE,
        }
    }

    /// Lets one page of a host that was given up be asked for, after an hour, then after twice as long, up to a day.
    ///
    /// # Errors
    ///
    /// When that is else.
    pub(super) fn ask_again(&mut self, host: &HostKey, now: Time) -> Result<(), Time> {
        let first = (now + SHORTEST_REST, SHORTEST_REST);
        let (next, rest) = self.given_up.entry(host.clone()).or_insert(first);
        if *next > now {
            return Err(*next);
        }
        *rest = (*rest * 2).min(LONGEST_REST);
        *next = now + *rest;
        Ok(())
    }

    /// Takes the next slot of its host for a page that is due, if that is soon, and it is still worth a visit: the thresholds have moved since.
    ///
    /// # Errors
    ///
    /// When it is visited else.
    pub(super) fn visit_now(
        &mut self,
        number: u64,
        host: &HostKey,
        page: &StoredPage,
        slot: &mut (Time, Duration),
        now: Time,
    ) -> Result<(), Time> {
        let planned = self.next_visit(number, host, page);
        if planned > now && !self.dates.make_due(number) {
            return Err(planned);
        }
        let was_put_off = Some(planned) < page.next_visit || self.dates.put_off(number);
        let is_better = page.class < Class::default() || page.own_plan.is_some();
        self.take_slot(host, slot, was_put_off, is_better, now)
    }

    /// Takes the next slot of a host for a revisit, if that is soon. A page that was put off has waited for it, or is worth a visit sooner than it was.
    /// Better pages, of a better class or with a plan of their own, go before others.
    ///
    /// # Errors
    ///
    /// When there is one else, behind those that were promised: each is promised one of its own, so that not all are looked at again for each.
    fn take_slot(
        &mut self,
        host: &HostKey,
        (next, every): &mut (Time, Duration),
        was_put_off: bool,
        is_better: bool,
        now: Time,
    ) -> Result<(), Time> {
        let crowded = &mut self.crowded[usize::from(is_better)];
        let promised = crowded.get(host).copied().unwrap_or_default().max(*next);
        let at = if was_put_off { *next } else { promised };
        // Others have taken those within one interval.
        let ahead = *every * if is_better { 4 } else { 1 };
        if at > now + LANE.max(ahead) {
            crowded.insert(host.clone(), promised + *every);
            return Err(promised);
        }
        *next = at.max(now) + *every;
        self.all.made += 1;
        if let Some(plan) = self.hosts.get_mut(host) {
            plan.made += 1;
        }
        if let Some(budget) = self.config.revisits_per_second {
            let each = Duration::try_from_secs_f64(1.0 / budget).unwrap_or(Duration::MAX);
            self.next_of_all = self.next_of_all.max(now) + each;
        }
        Ok(())
    }
}

/// What the pages of the sample demand, in visits per millisecond.
struct Demand<'p> {
    ages: &'p Ages,
    /// The pages that each page of the sample stands for.
    scale: f64,
    min_age: f64,
    max_age: f64,
    /// Each with the visits that it allows.
    hosts: Vec<(&'p HostKey, f64, Vec<Page>)>,
}

impl<'p> Demand<'p> {
    fn of(planner: &'p Planner, state: &State) -> Self {
        let mut hosts: BTreeMap<&HostKey, Vec<Page>> = BTreeMap::new();
        for one in planner.sample.values() {
            hosts.entry(&one.host).or_default().push(one.page);
        }
        let allowed = |host: &HostKey| {
            let interval = state
                .queues()
                .next_revisit(host)
                .map_or(0.0, |(_, every)| millis(every));
            PLANNED / interval
        };
        Self {
            ages: &planner.ages,
            scale: u64::MAX as f64 / planner.most_hash as f64
                * (state.pages_ended() as f64 / planner.read.max(1) as f64),
            min_age: millis(planner.config.min_age),
            max_age: millis(planner.config.max_age),
            hosts: hosts
                .into_iter()
                .map(|(host, pages)| (host, allowed(host), pages))
                .collect(),
        }
    }

    fn of_pages(&self, pages: &[Page], plan: Plan) -> f64 {
        let longest = plan.max_age.max(self.min_age);
        let age = |page: &Page| self.ages.of(*page, plan.threshold).clamp(self.min_age, longest);
        self.scale * pages.iter().map(|page| 1.0 / age(page)).sum::<f64>()
    }

    fn of_all(&self, plan: Plan) -> f64 {
        let hosts = self.hosts.iter();
        hosts
            .map(|(_, allowed, pages)| self.of_pages(pages, plan).min(*allowed))
            .sum()
    }

    /// The longest age whose demand is half of a budget at most.
    fn longest(&self, pages: f64, budget: f64) -> f64 {
        self.max_age.max(2.0 * pages / budget)
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
