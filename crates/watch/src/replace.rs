//! Replaces a file as a whole, so that no reader sees half of it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file that is replaced as a whole.
#[derive(Debug, Clone)]
pub(crate) struct Replaceable(PathBuf);

impl Replaceable {
    /// Names a file, and checks that it can be written. One behind a link is replaced, not the link.
    ///
    /// # Errors
    ///
    /// What is there and is no file, such as a device; a folder that cannot be written to.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::other("it is not a file, so it cannot be replaced"));
        }
        let file = Self(path);
        File::create(file.new_path())?;
        fs::remove_file(file.new_path())?;
        Ok(file)
    }

    /// Names a file of our own.
    pub(crate) fn own(path: PathBuf) -> Self {
        Self(path)
    }

    /// Writes a file beside it, and gives that its name.
    pub(crate) fn replace(&self, content: &[u8]) -> io::Result<()> {
        let new = self.new_path();
        let written = File::create(&new).and_then(|mut file| file.write_all(content));
        let renamed = written.and_then(|()| fs::rename(&new, &self.0));
        if renamed.is_err() {
            let _ = fs::remove_file(&new);
        }
        renamed
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The node exporter reads all files that end in `.prom`, so this one must not.
    fn new_path(&self) -> PathBuf {
        let mut name = self.0.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        self.0.with_file_name(name)
    }
}
