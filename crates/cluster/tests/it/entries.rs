//! What is appended, read and trimmed.

use cluster::{EntryId, LinkLog, RedisLog};

use crate::server::{Server, entries, id};

/// Reads streams from the start, and returns sender and number of each entry.
pub(crate) fn numbers(log: &mut RedisLog, from: &[u32]) -> Vec<(u32, u64)> {
    let after: Vec<_> = from.iter().map(|from| (*from, EntryId::default())).collect();
    let read = log.read(&after, 1000).unwrap();
    for entry in &read {
        assert_eq!(
            String::from_utf8(entry.batch.clone()).unwrap(),
            format!("batch {}", entry.id.number)
        );
    }
    read.iter().map(|entry| (entry.from, entry.id.number)).collect()
}

#[test]
fn entries_whose_ids_do_not_rise_are_left_out_and_the_others_appended() {
    let server = Server::start("");
    let (mut sender, mut receiver) = (server.log(0), server.log(1));
    sender.append(1, &[], 100).unwrap();
    assert_eq!(sender.last(1), Ok(None));
    sender.append(1, &entries([1, 2, 2, 1, 3]), 100).unwrap();
    sender.append(1, &entries([2, 3, 4]), 100).unwrap();
    sender.append(1, &[(EntryId::default(), Vec::new())], 100).unwrap();
    assert_eq!(numbers(&mut receiver, &[0]), [(0, 1), (0, 2), (0, 3), (0, 4)]);
    assert_eq!(sender.last(1), Ok(Some(id(4))));
    assert_eq!(sender.last(2), Ok(None));
}

#[test]
fn ids_rise_by_term_then_round_then_number_up_to_their_largest_values() {
    let server = Server::start("");
    let (mut sender, mut receiver) = (server.log(0), server.log(1));
    let last = EntryId {
        term: u64::MAX,
        round: (1 << 24) - 1,
        number: (1 << 40) - 1,
    };
    let ids = [
        id(1),
        EntryId { round: 3, ..id(0) },
        EntryId {
            term: 8,
            round: 0,
            number: 0,
        },
        last,
    ];
    assert!(ids.is_sorted());
    for id in ids {
        sender.append(1, &[(id, vec![0, 255, 13, 10])], 100).unwrap();
        assert_eq!(sender.last(1), Ok(Some(id)));
    }
    let read = receiver.read(&[(0, EntryId::default())], 100).unwrap();
    assert_eq!(read.iter().map(|entry| entry.id).collect::<Vec<_>>(), ids);
    assert!(read.iter().all(|entry| entry.batch == [0, 255, 13, 10]));
    assert_eq!(receiver.read(&[(0, ids[2])], 100).unwrap(), read[3..]);
}

#[test]
fn a_stream_keeps_the_last_entries_of_its_window() {
    let server = Server::start("");
    let mut sender = server.log(0);
    sender.append(1, &entries(1..=500), 150).unwrap();
    let kept = numbers(&mut server.log(1), &[0]);
    assert_eq!(kept, (351..=500).map(|number| (0, number)).collect::<Vec<_>>());
}

#[test]
fn each_stream_is_read_behind_its_own_position() {
    let server = Server::start("");
    server.log(0).append(2, &entries(1..=5), 100).unwrap();
    server.log(1).append(2, &entries(1..=9), 100).unwrap();
    server.log(0).append(1, &entries(20..=21), 100).unwrap();
    let mut receiver = server.log(2);
    let read = receiver.read(&[(0, id(1)), (1, id(6))], 2).unwrap();
    let read: Vec<_> = read.iter().map(|entry| (entry.from, entry.id.number)).collect();
    assert_eq!(read, [(0, 2), (0, 3), (1, 7), (1, 8)]);
    assert_eq!(receiver.read(&[(0, id(5)), (1, id(9))], 2).unwrap(), []);
    assert_eq!(receiver.read(&[], 2).unwrap(), []);
}

#[test]
fn trimming_removes_entries_up_to_an_id_and_keeps_the_last_id() {
    let server = Server::start("");
    let (mut sender, mut receiver) = (server.log(0), server.log(1));
    receiver.trim(0, id(1)).unwrap();
    sender.append(1, &entries(1..=5), 100).unwrap();
    receiver.trim(0, id(3)).unwrap();
    assert_eq!(numbers(&mut receiver, &[0]), [(0, 4), (0, 5)]);
    // Above the last round of the term.
    receiver
        .trim(
            0,
            EntryId {
                term: 7,
                round: u32::MAX,
                number: u64::MAX,
            },
        )
        .unwrap();
    assert_eq!(numbers(&mut receiver, &[0]), []);
    assert_eq!(sender.last(1), Ok(Some(id(5))));
    sender.append(1, &entries([5, 6]), 100).unwrap();
    assert_eq!(numbers(&mut receiver, &[0]), [(0, 6)]);
}

#[test]
fn an_emptied_server_takes_entries_from_the_start() {
    let server = Server::start("");
    let (mut sender, mut receiver) = (server.log(0), server.log(1));
    sender.append(1, &entries(1..=5), 100).unwrap();
    assert_eq!(server.cli("FLUSHALL"), "OK");
    assert_eq!(sender.last(1), Ok(None));
    assert_eq!(numbers(&mut receiver, &[0]), []);
    receiver.trim(0, id(5)).unwrap();
    sender.append(1, &entries([2]), 100).unwrap();
    assert_eq!(numbers(&mut receiver, &[0]), [(0, 2)]);
}
