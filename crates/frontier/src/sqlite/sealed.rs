//! A value as it lies in a table: compressed if that pays, under a checksum.
//!
//! | bytes | of a plain value | of a compressed one |
//! |---|---|---|
//! | 1 | 0 | 1 |
//! | 4 | – | length of the value, little-endian |
//! | the rest | the value | an LZ4 block |
//!
//! The seal is XXH3-64 over these bytes, after the number of the space and the key: a value that turns up at another place is damaged.
//! It has a column of its own, so that the seals of a table can be summed without reading its values.

use lz4_flex::block::{compress_into, decompress, get_maximum_output_size};
use xxhash_rust::xxh3::Xxh3;

use crate::store::Space;

const PLAIN: u8 = 0;
const LZ4: u8 = 1;
const LZ4_HEAD: usize = 5;
/// Below this, compression rarely pays.
const SHORTEST_COMPRESSED: usize = 48;

pub(super) fn seal(space: Space, key: u64, value: &[u8], sealed: &mut Vec<u8>) -> u64 {
    sealed.clear();
    if !compress(value, sealed) {
        sealed.clear();
        sealed.push(PLAIN);
        sealed.extend_from_slice(value);
    }
    checksum(space, key, sealed)
}

fn compress(value: &[u8], sealed: &mut Vec<u8>) -> bool {
    let Ok(len) = u32::try_from(value.len()) else {
        return false;
    };
    if value.len() < SHORTEST_COMPRESSED {
        return false;
    }
    sealed.push(LZ4);
    sealed.extend_from_slice(&len.to_le_bytes());
    sealed.resize(LZ4_HEAD + get_maximum_output_size(value.len()), 0);
    let Ok(compressed) = compress_into(value, &mut sealed[LZ4_HEAD..]) else {
        return false;
    };
    sealed.truncate(LZ4_HEAD + compressed);
    sealed.len() <= value.len()
}

pub(super) fn unseal(space: Space, key: u64, sealed: &[u8], seal: u64) -> Result<Vec<u8>, &'static str> {
    if checksum(space, key, sealed) != seal {
        return Err("wrong checksum");
    }
    match sealed.split_first() {
        Some((&PLAIN, value)) => Ok(value.to_vec()),
        Some((&LZ4, rest)) => {
            let (len, block) = rest.split_first_chunk().ok_or("too short")?;
            let len = u32::from_le_bytes(*len) as usize;
            // The checksum was right, so the length is the one that was written.
            let value = decompress(block, len).map_err(|_| "wrong compression")?;
            (value.len() == len).then_some(value).ok_or("wrong length")
        }
        _ => Err("unknown codec"),
    }
}

pub(super) fn checksum(space: Space, key: u64, sealed: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&[space as u8]);
    hash.update(&key.to_le_bytes());
    hash.update(sealed);
    hash.digest()
}
