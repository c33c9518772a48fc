//! Power cuts: of what was not synced, the outputs and the state have lost different parts.

use std::fs::OpenOptions;
use std::path::Path;

use crawler::output::SavedOutput;
use tokio::time::Instant;

use super::*;
use crate::system_start::start_system_anew;

/// An output that knows which bytes of its file a power cut leaves: those that were there at the last sync.
struct Synced<O> {
    output: O,
    file: PathBuf,
    length: Arc<AtomicUsize>,
}

impl<O: Observer> Observer for Synced<O> {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.output.on(event)
    }

    fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        let saved = self.output.save(sync);
        if sync {
            self.length.store(length(&self.file), Ordering::SeqCst);
        }
        saved
    }
}

fn length(file: &Path) -> usize {
    fs::metadata(file).unwrap().len() as usize
}

/// Attaches the outputs. Returns what tells how many bytes of each are synced.
fn with_synced_outputs(crawl: Crawl<Site>, folder: &Folder) -> (Crawl<Site>, [(PathBuf, Arc<AtomicUsize>); 2]) {
    let outputs = ["pages", "refused"].map(|name| {
        let path = folder.0.join(name);
        let already = if path.exists() { length(&path) } else { 0 };
        (path, Arc::new(AtomicUsize::new(already)))
    });
    let [pages, refused] = outputs.clone();
    let pages = Synced {
        output: Pages::new(
            Sink::continuing("pages", folder.output(&crawl, "pages")),
            Format::JsonLines,
            &[],
        )
        .unwrap(),
        file: pages.0,
        length: pages.1,
    };
    let refused = Synced {
        output: RefusedReport::new(
            Sink::continuing("refused", folder.output(&crawl, "refused")),
            Format::JsonLines,
        )
        .unwrap(),
        file: refused.0,
        length: refused.1,
    };
    (crawl.observe(pages).observe(refused), outputs)
}

/// How a power cut leaves the bytes of a file that were not synced.
#[derive(Debug, Clone, Copy)]
enum Left {
    /// None of them.
    Nothing,
    /// The first half.
    Half,
    /// As many, but nothing is in them.
    Zeros,
    /// All, though not those of the other file.
    AllOfFirst,
}

fn cut_power(outputs: &[(PathBuf, Arc<AtomicUsize>)], left: Left) {
    for (at, (path, synced)) in outputs.iter().enumerate() {
        let (synced, whole) = (synced.load(Ordering::SeqCst), length(path));
        let file = OpenOptions::new().write(true).open(path).unwrap();
        let cut = |length: usize| file.set_len(length as u64).unwrap();
        match left {
            Left::Nothing => cut(synced),
            Left::Half => cut(synced.midpoint(whole)),
            Left::Zeros => {
                cut(synced);
                cut(whole);
            }
            Left::AllOfFirst if at > 0 => cut(synced),
            Left::AllOfFirst => {}
        }
    }
}

#[test]
fn after_power_cuts_a_crawl_goes_on_from_the_last_sync_of_its_outputs() {
    let (folder, site) = (Folder::new("power"), Site::default());
    let whole = run_to_end(&folder, &site);
    let (pages, refused) = (folder.urls("pages"), folder.urls("refused"));
    for left in [Left::Nothing, Left::Half, Left::Zeros, Left::AllOfFirst] {
        let (folder, site) = (Folder::new(&format!("power-{left:?}")), Site::default());
        let (mut cuts, mut lost) = (0, 0);
        let end = loop {
            let crawl = open(&folder, &site, options()).unwrap();
            let (crawl, outputs) = with_synced_outputs(crawl, &folder);
            // Each run is a little longer, so that every crawl ends.
            if let Some(end) = run(crawl, Duration::from_millis(1700 + cuts * 97)) {
                break end.unwrap();
            }
            let lines = || folder.0.join("pages").metadata().unwrap().len();
            let before = lines();
            cut_power(&outputs, left);
            lost += u64::from(lines() < before);
            cuts += 1;
        };
        assert!(cuts > 3, "{left:?}: {cuts} power cuts");
        assert_eq!(lost > 0, matches!(left, Left::Nothing | Left::Half), "{left:?}");
        assert_eq!(folder.urls("pages"), pages, "{left:?}");
        assert_eq!(folder.urls("refused"), refused, "{left:?}");
        assert_eq!(counts(&end), counts(&whole), "{left:?}");
    }
}

/// An output that cannot be synced when the crawl ends.
#[derive(Default)]
struct FailsAtTheEnd {
    has_ended: bool,
}

impl Observer for FailsAtTheEnd {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.has_ended |= matches!(event, Event::Finished(_));
        Ok(())
    }

    fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        match self.has_ended && sync {
            true => Err(io::Error::other("the medium is full")),
            false => Ok(None),
        }
    }
}

#[test]
fn a_power_cut_while_the_end_of_a_run_is_synced_costs_what_came_after_the_last_sync() {
    let whole = run_to_end(&Folder::new("end-whole"), &Site::default());
    let (folder, site) = (Folder::new("end"), Site::default());
    let crawl = open(&folder, &site, seldom_synced()).unwrap();
    let (crawl, outputs) = with_synced_outputs(crawl.observe(FailsAtTheEnd::default()), &folder);
    let ended = run(crawl, FOREVER).unwrap();
    assert!(matches!(ended, Err(CrawlError::Observer(_))), "{ended:?}");
    let before = folder.lines("pages").len();
    cut_power(&outputs, Left::Nothing);
    assert!(folder.lines("pages").len() < before);
    let end = run_to_end(&folder, &site);
    assert_eq!(counts(&end), counts(&whole));
    assert!(folder.urls("pages").values().all(|count| *count == 1));
}

#[test]
fn what_was_synced_and_is_missing_is_not_a_power_cut() {
    let killed_between_syncs = |millis| {
        let (folder, site) = (Folder::new(&format!("missing-{millis}")), Site::default());
        let (crawl, outputs) = with_synced_outputs(open(&folder, &site, options()).unwrap(), &folder);
        assert!(run(crawl, Duration::from_millis(millis)).is_none());
        let [(path, synced), _] = outputs;
        let synced = synced.load(Ordering::SeqCst);
        (synced > 0 && length(&path) > synced).then_some((folder, site, path, synced))
    };
    let (folder, site, path, synced) = (2000..).step_by(150).find_map(killed_between_syncs).unwrap();
    let committed = |crawl: &Crawl<Site>| crawl.saved_output("pages").unwrap().file.clone();
    let lines = fs::read(&path).unwrap();
    fs::write(&path, &lines[..synced - 1]).unwrap();
    let first = committed(&open(&folder, &site, options()).unwrap());
    assert!(first.length > synced as u64, "it does not go back");
    fs::write(&path, &lines).unwrap();
    // A run that ends before its first sync.
    let mut unsynced = options();
    unsynced.frontier.sync_interval = FOREVER;
    let crawl = with_outputs(open(&folder, &site, unsynced).unwrap(), &folder);
    assert!(run(crawl, Duration::from_secs(5)).is_none());
    let (path, lines) = (&path, fs::read(&path).unwrap());
    // It was synced when that run began.
    fs::write(path, &lines[..first.length as usize - 1]).unwrap();
    let crawl = open(&folder, &site, options()).unwrap();
    let last = committed(&crawl);
    assert!(last.length > first.length, "it does not go back");
    let refused = OutputFile::reopen(path, &last).unwrap_err();
    assert!(refused.to_string().contains("put that file back"), "{refused}");
    drop(crawl);
    // The file is put back.
    fs::write(path, &lines).unwrap();
    let before = site.count();
    let whole = run_to_end(&folder, &site);
    assert_eq!(whole.ending, Ending::Drained);
    let again = site.urls()[before..]
        .iter()
        .filter(|url| site.urls()[..before].contains(url))
        .count();
    assert!(again <= 8, "{again} requests again");
    assert!(folder.urls("pages").values().all(|count| *count == 1));
}

/// How long pages have waited for a sync.
struct Waits {
    since: Option<Instant>,
    longest: Arc<Mutex<Duration>>,
}

impl Observer for Waits {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        if matches!(event, Event::Page(_)) {
            self.since.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        if let Some(since) = self.since.take_if(|_| sync) {
            let mut longest = self.longest.lock().unwrap();
            *longest = longest.max(since.elapsed());
        }
        Ok(None)
    }
}

#[test]
fn no_page_waits_longer_for_a_sync_than_the_interval_also_while_the_crawl_waits_for_hosts() {
    for millis in [0, 150, 1000, 3000] {
        let (folder, site) = (Folder::new(&format!("sync-{millis}")), Site::default());
        let mut options = options();
        options.frontier.sync_interval = Duration::from_millis(millis);
        let longest = Arc::new(Mutex::new(Duration::ZERO));
        let waits = Waits {
            since: None,
            longest: Arc::clone(&longest),
        };
        let crawl = open(&folder, &site, options).unwrap().observe(waits);
        assert_eq!(run(crawl, FOREVER).unwrap().unwrap().ending, Ending::Drained);
        let longest = longest.lock().unwrap().as_millis();
        // Timers have milliseconds.
        assert!(longest <= u128::from(millis) + 3, "{longest} of {millis} ms");
        assert!(
            millis < 1000 || longest > u128::from(millis) / 3,
            "{longest} of {millis} ms"
        );
    }
}

/// Options without a sync after the first commit.
fn seldom_synced() -> CrawlOptions {
    let mut options = options();
    options.frontier.sync_interval = FOREVER;
    options
}

/// Runs a new crawl, and kills it long after its last sync.
fn killed(folder: &Folder, site: &Site) {
    let crawl = with_outputs(open(folder, site, seldom_synced()).unwrap(), folder);
    assert!(run(crawl, Duration::from_secs(20)).is_none());
    assert!(folder.lines("pages").len() > 10);
}

/// Moves the outputs to a folder of their own, and returns it.
fn move_outputs(folder: &Folder) -> PathBuf {
    let moved = folder.0.join("moved");
    fs::create_dir(&moved).unwrap();
    for name in ["pages", "refused"] {
        fs::rename(folder.0.join(name), moved.join(name)).unwrap();
    }
    moved
}

#[test]
fn a_kill_takes_nothing_back_also_if_the_outputs_are_moved_before_the_next_run() {
    for moves in [false, true] {
        let (folder, site) = (Folder::new(&format!("moved-{moves}")), Site::default());
        killed(&folder, &site);
        let pages = fs::metadata(folder.0.join("pages")).unwrap().len();
        if moves {
            move_outputs(&folder);
        }
        let crawl = open(&folder, &site, options()).unwrap();
        assert_eq!(crawl.saved_output("pages").unwrap().file.length, pages, "{moves}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_kill_takes_nothing_back_if_the_system_was_started_anew_before_the_run() {
    let (folder, site) = (Folder::new("before"), Site::default());
    let stopped = with_outputs(open(&folder, &site, options()).unwrap(), &folder);
    let stop = stopped.stop_handle();
    let stopped = stopped.observe(move |event: &Event<'_>| {
        if matches!(event, Event::Page(_)) {
            stop.finish();
        }
    });
    assert_eq!(run(stopped, FOREVER).unwrap().unwrap().ending, Ending::Stopped);
    start_system_anew(&folder.state());
    killed(&folder, &site);
    let pages = fs::metadata(folder.0.join("pages")).unwrap().len();
    let crawl = open(&folder, &site, options()).unwrap();
    assert_eq!(crawl.saved_output("pages").unwrap().file.length, pages);
}

#[cfg(target_os = "linux")]
#[test]
fn after_a_start_of_the_system_no_hole_in_the_middle_of_an_output_is_taken_for_lines() {
    let (folder, site) = (Folder::new("hole"), Site::default());
    let whole = run_to_end(&Folder::new("hole-whole"), &Site::default());
    killed(&folder, &site);
    start_system_anew(&folder.state());
    let mut lines = fs::read(folder.0.join("pages")).unwrap();
    // Its length and its last bytes are as they were.
    let end = lines.len() - 4200;
    lines[100..end].fill(0);
    fs::write(folder.0.join("pages"), lines).unwrap();
    let end = run_to_end(&folder, &site);
    assert_eq!(counts(&end), counts(&whole));
    assert!(folder.urls("pages").values().all(|count| *count == 1));
}

#[test]
fn what_a_killed_run_has_not_synced_is_synced_by_one_that_only_waits() {
    let (folder, site) = (Folder::new("idle"), Site::default());
    let slow = |mut options: CrawlOptions| {
        options.frontier.politeness.delay = Duration::from_secs(3600);
        options
    };
    let crawl = with_outputs(open(&folder, &site, slow(seldom_synced())).unwrap(), &folder);
    assert!(run(crawl, Duration::from_secs(3700)).is_none());
    let unsynced = || frontier::Directory::new(&folder.state()).unsynced().unwrap();
    assert!(unsynced().is_some());
    let requests = site.count();
    let crawl = with_outputs(open(&folder, &site, slow(options())).unwrap(), &folder);
    assert!(run(crawl, Duration::from_secs(600)).is_none());
    assert_eq!(site.count(), requests, "it only waits");
    assert_eq!(unsynced(), None);
}
