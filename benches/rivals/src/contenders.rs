//! Who is compared: each push means to find out whether a URL was seen, to mark it, and to queue it if it was not.

mod article;
#[cfg(feature = "sqlite")]
mod database;
mod ours;
mod queued;
mod rivals;
mod sets;

use crate::chunk::Chunk;

/// A filter or set with a queue behind it.
pub(crate) trait Contender {
    /// Pushes all links and returns how many were taken for new. This is what is timed: once per chunk, so that the call costs nothing.
    fn push(&mut self, chunk: &Chunk) -> u64;

    /// Pops until nothing waits, and returns how many items there were.
    fn drain(&mut self) -> u64;

    /// Says whether a URL is taken for seen; marks nothing.
    fn knows(&self, url: &str) -> bool;

    /// Returns the memory of the filter or set, in bits.
    fn bits(&self) -> u64;
}

/// One row of the tables.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// Builds the contender for so many distinct URLs.
    pub(crate) build: fn(u64) -> Box<dyn Contender>,
    /// The largest capacity it is run at, where its memory would not do.
    pub(crate) most: u64,
    pub(crate) is_ours: bool,
}

/// The rate that every filter is sized for.
const RATE: f64 = 0.01;

pub(crate) fn all() -> Vec<Entry> {
    let rival = |name, build| Entry {
        name,
        build,
        most: u64::MAX,
        is_ours: false,
    };
    let mut all = vec![
        Entry {
            most: 10_000_000,
            ..rival("`HashSet<String>` + `VecDeque<String>`", sets::strings)
        },
        rival("the source article's filter + `VecDeque<String>`", article::build),
        rival(
            "fastbloom, SipHash (its default) + `VecDeque<String>`",
            rivals::fastbloom_siphash,
        ),
        rival("fastbloom, foldhash + `VecDeque<String>`", rivals::fastbloom_foldhash),
        rival("fastbloom, xxh3 + `VecDeque<String>`", rivals::fastbloom_xxh3),
        rival("sbbf-rs, xxh3, 10.54 bits + `VecDeque<String>`", rivals::sbbf),
        rival(
            "`HashSet` of 64-bit fingerprints + `VecDeque<String>`",
            sets::fingerprints,
        ),
    ];
    all.extend([
        Entry {
            most: 10_000_000,
            ..rival("`HashSet` of 128-bit digests + `VecDeque<String>`", sets::digests)
        },
        rival("bitmap with one probe + `VecDeque<String>`", sets::bitmap),
        #[cfg(feature = "sqlite")]
        Entry {
            most: 10_000_000,
            ..rival("SQLite, a table of the URLs + `VecDeque<String>`", database::build)
        },
    ]);
    all.extend(ours::ALL.map(|(name, build)| Entry {
        is_ours: true,
        ..rival(name, build)
    }));
    all
}
