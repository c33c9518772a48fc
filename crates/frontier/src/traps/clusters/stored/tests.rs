//! What is read is what was stored, and what no crawl has stored does no harm.

use std::collections::HashSet;

use super::super::Resemblance;
use super::*;
use crate::fingerprint::Fingerprint;

/// SplitMix64.
fn random(number: u64) -> u64 {
    let mut word = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}

/// New pages, pages near an earlier one or equal to it, and pages that lack one of the hashes.
fn page(n: u64) -> (String, Fingerprint) {
    let earlier = n - random(n) % n.min(900);
    let (content, text) = match random(n + 1) % 8 {
        0 => (Some(earlier), Some(random(earlier))),
        1 | 2 => (Some(n), Some(random(earlier) ^ 1 << (n % 64) ^ 1 << (n * 7 % 64))),
        3 => (Some(n), None),
        4 => (None, Some(random(n))),
        _ => (Some(n), Some(random(n))),
    };
    let content = content.map(|content| ContentHash::from(u128::from(content) << 64 | u128::from(random(content))));
    (
        format!("http://host.example/page/{n}"),
        Fingerprint::new(content, text.map(SimHash::from)),
    )
}

fn both(content: u64, text: u64) -> Fingerprint {
    Fingerprint::new(Some(ContentHash::from(u128::from(content))), Some(SimHash::from(text)))
}

fn text_only(text: u64) -> Fingerprint {
    Fingerprint::new(None, Some(SimHash::from(text)))
}

fn bytes(clusters: &Clusters) -> Vec<u8> {
    postcard::to_allocvec(clusters).unwrap()
}

fn read(bytes: &[u8], room: usize) -> Clusters {
    let mut clusters: Clusters = postcard::from_bytes(bytes).unwrap();
    clusters.set_room(room);
    clusters
}

#[test]
fn clusters_that_were_stored_find_what_they_would_have_found() {
    // The tables grow at 1 024 leaders, and pages and leaders are forgotten from 2 000 on.
    let room = 2_000;
    let (mut kept, mut stored) = (Clusters::new(room), Clusters::new(room));
    for n in 1..8_000 {
        let (url, fingerprint) = page(n);
        assert_eq!(
            stored.classify(&url, fingerprint),
            kept.classify(&url, fingerprint),
            "page {n}"
        );
        if n % 501 == 0 {
            stored = read(&bytes(&stored), room);
            assert_eq!(bytes(&stored), bytes(&kept), "page {n}");
        }
    }
    let counts = kept.counts();
    assert_eq!(stored.counts(), counts);
    assert!(
        counts.exact > 500 && counts.near > 500 && counts.forgotten > 500,
        "{counts:?}"
    );
}

#[test]
fn with_less_room_than_before_the_latest_are_remembered() {
    let mut clusters = Clusters::new(1_000);
    for n in 1..1_000 {
        let (url, fingerprint) = page(n);
        clusters.classify(&url, fingerprint);
    }
    let mut clusters = read(&bytes(&clusters), 10);
    clusters.classify("new", both(1, 1));
    assert_eq!((clusters.exact.len(), clusters.leaders.len()), (10, 10));
    let again = clusters.classify("again", text_only(3));
    assert_eq!(again.near_duplicate_of.as_deref(), Some("new"));
}

#[test]
fn each_url_is_stored_once() {
    let mut clusters = Clusters::new(1_000);
    let url = |n: u64| format!("{:<80}{n:20}", random(n));
    for n in 0..500 {
        clusters.classify(&url(n), both(n, random(n)));
    }
    let stored = bytes(&clusters);
    // Of a leader 10 bytes of its simhash and 4 of its numbers; of a page 3 of its hash and 6 of its numbers.
    let most = 500 * (url(0).len() + 40);
    assert!(stored.len() < most, "{} bytes", stored.len());
    let again = read(&stored, 1_000);
    let is_shared = |original: &Original| Arc::ptr_eq(&original.url, &original.cluster.first);
    assert!(again.exact.values().all(is_shared), "nor is it in memory twice");
}

#[test]
fn the_url_of_a_first_page_that_was_forgotten_is_stored_once() {
    let mut clusters = Clusters::new(100);
    let first = "first".repeat(100);
    for n in 0..50 {
        clusters.classify(if n == 0 { &first } else { "near" }, both(n, 1));
    }
    // Leaders without a content hash, so that no page is forgotten.
    for n in 1..=100 {
        clusters.classify("other", text_only(random(n)));
    }
    assert!(clusters.find(SimHash::from(1)).is_none(), "its leader was forgotten");
    let stored = bytes(&clusters);
    assert!(stored.len() < 2 * first.len() + 150 * 30, "{} bytes", stored.len());
    let again = read(&stored, 100);
    assert_eq!(bytes(&again), stored);
    let kept: HashSet<*const u8> = again.exact.values().map(|page| page.cluster.first.as_ptr()).collect();
    assert_eq!((again.exact.len(), kept.len()), (50, 1), "nor is it in memory twice");
}

#[test]
fn numbers_that_no_crawl_has_are_an_error() {
    let is_read = |change: fn(&mut Clusters)| {
        let mut clusters = Clusters::new(10);
        clusters.classify("first", both(1, 1));
        change(&mut clusters);
        let read = postcard::from_bytes::<Clusters>(&bytes(&clusters));
        // With what is read, a page can be compared.
        read.is_ok_and(|mut read| read.classify("second", both(2, u64::MAX)) == Resemblance::default())
    };
    assert!(is_read(|_| {}));
    assert!(is_read(|clusters| clusters.bits = BLOCK_BITS) && !is_read(|clusters| clusters.bits = BLOCK_BITS + 1));
    assert!(is_read(|clusters| clusters.oldest = MOST) && !is_read(|clusters| clusters.oldest = u64::MAX));
    let count_of: [fn(&mut ResemblanceCounts) -> &mut u64; 5] = [
        |counts| &mut counts.compared,
        |counts| &mut counts.exact,
        |counts| &mut counts.near,
        |counts| &mut counts.forgotten,
        |counts| &mut counts.cut_short,
    ];
    for count_of in count_of {
        let mut clusters = Clusters::new(10);
        *count_of(&mut clusters.counts) = u64::MAX;
        assert!(postcard::from_bytes::<Clusters>(&bytes(&clusters)).is_err());
    }
}

#[test]
fn leaders_that_are_not_in_order_are_an_error() {
    let mut clusters = Clusters::new(10);
    for n in 1..3 {
        clusters.classify("page", text_only(random(n)));
    }
    assert_eq!(clusters.leaders.len(), 2);
    clusters.leaders.swap(0, 1);
    assert!(postcard::from_bytes::<Clusters>(&bytes(&clusters)).is_err());
}

#[test]
fn a_page_whose_url_is_missing_is_an_error() {
    let is_read = |first, url| {
        let stored = Stored {
            urls: vec!["first".into(), "second".into()],
            pages: vec![(ContentHash::from(1), 1, first, url)],
            ..Stored::default()
        };
        postcard::from_bytes::<Clusters>(&postcard::to_allocvec(&stored).unwrap()).is_ok()
    };
    assert!(is_read(0, 1) && !is_read(2, 1) && !is_read(0, 2));
}
