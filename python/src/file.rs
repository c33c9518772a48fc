//! The file of a sieve: a mark, the snapshot of the crate `sieve`, and behind it what that leaves out.
//!
//! | bytes | field |
//! |---|---|
//! | 8 | `PYSIEVE` and the version, 1: without what is behind the snapshot, the file was cut off |
//! | | the snapshot |
//! | 8 | `PYSIEVE` and the version, 1 |
//! | 1 | the policy: 1 grow, 2 warn, 3 refuse |
//! | 1 | 1 if the seed was given, so that it is no secret; else 0 |
//! | 6 | zero |
//! | 16 | the key of SipHash, or zeros |
//! | 8 | the first half of MurmurHash3 of the bytes before |

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
#[cfg(unix)]
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use sieve::{Hashing, OnSaturation, SeenSet, SnapshotError};

use crate::counted::{Counted, Nothing};

const TRAILER_BYTES: usize = 40;
const MAGIC: [u8; 8] = *b"PYSIEVE\x01";

/// What is saved of a sieve.
pub(crate) struct Saved<'s> {
    pub(crate) counted: &'s Counted,
    pub(crate) policy: OnSaturation,
    pub(crate) has_secret_seed: bool,
}

impl Saved<'_> {
    /// Writes a sieve.
    pub(crate) fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        writer.write_all(&MAGIC)?;
        self.counted.save_filter(writer)?;
        let key = match hashing(self.counted.filter()) {
            Some(Hashing::Hardened { key }) => key,
            _ => [0; 16],
        };
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        trailer.extend(MAGIC);
        let is_known = u8::from(!self.has_secret_seed);
        trailer.extend([policy_number(self.policy), is_known, 0, 0, 0, 0, 0, 0]);
        trailer.extend(key);
        trailer.extend(checksum(&trailer));
        writer.write_all(&trailer)
    }

    fn write_to(&self, file: &File) -> io::Result<()> {
        let mut writer = BufWriter::new(file);
        self.write(&mut writer)?;
        writer.into_inner()?.sync_all()
    }

    /// Keeps all but the owner from a file with a secret seed.
    #[cfg(unix)]
    fn keep_secret(&self, file: &File) -> io::Result<()> {
        match self.has_secret_seed {
            true => file.set_permissions(fs::Permissions::from_mode(0o600)),
            false => Ok(()),
        }
    }

    #[cfg(not(unix))]
    fn keep_secret(&self, _: &File) -> io::Result<()> {
        Ok(())
    }
}

/// What was read: the sieve, its policy, and whether its seed is secret.
pub(crate) type Loaded = (Counted, OnSaturation, bool);

/// Reads a sieve of `bytes` bytes. One that a program in Rust has saved has no policy: it grows or warns.
pub(crate) fn read(reader: &mut (impl Read + Seek), bytes: u64) -> Result<Loaded, SnapshotError> {
    let (mut mark, mut trailer) = ([0; MAGIC.len()], [0; TRAILER_BYTES]);
    let snapshot_end = bytes.checked_sub(TRAILER_BYTES as u64);
    if let Some(end) = snapshot_end {
        reader.read_exact(&mut mark)?;
        reader.seek(SeekFrom::Start(end))?;
        reader.read_exact(&mut trailer)?;
    }
    let (is_marked, has_trailer) = (mark == MAGIC, trailer.starts_with(&MAGIC));
    let start = if is_marked { MAGIC.len() as u64 } else { 0 };
    reader.seek(SeekFrom::Start(start))?;
    let (fields, sum) = trailer.split_at(TRAILER_BYTES - 8);
    if is_marked && !has_trailer || has_trailer && sum != checksum(fields) {
        return Err(SnapshotError::Damaged);
    }
    let mut key = [0; 16];
    key.copy_from_slice(&fields[16..]);
    let end = snapshot_end.filter(|_| has_trailer).unwrap_or(bytes);
    let sieve = Counted::resume(reader, end.saturating_sub(start), has_trailer.then_some(key), Nothing)?;
    // What is left is a part of a trailer, or something else.
    if reader.stream_position()? != end {
        return Err(SnapshotError::Damaged);
    }
    let policy = match (fields[8], sieve.filter()) {
        (1, _) => OnSaturation::Grow,
        (2, _) => OnSaturation::Warn,
        (3, _) => OnSaturation::Refuse,
        (_, SeenSet::Growing(_)) => OnSaturation::Grow,
        _ => OnSaturation::Warn,
    };
    Ok((sieve.on_saturation(policy), policy, fields[9] != 1))
}

/// Replaces a file as a whole: it has the old content or the new one, whenever the process or the machine stops. The GIL must be free.
///
/// The rules are those of the crate `watch`, in `replace.rs`. Its owner and its permissions stay, unless the seed is secret: then only its owner can read it.
pub(crate) fn save(saved: &Saved<'_>, path: &Path) -> io::Result<()> {
    let path = &target(path)?;
    match write_beside(saved, path) {
        Err(error) if needs_its_place(&error) && path.exists() => {
            let file = OpenOptions::new().write(true).open(path)?;
            saved.keep_secret(&file)?;
            file.set_len(0)?;
            saved.write_to(&file)
        }
        written => written.and_then(|()| sync_folder_of(path)),
    }
}

/// Returns what a path names, behind all links. It need not be there.
fn target(path: &Path) -> io::Result<PathBuf> {
    let no_file = || Err(io::Error::other("it is not a file, so it cannot be replaced"));
    let mut path: PathBuf = path.components().collect();
    // As many as Linux follows.
    for _ in 0..40 {
        let Ok(target) = fs::read_link(&path) else {
            return match fs::symlink_metadata(&path) {
                Ok(found) if !found.is_file() => no_file(),
                _ => Ok(path),
            };
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        // What a link of `/proc` says need not be a name.
        if folder.canonicalize().is_ok_and(|folder| folder.starts_with("/proc")) {
            return no_file();
        }
        path = folder.join(target);
    }
    Err(io::Error::other("its links lead to no file"))
}

fn write_beside(saved: &Saved<'_>, path: &Path) -> io::Result<()> {
    let (file, new) = temporary(path)?;
    let written = keep_owner(&file, path)
        .and_then(|()| saved.keep_secret(&file))
        .and_then(|()| saved.write_to(&file))
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

/// Makes an empty file beside another one, which only this writer has for as long as it is open. What a killed one has left is used again.
fn temporary(path: &Path) -> io::Result<(File, PathBuf)> {
    for number in 0..100 {
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".new{number}"));
        let new = path.with_file_name(name);
        if fs::symlink_metadata(&new).is_ok_and(|found| !found.is_file()) {
            continue;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = match options.open(&new) {
            // Another user has left it.
            Err(error) if error.kind() == ErrorKind::PermissionDenied && new.exists() => continue,
            file => file?,
        };
        // Another writer may have renamed it since, and what has its name is not to be touched then.
        if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && is_at(&file, &new) {
            file.set_len(0)?;
            return Ok((file, new));
        }
    }
    Err(io::Error::new(ErrorKind::ResourceBusy, "too many programs write it"))
}

/// Returns whether a file cannot be replaced by another one, though perhaps it can be written: it is mounted, or lies in a folder that cannot be written to.
fn needs_its_place(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ResourceBusy
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::CrossesDevices
    )
}

/// Returns whether a path still names an open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    let id = |found: fs::Metadata| (found.dev(), found.ino());
    file.metadata()
        .is_ok_and(|file| fs::symlink_metadata(path).is_ok_and(|found| id(found) == id(file)))
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Gives a file the owner and the permissions of another one, as far as the system allows. A new one is for its owner.
#[cfg(unix)]
fn keep_owner(file: &File, path: &Path) -> io::Result<()> {
    let Ok(old) = fs::metadata(path) else { return Ok(()) };
    // Only root gives files away.
    if fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
        let _ = fchown(file, None, Some(old.gid()));
    }
    file.set_permissions(old.permissions())
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes a new name last, where folders are files that can be synced.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Reads a file.
pub(crate) fn load(path: &Path) -> Result<Loaded, SnapshotError> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    read(&mut BufReader::new(file), bytes)
}

fn policy_number(policy: OnSaturation) -> u8 {
    match policy {
        OnSaturation::Grow => 1,
        OnSaturation::Refuse => 3,
        _ => 2,
    }
}

fn hashing(filter: &SeenSet) -> Option<Hashing> {
    match filter {
        SeenSet::Fixed(filter) => Some(filter.hashing()),
        SeenSet::Growing(filter) => Some(filter.hashing()),
        _ => None,
    }
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    let digest = u128::from(Hashing::default().digest(bytes));
    ((digest >> 64) as u64).to_le_bytes()
}
