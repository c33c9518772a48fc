//! From every commit there is a way back to the last one that was synced.

use std::time::Duration;

use super::super::going_back;
use super::crash_images::{check, records};
use super::pair::make;
use super::run::{Run, config_of, steps_of};
use super::seen_sets::SeenSet;
use super::stores::{Recorder, open_store, read_store};
use crate::FrontierConfig;

#[test]
fn every_store_goes_back_to_its_last_synced_commit_and_on_from_there() {
    for seen_set in [SeenSet::Exact(10), SeenSet::Growing(1)] {
        let config = FrontierConfig {
            sync_interval: Duration::from_secs(20),
            ..config_of(seen_set)
        };
        let run = Run::with(240, config);
        let recorder = Recorder::keeping_images();
        run.drive_new(&recorder);

        let (mut synced, mut discarded) = ((0, Vec::new()), 0);
        for (number, (image, sync)) in recorder.images().into_iter().zip(recorder.syncs()).enumerate() {
            let steps = steps_of(read_store(image.clone()).unwrap().attachment.as_deref());
            if sync {
                synced = (steps, records(&image));
            }
            let mut back = image;
            let unsynced = going_back::unsynced(&back).unwrap();
            assert_eq!(unsynced.is_some(), steps != synced.0, "image {number}");
            if let Some(unsynced) = unsynced {
                assert_eq!(steps_of(Some(&unsynced.attachment)), steps);
                discarded += unsynced.commits;
                assert_eq!(going_back::discard_unsynced(&mut back).unwrap(), unsynced.commits);
            }
            assert!(going_back::unsynced(&back).unwrap().is_none());
            assert_eq!(records(&back), synced.1, "image {number}");
            if number % 4 > 0 {
                continue;
            }
            assert_eq!(check(&run, &back), synced.0, "image {number}");
            // What follows takes the place of what was discarded.
            let after = Recorder::from(back);
            let mut opened = open_store(after.clone(), run.config.clone(), run.time(240)).unwrap();
            for (nth, (step, _)) in run.steps.iter().rev().take(20).enumerate() {
                let now = opened.now + Duration::from_secs(nth as u64);
                make(&mut opened.frontier, step, now);
                opened.frontier.persist(b"240", now).unwrap();
                let read = read_store(after.image()).unwrap();
                assert_eq!(
                    run.picture(&read.frontier),
                    run.picture(&opened.frontier),
                    "image {number}"
                );
            }
        }
        assert!(discarded > 20, "{discarded}");
    }
}
