//! The first checkpoint, whose seen-set is empty and takes no part: the configuration says all of it.

use sieve::OnSaturation;

use super::common::{START, config, url};
use super::damage::manifest;
use super::pair::picture;
use super::repair::mend;
use super::stores::{Recorder, open_store, read_store};
use crate::Verdict;
use crate::config::FrontierConfig;

#[test]
fn a_store_whose_checkpoint_has_an_empty_seen_set_is_opened_and_mended() {
    let fixed = FrontierConfig {
        exact: false,
        hashing: sieve::Hashing::Hardened { key: [7; 16] },
        ..config()
    };
    let growing = FrontierConfig {
        on_saturation: OnSaturation::Grow,
        ..fixed.clone()
    };
    let recall = FrontierConfig {
        recall: true,
        ..fixed.clone()
    };
    for config in [fixed, growing, config(), recall] {
        let recorder = Recorder::default();
        let mut frontier = open_store(recorder.clone(), config, START).unwrap().frontier;
        let pages = ["http://a.example/", "http://a.example/1", "http://b.example/"].map(url);
        for page in &pages {
            frontier.add_seed(page, START).unwrap();
        }
        frontier.persist(b"", START).unwrap();
        let image = recorder.image();
        assert_eq!(manifest(&image).seen_set_parts, 0);
        let mended = mend(&image, &image);
        assert!(!mended.report.has_losses(), "{:?}", mended.report);
        for store in [image, mended.store] {
            let mut opened = read_store(store).unwrap().frontier;
            assert_eq!(picture(&opened), picture(&frontier));
            for page in &pages {
                assert_eq!(opened.add_seed(page, START).unwrap(), Verdict::Seen);
            }
        }
    }
}
