//! What the fuzz targets call: reading of what is stored, without a store. Its checksums would keep wrong bytes out.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use sieve::{Filter as _, ScalableBloomFilter, SeenSet};

use crate::Canonicalizer;
use crate::appended::append;
use crate::config::{FrontierConfig, LimitConfig, PolitenessConfig, RetryPolicy, SeenSetConfig};
use crate::durable::checkpoint::{LOGIC, Manifest};
use crate::durable::keys::SharedKeys;
use crate::durable::restore::Restored;
use crate::durable::seen_set::{encode_seen_set, read_seen_set as decode_seen_set, with_keys};
use crate::durable::segments::SharedStore;
use crate::durable::sizes::{SIZES, Sizes};
use crate::durable::{Source, StoredPage, journal};
use crate::entry::Purpose;
use crate::failure::{Failure, FailureKind};
use crate::fingerprint::{ContentHash, Fingerprint, SimHash};
use crate::frontier::Frontier;
use crate::hosts::HostReader;
use crate::lease::{Lease, Leasing};
use crate::link::Link;
use crate::policy::{CrawlPolicy, HostPolicy};
use crate::rules::{ParseRules, RobotsRules};
use crate::scope::{Reach, ScopeConfig};
use crate::settlement::Outcome;
use crate::state::{Call, State, bloom_filter};
use crate::store::MemoryStore;
use crate::time::Time;
use crate::url::CanonicalUrl;

#[derive(Debug)]
struct Rules(Vec<u8>);

impl RobotsRules for Rules {
    fn allows(&self, path: &str) -> bool {
        !path.as_bytes().starts_with(&self.0)
    }

    fn text(&self) -> Option<&[u8]> {
        Some(&self.0)
    }
}

fn parse() -> ParseRules {
    Arc::new(|text: &[u8]| Arc::new(Rules(text.to_vec())) as _)
}

fn config() -> FrontierConfig {
    FrontierConfig {
        scope: ScopeConfig {
            reach: Reach::Any,
            ..ScopeConfig::default()
        },
        retries: RetryPolicy::default(),
        seen_set: SeenSetConfig {
            exact: true,
            capacity: 100,
            hash: sieve::Hashing::Murmur3 { seed: 7 },
            ..SeenSetConfig::default()
        },
        politeness: PolitenessConfig {
            delay: Duration::from_secs(1),
            ..PolitenessConfig::default()
        },
        limits: LimitConfig {
            max_pages_per_host: Some(7),
            ..LimitConfig::default()
        },
        ..FrontierConfig::default()
    }
}

fn store() -> SharedStore {
    SharedStore::new(Box::new(MemoryStore::default()))
}

/// What lies between a state and its hosts.
const SEPARATOR: [u8; 16] = [0; 16];

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.windows(SEPARATOR.len()).position(|window| window == SEPARATOR)?;
    Some((&bytes[..at], &bytes[at + SEPARATOR.len()..]))
}

fn decode(state: &[u8], seen_set: &[u8], hosts: &[u8]) -> Option<State> {
    let (parse, store) = (parse(), store());
    let mut reader = HostReader::new(&parse);
    reader.read(hosts).ok()?;
    let hosts = reader.finish().ok()?;
    let sizes = Sizes {
        verified: 1 << 10,
        ..SIZES
    };
    let keys = SharedKeys::new(store.clone(), sizes);
    let most = seen_set.len() as u64;
    let seen_set = decode_seen_set(&mut &*seen_set, most, &config()).ok()?;
    let seen_set = with_keys(seen_set, &config(), Some(&keys));
    let source = Source::new(&store, &parse);
    State::decode(state, seen_set, hosts, &config(), source.on_disk(&source.segments(0))).ok()
}

/// Encodes a state, its seen-set and its hosts.
fn encode(state: &mut State) -> Option<[Vec<u8>; 3]> {
    let (encoded, seen_set) = (state.encode().ok()?, encode_seen_set(state.seen().filter()).ok()?);
    let hosts = state.host_table();
    hosts.begin_copy();
    Some([encoded, seen_set, hosts.copy_more(usize::MAX).ok()?.0])
}

const START: Time = Time::from_millis(1_700_000_000_000);

fn url(text: &str) -> Option<CanonicalUrl> {
    Canonicalizer::default().parse(text).ok()
}

fn leases(frontier: &mut Frontier, now: Time) -> Vec<Lease> {
    match frontier.lease(now, 10) {
        Ok(Leasing::Ready(leases)) => leases,
        _ => Vec::new(),
    }
}

/// A frontier with pages of four hosts: one waits, one failed, one has rules, and of one the robots.txt is in flight.
fn prepared() -> Option<(Frontier, Vec<Lease>)> {
    let mut frontier = Frontier {
        state: State::new(&config(), bloom_filter(&config()).ok()?).ok()?,
        durable: None,
        is_poisoned: false,
    };
    frontier.add_seed(&url("https://a.example/")?, START).ok()?;
    let texts = ["https://a.example/1", "http://b.example:81/2?q", "https://c.example/3"];
    let referrer: Arc<str> = "https://a.example/".into();
    let links = texts.map(|text| Some(Link::found(url(text)?, 1, Arc::clone(&referrer))));
    let links: Vec<Link> = links.into_iter().flatten().collect();
    frontier.offer(&links, START).ok()?;
    let mut asked = leases(&mut frontier, START);
    for _ in 0..2 {
        let is_robots = |lease: &Lease| matches!(lease.entry.purpose, Purpose::Robots(_));
        if let Some(robots) = asked.pop().filter(is_robots) {
            let known = robots.settle(Outcome::Done).with_rules(Rules(b"/none".to_vec()));
            frontier.settle(&[known], START).ok()?;
        }
    }
    let later = START + Duration::from_secs(5);
    asked.extend(leases(&mut frontier, later));
    classify_pages(&mut frontier.state);
    Some((frontier, asked))
}

/// Compares a page, one that is near it, and one without a text.
fn classify_pages(state: &mut State) {
    for (content, text) in [(1, Some(0b0111)), (2, Some(0b0001)), (3, None), (4, Some(u64::MAX))] {
        let fingerprint = Fingerprint::new(Some(ContentHash::from(content)), text.map(SimHash::from));
        let url = format!("https://a.example/compared/{content}");
        state.classify(&url, fingerprint);
    }
}

/// A state without a journal.
fn restored(state: State, source: Source<'_>) -> Restored {
    let mut manifest = Manifest::default();
    manifest.logic = LOGIC;
    Restored {
        state,
        segments: source.segments(0),
        keys: None,
        config: config(),
        manifest,
        attachment: Vec::new(),
        next_row: 1,
        journal_bytes: 0,
    }
}

/// Makes the calls of a row again, in a frontier that has some pages. Returns whether it could.
pub fn read_row(row: &[u8]) -> bool {
    let Some((frontier, _)) = prepared() else { return false };
    let (parse, store) = (parse(), store());
    let source = Source::new(&store, &parse);
    let mut restored = restored(frontier.state, source);
    let is_read = restored.make_calls(1, row, &parse).is_ok();
    let _ = (
        restored.state.report(),
        restored.state.apply(&Call::ReleaseLeases, START),
    );
    is_read
}

/// Reads a state and the hosts after it, behind 16 zeros. Returns whether it could.
pub fn read_state(bytes: &[u8]) -> bool {
    let (state, hosts) = split(bytes).unwrap_or((bytes, &[]));
    let again = decode(state, &[], hosts).and_then(|mut state| {
        classify_pages(&mut state);
        encode(&mut state)
    });
    again.is_some_and(|[state, seen_set, hosts]| decode(&state, &seen_set, &hosts).is_some())
}

/// Reads a seen-set. Returns whether it could.
pub fn read_seen_set(seen_set: &[u8]) -> bool {
    let encoded = prepared().and_then(|(mut frontier, _)| encode(&mut frontier.state));
    encoded.is_some_and(|[state, _, hosts]| decode(&state, seen_set, &hosts).is_some())
}

/// Reads a page that has ended. Returns whether it could.
pub fn read_page(page: &[u8]) -> bool {
    postcard::from_bytes::<StoredPage>(page).is_ok()
}

/// Returns rows, states, seen-sets and pages that can be read.
pub fn seeds() -> Option<[Vec<Vec<u8>>; 4]> {
    let (mut frontier, leases) = prepared()?;
    let [state, seen_set, hosts] = encode(&mut frontier.state)?;
    let with_hosts = [&*state, &SEPARATOR, &*hosts].concat();
    let (mut rows, mut pages) = (Vec::new(), Vec::new());
    let seed = url("https://d.example/new?x=1")?;
    let now = START + Duration::from_secs(20);
    let host = seed.host();
    let policy = HostPolicy {
        delay: Some(Duration::from_secs(3)),
        closed_until: Some(now),
        ..HostPolicy::default()
    };
    let failure = Failure::new(FailureKind::Timeout, "no answer");
    let seeds = [Link::seed(seed)];
    let mut calls = vec![
        Call::AddSeed(seeds[..].into()),
        Call::SetPolicy(Cow::Borrowed(&host), Cow::Owned(policy)),
        Call::SetCrawlPolicy(Cow::Owned(CrawlPolicy {
            max_depth: Some(3),
            dropped: vec!["/x".to_owned()],
            ..CrawlPolicy::default()
        })),
        Call::GiveBack(leases.iter().take(1).map(|lease| lease.id).collect()),
        Call::ReleaseLeases,
    ];
    let mut settlements = Vec::new();
    for lease in &leases {
        settlements.push(match lease.entry.purpose {
            Purpose::Page => {
                let found = Link::found(url("https://a.example/found")?, 2, Arc::from(&*lease.entry.url));
                [lease.settle(Outcome::Done).with_links(vec![found])]
            }
            Purpose::Robots(_) => [lease.failed(failure.clone())],
            Purpose::Sitemap(_) | Purpose::Address => continue,
        });
    }
    calls.extend(settlements.iter().map(|one| Call::Settle(one[..].into())));
    for mut call in calls {
        // Each follows the same state.
        let (mut frontier, _) = prepared()?;
        let answer = frontier.state.apply(&call, now);
        if let (Call::Settle(settlements), [(settled, Some(entry))]) = (&call, &answer.settled[..]) {
            if settled.page > 0 {
                let page = StoredPage::settled(entry, &settlements.all[0], now);
                pages.push(postcard::to_allocvec(&page).ok()?);
            }
        }
        call.trim(&answer);
        let mut bytes = Vec::new();
        append(&(now, answer.check(), call), &mut bytes).ok()?;
        rows.push(journal::row(b"output 17", &bytes).ok()?);
    }
    let growing = ScalableBloomFilter::with_hashing(10_000, 0.01, config().seen_set.hash);
    let mut growing = SeenSet::Growing(growing.ok()?);
    growing.insert(b"https://a.example/");
    let growing = encode_seen_set(&growing).ok()?;
    Some([rows, vec![with_hosts], vec![seen_set, growing], pages])
}
