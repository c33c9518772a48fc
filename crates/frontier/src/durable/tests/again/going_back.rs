//! Each way back restores the pages as they were: no version survives whose line is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::super::checkpoint::LOGIC;
use super::super::super::{going_back, pages};
use super::super::crash_images::pages_at;
use super::super::damage::with_manifest;
use super::super::stores::{Recorder, SMALL};
use super::{Crawl, DAY, impatient, page};
use crate::config::FrontierConfig;
use crate::durable::Sizes;
use crate::store::{Batch, MAX_KEY, MemoryStore, Space, Store};
use crate::{FailureKind, Outcome, Refetch, StoredPage, Validators};

fn find(store: &dyn Store, key: &str) -> Option<StoredPage> {
    pages::find(store, &[key]).unwrap().into_values().next_back()
}

/// A crawl with refreshes and retries under way, and new pages. Each fetch has a version of its own. Keeps an image of each commit.
fn crawl() -> Crawl {
    let config = FrontierConfig {
        sync_interval: Duration::from_secs(20),
        ..impatient()
    };
    let sizes = Sizes {
        min_journal_bytes: 3_000,
        ..SMALL
    };
    let mut crawl = Crawl::sized_in(Recorder::keeping_images(), config, sizes);
    let mut version = 0;
    for round in 0..12 {
        crawl.offer(&(0..4).map(|n| page(round % 3, round * 10 + n)).collect::<Vec<_>>());
        for step in 0..8 {
            crawl.pass(Duration::from_secs(2));
            for lease in crawl.leases(3) {
                version += 1;
                let outcome = match version % 7 {
                    0 => Outcome::failed(super::super::common::failure(FailureKind::Timeout)),
                    1 => Outcome::Rejected,
                    _ => Outcome::Done,
                };
                let etag = Some(format!("version {version}"));
                let last_modified = None;
                let settlement = lease
                    .settle(outcome)
                    .with_version(Validators { etag, last_modified }, Some(version.into()));
                crawl.frontier.settle(&[settlement], crawl.now).unwrap();
            }
            if step % 3 == 0 {
                crawl.again(Refetch::OlderThan(Duration::from_secs(9)), 2);
            }
            crawl.save();
        }
        crawl.pass(DAY);
    }
    crawl
}

/// The greatest row of an image.
fn last_row(image: &MemoryStore) -> u64 {
    image.last_key(Space::Journal).unwrap_or_default()
}

fn check(back: &MemoryStore, row: u64, pages: &BTreeMap<u64, BTreeMap<u64, Vec<u8>>>) {
    let found = back.space(Space::Page);
    assert!(found == &pages[&row], "the pages are not those of row {row}");
    assert!(back.space(Space::Undo).keys().all(|at| *at <= row));
    let mut numbered = 0;
    pages::visit(back, false, &mut |page| {
        numbered += 1;
        let found = find(back, page.key());
        assert_eq!(found, Some(page));
    })
    .unwrap();
    assert_eq!(Some(numbered), found.keys().last().copied().or(Some(0)));
}

#[test]
fn each_way_back_restores_the_pages_that_were_fetched_again() {
    let crawl = crawl();
    let images = crawl.recorder.images();
    let pages = pages_at(&images);
    assert!(
        crawl.frontier.report().pages.refreshed > 30,
        "{:?}",
        crawl.frontier.report()
    );
    let (mut unsynced, mut with_undo) = (0, 0);
    for image in &images {
        check(
            image,
            last_row(image).max(super::super::damage::manifest(image).covered),
            &pages,
        );
        with_undo += usize::from(!image.space(Space::Undo).is_empty());

        let mut back = image.clone();
        let synced = going_back::stated_row(&back).unwrap();
        unsynced += going_back::discard_unsynced(&mut back).unwrap();
        check(&back, synced, &pages);

        let mut back = with_manifest(image, |manifest| manifest.logic = LOGIC - 1);
        let covered = super::super::damage::manifest(&back).covered;
        going_back::discard_other_logic(&mut back, &crawl.config).unwrap();
        check(&back, covered, &pages);
    }
    assert!(unsynced > 100 && with_undo > 30, "{unsynced}, {with_undo}");
    // Checkpoints have replaced the oldest.
    let last = images.last().unwrap();
    assert!(last.space(Space::Undo).len() < 60, "{}", last.space(Space::Undo).len());
}

#[test]
fn a_version_whose_replaced_one_is_lost_goes() {
    let crawl = crawl();
    let image = crawl.recorder.image();
    let covered = super::super::damage::manifest(&image).covered;
    let mut damaged = image.clone();
    let mut batch = crate::store::Batch::default();
    batch.delete(Space::Undo, 0..=MAX_KEY);
    damaged.commit(&batch, false).unwrap();
    let mut back = with_manifest(&damaged, |manifest| manifest.logic = LOGIC - 1);
    going_back::discard_other_logic(&mut back, &crawl.config).unwrap();
    let before = &pages_at(&crawl.recorder.images())[&covered];
    let left = back.space(Space::Page);
    assert!(left.iter().all(|(number, page)| before[number] == *page));
    assert!(!left.is_empty() && left.len() < before.len());
    pages::visit(&back, false, &mut |page| {
        assert_eq!(find(&back, page.key()), Some(page));
    })
    .unwrap();
}

#[test]
fn a_page_whose_row_a_repair_has_lost_is_found_when_it_has_ended_again() {
    let mut crawl = Crawl::new(impatient());
    crawl.offer(&(0..20).map(|n| page(0, n)).collect::<Vec<_>>());
    crawl.fetch(|_| None);
    crawl.pass(DAY);
    crawl.refresh(100);
    crawl.save();
    let mut batch = Batch::default();
    batch.delete(Space::Page, 3..=3);
    batch.delete(Space::Tag, 0..=MAX_KEY);
    crawl.recorder.commit(&batch, false).unwrap();
    crawl.kill();
    crawl.offer(&[page(1, 0)]);
    crawl.fetch(|_| None);
    let (image, pages) = (crawl.recorder.image(), crawl.pages());
    assert_eq!(pages.len(), 21);
    for (url, page) in pages {
        assert_eq!(find(&image, &url), Some(page));
    }
}
