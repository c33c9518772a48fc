//! A file with the metrics, for the text file collector of Prometheus' node exporter.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::recorder::Watch;
use crate::replace::Replaceable;

/// How often the file is written while the crawl runs. Prometheus asks every 15 to 60 seconds.
const EVERY: Duration = Duration::from_secs(10);

/// How all metrics of a crawl begin.
const BEGINNING: &str = "# HELP crawler_";

/// Writes the metrics of a crawl to a file, every ten seconds and at the end, which a scrape of a short crawl would miss. Each time the file is
/// replaced as a whole, by a renamed one, so a reader never sees half of it. A thread of its own writes, so a slow disk does not delay the
/// crawl.
#[derive(Debug)]
pub struct MetricsFile {
    /// Asks the thread to write now, and to drop what it gets. Ends the thread when it is dropped.
    asks: SyncSender<Sender<()>>,
    /// Returns the file, what is written to it, and its lock.
    thread: JoinHandle<(Replaceable, Watch, Option<File>)>,
}

impl MetricsFile {
    /// Begins. The file is first written by [`write_now`](Self::write_now), or at the end. The name must end in `.prom` for the node exporter to read it.
    ///
    /// # Errors
    ///
    /// What is there and is no file, such as a device, or holds anything but metrics of a crawl; a file that another crawl writes, or that cannot be written; a
    /// thread that cannot start.
    pub fn new(path: &Path, watch: &Watch) -> io::Result<Self> {
        let file = Replaceable::new(path, BEGINNING)?;
        // One that is not there is made by the first write: a start that is refused leaves none.
        let mut lock = path.exists().then(|| file.lock()).transpose()?;
        let (asks, asked) = sync_channel::<Sender<()>>(0);
        let watch = watch.clone();
        let thread = thread::Builder::new().name("metrics file".to_owned()).spawn(move || {
            // A start that is refused writes nothing.
            let (mut has_failed, mut wait) = (false, Duration::MAX);
            loop {
                let _done = match asked.recv_timeout(wait) {
                    Ok(done) => Some(done),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return (file, watch, lock),
                };
                let written = write(&file, &watch, &mut lock);
                if let Err(error) = &written
                    && !has_failed
                {
                    log::warn!(target: "crawler::metrics", "{}: {error}; the crawl continues, and writes it again later", file.path().display());
                }
                (has_failed, wait) = (written.is_err(), EVERY);
            }
        })?;
        Ok(Self { asks, thread })
    }

    /// Writes the file now. An error is logged, as those of other times are.
    pub fn write_now(&self) {
        let (done, written) = channel();
        if self.asks.send(done).is_ok() {
            // Nothing is sent: the thread drops it.
            let _ = written.recv();
        }
    }

    /// Writes the file a last time, after the crawl.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn finish(self) -> io::Result<()> {
        drop(self.asks);
        // A panic of it would have been printed.
        let ended = self.thread.join();
        let (file, watch, mut lock) = ended.map_err(|_| io::Error::other("its writer has panicked"))?;
        write(&file, &watch, &mut lock)
    }
}

/// Writes the file, and locks the new one before the old one gets free.
fn write(file: &Replaceable, watch: &Watch, lock: &mut Option<File>) -> io::Result<()> {
    *lock = Some(lock.take().map_or_else(|| file.lock(), Ok)?);
    let new = file.replace(watch.status().metrics().as_bytes())?;
    *lock = new.or_else(|| lock.take());
    Ok(())
}
