//! Orders: what an operator changes while a crawl runs, or between two runs.

mod changed;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use frontier::{
    CanonicalUrl, Canonicalizer, Class, CrawlPolicy, Frontier, FrontierError, HostKey, HostPolicy, Link, OpenError,
    Refusal, Time, Verdict,
};
use regex::RegexSet;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::config::parse_seed;
use crate::error::{CrawlError, StartError};
use changed::Changed;
pub(crate) use changed::obey_told;

const NOTHING_LEFT: &str = "nothing is left that this partition may fetch, so the crawl may end before the others know of the order: give it to a partition that \
     still fetches (crawler cluster status)";

/// What changes a policy.
type Change<T> = Box<dyn Fn(&mut T) + Send>;

/// One order. It outlives restarts, and counts before the options.
pub enum Order {
    /// Queues seeds: each a URL, and behind a tab its data. They join the scope.
    Add {
        /// The seeds.
        seeds: Vec<String>,
        /// Their class; `None` for that of the rules.
        class: Option<Class>,
        /// Whether pages that have ended are fetched again.
        again: bool,
    },
    /// Changes the [policy](Frontier::set_policy) of a host. If that opens it, what was dropped is queued again, with a
    /// state directory.
    Host(HostKey, Change<HostPolicy>),
    /// Changes the [policy](Frontier::set_crawl_policy) of the crawl. What was dropped by a pattern that goes is queued again.
    Crawl(Change<CrawlPolicy>),
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add { seeds, .. } => write!(f, "Add({seeds:?})"),
            Self::Host(host, _) => write!(f, "Host({host})"),
            Self::Crawl(_) => f.write_str("Crawl"),
        }
    }
}

/// What orders did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Obeyed {
    /// Entries that were queued.
    pub queued: u64,
    /// Seeds that were seen before.
    pub seen: u64,
    /// Seeds that were not queued, and why.
    pub refused: Vec<String>,
    /// Entries that were dropped before, and have no room now.
    pub without_room: u64,
    /// Entries that waited for hosts which are closed now.
    pub dropped: u64,
    /// Hosts that were changed and that the crawl does not know.
    pub unknown: Vec<HostKey>,
    /// The policies in force of the hosts that were changed.
    pub hosts: Vec<(HostKey, HostPolicy)>,
    /// The policy in force of the crawl, if it was changed.
    pub crawl: Option<CrawlPolicy>,
    /// Whether the order was sent to the other partitions, too.
    pub are_others_told: bool,
}

/// Why an order is not obeyed. Nothing has changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// The crawl has ended, or has failed.
    #[error("the crawl has ended: give the order to its directory")]
    Ended,
    /// The text says what is wrong with it, and what to do.
    #[error("{0}")]
    Refused(String),
    /// The crawl in the directory cannot be opened.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl From<FrontierError> for OrderError {
    fn from(error: FrontierError) -> Self {
        match error {
            FrontierError::Pattern(why) => Self::Refused(why.into()),
            error => Self::Start(OpenError::from(error).into()),
        }
    }
}

/// Orders that wait for the crawl, and to whom it answers.
pub(crate) type Given = (Vec<Order>, oneshot::Sender<Result<Obeyed, OrderError>>);

/// Gives orders to a crawl while it runs. Clones serve the same crawl.
///
/// ```no_run
/// use std::time::Duration;
/// use crawler::{Crawl, CrawlOptions, Order};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let options = CrawlOptions { seeds: vec!["example.com".to_owned()], ..CrawlOptions::default() };
/// let crawl = Crawl::new(options)?;
/// let orders = crawl.orders();
/// let running = tokio::spawn(crawl.run());
/// let host = frontier::Canonicalizer::default().parse("https://shop.example/")?.host();
/// orders.give(vec![Order::Host(host, Box::new(|policy| policy.delay = Some(Duration::from_secs(10))))]).await?;
/// running.await??;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Orders(mpsc::Sender<Given>);

impl Orders {
    /// Makes the two ends. The crawl answers at the second.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Given>) {
        let (to, given) = mpsc::channel(16);
        (Self(to), given)
    }

    /// Gives orders, which are obeyed together: with a state directory, they are synced before the answer.
    ///
    /// # Errors
    ///
    /// A seed or a pattern that cannot be used, a crawl that has ended.
    pub async fn give(&self, orders: Vec<Order>) -> Result<Obeyed, OrderError> {
        let (answer, answered) = oneshot::channel();
        let sent = self.0.send((orders, answer)).await;
        sent.map_err(|_| OrderError::Ended)?;
        answered.await.unwrap_or(Err(OrderError::Ended))
    }
}

/// What orders mean, before anything changes.
#[derive(Default)]
struct Plan {
    seeds: Vec<(Link, bool)>,
    hosts: BTreeMap<HostKey, HostPolicy>,
    crawl: Option<CrawlPolicy>,
}

impl Plan {
    fn of(frontier: &Frontier, canonicalizer: &Canonicalizer, orders: &[Order]) -> Result<Self, OrderError> {
        let mut plan = Self::default();
        for order in orders {
            match order {
                Order::Add { seeds, class, again } => {
                    for line in seeds {
                        let seed = parse_seed(line, canonicalizer).map_err(|why| refused(&why))?;
                        if let Some(owner) = owner_elsewhere(frontier, &seed.url).filter(|_| *again) {
                            let why = format!(
                                "{}: only partition {owner}, which it belongs to, can fetch it again",
                                seed.url.url()
                            );
                            return Err(refused(&why));
                        }
                        let class = class.or(seed.class);
                        plan.seeds.push((Link { class, ..seed }, *again));
                    }
                }
                Order::Host(host, change) => {
                    let policy = plan
                        .hosts
                        .entry(host.clone())
                        .or_insert_with_key(|host| frontier.policy(host));
                    change(policy);
                }
                Order::Crawl(change) => {
                    let mut policy = plan.crawl.take().unwrap_or_else(|| frontier.crawl_policy().clone());
                    change(&mut policy);
                    plan.crawl = Some(policy);
                }
            }
        }
        Ok(plan)
    }
}

/// Obeys orders. All that can be wrong with them is found before anything changes. `offered` gets the seeds, and what became of each.
pub(crate) fn obey(
    frontier: &mut Frontier,
    canonicalizer: &Canonicalizer,
    orders: &[Order],
    now: Time,
    offered: &mut dyn FnMut(&[Link], &[Verdict]),
) -> Result<Obeyed, OrderError> {
    // Otherwise all may have found the end before they are told.
    if frontier.report().waits_for_others() {
        return Err(refused(&NOTHING_LEFT));
    }
    let plan = Plan::of(frontier, canonicalizer, orders)?;
    let is_shared = frontier.partition().is_some();
    let changed = is_shared.then(|| Changed::by(frontier, &plan));
    let mut obeyed = set_policies(frontier, canonicalizer, plan.hosts, plan.crawl, now)?;
    if let Some(changed) = changed.filter(|_| !obeyed.hosts.is_empty() || obeyed.crawl.is_some()) {
        obeyed.are_others_told = true;
        // Before what is added, which may be meant. Policies can always be written.
        for changed in changed.in_parts() {
            frontier.tell(&serde_json::to_vec(&changed).unwrap_or_default(), now)?;
        }
    }
    let queued = obeyed.queued;
    add(frontier, &plan.seeds, &mut obeyed, now, offered)?;
    obeyed.are_others_told |= is_shared && obeyed.queued > queued;
    frontier.sync_next();
    Ok(obeyed)
}

fn set_policies(
    frontier: &mut Frontier,
    canonicalizer: &Canonicalizer,
    hosts: BTreeMap<HostKey, HostPolicy>,
    crawl: Option<CrawlPolicy>,
    now: Time,
) -> Result<Obeyed, OrderError> {
    let mut obeyed = Obeyed::default();
    let before = frontier.crawl_policy().dropped.clone();
    if let Some(policy) = &crawl {
        frontier.set_crawl_policy(policy, now)?;
    }
    let is_gone = |pattern: &String| crawl.as_ref().is_some_and(|policy| !policy.dropped.contains(pattern));
    let allowed: Vec<_> = before.into_iter().filter(is_gone).collect();
    let mut opened = BTreeSet::new();
    for (host, policy) in &hosts {
        let queued = |frontier: &Frontier| frontier.host_report(host, now).map(|host| host.queued);
        let (before, was_closed) = (queued(frontier), frontier.is_closed(host));
        let url = canonicalizer.parse(&format!("http://{host}/")).ok();
        let is_own = url.is_none_or(|url| owner_elsewhere(frontier, &url).is_none());
        obeyed
            .unknown
            .extend((before.is_none() && is_own).then(|| host.clone()));
        frontier.set_policy(host, policy, now)?;
        let (before, after) = (before.unwrap_or_default(), queued(frontier).unwrap_or_default());
        obeyed.dropped += before.saturating_sub(after);
        obeyed.queued += after.saturating_sub(before);
        opened.extend((was_closed && !frontier.is_closed(host)).then_some(host));
    }
    if !opened.is_empty() || !allowed.is_empty() {
        let allowed = RegexSet::new(&allowed).map_err(|why| refused(&why))?;
        let is_meant = |url: &CanonicalUrl| opened.contains(&url.host()) || allowed.is_match(url.key());
        let (queued, without_room) = frontier.queue_dropped(is_meant, now)?;
        (obeyed.queued, obeyed.without_room) = (obeyed.queued + queued, without_room);
    }
    (obeyed.hosts, obeyed.crawl) = (hosts.into_iter().collect(), crawl);
    Ok(obeyed)
}

fn owner_elsewhere(frontier: &Frontier, url: &CanonicalUrl) -> Option<u32> {
    let partition = frontier.partition()?;
    (!partition.owns(url)).then(|| partition.owner_of(url))
}

fn refused(why: &dyn fmt::Display) -> OrderError {
    OrderError::Refused(why.to_string())
}

fn add(
    frontier: &mut Frontier,
    seeds: &[(Link, bool)],
    obeyed: &mut Obeyed,
    now: Time,
    offered: &mut dyn FnMut(&[Link], &[Verdict]),
) -> Result<(), OrderError> {
    let mut ended = Vec::new();
    // What an order drops is no link that the crawl lacks.
    let dropped = RegexSet::new(&frontier.crawl_policy().dropped).map_err(|why| refused(&why))?;
    for (seed, again) in seeds {
        if frontier.is_closed(&seed.url.host()) || dropped.is_match(seed.url.key()) {
            obeyed.refused.push(format!("{}: {}", seed.url.url(), Refusal::ByOrder));
            continue;
        }
        let verdicts = frontier.offer(std::slice::from_ref(seed), now)?;
        offered(std::slice::from_ref(seed), &verdicts);
        match verdicts.first().copied().unwrap_or(Verdict::Seen) {
            Verdict::Seen if *again => ended.push(seed.url.clone()),
            Verdict::Seen => obeyed.seen += 1,
            Verdict::Refused(why) => obeyed.refused.push(format!("{}: {why}", seed.url.url())),
            Verdict::Queued | Verdict::Elsewhere => obeyed.queued += 1,
        }
    }
    let queued = frontier
        .queue_ended(&ended, now)?
        .into_iter()
        .filter(|is_queued| *is_queued);
    let queued = queued.count() as u64;
    obeyed.queued += queued;
    obeyed.seen += ended.len() as u64 - queued;
    Ok(())
}

impl Obeyed {
    /// Returns what became of the entries, in words; an empty text if none did.
    pub fn entries(&self) -> String {
        let counts = [
            (self.queued, "queued"),
            (self.seen, "seen before"),
            (self.refused.len() as u64, "refused"),
            (self.without_room, "without room"),
            (self.dropped, "dropped"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<_> = counts.map(|(count, what)| format!("{count} {what}")).collect();
        counts.join(", ")
    }
}

/// Why the loop cannot go on after an order: the frontier has failed.
pub(crate) fn failure(error: &OrderError) -> Option<CrawlError> {
    match error {
        OrderError::Start(StartError::Open(OpenError::Frontier(error))) => Some(error.clone().into()),
        _ => None,
    }
}
