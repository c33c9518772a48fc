//! A Redis Cluster.

use cluster::{EntryId, LinkLog, LogError};

use crate::entries::numbers;
use crate::server::{Server, entries, eventually};

const BOTH: [(u32, EntryId); 2] = {
    let start = EntryId {
        term: 0,
        round: 0,
        number: 0,
    };
    [(0, start), (1, start)]
};

fn node() -> Server {
    Server::start("--cluster-enabled yes --cluster-node-timeout 1000 --repl-diskless-sync-delay 0")
}

/// Makes a cluster of three masters. The last of them owns the slot of a key.
fn masters(key: &str) -> [Server; 3] {
    let mut masters = [node(), node(), node()];
    let at = masters.each_ref().map(Server::at).join(" ");
    masters[0].cli(&format!("--cluster create {at} --cluster-yes"));
    let is_ready = |server: &Server| server.cli("CLUSTER INFO").contains("cluster_state:ok");
    eventually(|| masters.iter().all(is_ready).then_some(()));
    masters.sort_by_key(|server| !server.cli(&format!("EXISTS {key}")).contains("MOVED"));
    masters
}

/// What two partitions have sent with the numbers up to this one.
fn sent(until: u64) -> Vec<(u32, u64)> {
    let from = |from| (1..=until).map(move |number| (from, number));
    from(0).chain(from(1)).collect()
}

#[test]
fn a_slot_that_moves_and_a_master_that_dies_lose_no_entries() {
    let streams = ["{web:id:2}:from:0", "{web:id:2}:from:1"];
    let [other, mut target, owner] = masters(streams[0]);
    // The only node of the address is the one that dies.
    let mut logs = [0, 1, 2].map(|index| target.log(index));
    for log in &mut logs {
        log.say("word").unwrap();
    }
    let [first, second, receiver] = &mut logs;
    first.append(2, &entries(1..=3), 100).unwrap();
    second.append(2, &entries(1..=3), 100).unwrap();
    assert_eq!(numbers(receiver, &[0, 1]), sent(3));

    // While the slot moves, one of the streams is at the target already.
    let slot = owner.cli(&format!("CLUSTER KEYSLOT {}", streams[0]));
    let (target_id, owner_id) = (target.cli("CLUSTER MYID"), owner.cli("CLUSTER MYID"));
    target.cli(&format!("CLUSTER SETSLOT {slot} IMPORTING {owner_id}"));
    owner.cli(&format!("CLUSTER SETSLOT {slot} MIGRATING {target_id}"));
    let migrate = |stream| owner.cli(&format!("MIGRATE 127.0.0.1 {} {stream} 0 5000", target.port));
    assert_eq!(migrate(streams[1]), "OK");
    first.append(2, &entries(3..=4), 100).unwrap();
    second.append(2, &entries(3..=4), 100).unwrap();
    assert_eq!([numbers(receiver, &[0]), numbers(receiver, &[1])].concat(), sent(4));
    let error = receiver.read(&BOTH, 9).unwrap_err();
    assert!(matches!(error, LogError::NotReady { .. }), "{error}");
    assert_eq!(migrate(streams[0]), "OK");
    for server in [&target, &owner, &other] {
        server.cli(&format!("CLUSTER SETSLOT {slot} NODE {target_id}"));
    }
    assert_eq!(numbers(receiver, &[0, 1]), sent(4));

    // The target fails over to its replica.
    let replica = node();
    let nodes = format!("{} {}", replica.at(), owner.at());
    replica.cli(&format!(
        "--cluster add-node {nodes} --cluster-slave --cluster-master-id {target_id}"
    ));
    let written = |server: &Server, is_connected: &str| {
        let info = server.cli("INFO replication");
        let mut lines = info.lines().filter(|_| info.contains(is_connected));
        lines
            .find(|line| line.starts_with("master_repl_offset:"))
            .map(str::to_owned)
    };
    eventually(|| (written(&target, "state=online")? == written(&replica, "link_status:up")?).then_some(()));
    target.kill();
    eventually(|| first.append(2, &entries(5..=6), 100).ok());
    eventually(|| second.append(2, &entries(5..=6), 100).ok());
    eventually(|| receiver.read(&BOTH, 9).ok());
    assert_eq!(numbers(receiver, &[0, 1]), sent(6));
    assert_eq!(eventually(|| receiver.words().ok()).len(), 3);
}
