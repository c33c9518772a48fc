//! How others watch a crawl: a server, and a file of metrics.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crawler::{Crawl, Phase};
use crawler_watch::{MetricsFile, ReportFile, Server, Watch};

use crate::options::Options;
use crate::orders::Obeying;
use crate::{flag, logging};

/// Why a crawl cannot be watched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchError {
    #[error("the crawl cannot be watched at {0}: {1}")]
    Address(SocketAddr, io::Error),
    #[error("{} cannot be written: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
}

/// What is to end after the crawl.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    file: Option<MetricsFile>,
    report: Option<(ReportFile, PathBuf, Watch)>,
    server: Option<Server>,
    watch: Option<Watch>,
}

/// Attaches what the options name. With a state directory, the numbers over time are kept there for `crawler report`.
pub(crate) fn attach(crawl: Crawl, options: &Options, state: Option<&Path>) -> Result<(Crawl, Watching), WatchError> {
    let outputs = &options.outputs;
    if options.watch.is_none() && outputs.metrics_file.is_none() && outputs.report.is_none() && state.is_none() {
        return Ok((crawl, Watching::default()));
    }
    let obeying = Obeying::of(&crawl);
    let (watch, recorder) = Watch::new(&crawl, state);
    let recorder = recorder.with_outputs(outputs.all_files().cloned());
    let file = outputs.metrics_file.clone().map(|path| {
        let file = MetricsFile::new(&path, &watch);
        file.map_err(|error| WatchError::File { path, error })
    });
    let report = outputs.report.clone().map(|path| match ReportFile::new(&path) {
        Ok(file) => Ok((file, path, watch.clone())),
        Err(error) => Err(WatchError::File { path, error }),
    });
    let server = options.watch.map(|address| {
        let handle = obeying.stop.clone();
        let obey = move |order: Vec<u8>| {
            let obeying = obeying.clone();
            async move { obeying.answer(&order).await.into_json() }
        };
        let server = Server::new(address, &watch, handle, flag::of, obey);
        server.map_err(|error| WatchError::Address(address, error))
    });
    let watching = Watching {
        file: file.transpose()?,
        report: report.transpose()?,
        server: server.transpose()?,
        watch: Some(watch),
    };
    if let Some(server) = &watching.server {
        let (address, token) = (server.address(), server.token());
        log::info!(
            target: logging::WATCH,
            address:% = address, token;
            "watch the crawl at http://{address}/#token={token}"
        );
    }
    Ok((crawl.observe(recorder), watching))
}

impl Watching {
    /// Waits until those who read the metrics know of a pause, as long as it lasts. The process stops after it, and answers nobody.
    pub(crate) async fn tell_pause(&self, lasts: impl Fn() -> bool) {
        let Some(mut watch) = self.watch.clone() else { return };
        if self.file.is_none() && self.server.is_none() {
            return;
        }
        while matches!(watch.status().phase, Phase::Running | Phase::Pausing) {
            if !lasts() || watch.changed().await.is_none() {
                return;
            }
        }
        self.write_metrics();
        if let Some(server) = &self.server {
            server.scraped().await;
        }
    }

    /// Writes the metrics now. The first time it is sure that the crawl starts: until then they are those of the run before.
    pub(crate) fn write_metrics(&self) {
        if let Some(file) = &self.file {
            file.write_now();
        }
    }

    /// Writes the files, with the numbers of the end. Returns the server, too: it may have to wait for those who read them.
    pub(crate) fn finish(self) -> (Result<(), WatchError>, Option<Server>) {
        if let Some(Err(error)) = self.file.map(MetricsFile::finish) {
            log::warn!(target: "crawler::metrics", "the metrics cannot be written: {error}");
        }
        let report = self.report.map_or(Ok(()), |(file, path, watch)| {
            let written = file.write(&watch.status(), flag::of);
            written.map_err(|error| WatchError::File { path, error })
        });
        (report, self.server)
    }
}
