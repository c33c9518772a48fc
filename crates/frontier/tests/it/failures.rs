//! The failure policy: silent pages, statuses, throttling, and limits of this machine. For outages see `outages`.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::io;
use std::num::NonZeroU32;
use std::time::Duration;

use frontier::{Failure, FailureKind, Fate, Frontier, Lease, Leasing, NotFetched, Notice, Outcome, Time};

use crate::common::{
    self, Forbid, START, answer, asking, at, config, failing, failure, give_rules, is_robots, link, names, next, one,
    pages, ready, seconds, settle, with_pages,
};

/// Crawls to the end: pages below `/hang/` get no answer, all else does. Returns the requests for pages in their order, each with
/// its time, and the notices.
fn crawl(frontier: &mut Frontier, kind: FailureKind) -> (Vec<(String, Time)>, Vec<Notice>) {
    let (mut asked, mut notices) = (Vec::new(), Vec::new());
    let mut now = START;
    loop {
        let lease = match frontier.lease(now, 1).unwrap() {
            Leasing::Ready(mut leases) => leases.remove(0),
            Leasing::NotUntil(time) => {
                now = time;
                continue;
            }
            // Where robots.txt is not asked for, only a page shows whether the origin is there, and those left do not.
            Leasing::Dropped(_) => continue,
            other => break assert_eq!(other, Leasing::Drained),
        };
        let settled = if is_robots(&lease) {
            give_rules(frontier, &lease, Forbid::nothing(), now)
        } else {
            asked.push((lease.entry.url.to_string(), now));
            let is_hanging = lease.entry.url.contains("/hang/");
            let outcome = if is_hanging { failing(kind) } else { Outcome::Done };
            settle(frontier, &lease, outcome, now)
        };
        notices.extend(settled.notices);
    }
    (asked, notices)
}

#[test]
fn silent_pages_cost_no_good_page_and_are_asked_for_again_behind_all_good_ones() {
    for (hanging, ask_robots) in [(6, true), (10, true), (6, false), (10, false)] {
        for kind in [FailureKind::Timeout, FailureKind::Broken, FailureKind::Incomplete] {
            let mut all = vec![link("https://a.example/")];
            all.extend(pages("https://a.example/hang/", hanging));
            all.extend(pages("https://a.example/good/", 200));
            let mut frontier = with_pages(asking(ask_robots), &all);
            let (asked, notices) = crawl(&mut frontier, kind);
            let report = frontier.report();
            assert_eq!(report.pages.done, 201, "{hanging} {kind}");
            assert_eq!(report.pages.gave_up + report.pages.lost_with_host, hanging as u64);
            let first_of_each = &asked[..hanging + 201];
            let mut distinct: Vec<_> = first_of_each.iter().map(|(url, _)| url).collect();
            distinct.sort();
            distinct.dedup();
            assert_eq!(
                distinct.len(),
                hanging + 201,
                "a second attempt came before a first one"
            );
            assert!(
                seconds(first_of_each[hanging + 200].1) < 300.0,
                "the good ones wait for one outage at most"
            );
            let away = names(&notices).contains(&"away");
            assert_eq!(
                away, !ask_robots,
                "it is not away while its robots.txt is answered: {notices:?}"
            );
            if ask_robots {
                let mut requests: HashMap<_, usize> = HashMap::new();
                asked.iter().for_each(|(url, _)| *requests.entry(url).or_default() += 1);
                let most = requests.values().max().copied().unwrap_or_default();
                let beyond: usize = requests.values().map(|requests| requests.saturating_sub(3)).sum();
                assert!(
                    most <= 4 && beyond <= hanging / 2,
                    "robots.txt was answered at once: {requests:?}"
                );
            }
        }
    }
}

#[test]
fn one_silent_page_in_turn_with_good_ones_is_no_outage_and_fails_after_its_attempts() {
    let all: Vec<_> = (0..40)
        .map(|n| {
            let directory = if n % 2 == 0 { "hang" } else { "good" };
            link(&format!("https://a.example/{directory}/{n}"))
        })
        .collect();
    let mut frontier = with_pages(asking(true), &all);
    let (asked, _) = crawl(&mut frontier, FailureKind::Timeout);
    let pages = frontier.report().pages;
    assert_eq!(pages.done, 20);
    let good = asked.iter().rposition(|(url, _)| url.contains("/good/")).unwrap();
    assert_eq!(good, 39, "nothing is asked for twice before all were asked for once");
    assert_eq!(asked[good].1, START, "and nothing waits");
}

#[test]
fn a_page_that_never_answers_fails_after_its_attempts_while_the_rest_is_fetched() {
    for ask_robots in [true, false] {
        let mut frontier = with_pages(asking(ask_robots), &[link("https://a.example/hang/1")]);
        frontier.offer(&pages("https://a.example/good/", 50), START).unwrap();
        let (mut attempts, mut now) = (Vec::new(), START);
        let mut more = 0;
        while frontier.report().pages.gave_up == 0 {
            let lease = next(&mut frontier, &mut now);
            if is_robots(&lease) {
                give_rules(&mut frontier, &lease, Forbid::nothing(), now);
            } else if lease.entry.url.contains("/hang/") {
                attempts.push(lease.entry.attempts);
                settle(&mut frontier, &lease, failing(FailureKind::Timeout), now);
                // Others are answered between the attempts.
                more += 1;
                frontier
                    .offer(&[link(&format!("https://a.example/more/{more}"))], now)
                    .unwrap();
            } else {
                assert_eq!(settle(&mut frontier, &lease, Outcome::Done, now).notices, []);
            }
        }
        assert_eq!(attempts, [1, 2, 3]);
        crawl(&mut frontier, FailureKind::Timeout);
        assert_eq!(frontier.report().pages.done, 53);
    }
}

#[test]
fn a_page_that_never_answers_is_requested_as_often_as_the_policy_says() {
    for (max_attempts, most) in [(1, 1), (2, 2), (3, 5), (4, 6)] {
        for good in [0, 60] {
            let mut config = asking(true);
            config.retries.max_attempts = NonZeroU32::new(max_attempts).unwrap();
            let mut frontier = with_pages(config, &[link("https://a.example/hang/1")]);
            frontier.offer(&pages("https://a.example/good/", good), START).unwrap();
            let (asked, notices) = crawl(&mut frontier, FailureKind::Timeout);
            let requests = asked.iter().filter(|(url, _)| url.contains("/hang/")).count();
            assert!(
                (max_attempts as usize..=most).contains(&requests),
                "{requests} requests with {max_attempts} attempts beside {good} pages"
            );
            assert!(notices.len() <= 2, "{notices:?}");
            assert_eq!(frontier.report().pages.done, good as u64);
        }
    }
}

#[test]
fn a_status_or_a_panic_counts_against_its_page_and_never_against_the_host() {
    for kind in [FailureKind::Status, FailureKind::Panic, FailureKind::Other] {
        let mut frontier = with_pages(asking(true), &pages("https://a.example/hang/", 30));
        let (asked, notices) = crawl(&mut frontier, kind);
        assert_eq!((asked.len(), notices), (90, Vec::new()), "{kind}");
        assert_eq!(frontier.report().pages.gave_up, 30);
    }
}

#[test]
fn what_another_request_cannot_change_is_given_up_at_once() {
    for kind in [
        FailureKind::Redirect,
        FailureKind::Malformed,
        FailureKind::HeadTooLarge,
        FailureKind::AddressForbidden,
        FailureKind::HostDown,
    ] {
        let mut frontier = with_pages(asking(true), &pages("https://a.example/hang/", 30));
        let (asked, notices) = crawl(&mut frontier, kind);
        assert_eq!((asked.len(), notices), (30, Vec::new()), "{kind}");
        let counts = frontier.report().pages;
        assert_eq!((counts.gave_up, counts.retries), (30, 0), "{kind}");
    }
}

#[test]
fn a_request_that_was_not_made_spends_no_delay_and_a_bad_redirect_does() {
    for (kind, next) in [
        (FailureKind::AddressForbidden, 0),
        (FailureKind::HostDown, 0),
        (FailureKind::Redirect, 60),
    ] {
        let mut config = config();
        config.politeness.delay = Duration::from_secs(60);
        let mut frontier = with_pages(config, &pages("https://a.example/", 2));
        let lease = one(&mut frontier, START);
        assert_eq!(settle(&mut frontier, &lease, failing(kind), START).fate, Fate::GaveUp);
        let mut now = START;
        common::next(&mut frontier, &mut now);
        assert_eq!(now, at(f64::from(next)), "{kind}");
    }
}

#[test]
fn a_robots_txt_that_another_request_cannot_get_closes_its_origin_at_once() {
    for kind in [
        FailureKind::Redirect,
        FailureKind::Malformed,
        FailureKind::Tls,
        FailureKind::AddressForbidden,
        FailureKind::HostDown,
    ] {
        let mut frontier = with_pages(asking(true), &pages("https://a.example/", 2));
        let robots = one(&mut frontier, START);
        let robots = answer(&mut frontier, &robots, Outcome::failed(failure(kind)), START);
        assert_eq!((robots.fate, names(&robots.notices)), (Fate::GaveUp, vec!["closed"]));
        let Leasing::Dropped(dropped) = frontier.lease(START, 9).unwrap() else {
            panic!("nothing can be asked")
        };
        assert!(dropped.iter().all(|one| one.why == NotFetched::RobotsUnreachable));
    }
}

#[test]
fn a_bad_redirect_or_head_or_a_status_ends_an_outage() {
    for kind in [FailureKind::Redirect, FailureKind::Malformed, FailureKind::Status] {
        let mut frontier = with_pages(asking(false), &pages("https://a.example/", 9));
        let first = one(&mut frontier, START);
        settle(&mut frontier, &first, failing(FailureKind::Connect), START);
        let probe = one(&mut frontier, at(1));
        let settled = settle(&mut frontier, &probe, failing(kind), at(1));
        assert_eq!(names(&settled.notices), ["back"]);
    }
}

fn throttled(retry_after: Option<u64>) -> Outcome {
    Outcome::Failed {
        failure: failure(FailureKind::Throttled),
        retry_after: retry_after.map(Duration::from_secs),
    }
}

#[test]
fn one_page_that_is_throttled_for_a_day_costs_one_rest_and_good_pages_come_next() {
    let mut all = vec![link("https://a.example/throttled")];
    all.extend(pages("https://a.example/good/", 100));
    let mut frontier = with_pages(asking(false), &all);
    let mut now = START;
    let (mut good_at, mut attempts) = (Vec::new(), Vec::new());
    while frontier.report().pages.gave_up == 0 {
        let lease = next(&mut frontier, &mut now);
        if lease.entry.url.ends_with("/throttled") {
            attempts.push(lease.entry.attempts);
            settle(&mut frontier, &lease, throttled(Some(86_400)), now);
        } else {
            good_at.push(seconds(now));
            settle(&mut frontier, &lease, Outcome::Done, now);
        }
    }
    assert_eq!(good_at, [300.0; 100], "after one rest, of the longest wait");
    assert_eq!(attempts, [1; 12], "it is not its fault, but neither is it without end");
}

#[test]
fn throttling_answers_to_requests_in_flight_count_once() {
    let mut config = config();
    config.politeness.per_host = NonZeroU32::new(8).unwrap();
    let mut frontier = with_pages(config, &pages("https://a.example/", 20));
    let mut notices = Vec::new();
    for lease in ready(&mut frontier, START) {
        notices.extend(settle(&mut frontier, &lease, throttled(None), START).notices);
    }
    assert_eq!(names(&notices), ["throttled"]);
    assert_eq!(frontier.lease(START, 9).unwrap(), Leasing::NotUntil(at(5)));
    let again = one(&mut frontier, at(5));
    settle(&mut frontier, &again, throttled(None), at(5));
    assert_eq!(
        frontier.lease(at(5), 9).unwrap(),
        Leasing::NotUntil(at(15)),
        "the second in a row"
    );
}

#[test]
fn twelve_rests_in_a_row_give_up_the_origin() {
    let mut frontier = with_pages(asking(false), &pages("https://a.example/", 50));
    let (mut now, mut rests, mut notices) = (START, 0, Vec::new());
    while names(&notices) != ["given up"] {
        let lease = next(&mut frontier, &mut now);
        notices = settle(&mut frontier, &lease, throttled(None), now).notices;
        rests += 1;
    }
    assert_eq!((rests, names(&notices)), (12, vec!["given up"]));
    let Leasing::Dropped(dropped) = frontier.lease(now, 9).unwrap() else {
        panic!("its pages are dropped")
    };
    let cause = failure(FailureKind::Throttled);
    assert!(
        dropped
            .iter()
            .all(|one| one.why == NotFetched::HostDown && one.cause.as_deref() == Some(&cause))
    );
    assert_eq!(dropped.len() as u64 + frontier.report().pages.gave_up, 50);
}

#[test]
fn a_robots_txt_that_is_throttled_to_the_end_is_not_asked_for_once_more() {
    let mut config = asking(true);
    config.retries.max_throttles = NonZeroU32::new(3).unwrap();
    let mut frontier = with_pages(config, &[link("https://a.example/1")]);
    let mut now = START;
    let robots = one(&mut frontier, now);
    give_rules(&mut frontier, &robots, Forbid::nothing(), now);
    // Two rests by pages, and the third by a robots.txt that has expired.
    for _ in 0..2 {
        let page = next(&mut frontier, &mut now);
        settle(&mut frontier, &page, throttled(None), now);
    }
    let later = at(100_000);
    let robots: Lease = one(&mut frontier, later);
    assert!(is_robots(&robots));
    let again = Outcome::failed(failure(FailureKind::Throttled));
    let settled = answer(&mut frontier, &robots, again, later);
    assert_eq!(
        (settled.fate, names(&settled.notices)),
        (Fate::GaveUp, vec!["given up"])
    );
    assert!(matches!(frontier.lease(later, 9).unwrap(), Leasing::Dropped(_)));
    assert!(frontier.report().is_drained());
}

#[test]
fn a_missing_file_handle_counts_against_nothing_and_spends_no_delay() {
    let mut config = config();
    config.politeness.delay = Duration::from_secs(60);
    let mut frontier = with_pages(config, &pages("https://a.example/", 2));
    let first: Lease = one(&mut frontier, START);
    let settled = settle(&mut frontier, &first, failing(FailureKind::OutOfHandles), START);
    assert_eq!(
        (settled.fate, settled.notices.len()),
        (Fate::Requeued { due: at(1) }, 0)
    );
    let second = one(&mut frontier, START);
    assert_ne!(
        second.entry.url, first.entry.url,
        "no request was made, so that the next may be at once"
    );
    settle(&mut frontier, &second, Outcome::Done, START);
    let again = one(&mut frontier, at(60));
    assert_eq!((&again.entry.url, again.entry.attempts), (&first.entry.url, 1));
}

#[test]
fn a_message_is_cut_where_a_character_ends() {
    let long = Failure::new(FailureKind::Connect, "é".repeat(400) + "x");
    assert_eq!(long.message.len(), Failure::MAX_MESSAGE_BYTES);
    let odd = Failure::new(FailureKind::Connect, "x".to_owned() + &"é".repeat(400));
    assert_eq!(odd.message.len(), Failure::MAX_MESSAGE_BYTES - 1);
    assert_eq!(odd.to_string(), *odd.message);
}

/// What an error says, and its cause, which it is itself if there is none.
#[derive(Debug)]
struct Caused(&'static str, Option<Box<dyn Error>>);

impl fmt::Display for Caused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Caused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.1.as_deref().or(Some(self))
    }
}

#[test]
fn the_words_of_http_clients_have_their_kinds() {
    use FailureKind::{
        Broken, Connect, HeadTooLarge, Incomplete, Malformed, Other, Redirect, Timeout, Tls, Unresolved,
    };
    use io::ErrorKind::{ConnectionReset, InvalidData, NetworkDown, NotConnected, UnexpectedEof};

    // As the clients write them: an I/O error, and what it is the cause of.
    let in_body = "error reading a body from connection";
    let unannounced = "peer closed connection without sending TLS close_notify: https://docs.rs/tls/certificate";
    for (kind, says, cause, words) in [
        (Incomplete, in_body, UnexpectedEof, unannounced),
        (Broken, "connection error", UnexpectedEof, unannounced),
        (Broken, "GET", ConnectionReset, "timeout.tls-certificates.example:443"),
        (Connect, "io", NetworkDown, "down"),
        (Broken, "io", NotConnected, "socket"),
        (Tls, "rustls", InvalidData, "received fatal alert: HandshakeFailure"),
        (Tls, "(Connect)", UnexpectedEof, "tls handshake eof"),
        (
            Tls,
            "(Connect)",
            InvalidData,
            "peer is incompatible: NoCipherSuitesInCommon",
        ),
    ] {
        let error = Caused(says, Some(io::Error::new(cause, words).into()));
        assert_eq!(FailureKind::of_error(&error), kind, "{error:?}");
    }
    for (kind, says) in [
        (
            Connect,
            "GET http://a.example/timeout: Connection refused (os error 111)",
        ),
        (Timeout, "timeout: receive response"),
        (HeadTooLarge, "response header is too big: 70000 > 65536"),
        (HeadTooLarge, "protocol: http parse resulted in too many headers"),
        (Malformed, "protocol: http parse fail: invalid header name"),
        (Unresolved, "timeout: resolve"),
        (Incomplete, "timeout: receive body"),
        (Redirect, "too many redirects"),
        // A limit of the program, and a text that is no JSON, are no silence of the host.
        (Other, "the response body is larger than request limit: 10485760"),
        (Other, "error decoding response body"),
    ] {
        assert_eq!(FailureKind::of_error(&Caused(says, None)), kind, "{says}");
    }
}

#[test]
fn a_failure_of_an_error_says_each_of_its_causes_once() {
    let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens there");
    let failure = Failure::of_error(&Caused("cannot connect", Some(refused.into())));
    let expected = Failure::new(FailureKind::Connect, "cannot connect: nobody listens there");
    assert_eq!(failure, expected);
    let own_cause = Failure::of_error(&Caused("no answer", None));
    assert_eq!(&*own_cause.message, "no answer");
}
