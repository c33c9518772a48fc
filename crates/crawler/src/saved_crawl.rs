//! A crawl in a state directory, to look at: beside the process that runs it, or after it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use frontier::{
    CanonicalUrl, Canonicalizer, Directory, Frontier, FrontierConfig, HostKey, HostReport, LockHolder, NotCrawlable,
    StoredPage, Time,
};

use crate::config::with_scheme;
use crate::engine::{go_back_if_outputs_are_lost, time_of_day};
use crate::error::StartError;
use crate::orders::{Obeyed, Order, OrderError, obey};
use crate::saved_rules::{SavedRules, check_database, parse_robots};
use crate::state::{Commit, PAUSED_FILE};
use crate::summary::{AnswerTimes, Ending, HostFigures, Summary, less_ahead};

/// A crawl as it was at its last commit. It is a copy in memory, which takes what the crawl itself takes for its frontier. The crawl
/// continues meanwhile, and nothing that is done to the copy reaches it.
///
/// As long as the copy exists, the log of the state directory grows while the crawl runs. So do not keep it for long.
#[derive(Debug)]
#[non_exhaustive]
pub struct SavedCrawl {
    /// The frontier.
    pub frontier: Frontier,
    /// Its configuration, in which the secret of the hash is.
    pub config: FrontierConfig,
    /// How the crawl makes URLs canonical.
    pub canonicalizer: Canonicalizer,
    /// The numbers of all runs so far. The ending is that of the last run; if it was killed or still runs,
    /// [`Drained`](Ending::Drained) if nothing is left to fetch, else [`Stopped`](Ending::Stopped).
    pub summary: Summary,
    /// When the last commit was; `None` if there was none yet.
    pub saved_at: Option<Time>,
    /// How far the clock of the frontier was ahead of the time of day. It never goes back, so it stays ahead after a clock that was once wrong.
    pub ahead: Duration,
    /// Who has the directory open.
    pub holder: LockHolder,
    /// Whether the process that has the directory open is paused, or the last one ended in a pause.
    pub is_paused: bool,
    answer_times: AnswerTimes,
    /// The time of the frontier at which its hosts are looked at.
    now: Time,
}

impl SavedCrawl {
    /// Reads the crawl in a directory. Cost: it makes the calls since the last checkpoint again, some seconds at most.
    ///
    /// # Errors
    ///
    /// A directory without a crawl, or one that cannot be read, is damaged, or is of another version of this program.
    pub fn read(dir: &Path) -> Result<Self, StartError> {
        check_database(dir)?;
        let rules = SavedRules::read(dir)?.unwrap_or_default();
        let stored = Directory::new(dir).config()?;
        let robots_name = stored.map(|config| config.politeness.robots_name).unwrap_or_default();
        let opened = Directory::new(dir).read(parse_robots(&robots_name))?;
        let saved = Commit::read(&opened.attachment.unwrap_or_default())?;
        let saved_at = saved.as_ref().map(|(_, commit)| commit.time);
        let (counts, commit) = saved.unwrap_or_default();
        let is_drained = opened.frontier.report().is_drained();
        let killed = if is_drained { Ending::Drained } else { Ending::Stopped };
        let ending = commit.ending.unwrap_or(killed);
        let mut summary = Summary {
            elapsed: commit.elapsed,
            robots_name: opened.config.politeness.ask_robots.then_some(robots_name),
            ..Summary::new(ending, counts, opened.frontier.report())
        };
        let ahead = opened.now.since(saved_at.unwrap_or(opened.now));
        // A host that hangs lets nothing be committed.
        let holder = Directory::new(dir).lock_holder()?;
        let now = match holder {
            LockHolder::Nobody => opened.now,
            _ => opened.now.max(time_of_day() + ahead),
        };
        let answer_times = AnswerTimes::read(dir);
        summary.host_table = Arc::new(answer_times.table(&opened.frontier, now, ahead));
        Ok(Self {
            frontier: opened.frontier,
            config: opened.config,
            canonicalizer: rules.canonicalizer(),
            summary,
            saved_at,
            ahead,
            holder,
            is_paused: dir.join(PAUSED_FILE).exists(),
            answer_times,
            now,
        })
    }

    /// Gives [orders](crate::Orders) to the crawl in a directory that no process has open. They are synced.
    ///
    /// # Errors
    ///
    /// Those of [`Orders::give`](crate::Orders::give); a directory without a crawl, or one that cannot be opened.
    pub fn give(dir: &Path, orders: &[Order]) -> Result<Obeyed, OrderError> {
        check_database(dir).map_err(StartError::from)?;
        let rules = SavedRules::read(dir).map_err(StartError::from)?.unwrap_or_default();
        let config = Directory::new(dir).config().map_err(StartError::from)?;
        let robots_name = config.map(|config| config.politeness.robots_name).unwrap_or_default();
        let parse = parse_robots(&robots_name);
        let obey = |frontier: &mut Frontier, now| obey(frontier, &rules.canonicalizer(), orders, now, &mut |_, _| {});
        // On a copy first: an order that is refused leaves the directory as it is.
        let mut copy = Directory::new(dir).read(Arc::clone(&parse)).map_err(StartError::from)?;
        obey(&mut copy.frontier, copy.now)?;
        go_back_if_outputs_are_lost(dir)?;
        let opened = Frontier::open(dir, copy.config, time_of_day(), parse).map_err(StartError::from)?;
        let (mut frontier, now) = (opened.frontier, opened.now);
        let obeyed = obey(&mut frontier, now)?;
        frontier.persist(&opened.attachment.unwrap_or_default(), now)?;
        Ok(obeyed)
    }

    /// Returns whether a process had the directory open when it was read.
    pub fn is_running(&self) -> bool {
        self.holder != LockHolder::Nobody
    }

    /// Iterates over all hosts, in no particular order, as of the time of the summary. Cost: a look at each host.
    pub fn hosts(&self) -> impl Iterator<Item = HostFigures> {
        let reports = self.frontier.host_reports(self.now);
        reports.map(|report| self.figures_of(report))
    }

    /// Returns one host, as of the time of the summary.
    pub fn host(&self, host: &HostKey) -> Option<HostFigures> {
        let report = self.frontier.host_report(host, self.now);
        report.map(|report| self.figures_of(report))
    }

    fn figures_of(&self, report: HostReport) -> HostFigures {
        self.answer_times.figures_of(report, self.now).less_ahead(self.ahead)
    }

    /// Visits what became of each page of the crawl in a directory, as [`Directory::visit_pages`] does, without the rest of its state.
    ///
    /// # Errors
    ///
    /// A directory without a crawl, or one that cannot be read or is damaged.
    pub fn visit_pages(dir: &Path, failed_only: bool, visit: &mut dyn FnMut(StoredPage)) -> Result<(), StartError> {
        check_database(dir)?;
        Ok(Directory::new(dir).visit_pages(failed_only, visit)?)
    }

    /// Returns a time that the frontier says as the time of day.
    pub fn time_of_day(&self, time: Time) -> Time {
        less_ahead(time, self.ahead)
    }

    /// Makes a URL canonical as the crawl does. A host without a scheme gets one, as a seed does.
    ///
    /// # Errors
    ///
    /// A text that is not a URL that can be crawled.
    pub fn canonical_url(&self, text: &str) -> Result<CanonicalUrl, NotCrawlable> {
        self.canonicalizer.parse(&with_scheme(text.trim()))
    }
}
