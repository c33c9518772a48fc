//! WARC 1.1 archives (ISO 28500:2017): every request and response of the crawl, as sent over the network.
//!
//! Every answer of every attempt becomes a `response` record with its `request`: pages, redirects, errors, robots.txt. Each file starts
//! with a `warcinfo` record. In a file whose name ends in `.gz` every record is a gzip member of its own (annex D of the standard), so
//! a reader can seek to any record.
//!
//! What a reader should know:
//!
//! * Transfer codings are decoded, so the header `transfer-encoding` is renamed to `x-archive-orig-transfer-encoding`. Content codings
//!   are kept. Header names are in lower case, as the HTTP library returns them.
//! * HTTP/2 has no text form: its messages are written as those of HTTP/1.1, with the field `WARC-Protocol: h2`.
//! * Requests lack logins, cookies and headers that the user added, because archives are shared.
//! * Digests are SHA-1 in Base32, as is usual in archives. Payloads are compared by SHA-256, because two different documents can be
//!   made with the same SHA-1.
//! * A payload that is in the archive already, under any URL, becomes a `revisit` record of the profile
//!   `identical-payload-digest`. An answer 304 becomes one of the profile `server-not-modified`. The latest payloads are remembered,
//!   in 32 MiB; older ones are written again.

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

/// The maximum number of captures that wait for the writer, each with its body. At this number the crawl waits for the writer.
const MAX_QUEUED_CAPTURES: usize = 8;

/// The options of an archive.
#[derive(Debug, Clone)]
pub struct ArchiveOptions {
    /// The file. Records are compressed if its name ends in `.gz`. Records are appended to an existing file; it is never replaced.
    pub path: PathBuf,
    /// The size at which the next file starts, in bytes: after `pages.warc.gz` come `pages-00001.warc.gz` and so on.
    pub max_file_bytes: Option<NonZeroU64>,
    /// The operator of the crawl: a name or an address.
    pub operator: Option<String>,
    /// The user agent of the crawl.
    pub user_agent: String,
    /// Whether the crawl obeys robots.txt.
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
    /// An existing file is checked first: it is read to its end, which takes as long as unpacking it.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened or written, or exists but is not a WARC file, or its last record is incomplete.
    pub fn create(options: ArchiveOptions) -> io::Result<Self> {
        let mut writer = Writer::start(options)?;
        let (to, captures) = sync_channel(MAX_QUEUED_CAPTURES);
        let run = move || writer.run(&captures);
        let writer = thread::Builder::new().name("warc".to_owned()).spawn(run)?;
        Ok(Self {
            to: Some(to),
            writer: Some(writer),
        })
    }

    fn archive(&mut self, capture: &Arc<Capture>) -> io::Result<()> {
        let sent = self.to.as_ref().is_some_and(|to| to.send(Arc::clone(capture)).is_ok());
        // A writer that no longer receives has failed; `end` returns its error.
        if sent { Ok(()) } else { self.end() }
    }

    /// Waits until all captures are written, and returns the error of the writer.
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
    /// Ends the writer, for a crawl that ends with an error of another observer. Its own error has no receiver.
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// The writer, which the thread owns.
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
        let digest = payloads::payload_digest(capture);
        let answer = match digest.and_then(|digest| self.payloads.get(&digest)) {
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
                if let Some(digest) = digest {
                    self.payloads.remember(digest, Original::new(response.id(), capture));
                }
                response
            }
        };
        let request = Record::request(capture, answer.id(), &self.info);
        // In one write, so that every answer has its request.
        self.series.write(&[answer.bytes(), request.bytes()])
    }
}
