//! The file format of each filter.

use std::io::{self, Read, Write};

use super::header::{HEADER_BYTES, check_field, expect_counted, expect_lost, stored_count, stored_lost};
use super::{
    Header, Kind, Loaded, Snapshot, SnapshotCounts, SnapshotError, hashing_of, read_words, stored_bytes, write_words,
};
use crate::bloom::BloomFilter;
use crate::counting::CountingBloomFilter;
use crate::filter::Filter;
use crate::scalable::ScalableBloomFilter;
use crate::seen_set::SeenSet;

/// Far more layers than memory could hold.
const MAX_LAYERS: u32 = 64;

fn filter_bytes(words: u64) -> u64 {
    (HEADER_BYTES as u64).saturating_add(stored_bytes(words))
}

impl Header {
    fn check_ones<F: Filter>(&self, filter: F) -> Loaded<F> {
        check_field(filter.ones() == self.ones, "number of ones")?;
        Ok((filter, self.counts))
    }
}

impl Snapshot for BloomFilter {
    fn write_to(&self, counts: &SnapshotCounts, writer: &mut impl Write) -> io::Result<()> {
        let mut header = Header::new(Kind::Standard, &self.sizing(), &self.hashing(), counts);
        header.ones = self.ones();
        let sum = header.write(writer)?;
        write_words(self.memory.words(), sum, writer)
    }

    fn snapshot_bytes(&self) -> u64 {
        filter_bytes(self.sizing().words())
    }

    fn read_from(reader: &mut impl Read, limit: u64, secret: Option<[u8; 16]>) -> Loaded<Self> {
        let (header, sum) = Header::read_kind(Kind::Standard, reader)?;
        load_standard(&header, sum, reader, limit, secret)
    }
}

fn load_standard(
    header: &Header,
    sum: u64,
    reader: &mut impl Read,
    limit: u64,
    secret: Option<[u8; 16]>,
) -> Loaded<BloomFilter> {
    Header::expect_unused(&[u64::from(header.layers), header.extra, header.base])?;
    let hashing = hashing_of(header, secret)?;
    let words = header.sizing.words();
    Header::check_limit(stored_bytes(words), limit)?;
    let memory = read_words(words, sum, reader)?;
    let filter = BloomFilter::from_memory(memory, header.sizing, hashing).ok_or(SnapshotError::Damaged)?;
    header.check_ones(filter)
}

impl Snapshot for CountingBloomFilter {
    fn write_to(&self, counts: &SnapshotCounts, writer: &mut impl Write) -> io::Result<()> {
        let mut header = Header::new(Kind::Counting, &self.sizing(), &self.hashing(), counts);
        header.ones = Filter::ones(self);
        header.extra = stored_count(self.removed());
        let sum = header.write(writer)?;
        write_words(self.counters.words(), sum, writer)
    }

    fn snapshot_bytes(&self) -> u64 {
        filter_bytes(Self::words(&self.sizing()))
    }

    fn read_from(reader: &mut impl Read, limit: u64, secret: Option<[u8; 16]>) -> Loaded<Self> {
        let (header, sum) = Header::read_kind(Kind::Counting, reader)?;
        Header::expect_unused(&[u64::from(header.layers), header.base])?;
        expect_counted("number of removals", header.extra)?;
        let hashing = hashing_of(&header, secret)?;
        let words = Self::words(&header.sizing);
        Header::check_limit(stored_bytes(words), limit)?;
        let counters = read_words(words, sum, reader)?;
        let filter =
            Self::from_counters(counters, header.sizing, hashing, header.extra).ok_or(SnapshotError::Damaged)?;
        header.check_ones(filter)
    }
}

impl Snapshot for ScalableBloomFilter {
    fn write_to(&self, counts: &SnapshotCounts, writer: &mut impl Write) -> io::Result<()> {
        let sizing = self.newest.sizing();
        let mut header = Header::new(Kind::Scalable, &sizing, &self.hashing(), counts);
        header.layers = self.layers().len() as u32;
        header.ones = Filter::ones(self);
        header.extra = self.rate().to_bits();
        header.base = stored_lost(self.hidden()).to_bits();
        header.write(writer)?;
        let none = SnapshotCounts::default();
        self.layers().try_for_each(|layer| layer.write_to(&none, writer))
    }

    fn snapshot_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + self.layers().map(Snapshot::snapshot_bytes).sum::<u64>()
    }

    fn read_from(reader: &mut impl Read, limit: u64, secret: Option<[u8; 16]>) -> Loaded<Self> {
        let (header, _) = Header::read_kind(Kind::Scalable, reader)?;
        load_scalable(&header, reader, limit, secret)
    }
}

fn load_scalable(
    header: &Header,
    reader: &mut impl Read,
    limit: u64,
    secret: Option<[u8; 16]>,
) -> Loaded<ScalableBloomFilter> {
    let (rate, hidden) = (f64::from_bits(header.extra), f64::from_bits(header.base));
    check_field((1..=MAX_LAYERS).contains(&header.layers), "number of layers")?;
    check_field(rate > 0.0 && rate < 1.0, "rate")?;
    expect_lost(hidden)?;
    let hashing = hashing_of(header, secret)?;
    let mut left = limit.saturating_sub(HEADER_BYTES as u64);
    let mut layers = Vec::new();
    for _ in 0..header.layers {
        let (layer, counts) = BloomFilter::read_from(reader, left, secret)?;
        Header::expect_unused(&[counts.accepted, counts.lost.to_bits()])?;
        check_field(layer.hashing() == hashing, "hash of a layer")?;
        left = left.saturating_sub(layer.snapshot_bytes());
        layers.push(layer);
    }
    let filter = ScalableBloomFilter::from_layers(layers, rate, hidden).ok_or(SnapshotError::Damaged)?;
    check_field(filter.next_layer_is_plausible(), "rate")?;
    check_field(filter.newest.sizing() == header.sizing, "shape")?;
    header.check_ones(filter)
}

impl Snapshot for SeenSet {
    fn write_to(&self, counts: &SnapshotCounts, writer: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Fixed(filter) => filter.write_to(counts, writer),
            Self::Growing(filter) => filter.write_to(counts, writer),
            Self::Exact(_) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "an exact filter has no file format: save its keys, or use a Bloom filter",
            )),
        }
    }

    fn snapshot_bytes(&self) -> u64 {
        match self {
            Self::Fixed(filter) => filter.snapshot_bytes(),
            Self::Growing(filter) => filter.snapshot_bytes(),
            Self::Exact(_) => 0,
        }
    }

    fn read_from(reader: &mut impl Read, limit: u64, secret: Option<[u8; 16]>) -> Loaded<Self> {
        let (header, sum) = Header::read(reader)?;
        if header.kind == Kind::Scalable {
            let (filter, counts) = load_scalable(&header, reader, limit, secret)?;
            return Ok((Self::Growing(filter), counts));
        }
        header.expect(Kind::Standard)?;
        let (filter, counts) = load_standard(&header, sum, reader, limit, secret)?;
        Ok((Self::Fixed(filter), counts))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::hash::Hashing;
    use crate::sieve::Sieve;
    use crate::sizing::Sizing;

    /// A file with valid checksums and a crafted header.
    fn scalable_file(change: impl FnOnce(&mut Header)) -> Vec<u8> {
        let filter = ScalableBloomFilter::new(10, 0.01).unwrap();
        let sizing = filter.newest.sizing();
        let mut header = Header::new(Kind::Scalable, &sizing, &Hashing::default(), &SnapshotCounts::default());
        header.layers = 1;
        header.extra = 0.01_f64.to_bits();
        change(&mut header);
        let mut file = Vec::new();
        header.write(&mut file).unwrap();
        filter.newest.write_to(&SnapshotCounts::default(), &mut file).unwrap();
        file
    }

    fn resume(file: &[u8]) -> Result<Sieve<ScalableBloomFilter>, SnapshotError> {
        Sieve::resume(&mut &*file, file.len() as u64, None, VecDeque::new())
    }

    #[test]
    fn a_scalable_file_that_contradicts_itself_is_refused() {
        resume(&scalable_file(|_| ())).unwrap();
        for layers in [0, 65, u32::MAX] {
            let file = scalable_file(|header| header.layers = layers);
            assert!(matches!(resume(&file), Err(SnapshotError::Field("number of layers"))));
        }
        assert!(matches!(
            resume(&scalable_file(|header| header.layers = 2)),
            Err(SnapshotError::Io(_))
        ));
        assert!(matches!(
            resume(&scalable_file(|header| header.hash = 2)),
            Err(SnapshotError::Field("hash of a layer"))
        ));
        assert!(matches!(
            resume(&scalable_file(|header| header.ones = 1)),
            Err(SnapshotError::Field("number of ones"))
        ));
    }

    #[test]
    fn the_layers_of_a_file_share_its_limit() {
        let mut filter = ScalableBloomFilter::new(10, 0.01).unwrap();
        for n in 0_u32..60 {
            filter.insert(n.to_le_bytes());
        }
        assert_eq!(filter.layers().len(), 3);
        let mut file = Vec::new();
        filter.write_to(&SnapshotCounts::default(), &mut file).unwrap();
        let len = file.len() as u64;
        assert!(ScalableBloomFilter::read_from(&mut file.as_slice(), len, None).is_ok());
        assert!(matches!(
            ScalableBloomFilter::read_from(&mut file.as_slice(), len - 1, None),
            Err(SnapshotError::TooLong { .. })
        ));
    }

    #[test]
    fn a_bit_or_a_counter_that_no_key_has_is_damage_though_every_sum_is_right() {
        let hashing = Hashing::default();
        let cases = [
            (Sizing::explicit_blocks(2, 8).unwrap(), 7, 1 << 63),
            (Sizing::explicit_blocks(2, 8).unwrap(), 15, 1 << 63),
            (Sizing::explicit(65, 3).unwrap(), 1, 1 << 1),
            (Sizing::explicit(65, 3).unwrap(), 1, 1 << 63),
        ];
        for (sizing, word, bit) in cases {
            let write = |bit: u64| {
                let mut header = Header::new(Kind::Standard, &sizing, &hashing, &SnapshotCounts::default());
                header.ones = 1;
                let mut words = vec![0; sizing.words() as usize];
                words[word] = bit;
                let mut file = Vec::new();
                let sum = header.write(&mut file).unwrap();
                write_words(&words, sum, &mut file).unwrap();
                BloomFilter::read_from(&mut file.as_slice(), 1 << 20, None)
            };
            assert!(matches!(write(bit), Err(SnapshotError::Damaged)), "{sizing:?}");
            assert!(write(1).is_ok(), "{sizing:?}");
        }
        let sizing = Sizing::explicit(17, 3).unwrap();
        for (count, taken) in [(1, true), (1 << 4, false), (15 << 60, false)] {
            let mut header = Header::new(Kind::Counting, &sizing, &hashing, &SnapshotCounts::default());
            header.ones = u64::from(taken);
            let mut file = Vec::new();
            let sum = header.write(&mut file).unwrap();
            write_words(&[0, count], sum, &mut file).unwrap();
            let read = CountingBloomFilter::read_from(&mut file.as_slice(), 1 << 20, None);
            assert_eq!(read.is_ok(), taken, "{count:x}");
        }
    }
}
