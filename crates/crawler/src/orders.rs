//! Orders: what an operator changes while a crawl runs, or between two runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use frontier::{
    CanonicalUrl, Canonicalizer, Class, CrawlPolicy, Frontier, FrontierError, HostKey, HostPolicy, Link, OpenError,
    Refusal, Time, Verdict,
};
use regex::RegexSet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::config::parse_seed;
use crate::error::{CrawlError, StartError};

const NOTHING_LEFT: &str = "nothing is left that this partition may fetch, so the crawl may end before the others know of the order: give it to a partition that \
     still fetches (crawler cluster status)";

/// The hosts that other partitions are told of in one text.
const HOSTS_AT_ONCE: usize = 1000;

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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
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
    /// Whether the processes of other partitions are told.
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
    let changed = Changed::by(frontier, &plan);
    let mut obeyed = set_policies(frontier, canonicalizer, plan.hosts, plan.crawl, now)?;
    let is_shared = frontier.partition().is_some();
    if is_shared && !(obeyed.hosts.is_empty() && obeyed.crawl.is_none()) {
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

/// Policies that were ordered, as partitions tell each other: only what has changed, as each may have been ordered something else meanwhile; and
/// whole policies, if nothing has changed here: who gives an order again means the others.
#[derive(Default, Serialize, Deserialize)]
struct Changed {
    hosts: Vec<(HostKey, Fields)>,
    crawl: Fields,
    dropped: Vec<String>,
    no_longer_dropped: Vec<String>,
}

type Fields = serde_json::Map<String, serde_json::Value>;

impl Changed {
    fn by(frontier: &Frontier, plan: &Plan) -> Self {
        let of_host = |(host, policy): (&HostKey, _)| (host.clone(), changes(&frontier.policy(host), policy));
        let before = frontier.crawl_policy();
        let after = plan.crawl.as_ref().unwrap_or(before);
        let [old, new] = [before, after].map(|policy| policy.dropped.iter().cloned().collect::<BTreeSet<_>>());
        let (dropped, no_longer_dropped) = (&new - &old, &old - &new);
        let crawl = plan.crawl.as_ref().map(|after| changes(before, after));
        let mut crawl = crawl.unwrap_or_default();
        if !(dropped.is_empty() && no_longer_dropped.is_empty()) {
            crawl.remove("dropped");
        }
        Self {
            hosts: plan.hosts.iter().map(of_host).collect(),
            crawl,
            dropped: dropped.into_iter().collect(),
            no_longer_dropped: no_longer_dropped.into_iter().collect(),
        }
    }

    /// So that no text is too long to be sent.
    fn in_parts(mut self) -> Vec<Self> {
        let mut rest = self.hosts.split_off(self.hosts.len().min(HOSTS_AT_ONCE));
        let mut parts = vec![self];
        while !rest.is_empty() {
            let more = rest.split_off(rest.len().min(HOSTS_AT_ONCE));
            let hosts = std::mem::replace(&mut rest, more);
            parts.push(Self {
                hosts,
                ..Self::default()
            });
        }
        parts
    }
}

fn fields_of(policy: &impl Serialize) -> Fields {
    match serde_json::to_value(policy) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => Fields::new(),
    }
}

/// The fields that have new values; all, if none has.
fn changes(before: &impl Serialize, after: &impl Serialize) -> Fields {
    let (before, after) = (fields_of(before), fields_of(after));
    let mut changes = after.clone();
    changes.retain(|name, value| before.get(name) != Some(value));
    if changes.is_empty() { after } else { changes }
}

fn changed<T: Serialize + DeserializeOwned>(policy: &T, changes: Fields) -> Result<T, serde_json::Error> {
    let mut fields = fields_of(policy);
    fields.extend(changes);
    serde_json::from_value(fields.into())
}

/// Sets the policies that another partition was ordered.
pub(crate) fn obey_told(
    frontier: &mut Frontier,
    canonicalizer: &Canonicalizer,
    text: &[u8],
    now: Time,
) -> Result<Obeyed, OrderError> {
    let told: Changed = serde_json::from_slice(text).map_err(|why| refused(&why))?;
    let hosts = told.hosts.into_iter();
    let hosts = hosts.map(|(host, changes)| changed(&frontier.policy(&host), changes).map(|policy| (host, policy)));
    let hosts = hosts.collect::<Result<_, _>>().map_err(|why| refused(&why))?;
    let before = frontier.crawl_policy();
    let mut crawl = changed(before, told.crawl).map_err(|why| refused(&why))?;
    crawl
        .dropped
        .retain(|pattern| !told.no_longer_dropped.contains(pattern));
    let new = told.dropped.into_iter();
    let new: Vec<_> = new.filter(|pattern| !crawl.dropped.contains(pattern)).collect();
    crawl.dropped.extend(new);
    let crawl = (crawl != *before).then_some(crawl);
    set_policies(frontier, canonicalizer, hosts, crawl, now)
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

#[cfg(test)]
mod tests {
    use frontier::exchange::Received;
    use frontier::{FrontierConfig, Partition, Reach};

    use super::*;

    const NOW: Time = Time::EPOCH;

    /// A partition with a page that waits.
    fn partition(index: u32) -> Frontier {
        let mut config = FrontierConfig {
            partition: Partition::new(index, 2).ok(),
            ..FrontierConfig::default()
        };
        config.scope.reach = Reach::Any;
        let mut frontier = Frontier::in_memory(config).unwrap();
        let urls = (0..9).map(|n| Canonicalizer::default().parse(&format!("http://site{n}.example/")));
        for url in urls {
            frontier.add_seed(&url.unwrap(), NOW).unwrap();
        }
        frontier
    }

    fn host() -> HostKey {
        Canonicalizer::default().parse("http://shop.example/").unwrap().host()
    }

    fn give(frontier: &mut Frontier, orders: &[Order]) -> Result<Obeyed, OrderError> {
        obey(frontier, &Canonicalizer::default(), orders, NOW, &mut |_, _| {})
    }

    fn of_host(change: impl Fn(&mut HostPolicy) + Send + 'static) -> Order {
        Order::Host(host(), Box::new(change))
    }

    fn dropping(pattern: &'static str) -> Order {
        Order::Crawl(Box::new(move |policy| policy.dropped.push(pattern.to_owned())))
    }

    /// Brings all that a partition has told, from the first that the other has not received.
    fn bring(from: &mut Frontier, to: &mut Frontier) {
        let [sender, receiver] = [&*from, &*to].map(|frontier| frontier.partition().unwrap().index());
        from.persist(b"", NOW).unwrap();
        while let Some(batch) = from
            .outgoing(receiver, to.peer(sender).unwrap().received.number)
            .unwrap()
        {
            if let Received::Told(text) = to.receive(sender, &batch, NOW).unwrap() {
                obey_told(to, &Canonicalizer::default(), &text, NOW).unwrap();
            }
        }
    }

    #[test]
    fn of_orders_that_cross_each_holds_in_both_partitions() {
        let [mut here, mut there] = [0, 1].map(partition);
        let slower = of_host(|policy| policy.max_pages = Some(7));
        assert!(give(&mut here, &[dropping("/print/"), slower]).unwrap().are_others_told);
        give(
            &mut there,
            &[dropping("/wiki/"), of_host(|policy| policy.closed = Some(true))],
        )
        .unwrap();
        bring(&mut here, &mut there);
        bring(&mut there, &mut here);
        for frontier in [&mut here, &mut there] {
            let policy = frontier.policy(&host());
            assert_eq!((policy.max_pages, policy.closed), (Some(7), Some(true)));
            let mut dropped = frontier.crawl_policy().dropped.clone();
            dropped.sort();
            assert_eq!(dropped, ["/print/", "/wiki/"]);
        }
        let back = Order::Crawl(Box::new(|policy| policy.dropped.retain(|pattern| pattern != "/wiki/")));
        give(&mut here, &[back]).unwrap();
        bring(&mut here, &mut there);
        assert_eq!(there.crawl_policy().dropped, ["/print/"]);
    }

    #[test]
    fn an_order_that_is_given_again_is_told_again() {
        let [mut here, mut lost] = [0, 1].map(partition);
        let order = || [dropping("/print/"), of_host(|policy| policy.closed = Some(true))];
        give(&mut here, &order()).unwrap();
        bring(&mut here, &mut lost);
        lost.set_policy(&host(), &HostPolicy::default(), NOW).unwrap();
        lost.set_crawl_policy(&CrawlPolicy::default(), NOW).unwrap();
        let again = Order::Crawl(Box::new(|policy| policy.dropped = vec!["/print/".to_owned()]));
        give(&mut here, &[again, of_host(|policy| policy.closed = Some(true))]).unwrap();
        bring(&mut here, &mut lost);
        assert_eq!((lost.is_closed(&host()), lost.crawl_policy().dropped.len()), (true, 1));
    }

    #[test]
    fn many_hosts_are_told_in_parts() {
        let [mut here, mut there] = [0, 1].map(partition);
        let hosts =
            (0..2 * HOSTS_AT_ONCE + 1).map(|n| Canonicalizer::default().parse(&format!("http://h{n}.example/")));
        let orders = hosts.map(|url| Order::Host(url.unwrap().host(), Box::new(|policy| policy.closed = Some(true))));
        give(&mut here, &orders.collect::<Vec<_>>()).unwrap();
        assert_eq!(here.peer(1).unwrap().sent.number, 3);
        bring(&mut here, &mut there);
        assert_eq!(there.hosts_with_orders(), 2 * HOSTS_AT_ONCE as u64 + 1);
    }

    #[test]
    fn what_another_version_tells_is_refused_and_changes_nothing() {
        let mut frontier = partition(0);
        for text in [
            "",
            "{}",
            r#"{"hosts":[["shop.example",{"color":"red"}]],"crawl":{},"dropped":[],"no_longer_dropped":[]}"#,
        ] {
            let told = obey_told(&mut frontier, &Canonicalizer::default(), text.as_bytes(), NOW);
            assert!(matches!(told, Err(OrderError::Refused(_))), "{told:?}");
        }
        assert_eq!(frontier.hosts_with_orders(), 0);
    }
}
