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
//!   in 32 MiB; older ones are written again, and so are those of an earlier run that this one continues.

mod payloads;
mod record;

use std::io::{self, Write as _};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};
use uuid::Uuid;

use self::payloads::{Original, Payloads};
use self::record::{Record, id_of_file};
use super::file::OutputFile;
use super::lines::gzip;
use super::series::is_compressed;
use crate::event::Capture;
use crate::event::{Event, Observer};
use crate::saved_output::SavedOutput;

/// The maximum number of captures that wait for the writer, each with its body. At this number the crawl waits for the writer.
const MAX_QUEUED_CAPTURES: usize = 8;

/// The options of an archive.
#[derive(Debug, Clone)]
pub struct ArchiveOptions {
    /// The file. Records are compressed if its name ends in `.gz`. An existing file is never replaced.
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
    to: Option<SyncSender<Job>>,
    writer: Option<JoinHandle<io::Result<()>>>,
    /// What was saved last, if a later run can continue, and whether captures were written since.
    saved: Option<SavedOutput>,
    has_unsaved: bool,
}

/// What the writer does next.
type Job = Box<dyn FnOnce(&mut Writer) -> io::Result<()> + Send>;

impl Archive {
    /// Opens the file. The first record is written with the first answer, or at the end.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened, or exists and is not empty.
    pub fn create(options: ArchiveOptions) -> io::Result<Self> {
        Self::start(Writer::create(options)?)
    }

    /// Opens the file of a crawl that can be continued, or continues after the last record that was [saved](Observer::save). It is
    /// saved under `name`.
    ///
    /// The first record is written with the first answer. Payloads of earlier runs are not remembered.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create). Besides, when the file is not a regular one, or is not as it was saved, or a later file is there, or its name
    /// has the ending of the other kind, or, on Unix, another crawl writes to it. No file is changed then.
    pub fn continuing(name: &str, options: ArchiveOptions, saved: Option<&SavedOutput>) -> io::Result<Self> {
        let mut writer = match saved {
            Some(saved) => Writer::reopen(options, saved)?,
            None => Writer::create(options)?,
        };
        if !writer.file.is_regular() {
            let message = format!("{}: this is not a regular file", writer.file.path().display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        writer.file = writer.file.saved_under(name);
        Self::start(writer)
    }

    fn start(mut writer: Writer) -> io::Result<Self> {
        let saved = writer.save(false)?;
        let (to, jobs) = sync_channel(MAX_QUEUED_CAPTURES);
        let run = move || writer.run(&jobs);
        let writer = thread::Builder::new().name("warc".to_owned()).spawn(run)?;
        Ok(Self {
            to: Some(to),
            writer: Some(writer),
            saved,
            has_unsaved: false,
        })
    }

    fn send(&mut self, job: Job) -> io::Result<()> {
        let sent = self.to.as_ref().is_some_and(|to| to.send(job).is_ok());
        // A writer that no longer receives has failed; `end` returns its error.
        if sent { Ok(()) } else { self.end() }
    }

    /// Waits until all captures are written, and notes where the archive is.
    fn wait_until_saved(&mut self, sync: bool) -> io::Result<()> {
        let (reply, saved) = sync_channel(1);
        // Nobody waits for it if the crawl has just ended.
        self.send(Box::new(move |writer| {
            writer.save(sync).map(|saved| drop(reply.send(saved)))
        }))?;
        let Ok(saved) = saved.recv() else {
            self.end()?;
            return Err(io::Error::other("the archive has ended"));
        };
        (self.saved, self.has_unsaved) = (saved, false);
        Ok(())
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
            Event::Captured(capture) => {
                self.has_unsaved = true;
                let capture = Arc::clone(capture);
                self.send(Box::new(move |writer| writer.write(&capture)))
            }
            Event::Tick(_) if self.writer.as_ref().is_some_and(JoinHandle::is_finished) => self.end(),
            // An archive that is saved is needed until the last save.
            Event::Finished(_) if self.saved.is_none() => {
                self.send(Box::new(Writer::begin))?;
                self.end()
            }
            _ => Ok(()),
        }
    }

    fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        // After the end all captures are written.
        if self.saved.is_some() && (self.has_unsaved || sync) && self.to.is_some() {
            self.wait_until_saved(sync)?;
        }
        Ok(self.saved.clone())
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
    file: OutputFile,
    options: ArchiveOptions,
    /// A random number, from which the identifiers of the files follow.
    series_id: Uuid,
    payloads: Payloads,
    responses: u64,
    revisits: u64,
}

impl Writer {
    fn new(file: OutputFile, options: ArchiveOptions, series_id: Uuid) -> Self {
        Self {
            file: file.with_max_bytes(options.max_file_bytes),
            options,
            series_id,
            payloads: Payloads::default(),
            responses: 0,
            revisits: 0,
        }
    }

    /// Makes the first file. One that exists must be empty.
    fn create(options: ArchiveOptions) -> io::Result<Self> {
        let file = OutputFile::append(&options.path)?;
        if !file.is_empty() {
            let message = format!(
                "{}: the file exists, and is not overwritten: give another name, or move the file",
                options.path.display()
            );
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        Ok(Self::new(file, options, Uuid::new_v4()))
    }

    fn reopen(options: ArchiveOptions, saved: &SavedOutput) -> io::Result<Self> {
        let extra: Value = serde_json::from_str(&saved.extra)?;
        let series_id = Uuid::parse_str(extra["series_id"].as_str().unwrap_or_default());
        let series_id = series_id.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let (path, earlier) = (&options.path, Path::new(&saved.file.path));
        if (saved.file.length > 0 || saved.file.number > 0) && is_compressed(path) != is_compressed(earlier) {
            let (kind, must) = match is_compressed(path) {
                true => ("not compressed", "must not"),
                false => ("compressed", "must"),
            };
            let message = format!(
                "{}: the crawl has written an archive that is {kind} (as {}): its name {must} end in .gz",
                path.display(),
                earlier.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        saved.file.check(path, options.max_file_bytes)?;
        let file = OutputFile::reopen(path, &saved.file)?;
        Ok(Self::new(file, options, series_id))
    }

    fn run(&mut self, jobs: &Receiver<Job>) -> io::Result<()> {
        while let Ok(job) = jobs.recv() {
            job(self)?;
        }
        let (path, responses, revisits) = (self.file.path().display(), self.responses, self.revisits);
        let payloads_forgotten = self.payloads.forgotten;
        log::info!(
            target: "crawler::warc",
            path:%, responses, revisits, payloads_forgotten;
            "{path}: {responses} responses and {revisits} revisits, {payloads_forgotten} payloads forgotten"
        );
        Ok(())
    }

    fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        let extra = json!({ "series_id": self.series_id.to_string() });
        self.file.save_with(extra.to_string(), sync)
    }

    fn file_id(&self) -> Uuid {
        id_of_file(self.series_id, self.file.number)
    }

    /// Writes the first record of a file, unless it is there.
    fn begin(&mut self) -> io::Result<()> {
        if !self.file.is_empty() {
            return Ok(());
        }
        let record = Record::info(self.file_id(), self.file.path(), &self.options);
        self.append(&[&record.bytes])
    }

    /// Writes all of the records, or none.
    fn append(&mut self, records: &[&[u8]]) -> io::Result<()> {
        if !is_compressed(self.file.path()) {
            return self.file.write_all(&records.concat());
        }
        let members: Vec<_> = records.iter().map(|record| gzip(record)).collect::<io::Result<_>>()?;
        self.file.write_all(&members.concat())
    }

    fn write(&mut self, capture: &Capture) -> io::Result<()> {
        self.file.make_room()?;
        self.begin()?;
        let file = self.file_id();
        let digest = payloads::payload_digest(capture);
        let answer = match digest.and_then(|digest| self.payloads.get(&digest)) {
            None if capture.exchange.status != 304 => {
                self.responses += 1;
                let response = Record::response(capture, file);
                if let Some(digest) = digest {
                    let original = Original {
                        id: response.id,
                        url: capture.url.as_str().into(),
                        started: capture.started,
                    };
                    self.payloads.remember(digest, original);
                }
                response
            }
            original => {
                self.revisits += 1;
                Record::revisit(capture, original, file)
            }
        };
        let request = Record::request(capture, answer.id, file);
        // In one write, so that every answer has its request.
        self.append(&[&answer.bytes, &request.bytes])
    }
}
