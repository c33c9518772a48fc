//! The last bytes of a file, by which a later run notices that the file was changed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use page::fingerprint::content_hash;

/// How many bytes are kept and hashed.
const TAIL_BYTES: usize = 4096;

/// The last bytes of a file, at most 4 KiB.
#[derive(Debug, Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    /// Reads the last bytes before a position.
    pub(super) fn read(file: &mut File, end: u64) -> io::Result<Self> {
        let length = end.min(TAIL_BYTES as u64);
        file.seek(SeekFrom::Start(end - length))?;
        let mut bytes = Vec::new();
        file.by_ref().take(length).read_to_end(&mut bytes)?;
        Ok(Self(bytes))
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let kept = bytes.get(bytes.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default();
        let too_many = (self.0.len() + kept.len()).saturating_sub(TAIL_BYTES);
        self.0.drain(..too_many);
        self.0.extend_from_slice(kept);
    }

    pub(super) fn hash(&self) -> u64 {
        content_hash(&self.0).map_or(0, |hash| hash.value() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_many_writes_is_that_of_one() {
        let text: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut whole = Tail::default();
        whole.push(&text);
        for size in [1, 7, 1000, 4095, 4096, 4097, 50_000] {
            let mut pieces = Tail::default();
            text.chunks(size).for_each(|piece| pieces.push(piece));
            assert_eq!(pieces.hash(), whole.hash(), "{size}");
            assert_eq!(pieces.0, text[text.len() - TAIL_BYTES..]);
        }
        assert_eq!(Tail::default().hash(), 0);
    }
}
