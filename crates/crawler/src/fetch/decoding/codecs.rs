//! One content coding each, by the libraries that know them. Alone in naming brotli-decompressor, libdeflater and zstd-safe.

use std::cell::RefCell;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::Decompressor;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::{Coding, State, Stop};

/// gzip and deflate have windows of up to 2¹⁵ bytes.
const ZLIB_WINDOW: u8 = 15;
/// The window that RFC 9659 allows in HTTP is of 2²³ bytes.
const ZSTD_WINDOW: u32 = 23;

pub(super) enum Codec {
    /// Nothing of it was received.
    Gzip,
    /// Some or none of the two bytes that tell zlib from bare deflate.
    Deflate(Vec<u8>),
    Zlib(Decompress),
    // Boxed, for its state takes kilobytes.
    Brotli(Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>),
    Zstd(DCtx<'static>),
}

impl Codec {
    pub(super) fn new(coding: Coding) -> Result<Self, Stop> {
        Ok(match coding {
            Coding::Gzip => Self::Gzip,
            Coding::Deflate => Self::Deflate(Vec::new()),
            Coding::Brotli => {
                let alloc = StandardAlloc::default;
                // Strict: without the large windows, which RFC 7932 does not know.
                Self::Brotli(Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())))
            }
            Coding::Zstd => {
                let mut context = DCtx::try_create().ok_or(Stop::Damaged)?;
                let limited = context.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW));
                limited.map_err(|_| Stop::Damaged)?;
                Self::Zstd(context)
            }
        })
    }

    pub(super) fn is_gzip(&self) -> bool {
        matches!(self, Self::Gzip)
    }

    /// Decodes from the input into `out`; `written` is how far, also when it fails.
    pub(super) fn step(&mut self, input: &mut &[u8], out: &mut [u8], written: &mut usize) -> Result<State, Stop> {
        match self {
            Self::Gzip => {
                *self = Self::Zlib(Decompress::new_gzip(ZLIB_WINDOW));
                self.step(input, out, written)
            }
            Self::Deflate(head) => {
                let Some(mut stream) = sniff(head, input) else {
                    return Ok(State::Within);
                };
                let begun = inflate(&mut stream, &mut head.as_slice(), out, written);
                *self = Self::Zlib(stream);
                begun
            }
            Self::Zlib(stream) => inflate(stream, input, out, written),
            Self::Brotli(state) => unbrotli(state, input, out, written),
            Self::Zstd(context) => unzstd(context, input, out, written),
        }
    }
}

thread_local! {
    /// Some 11 KiB of tables, which each block writes as it needs them. Only those of the static code are kept, which are always the same.
    static GUNZIP: RefCell<Decompressor> = RefCell::default();
}

/// Decodes a gzip stream that is whole; how many bytes were written, if it is sound and they found room.
pub(super) fn gunzip(stream: &[u8], out: &mut [u8]) -> Option<usize> {
    GUNZIP.with_borrow_mut(|gunzip| gunzip.gzip_decompress(stream, out).ok())
}

/// Waits for two bytes, and tells a zlib stream from bare deflate by its header (RFC 1950, section 2.2): a stored block of
/// bare deflate that looked like one would have padding other than zeros.
fn sniff(head: &mut Vec<u8>, input: &mut &[u8]) -> Option<Decompress> {
    while head.len() < 2 {
        let (first, rest) = input.split_first()?;
        head.push(*first);
        *input = rest;
    }
    let is_zlib = match head.as_slice() {
        &[method, flags, ..] => method & 0x0f == 8 && u16::from_be_bytes([method, flags]) % 31 == 0,
        _ => false,
    };
    Some(Decompress::new(is_zlib))
}

fn inflate(stream: &mut Decompress, input: &mut &[u8], out: &mut [u8], written: &mut usize) -> Result<State, Stop> {
    let before = (stream.total_in(), stream.total_out());
    let status = stream.decompress(input, out, FlushDecompress::None);
    skip(input, difference(stream.total_in(), before.0));
    *written = difference(stream.total_out(), before.1);
    match status {
        Ok(Status::StreamEnd) => Ok(State::Ended),
        Ok(Status::Ok | Status::BufError) => Ok(within(*written, out)),
        Err(_) => Err(Stop::Damaged),
    }
}

fn unbrotli(
    state: &mut BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    input: &mut &[u8],
    out: &mut [u8],
    written: &mut usize,
) -> Result<State, Stop> {
    let mut read = 0;
    let result = BrotliDecompressStream(
        &mut input.len(),
        &mut read,
        input,
        &mut out.len(),
        written,
        out,
        &mut 0,
        state,
    );
    skip(input, read);
    match result {
        BrotliResult::ResultSuccess => Ok(State::Ended),
        BrotliResult::NeedsMoreInput => Ok(State::Within),
        BrotliResult::NeedsMoreOutput => Ok(State::Brimming),
        BrotliResult::ResultFailure => Err(Stop::Damaged),
    }
}

fn unzstd(context: &mut DCtx<'_>, input: &mut &[u8], out: &mut [u8], written: &mut usize) -> Result<State, Stop> {
    let mut from = InBuffer::around(input);
    let mut to = OutBuffer::around(&mut *out);
    let hint = context.decompress_stream(&mut to, &mut from);
    *written = to.pos();
    let read = from.pos();
    skip(input, read);
    match hint {
        Ok(0) => Ok(State::Between),
        Ok(_) => Ok(within(*written, out)),
        Err(_) => Err(Stop::Damaged),
    }
}

/// Output that fills its room may be cut off in the middle.
fn within(written: usize, out: &[u8]) -> State {
    if written == out.len() {
        State::Brimming
    } else {
        State::Within
    }
}

fn difference(after: u64, before: u64) -> usize {
    usize::try_from(after - before).unwrap_or(usize::MAX)
}

fn skip(input: &mut &[u8], bytes: usize) {
    *input = input.get(bytes..).unwrap_or_default();
}
