//! Words, orders, the id of the crawl, and the settings of the server.

use cluster::{End, LinkLog, Overview, Post, ToSend};

use crate::server::{Server, connect, entries, word};

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

#[test]
fn the_time_of_a_word_is_that_of_redis_and_one_that_differs_from_it_much_is_silent() {
    let server = Server::start("");
    server.cli(&format!("SET web:crawl {}", founded("id", 3)));
    let redis_time = || server.cli("TIME").lines().next().unwrap().parse::<u64>().unwrap();
    let mut post = Post::new(server.log(0), "0/3".parse().unwrap(), 256);
    // The clock of this machine does not matter: Redis says what time it is.
    let before = redis_time();
    post.send(ToSend {
        word: Some(word(7)),
        ..ToSend::default()
    })
    .unwrap();
    let at = post.words().unwrap().0[&0].status.at;
    assert!((before..=redis_time()).contains(&(at / 1000)), "{at}");
    // A process on a machine whose clock was half a minute ahead has died.
    let mut ahead = word(8);
    ahead.status.at = at + 30_000;
    server.log(1).say(&serde_json::to_string(&ahead).unwrap()).unwrap();
    let overview = Overview::read(format!("redis://{}/web", server.at()).parse().unwrap()).unwrap();
    let states: Vec<_> = overview.partitions.iter().map(|row| row.state).collect();
    assert_eq!(states, ["running", "silent", "silent"]);
}

#[test]
fn no_process_is_to_be_started_once_the_crawl_has_ended() {
    let server = Server::start("");
    server.cli(&format!("SET web:crawl {}", founded("id", 3)));
    for (ended, problems) in [(None, 3), (Some(End::Complete), 0)] {
        let word = cluster::Word { ended, ..word(7) };
        server.log(0).say(&serde_json::to_string(&word).unwrap()).unwrap();
        let overview = Overview::read(format!("redis://{}/web", server.at()).parse().unwrap()).unwrap();
        assert_eq!(overview.problems.len(), problems, "{:?}", overview.problems);
    }
}

#[test]
fn what_cannot_be_read_is_named_by_an_overview() {
    let server = Server::start("");
    let overview = || Overview::read(format!("redis://{}/web", server.at()).parse().unwrap());
    let unreadable = |key: &str| {
        let error = overview().unwrap_err().to_string();
        assert!(
            error.contains(&format!("under {key} what this version cannot read")),
            "{error}"
        );
    };
    for text in [
        String::new(),
        "{".to_owned(),
        "\"id\"".to_owned(),
        founded("id", 3).replace("\"rules\":0,", ""),
        founded("", 3),
        founded("id", 0),
        founded("id", 4_000_000_000),
    ] {
        server.cli(&format!("SET web:crawl {text}"));
        unreadable("web:crawl");
    }
    for command in ["SETBIT web:crawl 0 1", "HSET web:crawl id id"] {
        server.cli("DEL web:crawl");
        server.cli(command);
        unreadable("web:crawl");
    }
    server.cli(&format!("SET web:crawl {}", founded("id", 2)));
    server.cli("SET web:id:words x");
    unreadable("web:id:words");
    server.cli("DEL web:id:words");
    // One of another version.
    server.cli("HSET web:id:words 0 {\"instance\":1}");
    let overview = overview().unwrap();
    assert_eq!(overview.partitions[0].state, "unreadable");
    let problem = "partition 0 says what this version cannot read: start its process with this version";
    assert!(
        overview.problems.iter().any(|text| text.starts_with(problem)),
        "{:?}",
        overview.problems
    );
}

fn founded(id: &str, partitions: u32) -> String {
    format!("{{\"id\":\"{id}\",\"partitions\":{partitions},\"rules\":0,\"seeds\":0,\"version\":\"0\"}}")
}
