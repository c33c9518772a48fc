//! A synthetic web: pages on sites, each with links.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use frontier::{CanonicalUrl, Canonicalizer, Partition};

use super::rng::Rng;

/// The sites from which a web takes some.
const SITES: usize = 12;

#[derive(Debug)]
pub(super) struct Web {
    pub(super) urls: Vec<CanonicalUrl>,
    by_url: BTreeMap<String, usize>,
    pub(super) links: Vec<Vec<usize>>,
    pub(super) seeds: Vec<usize>,
    pub(super) reachable: BTreeSet<usize>,
}

impl Web {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let pages = 8 + rng.below(52);
        let sites = 2 + rng.below(SITES - 2);
        let urls: Vec<_> = (0..pages).map(|page| url(rng.below(sites), page)).collect();
        let mut links = |_| (0..rng.below(6)).map(|_| rng.below(pages)).collect();
        let links: Vec<Vec<usize>> = (0..pages).map(&mut links).collect();
        let seeds: Vec<usize> = (0..1 + rng.below(3)).map(|_| rng.below(pages)).collect();
        let (mut reachable, mut todo) = (BTreeSet::new(), seeds.clone());
        while let Some(page) = todo.pop() {
            if reachable.insert(page) {
                todo.extend(&links[page]);
            }
        }
        let by_url = urls
            .iter()
            .enumerate()
            .map(|(page, url)| (url.as_str().to_owned(), page));
        Self {
            by_url: by_url.collect(),
            urls,
            links,
            seeds,
            reachable,
        }
    }

    pub(super) fn page(&self, url: &str) -> usize {
        self.by_url[url]
    }

    pub(super) fn owner(&self, page: usize, count: u32) -> u32 {
        Partition::new(0, count).unwrap().owner_of(&self.urls[page])
    }
}

/// Parsing takes longer than all else of a short run.
fn url(site: usize, page: usize) -> CanonicalUrl {
    static URLS: OnceLock<Vec<Vec<CanonicalUrl>>> = OnceLock::new();
    let all = URLS.get_or_init(|| {
        let urls = Canonicalizer::default();
        let parse = |site, page| urls.parse(&format!("http://site{site}.example/{page}")).unwrap();
        (0..SITES)
            .map(|site| (0..60).map(|page| parse(site, page)).collect())
            .collect()
    });
    all[site][page].clone()
}
