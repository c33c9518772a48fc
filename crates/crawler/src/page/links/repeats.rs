//! Links that a page has said before, in the same words.

/// Fewest and most places, both powers of two.
const PLACES: std::ops::RangeInclusive<usize> = 64..=4096;

/// Bytes of a page per place: fewer than between two links even of a page that is full of them.
const BYTES_PER_PLACE: usize = 64;

/// Remembers some of the links of a page, so that they need not be resolved again.
///
/// Every link has one place, which it shares with others: the last one stays. So it never grows, and what it forgets
/// costs time only.
pub(super) struct Repeats<'a> {
    places: Vec<Option<(&'a str, bool)>>,
}

impl<'a> Repeats<'a> {
    /// Nothing is known yet of a page of this length.
    pub(super) fn new(length: usize) -> Self {
        let places = (length / BYTES_PER_PLACE)
            .next_power_of_two()
            .clamp(*PLACES.start(), *PLACES.end());
        Self {
            places: vec![None; places],
        }
    }

    /// Whether this link was remembered last at its place.
    pub(super) fn is_known(&self, href: &str, nofollow: bool) -> bool {
        self.places.get(self.place(href)) == Some(&Some((href, nofollow)))
    }

    /// Remembers a link, and forgets what was at its place.
    pub(super) fn remember(&mut self, href: &'a str, nofollow: bool) {
        let place = self.place(href);
        if let Some(kept) = self.places.get_mut(place) {
            *kept = Some((href, nofollow));
        }
    }

    fn place(&self, href: &str) -> usize {
        let hash = hash(href.as_bytes());
        // The high bits of a product are the well-mixed ones.
        usize::try_from(hash >> 32).unwrap_or_default() & (self.places.len() - 1)
    }
}

/// Mixes every byte; that somebody can make them collide is no harm here.
fn hash(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let (chunks, rest) = bytes.as_chunks::<8>();
    let last = rest
        .iter()
        .fold(bytes.len() as u64, |word, byte| word << 8 | u64::from(*byte));
    let words = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).chain([last]);
    words.fold(0, |hash, word| (hash.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER))
}
