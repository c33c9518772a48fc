//! A member that meets words and entries of other times, of other crawls, and of no crawl at all.

use std::time::Duration;

use cluster::{End, EntryId, Kept, Limits, Member, MemberError, PartitionStatus, StreamEntry, Word, Words};
use frontier::exchange::{LinkBatch, Mark, Received};
use frontier::{Canonicalizer, Frontier, FrontierConfig, Link, Partition, Reach, Time};

const NOW: Time = Time::from_millis(1_700_000_000_000);

/// One partition.
struct Process {
    frontier: Frontier,
    member: Member,
}

impl Process {
    fn new(index: u32, count: u32, accepts_loss: bool) -> Self {
        let partition = Partition::new(index, count).unwrap();
        let mut config = FrontierConfig {
            partition: Some(partition),
            ..FrontierConfig::default()
        };
        config.scope.reach = Reach::Any;
        let mut member = Member::new(partition, Limits::default(), Kept::default(), accepts_loss, 1);
        member.start([]);
        Self {
            frontier: Frontier::in_memory(config).unwrap(),
            member,
        }
    }

    /// Commits and syncs.
    fn sync(&mut self) {
        self.frontier.persist(b"", NOW).unwrap();
        self.member.saved();
        let is_drained = self.frontier.report().is_drained();
        self.member
            .synced(&self.frontier, is_drained, PartitionStatus::default(), NOW);
    }

    /// Commits and syncs. Returns the word of that.
    fn word(&mut self, now: Time) -> Word {
        self.sync();
        self.member.orders(&self.frontier, now).unwrap().word.unwrap()
    }

    fn hear(&mut self, words: &Words) {
        self.member.hear(words, &mut self.frontier, NOW).unwrap();
    }
}

/// A link to a partition.
fn link(owner: u32, number: u64) -> Link {
    let (partition, urls) = (Partition::new(owner, 2).unwrap(), Canonicalizer::default());
    let mut urls = (0..).map(|n| urls.parse(&format!("http://site{n}.example/{number}")).unwrap());
    Link::found(urls.find(|url| partition.owns(url)).unwrap(), 1, "".into())
}

/// Two members that have heard each other, and their words.
fn acquainted(accepts_loss: bool) -> ([Process; 2], Words) {
    let mut processes = [0, 1].map(|index| Process::new(index, 2, accepts_loss));
    let mut words = Words::new();
    for _ in 0..2 {
        for (index, process) in (0..).zip(&mut processes) {
            let word = process.word(NOW);
            words.insert(index, word);
        }
        for process in &mut processes {
            process.hear(&words);
        }
    }
    (processes, words)
}

#[test]
fn nothing_is_said_or_sent_before_the_first_sync_of_a_run() {
    let (_, words) = acquainted(false);
    let mut renewed = Process::new(0, 2, false);
    renewed.frontier.offer(&[link(1, 1)], NOW).unwrap();
    renewed.frontier.persist(b"", NOW).unwrap();
    renewed.hear(&words);
    assert!(renewed.member.orders(&renewed.frontier, NOW).unwrap().is_empty());
    renewed.word(NOW);
}

#[test]
fn two_that_are_drained_find_the_end() {
    let ([mut first, second], words) = acquainted(false);
    assert_eq!(
        [&first, &second].map(|process| process.member.ended()),
        [Some(End::Complete); 2]
    );
    let ended = first.word(NOW);
    assert_eq!(first.member.finished(NOW), None, "the other does not say it yet");
    let both = Words::from([(0, ended.clone()), (1, ended)]);
    first.hear(&both);
    assert_eq!(first.member.finished(NOW), Some(End::Complete));
    drop(words);
}

/// Returns the seconds of ten minutes without an acknowledgement in which a batch for the other one is appended.
fn sent_at(process: &mut Process, number: u64, from: Time) -> Vec<u64> {
    let mut appended = |second: &u64| {
        let now = from + Duration::from_secs(*second);
        let orders = process.member.orders(&process.frontier, now).unwrap();
        let mut entries = orders.append.iter().flat_map(|(_, entries)| entries);
        entries.any(|(id, _)| id.number == number)
    };
    (0..600).filter(&mut appended).collect()
}

#[test]
fn what_is_not_acknowledged_is_sent_again_less_and_less_often_until_something_is() {
    let ([mut first, mut second], mut words) = acquainted(false);
    for number in 1..6 {
        let now = NOW + Duration::from_secs(1000 * number);
        first.frontier.offer(&[link(1, number)], now).unwrap();
        first.sync();
        if [1, 5].contains(&number) {
            let seconds = sent_at(&mut first, number, now);
            assert_eq!(seconds[..5], [0, 6, 17, 38, 79]);
            assert_eq!(seconds.len(), 17, "then every 40: {seconds:?}");
        }
        words.insert(0, first.word(now));
        let batch = first.frontier.outgoing(1, number - 1).unwrap().unwrap();
        second.frontier.receive(0, &batch, now).unwrap();
        words.insert(1, second.word(now));
        first.member.hear(&words, &mut first.frontier, now).unwrap();
    }
}

#[test]
fn no_more_is_sent_than_the_window_and_no_more_trimmed_than_is_synced() {
    let ([mut first, mut second], mut words) = acquainted(false);
    let window = Limits::default().window;
    for number in 0..window + 9 {
        first.frontier.offer(&[link(1, number)], NOW).unwrap();
        first.frontier.persist(b"", NOW).unwrap();
    }
    first.sync();
    let mut sent = Vec::new();
    loop {
        let orders = first.member.orders(&first.frontier, NOW).unwrap();
        words.extend(orders.word.map(|word| (0, word)));
        let Some((_, entries)) = orders.append.into_iter().next() else {
            break;
        };
        sent.extend(entries);
    }
    assert_eq!(sent.len() as u64, window);
    for (id, batch) in sent.iter().take(2).cloned() {
        let entry = StreamEntry { from: 0, id, batch };
        let received = second.member.receive(&entry, &mut second.frontier, NOW).unwrap();
        assert!(matches!(received, Received::Accepted { .. }), "{received:?}");
    }
    let trim = |second: &mut Process| second.member.orders(&second.frontier, NOW).unwrap().trim;
    assert_eq!(trim(&mut second), []);
    second.sync();
    assert_eq!(trim(&mut second), [(0, sent[1].0)]);
}

#[test]
fn what_got_other_numbers_after_a_loss_is_sent_once_it_is_synced() {
    let ([mut first, _], mut words) = acquainted(true);
    for number in 0..9 {
        first.frontier.offer(&[link(1, number)], NOW).unwrap();
        first.sync();
    }
    let theirs = words.get_mut(&1).unwrap();
    theirs.peers[0].received = Mark { number: 5, digest: 7 };
    first.hear(&words);
    assert_eq!(first.frontier.peer(1).unwrap().sent.number, 5 + 9);
    assert_eq!(first.member.orders(&first.frontier, NOW).unwrap().append, []);
    first.sync();
    let append = first.member.orders(&first.frontier, NOW).unwrap().append;
    let numbers = append.iter().flat_map(|(_, entries)| entries).map(|(id, _)| id.number);
    assert!(numbers.eq(6..=14));
}

#[test]
fn it_is_said_whose_directory_is_old_if_the_numbers_show_that() {
    let peer = 1;
    for (number, why) in [
        (2, MemberError::OldCopy { peer }),
        (1, MemberError::OtherHistory { peer }),
    ] {
        let ([mut first, _], mut words) = acquainted(false);
        first.frontier.offer(&[link(1, 1)], NOW).unwrap();
        first.sync();
        words.get_mut(&peer).unwrap().peers[0].received = Mark { number, digest: 7 };
        assert_eq!(first.member.hear(&words, &mut first.frontier, NOW), Err(why));
    }
}

/// The log still has the word of a process of this partition that has lost its directory since.
#[test]
fn the_own_word_of_another_directory_declares_no_end() {
    let (_, words) = acquainted(false);
    let mut renewed = Process::new(0, 2, false);
    renewed.frontier.offer(&[link(0, 1)], NOW).unwrap();
    renewed.sync();
    renewed.hear(&words);
    assert_eq!(renewed.member.ended(), None);
}

#[test]
fn the_same_number_of_batches_of_two_histories_is_no_end() {
    for (theirs, end) in [(7, Some(End::Complete)), (8, None)] {
        let mut processes = [0, 1, 2].map(|index| Process::new(index, 3, false));
        let mut words = Words::new();
        // The second words have the promises.
        for is_first in [true, false] {
            words.extend((0..).zip(processes.each_mut().map(|process| process.word(NOW))));
            if is_first {
                // None is drained: nothing ends here.
                words.values_mut().for_each(|word| word.is_drained = false);
                processes.iter_mut().for_each(|process| process.hear(&words));
            }
        }
        let mark = |digest| Mark { number: 1, digest };
        words.get_mut(&1).unwrap().peers[2].sent = mark(7);
        words.get_mut(&2).unwrap().peers[1].received = mark(theirs);
        let [mut first, ..] = processes;
        first.hear(&words);
        assert_eq!(first.member.ended(), end);
    }
}

#[test]
fn the_end_is_adopted_only_by_who_agrees_with_all_others() {
    let mut ended = Process::new(2, 3, false).word(NOW);
    let not_told = ended.clone();
    ended.ended = Some(End::Complete);
    let mut other = ended.clone();
    other.peers[0].sent.number = 1;
    let end_with = |second: Option<Word>| {
        let mut first = Process::new(0, 3, false);
        first.sync();
        let second = second.into_iter().map(|word| (1, word));
        let words = second.chain([(2, ended.clone())]).collect();
        let heard = first.member.hear(&words, &mut first.frontier, NOW);
        heard.map(|()| first.member.ended())
    };
    assert_eq!(end_with(Some(not_told)), Ok(Some(End::Complete)));
    assert_eq!(end_with(None), Ok(None), "its word may say that this is an old copy");
    assert_eq!(end_with(Some(other.clone())), Err(MemberError::EndedWithout));
    other.ended = None;
    assert_eq!(end_with(Some(other)), Ok(None), "its word may be old");
}

#[test]
fn words_of_another_number_of_partitions_mean_nothing() {
    let ([mut first, _], words) = acquainted(false);
    let mut first = {
        first.frontier.offer(&[link(1, 1)], NOW).unwrap();
        let mut other = Process::new(0, 2, false);
        other.sync();
        other
    };
    for count in [0, 1, 3, 300] {
        let mut other = words[&1].clone();
        other.peers.resize(count, other.peers[0]);
        (other.ended, other.term) = (Some(End::Complete), 1 << 50);
        first.hear(&Words::from([(0, words[&0].clone()), (1, other)]));
        assert_eq!(first.member.ended(), None);
    }
    assert!(!first.member.is_unsaved());
}

/// No other than a hostile program, or a damaged memory, says such numbers.
#[test]
fn numbers_that_cannot_be_do_no_harm() {
    for accepts_loss in [false, true] {
        let ([mut first, _], words) = acquainted(accepts_loss);
        first.frontier.offer(&[link(1, 1)], NOW).unwrap();
        first.sync();
        let impossible = Mark {
            number: u64::MAX,
            digest: 1,
        };
        for change in [
            (|word| {
                word.peers[0].received = Mark {
                    number: u64::MAX,
                    digest: 1,
                }
            }) as fn(&mut Word),
            |word| {
                word.peers[0].acknowledged = Mark {
                    number: u64::MAX,
                    digest: 1,
                }
            },
            |word| word.peers[0].promise = u64::MAX,
            |word| word.term = u64::MAX,
        ] {
            let mut word = words[&1].clone();
            change(&mut word);
            let _ = first.member.hear(&Words::from([(1, word)]), &mut first.frontier, NOW);
            first.member.start([EntryId {
                term: u64::MAX,
                round: 0,
                number: 1,
            }]);
            first.frontier.offer(&[link(1, 1)], NOW).unwrap();
            first.sync();
            first.member.orders(&first.frontier, NOW).unwrap();
        }
        let batch = LinkBatch {
            before: impossible,
            mark: impossible,
            links: Box::default(),
        };
        first.frontier.receive(1, &batch, NOW).unwrap();
    }
}

#[test]
fn entries_that_are_none_are_trimmed_and_not_remembered() {
    let ([mut first, _], _) = acquainted(false);
    let ids = (1..5_u64).map(|n| EntryId {
        term: 1 << 40,
        round: 0,
        number: (1 << 40) - 5 + n,
    });
    let mut last = EntryId::default();
    for (id, batch) in ids.zip([&b""[..], b"not a batch", &[0xff; 40], &[0, 0, 0, 1, 0]]) {
        let entry = StreamEntry {
            from: 1,
            id,
            batch: batch.to_vec(),
        };
        assert_eq!(
            first.member.receive(&entry, &mut first.frontier, NOW).unwrap(),
            Received::Damaged
        );
        last = id;
    }
    assert_eq!(first.member.orders(&first.frontier, NOW).unwrap().trim, [(1, last)]);
    let stranger = StreamEntry {
        from: 7,
        id: last,
        batch: Vec::new(),
    };
    assert_eq!(
        first.member.receive(&stranger, &mut first.frontier, NOW).unwrap(),
        Received::Damaged
    );
}
