//! Own data on a URL: they come back with all that the frontier says of it.

use frontier::{FailureKind, Frontier, Lease, Link, Outcome, OwnData, Verdict};

use crate::common::{self, START as NOW, at, commit, config, end, failing, url};

pub(crate) const DATA: &[u8] = b"customer \xff\0 7";

pub(crate) fn seed() -> Link {
    Link::seed(url("https://a.example/")).with_data(DATA).unwrap()
}

pub(crate) fn data(lease: &Lease) -> Option<&[u8]> {
    lease.entry.metadata.data.as_ref().map(OwnData::as_bytes)
}

#[test]
fn data_stay_through_retries_and_redirects_and_are_inherited_only_if_asked_for() {
    let mut frontier = Frontier::in_memory(config()).unwrap();
    frontier.offer(&[seed()], NOW).unwrap();
    let first = common::only(&mut frontier, NOW);
    assert_eq!(data(&first), Some(DATA));
    commit(&mut frontier, end(&first, failing(FailureKind::Status)), NOW);
    let again = common::only(&mut frontier, at(3_600));
    assert_eq!((data(&again), again.entry.attempts), (Some(DATA), 2));
    let target = again.entry.redirected(url("https://a.example/b"));
    commit(
        &mut frontier,
        end(&again, Outcome::Redirected).with_links(vec![target]),
        at(3_600),
    );
    let moved = common::only(&mut frontier, at(7_200));
    assert_eq!((&*moved.entry.url, data(&moved)), ("https://a.example/b", Some(DATA)));
    let mut links = moved.entry.links([url("https://a.example/c")]);
    links.extend(moved.entry.links_with_data([url("https://a.example/d")]));
    commit(&mut frontier, end(&moved, Outcome::Done).with_links(links), at(7_200));
    for (path, expected) in [("https://a.example/c", None), ("https://a.example/d", Some(DATA))] {
        let lease = common::only(&mut frontier, at(10_800));
        assert_eq!((&*lease.entry.url, data(&lease)), (path, expected));
        commit(&mut frontier, end(&lease, Outcome::Done), at(10_800));
    }
}

#[test]
fn a_seen_url_keeps_its_first_data() {
    let mut frontier = Frontier::in_memory(config()).unwrap();
    let other = Link::seed(url("https://a.example/")).with_data(b"8").unwrap();
    let verdicts = frontier.offer(&[seed(), other], NOW).unwrap();
    assert_eq!(verdicts, [Verdict::Queued, Verdict::Seen]);
    assert_eq!(data(&common::only(&mut frontier, NOW)), Some(DATA));
}

#[test]
fn data_of_more_than_a_kibibyte_are_refused_with_their_length() {
    let link = Link::seed(url("https://a.example/"));
    assert!(link.clone().with_data(&[7; 1024]).is_ok());
    let error = link.with_data(&[7; 1025]).unwrap_err().to_string();
    assert!(
        error.contains("1025 bytes") && error.contains("at most 1024"),
        "{error}"
    );
}
