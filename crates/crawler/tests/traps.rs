//! Sites without end: the crawl ends all the same, with every honest page, and says what it left out and why.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

#[path = "common/paused.rs"]
mod paused;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crawler::{Answer, Ask, Crawl, CrawlConfig, CrawlOptions, Ending, Event, FetchError, Fetcher, PageRecord, Summary};
use frontier::{Frontier, FrontierConfig, NotFetched, Reach, Refusal, ScopeConfig};
use sieve::ExactFilter;
use url::Url;

/// Answers by a function, in no time.
struct Script<F>(F, Arc<AtomicU64>);

impl<F: Fn(&Url) -> Answer + Send + Sync + 'static> Fetcher for Script<F> {
    async fn fetch(&self, ask: Ask) -> Result<Answer, FetchError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        if ask.url.path() == "/robots.txt" {
            return Ok(Answer {
                status: 404,
                ..Answer::default()
            });
        }
        Ok((self.0)(&ask.url))
    }
}

struct Run {
    summary: Summary,
    requests: u64,
    pages: Vec<PageRecord>,
}

impl Run {
    fn refused(&self, why: Refusal) -> u64 {
        self.summary.report.links.refused.get(&why).copied().unwrap_or_default()
    }

    fn not_fetched(&self, why: NotFetched) -> u64 {
        self.summary.report.not_fetched.get(&why).copied().unwrap_or_default()
    }

    fn page(&self, url: &str) -> &PageRecord {
        self.pages.iter().find(|page| page.url == url).expect(url)
    }

    /// The pages of the list that every crawl must find.
    fn honest(&self) -> BTreeSet<&str> {
        let pages = self.pages.iter().map(|page| page.url.as_str());
        pages.filter(|url| url.contains("/honest/")).collect()
    }
}

/// Crawls from `http://a.example/` with the defaults of the library, in a time that jumps.
fn run(reply: impl Fn(&Url) -> Answer + Send + Sync + 'static) -> Run {
    run_with(options(), reply)
}

fn options() -> CrawlOptions {
    CrawlOptions {
        seeds: vec!["http://a.example/".to_owned()],
        frontier: FrontierConfig {
            scope: ScopeConfig {
                reach: Reach::Site,
                ..ScopeConfig::default()
            },
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    }
}

fn run_with(options: CrawlOptions, reply: impl Fn(&Url) -> Answer + Send + Sync + 'static) -> Run {
    let runtime = paused::runtime();
    let requests = Arc::new(AtomicU64::new(0));
    let pages = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&pages);
    let frontier = Frontier::with_filter(options.frontier.clone(), ExactFilter::new()).unwrap();
    let config = CrawlConfig::new(options).unwrap();
    let crawl =
        Crawl::with(config, frontier, Script(reply, Arc::clone(&requests))).observe(move |event: &Event<'_>| {
            if let Event::Page(page) = event {
                seen.lock().unwrap().push((*page).clone());
            }
        });
    let summary = runtime.block_on(crawl.run()).unwrap();
    let pages = std::mem::take(&mut *pages.lock().unwrap());
    Run {
        summary,
        requests: requests.load(Ordering::Relaxed),
        pages,
    }
}

fn html(text: &str, links: impl IntoIterator<Item = String>) -> Answer {
    let mut body = format!("<!doctype html><title>{text}</title><p>{text}");
    for link in links {
        write!(body, "<a href='{link}'>+</a>").unwrap();
    }
    Answer {
        status: 200,
        body: body.into_bytes(),
        ..Answer::default()
    }
}

/// Forty words that no other topic has.
fn words(topic: &str) -> String {
    (0..40_u32).fold(String::new(), |text, n| {
        let word: String = (0..4)
            .map(|at| char::from(b'a' + ((n * 7 + at * 5 + n * n * at) % 26) as u8))
            .collect();
        text + topic + &word + " "
    })
}

const HONEST: usize = 40;

fn letters(n: usize) -> String {
    [n / 26 / 26 % 26, n / 26 % 26, n % 26]
        .map(|at| char::from(b'a' + at as u8))
        .iter()
        .collect()
}

fn honest_pages() -> impl Iterator<Item = String> {
    (0..HONEST).map(|n| format!("http://a.example/honest/{}", letters(n)))
}

/// The home page links to the trap first and to the first honest page last; each honest page links to the next.
fn with_honest_pages(url: &Url, doors: &[&str]) -> Option<Answer> {
    if url.host_str() == Some("a.example") && url.path() == "/" {
        let doors = doors.iter().map(|door| (*door).to_owned());
        return Some(html(&words("home"), doors.chain(honest_pages().take(1))));
    }
    let at = honest_pages().position(|page| page == url.as_str())?;
    Some(html(&words(&letters(at)), honest_pages().nth(at + 1)))
}

/// What holds for every trap.
#[track_caller]
fn ends(run: &Run, most_requests: u64) {
    assert_eq!(run.summary.ending, Ending::Drained);
    assert_eq!(run.honest().len(), HONEST, "{}", run.summary);
    assert!(
        run.requests <= most_requests,
        "{} requests\n{}",
        run.requests,
        run.summary
    );
}

#[test]
fn a_calendar_without_end() {
    let run = run(|url| {
        if let Some(page) = with_honest_pages(url, &["/calendar/2026/11/"]) {
            return page;
        }
        let parts: Vec<i64> = url.path().split('/').filter_map(|part| part.parse().ok()).collect();
        let page_text: String = ["events", "news", "about", "us", "places"].map(words).concat();
        let names = [
            "snow", "ice", "rain", "buds", "may", "hay", "heat", "dust", "wine", "leaves", "fog", "night",
        ];
        match parts[..] {
            [year, month] => {
                let name = names[(month - 1) as usize % 12];
                let month_at = |n: i64| format!("/calendar/{}/{}/", n.div_euclid(12), n.rem_euclid(12) + 1);
                let n = year * 12 + month - 1;
                let days = (1..=28).map(|day| format!("/calendar/{year}/{month}/{day}"));
                let days: Vec<String> = days.chain([month_at(n - 1), month_at(n + 1)]).collect();
                html(&format!("{} {name} {year}: 1 2 3 4 5 6 7", page_text), days)
            }
            _ => html(&format!("Nothing on day {}: {}", parts.len(), words("day")), []),
        }
    });
    ends(&run, 3_000);
    let closed = &run.summary.closed_prefixes;
    assert!(
        closed.iter().any(|prefix| prefix == "http://a.example/calendar/#/#/#"),
        "{closed:?}"
    );
    assert!(run.refused(Refusal::NearDuplicates) > 0);
    assert!(
        run.not_fetched(NotFetched::NearDuplicates) > 0,
        "what waits is left too"
    );
}

#[test]
fn session_ids_in_paths_and_in_queries() {
    for (door, prefix) in [
        ("/shop/list;sid=0", "http://a.example/shop/list;"),
        ("/shop/list.php?sid=0", "http://a.example/shop/list.php?"),
        ("/shop/(S(0k))/list", "http://a.example/shop/#/*"),
    ] {
        let sessions = AtomicU64::new(1);
        let run = run(move |url| {
            if let Some(page) = with_honest_pages(url, &[door]) {
                return page;
            }
            // Each answer starts sessions of its own, and the honest pages of the shop are in there too.
            let fresh = || {
                format!(
                    "{:x}",
                    sessions
                        .fetch_add(1, Ordering::Relaxed)
                        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                )
            };
            let links = (0..5).map(|_| door.replace("0", &format!("0{}", fresh())));
            html(
                &format!("Basket {}: {}", fresh(), words("shop")),
                links.collect::<Vec<_>>(),
            )
        });
        ends(&run, 2_000);
        assert_eq!(run.summary.closed_prefixes, [prefix]);
    }
}

#[test]
fn a_path_that_repeats_itself() {
    let run = run(|url| {
        with_honest_pages(url, &["/maze/"]).unwrap_or_else(|| {
            html(
                &words("maze"),
                ["left/".to_owned(), "right/".to_owned(), "back/".to_owned()],
            )
        })
    });
    ends(&run, 5_000);
    assert!(run.refused(Refusal::NearDuplicates) > 0);
    assert!(run.summary.duplicates.exact >= 500, "{:?}", run.summary.duplicates);
}

#[test]
fn every_combination_of_facets() {
    const FACETS: u32 = 24;
    let run = run(|url| {
        if let Some(page) = with_honest_pages(url, &["/search?facets=0"]) {
            return page;
        }
        let (_, value) = url.query_pairs().next().unwrap();
        let set: u32 = value.parse().unwrap();
        let links = (0..FACETS)
            .step_by(6)
            .map(|facet| format!("/search?facets={}", set ^ (1 << ((facet + set) % FACETS))));
        // Every search finds something of its own, so that no page is like another.
        html(
            &format!(
                "{} {}",
                words(&letters(set as usize)),
                words(&value.replace(char::is_numeric, "x"))
            ),
            links.collect::<Vec<_>>(),
        )
    });
    ends(&run, 10_100);
    assert!(run.refused(Refusal::TooManyQueries) > 0);
}

#[test]
fn subdomains_without_end() {
    let run = run(|url| {
        if let Some(page) = with_honest_pages(url, &["http://w0.a.example/"]) {
            return page;
        }
        let host = url.host_str().unwrap();
        let n: u64 = host[1..host.find('.').unwrap()].parse().unwrap();
        let next = [2 * n + 1, 2 * n + 2].map(|n| format!("http://w{n}.a.example/"));
        html(&words(&letters(n as usize)), next)
    });
    ends(&run, 2_100);
    assert!(run.refused(Refusal::TooManySubdomains) > 0);
}

#[test]
fn a_server_that_finds_every_page_and_always_the_same() {
    let run = run(|url| {
        with_honest_pages(url, &["/lost/and/found"]).unwrap_or_else(|| {
            let last = url.path_segments().unwrap().next_back().unwrap();
            let deeper = (0..2).map(|n| format!("{}/{last}{}", letters(last.len()), letters(n)));
            html(&words("home page of everything"), deeper.collect::<Vec<_>>())
        })
    });
    ends(&run, 5_000);
    assert!(run.refused(Refusal::NearDuplicates) > 0);
}

#[test]
fn without_budgets_the_same_trap_has_no_end() {
    let mut options = options();
    options.frontier.max_near_duplicates = None;
    options.frontier.max_pages = Some(3_000);
    let run = run_with(options, |url| {
        let next = url.path().trim_matches('/').parse().unwrap_or(0_u64) + 1;
        html(&words("calendar"), [format!("/{next}")])
    });
    assert_eq!(run.summary.ending, Ending::BudgetSpent);
    assert_eq!(
        run.summary.duplicates.compared, 0,
        "nothing is compared that nobody wants to know"
    );
    assert!(
        run.pages
            .iter()
            .all(|page| page.content_hash.is_none() && page.simhash.is_none())
    );
}

#[test]
fn records_say_what_a_page_repeats() {
    let options = CrawlOptions {
        fingerprints: true,
        ..options()
    };
    let run = run_with(options, |url| match url.path() {
        "/" => html(
            &words("home"),
            ["/one", "/two", "/three", "/four", "/short"].map(str::to_owned),
        ),
        "/one" => html(&words("same"), []),
        "/two" => html(&words("same"), []),
        "/three" => html(&format!("Page 3 of {}", words("pages").to_uppercase()), []),
        "/four" => html(&format!("Page 4 of {}", words("pages")), []),
        _ => html("Not enough to compare", []),
    });
    let of = |path: &str| {
        let page = run.page(&format!("http://a.example/{path}"));
        (page.duplicate_of.as_deref(), page.near_duplicate_of.as_deref())
    };
    let one = Some("http://a.example/one");
    assert_eq!(of("one"), (None, None));
    assert_eq!(of("two"), (one, one));
    assert_eq!(of("three"), (None, None));
    assert_eq!(
        of("four"),
        (None, Some("http://a.example/three")),
        "numbers and case do not count"
    );
    assert_eq!(of(""), (None, None));
    let (one, two) = (run.page("http://a.example/one"), run.page("http://a.example/two"));
    assert_eq!(one.content_hash, two.content_hash);
    assert_eq!(one.content_hash.as_ref().map(String::len), Some(32));
    assert_eq!(one.simhash.as_ref().map(String::len), Some(16));
    let short = run.page("http://a.example/short");
    assert!(short.simhash.is_some() && short.content_hash.is_some());
    let counts = run.summary.duplicates;
    assert_eq!((counts.compared, counts.exact, counts.near), (6, 1, 1));
}

#[test]
fn noindex_is_told_and_the_page_is_written_all_the_same() {
    let run = run(|url| {
        let meta = |content: &str| format!("<meta name=robots content='{content}'>");
        let mut answer = match url.path() {
            "/" => html(
                "home",
                ["/meta", "/ours", "/theirs", "/header", "/file", "/none"].map(str::to_owned),
            ),
            "/meta" => html(&meta("noindex"), ["/from-meta".to_owned()]),
            "/ours" => html("<meta name=sieve-crawler content=noindex>", []),
            "/theirs" => html(
                "<meta name=otherbot content='noindex, nofollow'>",
                ["/from-theirs".to_owned()],
            ),
            "/none" => html(&meta("none"), ["/from-none".to_owned()]),
            _ => html("page", []),
        };
        match url.path() {
            "/header" => answer.robots_tags = vec!["sieve-crawler: noindex, nofollow".to_owned()],
            "/file" => {
                answer.content_type = Some("application/pdf".to_owned());
                answer.robots_tags = vec!["noindex".to_owned()];
            }
            "/theirs" => answer.robots_tags = vec!["otherbot: noindex".to_owned()],
            _ => {}
        }
        answer
    });
    let noindex: BTreeSet<&str> = run
        .pages
        .iter()
        .filter(|page| page.noindex)
        .map(|page| page.url.strip_prefix("http://a.example").unwrap())
        .collect();
    assert_eq!(noindex, BTreeSet::from(["/file", "/header", "/meta", "/none", "/ours"]));
    let found = |path: &str| run.pages.iter().any(|page| page.url.ends_with(path));
    assert!(found("/from-meta") && found("/from-theirs"), "noindex is not nofollow");
    assert!(!found("/from-none"));
    assert_eq!(run.summary.links_nofollow, 1);
}

#[test]
fn links_that_can_be_no_page_are_counted_by_kind() {
    let run = run(|url| match url.path() {
        "/" => {
            let mail = ["mailto:ann@a.example"; 3].map(str::to_owned);
            let others = [
                "javascript:void(0)",
                "tel:1",
                "http://",
                "http://[x",
                "http://../",
                "/moved",
            ]
            .map(str::to_owned);
            let long = format!("/{}", "x".repeat(20_000));
            html("home", mail.into_iter().chain(others).chain([long]))
        }
        "/moved" => Answer {
            status: 302,
            location: Some("mailto:ann@a.example".to_owned()),
            ..Answer::default()
        },
        _ => Answer::default(),
    });
    let summary = run.summary;
    assert_eq!((summary.links_other_scheme, summary.links_unresolvable), (3, 5));
    let shown = summary.to_string();
    assert!(shown.contains("3 neither http nor https, 5 unresolvable"), "{shown}");
}

/// The number at the end of a path such as `/photo/17`.
fn number(url: &Url) -> u64 {
    url.path()
        .rsplit('/')
        .next()
        .and_then(|last| last.parse().ok())
        .unwrap_or(0)
}

/// Far more than any budget allows, but an end, so that the test has one.
const WITHOUT_END: u64 = 6_000;

#[test]
fn pages_of_a_few_words_that_lead_on_and_on() {
    let run = run(|url| {
        if let Some(page) = with_honest_pages(url, &["/photo/1"]) {
            return page;
        }
        let next = (number(url) < WITHOUT_END).then(|| format!("/photo/{}", number(url) + 1));
        html(&format!("Photo {}", number(url)), next)
    });
    ends(&run, 3_000);
}

#[test]
fn empty_pages_that_refresh_to_others_on_and_on() {
    let run = run(|url| {
        if let Some(page) = with_honest_pages(url, &["/wait/1"]) {
            return page;
        }
        Answer {
            body: Vec::new(),
            refresh: (number(url) < WITHOUT_END).then(|| format!("0; url=/wait/{}", number(url) + 1)),
            ..html("", [])
        }
    });
    ends(&run, 3_000);
}

#[test]
fn pages_that_are_never_whole_and_lead_on_and_on() {
    let run = run(|url| {
        if let Some(page) = with_honest_pages(url, &["/large/1"]) {
            return page;
        }
        let next = (number(url) < WITHOUT_END).then(|| format!("/large/{}", number(url) + 1));
        Answer {
            extent: crawler::fetch::Extent::Truncated,
            cut: Some(crawler::Cut::Size),
            ..html(&words("large"), next)
        }
    });
    ends(&run, 3_000);
}
