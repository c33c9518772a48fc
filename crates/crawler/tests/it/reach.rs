//! Random link graphs: reachable pages are fetched once and politely. Uses a scripted fetcher and a paused clock.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::scripted;
use crawler::{Crawl, CrawlOptions, Ending, Event, FetchError, Fetcher, Request, ResourceKind, Response};
use frontier::{Fate, FrontierConfig, Notice, Reach, RetryPolicy};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tokio::time::{Instant, sleep};

/// How one request ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Page,
    Busy,
    Refused,
    TimedOut,
    Panic,
}

#[derive(Debug, Clone)]
struct Node {
    links: Vec<usize>,
    /// It redirects to its first link.
    redirects: bool,
    /// robots.txt forbids it.
    forbidden: bool,
    /// How its first requests end. Later ones return the page.
    failures: Vec<End>,
}

#[derive(Debug, Clone)]
struct World {
    nodes: Vec<Node>,
    hosts: usize,
    /// How many addresses the hosts share, if delays count per address.
    addresses: Option<usize>,
    workers: usize,
    per_host: u32,
    delay_ms: u64,
    milliseconds: Vec<u64>,
}

const ATTEMPTS: usize = 3;

fn worlds() -> impl Strategy<Value = World> {
    (2_usize..50, 1_usize..6).prop_flat_map(|(count, hosts)| {
        let failure = prop_oneof![
            Just(End::Busy),
            Just(End::Refused),
            Just(End::TimedOut),
            Just(End::Panic)
        ];
        let failures = prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec(failure, 1..=ATTEMPTS)];
        let node = (
            prop::collection::vec(0..count, 0..5),
            prop::bool::weighted(0.15),
            prop::bool::weighted(0.1),
            failures,
        );
        let node = node.prop_map(|(links, redirects, forbidden, failures)| Node {
            redirects: redirects && !links.is_empty(),
            links,
            forbidden,
            failures,
        });
        let workers = prop_oneof![Just(1_usize), 2_usize..10, Just(64_usize)];
        let timing = (
            workers,
            1_u32..4,
            prop_oneof![Just(0_u64), 1_u64..2000],
            prop::collection::vec(0_u64..500, 1..9),
            prop::option::of(1_usize..4),
        );
        (prop::collection::vec(node, count), timing).prop_map(
            move |(nodes, (workers, per_host, delay_ms, milliseconds, addresses))| World {
                nodes,
                hosts,
                addresses,
                workers,
                per_host,
                delay_ms,
                milliseconds,
            },
        )
    })
}

impl World {
    fn url(&self, n: usize) -> String {
        let place = if self.nodes[n].forbidden { "forbidden" } else { "open" };
        format!("http://host{}.example/{place}/{n}", n % self.hosts)
    }

    /// The address of a host. The fourth host has none.
    fn address(&self, host: &str) -> Option<IpAddr> {
        let n: usize = host.strip_prefix("host")?.strip_suffix(".example")?.parse().unwrap();
        let address = u8::try_from(n % self.addresses?).unwrap();
        (n != 3).then_some([192, 0, 2, address].into())
    }

    /// The minimum and maximum number of its first requests that count as attempts.
    ///
    /// A time-out may count or not: if the host is away meanwhile, the page is not to blame. A refused connection never
    /// counts, because it is the host's failure.
    fn attempt_bounds(&self, n: usize) -> (usize, usize) {
        let failures = &self.nodes[n].failures;
        let count = |kinds: &[End]| failures.iter().filter(|end| kinds.contains(end)).count();
        let sure = count(&[End::Busy, End::Panic]);
        (sure, sure + count(&[End::TimedOut]))
    }

    /// The pages that a walk over the tables finds, and all URLs that it requests, if `given_up` never answer.
    fn reachable(&self, given_up: &BTreeSet<String>) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut pages, mut requested) = (BTreeSet::new(), BTreeSet::new());
        let mut seen = BTreeSet::from([(0, 0)]);
        let mut best_hops: HashMap<usize, usize> = HashMap::new();
        let mut queue = VecDeque::from([(0_usize, 0_usize)]);
        while let Some((n, hops)) = queue.pop_front() {
            let node = &self.nodes[n];
            if best_hops.insert(n, hops).is_some() || node.forbidden {
                continue;
            }
            requested.insert(self.url(n));
            if given_up.contains(&self.url(n)) {
                continue;
            }
            let next: Vec<_> = if node.redirects {
                vec![(node.links[0], hops + 1)]
            } else {
                pages.insert(self.url(n));
                node.links.iter().map(|&to| (to, 0)).collect()
            };
            queue.extend(next.into_iter().filter(|step| seen.insert(*step)));
        }
        (pages, requested)
    }
}

#[derive(Default)]
struct Host {
    in_flight: u32,
    ends: Vec<Instant>,
}

#[derive(Default)]
struct Journal {
    hosts: HashMap<String, Host>,
    attempts: HashMap<String, usize>,
    robots: HashMap<String, usize>,
    requests: usize,
    violations: Vec<String>,
}

struct Scripted {
    world: World,
    journal: Arc<Mutex<Journal>>,
}

impl Scripted {
    /// The names under which politeness limits a request: its host, and its address if addresses count.
    fn limited_names(&self, host: &str) -> Vec<String> {
        let address = self.world.address(host).map(|address| address.to_string());
        address.into_iter().chain([host.to_owned()]).collect()
    }

    fn start(&self, host: &str) -> Duration {
        self.limited_names(host).iter().for_each(|name| self.start_at(name));
        let mut journal = self.journal.lock().unwrap();
        journal.requests += 1;
        let takes = self.world.milliseconds[journal.requests % self.world.milliseconds.len()];
        Duration::from_millis(takes)
    }

    fn start_at(&self, host: &str) {
        let mut journal = self.journal.lock().unwrap();
        let delay = Duration::from_millis(self.world.delay_ms);
        let entry = journal.hosts.entry(host.to_owned()).or_default();
        entry.in_flight += 1;
        let mut violation = None;
        if entry.in_flight > self.world.per_host {
            violation = Some(format!("{host}: {} requests in flight", entry.in_flight));
        }
        // With several requests in flight, one may end in the instant in which another starts. The crawl cannot know of
        // it yet.
        let known = |end: &&Instant| self.world.per_host == 1 || end.elapsed() > Duration::ZERO;
        let last_end = entry.ends.iter().rev().find(known);
        if let Some(gap) = last_end.map(Instant::elapsed).filter(|gap| *gap < delay) {
            violation = Some(format!(
                "{host}: requested {gap:?} after the end of the last request, not {delay:?}"
            ));
        }
        journal.violations.extend(violation);
    }

    fn end(&self, host: &str) {
        let mut journal = self.journal.lock().unwrap();
        for name in self.limited_names(host) {
            let entry = journal.hosts.get_mut(&name).unwrap();
            entry.in_flight -= 1;
            entry.ends.push(Instant::now());
        }
    }

    fn robots(&self, host: &str) -> Response {
        *self.journal.lock().unwrap().robots.entry(host.to_owned()).or_default() += 1;
        scripted::page(b"User-agent: *\nDisallow: /forbidden/\n")
    }

    fn page(&self, url: &str) -> Result<Response, FetchError> {
        let n: usize = url.rsplit('/').next().unwrap().parse().unwrap();
        let node = &self.world.nodes[n];
        let attempt = {
            let mut journal = self.journal.lock().unwrap();
            let attempts = journal.attempts.entry(url.to_owned()).or_default();
            *attempts += 1;
            *attempts - 1
        };
        match node.failures.get(attempt).copied().unwrap_or(End::Page) {
            End::Page if node.redirects => {
                let location = Some(self.world.url(node.links[0]));
                Ok(Response {
                    status: 302,
                    location,
                    ..Response::default()
                })
            }
            End::Page => {
                let links: String = node
                    .links
                    .iter()
                    .map(|&to| format!("<a href='{}'>", self.world.url(to)))
                    .collect();
                Ok(scripted::page(links.into_bytes()))
            }
            End::Busy => Ok(scripted::status(503)),
            End::Refused => Err(FetchError::Connect("refused".to_owned())),
            End::TimedOut => Err(FetchError::Timeout),
            End::Panic => std::panic::panic_any(SCRIPTED_PANIC),
        }
    }
}

const SCRIPTED_PANIC: &str = "a panic by the script";

impl Fetcher for Scripted {
    async fn address(&self, host: &str) -> Option<IpAddr> {
        let requests = self.journal.lock().unwrap().requests;
        sleep(Duration::from_millis(
            self.world.milliseconds[requests % self.world.milliseconds.len()],
        ))
        .await;
        self.world.address(host)
    }

    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let host = request.url.host_str().unwrap().to_owned();
        let takes = self.start(&host);
        sleep(takes).await;
        self.end(&host);
        if request.kind == ResourceKind::Robots {
            Ok(self.robots(&host))
        } else {
            self.page(request.url.as_str())
        }
    }
}

/// The events of a crawl.
#[derive(Default)]
struct Reported {
    fetched: Vec<String>,
    given_up: BTreeSet<String>,
    /// How often each origin went away, and how often it came back.
    away: HashMap<String, usize>,
    back: HashMap<String, usize>,
    violations: Vec<String>,
}

impl Reported {
    fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::Page(page) if page.status == 200 => self.fetched.push(page.url.clone()),
            Event::Failed {
                entry,
                fate: Fate::GaveUp,
                ..
            } => {
                self.given_up.insert(entry.url.to_string());
            }
            Event::Notice(Notice::Away { origin, .. }) => {
                let origin = origin.as_str().to_owned();
                *self.away.entry(origin.clone()).or_default() += 1;
                if self.away[&origin] != self.back.get(&origin).copied().unwrap_or_default() + 1 {
                    self.violations.push(format!("{origin} is away twice"));
                }
            }
            Event::Notice(Notice::Back { origin, .. }) => {
                *self.back.entry(origin.as_str().to_owned()).or_default() += 1;
            }
            Event::Notice(other) => self.violations.push(format!("{other:?}")),
            Event::NotFetched { entry, why, .. } if !entry.url.contains("/forbidden/") => {
                self.violations.push(format!("{}: {why}", entry.url));
            }
            _ => {}
        }
    }
}

fn crawl(world: &World) -> (Reported, Journal, crawler::Summary) {
    let journal = Arc::new(Mutex::new(Journal::default()));
    let mut config = FrontierConfig::default();
    config.scope.reach = Reach::Any;
    config.retries = RetryPolicy {
        max_host_downtime: Duration::MAX,
        max_first_downtime: Duration::MAX,
        ..RetryPolicy::default()
    };
    config.politeness.per_host = NonZeroU32::new(world.per_host).unwrap();
    config.politeness.per_address = world.addresses.is_some();
    config.politeness.delay = Duration::from_millis(world.delay_ms);
    config.seen_set.exact = true;
    let options = CrawlOptions {
        seeds: vec![world.url(0)],
        frontier: config,
        concurrency: NonZeroUsize::new(world.workers).unwrap(),
        ..CrawlOptions::default()
    };
    let reported = Arc::new(Mutex::new(Reported::default()));
    let notes = Arc::clone(&reported);
    let fetcher = Scripted {
        world: world.clone(),
        journal: Arc::clone(&journal),
    };
    let crawl = Crawl::builder(options).unwrap().build_with(fetcher).unwrap();
    let crawl = crawl.on_event(move |event| notes.lock().unwrap().note(event));
    let runtime = scripted::paused_runtime();
    let summary = runtime.block_on(crawl.run()).unwrap();
    let reported = std::mem::take(&mut *reported.lock().unwrap());
    let journal = std::mem::take(&mut *journal.lock().unwrap());
    (reported, journal, summary)
}

fn silence_scripted_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<&str>() != Some(&SCRIPTED_PANIC) {
                default(info);
            }
        }));
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))), ..ProptestConfig::default() })]

    #[test]
    fn reachable_pages_are_fetched_once_and_politely(world in worlds()) {
        silence_scripted_panics();
        let (reported, journal, summary) = crawl(&world);
        let (pages, requested) = world.reachable(&reported.given_up);
        let set: BTreeSet<_> = reported.fetched.iter().cloned().collect();
        prop_assert_eq!(&journal.violations, &Vec::<String>::new());
        prop_assert_eq!(&reported.violations, &Vec::<String>::new());
        prop_assert_eq!(&set, &pages);
        prop_assert_eq!(reported.fetched.len(), pages.len(), "a page was reported twice");
        prop_assert_eq!(summary.pages, pages.len() as u64);
        prop_assert_eq!(summary.ending, Ending::Drained);
        let actually_requested: BTreeSet<_> = journal.attempts.keys().cloned().collect();
        prop_assert_eq!(&actually_requested, &requested);
        let gaps = summary.host_table.hosts.iter().filter_map(|host| host.shortest_gap);
        let delay = Duration::from_millis(world.delay_ms);
        prop_assert!(world.per_host > 1 || gaps.min().is_none_or(|gap| gap >= delay));
        for (url, attempts) in &journal.attempts {
            let n: usize = url.rsplit('/').next().unwrap().parse().unwrap();
            let (sure, may) = world.attempt_bounds(n);
            let is_given_up = reported.given_up.contains(url);
            prop_assert!(if is_given_up { may >= ATTEMPTS } else { sure < ATTEMPTS }, "{}", url);
            let expected = world.nodes[n].failures.len() + usize::from(!is_given_up);
            prop_assert_eq!(*attempts, expected, "{}", url);
        }
        for (host, times) in &journal.robots {
            // One request for its rules, and one for each check whether the host is back: after a refused connection, or three silent pages. The
            // first check succeeds, as here it always is.
            let origin = format!("http://{host}");
            let away = reported.away.get(&origin).copied().unwrap_or_default();
            prop_assert_eq!(away, reported.back.get(&origin).copied().unwrap_or_default(), "{}", host);
            let of_host = (0..world.nodes.len()).filter(|n| world.url(*n).starts_with(&format!("{origin}/")));
            let failures: Vec<_> = of_host.flat_map(|n| &world.nodes[n].failures).collect();
            let number = |kind| failures.iter().filter(|end| ***end == kind).count();
            let checks = number(End::Refused) + number(End::TimedOut) / 3;
            prop_assert!(away <= checks && (1..=1 + checks).contains(times), "{}: {} requests for robots.txt, {} checks", host, times, checks);
        }
    }
}
