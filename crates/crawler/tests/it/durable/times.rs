//! The clock of the frontier never goes back. What people read has the time of day.

use std::time::{SystemTime, UNIX_EPOCH};

use frontier::{Directory, Frontier, RobotsRules, Time};

use super::*;

const DAY: Duration = Duration::from_secs(86_400);

fn now() -> Time {
    Time::since_epoch(SystemTime::now().duration_since(UNIX_EPOCH).unwrap())
}

fn no_rules(_: &[u8]) -> Arc<dyn RobotsRules> {
    unreachable!("nothing was fetched")
}

#[test]
fn after_a_clock_that_was_once_ahead_outputs_and_state_have_the_time_of_day() {
    let (folder, site) = (Folder::new("ahead"), Site::default());
    drop(open(&folder, &site, options()).unwrap());
    let directory = folder.state();
    let config = Directory::new(&directory).config().unwrap().unwrap();
    // A run whose clock was a day ahead.
    let mut ahead = Frontier::open(&directory, config, now() + DAY, Arc::new(no_rules)).unwrap();
    ahead.frontier.persist(b"", now() + DAY).unwrap();
    drop(ahead);

    let before = now().to_string();
    for time in [Duration::from_secs(5), FOREVER] {
        let crawl = with_outputs(open(&folder, &site, options()).unwrap(), &folder);
        run(crawl, time);
        let saved = crawler::SavedCrawl::read(&directory).unwrap();
        assert!(saved.saved_at.unwrap() <= now());
        assert!(saved.ahead >= DAY, "the clock of the frontier never goes back");
        assert!(saved.time_of_day(now() + DAY + DAY) <= now() + DAY);
    }
    let after = now().to_string();
    for page in folder.lines("pages") {
        let fetched_at = page["fetched_at"].as_str().unwrap();
        assert!((before.as_str()..=&after).contains(&fetched_at), "{fetched_at}");
    }
    assert!(folder.urls("pages").len() > 30);
}
