//! The observer of a crawl, and what reads it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crawler::{Crawl, Ending, Event, Fetcher, Observer, Phase, StopHandle};
use tokio::sync::watch;

use crate::process;
use crate::recent::shortened;
use crate::series::{Series, SeriesFile};
use crate::status::Status;

/// The most seeds that are named.
const SEEDS: usize = 3;

/// Reads what is known of a crawl. Clones read the same crawl.
#[derive(Debug, Clone)]
pub struct Watch(watch::Receiver<Arc<Status>>);

impl Watch {
    /// Makes a watch, and the observer that it reads: give that to [`Crawl::observe`](crawler::Crawl::observe). The numbers over time go on
    /// from those of earlier runs in `state`, the [state directory](crawler::CrawlBuilder::state_dir) of the crawl if it has one.
    pub fn new<S: Fetcher>(crawl: &Crawl<S>, state: Option<&Path>) -> (Self, Recorder) {
        let mut status = Status::new(process::now());
        let seeds = crawl.config().seeds();
        let named = seeds.iter().take(SEEDS);
        let named: Vec<_> = named.map(|seed| shortened(seed.url.url().as_str())).collect();
        let more = seeds.len() - named.len();
        status.seeds = (named, more);
        status.max_time = crawl.config().options().max_time;
        status.disks.state = state.map(Path::to_owned);
        status.series = state.map(Series::read).unwrap_or_default();
        let (sender, receiver) = watch::channel(Arc::new(status.clone()));
        let recorder = Recorder {
            status,
            handle: crawl.stop_handle(),
            file: state.map(SeriesFile::new),
            sender,
        };
        (Self(receiver), recorder)
    }

    /// Returns what was known at the last second.
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.0.borrow())
    }

    /// Waits until more is known, and returns it; `None` if the crawl is over and everything was returned.
    pub async fn changed(&mut self) -> Option<Arc<Status>> {
        self.0.changed().await.ok()?;
        Some(Arc::clone(&self.0.borrow_and_update()))
    }
}

/// Observes a crawl for a [`Watch`]. Cost: some additions per request and per commit; each second a copy of the summary.
#[derive(Debug)]
pub struct Recorder {
    status: Status,
    handle: StopHandle,
    /// The series in the state directory.
    file: Option<SeriesFile>,
    sender: watch::Sender<Arc<Status>>,
}

impl Recorder {
    /// Names the outputs of the crawl: their sizes, and the free space of their disks, are metrics.
    #[must_use]
    pub fn with_outputs(mut self, outputs: impl IntoIterator<Item = PathBuf>) -> Self {
        self.status.disks.outputs = outputs.into_iter().collect();
        self
    }

    fn publish(&mut self, summary: &crawler::Summary) {
        self.keep_series(summary);
        self.status.as_of = process::now();
        self.status.summary = Some(summary.clone());
        self.sender.send_replace(Arc::new(self.status.clone()));
    }

    fn keep_series(&mut self, summary: &crawler::Summary) {
        let series = &mut self.status.series;
        // At the first tick.
        if self.status.summary.is_none() {
            series.cut_after(summary.elapsed_before);
        }
        series.add(summary, self.status.is_finished);
        if let Some(file) = &mut self.file {
            file.keep(series.points());
        }
    }
}

impl Drop for Recorder {
    /// Publishes the end of a crawl that ends with an error: what is queued is missing.
    fn drop(&mut self) {
        if !self.status.is_finished {
            self.status.is_finished = true;
            self.status.as_of = process::now();
            if let Some(summary) = &mut self.status.summary {
                summary.ending = Ending::Error;
            }
            self.sender.send_replace(Arc::new(self.status.clone()));
        }
    }
}

impl Observer for Recorder {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Requested(request) => self.status.measured.add_request(request),
            Event::Page(page) => self.status.recent.add_page(page),
            Event::Failed { entry, failure, fate } => self.status.recent.add_failure(&entry.url, failure, *fate),
            Event::Committed { took, database_bytes } => self.status.measured.add_commit(*took, *database_bytes),
            Event::Tick(summary) => {
                self.status.phase = self.handle.phase();
                self.publish(summary);
            }
            Event::Finished(summary) => {
                self.status.phase = Phase::Stopping;
                self.status.is_finished = true;
                self.publish(summary);
            }
            _ => {}
        }
        Ok(())
    }
}
