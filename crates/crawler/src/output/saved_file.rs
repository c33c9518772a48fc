//! What a later run checks before it continues a file.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use super::series::{at, is_free, numbered, series_of};
use super::tail::Tail;
use crate::saved_output::SavedFile;

/// The number by which the file system knows a file: of one that is empty, [`SavedFile::tail`] has it in place of a hash.
pub(super) fn identity(found: &Metadata) -> u64 {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::ino(found);
    #[cfg(not(unix))]
    return u64::from(found.is_file());
}

impl SavedFile {
    /// Checks that the file still has what was saved, and can be [continued](crate::output::OutputFile::reopen). `first` is where the series
    /// is now; with a size of its files, the names of later ones must be free. It changes nothing.
    ///
    /// | what is there | was saved with content | was saved empty |
    /// |---|---|---|
    /// | nothing, or an empty file | refused | accepted |
    /// | a file with content | accepted if it begins with what was saved, as far as length and [tail](Self::tail) tell | accepted if it is the same file: a killed run has written to it |
    /// | anything else | refused | refused |
    ///
    /// # Errors
    ///
    /// [`InvalidData`](io::ErrorKind::InvalidData) when the file is missing, shorter than it was, or changed before its saved end;
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) when a later file is there. The message says what to do. Besides, when the system cannot read it.
    pub fn check(&self, first: &Path, max_bytes: Option<NonZeroU64>) -> io::Result<()> {
        let path = numbered(first, self.number);
        let refuse = |what: String| {
            let known = match self.path == first.display().to_string() {
                true => String::new(),
                false => format!(" name {}, or", numbered(Path::new(&self.path), self.number).display()),
            };
            let message = format!(
                "{}: the crawl has written {} bytes, and {what}:{known} put that file back, or start a new crawl with another state directory",
                path.display(),
                self.length
            );
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        };
        match path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.length > 0 => {
                return refuse("the file is missing".to_owned());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(at(&path)(error)),
            Ok(found) if !found.is_file() => return refuse("this is not a regular file".to_owned()),
            Ok(found) if found.len() < self.length => return refuse(format!("the file has {}", found.len())),
            Ok(found) if self.length == 0 => {
                if found.len() > 0 && identity(&found) != self.tail {
                    return refuse("this is the file of another".to_owned());
                }
            }
            Ok(_) => {
                let tail = File::open(&path).and_then(|mut file| Tail::read(&mut file, self.length));
                if tail.map_err(at(&path))?.hash() != self.tail {
                    return refuse("the file was changed since".to_owned());
                }
            }
        }
        let later = series_of(first).filter(|(number, path)| *number > self.number && !is_free(path));
        let later: BTreeMap<_, _> = later.filter(|_| max_bytes.is_some()).collect();
        if let (Some((_, next)), Some((last, _))) = (later.first_key_value(), later.last_key_value()) {
            let message = format!(
                "{}: this file, and those of its series that follow up to number {last}, are not of the crawl as its state directory has it, which \
                 continues there: move them away or remove them. If the crawl has begun them, their pages are fetched again",
                next.display()
            );
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        Ok(())
    }

    /// Whether the file still has what was saved, as far as its length and its last bytes tell.
    pub(crate) fn is_intact(&self) -> bool {
        self.full_path().exists() && self.check(Path::new(&self.path), None).is_ok()
    }

    /// The file itself, whatever its number.
    pub(crate) fn full_path(&self) -> PathBuf {
        numbered(Path::new(&self.path), self.number)
    }

    /// Removes this file and those of the series before it, back to a number, which stays: what they have is fetched again.
    pub(crate) fn remove_behind(&self, number: u32) {
        let files = (number.saturating_add(1)..=self.number).map(|number| numbered(Path::new(&self.path), number));
        files.for_each(|path| drop(std::fs::remove_file(path)));
    }

    /// A file of this output without content, the next in the series that is free: for an output whose content of earlier runs is gone.
    pub(crate) fn begun_anew(&self, first: &Path) -> Self {
        let free = (self.number..u32::MAX).find(|number| is_free(&numbered(first, *number)));
        Self {
            path: first.display().to_string(),
            number: free.unwrap_or(u32::MAX),
            ..Self::default()
        }
    }
}
