//! Words, orders, the id of the crawl, and the settings of the server.

use cluster::LinkLog;

use crate::server::{Server, connect, entries};

#[test]
fn an_observer_reads_the_words_of_all_partitions_and_gives_orders() {
    let server = Server::start("");
    let mut partition = server.log(2);
    server.log(0).say("first").unwrap();
    partition.say("old").unwrap();
    partition.say("new \u{1F980}\r\n").unwrap();
    let mut observer = server.log(0);
    observer.observe("id");
    observer.order("stop", "now").unwrap();
    let mut words = partition.words().unwrap();
    words.sort();
    let expected = [("0", "first"), ("2", "new \u{1F980}\r\n"), ("stop", "now")];
    assert_eq!(words, expected.map(|(field, text)| (field.to_owned(), text.to_owned())));
    observer.observe("another crawl");
    assert_eq!(observer.words(), Ok(Vec::new()));
}

#[test]
fn the_first_id_of_a_crawl_stays_until_it_is_replaced() {
    let server = Server::start("");
    let mut log = server.log(0);
    assert_eq!(log.crawl(), Ok(None));
    assert_eq!(log.set_crawl("a", true).unwrap(), "a");
    assert_eq!(log.set_crawl("b", true).unwrap(), "a");
    assert_eq!(log.set_crawl("c", false).unwrap(), "c");
    assert_eq!(log.crawl(), Ok(Some("c".to_owned())));
    let mut other = connect(&format!("redis://{}/web?db=3", server.at())).unwrap();
    assert_eq!(other.crawl(), Ok(None));
}

#[test]
fn what_is_left_of_a_crawl_expires() {
    let server = Server::start("");
    let mut log = server.log(0);
    server.log(1).append(0, &entries([1]), 10).unwrap();
    log.append(1, &entries([1]), 10).unwrap();
    log.say("ended").unwrap();
    log.set_crawl("id", false).unwrap();
    log.expire(1000).unwrap();
    for key in ["web:crawl", "web:id:words", "{web:id:0}:from:1"] {
        let seconds: i32 = server.cli(&format!("TTL {key}")).parse().unwrap();
        assert!((900..=1000).contains(&seconds), "{key}: {seconds}");
    }
    assert_eq!(server.cli("TTL {web:id:1}:from:0"), "-1");
}

#[test]
fn the_eviction_policy_is_told_to_those_who_may_ask() {
    let server = Server::start("--maxmemory-policy allkeys-lru");
    assert_eq!(server.log(0).eviction_policy(), Ok(Some("allkeys-lru".to_owned())));
    server.cli("ACL SETUSER crawler on >secret ~web:* ~{web:* +@all -config -cluster");
    let mut log = connect(&format!("redis://crawler:secret@{}/web", server.at())).unwrap();
    log.enter("id", 0, 3);
    assert_eq!(log.eviction_policy(), Ok(None));
    log.append(1, &entries([1]), 10).unwrap();
    log.say("word").unwrap();
}
