//! Own data on a URL, in a directory.

use std::time::Duration;

use frontier::{Class, Directory, Link, NotFetched, Outcome, Refetch, StoredPage};

use super::TemporaryDir;
use crate::common::{self, START as NOW, at, commit, config, end, url};
use crate::own_data::{DATA, data, seed};
use crate::shared::pair::Place as _;

#[test]
fn data_survive_a_kill_and_a_fetch_again_and_are_in_the_row_of_a_page() {
    let dir = TemporaryDir::new();
    let mut frontier = dir.open(config(), NOW).frontier;
    let forbidden = Link::seed(url("https://b.example/")).with_data(b"9").unwrap();
    frontier
        .offer(&[seed().with_class(Class::LAST), forbidden], NOW)
        .unwrap();
    frontier.persist(b"", NOW).unwrap();
    drop(frontier);
    let mut frontier = dir.open(config(), NOW).frontier;
    for lease in common::ready(&mut frontier, NOW) {
        let outcome = match data(&lease) {
            Some(DATA) if lease.entry.class == Class::LAST => Outcome::Done,
            _ => Outcome::NotFetched(NotFetched::AddressForbidden),
        };
        commit(&mut frontier, end(&lease, outcome), NOW);
    }
    frontier.persist(b"", NOW).unwrap();
    let mut rows = Vec::new();
    let mut visit = |page: StoredPage| rows.push(page.data.map(|data| data.as_bytes().to_vec()));
    Directory::new(&dir.0).visit_pages(false, &mut visit).unwrap();
    rows.sort();
    assert_eq!(rows, [Some(b"9".to_vec()), Some(DATA.to_vec())]);
    let old = Refetch::OlderThan(Duration::from_secs(60));
    frontier.queue_again(old, 10, at(3_600)).unwrap();
    assert_eq!(data(&common::only(&mut frontier, at(3_600))), Some(DATA));
}
