//! Replaces a file as a whole, so that no reader sees half of it.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// A file that is replaced as a whole.
#[derive(Debug, Clone)]
pub(crate) struct Replaceable(PathBuf);

impl Replaceable {
    /// Names a file, and checks that it can be written. One behind a link is replaced, not the link. `beginning` is that of all contents.
    ///
    /// # Errors
    ///
    /// What is there and is no file, such as a device, or begins in another way; a folder that cannot be written to.
    pub(crate) fn new(path: &Path, beginning: &str) -> io::Result<Self> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::other("it is not a file, so it cannot be replaced"));
        }
        let file = Self(path);
        for path in [file.path(), &file.new_path()] {
            check_beginning(path, beginning)?;
        }
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

/// Checks that a file is not there, is empty, or begins as ours do: another one would be lost, such as the database of a crawl.
fn check_beginning(path: &Path, beginning: &str) -> io::Result<()> {
    let mut found = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?.take(beginning.len() as u64).read_to_end(&mut found)?,
    };
    if beginning.as_bytes().starts_with(&found) {
        return Ok(());
    }
    let why = format!("{} holds something else, and is not replaced", path.display());
    Err(io::Error::other(why))
}
