//! Compressed bodies: valid ones and bombs.

use std::sync::LazyLock;

use flate2::{Compress, Compression, FlushCompress};

/// The size of a decompressed bomb, in bytes: several times the maximum size of a body in the tests.
const BOMB_BYTES: usize = 4 << 20;

pub(crate) static GZIP_BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| gzip(&vec![b'a'; BOMB_BYTES]));
pub(crate) static NESTED_BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| gzip(&GZIP_BOMB));
pub(crate) static ZSTD_BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| zstd(&vec![b'a'; BOMB_BYTES]));

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 1024);
    let mut stream = Compress::new_gzip(Compression::fast(), 15);
    stream.compress_vec(bytes, &mut out, FlushCompress::Finish).unwrap();
    out
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
    zstd_safe::compress(&mut out, bytes, 3).unwrap();
    out
}

/// 64 MiB of one letter (RFC 7932).
pub(crate) const BROTLI_BOMB: [u8; 106] = [
    203, 255, 255, 63, 248, 37, 194, 226, 177, 64, 32, 247, 254, 143, 255, 255, 127, 240, 75, 0, 196, 97, 17, 128, 238,
    253, 31, 255, 255, 255, 224, 151, 0, 136, 195, 2, 0, 221, 251, 63, 254, 255, 255, 193, 47, 1, 16, 135, 5, 0, 186,
    247, 127, 252, 255, 255, 131, 95, 2, 32, 14, 11, 0, 116, 239, 255, 248, 255, 255, 7, 191, 4, 64, 28, 22, 0, 232,
    222, 255, 241, 255, 255, 15, 126, 9, 128, 56, 44, 0, 208, 189, 255, 203, 255, 255, 63, 252, 18, 0, 113, 88, 0, 160,
    123, 255, 7,
];
