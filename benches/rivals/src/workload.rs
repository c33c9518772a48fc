//! Generated URLs: hosts, lengths and queries distributed as in a crawl, each URL a function of its number.
//!
//! Lengths have a mean of 80 bytes, a standard deviation of 38, a median of 67 and a 95th percentile of 155. There are 57 684 hosts
//! per million URLs; their sizes fall by a power law such that the top 100 hold 39 %. 17 % have a query.
//!
//! As every URL can be made again from its number, a duplicate of any earlier one costs no memory, and hundreds of millions of
//! URLs can pass by in chunks.

use std::fmt::Write;

use crate::chunk::Chunk;

const HOSTS_PER_MILLION: u64 = 57_684;
const TOP_HOSTS_SHARE: f64 = 0.39;
const QUERIES_PERCENT: u64 = 17;
/// The links of a page, for those who take them at once.
const PAGE: usize = 50;
/// Quantiles of the lengths, in bytes; between them all lengths are equally likely.
const LENGTHS: [(f64, f64); 9] = [
    (0.0, 32.0),
    (0.1, 44.0),
    (0.25, 54.0),
    (0.5, 68.0),
    (0.75, 97.0),
    (0.9, 134.0),
    (0.95, 157.0),
    (0.99, 206.0),
    (1.0, 260.0),
];
/// A power of two: the high bits of a random word choose an entry.
const TABLE: usize = 1 << 14;
const PROSE_BYTES: usize = 1 << 16;

/// All URLs of one size of crawl.
pub(crate) struct Workload {
    /// Quantiles of the ranks of hosts, from the largest on.
    ranks: Vec<u64>,
    lengths: Vec<u16>,
    /// What paths are cut from.
    prose: String,
}

impl Workload {
    pub(crate) fn new(urls: u64) -> Self {
        let hosts = (urls * HOSTS_PER_MILLION / 1_000_000).max(200);
        Self {
            ranks: ranks(hosts as f64),
            lengths: (0..TABLE).map(|at| length(at as f64 / TABLE as f64)).collect(),
            prose: prose(),
        }
    }

    /// Fills a chunk with `len` URLs, of which this share repeats one of those before.
    pub(crate) fn fill(&self, chunk: &mut Chunk, stream: &mut Stream, len: u64, duplicates_percent: u64) {
        chunk.clear();
        for _ in 0..len {
            let repeats = stream.next > 0 && stream.random.below(100) < duplicates_percent;
            let number = if repeats {
                stream.random.below(stream.next)
            } else {
                stream.next += 1;
                stream.next - 1
            };
            chunk.add(|text| self.write(number, text));
            if chunk.len().is_multiple_of(PAGE) {
                chunk.end_page();
            }
        }
        chunk.end_page();
    }

    /// Appends URL `number`; different numbers give different URLs.
    fn write(&self, number: u64, text: &mut String) {
        let mut random = Random(number);
        let start = text.len();
        let rank = self.rank(random.next());
        text.push_str("https://");
        if rank.is_multiple_of(2) {
            text.push_str("www.");
        }
        let name = (mixed(rank) % (PROSE_BYTES as u64 - 256)) as usize;
        push_number(text, rank, 26);
        text.push_str(word_at(&self.prose[name..name + 12]));
        text.push_str([".example.com/", ".example.org/", ".example/", ".co.example/"][(rank % 4) as usize]);
        let words = random.next();
        let target = usize::from(self.lengths[(words >> 50) as usize]);
        let query = words % 100 < QUERIES_PERCENT;
        // What comes behind the path: the number, and an ending or a query.
        let rest = 7 + if query { 12 } else { 5 };
        let path = target.saturating_sub(text.len() - start + rest);
        let from = (words >> 20) as usize % (PROSE_BYTES - 256);
        text.push_str(&self.prose[from..from + path]);
        text.push('-');
        push_number(text, number, 36);
        if query {
            text.push_str("?q=");
            push_number(text, words >> 25 & 0xff_ffff, 36);
            text.push_str("&p=1");
        } else {
            text.push_str(".html");
        }
    }

    fn rank(&self, random: u64) -> u64 {
        let at = (random >> 50) as usize;
        let (low, high) = (self.ranks[at], self.ranks[at + 1]);
        low + (random & 0xffff_ffff) * (high - low) / (1 << 32)
    }
}

/// A place in the sequence of URLs.
pub(crate) struct Stream {
    /// The number of distinct URLs so far.
    next: u64,
    random: Random,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Self {
            next: 0,
            random: Random(0x853c_49e6_748f_ea9b),
        }
    }

    /// Returns how many distinct URLs there were.
    pub(crate) fn distinct(&self) -> u64 {
        self.next
    }
}

/// SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014): reproducible everywhere, and good from any start.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

fn mixed(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// The power law r^-s over `hosts` ranks whose first 100 hold their share, as quantiles.
fn ranks(hosts: f64) -> Vec<u64> {
    let share = |s: f64| (100_f64.powf(1.0 - s) - 1.0) / (hosts.powf(1.0 - s) - 1.0);
    let (mut low, mut high) = (0.01, 0.999);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        *(if share(middle) < TOP_HOSTS_SHARE {
            &mut low
        } else {
            &mut high
        }) = middle;
    }
    let whole = hosts.powf(1.0 - low) - 1.0;
    (0..=TABLE)
        .map(|at| (at as f64 / TABLE as f64 * whole + 1.0).powf(1.0 / (1.0 - low)) as u64)
        .collect()
}

fn length(quantile: f64) -> u16 {
    let above = LENGTHS.partition_point(|&(q, _)| q <= quantile);
    let ((from, short), (to, long)) = (LENGTHS[above - 1], LENGTHS[above]);
    (short + (long - short) * (quantile - from) / (to - from)).round() as u16
}

/// Words with slashes and hyphens between them.
fn prose() -> String {
    let mut random = Random(1);
    let mut prose = String::with_capacity(PROSE_BYTES + 16);
    while prose.len() < PROSE_BYTES {
        for _ in 0..2 + random.below(8) {
            prose.push(char::from(b'a' + random.below(26) as u8));
        }
        prose.push(if random.below(4) == 0 { '/' } else { '-' });
    }
    prose
}

/// The first whole word in a piece of prose, or what there is of one.
fn word_at(prose: &str) -> &str {
    prose.split(['/', '-']).max_by_key(|word| word.len()).unwrap_or("x")
}

fn push_number(text: &mut String, mut number: u64, base: u64) {
    let digits = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut out = [0; 13];
    let mut at = out.len();
    loop {
        at -= 1;
        out[at] = digits[(number % base) as usize];
        number /= base;
        if number == 0 {
            break;
        }
    }
    out[at..].iter().for_each(|&digit| text.push(char::from(digit)));
}

/// Describes up to a million URLs in one line, to be held against the figures above.
pub(crate) fn describe(urls: u64) -> String {
    let mut chunk = Chunk::default();
    Workload::new(urls).fill(&mut chunk, &mut Stream::new(), urls.min(1_000_000), 0);
    let mut lengths: Vec<usize> = chunk.links().map(str::len).collect();
    lengths.sort_unstable();
    let count = lengths.len() as f64;
    let mean = lengths.iter().sum::<usize>() as f64 / count;
    let variance = lengths.iter().map(|&len| (len as f64 - mean).powi(2)).sum::<f64>() / count;
    let mut hosts = std::collections::HashMap::<&str, u64>::new();
    for link in chunk.links() {
        *hosts.entry(link.split('/').nth(2).unwrap_or("")).or_default() += 1;
    }
    let mut sizes: Vec<u64> = hosts.into_values().collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let top: u64 = sizes.iter().take(100).sum();
    let queries = chunk.links().filter(|link| link.contains('?')).count();
    let mut line = format!("The first {count} URLs: ");
    let _ = write!(
        line,
        "mean {mean:.1} bytes, sd {:.1}, median {}, p95 {}, {} hosts, the top 100 with {:.1} %, {:.1} % with a query.",
        variance.sqrt(),
        lengths[lengths.len() / 2],
        lengths[lengths.len() * 95 / 100],
        sizes.len(),
        top as f64 / count * 100.0,
        queries as f64 / count * 100.0,
    );
    line
}
