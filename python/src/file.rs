//! The file of a sieve: the snapshot of the crate `sieve`, and behind it what that leaves out.
//!
//! | bytes | field |
//! |---|---|
//! | 8 | `PYSIEVE` and the version, 1 |
//! | 1 | the policy: 1 grow, 2 warn, 3 refuse |
//! | 7 | zero |
//! | 16 | the key of SipHash, or zeros |
//! | 8 | the first half of MurmurHash3 of the bytes before |

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use sieve::{Hashing, OnSaturation, SeenSet, SnapshotError};

use crate::counted::{Counted, Nothing};

const TRAILER_BYTES: usize = 40;
const MAGIC: [u8; 8] = *b"PYSIEVE\x01";

/// Writes a sieve.
pub(crate) fn write(sieve: &Counted, policy: OnSaturation, writer: &mut impl Write) -> io::Result<()> {
    sieve.save_filter(writer)?;
    let key = match hashing(sieve.filter()) {
        Some(Hashing::Hardened { key }) => key,
        _ => [0; 16],
    };
    let mut trailer = Vec::with_capacity(TRAILER_BYTES);
    trailer.extend(MAGIC);
    trailer.extend([policy_number(policy), 0, 0, 0, 0, 0, 0, 0]);
    trailer.extend(key);
    trailer.extend(checksum(&trailer));
    writer.write_all(&trailer)
}

/// Reads a sieve of `bytes` bytes. One that a program in Rust has saved has no policy: it grows or warns.
pub(crate) fn read(reader: &mut (impl Read + Seek), bytes: u64) -> Result<(Counted, OnSaturation), SnapshotError> {
    let mut trailer = [0; TRAILER_BYTES];
    let snapshot_bytes = bytes.checked_sub(TRAILER_BYTES as u64);
    if let Some(at) = snapshot_bytes {
        reader.seek(SeekFrom::Start(at))?;
        reader.read_exact(&mut trailer)?;
        reader.seek(SeekFrom::Start(0))?;
    }
    let has_trailer = trailer.starts_with(&MAGIC);
    let (fields, sum) = trailer.split_at(TRAILER_BYTES - 8);
    if has_trailer && sum != checksum(fields) {
        return Err(SnapshotError::Damaged);
    }
    let mut key = [0; 16];
    key.copy_from_slice(&fields[16..]);
    let limit = snapshot_bytes.filter(|_| has_trailer).unwrap_or(bytes);
    let sieve = Counted::resume(reader, limit, has_trailer.then_some(key), Nothing)?;
    // What is left is a part of a trailer, or something else.
    if reader.stream_position()? != limit {
        return Err(SnapshotError::Damaged);
    }
    let policy = match (fields[8], sieve.filter()) {
        (1, _) => OnSaturation::Grow,
        (2, _) => OnSaturation::Warn,
        (3, _) => OnSaturation::Refuse,
        (_, SeenSet::Growing(_)) => OnSaturation::Grow,
        _ => OnSaturation::Warn,
    };
    Ok((sieve.on_saturation(policy), policy))
}

/// Two threads that saved to one path would write one new file.
static SAVING: Mutex<()> = Mutex::new(());

/// Replaces a file as a whole: it has the old content or the new one, whenever the process or the machine stops. The GIL must be free.
pub(crate) fn save(sieve: &Counted, policy: OnSaturation, path: &Path) -> io::Result<()> {
    let _one = SAVING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let saved = write_file(sieve, policy, &new).and_then(|()| fs::rename(&new, path));
    if saved.is_err() {
        let _ = fs::remove_file(&new);
        return saved;
    }
    sync_folder_of(path)
}

/// Makes a new name last, where folders are files that can be synced.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn write_file(sieve: &Counted, policy: OnSaturation, path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    // It has the seed, which is secret.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = BufWriter::new(options.open(path)?);
    write(sieve, policy, &mut file)?;
    file.into_inner()?.sync_all()
}

/// Reads a file.
pub(crate) fn load(path: &Path) -> Result<(Counted, OnSaturation), SnapshotError> {
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
