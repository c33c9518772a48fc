//! A batch as the bytes of an entry: postcard, compressed by LZ4.

use frontier::exchange::LinkBatch;

/// The longest batch that is read, in bytes. Those that are written are far shorter.
const MAX_BYTES: usize = 16 << 20;

pub(crate) fn write(batch: &LinkBatch) -> Vec<u8> {
    // Numbers and bytes can always be written.
    let bytes = postcard::to_allocvec(batch).unwrap_or_default();
    lz4_flex::compress_prepend_size(&bytes)
}

/// Reads an entry; `None` if it is none.
pub(crate) fn read(bytes: &[u8]) -> Option<LinkBatch> {
    let (length, compressed) = lz4_flex::block::uncompressed_size(bytes).ok()?;
    if length > MAX_BYTES {
        return None;
    }
    postcard::from_bytes(&lz4_flex::decompress(compressed, length).ok()?).ok()
}
