//! What a checkpoint replaces is removed: a little with each commit, and also after a crash.

use std::time::Duration;

use super::super::checkpoint::{MANIFEST, Manifest};
use super::super::shelf::{SharedStore, StoreShelf};
use super::super::sizes::Sizes;
use super::common::{START, config, url};
use super::stores::{Recorder, SMALL, open_sized, open_store};
use crate::hosts::Shelf as _;
use crate::store::{Batch, MemoryStore, Space, Store as _};

/// The bytes that no opening needs any more.
fn leftovers(image: &MemoryStore) -> usize {
    let manifest: Manifest = postcard::from_bytes(&image.space(Space::Meta)[&MANIFEST]).unwrap();
    let rows = image.space(Space::Journal).range(..=manifest.covered);
    let kept: Vec<_> = manifest.all_keys().collect();
    let parts = image
        .space(Space::Checkpoint)
        .range(..Manifest::key(manifest.generation, 0))
        .filter(|(key, _)| !kept.iter().any(|kept| kept.contains(key)));
    rows.chain(parts).map(|(_, value)| value.len()).sum()
}

#[test]
fn what_a_checkpoint_replaces_is_removed_in_slices_and_wholly_after_a_crash() {
    // So that between two checkpoints there are as many commits as removal takes, as there are with the sizes that people have.
    let sizes = Sizes {
        min_journal_bytes: 6 * SMALL.min_journal_bytes,
        ..SMALL
    };
    let recorder = Recorder::keeping_images();
    let mut frontier = open_sized(recorder.clone(), config(), START, sizes).unwrap().frontier;
    let commits = 600_u64;
    for n in 0..commits {
        let now = START + Duration::from_millis(n);
        let seed = format!("http://site.example/{n:040}");
        frontier.add_seed(&url(&seed), now).unwrap();
        frontier.persist(&n.to_le_bytes(), now).unwrap();
    }
    let images = recorder.images();
    let left: Vec<usize> = images.iter().map(leftovers).collect();
    // Several checkpoints were finished, and what each has replaced was gone before the next one.
    let finished = left.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let gone = left.windows(2).filter(|pair| pair[1] == 0 && pair[0] > 0).count();
    assert!(finished > 4, "{finished} checkpoints");
    assert!(gone + 1 >= finished, "{gone} of {finished} were removed wholly");
    let most = left
        .windows(2)
        .map(|pair| pair[0].saturating_sub(pair[1]))
        .max()
        .unwrap();
    // A row is smaller than a part, and rows differ in size.
    assert!(most <= SMALL.part_bytes * 2, "one commit removed {most} bytes");

    // A crash leaves the most that can be left; the first commit after it removes all.
    let worst = images.iter().max_by_key(|image| leftovers(image)).unwrap();
    assert!(leftovers(worst) > SMALL.part_bytes);
    let after = Recorder::from(worst.clone());
    let now = START + Duration::from_millis(commits);
    let mut opened = open_store(after.clone(), config(), now).unwrap();
    opened.frontier.add_seed(&url("http://site.example/"), now).unwrap();
    opened.frontier.persist(b"after", now).unwrap();
    assert_eq!(leftovers(&after.image()), 0);
}

/// Segments on a shelf, and the store that has them.
struct Shelved {
    recorder: Recorder,
    shelf: StoreShelf,
}

impl Shelved {
    fn on(recorder: Recorder, next: u64) -> Self {
        let shelf = StoreShelf::new(SharedStore::new(Box::new(recorder.clone())), next, 1);
        shelf.continue_removal().unwrap();
        Self { recorder, shelf }
    }

    /// Writes what a row writes. Returns how many segments are left.
    fn commit(&mut self, add: impl FnOnce(&StoreShelf, &mut Batch)) -> usize {
        let mut batch = Batch::default();
        self.shelf.write(&mut batch);
        add(&self.shelf, &mut batch);
        self.recorder.commit(&batch, false).unwrap();
        self.recorder.image().space(Space::Segment).len()
    }
}

#[test]
fn segments_that_a_checkpoint_replaces_are_removed_in_slices_and_wholly_after_a_crash() {
    const SEGMENTS: usize = 3_000;
    let mut before = Shelved::on(Recorder::default(), 0);
    let numbers: Vec<u64> = (0..SEGMENTS).map(|_| before.shelf.put(Box::new([7; 20]))).collect();
    before.shelf.checkpoint_begun();
    assert_eq!(
        before.commit(|shelf, batch| shelf.checkpoint_finished(batch).unwrap()),
        SEGMENTS
    );
    // All but every third, so that neighbours and single ones go.
    let emptied = numbers.iter().filter(|number| *number % 3 > 0);
    emptied.for_each(|number| before.shelf.discard(*number));
    before.shelf.checkpoint_begun();
    assert_eq!(before.commit(|_, _| {}), SEGMENTS, "the last checkpoint needs them");
    let finished = before.commit(|shelf, batch| shelf.checkpoint_finished(batch).unwrap());
    assert_eq!(finished, SEGMENTS, "they go after the checkpoint");
    let left = before.commit(|_, _| {});
    assert!((SEGMENTS / 2..SEGMENTS).contains(&left), "{left}");

    // The process ends here. The checkpoint states the number of the next segment.
    let mut after = Shelved::on(before.recorder, before.shelf.next());
    let left: Vec<usize> = (0..5).map(|_| after.commit(|_, _| {})).collect();
    assert_eq!(*left.last().unwrap(), SEGMENTS / 3, "{left:?}");
    assert!(left[0] > SEGMENTS / 3, "not all at once: {left:?}");
    let mut kept = numbers.iter().filter(|number| *number % 3 == 0);
    assert!(kept.all(|number| after.shelf.read(*number).is_some()));
}
