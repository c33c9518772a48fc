//! A file that holds whole pieces only.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file into which each [`write`](Write::write) goes whole or not at all: when the disk is full, what came through of the
/// last piece is taken back, so that lines and records stay whole.
///
/// Of what cannot be cut, such as a pipe or a device, nothing is taken back. Errors name the file.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    path: PathBuf,
    /// Bytes of whole pieces.
    whole: u64,
}

impl OutputFile {
    /// Makes a file, or empties the one that is there.
    ///
    /// # Errors
    ///
    /// When the system does not let us.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::of(File::create(path), path)
    }

    /// Makes a file, and leaves one that is there alone.
    ///
    /// # Errors
    ///
    /// When there is one, or the system does not let us.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        Self::of(File::create_new(path), path)
    }

    /// Makes a file, or opens the one that is there to go on at its end.
    ///
    /// # Errors
    ///
    /// When the system does not let us.
    pub fn append(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let mut opened = Self::of(file, path)?;
        let length = opened.file.metadata().map_err(|error| at(path, &error))?.len();
        opened.whole = length;
        Ok(opened)
    }

    fn of(file: io::Result<File>, path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: file.map_err(|error| at(path, &error))?,
            path: path.to_owned(),
            whole: 0,
        })
    }

    /// Returns the bytes that the file has.
    pub fn len(&self) -> u64 {
        self.whole
    }

    /// Says whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.whole == 0
    }

    /// Takes back what is no whole piece. It may fail as well; the first error is the one to tell.
    fn take_back(&mut self) {
        let _ = self.file.set_len(self.whole);
        let _ = self.file.seek(SeekFrom::Start(self.whole));
    }
}

impl Write for OutputFile {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        match self.file.write_all(piece) {
            Ok(()) => {
                self.whole += piece.len() as u64;
                Ok(piece.len())
            }
            Err(error) => {
                self.take_back();
                Err(at(&self.path, &error))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| at(&self.path, &error))
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
