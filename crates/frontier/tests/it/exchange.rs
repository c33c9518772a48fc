//! Links between partitions: who owns a site, what is sent, and what a second, a missing and a wrong batch do.

use frontier::exchange::{Acknowledged, LinkBatch, Mark, Received};
use frontier::{Class, Frontier, FrontierConfig, Leasing, LimitConfig, Link, Outcome, Partition, Reach, Verdict, Why};

use crate::common::{self, START as NOW, commit, end, url};

fn config(index: u32, count: u32) -> FrontierConfig {
    let mut config = common::config();
    config.partition = Some(Partition::new(index, count).unwrap());
    config.scope.reach = Reach::Any;
    config
}

fn partition(index: u32, count: u32) -> Frontier {
    Frontier::in_memory(config(index, count)).unwrap()
}

/// The first URL of this kind that belongs to a partition.
fn url_of(owner: u32, count: u32, kind: &str) -> String {
    let partition = Partition::new(0, count).unwrap();
    let mut urls = (0..).map(|n| format!("http://{kind}{n}.example/"));
    urls.find(|text| partition.owner_of(&url(text)) == owner).unwrap()
}

fn link(to: &str) -> Link {
    Link::found(url(to), 1, "http://page.example/".into())
}

/// Closes the open batches, and returns the next one for a partition.
fn next(frontier: &mut Frontier, to: u32, after: u64) -> LinkBatch {
    frontier.persist(b"", NOW).unwrap();
    frontier.outgoing(to, after).unwrap().unwrap()
}

fn accepted(frontier: &mut Frontier, from: u32, batch: &LinkBatch) -> Vec<Verdict> {
    match frontier.receive(from, batch, NOW).unwrap() {
        Received::Accepted { verdicts, .. } => verdicts,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_link_to_another_partition_is_sent_once_and_arrives_whole() {
    let (mut here, mut there) = (partition(0, 2), partition(1, 2));
    let away = url_of(1, 2, "a");
    let sent = Link {
        depth: 7,
        lastmod: Some(NOW),
        embedded: 2,
        class: Class::try_from(6).ok(),
        ..link(&away).with_data(b"customer 7").unwrap()
    };
    assert_eq!(
        here.offer(std::slice::from_ref(&sent), NOW).unwrap(),
        [Verdict::Elsewhere]
    );
    assert_eq!(here.offer(std::slice::from_ref(&sent), NOW).unwrap(), [Verdict::Seen]);
    assert_eq!(here.why(&sent.url, NOW), Why::Elsewhere { owner: 1 });
    assert_eq!(here.report().links.elsewhere, 1);
    assert!(here.report().is_drained());
    assert_eq!(here.outgoing(1, 0).unwrap(), None, "no number yet");

    let batch = next(&mut here, 1, 0);
    let Received::Accepted { links, verdicts } = there.receive(0, &batch, NOW).unwrap() else {
        panic!("not accepted");
    };
    assert_eq!((links, verdicts), (vec![sent], vec![Verdict::Queued]));
    assert_eq!(there.report().exchange.received, 1);
}

#[test]
fn an_offered_seed_of_another_partition_is_sent_there() {
    let (mut here, mut there) = (partition(0, 2), partition(1, 2));
    let seed = Link::seed(url(&url_of(1, 2, "a")));
    assert_eq!(here.offer(&[seed], NOW).unwrap(), [Verdict::Elsewhere]);
    let batch = next(&mut here, 1, 0);
    assert_eq!(accepted(&mut there, 0, &batch), [Verdict::Queued]);
}

#[test]
fn a_text_arrives_once_in_each_partition_behind_the_links_that_were_sent_before() {
    let mut here = partition(0, 3);
    here.offer(&[link(&url_of(1, 3, "a"))], NOW).unwrap();
    here.tell(b"slower", NOW).unwrap();
    here.offer(&[link(&url_of(1, 3, "b"))], NOW).unwrap();
    assert_eq!(here.peer(1).unwrap().waiting, 3, "a text waits as a link does");
    let mut there = partition(1, 3);
    let received: Vec<_> = (0..3)
        .map(|after| there.receive(0, &next(&mut here, 1, after), NOW).unwrap())
        .collect();
    assert!(matches!(received[0], Received::Accepted { .. }) && matches!(received[2], Received::Accepted { .. }));
    assert_eq!(received[1], Received::Told((*b"slower").into()));
    assert_eq!(
        there.receive(0, &next(&mut here, 1, 1), NOW).unwrap(),
        Received::Repeated
    );
    let mut third = partition(2, 3);
    assert_eq!(
        third.receive(0, &next(&mut here, 2, 0), NOW).unwrap(),
        Received::Told((*b"slower").into())
    );
    let mark = there.peer(0).unwrap().received;
    assert_eq!(here.acknowledged(1, mark, NOW).unwrap(), Acknowledged::Dropped(3));
    // Who is told tells all others, too, and what comes a second time is nothing new.
    assert_eq!(accepted(&mut third, 1, &next(&mut there, 2, 0)), []);
    assert_eq!(accepted(&mut there, 2, &next(&mut third, 1, 0)), []);
    assert_eq!(third.peer(1).unwrap().waiting, 1);
    let mut alone = Frontier::in_memory(common::config()).unwrap();
    alone.tell(b"slower", NOW).unwrap();
}

#[test]
fn an_offered_seed_of_this_partition_widens_the_reach_of_all() {
    let in_reach = |index| {
        let mut config = config(index, 3);
        config.scope.reach = Reach::Site;
        Frontier::in_memory(config).unwrap()
    };
    let [mut here, mut there, mut third] = [0, 1, 2].map(in_reach);
    let seed = url(&url_of(0, 3, "a"));
    assert_eq!(here.offer(&[Link::seed(seed.clone())], NOW).unwrap(), [Verdict::Queued]);
    for (to, frontier) in [(1, &mut there), (2, &mut third)] {
        assert!(!frontier.reaches(&seed));
        assert_eq!(accepted(frontier, 0, &next(&mut here, to, 0)), [Verdict::Elsewhere]);
        assert!(frontier.reaches(&seed));
    }
    // Who is told tells all others, too.
    assert_eq!(accepted(&mut third, 1, &next(&mut there, 2, 0)), [Verdict::Elsewhere]);
    assert_eq!(here.report().queued_pages, 1);
}

#[test]
fn only_the_next_batch_of_the_same_history_is_accepted() {
    let (mut here, mut there) = (partition(0, 2), partition(1, 2));
    let batches = ["a", "b", "c"].map(|kind| {
        here.offer(&[link(&url_of(1, 2, kind))], NOW).unwrap();
        let sent = here.peer(1).unwrap().sent.number;
        next(&mut here, 1, sent)
    });
    assert_eq!(there.receive(0, &batches[1], NOW).unwrap(), Received::Early);
    accepted(&mut there, 0, &batches[0]);
    assert_eq!(there.receive(0, &batches[0], NOW).unwrap(), Received::Repeated);
    assert_eq!(there.receive(0, &batches[2], NOW).unwrap(), Received::Early);
    let mut other = batches[1].clone();
    other.before.digest ^= 1;
    assert_eq!(there.receive(0, &other, NOW).unwrap(), Received::OtherHistory);
    let mut damaged = batches[1].clone();
    damaged.links[3] ^= 1;
    assert_eq!(there.receive(0, &damaged, NOW).unwrap(), Received::Damaged);
    accepted(&mut there, 0, &batches[1]);
    assert_eq!(there.report().queued_pages, 2);

    // What it has received leaves the outbox; what another history has received does not.
    let mark = there.peer(0).unwrap().received;
    assert_eq!(
        here.acknowledged(1, Mark { digest: 1, ..mark }, NOW).unwrap(),
        Acknowledged::OtherHistory
    );
    assert_eq!(here.acknowledged(1, mark, NOW).unwrap(), Acknowledged::Dropped(2));
    assert_eq!(here.acknowledged(1, mark, NOW).unwrap(), Acknowledged::Old);
    assert_eq!(here.acknowledged(1, batches[0].mark, NOW).unwrap(), Acknowledged::Old);
    assert_eq!((here.peer(1).unwrap().waiting, here.outgoing(1, 1).unwrap()), (1, None));
    assert_eq!(here.outgoing(1, 2).unwrap().unwrap(), batches[2]);
}

#[test]
fn a_mark_tells_apart_what_was_sent_before() {
    let [one, other] = ["a", "b"].map(|kind| {
        let mut here = partition(0, 2);
        for kind in [kind, "c"] {
            here.offer(&[link(&url_of(1, 2, kind))], NOW).unwrap();
            here.persist(b"", NOW).unwrap();
        }
        here.outgoing(1, 1).unwrap().unwrap()
    });
    assert_eq!((one.mark.number, &one.links), (other.mark.number, &other.links));
    assert_ne!(one.mark, other.mark);
}

#[test]
fn a_full_outbox_stops_leasing_until_it_is_acknowledged_and_refuses_no_link() {
    let mut here = Frontier::in_memory(FrontierConfig {
        limits: LimitConfig {
            max_outbox: 2,
            ..LimitConfig::default()
        },
        ..config(0, 2)
    })
    .unwrap();
    let own = link(&url_of(0, 2, "own"));
    let away = ["a", "b", "c"].map(|kind| link(&url_of(1, 2, kind)));
    assert_eq!(here.offer(&away, NOW).unwrap(), [Verdict::Elsewhere; 3]);
    assert_eq!(here.offer(&[own], NOW).unwrap(), [Verdict::Queued]);
    assert_eq!(here.lease(NOW, 9).unwrap(), Leasing::AllLeased);
    let batch = next(&mut here, 1, 0);
    here.acknowledged(1, batch.mark, NOW).unwrap();
    assert!(matches!(here.lease(NOW, 9).unwrap(), Leasing::Ready(_)));
}

#[test]
fn the_target_of_a_redirected_seed_is_in_reach_of_all_partitions() {
    let mut frontiers = [0, 1, 2].map(|index| {
        let mut config = config(index, 3);
        config.scope.reach = Reach::Site;
        Frontier::in_memory(config).unwrap()
    });
    let (seed, target) = (url_of(0, 3, "seed"), url_of(1, 3, "target"));
    let verdicts = frontiers
        .each_mut()
        .map(|frontier| frontier.add_seed(&url(&seed), NOW).unwrap());
    assert_eq!(verdicts, [Verdict::Queued, Verdict::Elsewhere, Verdict::Elsewhere]);
    let [first, others @ ..] = &mut frontiers;
    let lease = common::only(first, NOW);
    let redirected = lease.entry.redirected(url(&target));
    let settled = commit(
        first,
        end(&lease, Outcome::Redirected).with_links(vec![redirected]),
        NOW,
    );
    assert_eq!(settled.verdicts, [Verdict::Elsewhere]);
    let [second, third] = others;
    assert!(!second.reaches(&url(&target)));
    accepted(second, 0, &next(first, 1, 0));
    assert!(second.reaches(&url(&target)));
    assert_eq!(second.report().queued_pages, 1);

    // The third knows of it before it gets links that the second has found there, though the first has not reached it.
    assert!(!third.reaches(&url(&target)));
    accepted(third, 1, &next(second, 2, 0));
    assert!(third.reaches(&url(&target)));
    accepted(third, 0, &next(first, 2, 0));
    assert_eq!(third.report().queued_pages, 0);
}

#[test]
fn a_seed_that_redirects_within_the_reach_is_sent_to_the_owner_of_its_target_only() {
    let mut first = partition(0, 3);
    let (seed, target) = (url_of(0, 3, "seed"), url_of(1, 3, "target"));
    first.add_seed(&url(&seed), NOW).unwrap();
    let lease = common::only(&mut first, NOW);
    let redirected = lease.entry.redirected(url(&target));
    commit(
        &mut first,
        end(&lease, Outcome::Redirected).with_links(vec![redirected]),
        NOW,
    );
    assert_eq!([1, 2].map(|peer| first.peer(peer).unwrap().waiting), [1, 0]);
}

#[test]
fn a_sitemap_and_a_page_of_the_same_url_are_both_sent() {
    let mut here = partition(0, 2);
    let away = url_of(1, 2, "away");
    let sitemap = Link::sitemap(url(&away), url(&away).origin(), 0, None);
    let links = [link(&away), sitemap];
    assert_eq!(here.offer(&links, NOW).unwrap(), [Verdict::Elsewhere; 2]);
    assert_eq!(here.offer(&links, NOW).unwrap(), [Verdict::Seen; 2]);
}

#[test]
fn the_owner_of_a_url_is_named_whatever_the_seen_set_says() {
    let mut config = config(0, 2);
    (
        config.seen_set.exact,
        config.seen_set.capacity,
        config.seen_set.false_positive_rate,
    ) = (false, 1, 0.5);
    let mut here = Frontier::in_memory(config).unwrap();
    let own = (0..200).map(|n| link(&format!("{}{n}", url_of(0, 2, "own"))));
    here.offer(&own.collect::<Vec<_>>(), NOW).unwrap();
    let away = url_of(1, 2, "away");
    for n in 0..20 {
        assert_eq!(here.why(&url(&format!("{away}{n}")), NOW), Why::Elsewhere { owner: 1 });
    }
}

/// A batch with these links, as a frontier of another version or a program that writes into the log may make it.
fn forged(replaced: &str, by: &str) -> LinkBatch {
    use std::hash::Hasher as _;
    let mut here = partition(0, 2);
    here.offer(&[link(replaced)], NOW).unwrap();
    let mut batch = next(&mut here, 1, 0);
    let at = batch
        .links
        .windows(replaced.len())
        .position(|bytes| bytes == replaced.as_bytes());
    let at = at.unwrap();
    batch.links[at..at + replaced.len()].copy_from_slice(by.as_bytes());
    let mut hasher = siphasher::sip::SipHasher13::new_with_keys(0, 0);
    hasher.write(&batch.links);
    batch.mark.digest = hasher.finish();
    batch
}

#[test]
fn a_link_that_is_no_url_of_a_page_is_damage() {
    let away = url_of(1, 2, "a");
    let mut there = partition(1, 2);
    for wrong in ["data:,", "http://..", "no url", "file:///etc"] {
        let wrong = format!("{wrong:/<0$}", away.len());
        let received = there.receive(0, &forged(&away, &wrong), NOW).unwrap();
        assert_eq!(received, Received::Damaged, "{wrong}");
    }
    assert_eq!(accepted(&mut there, 0, &forged(&away, &away)), [Verdict::Queued]);
}

#[test]
fn sitemaps_of_another_partition_are_sent_and_a_robots_txt_there_is_fetched_here() {
    let mut config = config(0, 2);
    config.politeness.ask_robots = true;
    let mut here = Frontier::in_memory(config).unwrap();
    let (own, away) = (url(&url_of(0, 2, "own")), url(&url_of(1, 2, "away")));
    here.add_seed(&own, NOW).unwrap();
    let lease = common::only(&mut here, NOW);
    assert_eq!(
        common::redirect(&mut here, &lease, away.url().as_str(), NOW).verdicts,
        []
    );
    assert_eq!(here.report().exchange.robots_elsewhere, 1);
    let lease = common::only(&mut here, NOW);
    assert_eq!(&*lease.entry.url, url_of(1, 2, "away"));
    let sitemap = Link::sitemap(away, own.origin(), 0, None);
    let known = lease.settle(Outcome::Rejected).with_links(vec![sitemap]);
    assert_eq!(commit(&mut here, known, NOW).verdicts, [Verdict::Elsewhere]);
    assert_eq!(here.report().exchange.sent, 1);
}

#[test]
fn after_a_loss_both_sides_go_on_where_the_other_is() {
    let (mut here, mut there) = (partition(0, 2), partition(1, 2));
    for kind in ["a", "b"] {
        here.offer(&[link(&url_of(1, 2, kind))], NOW).unwrap();
        let sent = here.peer(1).unwrap().sent.number;
        accepted(&mut there, 0, &next(&mut here, 1, sent));
    }
    let mark = there.peer(0).unwrap().received;
    here.acknowledged(1, mark, NOW).unwrap();

    // The sender has lost its directory: its first batch is another one.
    let mut renewed = partition(0, 2);
    renewed.offer(&[link(&url_of(1, 2, "c"))], NOW).unwrap();
    renewed.persist(b"", NOW).unwrap();
    assert_eq!(renewed.acknowledged(1, mark, NOW).unwrap(), Acknowledged::OtherHistory);
    renewed.accept_loss(1, Some(mark), None, NOW).unwrap();
    assert_eq!(accepted(&mut there, 0, &next(&mut renewed, 1, 2)), [Verdict::Queued]);
    assert!(renewed.report().exchange.lost_batches > 0);

    // The receiver has: what was acknowledged is gone.
    let mut renewed = partition(1, 2);
    here.offer(&[link(&url_of(1, 2, "d"))], NOW).unwrap();
    let batch = next(&mut here, 1, 2);
    assert_eq!(renewed.receive(0, &batch, NOW).unwrap(), Received::Early);
    renewed
        .accept_loss(0, None, Some(here.peer(1).unwrap().acknowledged), NOW)
        .unwrap();
    assert_eq!(accepted(&mut renewed, 0, &batch), [Verdict::Queued]);
    assert_eq!(renewed.report().exchange.lost_batches, 2);
}

#[test]
fn a_seed_of_another_partition_is_not_sent_for_each_process_has_it() {
    let mut here = partition(0, 2);
    let seed = Link::seed(url(&url_of(1, 2, "a"))).with_data(b"7").unwrap();
    assert_eq!(here.add_seed(seed, NOW).unwrap(), Verdict::Elsewhere);
    assert_eq!(here.report().exchange.sent, 0);
}
