//! Where keys, hosts and the store meet: kills and errors at the moments between them.

use std::sync::Arc;

use sieve::OnSaturation;

use super::super::sizes::Sizes;
use super::common::{START, config, end, pages, url};
use super::stores::{Recorder, SMALL, open_sized};
use crate::config::{FrontierConfig, PolitenessConfig};
use crate::link::Link;
use crate::{Frontier, Leasing, OpenError, Outcome, Time};

const SIZES: Sizes = Sizes {
    min_journal_bytes: u64::MAX,
    part_bytes: 10_000,
    parts_at_once: 4,
    digests_of_part: 50,
    fresh_digests: 500,
    resident_bytes: u64::MAX,
    fresh_bytes: 8 << 20,
    ..SMALL
};

fn open(recorder: &Recorder, config: FrontierConfig, sizes: Sizes) -> Result<Frontier, OpenError> {
    Ok(open_sized(recorder.clone(), config, START, sizes)?.frontier)
}

/// Fetches what is due, up to `at_once` pages in each row. Returns the number of pages.
fn fetch_all(frontier: &mut Frontier, now: Time, at_once: usize) -> usize {
    let mut fetched = 0;
    while let Leasing::Ready(leases) = frontier.lease(now, at_once).unwrap() {
        fetched += leases.len();
        let settlements: Vec<_> = leases.iter().map(|lease| end(lease, Outcome::Done)).collect();
        frontier.settle(&settlements, now).unwrap();
        frontier.persist(b"", now).unwrap();
    }
    fetched
}

#[test]
fn a_last_checkpoint_may_finish_one_merge_of_runs_and_begin_the_next() {
    let recorder = Recorder::default();
    let sizes = Sizes {
        part_bytes: 64,
        parts_at_once: 1,
        digests_of_part: 2,
        fresh_digests: 4,
        ..SIZES
    };
    let mut config = config();
    config.seen_set.exact = true;
    config.seen_set.on_saturation = OnSaturation::Warn;
    config.seen_set.capacity = 1_000;
    let mut frontier = open(&recorder, config, sizes).unwrap();
    // Three runs of the second tier, and four of the first.
    let mut next = 0;
    for keys in [16, 16, 16, 4, 4, 4, 4] {
        frontier
            .offer(&pages("http://site.example/", next + keys)[next..], START)
            .unwrap();
        next += keys;
        frontier.persist(b"", START).unwrap();
    }
    frontier.checkpoint(b"one", START).unwrap();
    frontier.checkpoint(b"two", START).unwrap();
    frontier.checkpoint(b"three", START).unwrap();
}

/// A store that cannot read segments for a moment.
#[derive(Debug, Clone)]
struct FailsOnce {
    recorder: Recorder,
    /// The reads of segments before the one that fails.
    left: Arc<std::sync::atomic::AtomicI64>,
}

impl crate::store::Store for FailsOnce {
    fn commit(&mut self, batch: &crate::store::Batch, sync: bool) -> Result<(), crate::StoreError> {
        self.recorder.commit(batch, sync)
    }

    fn range(
        &self,
        space: crate::store::Space,
        keys: std::ops::RangeInclusive<u64>,
        visit: &mut crate::store::Visit<'_>,
    ) -> Result<(), crate::StoreError> {
        self.recorder.range(space, keys, visit)
    }

    fn last(&self, space: crate::store::Space, key: u64) -> Result<Option<(u64, Vec<u8>)>, crate::StoreError> {
        use std::sync::atomic::Ordering;
        if space == crate::store::Space::Segment && (-2..=0).contains(&self.left.fetch_sub(1, Ordering::SeqCst)) {
            let path = std::path::Path::new("the store");
            return Err(crate::StoreError::damaged(path, "read error, for a moment".to_owned()));
        }
        self.recorder.last(space, key)
    }

    fn pages(
        &self,
        order: crate::store::PageOrder,
        from: (u64, u64),
        visit: &mut crate::store::VisitUntil<'_>,
    ) -> Result<(), crate::StoreError> {
        self.recorder.pages(order, from, visit)
    }

    fn last_key(&self, space: crate::store::Space) -> Option<u64> {
        self.recorder.last_key(space)
    }
}

#[test]
fn a_read_that_fails_while_options_change_loses_no_host() {
    use std::time::Duration;
    const HOSTS: usize = 60;
    let slow = |seconds| FrontierConfig {
        politeness: PolitenessConfig {
            delay: Duration::from_secs(seconds),
            ..config().politeness
        },
        ..config()
    };
    let recorder = Recorder::default();
    let mut frontier = open(&recorder, slow(10), SMALL).unwrap();
    for host in 0..HOSTS {
        for page in 0..2 {
            let page = url(&format!("http://host{host}.example/{page}"));
            frontier
                .offer(&[Link::found(page, 1, "http://a.example/".into())], START)
                .unwrap();
        }
        frontier.persist(b"", START).unwrap();
    }
    assert_eq!(fetch_all(&mut frontier, START, 3), HOSTS);
    frontier.checkpoint(b"", START).unwrap();
    let memory = frontier.report().memory.unwrap();
    assert!(memory.hosts_on_disk > 20, "{memory:?} {}", frontier.report().hosts);
    drop(frontier);

    // The delay changes, and one read fails.
    let store = FailsOnce {
        recorder: recorder.clone(),
        left: Arc::new(3.into()),
    };
    drop(open_sized(store.clone(), slow(5), START, SMALL));
    let left = store.left.load(std::sync::atomic::Ordering::SeqCst);
    assert!(left < 0, "a read has failed: {left}");

    // It reads again.
    let mut frontier = open(&recorder, slow(5), SMALL).unwrap();
    let later = START + Duration::from_secs(3_600);
    assert_eq!(
        fetch_all(&mut frontier, later, 3),
        HOSTS,
        "{:?}",
        frontier.lease(later, 10)
    );
}
