//! An output file that never ends with a part of a line or a record.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufRead, Read as _, Seek, SeekFrom, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use super::saved_file::identity;
pub(super) use super::series::at;
use super::series::{folder_of, is_free, numbered};
use super::tail::Tail;
use crate::saved_output::{SavedFile, SavedOutput};
use crate::summary::size;

/// A file to which each [`write`](Write::write) appends all its bytes or none. If a write fails, such as on a full disk, the file is
/// truncated to the end of the write before. So lines and records stay whole. With a [size](Self::with_max_bytes), it is the last file of a series.
///
/// A file that is full ends with a commit that is synced, and the next one is empty until that commit. So no state that a kill or a power cut
/// leads back to lacks a file that has content.
///
/// A pipe or a device cannot be truncated. Errors name the file.
///
/// Nothing is cut or emptied before the first write, flush or sync, and a file that was made is removed if none of them comes: so a crawl that is
/// refused after it has opened its outputs changes none.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    /// The path of the first file of the series, and of this one.
    first: PathBuf,
    path: PathBuf,
    pub(super) number: u32,
    max_bytes: Option<NonZeroU64>,
    /// Under what it is saved, if a later run can continue it.
    name: Option<String>,
    /// Bytes of the writes that succeeded.
    whole: u64,
    tail: Tail,
    /// Whether this process has made the file, and whether it was cut to its whole bytes.
    is_new: bool,
    is_begun: bool,
    /// Whether bytes were written since the last sync, and whether the name of the file may be lost with the power.
    has_unsynced_bytes: bool,
    has_unsynced_name: bool,
}

impl OutputFile {
    /// Opens an existing file to append to it, or makes a new one.
    ///
    /// # Errors
    ///
    /// When the system cannot open or make it.
    pub fn append(path: &Path) -> io::Result<Self> {
        let mut opened = Self::open(path, OpenOptions::new().append(true).create(true))?;
        opened.whole = opened.file.metadata().map_err(at(path))?.len();
        Ok(opened)
    }

    /// Opens a file that an earlier run has [saved](Self::save), after a [check](SavedFile::check). It is continued from there, because what the
    /// earlier run wrote later is written again. A missing file is made if nothing of it was saved. `first` is where the series is now.
    ///
    /// # Errors
    ///
    /// Those of [`SavedFile::check`].
    pub fn reopen(first: &Path, saved: &SavedFile) -> io::Result<Self> {
        saved.check(first, None)?;
        let path = numbered(first, saved.number);
        let mut opened = Self::open(&path, OpenOptions::new().read(true).append(true).create(true))?;
        opened.first = first.to_owned();
        opened.number = saved.number;
        opened.whole = saved.length;
        opened.tail = Tail::read(&mut opened.file, saved.length).map_err(at(&path))?;
        Ok(opened)
    }

    /// Makes it a series: at this size, the next file begins, with a number behind its name. A file that is [saved](Self::save) ends at a sync.
    #[must_use]
    pub fn with_max_bytes(mut self, max_bytes: Option<NonZeroU64>) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    pub(super) fn saved_under(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// `None` if no later run can continue it. `extra` is what its format needs besides the file.
    pub(super) fn save_with(&mut self, extra: String, sync: bool) -> io::Result<Option<SavedOutput>> {
        let Some(name) = self.name.clone() else { return Ok(None) };
        let file = self.save(sync)?;
        Ok(Some(SavedOutput { name, file, extra }))
    }

    /// Returns what [`reopen`](Self::reopen) needs, after all bytes are written. With `sync` they also survive a loss of power, and a file that is
    /// full ends.
    ///
    /// # Errors
    ///
    /// When the system cannot sync the file. It is unknown then what the file has, so do not try again. With `sync`, also when the file is no
    /// longer at its path, or another program has changed its length.
    pub fn save(&mut self, sync: bool) -> io::Result<SavedFile> {
        if sync {
            self.sync()?;
            if self.is_full() {
                self.begin_next()?;
                self.sync()?;
            }
        }
        let tail = match self.whole {
            0 => self.file.metadata().map(|found| identity(&found)),
            _ => Ok(self.tail.hash()),
        };
        Ok(SavedFile {
            path: self.first.display().to_string(),
            number: self.number,
            length: self.whole,
            tail: tail.map_err(at(&self.path))?,
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.begin()?;
        self.check_place()?;
        if std::mem::take(&mut self.has_unsynced_bytes) {
            self.file.sync_data().map_err(at(&self.path))?;
        }
        if std::mem::take(&mut self.has_unsynced_name) {
            sync_folder_of(&self.path)?;
        }
        Ok(())
    }

    /// Cuts the file to its whole bytes, before anything is written.
    fn begin(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_begun, true) && self.is_regular() {
            let cut = self
                .file
                .metadata()
                .map_err(at(&self.path))?
                .len()
                .saturating_sub(self.whole);
            if cut > 0 && self.whole > 0 {
                let (path, cut) = (self.path.display(), size(cut));
                log::info!(
                    target: "crawler::state",
                    "{cut} at the end of {path} are cut off: the state directory does not know them, as after a kill, and they are fetched again"
                );
            }
            self.file.set_len(self.whole).map_err(at(&self.path))?;
        }
        Ok(())
    }

    /// Fails if what was written is no longer what a reader finds at the path.
    fn check_place(&self) -> io::Result<()> {
        let here = self.file.metadata().map_err(at(&self.path))?;
        if !here.is_file() {
            return Ok(());
        }
        let what = match self.path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => "was renamed or removed",
            Err(error) => return Err(at(&self.path)(error)),
            Ok(there) if !is_same_file(&here, &there) => "was renamed or removed, and another is in its place",
            Ok(there) if there.len() < self.whole => "was cut off",
            Ok(there) if there.len() > self.whole => "was written by another program",
            Ok(_) => return Ok(()),
        };
        let message = format!(
            "{}: the file {what} while the crawl wrote it. Put it back as it was; with a state directory, the same command then continues from its last \
             commit. To move files away meanwhile, let the crawl begin new ones by their size",
            self.path.display()
        );
        Err(io::Error::other(message))
    }

    /// Begins the next file of a series that is full and is not [saved](Self::save). Call it before a write that may be the first of a file.
    pub(super) fn make_room(&mut self) -> io::Result<()> {
        match self.name.is_none() && self.is_full() {
            true => self.flush().and_then(|()| self.begin_next()),
            false => Ok(()),
        }
    }

    fn is_full(&self) -> bool {
        self.max_bytes.is_some_and(|max| self.whole >= max.get())
    }

    /// Goes on with the next file whose name is free.
    fn begin_next(&mut self) -> io::Result<()> {
        let (first, max_bytes, name) = (self.first.clone(), self.max_bytes, self.name.clone());
        let mut number = self.number;
        *self = loop {
            number = number.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
            let path = numbered(&first, number);
            match is_free(&path).then(|| Self::append(&path)) {
                None => {}
                Some(Err(error)) if error.kind() == io::ErrorKind::ResourceBusy => {}
                Some(opened) => break opened?,
            }
        };
        (self.first, self.number, self.max_bytes, self.name) = (first, number, max_bytes, name);
        Ok(())
    }

    /// Makes what is in a file, and its name, survive a loss of power. A file that is not there, or is something else, has nothing to lose.
    pub(crate) fn sync_existing(path: &Path) -> io::Result<()> {
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Ok(());
        }
        let file = match OpenOptions::new().append(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(at(path)(error)),
        };
        file.sync_all().map_err(at(path))?;
        sync_folder_of(path)
    }

    /// Returns whether it is a regular file, which can be [reopened](Self::reopen), and neither a pipe nor a device.
    pub fn is_regular(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.is_file())
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file from its start to its end.
    pub(super) fn reader(&self) -> io::Result<impl BufRead + use<>> {
        let file = File::open(&self.path).map_err(at(&self.path))?;
        Ok(io::BufReader::new(file).take(self.whole))
    }

    /// Opens the files of the series before this one that are still there.
    pub(super) fn earlier(&self) -> impl Iterator<Item = File> {
        (0..self.number).filter_map(|number| File::open(numbered(&self.first, number)).ok())
    }

    /// Lets the first write replace what the file has. A pipe or a device stays as it is.
    pub fn empty(&mut self) {
        self.whole = 0;
        self.tail = Tail::default();
    }

    fn open(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        let is_new = !path.exists();
        let file = options.open(path).map_err(at(path))?;
        lock(&file, path)?;
        Ok(Self {
            file,
            first: path.to_owned(),
            path: path.to_owned(),
            number: 0,
            max_bytes: None,
            name: None,
            whole: 0,
            tail: Tail::default(),
            is_new,
            is_begun: false,
            has_unsynced_bytes: true,
            has_unsynced_name: true,
        })
    }

    /// Returns the size of the file, in bytes.
    pub fn len(&self) -> u64 {
        self.whole
    }

    /// Returns whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.whole == 0
    }

    /// Removes the bytes of a failed write. This may fail too; the caller reports the first error.
    fn truncate_to_whole(&mut self) {
        let _ = self.file.set_len(self.whole);
        let _ = self.file.seek(SeekFrom::Start(self.whole));
    }
}

impl Drop for OutputFile {
    /// Removes a file that was made for nothing.
    fn drop(&mut self) {
        if self.is_new && !self.is_begun {
            // Through a link that led to nothing, too. What cannot be removed is empty.
            let _ = self.path.canonicalize().and_then(std::fs::remove_file);
        }
    }
}

#[cfg(unix)]
fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same_file(_one: &Metadata, _other: &Metadata) -> bool {
    true
}

/// Locks a regular file for as long as it is open: two crawls that write to one file would mix and overwrite their lines.
fn lock(file: &File, path: &Path) -> io::Result<()> {
    // The locks of Windows would keep readers away, too.
    if !cfg!(unix) || !file.metadata().is_ok_and(|found| found.is_file()) {
        return Ok(());
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let message = format!(
                "{}: another crawl writes to this file: give another file, or wait until that crawl ends",
                path.display()
            );
            Err(io::Error::new(io::ErrorKind::ResourceBusy, message))
        }
        // Some file systems have no locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begin()?;
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.whole += bytes.len() as u64;
                self.tail.push(bytes);
                self.has_unsynced_bytes = true;
                Ok(bytes.len())
            }
            Err(error) => {
                self.truncate_to_whole();
                Err(at(&self.path)(error))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.begin()?;
        self.check_place()?;
        self.file.flush().map_err(at(&self.path))
    }
}

/// Replaces a small file as a whole, also across a loss of power. Only its owner may read it. It needs the name of the file with the extension `new`.
///
/// # Errors
///
/// When the system cannot write or rename it.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new).map_err(at(&new))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_data());
    let renamed = written.and_then(|()| std::fs::rename(&new, path));
    renamed.map_err(at(path))?;
    sync_folder_of(path)
}

/// Makes the name of a new file survive a loss of power. Only Unix can open a folder for that.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let folder = folder_of(path);
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(at(folder))?;
    }
    Ok(())
}
