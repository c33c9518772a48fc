//! A partition that is killed and opened again.

use frontier::exchange::Received;
use frontier::{Frontier, FrontierConfig, Outcome, Partition, Reach, Verdict};

use super::TemporaryDir;
use crate::common::{self, START, commit, end, only, url};
use crate::shared::pair::Place as _;

fn config(index: u32) -> FrontierConfig {
    let mut config = common::config();
    config.partition = Some(Partition::new(index, 2).unwrap());
    (config.scope.reach, config.scope.exclude) = (Reach::Site, vec!["/closed".to_owned()]);
    config
}

/// The first URL of a partition with this path.
fn url_of(owner: u32, path: &str) -> frontier::CanonicalUrl {
    let partition = Partition::new(owner, 2).unwrap();
    let mut urls = (0..).map(|n| url(&format!("http://site{n}.example{path}")));
    urls.find(|url| partition.owns(url)).unwrap()
}

#[test]
fn what_a_redirected_seed_has_brought_into_reach_stays_there_though_its_target_is_refused() {
    let mut sender = Frontier::in_memory(config(0)).unwrap();
    sender.add_seed(&url_of(0, "/"), START).unwrap();
    let lease = only(&mut sender, START);
    let target = url_of(1, "/closed");
    let redirected = end(&lease, Outcome::Redirected).with_links(vec![lease.entry.redirected(target.clone())]);
    commit(&mut sender, redirected, START);
    sender.persist(b"", START).unwrap();
    let batch = sender.outgoing(1, 0).unwrap().unwrap();

    let dir = TemporaryDir::new();
    let mut receiver = dir.open(config(1), START).frontier;
    let received = receiver.receive(0, &batch, START).unwrap();
    assert!(matches!(&received, Received::Accepted { verdicts, .. } if matches!(verdicts[..], [Verdict::Refused(_)])));
    assert!(receiver.reaches(&target));
    receiver.persist(b"", START).unwrap();
    let told = receiver.peer(0);
    drop(receiver);
    let reopened = dir.open(config(1), START).frontier;
    assert!(reopened.reaches(&target));
    assert_eq!(reopened.peer(0), told);
}
