//! Directories that another version of the program has left, killed.

use frontier::{FrontierConfig, OpenError, Partition, simulation};

use super::*;
use crawler::StateError;

/// Runs a crawl for some time, kills it, and makes its journal one of another version.
fn killed_in_another_version(crawl: Crawl<Site>, folder: &Folder, time: Duration) -> Option<Summary> {
    let ended = run(crawl, time);
    if ended.is_none() {
        simulation::change_logic(&folder.state()).unwrap();
    }
    ended.map(Result::unwrap)
}

#[test]
fn a_crawl_of_another_version_goes_back_to_its_checkpoint_and_each_line_is_there_once() {
    let (folder, site) = (Folder::new("one-version"), Site::default());
    let whole = run_to_end(&folder, &site);
    let (pages, refused) = (folder.urls("pages"), folder.urls("refused"));

    let (folder, site) = (Folder::new("versions"), Site::default());
    // No checkpoint is due in so short a crawl. Each run is longer, so that it ends.
    let mut kills = 0;
    let end = loop {
        let crawl = with_outputs(open(&folder, &site, options()).unwrap(), &folder);
        match killed_in_another_version(crawl, &folder, Duration::from_millis(3000 + kills * 9000)) {
            Some(end) => break end,
            None => kills += 1,
        }
    };
    assert!(kills > 2, "{kills}");
    assert!(
        site.count() > pages.len() + 20,
        "{} requests: nothing was fetched again",
        site.count()
    );
    assert_eq!((folder.urls("pages"), folder.urls("refused")), (pages, refused));
    assert_eq!(counts(&end), counts(&whole));
}

#[test]
fn an_output_that_began_after_a_checkpoint_is_cut_back_to_it() {
    let (folder, site) = (Folder::new("late"), Site::default());
    let without = open(&folder, &site, options()).unwrap();
    let mut stopped = options();
    stopped.max_time = Some(Duration::from_secs(8));
    drop(without);
    run(open(&folder, &site, stopped).unwrap(), FOREVER).unwrap().unwrap();
    let crawl = with_outputs(open(&folder, &site, options()).unwrap(), &folder);
    assert!(killed_in_another_version(crawl, &folder, Duration::from_secs(9)).is_none());
    assert!(!folder.lines("pages").is_empty());
    run_to_end(&folder, &site);
    for name in ["pages", "refused"] {
        let urls = folder.urls(name);
        assert!(
            !urls.is_empty() && urls.values().all(|lines| *lines == 1),
            "{name}: {urls:?}"
        );
    }
}

#[test]
fn files_of_a_series_that_began_after_a_checkpoint_go_with_it() {
    let (folder, site) = (Folder::new("series"), Site::default());
    let size = std::num::NonZeroU64::new(1);
    let in_series = |crawl: Crawl<Site>| {
        let saved = crawl.saved_output("pages").map(|saved| saved.file.clone());
        let free = saved.is_none_or(|saved| saved.check(&folder.file("pages"), size).is_ok());
        assert!(free, "later files have content");
        let file = folder.output(&crawl, "pages").with_max_bytes(size);
        crawl.observe(Pages::new(Sink::continuing("pages", file), Format::JsonLines, &[]).unwrap())
    };
    let files = || crawler::output::series_of(&folder.file("pages")).collect::<std::collections::BTreeMap<_, _>>();
    let crawl = in_series(open(&folder, &site, options()).unwrap());
    assert!(killed_in_another_version(crawl, &folder, Duration::from_secs(40)).is_none());
    assert!(files().len() > 2, "{:?}", files());
    run(in_series(open(&folder, &site, options()).unwrap()), FOREVER)
        .unwrap()
        .unwrap();
    let lines: Vec<_> = files()
        .into_values()
        .flat_map(|path| folder.urls(path.to_str().unwrap()))
        .collect();
    let (whole, other) = (Folder::new("one-file"), Site::default());
    run_to_end(&whole, &other);
    assert_eq!(lines.len(), whole.urls("pages").len());
    assert!(lines.iter().all(|(_, times)| *times == 1), "{lines:?}");
}

#[test]
fn a_partition_of_another_version_is_refused_unless_the_loss_is_accepted() {
    let (folder, site) = (Folder::new("partition"), Site::default());
    let mut shared = options();
    shared.frontier = FrontierConfig {
        partition: Some(Partition::new(0, 1).unwrap()),
        ..shared.frontier
    };
    let crawl = with_outputs(open(&folder, &site, shared.clone()).unwrap(), &folder);
    assert!(killed_in_another_version(crawl, &folder, Duration::from_secs(9)).is_none());
    let before = (
        folder.lines("pages"),
        fs::read(folder.state().join("frontier.sqlite")).unwrap(),
    );
    let refused = open(&folder, &site, shared.clone()).unwrap_err();
    assert!(
        matches!(refused, StartError::State(StateError::OtherLogic)),
        "{refused}"
    );
    assert_eq!(
        (
            folder.lines("pages"),
            fs::read(folder.state().join("frontier.sqlite")).unwrap()
        ),
        before
    );
    let accepting = Crawl::builder(shared)
        .unwrap()
        .state_dir(folder.state())
        .accept_loss(true);
    let crawl = with_outputs(accepting.build_with(site.clone()).unwrap(), &folder);
    assert!(crawl.is_continued());
    run(crawl, FOREVER).unwrap().unwrap();
    assert!(folder.urls("pages").values().all(|lines| *lines == 1));
}

#[test]
fn a_directory_that_only_another_version_reads_says_so() {
    let (folder, site) = (Folder::new("read"), Site::default());
    let crawl = open(&folder, &site, options()).unwrap();
    assert!(killed_in_another_version(crawl, &folder, Duration::from_secs(9)).is_none());
    let refused = crawler::SavedCrawl::read(&folder.state()).unwrap_err();
    assert!(
        matches!(refused, StartError::Open(OpenError::OtherLogic { .. })),
        "{refused}"
    );
    assert!(refused.is_of_other_version());
}
