//! A synthetic web: pages, redirects and sitemaps on sites, each with links.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use frontier::{CanonicalUrl, Canonicalizer, Partition, Reach};

use super::rng::Rng;

/// The sites from which a web takes some.
const SITES: usize = 12;
const MOST_PAGES: usize = 60;
/// Two links with such URLs fill a batch.
const LONG_URL: usize = 9_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Page,
    /// A redirect to the first of its links.
    Redirect,
    Sitemap,
}

#[derive(Debug)]
pub(super) struct Web {
    pub(super) urls: Vec<CanonicalUrl>,
    pub(super) kinds: Vec<Kind>,
    by_url: BTreeMap<String, usize>,
    sites: Vec<usize>,
    pub(super) links: Vec<Vec<usize>>,
    pub(super) seeds: Vec<usize>,
    /// How soon they are read.
    pub(super) seeding: f64,
    /// The pages behind it are reached by the redirect of a seed only.
    front: usize,
    pub(super) reach: Reach,
    pub(super) reachable: BTreeSet<usize>,
    /// Without the seeds that were ordered.
    pub(super) reachable_from_seeds: BTreeSet<usize>,
    pub(super) most_links: u64,
}

impl Web {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let pages = 8 + rng.below(MOST_PAGES - 8);
        let count = 2 + rng.below(SITES - 2);
        let is_long = rng.chance(0.2);
        // With a bounded reach, only the redirect of a seed leads to the pages behind `front`, some of which are on a site of their own.
        let is_bounded = rng.chance(0.3);
        let front = if is_bounded { pages * 2 / 3 } else { pages };
        let mut sites: Vec<_> = (0..front).map(|_| rng.below(count)).collect();
        for page in front..pages {
            let of_front = sites[rng.below(front)];
            sites.push(if page == front || rng.chance(0.3) {
                count
            } else {
                of_front
            });
        }
        let mut kind = |page| match rng.below(10) {
            _ if page == front => Kind::Page,
            0 => Kind::Sitemap,
            1 | 2 => Kind::Redirect,
            _ => Kind::Page,
        };
        let mut kinds: Vec<_> = (0..pages).map(&mut kind).collect();
        let mut links_of = |page| {
            let end = if page < front { front } else { pages };
            (0..rng.below(6)).map(|_| rng.below(end)).collect()
        };
        let mut links: Vec<Vec<_>> = (0..pages).map(&mut links_of).collect();
        let mut seeds: Vec<_> = (0..1 + rng.below(3)).map(|_| rng.below(front)).collect();
        if is_bounded {
            // All sites of the front are in reach, whatever is fetched first.
            seeds = (0..count)
                .filter_map(|site| sites[..front].iter().position(|of| *of == site))
                .collect();
            let gate = seeds[rng.below(seeds.len())];
            (kinds[gate], links[gate]) = (Kind::Redirect, vec![front]);
        }
        for seed in &seeds {
            if kinds[*seed] == Kind::Sitemap {
                kinds[*seed] = Kind::Page;
            }
        }
        for (links, _) in links
            .iter_mut()
            .zip(&kinds)
            .filter(|(_, kind)| **kind == Kind::Redirect)
        {
            // A sitemap is linked by what knows that it is one.
            links.retain(|to| kinds[*to] != Kind::Sitemap);
            links.truncate(1);
        }
        let urls: Vec<_> = (0..pages).map(|page| url(sites[page], page, is_long)).collect();
        let by_url = urls
            .iter()
            .enumerate()
            .map(|(page, url)| (url.as_str().to_owned(), page));
        let mut web = Self {
            by_url: by_url.collect(),
            urls,
            kinds,
            sites,
            links,
            seeds,
            seeding: rng.one_of(&[1.0, 1.0, 0.03]),
            front,
            reach: if is_bounded { Reach::Site } else { Reach::Any },
            reachable: BTreeSet::new(),
            reachable_from_seeds: BTreeSet::new(),
            most_links: 0,
        };
        let robots = (0..=SITES).map(|site| web.sitemaps_of(site).count());
        web.most_links = web.links.iter().map(Vec::len).chain(robots).max().unwrap_or(0) as u64;
        for seed in web.seeds.clone() {
            web.add_seed(seed);
        }
        web.reachable_from_seeds = web.reachable.clone();
        web
    }

    /// Adds what a seed leads to.
    pub(super) fn add_seed(&mut self, seed: usize) {
        let mut todo = vec![seed];
        while let Some(page) = todo.pop() {
            if self.reachable.insert(page) {
                todo.extend(&self.links[page]);
                todo.extend(self.sitemaps_of(self.sites[page]));
            }
        }
    }

    /// Returns a page that may be ordered as a seed. Behind the front it widens the reach as the redirect does.
    pub(super) fn seed_to_order(&self, rng: &mut Rng) -> Option<usize> {
        let first = rng.one_of(&[0, self.front]).min(self.urls.len() - 1);
        let page = first + rng.below(self.urls.len() - first);
        let is_in_reach = page < self.front || self.sites[page] == self.sites[self.front];
        (is_in_reach && self.kinds[page] != Kind::Sitemap).then_some(page)
    }

    pub(super) fn page(&self, url: &str) -> Option<usize> {
        self.by_url.get(url).copied()
    }

    /// Returns the sitemaps that the robots.txt of a site lists, which may be anywhere.
    pub(super) fn sitemaps_of(&self, site: usize) -> impl Iterator<Item = usize> {
        let sitemaps = (0..self.front).filter(|page| self.kinds[*page] == Kind::Sitemap);
        sitemaps.filter(move |page| page % SITES == site)
    }

    /// Returns the sitemaps that the robots.txt of a host lists.
    pub(super) fn sitemaps_of_host(&self, host: &str) -> impl Iterator<Item = usize> {
        let site = self.urls.iter().position(|url| url.host_str() == host);
        site.into_iter().flat_map(|page| self.sitemaps_of(self.sites[page]))
    }

    pub(super) fn owner(&self, page: usize, count: u32) -> u32 {
        Partition::new(0, count).unwrap().owner_of(&self.urls[page])
    }
}

/// Parsing takes longer than all else of a short run.
fn url(site: usize, page: usize, is_long: bool) -> CanonicalUrl {
    static URLS: OnceLock<[Vec<Vec<CanonicalUrl>>; 2]> = OnceLock::new();
    let all = URLS.get_or_init(|| {
        let urls = Canonicalizer::default();
        ["".to_owned(), format!("?{}", "x".repeat(LONG_URL))].map(|query| {
            let parse = |site, page| urls.parse(&format!("http://site{site}.example/{page}{query}")).unwrap();
            (0..=SITES)
                .map(|site| (0..MOST_PAGES).map(|page| parse(site, page)).collect())
                .collect()
        })
    });
    all[usize::from(is_long)][site][page].clone()
}
