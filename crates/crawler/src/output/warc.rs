//! WARC 1.1 (ISO 28500:2017): everything that was fetched, as it went over the wire.
//!
//! Every answer becomes a `response` record with the `request` that it answers: pages, redirects, errors, robots.txt, of every
//! attempt. Each file starts with a `warcinfo` record. In a file whose name ends in `.gz` every record is a gzip member of its
//! own (annex D of the standard), so that a reader can go to any of them.
//!
//! What a reader should know:
//!
//! * Transfer codings are undone, so the header `transfer-encoding` is called `x-archive-orig-transfer-encoding`. Content codings
//!   are not. Names of headers are in lower case, as the HTTP library gives them.
//! * HTTP/2 has no text form: its messages are written as those of HTTP/1.1, with the field `WARC-Protocol: h2`.
//! * Of the request, logins, cookies and the user's own headers are left out: archives are passed on.
//! * Digests are SHA-1 in Base32, as archives have them. Whether a payload was seen before is decided by SHA-256: for SHA-1 two
//!   different documents can be made that share it.
//! * A payload that is in the archive already, under whatever URL, becomes a `revisit` record of the profile
//!   `identical-payload-digest`; an answer 304 one of the profile `server-not-modified`. The youngest payloads are remembered, in 32 MiB; older ones are written again.

mod file;
mod payloads;
mod record;

use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use self::file::Series;
use self::payloads::{Original, Payloads};
use self::record::{Info, Record};
use crate::event::{Event, Observer};
use crate::fetch::Capture;

/// Captures that may wait for the writer, each with its body: the crawl waits for it when there are more.
const MOST_WAITING: usize = 8;

/// What an archive is written with.
#[derive(Debug, Clone)]
pub struct ArchiveOptions {
    /// The file. Records are compressed if its name ends in `.gz`. One that is there is gone on with, never replaced.
    pub path: PathBuf,
    /// When a file has so many bytes, another is begun: after `pages.warc.gz` come `pages-00001.warc.gz` and so on.
    pub max_file_bytes: Option<NonZeroU64>,
    /// Who makes the archive: a name, an address.
    pub operator: Option<String>,
    /// What the crawler calls itself.
    pub user_agent: String,
    /// Whether it obeys robots.txt.
    pub obeys_robots: bool,
}

/// Writes an archive on a thread of its own. It needs [`keep_exchanges`](crate::HttpOptions::keep_exchanges).
#[derive(Debug)]
pub struct Archive {
    to: Option<SyncSender<Arc<Capture>>>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl Archive {
    /// Opens the file, and writes the first record.
    ///
    /// A file that is there is read first, to its end, which takes as long as unpacking it.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened or written, or is there but is no WARC file, or its last record is torn.
    pub fn create(options: ArchiveOptions) -> io::Result<Self> {
        let mut writer = Writer::start(options)?;
        let (to, captures) = sync_channel(MOST_WAITING);
        let run = move || writer.run(&captures);
        let writer = thread::Builder::new().name("warc".to_owned()).spawn(run)?;
        Ok(Self {
            to: Some(to),
            writer: Some(writer),
        })
    }

    fn archive(&mut self, capture: &Arc<Capture>) -> io::Result<()> {
        let sent = self.to.as_ref().is_some_and(|to| to.send(Arc::clone(capture)).is_ok());
        // A writer that takes nothing any more has met an error.
        if sent { Ok(()) } else { self.end() }
    }

    /// Waits until everything is written.
    fn end(&mut self) -> io::Result<()> {
        self.to = None;
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the writer of the archive panicked")),
            None => Ok(()),
        }
    }
}

impl Observer for Archive {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Captured(capture) => self.archive(capture),
            Event::Tick(_) if self.writer.as_ref().is_some_and(JoinHandle::is_finished) => self.end(),
            Event::Finished(_) => self.end(),
            _ => Ok(()),
        }
    }
}

impl Drop for Archive {
    /// For a crawl that ends by an error of another's: there is nobody left to tell of this one.
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// What the thread owns.
struct Writer {
    series: Series,
    info: Info,
    payloads: Payloads,
    responses: u64,
    revisits: u64,
}

impl Writer {
    fn start(options: ArchiveOptions) -> io::Result<Self> {
        let mut writer = Self {
            series: Series::open(&options.path, options.max_file_bytes)?,
            info: Info::new(options),
            payloads: Payloads::default(),
            responses: 0,
            revisits: 0,
        };
        writer.begin_file()?;
        Ok(writer)
    }

    fn run(&mut self, captures: &Receiver<Arc<Capture>>) -> io::Result<()> {
        while let Ok(capture) = captures.recv() {
            self.write(&capture)?;
        }
        let (path, responses, revisits) = (self.path().display(), self.responses, self.revisits);
        let payloads_forgotten = self.payloads.forgotten();
        log::info!(
            target: "crawler::warc",
            path:%, responses, revisits, payloads_forgotten;
            "{path}: {responses} responses and {revisits} revisits, {payloads_forgotten} payloads forgotten"
        );
        Ok(())
    }

    fn path(&self) -> &Path {
        self.series.path()
    }

    fn begin_file(&mut self) -> io::Result<()> {
        let record = self.info.record(self.series.path());
        self.series.write(&[record.bytes()])
    }

    fn write(&mut self, capture: &Capture) -> io::Result<()> {
        if self.series.is_full() {
            self.series.next()?;
            self.begin_file()?;
        }
        let payload = payloads::name_of(capture);
        let answer = match payload.and_then(|name| self.payloads.get(&name)) {
            Some(original) => {
                self.revisits += 1;
                Record::revisit(capture, original, &self.info)
            }
            None if capture.exchange.status == 304 => {
                self.revisits += 1;
                Record::not_modified(capture, &self.info)
            }
            None => {
                self.responses += 1;
                let response = Record::response(capture, &self.info);
                if let Some(name) = payload {
                    self.payloads.remember(name, Original::new(response.id(), capture));
                }
                response
            }
        };
        let request = Record::request(capture, answer.id(), &self.info);
        // Together, so that no answer is without its request.
        self.series.write(&[answer.bytes(), request.bytes()])
    }
}
