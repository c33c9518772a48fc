//! Sitemaps: what a crawl does with them. Uses a scripted fetcher and a paused clock, but for the last test.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::hostile::server::{Script, Server, html, page as answer, redirect};
use crate::scripted::replies::status;
use crate::scripted::{self, Reply, Run, Scripted};
use crawler::{
    Crawl, CrawlOptions, Ending, Event, ResourceKind, Response, SitemapEnd, SitemapRecord, TruncationReason,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use frontier::{NotFetched, Refusal};

fn gzipped(body: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(body).unwrap();
    packer.finish().unwrap()
}

/// An `urlset` with these contents of `loc` elements.
fn urlset(locations: &[&str]) -> String {
    let urls: String = locations
        .iter()
        .map(|loc| format!("<url><loc>{loc}</loc></url>\n"))
        .collect();
    format!(
        "<?xml version='1.0' encoding='UTF-8'?>\n<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{urls}</urlset>"
    )
}

fn options() -> CrawlOptions {
    let mut options = scripted::options("http://a.example/");
    options.pages.sitemaps = true;
    options
}

impl Run {
    /// The requests of one kind: paths on a.example, full URLs elsewhere.
    fn requests_of(&self, kind: ResourceKind) -> Vec<&str> {
        let requests = self.requests.iter().filter(|request| request.kind == kind);
        requests
            .map(|request| request.url.trim_start_matches("http://a.example"))
            .collect()
    }
}

fn run(options: CrawlOptions, reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Run {
    Scripted::new(move |call| reply(call.url().trim_start_matches("http://a.example"))).crawl(options)
}

/// Crawls a site given as paths and answers: a status, `301 ` with a location, `cut ` with the start of a body, or a body. There is no
/// robots.txt unless it is among them, and other pages are empty.
fn run_site(options: CrawlOptions, site: &[(&str, &str)]) -> Run {
    let site: Vec<_> = site
        .iter()
        .map(|(path, answer)| ((*path).to_owned(), (*answer).to_owned()))
        .collect();
    run(options, move |path| {
        let Some((_, answer)) = site.iter().find(|(known, _)| known == path) else {
            return if path == "/robots.txt" { status(404) } else { body("") };
        };
        match (answer.parse(), answer.split_once(' ')) {
            (Ok(code), _) => status(code),
            (_, Some(("301", location))) => Ok(scripted::redirect(location)),
            (_, Some(("cut", start))) => Ok(Response {
                truncation: Some(TruncationReason::Connection),
                ..scripted::page(start)
            }),
            _ => body(answer),
        }
    })
}

fn body(text: impl AsRef<[u8]>) -> Reply {
    Ok(scripted::page(text))
}

#[test]
fn sitemaps_that_robots_txt_names_are_read_before_the_pages() {
    let run = run(options(), |path| match path {
        "/robots.txt" => {
            body("User-agent: *\nDisallow: /no\nSitemap: http://a.example/index.xml\nSitemap: http://cdn.example/p.txt")
        }
        "/index.xml" => body("<sitemapindex><sitemap><loc>/one.xml.gz</loc></sitemap></sitemapindex>"),
        "/one.xml.gz" => body(gzipped(
            b"<urlset><url><loc>/hidden</loc><lastmod>2024-02-29</lastmod></url></urlset>",
        )),
        "http://cdn.example/p.txt" => body("http://a.example/text\nhttp://elsewhere.example/\nhttp://a.example/no"),
        "/" | "/hidden" | "/text" => body("<a href=/>"),
        _ => status(404),
    });
    let first = run.requests.iter().find(|request| request.kind != ResourceKind::Robots);
    assert_eq!(
        first.map(|request| (request.url.as_str(), request.kind)),
        Some(("http://a.example/index.xml", ResourceKind::Sitemap))
    );
    assert_eq!(
        run.requests_of(ResourceKind::Sitemap),
        ["/index.xml", "http://cdn.example/p.txt", "/one.xml.gz"]
    );
    assert_eq!(run.summary.pages, 3, "{:?}", run.asked);
    let hidden = run
        .reports
        .pages
        .iter()
        .find(|page| page.url.ends_with("/hidden"))
        .unwrap();
    assert_eq!(hidden.lastmod.as_deref(), Some("2024-02-29T00:00:00Z"));
    assert_eq!(
        (hidden.depth, hidden.referrer.as_deref()),
        (1, Some("http://a.example/one.xml.gz"))
    );
    let counts = run.summary.sitemaps;
    assert_eq!((counts.read, counts.failed, counts.urls), (3, 0, 4));
    assert_eq!(
        run.summary.report.links.refused[&Refusal::OtherHost],
        1,
        "scope decides, not the sitemap"
    );
    assert_eq!(run.summary.report.not_fetched[&NotFetched::RobotsForbid], 1);
    let rows = run.summary.to_string();
    let has = |row: &str| assert!(rows.contains(row), "{rows}");
    has("3 read; refused: other_host: 1\n");
    has("URLs in sitemaps  4\n");
}

#[test]
fn without_the_option_no_sitemap_is_requested() {
    let mut options = options();
    options.pages.sitemaps = false;
    let run = run_site(options, &[("/robots.txt", "Sitemap: http://a.example/sitemap.xml")]);
    assert_eq!(run.requests_of(ResourceKind::Sitemap), Vec::<&str>::new());
    assert!(!run.summary.to_string().contains("sitemaps"));
}

#[test]
fn well_known_paths_are_tried_in_turn_if_robots_txt_names_no_sitemap() {
    let hidden = urlset(&["http://a.example/hidden"]);
    let second = ("/sitemap_index.xml", &*hidden);
    let xml = urlset(&["/1", "/2x"]);
    let cut_xml = format!("cut {}", &xml[..xml.find("/2").unwrap() + 2]);
    for (first, requests, next, failed, broken) in [
        ("404", 1, 1, 0, 0),
        ("<!DOCTYPE html><html>Not here</html>", 1, 1, 0, 0),
        ("500", 3, 1, 1, 0),
        ("304", 3, 1, 1, 0),
        ("301 /sitemap_index.xml", 1, 1, 0, 0),
        // The start of a sitemap that stays truncated counts.
        ("cut http://a.example/1\nhttp://a.exa", 3, 0, 0, 1),
        (&*cut_xml, 3, 0, 0, 1),
    ] {
        for ask_robots in [true, false] {
            let mut options = options();
            options.frontier.politeness.ask_robots = ask_robots;
            let run = run_site(options, &[("/sitemap.xml", first), second]);
            let asked = run.requests_of(ResourceKind::Sitemap);
            let count = |path: &str| asked.iter().filter(|asked| **asked == path).count();
            let counts = (count("/sitemap.xml"), count("/sitemap_index.xml"));
            assert_eq!((counts, asked.len()), ((requests, next), requests + next), "{first}");
            let counts = run.summary.sitemaps;
            assert_eq!(
                (counts.read, counts.failed, counts.broken),
                (1, failed, broken),
                "{first}"
            );
            assert_eq!(run.summary.pages, 2, "{first}");
            let record = &run.reports.sitemaps[0];
            assert_eq!(record.broken.is_some(), broken > 0, "{first}");
            assert!(first != "404" || record.end == SitemapEnd::NotThere);
        }
    }
}

#[test]
fn a_sitemap_that_robots_txt_forbids_is_not_requested_and_a_guessed_one_is_not_even_reported_as_failed() {
    for (rules, pages, failed) in [
        (
            "User-agent: *\nDisallow: /maps/\nSitemap: http://a.example/maps/1.xml",
            1,
            1,
        ),
        ("User-agent: *\nDisallow: /\n", 0, 0),
    ] {
        let run = run_site(options(), &[("/robots.txt", rules)]);
        assert_eq!(run.requests_of(ResourceKind::Sitemap), Vec::<&str>::new());
        assert_eq!((run.summary.pages, run.summary.sitemaps.failed), (pages, failed));
        let not_fetched = &run.summary.report.not_fetched;
        assert_eq!(not_fetched.values().sum::<u64>(), 1 - pages, "a sitemap is not a page");
        assert_eq!(run.reports.sitemaps.len(), 1);
        assert_eq!(run.reports.sitemaps[0].end == SitemapEnd::NotThere, failed == 0);
    }
}

#[test]
fn a_sitemap_that_fails_is_retried_then_counted_as_missing_unless_its_answer_is_final() {
    let site = [
        (
            "/robots.txt",
            "Sitemap: http://a.example/503.xml\nSitemap: http://a.example/404.xml\nSitemap: http://a.example/html.xml",
        ),
        ("/503.xml", "503"),
        ("/404.xml", "404"),
        ("/html.xml", "<html>"),
        ("/", "<a href=/1></a><a href=/2></a>"),
    ];
    let run = run_site(options(), &site);
    let requests = run.requests_of(ResourceKind::Sitemap);
    assert_eq!(requests.iter().filter(|url| **url == "/503.xml").count(), 3);
    assert_eq!((run.summary.pages, run.summary.ending), (3, Ending::Drained));
    assert_eq!((run.summary.sitemaps.read, run.summary.sitemaps.failed), (0, 3));
    let pages = run.summary.report.pages;
    assert_eq!((pages.gave_up, pages.rejected, pages.retries), (0, 0, 0));
    assert_eq!(
        scripted::missing(&run.summary),
        ["no final answer: 1 sitemap not read (raise max_attempts)"]
    );
    assert_eq!(run.summary.lost_at_least(), 0, "it is no page");
    let why = format!("{:?}", run.reports.sitemaps);
    assert!(why.contains("status 404") && why.contains("<html>"), "{why}");
}

#[test]
fn nested_sitemap_indexes_are_followed_three_levels_deep() {
    let run = run(options(), |path| {
        let Some(n) = path.strip_suffix(".xml").and_then(|path| path[1..].parse::<u64>().ok()) else {
            return body("Sitemap: http://a.example/0.xml");
        };
        let next = n + 1;
        body(format!(
            "<sitemapindex><sitemap><loc>/{next}.xml</loc></sitemap></sitemapindex>"
        ))
    });
    assert_eq!(
        run.requests_of(ResourceKind::Sitemap),
        ["/0.xml", "/1.xml", "/2.xml", "/3.xml"]
    );
    assert_eq!(run.summary.report.sitemaps.refused[&Refusal::TooDeep], 1);
}

#[test]
fn the_parts_of_a_feed_are_no_indexes_below_each_other() {
    let part = |n: u32| {
        let entry = format!("<entry><link href='/entry/{n}'/></entry>");
        (
            format!("/feed/{n}"),
            format!("<feed><link rel='next' href='/feed/{}'/>{entry}</feed>", n + 1),
        )
    };
    let parts: Vec<_> = (0..8).map(part).collect();
    let mut site: Vec<_> = parts
        .iter()
        .map(|(path, feed)| (path.as_str(), feed.as_str()))
        .collect();
    site.extend([
        ("/robots.txt", "Sitemap: http://a.example/feed/0"),
        ("/", "home"),
        ("/feed/8", "<feed/>"),
    ]);
    let run = run_site(options(), &site);
    let entries = run.urls().into_iter().filter(|url| url.contains("/entry/")).count();
    assert_eq!(entries, 8, "{:?}", run.urls());
}

#[test]
fn a_sitemap_that_pages_link_to_is_fetched_once() {
    let link = "<link rel=alternate type=application/rss+xml href=/feed.xml>";
    let feed = "<rss><channel><item><link>/news</link></item></channel></rss>";
    let robots = ("/robots.txt", "Sitemap: http://a.example/feed.xml");
    let run = run_site(options(), &[robots, ("/feed.xml", feed), ("/", link), ("/news", link)]);
    let requested = run.urls().into_iter().filter(|url| url.ends_with("/feed.xml")).count();
    assert_eq!(requested, 1, "a URL is fetched once: {:?}", run.asked);
}

#[test]
fn sitemaps_that_cannot_be_used_are_named_once_and_in_short_though_the_robots_txt_is_read_again() {
    let named: String = (0..30)
        .map(|n| format!("Sitemap: ftp://a.example/{n}{}\n", "x".repeat(1000)))
        .collect();
    let links: String = (0..5).map(|n| format!("<a href=/{n}>x</a>")).collect();
    let mut options = options();
    options.frontier.politeness.delay = Duration::from_secs(10 * 60 * 60);
    let run = run_site(options, &[("/robots.txt", &*named), ("/", &*links)]);
    assert!(run.requests_of(ResourceKind::Robots).len() > 1, "{:?}", run.urls());
    let has_failed = |record: &&SitemapRecord| matches!(record.end, SitemapEnd::Failed(_));
    let failed: Vec<_> = run.reports.sitemaps.iter().filter(has_failed).collect();
    assert_eq!((failed.len(), run.summary.sitemaps.failed), (10, 10));
    assert!(failed.iter().all(|record| record.url.len() <= 200), "{failed:?}");
    assert_eq!(format!("{failed:?}").matches("and 20 more").count(), 1, "{failed:?}");
}

#[tokio::test]
async fn sitemaps_are_resolved_against_their_robots_txt_and_what_cannot_be_used_is_counted_and_named() {
    let lines = "Sitemap: /a.xml\nsitemap: deep/b.xml\nSITEMAP:?c\nSite-map: //127.0.0.1:PORT/d.xml\nSitemap: http://127.0.0.1:PORT/e.xml # x\n\
        Sitemap:\nSitemap: ftp://a.example/f.xml\nSitemap: http://[\nSitemap: \\gä.xml\n";
    let server = Server::start(move |request| {
        let port = request.host.rsplit(':').next().unwrap();
        Script::say(match request.target.as_str() {
            "/robots.txt" => redirect("/deep/robots.txt"),
            "/deep/robots.txt" => answer("200 OK", "", lines.replace("PORT", port)),
            "/" => html("home"),
            target if target.starts_with("/of") => html("page"),
            target => answer(
                "200 OK",
                "",
                format!("<urlset><url><loc>/of{}</loc></url></urlset>", target.replace('?', "/")),
            ),
        })
    })
    .await;
    let mut options = scripted::everywhere(&format!("http://127.0.0.1:{}/", server.port));
    options.pages.sitemaps = true;
    let records = Arc::new(Mutex::new(Vec::new()));
    let book = Arc::clone(&records);
    let crawl = Crawl::builder(options).unwrap().build().unwrap();
    let summary = crawl.on_event(move |event| {
        if let Event::Sitemap(record) = event
            && matches!(record.end, SitemapEnd::Failed(_))
        {
            book.lock().unwrap().push(record.url.clone());
        }
    });
    let summary = summary.run().await.unwrap();
    let asked: Vec<_> = server.requests().into_iter().map(|request| request.target).collect();
    for found in ["/a.xml", "/deep/deep/b.xml", "/deep/robots.txt/c", "/d.xml", "/e.xml"] {
        assert!(asked.contains(&format!("/of{found}")), "{found}: {asked:?}");
    }
    assert_eq!(*records.lock().unwrap(), ["ftp://a.example/f.xml", "http://["]);
    assert_eq!((summary.sitemaps.read, summary.sitemaps.failed), (6, 2), "{asked:?}");
    assert!(summary.to_string().contains("6 read, 2 failed"));
}
