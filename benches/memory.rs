//! The memory of a frontier: heap bytes per queued URL and per host.
//!
//! `cargo bench -p crawl-frontier --bench memory`; as a test (`cargo test -p crawl-frontier --bench memory`) it runs once with small sizes and loose
//! bounds. An argument sets the number of queued URLs: `cargo bench -p crawl-frontier --bench memory -- 300000`.
//!
//! The bench counts the bytes requested from the allocator, without its overhead. The seen-set is outside the heap and reported
//! separately. URLs have 70 to 90 bytes. Each page has ten new links, whose referrer it is.

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use frontier::{
    Canonicalizer, Entry, Frontier, FrontierConfig, Leasing, Link, PolitenessConfig, Purpose, Reach, RobotsRules,
    ScopeConfig, SeenSetConfig, Time,
};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const NOW: Time = Time::from_millis(1_700_000_000_000);
const LINKS_OF_PAGE: usize = 10;
/// Links to the host of their page; the others lead to any.
const OWN_LINKS: usize = 7;
/// Hosts per URL, as in a million URLs of a broad crawl.
const HOSTS_PER_URL: f64 = 0.06;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    // `cargo bench` says so to what it runs.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let asked = std::env::args().find_map(|argument| argument.parse().ok());
    let urls: usize = asked.unwrap_or(if is_bench { 1_000_000 } else { 20_000 });
    let hosts = (urls as f64 * HOSTS_PER_URL) as usize;

    println!("{:<42} {:>9}", "what", "bytes");
    let kept = [
        waiting("URL of one site", urls, Pages::new(1), 100.0)?,
        waiting(&format!("URL of {hosts} hosts"), urls, Pages::new(hosts), 140.0)?,
        hosts_with_rules(urls / 10, 700.0)?,
    ];
    // In small, hash tables and the ends of segments weigh more.
    let slack = if is_bench { 1.0 } else { 1.5 };
    if let Some((bytes, most)) = kept.iter().find(|(bytes, most)| *bytes > most * slack) {
        return Err(format!("{bytes:.0} bytes are more than {most:.0}").into());
    }
    Ok(())
}

/// Measures waiting URLs. Returns the bytes of each and the bound.
fn waiting(what: &str, urls: usize, mut pages: Pages, most: f64) -> Outcome<(f64, f64)> {
    let mut frontier = new(urls)?;
    let (mut offered, mut length) = (0, 0);
    let (waiting, bytes) = measured(|| {
        while offered < urls {
            let links = pages.next()?;
            offered += links.len();
            length += links.iter().map(|link| link.url.key().len()).sum::<usize>();
            frontier.offer(&links, NOW)?;
        }
        Ok(frontier.report().queued as f64)
    })?;
    let bytes = bytes / waiting;
    row(
        what,
        bytes,
        &format!("of {:.1} bytes; at most {most:.0}", length as f64 / offered as f64),
    );
    row("  and in the seen-set", seen_set(&frontier) / waiting, "");
    drop(frontier);
    let (_entries, plain) = measured(|| entries(urls, &mut pages))?;
    row("  in a VecDeque<Entry>", plain / urls as f64, "");
    Ok((bytes, most))
}

/// The same as plain entries, which share the names of hosts and the URLs of pages.
fn entries(urls: usize, pages: &mut Pages) -> Outcome<VecDeque<Entry>> {
    let config = FrontierConfig {
        seen_set: SeenSetConfig {
            capacity: 1000,
            ..SeenSetConfig::default()
        },
        politeness: PolitenessConfig {
            ask_robots: false,
            ..PolitenessConfig::default()
        },
        ..FrontierConfig::default()
    };
    let mut frontier = Frontier::in_memory(config)?;
    frontier.add_seed(&Canonicalizer::default().parse("http://a.example/")?, NOW)?;
    let Leasing::Ready(leases) = frontier.lease(NOW, 1)? else {
        return Err("the seed can be fetched".into());
    };
    let mut hosts = HashMap::new();
    let mut entries = VecDeque::new();
    while entries.len() < urls {
        for link in pages.next()? {
            let mut entry = Entry::clone(&leases[0].entry);
            entry.queue = hosts
                .entry(link.url.host_str().to_owned())
                .or_insert_with(|| link.url.host())
                .clone();
            entry.url = link.url.url().as_str().into();
            entry.metadata.referrer = link.referrer;
            entries.push_back(entry);
        }
    }
    Ok(entries)
}

/// Measures hosts with one URL waiting and known rules. Returns the bytes of each and the bound.
fn hosts_with_rules(hosts: usize, most: f64) -> Outcome<(f64, f64)> {
    let (_rules, of_rules) = measured(|| Ok(Arc::new(Rules::new()) as Arc<dyn RobotsRules>))?;
    let mut frontier = new(hosts)?;
    let mut pages = Pages::new(hosts);
    let ((), unasked) = measured(|| {
        for rank in 0..hosts {
            let page = pages.url(rank).into();
            let link = Link::found(Canonicalizer::default().parse(&pages.url(rank))?, 1, page);
            frontier.offer(&[link], NOW)?;
        }
        Ok(())
    })?;
    let ((), asked) = measured(|| {
        while let Leasing::Ready(leases) = frontier.lease(NOW, 100)? {
            let robots = leases.iter().filter(|lease| lease.entry.purpose != Purpose::Page);
            let known = robots.map(|lease| lease.settle(frontier::Outcome::Done).with_rules(Rules::new()));
            frontier.settle(&known.collect::<Vec<_>>(), NOW)?;
        }
        Ok(())
    })?;
    let each = frontier.report().hosts as f64;
    let bytes = (unasked + asked) / each;
    row(
        &format!("host of {hosts}, with one URL and rules"),
        bytes,
        &format!("at most {most:.0}"),
    );
    row(
        "  without the rules themselves",
        bytes - of_rules,
        &format!("they have {of_rules:.0}"),
    );
    row("  before robots.txt is asked for", unasked / each, "");
    row("  and in the seen-set", seen_set(&frontier) / each, "");
    Ok((bytes, most))
}

/// Makes a frontier for so many URLs of any host.
fn new(capacity: usize) -> Outcome<Frontier> {
    let scope = ScopeConfig {
        reach: Reach::Any,
        ..ScopeConfig::default()
    };
    Ok(Frontier::in_memory(FrontierConfig {
        scope,
        seen_set: SeenSetConfig {
            capacity: capacity as u64,
            on_saturation: frontier::OnSaturation::Warn,
            ..SeenSetConfig::default()
        },
        ..FrontierConfig::default()
    })?)
}

fn seen_set(frontier: &Frontier) -> f64 {
    frontier.report().saturation.memory_bytes as f64
}

/// Makes something, and returns the bytes of heap that it has left behind.
fn measured<T>(make: impl FnOnce() -> Outcome<T>) -> Outcome<(T, f64)> {
    let before = HEAP.current_usage();
    let made = make()?;
    Ok((made, HEAP.current_usage() as f64 - before as f64))
}

fn row(what: &str, bytes: f64, note: &str) {
    println!("{what:<42} {bytes:>9.1}  {note}");
}

/// What a crawler keeps of a robots.txt of ten lines.
#[derive(Debug)]
struct Rules(Box<str>);

impl Rules {
    fn new() -> Self {
        Self(
            "User-agent: *\nCrawl-delay: 1\nDisallow: /search\nDisallow: /cart/\nDisallow: /checkout/\nDisallow: /account/\n\
             Disallow: /*?sort=\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\nDisallow: /cgi-bin/\n"
                .into(),
        )
    }
}

impl RobotsRules for Rules {
    fn allows(&self, path: &str) -> bool {
        let mut forbidden = self.0.lines().filter_map(|line| line.strip_prefix("Disallow: "));
        !forbidden.any(|prefix| path.starts_with(prefix))
    }

    fn crawl_delay(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.0.len()
    }
}

/// Pages of hosts of which few have many pages and many have few: by Zipf's law, the one of rank `n` has a share of `1 / n`.
struct Pages {
    hosts: Vec<String>,
    /// The shares of all hosts up to each.
    shares: Vec<f64>,
    /// How many hosts have a URL: each gets one before any gets a second.
    named: usize,
    state: u64,
    made: usize,
}

const WORDS: [&str; 32] = [
    "annual", "archive", "autumn", "bridge", "camera", "city", "council", "data", "design", "early", "energy", "film",
    "garden", "guide", "harbour", "history", "island", "journal", "kitchen", "letters", "market", "model", "music",
    "night", "open", "paper", "report", "review", "river", "school", "travel", "winter",
];

impl Pages {
    fn new(hosts: usize) -> Self {
        let mut pages = Self {
            hosts: Vec::new(),
            shares: Vec::new(),
            named: 0,
            state: 1,
            made: 0,
        };
        let mut share = 0.0;
        for rank in 0..hosts {
            let host = format!("https://www.{}{rank}.com", pages.word());
            pages.hosts.push(host);
            share += 1.0 / (rank + 1) as f64;
            pages.shares.push(share);
        }
        pages
    }

    /// Makes the links of the next page.
    fn next(&mut self) -> Outcome<Vec<Link>> {
        let of_page = self.any_host();
        let page: Arc<str> = self.url(of_page).into();
        (0..LINKS_OF_PAGE)
            .map(|link| {
                let rank = if self.named < self.hosts.len() {
                    self.named += 1;
                    self.named - 1
                } else if link < OWN_LINKS {
                    of_page
                } else {
                    self.any_host()
                };
                let url = Canonicalizer::default().parse(&self.url(rank))?;
                Ok(Link::found(url, 1, Arc::clone(&page)))
            })
            .collect()
    }

    fn any_host(&mut self) -> usize {
        let all = self.shares.last().copied().unwrap_or_default();
        let at = (self.random() >> 11) as f64 / (1_u64 << 53) as f64 * all;
        self.shares
            .partition_point(|share| *share <= at)
            .min(self.hosts.len() - 1)
    }

    /// Makes a new URL of a host: a section, a year, and words with a number, as of an article.
    fn url(&mut self, rank: usize) -> String {
        let length = 70 + (self.random() % 21) as usize;
        let year = 2000 + self.random() % 25;
        let section = self.word();
        let mut url = format!("{}/{section}/{year}/", self.hosts[rank]);
        while url.len() < length - "-000000".len() {
            url += self.word();
            url.push('-');
        }
        url.truncate(length - "-000000".len());
        self.made += 1;
        url + &format!("-{:06x}", self.made)
    }

    fn word(&mut self) -> &'static str {
        WORDS[(self.random() >> 59) as usize]
    }

    /// SplitMix64.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
