//! Traps: the crawl of an endless site ends, fetches every honest page, and reports what it left out and why.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::scripted::{self, Run, Scripted};
use crawler::{CrawlOptions, Ending, PageRecord, Response};
use frontier::{FrontierConfig, NotFetched, Notice, Reach, Refusal, ScopeConfig, SeenSetConfig};
use sieve::Hashing;
use url::Url;

impl Run {
    fn page(&self, url: &str) -> &PageRecord {
        self.reports.pages.iter().find(|page| page.url == url).expect(url)
    }

    /// The places that were postponed, and those that were closed, once per notice.
    fn postponed_and_closed(&self) -> (Vec<&str>, Vec<&str>) {
        let (mut postponed, mut closed) = (Vec::new(), Vec::new());
        for notice in &self.reports.notices {
            match notice {
                Notice::Postponed { place, .. } => postponed.push(&**place),
                Notice::PrefixClosed { place, .. } => closed.push(&**place),
                other => panic!("{other:?}"),
            }
        }
        (postponed, closed)
    }

    /// How many pages were fetched whose URL contains this.
    fn pages_with(&self, part: &str) -> usize {
        let pages = self.reports.pages.iter();
        pages.filter(|page| page.url.contains(part)).count()
    }

    /// How many other pages were fetched before the last honest one.
    fn pages_before_the_last_honest_one(&self) -> usize {
        let is_honest = |page: &PageRecord| page.url.contains("/honest/");
        self.reports.pages.iter().rposition(is_honest).unwrap() + 1 - HONEST_PAGES
    }
}

/// The number of near-duplicates after which a prefix is postponed, and closed. These are a tenth of the defaults, for
/// speed.
const POSTPONED: u32 = 50;
const CLOSED: u32 = 500;

/// Crawls from `http://a.example/` with the library's defaults except for these two, and a paused clock.
fn run(reply: impl Fn(&Url) -> Response + Send + Sync + 'static) -> Run {
    run_with(options(), reply)
}

fn options() -> CrawlOptions {
    let mut options = default_options();
    options.frontier.traps.max_near_duplicates = NonZeroU32::new(POSTPONED);
    options.frontier.traps.max_near_duplicates_in_all = NonZeroU32::new(CLOSED);
    options
}

fn default_options() -> CrawlOptions {
    CrawlOptions {
        seeds: vec!["http://a.example/".to_owned()],
        frontier: FrontierConfig {
            scope: ScopeConfig {
                reach: Reach::Site,
                ..ScopeConfig::default()
            },
            seen_set: SeenSetConfig {
                exact: true, // It decides which pages are compared, and so how many of a trap are fetched.
                hash: Hashing::Murmur3 { seed: 7 },
                ..SeenSetConfig::default()
            },
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    }
}

fn run_with(options: CrawlOptions, reply: impl Fn(&Url) -> Response + Send + Sync + 'static) -> Run {
    let script = Scripted::new(move |call| {
        Ok(if call.is_robots() {
            scripted::status(404)
        } else {
            reply(&call.request.url)
        })
    });
    script.crawl(options)
}

fn html(text: &str, links: impl IntoIterator<Item = String>) -> Response {
    let mut body = format!("<!doctype html><title>{text}</title><p>{text}");
    for link in links {
        write!(body, "<a href='{link}'>+</a>").unwrap();
    }
    scripted::page(body.into_bytes())
}

/// Forty words that no other topic uses.
fn words(topic: &str) -> String {
    (0..40_u32).fold(String::new(), |text, n| {
        let word: String = (0..4)
            .map(|at| char::from(b'a' + ((n * 7 + at * 5 + n * n * at) % 26) as u8))
            .collect();
        text + topic + &word + " "
    })
}

const HONEST_PAGES: usize = 40;

fn letters(n: usize) -> String {
    [n / 26 / 26 % 26, n / 26 % 26, n % 26]
        .map(|at| char::from(b'a' + at as u8))
        .iter()
        .collect()
}

fn honest_pages() -> impl Iterator<Item = String> {
    (0..HONEST_PAGES).map(|n| format!("http://a.example/honest/{}", letters(n)))
}

/// The home page links to the trap first, then to the first honest page. Each honest page links to the next.
fn with_honest_pages(url: &Url, trap_links: &[&str]) -> Option<Response> {
    if url.host_str() == Some("a.example") && url.path() == "/" {
        let trap_links = trap_links.iter().map(|trap_link| (*trap_link).to_owned());
        return Some(html(&words("home"), trap_links.chain(honest_pages().take(1))));
    }
    let at = honest_pages().position(|page| page == url.as_str())?;
    Some(html(&words(&letters(at)), honest_pages().nth(at + 1)))
}

/// Checks what holds for every trap.
#[track_caller]
fn assert_crawl_ends(run: &Run, most_requests: u64) {
    assert_eq!(run.summary.ending, Ending::Drained);
    assert_eq!(run.pages_with("/honest/"), HONEST_PAGES, "{}", run.summary);
    let requests = run.requests.len() as u64;
    assert!(requests <= most_requests, "{requests} requests\n{}", run.summary);
}

/// Checks what holds for a trap of similar pages: it is postponed, so most of it comes after the honest pages.
#[track_caller]
fn assert_trap_is_postponed(run: &Run, most_requests: u64) {
    assert_crawl_ends(run, most_requests);
    let before = run.pages_before_the_last_honest_one();
    assert!(
        before < run.reports.pages.len() / 2,
        "{before} pages of the trap before the last honest one\n{}",
        run.summary
    );
    let (postponed, closed) = run.postponed_and_closed();
    for places in [postponed, closed] {
        let distinct: BTreeSet<_> = places.iter().collect();
        assert!(!places.is_empty(), "it is reported: {}", run.summary);
        assert_eq!(distinct.len(), places.len(), "each is reported once: {places:?}");
    }
}

#[test]
fn an_endless_calendar_ends() {
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
    assert_trap_is_postponed(&run, 2_500);
    let closed = &run.summary.failures.closed_prefixes;
    assert!(
        closed.iter().any(|prefix| prefix == "http://a.example/calendar/#/#/#"),
        "{closed:?}"
    );
    assert!(run.refused(Refusal::NearDuplicates) > 0);
    assert!(
        run.not_fetched(NotFetched::NearDuplicates) > 0,
        "postponed pages count as left, too"
    );
}

#[test]
fn session_ids_in_paths_and_queries_end() {
    for (trap_link, prefix) in [
        ("/shop/list;sid=0", "http://a.example/shop/list;"),
        ("/shop/list.php?sid=0", "http://a.example/shop/list.php?"),
        ("/shop/(S(0k))/list", "http://a.example/shop/#/*"),
    ] {
        let sessions = AtomicU64::new(1);
        let run = run(move |url| {
            if let Some(page) = with_honest_pages(url, &[trap_link]) {
                return page;
            }
            // Each answer starts new sessions, and links to the honest pages of the shop within them.
            let count = || sessions.fetch_add(1, Ordering::Relaxed);
            let fresh = || format!("{:x}", count().wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let links: Vec<_> = (0..5)
                .map(|_| trap_link.replace("0", &format!("0{}", fresh())))
                .collect();
            html(&format!("Basket {}: {}", fresh(), words("shop")), links)
        });
        assert_trap_is_postponed(&run, 1_000);
        assert_eq!(run.summary.failures.closed_prefixes, [prefix]);
        assert_eq!(run.postponed_and_closed(), (vec![prefix], vec![prefix]));
    }
}

#[test]
fn a_path_that_repeats_itself_ends() {
    let run = run(|url| {
        with_honest_pages(url, &["/maze/"]).unwrap_or_else(|| {
            html(
                &words("maze"),
                ["left/".to_owned(), "right/".to_owned(), "back/".to_owned()],
            )
        })
    });
    assert_trap_is_postponed(&run, 2_500);
    assert!(run.refused(Refusal::NearDuplicates) > 0);
    assert!(
        run.summary.report.resemblance.exact >= 500,
        "{:?}",
        run.summary.report.resemblance
    );
}

#[test]
fn all_combinations_of_facets_end() {
    const FACETS: u32 = 24;
    let mut options = options();
    options.frontier.traps.max_queries_per_path = NonZeroU32::new(500);
    let run = run_with(options, |url| {
        if let Some(page) = with_honest_pages(url, &["/search?facets=0"]) {
            return page;
        }
        let (_, value) = url.query_pairs().next().unwrap();
        let set: u32 = value.parse().unwrap();
        let links = (0..FACETS)
            .step_by(6)
            .map(|facet| format!("/search?facets={}", set ^ (1 << ((facet + set) % FACETS))));
        // Every search finds different results, so that no two pages are alike.
        let results = words(&letters(set as usize)) + &words(&value.replace(char::is_numeric, "x"));
        html(&results, links.collect::<Vec<_>>())
    });
    assert_crawl_ends(&run, 4_000);
    assert!(run.refused(Refusal::TooManyQueries) > 0);
    let before = run.pages_before_the_last_honest_one();
    assert!(
        before < 600,
        "{before} pages of the trap come before the last honest one"
    );
}

/// Forums, wikis and shops have all their pages under one path, however one comes to them.
#[test]
fn all_pages_of_a_path_that_differ_are_fetched() {
    const THREADS: usize = 600;
    let thread = |n: usize| format!("/showthread.php?t={n}");
    let each_by_its_number = move |url: &Url| number_of(url, "t=");
    // What a page links to: the front page, a list, a thread.
    type Links = fn(&Url) -> Vec<usize>;
    let ways: [(&str, Links); 4] = [
        ("one page lists all", |url| match url.path() {
            "/all" => (0..THREADS).collect(),
            _ => vec![],
        }),
        ("each thread links to the next", |url| match url.path() {
            "/all" => vec![0],
            _ => number_of(url, "t=").map(|n| n + 1).into_iter().collect(),
        }),
        ("lists of twenty", |url| match number_of(url, "page=") {
            Some(page) => (page * 20..page * 20 + 20).collect(),
            None => vec![],
        }),
        ("each thread links to many", |url| {
            match (url.path(), number_of(url, "t=")) {
                ("/all", _) => vec![0],
                (_, Some(n)) => vec![2 * n + 1, 2 * n + 2, 599 - n.min(599)],
                _ => vec![],
            }
        }),
    ];
    for (way, links) in ways {
        let mut options = options();
        options.frontier.traps.max_queries_per_path = NonZeroU32::new(150);
        let run = run_with(options, move |url| {
            if let Some(page) = with_honest_pages(url, &["/all", "/lists?page=0"]) {
                return page;
            }
            let threads = links(url).into_iter().filter(|n| *n < THREADS).map(thread);
            let next = number_of(url, "page=").filter(|page| *page < THREADS / 20);
            let next = next.map(|page| format!("/lists?page={}", page + 1));
            let text = each_by_its_number(url).map_or_else(|| url.path().to_owned(), letters);
            html(&words(&text), threads.chain(next))
        });
        assert_eq!(run.pages_with("showthread"), THREADS, "{way}: {}", run.summary);
        assert_eq!(run.pages_with("/honest/"), HONEST_PAGES, "{way}");
        assert_eq!(run.summary.missing(), [], "{way}");
    }
}

/// Returns the number behind `name` in the query of a URL.
fn number_of(url: &Url, name: &str) -> Option<usize> {
    url.query()?.strip_prefix(name)?.parse().ok()
}

#[test]
fn endless_subdomains_end() {
    let run = run(|url| {
        if let Some(page) = with_honest_pages(url, &["http://w0.a.example/"]) {
            return page;
        }
        let host = url.host_str().unwrap();
        let n: u64 = host[1..host.find('.').unwrap()].parse().unwrap();
        let next = [2 * n + 1, 2 * n + 2].map(|n| format!("http://w{n}.a.example/"));
        html(&words(&letters(n as usize)), next)
    });
    assert_crawl_ends(&run, 2_100);
    assert!(run.refused(Refusal::TooManySubdomains) > 0);
}

#[test]
fn without_budgets_the_same_trap_is_endless() {
    let mut options = options();
    options.frontier.traps.max_near_duplicates = None;
    options.frontier.traps.max_near_duplicates_in_all = None;
    options.frontier.limits.max_pages = Some(3_000);
    let run = run_with(options, |url| {
        let next = url.path().trim_matches('/').parse().unwrap_or(0_u64) + 1;
        html(&words("calendar"), [format!("/{next}")])
    });
    assert_eq!(run.summary.ending, Ending::BudgetSpent);
    assert_eq!(
        run.summary.report.resemblance.compared, 0,
        "no fingerprint is compared without a reason"
    );
    assert!(
        run.reports
            .pages
            .iter()
            .all(|page| page.content_hash.is_none() && page.simhash.is_none())
    );
}

#[test]
fn records_name_the_page_that_a_page_duplicates() {
    let mut options = options();
    options.reports.fingerprints = true;
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
    assert!(
        short.simhash.is_none() && short.content_hash.is_some(),
        "fewer than 16 words"
    );
    let counts = run.summary.report.resemblance;
    assert_eq!((counts.compared, counts.exact, counts.near), (6, 1, 1));
}

#[test]
fn noindex_is_recorded_and_the_page_is_reported_anyway() {
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
        .reports
        .pages
        .iter()
        .filter(|page| page.noindex)
        .map(|page| page.url.strip_prefix("http://a.example").unwrap())
        .collect();
    assert_eq!(noindex, BTreeSet::from(["/file", "/header", "/meta", "/none", "/ours"]));
    let found = ["/from-meta", "/from-theirs", "/from-none"].map(|path| run.pages_with(path));
    assert_eq!(found, [1, 1, 0], "noindex is not nofollow");
    assert_eq!(run.summary.unfollowed.nofollow, 1);
}

#[test]
fn links_that_cannot_be_crawled_are_counted_by_reason() {
    let run = run(|url| match url.path() {
        "/" => {
            let mail = ["mailto:ann@a.example"; 3].map(str::to_owned);
            let others = "javascript:void(0) tel:1 http:// http://[x http://../ /moved";
            let long = format!("/{}", "x".repeat(20_000));
            let others = others.split(' ').map(str::to_owned);
            html("home", mail.into_iter().chain(others).chain([long]))
        }
        "/moved" => scripted::redirect("mailto:ann@a.example"),
        _ => Response::default(),
    });
    let summary = run.summary;
    assert_eq!(
        (summary.unfollowed.other_scheme, summary.unfollowed.unresolvable),
        (3, 5)
    );
    let shown = summary.to_string();
    assert!(
        shown.contains("not followed      not crawlable: 5, other scheme: 3\n"),
        "{shown}"
    );
}

#[test]
fn the_defaults_end_a_trap_and_keep_an_honest_catalogue() {
    const PRODUCTS: usize = 1_000;
    let sessions = AtomicU64::new(1);
    let run = run_with(default_options(), move |url| {
        if let Some(page) = with_honest_pages(url, &["/basket;sid=0", "/product/"]) {
            return page;
        }
        match url.path().strip_prefix("/product/") {
            Some("") => html(&words("products"), (0..PRODUCTS).map(|n| format!("/product/{n}"))),
            Some(number) => html(&format!("{} {number}", words("product")), []),
            None => {
                let next = (0..5).map(|_| format!("/basket;sid={}", sessions.fetch_add(1, Ordering::Relaxed)));
                html(&words("basket"), next.collect::<Vec<_>>())
            }
        }
    });
    assert_trap_is_postponed(&run, 5_000 + PRODUCTS as u64 + 500);
    assert_eq!(run.pages_with("/product/"), PRODUCTS + 1);
    let (basket, product) = ("http://a.example/basket;", "http://a.example/product/#");
    let (postponed, closed) = run.postponed_and_closed();
    // Whether the products are compared depends on when the site becomes suspect.
    assert!(postponed.contains(&basket) && postponed.iter().all(|place| [basket, product].contains(place)));
    assert_eq!(closed, [basket]);
}

fn hex(n: usize) -> String {
    format!("{:08x}", (n as u32).wrapping_mul(0x9E37_79B9))
}

#[test]
fn similar_honest_pages_are_all_fetched_beside_two_traps() {
    const EACH: usize = 300;
    let sessions = AtomicU64::new(1);
    let run = run(move |url| {
        let trap_links = ["/shop/list?sid=0", "/deep/", "/hex/", "/gallery/", "/product/"];
        if let Some(page) = with_honest_pages(url, &trap_links) {
            return page;
        }
        let mut parts = url.path_segments().unwrap();
        let (kind, name) = (parts.next().unwrap(), parts.next().unwrap_or_default());
        let index = |name: fn(usize) -> String| {
            let links = (0..EACH).map(|n| format!("/{kind}/{}", name(n)));
            html(&words(&format!("index{kind}")), links.collect::<Vec<_>>())
        };
        match (kind, name) {
            // These are traps.
            ("shop", _) => {
                let next = (0..3).map(|_| format!("/shop/list?sid={}", sessions.fetch_add(1, Ordering::Relaxed)));
                html(&words("shop"), next.collect::<Vec<_>>())
            }
            ("deep", _) => {
                let last = letters(url.path().len());
                html(&words("deep"), [format!("{last}/"), format!("x{last}/")])
            }
            // These only look like traps.
            ("hex", "") => index(hex),
            ("gallery", "") => index(|n| n.to_string()),
            ("product", "") => index(|n| n.to_string()),
            ("hex", name) => html(&format!("{} {name}", words("commit")), []),
            ("gallery", name) => {
                let n: usize = name.parse().unwrap();
                let image = format!("<img src='/images/{}.jpg'>", hex(n));
                html(&image, (n + 1 < EACH).then(|| format!("/gallery/{}", n + 1)))
            }
            (_, name) => html(&format!("{} costs {name} and weighs {name}0 g", words("product")), []),
        }
    });
    assert_trap_is_postponed(&run, 4_000);
    for kind in ["hex", "gallery", "product"] {
        let fetched = run.pages_with(&format!("a.example/{kind}/"));
        assert_eq!(fetched, EACH + 1, "{kind}: {}", run.summary);
    }
    let (_, closed) = run.postponed_and_closed();
    let is_trap = |place: &str| place.contains("/shop/") || place.contains("/deep/") || place == "a.example";
    assert!(closed.iter().all(|place| is_trap(place)), "{closed:?}");
}

#[test]
fn endless_pages_that_are_short_empty_or_truncated_end() {
    let short = |n, next: Option<String>| html(&format!("Photo {n}"), next);
    let empty = |_, next: Option<String>| Response {
        body: Vec::new(),
        refresh: next.map(|next| format!("0; url={next}")),
        ..html("", [])
    };
    let truncated = |_, next: Option<String>| Response {
        extent: crawler::fetch::BodyExtent::Truncated,
        truncation: Some(crawler::TruncationReason::Size),
        ..html(&words("large"), next)
    };
    let kinds: [fn(u64, Option<String>) -> Response; 3] = [short, empty, truncated];
    for kind in kinds {
        let run = run(move |url| {
            with_honest_pages(url, &["/next/1"]).unwrap_or_else(|| {
                let n: u64 = url.path().strip_prefix("/next/").unwrap().parse().unwrap();
                // Far more pages than any budget allows, but not endless, so that a failing test ends.
                kind(n, (n < 6_000).then(|| format!("/next/{}", n + 1)))
            })
        });
        assert_trap_is_postponed(&run, 1_000);
    }
}
