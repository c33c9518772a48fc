//! The concurrent filter under a model checker, which tries every order in which two threads can meet.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p crawl-sieve --release --test loom`

#![cfg(loom)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use loom::sync::Arc;
use loom::thread;
use sieve::{ConcurrentBloomFilter, Hashing, Sizing};

/// One block, so that all keys meet.
fn filter() -> Arc<ConcurrentBloomFilter> {
    let sizing = Sizing::explicit_blocks(1, 3).unwrap();
    Arc::new(ConcurrentBloomFilter::with_hashing(sizing, Hashing::default()).unwrap())
}

#[test]
fn if_two_threads_insert_the_same_key_exactly_one_wins() {
    loom::model(|| {
        let filter = filter();
        let other = Arc::clone(&filter);
        let theirs = thread::spawn(move || other.insert(b"key"));
        let ours = filter.insert(b"key");
        assert!(ours ^ theirs.join().unwrap());
        assert!(filter.contains(b"key"));
    });
}

#[test]
fn threads_that_insert_different_keys_lose_neither() {
    loom::model(|| {
        let filter = filter();
        let other = Arc::clone(&filter);
        let thread = thread::spawn(move || {
            other.insert(b"one");
            assert!(other.contains(b"one"));
        });
        filter.insert(b"two");
        assert!(filter.contains(b"two"));
        thread.join().unwrap();
        assert!(filter.contains(b"one") && filter.contains(b"two"));
    });
}

#[test]
fn each_of_two_keys_that_two_threads_insert_in_opposite_order_has_one_winner() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let filter = filter();
        let other = Arc::clone(&filter);
        let theirs = thread::spawn(move || [other.insert(b"a"), other.insert(b"b")]);
        let [b, a] = [filter.insert(b"b"), filter.insert(b"a")];
        let [their_a, their_b] = theirs.join().unwrap();
        // The second key of a thread may be taken for seen by bits of the first; with these two it is not.
        assert!(a ^ their_a, "a");
        assert!(b ^ their_b, "b");
    });
}
