//! One writer per directory.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::error::StoreError;

const FILE: &str = "lock";
/// How often the lock is tried: a reader that asks who has it holds a part of it for an instant.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// The right to write to a directory, until it is dropped or its process ends in any way: the system releases it.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
    dir: PathBuf,
    /// Files of the directory, as they were when it was opened.
    files: Vec<(PathBuf, fs::Metadata)>,
}

impl DirectoryLock {
    /// Takes the lock; a file that a dead process left behind is no obstacle.
    pub(crate) fn take(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let io = |error| StoreError::io(&path, error);
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(io)?;
        let mut tries = 1;
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::WouldBlock if tries < TRIES => thread::park_timeout(PAUSE),
                TryLockError::WouldBlock => {
                    return Err(StoreError::Locked {
                        dir: dir.to_owned(),
                        holder: holder(&path),
                    });
                }
                TryLockError::Error(error) => return Err(StoreError::of_lock(dir, error)),
            }
            tries += 1;
        }
        file.set_len(0).map_err(io)?;
        writeln!(file, "{}", std::process::id()).map_err(io)?;
        let found = file.metadata().map_err(io)?;
        Ok(Self {
            _file: file,
            dir: dir.to_owned(),
            files: vec![(path, found)],
        })
    }

    /// Notes a file that is open, too.
    pub(crate) fn add(&mut self, path: &Path) -> Result<(), StoreError> {
        let found = fs::metadata(path).map_err(|error| StoreError::io(path, error))?;
        self.files.push((path.to_owned(), found));
        Ok(())
    }

    /// Fails if the files are no longer where they were opened: another process may open what is there now.
    pub(crate) fn check_place(&self) -> Result<(), StoreError> {
        for (path, opened) in &self.files {
            match fs::metadata(path) {
                Ok(found) if is_same_file(&found, opened) => {}
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(StoreError::io(path, error)),
                _ => return Err(StoreError::Moved { dir: self.dir.clone() }),
            }
        }
        Ok(())
    }
}

#[cfg(unix)]
fn is_same_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same_file(_one: &fs::Metadata, _other: &fs::Metadata) -> bool {
    true
}

/// Who has a directory open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockHolder {
    /// Nobody.
    Nobody,
    /// A process; `None` if it has not written its number yet.
    Process(Option<u32>),
}

impl LockHolder {
    /// Says who has a directory open. For an instant it takes a part of the lock itself.
    pub(crate) fn of(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Nobody),
            Err(error) => return Err(StoreError::io(&path, error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Self::Nobody),
            Err(TryLockError::WouldBlock) => Ok(Self::Process(holder(&path))),
            Err(TryLockError::Error(error)) => Err(StoreError::of_lock(dir, error)),
        }
    }
}

/// Reads who has the lock. It may not have written its number yet.
fn holder(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_reader_that_asks_at_the_same_moment_is_no_obstacle_and_a_writer_is_named() {
        let dir = std::env::temp_dir().join(format!("frontier-lock-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(FILE), "4000000\n").unwrap();
        for readers in [1, 2, 5] {
            let asking: Vec<_> = (0..readers).map(|_| File::open(dir.join(FILE)).unwrap()).collect();
            asking.iter().for_each(|file| file.try_lock_shared().unwrap());
            let (begun, begins) = mpsc::channel();
            let reader = thread::spawn(move || {
                begins.recv().unwrap();
                thread::park_timeout(2 * PAUSE);
                drop(asking);
            });
            begun.send(()).unwrap();
            let lock = DirectoryLock::take(&dir).unwrap();
            reader.join().unwrap();
            let holder = Some(std::process::id());
            assert_eq!(LockHolder::of(&dir).unwrap(), LockHolder::Process(holder));
            let second = DirectoryLock::take(&dir);
            assert!(matches!(second, Err(StoreError::Locked { holder: named, .. }) if named == holder));
            drop(lock);
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_system_without_locks_is_named() {
        // ENOLCK, ENOSYS, EOPNOTSUPP; EIO.
        for (number, has_none) in [(37, true), (38, true), (95, true), (5, false)] {
            let error = StoreError::of_lock(Path::new("state"), io::Error::from_raw_os_error(number));
            assert_eq!(
                error.to_string().contains("file system of state has no locks"),
                has_none,
                "{error}"
            );
            assert_eq!(error.to_string().contains("Check the medium"), !has_none, "{error}");
        }
    }
}
