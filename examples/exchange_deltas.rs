//! Two crawlers exchange which pages they have fetched, by sending only the new bits of their filters.
//!
//! Both crawl one manual, from different pages. Each has a filter of the pages that it fetched, and a copy of the other's filter, which
//! deltas update. Pages that both fetch between two exchanges are fetched twice.
//!
//! `cargo run -p crawl-sieve --example exchange_deltas -- /usr/share/doc/postgresql-doc-15/html`; the default is an installed manual, or a
//! generated graph. Its output:
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
use sieve::snapshot::SnapshotCounts;
use sieve::{BloomFilter, Delta, Sieve, Snapshot};

/// The capacity of the filters: a crawl of many such manuals.
const CAPACITY: u64 = 100_000;

type Failure = Box<dyn std::error::Error>;

struct Crawler {
    to_visit: Sieve,
    /// Two crawlers with the same order of links soon fetch the same pages at the same time.
    last_link_first: bool,
    fetched: Vec<String>,
    /// The pages that we fetched, and the state that the other knows.
    ours: BloomFilter,
    told: BloomFilter,
    /// The pages of the other, as far as we know, and the union with ours: one look-up for both.
    theirs: BloomFilter,
    either: BloomFilter,
}

impl Crawler {
    /// Starts at a page. Filters can be united only if all have the same capacity, rate, hash and seed.
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

    /// Fetches up to `count` pages that, as far as we know, were not fetched.
    fn fetch(&mut self, graph: &Graph, pages: usize) {
        let until = self.fetched.len() + pages;
        while self.fetched.len() < until
            && let Some(page) = self.to_visit.pop()
        {
            // The other follows the links of the pages that it fetched.
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

    /// Returns the delta that the other does not know yet.
    fn tell(&mut self) -> Result<Vec<u8>, Failure> {
        let mut wire = Vec::new();
        self.ours.delta(&self.told)?.write_to(&mut wire)?;
        self.told = self.ours.clone();
        Ok(wire)
    }

    fn hear(&mut self, wire: &[u8]) -> Result<(), Failure> {
        let delta = Delta::read_from(&mut &*wire, wire.len() as u64, None)?;
        // A delta applies to its own base only: none may be lost or applied twice.
        self.theirs.apply(&delta)?;
        Ok(self.either.union(&self.theirs)?)
    }
}

/// Crawls with an exchange after a number of pages each, and prints the cost. Returns the number of pages found.
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
    one.ours.write_to(&SnapshotCounts::default(), &mut whole)?;
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
    // The first exchange is after the last page: each crawler fetches everything by itself.
    let all = crawl(&graph, [first, last], graph.len())?;
    for every in [100, 20, 5] {
        let missed = all.saturating_sub(crawl(&graph, [first, last], every)?);
        if missed > 0 {
            println!("{missed} pages missed: each filter took the other's for fetched");
        }
    }
    Ok(())
}
