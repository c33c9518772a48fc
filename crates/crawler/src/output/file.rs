//! An output file that never ends with a part of a line or a record.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

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
}

impl OutputFile {
    /// Makes a file, or empties an existing one.
    ///
    /// # Errors
    ///
    /// When the system cannot make or empty it.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::of(File::create(path), path)
    }

    /// Makes a new file. It never changes an existing one.
    ///
    /// # Errors
    ///
    /// When it exists, or the system cannot make it.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        Self::of(File::create_new(path), path)
    }

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

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.whole += bytes.len() as u64;
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

/// Adds the name of the file to an error.
pub(super) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
