//! What partitions of a crawl tell each other of the policies that one was ordered.

use std::collections::BTreeSet;

use frontier::{Canonicalizer, Frontier, HostKey, Time};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Obeyed, OrderError, Plan, refused, set_policies};

/// The hosts that other partitions are told of in one text.
const HOSTS_AT_ONCE: usize = 1000;

/// Policies that were ordered, as partitions tell each other: only what has changed, as each may have been ordered something else meanwhile; and
/// whole policies, if nothing has changed here: who gives an order again means the others.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Changed {
    hosts: Vec<(HostKey, Fields)>,
    crawl: Fields,
    dropped: Vec<String>,
    no_longer_dropped: Vec<String>,
}

type Fields = serde_json::Map<String, serde_json::Value>;

impl Changed {
    pub(super) fn by(frontier: &Frontier, plan: &Plan) -> Self {
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
    pub(super) fn in_parts(mut self) -> Vec<Self> {
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

#[cfg(test)]
mod tests {
    use frontier::exchange::Received;
    use frontier::{CrawlPolicy, FrontierConfig, HostPolicy, Partition, Reach};

    use super::super::{Order, obey};
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
