//! What the fuzz targets call: reading of what is stored, without a store. Its checksums would keep wrong bytes out.

use std::sync::Arc;
use std::time::Duration;

use sieve::{Filter as _, SeenSet};

use super::super::bloom_filter;
use super::calls::{StoredSettlement, StoredUrl};
use super::keys::{KEY_SIZES, KeySizes, SharedKeys};
use super::restore::Restored;
use super::seen_set::{encode_seen_set, read_seen_set as decode_seen_set, with_keys};
use super::shelf::SharedStore;
use super::sizes::SIZES;
use super::state::EncodedState;
use super::{Call, PageRecord, record};
use crate::appended::append;
use crate::config::{FrontierConfig, RetryPolicy};
use crate::failure::{Failure, FailureKind};
use crate::fingerprint::{ContentHash, Fingerprint, SimHash};
use crate::hosts::HostReader;
use crate::lease::{Lease, Leasing, Task};
use crate::link::Link;
use crate::rules::{ParseRules, RobotsRules};
use crate::scope::{Reach, ScopeConfig};
use crate::settlement::{Outcome, RobotsOutcome};
use crate::store::{Batch, Space, Store, StoreError};
use crate::time::Time;
use crate::url::CanonicalUrl;
use crate::{Canonicalizer, Frontier};

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
        exact: true,
        capacity: 100,
        hashing: sieve::Hashing::Murmur3 { seed: 7 },
        delay: Duration::from_secs(1),
        scope: ScopeConfig {
            reach: Reach::Any,
            ..ScopeConfig::default()
        },
        retries: RetryPolicy::default(),
        max_pages_per_host: Some(7),
        ..FrontierConfig::default()
    }
}

/// A store without values.
#[derive(Debug)]
struct Empty;

impl Store for Empty {
    fn commit(&mut self, _batch: &Batch, _sync: bool) -> Result<(), StoreError> {
        Ok(())
    }

    fn range(
        &self,
        _space: Space,
        _keys: std::ops::RangeInclusive<u64>,
        _visit: &mut dyn FnMut(u64, Vec<u8>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    fn last(&self, _space: Space, _at_or_below: u64) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        Ok(None)
    }

    fn last_key(&self, _space: Space) -> Option<u64> {
        None
    }

    fn bytes(&self) -> u64 {
        0
    }
}

fn store() -> SharedStore {
    SharedStore::new(Box::new(Empty))
}

/// What lies between a state and its hosts.
const SEPARATOR: [u8; 16] = [0; 16];

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.windows(SEPARATOR.len()).position(|window| window == SEPARATOR)?;
    Some((&bytes[..at], &bytes[at + SEPARATOR.len()..]))
}

fn decode(encoded: &EncodedState, hosts: &[u8]) -> Option<Frontier> {
    let parse = parse();
    let mut reader = HostReader::new(&parse);
    reader.read(hosts).ok()?;
    let hosts = reader.finish().ok()?;
    let sizes = KeySizes {
        verified: 1 << 10,
        ..KEY_SIZES
    };
    let keys = SharedKeys::new(store(), sizes);
    let most = encoded.seen_set.len() as u64;
    let seen_set = decode_seen_set(&mut encoded.seen_set.as_slice(), most, &config()).ok()?;
    let seen_set = with_keys(seen_set, &config(), Some(keys));
    let decoded = Frontier::decode_state(&encoded.state, seen_set, hosts, &config(), &parse, &store(), SIZES);
    decoded.ok().map(|(frontier, _)| frontier)
}

/// Encodes a frontier and its hosts.
fn encode(frontier: &mut Frontier) -> Option<(EncodedState, Vec<u8>)> {
    let state = frontier.encode_state(0).ok()?;
    let hosts = frontier.hosts().table_mut();
    hosts.begin_copy();
    Some((state, hosts.copy_more(usize::MAX).ok()?.hosts))
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
    let mut frontier = Frontier::with_seen_set(config(), bloom_filter(&config()).ok()?).ok()?;
    frontier.add_seed(&url("https://a.example/")?, START).ok()?;
    let texts = ["https://a.example/1", "http://b.example:81/2?q", "https://c.example/3"];
    let referrer: Arc<str> = "https://a.example/".into();
    let links = texts.map(|text| Some(Link::found(url(text)?, 1, Arc::clone(&referrer))));
    let links: Vec<Link> = links.into_iter().flatten().collect();
    frontier.offer(&links, START).ok()?;
    let mut asked = leases(&mut frontier, START);
    for _ in 0..2 {
        if let Some(Task::Robots(robots)) = asked.pop().as_ref().map(Lease::task) {
            let known = RobotsOutcome::known(Rules(b"/none".to_vec()));
            frontier.settle(&[robots.settle(known)], START).ok()?;
        }
    }
    let later = START + Duration::from_secs(5);
    asked.extend(leases(&mut frontier, later));
    classify_pages(&mut frontier);
    Some((frontier, asked))
}

/// Compares a page, one that is near it, and one without a text.
fn classify_pages(frontier: &mut Frontier) {
    for (content, text) in [(1, Some(0b0111)), (2, Some(0b0001)), (3, None), (4, Some(u64::MAX))] {
        let fingerprint = Fingerprint::new(Some(ContentHash::from(content)), text.map(SimHash::from));
        let url = format!("https://a.example/compared/{content}");
        frontier.clusters.classify(&url, fingerprint);
    }
}

/// Makes the calls of a row again, in a frontier that has some pages. Returns whether it could.
pub fn read_row(row: &[u8]) -> bool {
    let Some((frontier, _)) = prepared() else { return false };
    let mut restored = Restored::of(frontier, config(), store());
    let is_read = restored.make_calls(1, row, &parse()).is_ok();
    let mut frontier = restored.into_frontier();
    let _ = (frontier.report(), frontier.release_leases(START));
    is_read
}

/// Reads a state and the hosts after it, behind 16 zeros. Returns whether it could.
pub fn read_state(bytes: &[u8]) -> bool {
    let (state, hosts) = split(bytes).unwrap_or((bytes, &[]));
    let encoded = EncodedState {
        state: state.to_vec(),
        seen_set: Vec::new(),
    };
    let again = decode(&encoded, hosts).and_then(|mut frontier| {
        classify_pages(&mut frontier);
        encode(&mut frontier)
    });
    again.is_some_and(|(again, hosts)| decode(&again, &hosts).is_some())
}

/// Reads a seen-set. Returns whether it could.
pub fn read_seen_set(seen_set: &[u8]) -> bool {
    let Some((mut state, hosts)) = prepared().and_then(|(mut frontier, _)| encode(&mut frontier)) else {
        return false;
    };
    state.seen_set = seen_set.to_vec();
    decode(&state, &hosts).is_some()
}

/// Reads the records of a row. Returns whether it could.
pub fn read_records(records: &[u8]) -> bool {
    let mut bytes = 0;
    let mut visit = |record: PageRecord<'_>| bytes += record.url.len();
    record::visit_row(records, &mut visit).is_ok()
}

/// Returns rows, states, seen-sets and records that can be read.
pub fn seeds() -> Option<[Vec<Vec<u8>>; 4]> {
    let (mut frontier, leases) = prepared()?;
    let (state, hosts) = encode(&mut frontier)?;
    let with_hosts = [&*state.state, &[0; 16], &*hosts].concat();
    let (mut rows, mut records) = (Vec::new(), Vec::new());
    let add = |rows: &mut Vec<Vec<u8>>, calls: &[Call<'_>]| {
        let mut bytes = Vec::new();
        for call in calls {
            append(call, &mut bytes).ok()?;
        }
        rows.push(super::calls::row(b"output 17", &bytes).ok()?);
        Some(())
    };
    let seed = url("https://d.example/new?x=1")?;
    let now = START + Duration::from_secs(20);
    let host = seed.host();
    let failure = Failure::new(FailureKind::Timeout, "no answer");
    let calls = [
        Call::AddSeed {
            url: StoredUrl::of(&seed),
            now,
            is_new: true,
        },
        Call::SetDelay {
            host: host.clone(),
            delay: Duration::from_secs(3),
            now,
        },
        Call::Block { host, until: now, now },
        Call::GiveBack {
            leases: leases.iter().take(1).map(|lease| lease.id).collect(),
            now,
            ended: 1,
        },
        Call::ReleaseLeases { now },
    ];
    for call in &calls {
        add(&mut rows, std::slice::from_ref(call))?;
    }
    for lease in leases {
        let (settlement, records_too) = match lease.task() {
            Task::Page(page) => {
                let found = Link::found(url("https://a.example/found")?, 2, Arc::from(&*lease.entry.url));
                (page.settle(Outcome::Done).with_links(vec![found]), true)
            }
            Task::Robots(robots) => {
                let failed = RobotsOutcome::Failed {
                    failure: failure.clone(),
                    retry_after: None,
                };
                (robots.settle(failed), false)
            }
            Task::Sitemap(_) | Task::Address(_) => continue,
        };
        let settled = frontier.settle(std::slice::from_ref(&settlement), now).ok()?.pop()?;
        let call = Call::Settle {
            settlements: vec![StoredSettlement::new(&settlement, &settled)],
            now,
        };
        add(&mut rows, &[call])?;
        if let Some(record) = PageRecord::settled(&lease.entry, &settlement, &settled, now).filter(|_| records_too) {
            let mut bytes = Vec::new();
            record::add(&mut bytes, &record).ok()?;
            records.push(bytes);
        }
    }
    let mut growing = SeenSet::growing(10_000, 0.01, config().hashing).ok()?;
    growing.insert(b"https://a.example/");
    let growing = encode_seen_set(&growing).ok()?;
    Some([rows, vec![with_hosts], vec![state.seen_set, growing], records])
}
