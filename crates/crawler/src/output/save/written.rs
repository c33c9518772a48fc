//! The names that files were saved under, and their URLs, so that each URL keeps its file and no two share one, also across runs.

use std::collections::HashSet;
use std::io::{self, Read as _, Write as _};

use page::fingerprint::content_hash;
use uuid::Uuid;

use crate::output::OutputFile;
use crate::saved_output::SavedOutput;

/// The start of a file of names.
const FORMAT: &[u8; 16] = b"crawler names 1\n";

/// The bytes of a secret.
const SECRET_BYTES: usize = 16;

/// The bytes of one hash in the file.
const HASH_BYTES: usize = 8;

/// Two hashes for each file: of its name, and of its name with its URL. Two of a million different names collide with a probability
/// of 10^-7; then the second file gets a hash behind its name.
#[derive(Debug)]
pub(super) struct Written {
    hashes: HashSet<u64>,
    /// So that no site can predict collisions.
    secret: [u8; SECRET_BYTES],
    /// The file with the names for the next run: the format, the secret, and the hashes.
    kept: Option<OutputFile>,
    /// What is to be written to the file.
    buffer: Vec<u8>,
}

impl Written {
    pub(super) fn new() -> Self {
        Self {
            hashes: HashSet::new(),
            secret: Uuid::new_v4().into_bytes(),
            kept: None,
            buffer: Vec::new(),
        }
    }

    /// Reads the names in a file, and keeps further ones there.
    pub(super) fn continuing(name: &str, file: OutputFile) -> io::Result<Self> {
        let mut written = Self::new();
        if file.is_empty() {
            written.buffer = [&FORMAT[..], &written.secret].concat();
        } else {
            written.read(&file)?;
        }
        written.kept = Some(file.saved_under(name));
        Ok(written)
    }

    fn read(&mut self, file: &OutputFile) -> io::Result<()> {
        let mut reader = file.reader()?;
        let mut format = [0; FORMAT.len()];
        reader.read_exact(&mut format)?;
        if format != *FORMAT {
            let message = format!("{}: this is no file of names of saved pages", file.path().display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        reader.read_exact(&mut self.secret)?;
        let hashes = (file.len() as usize).saturating_sub(FORMAT.len() + SECRET_BYTES) / HASH_BYTES;
        self.hashes.reserve(hashes);
        for _ in 0..hashes {
            let mut hash = [0; HASH_BYTES];
            reader.read_exact(&mut hash)?;
            self.hashes.insert(u64::from_le_bytes(hash));
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    pub(super) fn contains(&self, path: &str) -> bool {
        self.hashes.contains(&self.hash_of(path, None))
    }

    /// Gives a name to a URL. Returns whether the URL has it now: it was free, or had been given to this URL.
    pub(super) fn give(&mut self, path: &str, url: &str) -> bool {
        let (name, owner) = (self.hash_of(path, None), self.hash_of(path, Some(url)));
        if self.hashes.contains(&owner) {
            return true;
        }
        if !self.hashes.insert(name) {
            return false;
        }
        self.hashes.insert(owner);
        if self.is_kept() {
            self.buffer.extend([name, owner].into_iter().flat_map(u64::to_le_bytes));
        }
        true
    }

    /// Writes new names to the file.
    pub(super) fn save(&mut self, extra: String, sync: bool) -> io::Result<Option<SavedOutput>> {
        let Some(file) = &mut self.kept else {
            return Ok(None);
        };
        if !self.buffer.is_empty() {
            file.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        file.save_with(extra, sync)
    }

    pub(super) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    pub(super) fn token(&self) -> String {
        // The secret itself stays secret.
        content_hash(&self.secret).map_or_else(String::new, |hash| hash.to_string())
    }

    /// The case of the path is ignored. The path has no line feed, because that is escaped.
    fn hash_of(&self, path: &str, url: Option<&str>) -> u64 {
        let mut text = self.secret.to_vec();
        text.extend(path.bytes().map(|byte| byte.to_ascii_lowercase()));
        if let Some(url) = url {
            text.push(b'\n');
            text.extend_from_slice(url.as_bytes());
        }
        content_hash(&text).map_or(0, |hash| hash.value() as u64)
    }
}
