//! Servers that fail, and what the log says then.

use std::time::Instant;

use cluster::{LinkLog, LogError, Post, RedisLog, TIMEOUT, ToSend};

use crate::entries::numbers;
use crate::server::{Server, connect, entries, free_port, id, word};

#[test]
fn a_restarted_server_is_found_by_the_next_call() {
    let mut server = Server::start("--appendonly yes --appendfsync always");
    let (mut sender, mut receiver) = (server.log(0), server.log(1));
    sender.append(1, &entries(1..=3), 100).unwrap();
    server.restart();
    let error = sender.append(1, &entries([4]), 100).unwrap_err();
    assert!(matches!(error, LogError::NotReachable { .. }), "{error}");
    sender.append(1, &entries([4]), 100).unwrap();
    server.kill();
    for _ in 0..2 {
        assert!(matches!(receiver.words(), Err(LogError::NotReachable { .. })));
    }
    server.restart();
    assert_eq!(numbers(&mut receiver, &[0]), [(0, 1), (0, 2), (0, 3), (0, 4)]);
}

#[test]
fn a_server_that_hangs_is_an_error_in_time() {
    let server = Server::start("");
    let (mut sender, mut receiver) = (server.log(0), server.log(1));
    server.signal("STOP");
    let appends = |log: &mut RedisLog| log.append(1, &entries(1..=64), 100);
    let connects = |_: &mut RedisLog| connect(&format!("redis://:secret@{}/web?db=1", server.at())).map(drop);
    for call in [&appends as &dyn Fn(&mut RedisLog) -> _, &connects] {
        let begin = Instant::now();
        let error = call(&mut sender).unwrap_err().to_string();
        assert!(begin.elapsed() < TIMEOUT * 2, "{:?}", begin.elapsed());
        assert!(error.contains("(no answer within 2 s)"), "{error}");
    }
    server.signal("CONT");
    // The server may have what the failed call sent.
    sender.append(1, &entries(1..=65), 100).unwrap();
    assert_eq!(numbers(&mut receiver, &[0]).len(), 65);
}

#[test]
fn who_has_no_access_is_told_so_without_the_password() {
    let server = Server::start("--requirepass right/word");
    let open = Server::start("");
    open.cli("ACL SETUSER crawler on >wrongword ~other +@all");
    let access = |login: &str, server: &Server| {
        let log = connect(&format!("redis://{login}{}/web", server.at()));
        log.and_then(|mut log| log.crawl())
    };
    for login in [":right%2Fword@", "default:right%2Fword@"] {
        assert_eq!(access(login, &server), Ok(None));
    }
    for (login, server) in [
        ("", &server),
        (":wrongword@", &server),
        ("nobody:wrongword@", &server),
        (":wrongword@", &open),
        ("crawler:wrongword@", &open),
    ] {
        let error = access(login, server).unwrap_err();
        assert!(matches!(error, LogError::Refused { .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("wrongword"), "{error}");
    }
}

#[test]
fn a_server_without_memory_says_so_and_takes_entries_when_others_are_trimmed() {
    let server = Server::start("--maxmemory 4mb --maxmemory-policy noeviction");
    let (mut sender, mut receiver) = (server.log(0), server.log(1));
    let batch = vec![b'x'; 100_000];
    let mut append = |number| sender.append(1, &[(id(number), batch.clone())], 1000);
    let full = (1..100).find(|number| append(*number).is_err()).unwrap();
    let error = append(full).unwrap_err();
    assert!(matches!(error, LogError::OutOfMemory { .. }), "{error}");
    receiver.trim(0, id(full - 1)).unwrap();
    append(full).unwrap();
}

#[test]
fn the_master_is_found_behind_a_dead_server_and_a_replica() {
    let replica = Server::start("--replicaof 127.0.0.1 1");
    let master = Server::start("");
    let dead = free_port();
    let mut log = connect(&format!(
        "redis://127.0.0.1:{dead},{},{}/web",
        replica.at(),
        master.at()
    ))
    .unwrap();
    log.enter("id", 0, 3);
    log.say("word").unwrap();
    assert_eq!(master.cli("HGET web:id:words 0"), "word");
}

#[test]
fn a_full_server_is_freed_before_the_word_is_said() {
    let server = Server::start("--maxmemory 4mb --maxmemory-policy noeviction");
    let (mut sender, receiver) = (server.log(0), server.log(1));
    let batch = vec![b'x'; 100_000];
    let full = (1..100).find(|number| sender.append(1, &[(id(*number), batch.clone())], 1000).is_err());
    let full = full.unwrap();
    server.cli("CONFIG SET maxmemory 3mb");
    let mut post = Post::new(receiver, "1/3".parse().unwrap(), 256);
    let word = Some(word(1));
    let trim = vec![(0, id(full - 1))];
    post.send(ToSend {
        word,
        trim,
        ..ToSend::default()
    })
    .unwrap();
    assert_eq!(numbers(post.log_mut(), &[0]), []);
    assert_eq!(post.words().unwrap().0.len(), 1);
}
