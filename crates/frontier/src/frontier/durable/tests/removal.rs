//! What a checkpoint replaces is removed: a little with each commit, and also after a crash.

use std::time::Duration;

use super::super::checkpoint::{MANIFEST, Manifest};
use super::common::{START, config, url};
use super::stores::{Recorder, SMALL, open_store};
use crate::store::{MemoryStore, Space};

/// The bytes that no opening needs any more.
fn leftovers(image: &MemoryStore) -> usize {
    let manifest: Manifest = postcard::from_bytes(&image.space(Space::Meta)[&MANIFEST]).unwrap();
    let rows = image.space(Space::Journal).range(..=manifest.covered);
    let parts = image
        .space(Space::Checkpoint)
        .range(..Manifest::key(manifest.generation, 0));
    rows.chain(parts).map(|(_, value)| value.len()).sum()
}

#[test]
fn what_a_checkpoint_replaces_is_removed_in_slices_and_wholly_after_a_crash() {
    let recorder = Recorder::keeping_images();
    let mut frontier = open_store(recorder.clone(), config(), START).unwrap().frontier;
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
