//! Bytes of which few bits are set, stored as the distances between these bits.
//!
//! | code, in hexadecimal digits | meaning |
//! |---|---|
//! | `00` to `7f` | the number of 0 bits before the next 1 bit |
//! | `80 00` to `ff fe` | the same, in the low 15 bits, big-endian |
//! | `ff ff` | 32 767 bits that are 0; the next code follows them |
//!
//! The lowest bit of a byte comes first. One more 1 bit, after the last byte, marks the end. The writer takes the short form where it can.

use std::io::{self, BufRead, Read, Write};

const LONG: u16 = 1 << 15;
/// The 0 bits of a code without a 1 bit, and more than any other code has.
const MOST_ZEROS: u64 = (LONG - 1) as u64;
/// Fewer 0 bits take one byte.
const SHORT: u64 = 0x80;

/// What is decoded is at most this many times as long as its code.
pub(super) const MOST_EXPANDED: u64 = 2048;

/// Encodes all that is written to it.
#[derive(Debug)]
pub(super) struct SparseWriter {
    code: Vec<u8>,
    /// The 0 bits since the last 1 bit.
    zeros: u64,
}

impl SparseWriter {
    /// Appends the code to these bytes.
    pub(super) fn new(code: Vec<u8>) -> Self {
        Self { code, zeros: 0 }
    }

    /// Marks the end, and returns the bytes with the code.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.push_one();
        self.code
    }

    fn push_word(&mut self, mut word: u64, bits: u32) {
        let mut next = 0;
        while word != 0 {
            let at = word.trailing_zeros();
            self.zeros += u64::from(at - next);
            self.push_one();
            next = at + 1;
            word &= word - 1;
        }
        self.zeros += u64::from(bits - next);
    }

    fn push_one(&mut self) {
        while self.zeros >= MOST_ZEROS {
            self.code.extend_from_slice(&u16::MAX.to_be_bytes());
            self.zeros -= MOST_ZEROS;
        }
        if self.zeros < SHORT {
            self.code.push(self.zeros as u8);
        } else {
            self.code.extend_from_slice(&(LONG | self.zeros as u16).to_be_bytes());
        }
        self.zeros = 0;
    }
}

impl Write for SparseWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.push_word(u64::from_le_bytes(*word), u64::BITS);
        }
        for byte in rest {
            self.push_word(u64::from(*byte), u8::BITS);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What follows the 0 bits of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Code,
    One,
    End,
}

/// Decodes what it reads.
#[derive(Debug)]
pub(super) struct SparseReader<R> {
    code: R,
    zeros: u64,
    then: Then,
}

impl<R: BufRead> SparseReader<R> {
    pub(super) fn new(code: R) -> Self {
        Self {
            code,
            zeros: 0,
            then: Then::Code,
        }
    }

    fn read_code(&mut self) -> io::Result<()> {
        let first = self.read_byte()?;
        self.zeros = u64::from(first);
        if self.zeros >= SHORT {
            let long = u16::from_be_bytes([first, self.read_byte()?]);
            self.zeros = u64::from(long & !LONG);
            if self.zeros == MOST_ZEROS {
                return Ok(());
            }
        }
        let is_last = self.code.fill_buf()?.is_empty();
        self.then = if is_last { Then::End } else { Then::One };
        Ok(())
    }

    fn read_byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.code.read_exact(&mut byte)?;
        Ok(byte[0])
    }
}

impl<R: BufRead> Read for SparseReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(0);
        let bits = buffer.len() as u64 * 8;
        let mut at = 0;
        while at < bits {
            let zeros = self.zeros.min(bits - at);
            self.zeros -= zeros;
            at += zeros;
            if at == bits {
                break;
            }
            match self.then {
                Then::Code => self.read_code()?,
                Then::One => {
                    buffer[(at / 8) as usize] |= 1 << (at % 8);
                    at += 1;
                    self.then = Then::Code;
                }
                Then::End if at % 8 == 0 => break,
                Then::End => return Err(io::Error::new(io::ErrorKind::InvalidData, "it ends within a byte")),
            }
        }
        Ok((at / 8) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coded(bytes: &[u8]) -> Vec<u8> {
        let mut writer = SparseWriter::new(Vec::new());
        writer.write_all(bytes).unwrap();
        writer.finish()
    }

    fn read(code: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        SparseReader::new(code).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn the_codes_are_those_of_the_table() {
        assert_eq!(coded(&[]), [0]);
        assert_eq!(coded(&[0b0000_0101]), [0, 1, 5]);
        assert_eq!(coded(&[0; 15]), [120]);
        assert_eq!(coded(&[0; 16]), [0x80, 0x80]);
        assert_eq!(coded(&[0; 2047]), [0xBF, 0xF8]);
        // 32 768 zeros are one more than a code can have.
        assert_eq!(coded(&[0; 4096]), [0xFF, 0xFF, 1]);
        let mut bytes = [0; 4096];
        bytes[4095] = 0b1100_0000;
        assert_eq!(coded(&bytes), [0xFF, 0xFE, 0, 0]);
        bytes[4095] = 0b1000_0000;
        assert_eq!(coded(&bytes), [0xFF, 0xFF, 0, 0]);
    }

    #[test]
    fn what_was_coded_is_read_whatever_the_lengths_of_writes_and_reads() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for ones in [0, 1, 30, 1_000, 100_000] {
            let mut bytes = vec![0_u8; 20_000 + next(9) as usize];
            for _ in 0..ones {
                let at = next(bytes.len() as u64) as usize;
                bytes[at] |= 1 << next(8);
            }
            let mut writer = SparseWriter::new(Vec::new());
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let (now, later) = rest.split_at((1 + next(100) as usize).min(rest.len()));
                writer.write_all(now).unwrap();
                rest = later;
            }
            let code = writer.finish();
            assert_eq!(code, coded(&bytes));
            let mut reader = SparseReader::new(code.as_slice());
            let mut again = Vec::new();
            loop {
                let mut buffer = vec![0xAA; 1 + next(100) as usize];
                let count = reader.read(&mut buffer).unwrap();
                again.extend_from_slice(&buffer[..count]);
                if count == 0 {
                    break;
                }
            }
            assert_eq!(again, bytes);
        }
    }

    #[test]
    fn what_is_read_is_at_most_so_much_longer_than_its_code() {
        let (len, code) = (1 << 20, coded(&[0; 1 << 20]));
        assert_eq!(read(&code).unwrap().len(), len);
        // No less either, but for the code of the end.
        let most = code.len() as u64 * MOST_EXPANDED;
        assert!(
            (len as u64..=len as u64 + 2 * MOST_EXPANDED).contains(&most),
            "{} bytes",
            code.len()
        );
    }

    #[test]
    fn a_code_without_an_end_does_not_go_on() {
        let code = [[0xFF; 2]; 1_000].concat();
        let mut bytes = Vec::new();
        assert!(
            SparseReader::new(code.as_slice()).read_to_end(&mut bytes).is_err(),
            "no end"
        );
        assert!(
            bytes.len() as u64 <= code.len() as u64 * MOST_EXPANDED,
            "{}",
            bytes.len()
        );
    }

    #[test]
    fn a_code_that_ends_too_early_is_an_error() {
        let mut bytes = [0; 300];
        bytes[17] = 1;
        bytes[299] = 0x81;
        let code = coded(&bytes);
        for len in 0..code.len() {
            assert_ne!(
                read(&code[..len]).ok().as_deref(),
                Some(bytes.as_slice()),
                "{len} bytes"
            );
        }
        assert_eq!(read(&[]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(read(&[0x80]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(read(&[5, 3]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
