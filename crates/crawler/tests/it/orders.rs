//! Orders to a crawl while it runs, and to its directory.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawler::{CrawlOptions, Obeyed, Order, OrderError, Orders, SavedCrawl};
use frontier::{Canonicalizer, HostKey, HostPolicy};
use tokio::time::sleep;

use crate::folder::Folder;
use crate::scripted::{self, Reply, Run, Scripted};

const PAGES: usize = 30;

/// Two hosts of thirty pages, under a delay of ten seconds, and others of one.
fn site() -> Scripted<impl Fn(&scripted::Call<'_>) -> Reply + Send + Sync + 'static> {
    Scripted::new(|call| {
        let is_front = call.url().ends_with("example/") && !call.url().contains("c.example");
        let links: String = (1..PAGES).map(|n| format!("<a href=/{n}></a>")).collect();
        Ok(scripted::page(if is_front { &links } else { "" }))
    })
}

fn options() -> CrawlOptions {
    let mut options = scripted::everywhere("http://a.example/");
    options.seeds.push("http://b.example/".to_owned());
    options.frontier.politeness.delay = Duration::from_secs(10);
    options.frontier.politeness.ask_robots = false;
    options
}

fn host(name: &str) -> HostKey {
    let url = Canonicalizer::default().parse(&format!("http://{name}/"));
    url.unwrap().host()
}

fn change(name: &str, change: impl Fn(&mut HostPolicy) + Send + 'static) -> Vec<Order> {
    vec![Order::Host(host(name), Box::new(change))]
}

fn add(seeds: &[&str], again: bool) -> Vec<Order> {
    let seeds = seeds.iter().map(|&seed| seed.to_owned()).collect();
    vec![Order::Add {
        seeds,
        class: None,
        again,
    }]
}

/// Crawls, and gives orders meanwhile.
fn crawl_with_orders<F>(folder: &Folder, give: impl FnOnce(Orders) -> F + Send + 'static) -> (Run, Orders)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (kept, given) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
    let (keep, task) = (Arc::clone(&kept), Arc::clone(&given));
    let run = site().crawl_in_with(&folder.state(), options(), move |crawl| {
        let orders = crawl.orders();
        *keep.lock().unwrap() = Some(orders.clone());
        let mut give = Some(give);
        crawl.on_event(move |_| {
            if let Some(give) = give.take() {
                *task.lock().unwrap() = Some(tokio::spawn(give(orders.clone())));
            }
        })
    });
    let task = given.lock().unwrap().take().unwrap();
    assert!(task.is_finished(), "the orders were not all given");
    let orders = kept.lock().unwrap().take().unwrap();
    (run, orders)
}

/// The requests to a host, in seconds of the crawl.
fn seconds_of(run: &Run, host: &str) -> Vec<u64> {
    let all = run.urls().into_iter().zip(run.seconds());
    let its = all.filter(|(url, _)| url.starts_with(&format!("http://{host}/")));
    its.map(|(_, second)| second).collect()
}

#[test]
fn orders_change_what_is_asked_from_then_on_and_no_page_is_lost_or_asked_twice() {
    let folder = Folder::new("orders");
    let (run, orders) = crawl_with_orders(&folder, |orders| async move {
        sleep(Duration::from_secs(35)).await;
        let closed = orders
            .give(change("b.example", |policy| policy.closed = Some(true)))
            .await
            .unwrap();
        assert_eq!((closed.dropped, closed.entries()), (26, "26 dropped".to_owned()));
        let pattern = Order::Crawl(Box::new(|policy| policy.dropped.push("a.example/2.$".to_owned())));
        assert_eq!(orders.give(vec![pattern]).await.unwrap().entries(), "");
        let slow = change("a.example", |policy| policy.delay = Some(Duration::from_secs(60)));
        let slow = orders.give(slow).await.unwrap();
        assert_eq!(slow.hosts[0].1.delay, Some(Duration::from_secs(60)));
        sleep(Duration::from_secs(200)).await;
        let added = orders
            .give(add(
                &["http://c.example/", "http://a.example/1", "http://b.example/x"],
                false,
            ))
            .await;
        let added = added.unwrap();
        assert_eq!((added.queued, added.seen, added.refused.len()), (1, 1, 1));
        assert_eq!(added.refused, ["http://b.example/x: dropped by order or policy"]);
        for bad in [
            add(&["http://d.example/", "::"], false),
            vec![Order::Crawl(Box::new(|policy| policy.dropped.push("(".to_owned())))],
        ] {
            assert!(matches!(orders.give(bad).await, Err(OrderError::Refused(_))));
        }
        sleep(Duration::from_secs(10)).await;
        let again = orders
            .give(add(&["http://c.example/", "http://a.example/9"], true))
            .await
            .unwrap();
        assert_eq!((again.queued, again.seen), (1, 1), "one has ended, and one waits");
        let allowed = orders
            .give(change("b.example", |policy| policy.closed = None))
            .await
            .unwrap();
        assert_eq!(allowed.queued, 26);
        let default = Order::Crawl(Box::new(|policy| policy.dropped.clear()));
        orders.give(vec![default]).await.unwrap();
        let fast = change("a.example", |policy| policy.delay = None);
        orders.give(fast).await.unwrap();
    });
    let (of_a, of_b) = (seconds_of(&run, "a.example"), seconds_of(&run, "b.example"));
    assert_eq!(of_a[..8], [0, 10, 20, 30, 90, 150, 210, 245]);
    assert_eq!(of_b[..5], [0, 10, 20, 30, 245]);
    let urls = run.urls();
    assert_eq!(
        urls.iter().filter(|url| **url == "http://c.example/").count(),
        2,
        "one was asked again"
    );
    assert_eq!(urls.iter().collect::<BTreeSet<_>>().len(), 2 * PAGES + 1);
    assert_eq!(urls.len(), 2 * PAGES + 2);
    let ended = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let late = ended.block_on(orders.give(Vec::new()));
    assert!(matches!(late, Err(OrderError::Ended)));
}

#[test]
fn a_stopped_crawl_gets_the_same_orders_in_its_directory() {
    let folder = Folder::new("orders-stopped");
    let stopped = site().crawl_in_with(&folder.state(), options(), |crawl| {
        let stop = crawl.stop_handle();
        crawl.on_event(move |event| {
            if let crawler::Event::Page(_) = event {
                stop.finish();
            }
        })
    });
    let give = |orders: Vec<Order>| SavedCrawl::give(&folder.state(), &orders);
    let closed: Obeyed = give(change("b.example", |policy| policy.closed = Some(true))).unwrap();
    assert!(closed.dropped > 0);
    let back = give(change("b.example", |policy| policy.closed = None)).unwrap();
    assert_eq!(back.queued, closed.dropped, "it was not dropped yet");
    let closed = give(change("b.example", |policy| policy.closed = Some(true))).unwrap();
    assert_eq!(give(add(&["http://c.example/"], false)).unwrap().queued, 1);
    let run = site().crawl_in(&folder.state(), options());
    assert!(seconds_of(&run, "b.example").is_empty());
    assert!(run.urls().contains(&"http://c.example/"));
    assert_eq!(
        give(change("b.example", |policy| policy.closed = None)).unwrap().queued,
        closed.dropped
    );
    let rest = site().crawl_in(&folder.state(), options());
    let all = [stopped.urls(), run.urls(), rest.urls()].concat();
    assert_eq!(all.len(), all.iter().collect::<BTreeSet<_>>().len(), "no page twice");
    assert_eq!(all.len(), 2 * PAGES + 1);
}
