//! A crawl that leaves out seen links fetches, counts and follows the same as a crawl that offers every link.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::scripted::{self, Scripted};
use crawler::{CrawlOptions, PageOptions, PageRecord, ReportOptions, Response, Summary};
use frontier::{FrontierConfig, PolitenessConfig, ScopeConfig, SeenSetConfig};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// Spellings of links. Some pages have several; some spellings mean different pages in different directories.
#[rustfmt::skip]
const SPELLINGS: [&str; 33] = [
    "x1", "x2", "./x1", "../x1", "../a/x1", "/a/x1", "/x1", "a/x1", "a/b/x1", "b/x3", "b/../x1",
    "//site.example/a/x1", "http://site.example/x1", "HTTP://Site.example:80/x1", "http:x1",
    "https://site.example/x1", "?q=1", "?q=\u{e9}", "x1?q=\u{e9}", "x1?a=1&amp;b=2", "x1?a=1&b=2", "x&#49;", "x1#top",
    "#top", "", " x1", "x\n1", "mailto:somebody@site.example", "http://other.example/x1", "http://..", "http:?q=1",
    "x1 ", "x1 #top",
];

const BASES: [&str; 5] = ["/a/", "http://site.example/a/b/x9?z", "../", "mailto:nobody", "x1"];

#[derive(Debug, Clone)]
struct TestPage {
    path: &'static str,
    /// Indexes of spellings, and whether the link has `nofollow`.
    links: Vec<(usize, bool)>,
    /// The index of a base, and the number of links before it.
    base: Option<(usize, usize)>,
    nofollow: bool,
    latin: bool,
}

const PATHS: [&str; 9] = [
    "/", "/x1", "/x2", "/a/x1", "/a/x2", "/a/b/x1", "/b/x3", "/a/b/x3", "/a/a/x1",
];

fn test_page(path: &'static str) -> impl Strategy<Value = TestPage> {
    (
        prop::collection::vec((0..SPELLINGS.len(), prop::bool::weighted(0.1)), 0..12),
        prop::option::weighted(0.3, (0..BASES.len(), 0_usize..4)),
        prop::bool::weighted(0.1),
        prop::bool::ANY,
    )
        .prop_map(move |(links, base, nofollow, latin)| TestPage {
            path,
            links,
            base,
            nofollow,
            latin,
        })
}

impl TestPage {
    fn answer(&self) -> Response {
        let mut html = String::new();
        if self.nofollow {
            html += "<meta name=robots content=nofollow>";
        }
        for at in 0..=self.links.len() {
            if let Some((base, _)) = self.base.filter(|(_, before)| *before == at) {
                html += &format!("<base href=\"{}\">", BASES[base]);
            }
            if let Some((spelling, nofollow)) = self.links.get(at) {
                let rel = if *nofollow { " rel=nofollow" } else { "" };
                html += &format!("<a href=\"{}\"{rel}>x</a>", SPELLINGS[*spelling]);
            }
        }
        let charset = if self.latin { "windows-1252" } else { "utf-8" };
        let body = if self.latin {
            html.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect()
        } else {
            html.into_bytes()
        };
        Response {
            status: 200,
            content_type: Some(format!("text/html; charset={charset}")),
            body,
            ..Response::default()
        }
    }
}

/// The requested URLs, the links found and new on each page, the totals of the summary, and the number of offered
/// links.
type Run = (Vec<String>, Vec<(String, usize, usize)>, String, usize);

fn totals(summary: &Summary) -> String {
    let mut links = summary.report.links.clone();
    links.refused.retain(|_, count| *count > 0);
    format!(
        "{links:?} {} {} {} {}",
        summary.unfollowed.nofollow,
        summary.unfollowed.dropped,
        summary.unfollowed.other_scheme,
        summary.unfollowed.unresolvable
    )
}

/// With `report_links` every link of every page is offered. After so many redirects, a second seed leads to `other.example`, which is then in
/// reach.
fn run(
    test_pages: &[TestPage],
    max_links: usize,
    max_depth: Option<u32>,
    redirects: Option<usize>,
    report_links: bool,
) -> Run {
    let mut seeds = vec!["http://site.example/".to_owned()];
    seeds.extend(redirects.map(|_| "http://elsewhere.example/0".to_owned()));
    let options = CrawlOptions {
        seeds,
        concurrency: NonZeroUsize::MIN,
        pages: PageOptions {
            max_links_per_page: max_links,
            ..PageOptions::default()
        },
        reports: ReportOptions {
            links: report_links,
            ..ReportOptions::default()
        },
        frontier: FrontierConfig {
            scope: ScopeConfig {
                max_depth,
                ..ScopeConfig::default()
            },
            seen_set: SeenSetConfig {
                exact: true,
                ..SeenSetConfig::default()
            },
            politeness: PolitenessConfig {
                delay: Duration::ZERO,
                ..PolitenessConfig::default()
            },
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    };
    let test_pages = test_pages.to_vec();
    let run = Scripted::new(move |call| {
        if call.url().starts_with("http://elsewhere.example/") && !call.is_robots() {
            let step: usize = call.path()[1..].parse().unwrap();
            return Ok(scripted::redirect(&match redirects {
                Some(last) if step < last => format!("/{}", step + 1),
                _ => "http://other.example/x2".to_owned(),
            }));
        }
        let test_page = test_pages.iter().find(|test_page| test_page.path == call.path());
        Ok(test_page.map_or_else(|| scripted::status(404), TestPage::answer))
    })
    .crawl(options);
    let page = |page: &PageRecord| (page.url.clone(), page.links_found, page.links_new);
    let requested = run.urls().into_iter().map(str::to_owned).collect();
    let pages = run.reports.pages.iter().map(page).collect();
    (requested, pages, totals(&run.summary), run.reports.offered)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(debug_assertions) { 400 } else { 10_000 },
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_cache_changes_no_request_and_no_count(
        test_pages in PATHS.map(|path| test_page(path).boxed()).to_vec(),
        max_links in prop_oneof![Just(1000_usize), 1_usize..6],
        max_depth in prop::option::weighted(0.3, 0_u32..4),
        redirects in prop::option::of(0_usize..5),
    ) {
        let (requested, pages, totals, offered) = run(&test_pages, max_links, max_depth, redirects, true);
        let (requested_with_cache, pages_with_cache, totals_with_cache, offered_with_cache) = run(&test_pages, max_links, max_depth, redirects, false);
        prop_assert_eq!(requested, requested_with_cache);
        prop_assert_eq!(pages, pages_with_cache);
        prop_assert_eq!(totals, totals_with_cache);
        prop_assert!(offered_with_cache <= offered);
    }
}

fn page_with(path: &'static str, spellings: &[usize]) -> TestPage {
    TestPage {
        path,
        links: spellings.iter().map(|spelling| (*spelling, false)).collect(),
        base: None,
        nofollow: false,
        latin: false,
    }
}

#[test]
fn links_of_a_menu_are_offered_once() {
    let test_pages = PATHS.map(|path| page_with(path, &[5, 6, 11, 12]));
    let (_, pages, _, offered) = run(&test_pages, 1000, None, None, false);
    // The seed, two links of the first page, and two of the first page in the other directory.
    assert_eq!(pages.len(), 3);
    assert!(pages.iter().all(|(_, found, _)| *found == 2), "{pages:?}");
    assert_eq!(offered, 1 + 2 + 2, "{pages:?}");
}

#[test]
fn a_scheme_with_a_query_and_no_path_is_another_link_on_each_page() {
    // `http:?q=1` on a page of the same scheme is the page's own path with that query (URL standard, "special relative or
    // authority state"): it depends on more than the directory.
    let test_pages = [
        page_with("/", &[7]),
        page_with("/a/x1", &[1, 30]),
        page_with("/a/x2", &[30]),
    ];
    for report_links in [true, false] {
        let (requested, ..) = run(&test_pages, 1000, None, None, report_links);
        for url in ["http://site.example/a/x1?q=1", "http://site.example/a/x2?q=1"] {
            assert!(
                requested.iter().any(|requested| requested == url),
                "{report_links}: {requested:?}"
            );
        }
    }
}
