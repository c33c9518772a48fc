//! Lets two crawlers share what they have fetched, by sending each other only what is new since last time.
//!
//! Both walk the links of one manual, each from another end. Each keeps a filter of the pages it has fetched, and a mirror of the
//! other's, which the other's deltas keep up to date. What both fetch between two exchanges is fetched twice.
//!
//! `cargo run -p sieve --example exchange_deltas -- /usr/share/doc/postgresql-doc-15/html`; without a folder it takes a
//! manual that is installed, or else a generated graph. Its output:
//!
//! ```text
//! exchange every fetches  twice  deltas   bytes  bytes, whole filters
//!           1169    2338   1169       2   20974                394240
//!            100    1353    184      14   18928               2759680
//!             20    1207     38      64   25386              12615680
//!              5    1189     20     246   47799              48491520
//! ```

mod graph;
mod input;

use std::collections::BTreeSet;

use graph::Graph;
use sieve::snapshot::Counts;
use sieve::{BloomFilter, Delta, Sieve, Snapshot};

/// Decides for how many pages the filters are made: a crawl of many such manuals.
const CAPACITY: u64 = 100_000;

type Failure = Box<dyn std::error::Error>;

struct Crawler {
    to_visit: Sieve,
    /// Two that take the links of a page in the same order soon fetch the same pages at the same time.
    last_link_first: bool,
    fetched: Vec<String>,
    /// What we have fetched, and how much of it the other was told.
    ours: BloomFilter,
    told: BloomFilter,
    /// What the other has fetched, as far as it told us, and that with ours: one look-up for both.
    theirs: BloomFilter,
    either: BloomFilter,
}

impl Crawler {
    /// Starts at a page. Filters can be put together only if all have the same capacity, rate, hash and seed.
    fn new(start: &str, last_link_first: bool) -> Result<Self, Failure> {
        let filter = BloomFilter::new(CAPACITY, 0.001)?;
        let mut to_visit = Sieve::new(CAPACITY)?;
        to_visit.push(start);
        Ok(Self {
            to_visit,
            last_link_first,
            fetched: Vec::new(),
            ours: filter.clone(),
            told: filter.clone(),
            theirs: filter.clone(),
            either: filter,
        })
    }

    /// Fetches up to so many pages that, as far as we know, nobody has fetched.
    fn fetch(&mut self, graph: &Graph, pages: usize) {
        let until = self.fetched.len() + pages;
        while self.fetched.len() < until
            && let Some(page) = self.to_visit.pop()
        {
            // The links of a page that the other has fetched are the other's to follow.
            if self.either.insert(page.as_bytes()) {
                self.ours.insert(page.as_bytes());
                let mut links = graph.get(&page).cloned().unwrap_or_default();
                if self.last_link_first {
                    links.reverse();
                }
                self.to_visit.push_all(links);
                self.fetched.push(page);
            }
        }
    }

    /// Returns the bytes for the other: what it has not been told yet.
    fn tell(&mut self) -> Result<Vec<u8>, Failure> {
        let mut wire = Vec::new();
        self.ours.delta(&self.told)?.write_to(&mut wire)?;
        self.told = self.ours.clone();
        Ok(wire)
    }

    fn hear(&mut self, wire: &[u8]) -> Result<(), Failure> {
        let delta = Delta::read_from(&mut &*wire, wire.len() as u64, None)?;
        // Only the state that the delta was made for takes it: none may be lost, or come twice.
        self.theirs.apply(&delta)?;
        Ok(self.either.union(&self.theirs)?)
    }
}

/// Crawls with an exchange after so many pages each, prints what it cost, and returns the number of pages that were found.
fn crawl(graph: &Graph, ends: [&str; 2], every: usize) -> Result<usize, Failure> {
    let [mut one, mut two] = [Crawler::new(ends[0], false)?, Crawler::new(ends[1], true)?];
    let (mut deltas, mut bytes, mut whole) = (0, 0, Vec::new());
    while one.to_visit.len() + two.to_visit.len() > 0 {
        one.fetch(graph, every);
        two.fetch(graph, every);
        let (from_one, from_two) = (one.tell()?, two.tell()?);
        one.hear(&from_two)?;
        two.hear(&from_one)?;
        deltas += 2;
        bytes += from_one.len() + from_two.len();
    }
    one.ours.write_to(&Counts::default(), &mut whole)?;
    let fetches = one.fetched.len() + two.fetched.len();
    let found = one
        .fetched
        .into_iter()
        .chain(two.fetched)
        .collect::<BTreeSet<_>>()
        .len();
    let (twice, whole) = (fetches - found, deltas * whole.len());
    println!("{every:>14} {fetches:>7} {twice:>6} {deltas:>7} {bytes:>7} {whole:>21}");
    Ok(found)
}

fn main() -> Result<(), Failure> {
    let graph = match input::manual(std::env::args().nth(1)) {
        Some(folder) => graph::of_folder(&folder)?,
        None => graph::generated(1000),
    };
    let (Some((first, _)), Some((last, _))) = (graph.first_key_value(), graph.last_key_value()) else {
        return Err("there are no pages in the folder".into());
    };
    println!("exchange every fetches  twice  deltas   bytes  bytes, whole filters");
    // The first only after all is fetched: each finds everything by itself.
    let all = crawl(&graph, [first, last], graph.len())?;
    for every in [100, 20, 5] {
        let missed = all.saturating_sub(crawl(&graph, [first, last], every)?);
        if missed > 0 {
            println!("{missed} pages missed: each filter took the other's for fetched");
        }
    }
    Ok(())
}
