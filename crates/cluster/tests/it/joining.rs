//! Joining a crawl while Redis starts, fails over or dies.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use cluster::{JoinError, Joining, LogError};
use crawler::peers::Peers as _;

use crate::server::{Server, free_port};

/// The answer of a single server to a new connection.
const HERE: &str = "-ERR This instance has cluster support disabled\r\n";

fn joining(port: u16) -> Joining {
    Joining {
        address: format!("redis://127.0.0.1:{port}/web").parse().unwrap(),
        partition: "0/1".parse().unwrap(),
        rules: 0,
        seeds: 0,
        kept: Vec::new(),
        has_answered: false,
        accepts_loss: false,
        owner: String::new(),
    }
}

/// Answers one connection with these texts, one for each time that it sends something, and dies.
fn answer_and_die(listener: TcpListener, answers: &[&str]) {
    let (mut stream, _) = listener.accept().unwrap();
    for answer in answers {
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        stream.write_all(answer.as_bytes()).unwrap();
    }
}

#[test]
fn a_start_waits_for_redis_that_starts_fails_over_is_full_or_dies_meanwhile() {
    for answers in [
        &[HERE][..],
        &["-LOADING Redis is loading the dataset in memory\r\n"],
        &[
            HERE,
            "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
        ],
        &[HERE, "-CLUSTERDOWN The cluster is down\r\n"],
        &[
            HERE,
            "$-1\r\n",
            "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
        ],
        &["-ERR max number of clients reached\r\n"],
    ] {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let server = thread::spawn(move || {
            answer_and_die(listener, answers);
            Server::start_at(port, "")
        });
        joining(port)
            .join()
            .unwrap_or_else(|error| panic!("{answers:?}: {error}"))
            .leave();
        let server = server.join().unwrap();
        assert!(server.cli("GET web:crawl").contains("\"partitions\":1"), "{answers:?}");
    }
}

#[test]
fn a_new_crawl_waits_only_for_an_address_where_somebody_has_answered() {
    let mut server = Server::start("");
    let mut checked = joining(server.port);
    checked.check().unwrap();
    server.kill();
    let listener = TcpListener::bind(("127.0.0.1", server.port)).unwrap();
    let restarted = thread::spawn(move || {
        answer_and_die(listener, &[]);
        server.restart();
        server
    });
    checked.join().unwrap().leave();
    assert_eq!(restarted.join().unwrap().cli("EXISTS web:crawl"), "1");

    let mut joining = joining(free_port());
    for result in [joining.check(), joining.join().map(drop)] {
        assert!(
            matches!(result, Err(JoinError::Log(LogError::NotReachable { .. }))),
            "{result:?}"
        );
    }
}
