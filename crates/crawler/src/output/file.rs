//! An output file that never ends with a part of a line or a record.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, Read as _, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::tail::Tail;
use crate::saved_output::SavedFile;

/// A file to which each [`write`](Write::write) appends all its bytes or none. If a write fails, such as on a full disk, the file is
/// truncated to the end of the write before. So lines and records stay whole.
///
/// A pipe or a device cannot be truncated. Errors name the file.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    path: PathBuf,
    /// Bytes of the writes that succeeded.
    whole: u64,
    tail: Tail,
    /// The last answer of [`save`](Self::save).
    saved: SavedFile,
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
        let file = OpenOptions::new().append(true).create(true).open(path);
        let mut opened = Self::of(file, path)?;
        let length = opened.file.metadata().map_err(|error| at(path, &error))?.len();
        opened.whole = length;
        Ok(opened)
    }

    /// Makes a file whose name must be free.
    pub(super) fn create_new(path: &Path) -> io::Result<Self> {
        Self::of(OpenOptions::new().write(true).create_new(true).open(path), path)
    }

    /// Opens a file that an earlier run has [saved](Self::save), and checks that it still has what was saved. Then it is cut back to
    /// that, because what the earlier run wrote later is written again. A missing file is made if nothing of it was saved.
    ///
    /// # Errors
    ///
    /// When the file is missing, shorter than it was, or changed before its saved end, or the system cannot open it. The message
    /// says what to do.
    pub fn reopen(path: &Path, saved: &SavedFile) -> io::Result<Self> {
        let refuse = |what: String| {
            let earlier = match saved.path == path.display().to_string() {
                true => String::new(),
                false => format!(" (as {})", saved.path),
            };
            let advice = "put that file back, or start a new crawl with another state directory";
            let message = format!(
                "{}: the crawl has written {} bytes{earlier}, and {what}: {advice}",
                path.display(),
                saved.length
            );
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        };
        match path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && saved.length > 0 => {
                return refuse("the file is missing".to_owned());
            }
            Ok(found) if !found.is_file() => return refuse("this is not a regular file".to_owned()),
            _ => {}
        }
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut opened = Self::of(file, path)?;
        let named = |error| at(path, &error);
        let length = opened.file.metadata().map_err(named)?.len();
        if length < saved.length {
            return refuse(format!("the file has {length}"));
        }
        opened.whole = saved.length;
        opened.tail = Tail::read(&mut opened.file, saved.length).map_err(named)?;
        if opened.tail.hash() != saved.tail {
            return refuse("the file was changed since".to_owned());
        }
        opened.file.set_len(saved.length).map_err(named)?;
        Ok(opened)
    }

    /// Returns what [`reopen`](Self::reopen) needs, after all bytes are written. With `sync` they also survive a loss of power.
    ///
    /// # Errors
    ///
    /// When the system cannot sync the file. It is unknown then what the file has, so do not try again.
    pub fn save(&mut self, sync: bool) -> io::Result<SavedFile> {
        if sync {
            self.sync()?;
        }
        if self.saved.length != self.whole || self.saved.path.is_empty() {
            self.saved = SavedFile {
                path: self.path.display().to_string(),
                length: self.whole,
                tail: self.tail.hash(),
            };
        }
        Ok(self.saved.clone())
    }

    fn sync(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_unsynced_bytes) {
            self.file.sync_data().map_err(|error| at(&self.path, &error))?;
        }
        if std::mem::take(&mut self.has_unsynced_name) {
            sync_folder_of(&self.path)?;
        }
        Ok(())
    }

    /// Makes what is in a file, and its name, survive a loss of power. A file that is not there has nothing to lose.
    pub(crate) fn sync_existing(path: &Path) -> io::Result<()> {
        let file = match OpenOptions::new().append(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(at(path, &error)),
        };
        file.sync_all().map_err(|error| at(path, &error))?;
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
        let file = File::open(&self.path).map_err(|error| at(&self.path, &error))?;
        Ok(io::BufReader::new(file).take(self.whole))
    }

    /// Empties the file. A pipe or a device stays as it is.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn empty(&mut self) -> io::Result<()> {
        let is_regular = self.file.metadata().map(|found| found.is_file());
        let emptied = is_regular.and_then(|is_regular| if is_regular { self.file.set_len(0) } else { Ok(()) });
        emptied.map_err(|error| at(&self.path, &error))?;
        self.whole = 0;
        self.tail = Tail::default();
        Ok(())
    }

    fn of(file: io::Result<File>, path: &Path) -> io::Result<Self> {
        let file = file.map_err(|error| at(path, &error))?;
        lock(&file, path)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            whole: 0,
            tail: Tail::default(),
            saved: SavedFile::default(),
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

impl SavedFile {
    /// Returns whether the file still has what was saved, as far as its length and its last bytes tell.
    pub(crate) fn is_intact(&self) -> bool {
        // Of a shorter file, other bytes are read.
        let tail = File::open(&self.path).and_then(|mut file| Tail::read(&mut file, self.length));
        tail.is_ok_and(|tail| tail.hash() == self.tail)
    }
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
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.whole += bytes.len() as u64;
                self.tail.push(bytes);
                self.has_unsynced_bytes = true;
                Ok(bytes.len())
            }
            Err(error) => {
                self.truncate_to_whole();
                Err(at(&self.path, &error))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| at(&self.path, &error))
    }
}

/// Replaces a small file as a whole, also across a loss of power. Only its owner may read it.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new).map_err(|error| at(&new, &error))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_data());
    let renamed = written.and_then(|()| std::fs::rename(&new, path));
    renamed.map_err(|error| at(path, &error))?;
    sync_folder_of(path)
}

/// Makes the name of a new file survive a loss of power. Only Unix can open a folder for that.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let folder = folder_of(path);
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| at(folder, &error))?;
    }
    Ok(())
}

/// Returns the folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Adds the name of the file to an error.
pub(super) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
