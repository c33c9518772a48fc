//! A file of whole lines or records, whatever happens.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file to which each [`write`](Write::write) appends everything or nothing: on a full disk it is cut back to the end of the write
/// before, so that lines and records stay whole.
///
/// A pipe or a device cannot be cut back. Errors name the file.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    path: PathBuf,
    /// Bytes of the writes that succeeded.
    whole: u64,
}

impl OutputFile {
    /// Makes a file, or empties the one that exists.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::of(File::create(path), path)
    }

    /// Makes a file; one that exists stays as it is.
    ///
    /// # Errors
    ///
    /// When it exists, or the system refuses.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        Self::of(File::create_new(path), path)
    }

    /// Makes a file, or opens the one that exists to append to it.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn append(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let mut opened = Self::of(file, path)?;
        let length = opened.file.metadata().map_err(|error| at(path, &error))?.len();
        opened.whole = length;
        Ok(opened)
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
        Ok(())
    }

    fn of(file: io::Result<File>, path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: file.map_err(|error| at(path, &error))?,
            path: path.to_owned(),
            whole: 0,
        })
    }

    /// Returns the size of the file, in bytes.
    pub fn len(&self) -> u64 {
        self.whole
    }

    /// Says whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.whole == 0
    }

    /// Cuts off what a failed write has left. That may fail too; the first error is the one to report.
    fn cut_back(&mut self) {
        let _ = self.file.set_len(self.whole);
        let _ = self.file.seek(SeekFrom::Start(self.whole));
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.whole += bytes.len() as u64;
                Ok(bytes.len())
            }
            Err(error) => {
                self.cut_back();
                Err(at(&self.path, &error))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| at(&self.path, &error))
    }
}

/// Puts the name of a file before an error.
pub(super) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
