//! Queues that are longer than what is in memory of them.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use frontier::{Directory, LockHolder, Outcome};

use super::TemporaryDir;
use crate::common;
use crate::shared::calls::Call;
use crate::shared::pair::{Pair, Step};

const PAGES: usize = 10_000;
const AT_ONCE: usize = 200;

#[test]
fn every_page_of_a_long_queue_is_leased_once_over_kills() {
    let mut config = common::config();
    config.politeness.per_host = NonZeroU32::new(AT_ONCE as u32).unwrap();
    let dir = TemporaryDir::new();
    let path = dir.0.clone();
    let mut pair = Pair::new(config, dir);
    let link = |n: usize| common::link(&format!("http://site.example/a/{:060}/{n}", n * 7_919 % 10_007));
    for page in 0..40 {
        pair.make(Step::Offer((page * 250..(page + 1) * 250).map(link).collect()));
        pair.persist(page % 16 == 7);
        if page % 10 == 9 {
            pair.kill();
        }
    }
    check_beside(&path);
    let mut settled = Vec::new();
    for round in 1.. {
        pair.call(Call::Lease(AT_ONCE));
        pair.persist(round % 11 == 0);
        if pair.out.is_empty() {
            break;
        }
        if round % 7 == 0 {
            pair.kill();
            continue;
        }
        for lease in std::mem::take(&mut pair.out) {
            settled.push(lease.entry.url.to_string());
            pair.make(Step::Settle(common::end(&lease, Outcome::Done)));
        }
    }
    let distinct: HashSet<_> = settled.iter().collect();
    assert_eq!((settled.len(), distinct.len()), (PAGES, PAGES));
}

/// Looks at the queue beside the frontier that has the directory open.
fn check_beside(dir: &Path) {
    let read = Directory::new(dir).read(Arc::new(super::parse)).unwrap().frontier;
    let mut waiting = HashSet::new();
    let mut visit = |entry: frontier::Entry| {
        waiting.insert(entry.url);
        ControlFlow::Continue(())
    };
    read.visit_waiting(&mut visit).unwrap();
    assert_eq!((waiting.len(), read.report().queued), (PAGES, PAGES as u64));
    let holder = Directory::new(dir).lock_holder().unwrap();
    assert_eq!(holder, LockHolder::Process(Some(std::process::id())));
}
