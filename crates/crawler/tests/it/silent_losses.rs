//! Pages that a crawl could lose without a word: odd statuses, markup in XML, frames without a URL, sitemaps in odd places.

use std::io::Write as _;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::hostile::server::{Script, Server, crawl_over_http, html, page as answer};
use crate::scripted::{self, Run, Scripted, page_of, status};
use crawler::fetch::Secret;
use crawler::{CrawlOptions, HttpOptions, Response, SitemapEnd};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Crawls from a page of this type; every other path is an empty page. Returns the paths that were asked for, without robots.txt and
/// the usual places of sitemaps.
#[track_caller]
fn asked(content_type: &str, body: &str) -> Vec<String> {
    asked_with(content_type, body, |_| {})
}

#[track_caller]
fn asked_with(content_type: &str, body: &str, change: impl FnOnce(&mut CrawlOptions)) -> Vec<String> {
    let run = run(change, vec![("/", page_of(content_type, body))]);
    paths(&run)
}

fn run(change: impl FnOnce(&mut CrawlOptions), pages: Vec<(&'static str, Response)>) -> Run {
    let mut options = scripted::options("http://a.example/");
    change(&mut options);
    Scripted::new(move |call| {
        let known = pages.iter().find(|(path, _)| *path == call.path());
        Ok(match known {
            Some((_, response)) => response.clone(),
            None if call.path() == "/robots.txt" || call.path().starts_with("/sitemap") => status(404),
            None => page_of("text/html", ""),
        })
    })
    .crawl(options)
}

fn paths(run: &Run) -> Vec<String> {
    let usual = ["/robots.txt", "/sitemap.xml", "/sitemap_index.xml"];
    let mut paths: Vec<_> = run.paths().into_iter().map(str::to_owned).collect();
    paths.retain(|path| path != "/" && !usual.contains(&path.as_str()));
    paths
}

const XHTML: &str = "application/xhtml+xml";

fn xhtml(body: &str) -> String {
    format!("<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'>{body}</html>")
}

#[test]
fn a_304_that_nobody_asked_for_is_a_failed_attempt() {
    let tagged = |status| Response {
        validators: frontier::Validators {
            etag: Some("\"1\"".to_owned()),
            last_modified: None,
        },
        ..scripted::status(status)
    };
    let run_ = run(|_| {}, vec![("/", tagged(304))]);
    assert!(run_.seconds_of("http://a.example/").len() > 1, "it is retried");
    assert_eq!((run_.summary.failed_pages(), run_.summary.has_pages()), (1, false));
    assert!(
        run_.reports.pages.iter().all(|page| page.etag.is_none()),
        "no later crawl sends its tag"
    );
    let first = run_.summary.failures.first_failure.as_deref().unwrap_or_default();
    assert!(first.contains("304"), "{first}");

    // One that a proxy answers once.
    let link = "<a href=/secret>s</a>";
    let twice = Scripted::new(move |call| {
        Ok(match (call.path(), call.earlier) {
            ("/", 0) => status(304),
            ("/", _) => scripted::page(link),
            ("/robots.txt", _) => status(404),
            _ => scripted::page(""),
        })
    });
    assert!(paths(&twice.crawl(scripted::options("http://a.example/"))).contains(&"/secret".to_owned()));

    for code in [304, 101, 412, 416] {
        let run = run(
            |options| options.max_time = Some(Duration::from_secs(600)),
            vec![("/robots.txt", status(code)), ("/", scripted::page(link))],
        );
        assert!(
            run.requests.iter().all(|request| request.path == "/robots.txt"),
            "{code}: {:?}",
            run.paths()
        );
    }

    let robots = scripted::page("Sitemap: http://a.example/map.xml\n");
    let run = run(
        |options| options.pages.sitemaps = true,
        vec![
            ("/robots.txt", robots),
            ("/map.xml", tagged(304)),
            ("/", scripted::page("")),
        ],
    );
    assert_eq!((run.summary.sitemaps.failed, run.summary.sitemaps.read), (1, 0));
    assert_eq!(run.reports.sitemaps[0].status, Some(304));
}

#[test]
fn xhtml_is_read_as_xml() {
    let links = "<a href='/x?a=1&amp;b=2'>x</a><a href='/y'/>";
    for hiding in "script title style textarea iframe template noframes noembed xmp plaintext".split(' ') {
        let body = xhtml(&format!("<head><{hiding}/></head><body>{links}</body>"));
        assert_eq!(asked(XHTML, &body), ["/x", "/y"], "{hiding}");
    }
    for (what, body) in [
        (
            "prefixed names",
            "<h:html xmlns:h='http://www.w3.org/1999/xhtml'><h:title/><h:a href='/x'/><h:iframe src='/y'/></h:html>"
                .to_owned(),
        ),
        (
            "a script in CDATA",
            xhtml("<script><![CDATA[ if (a < b) '</body><a href=\"/no\">' ]]></script><a href='/x'/><a href='/y'/>"),
        ),
        (
            "markup in CDATA",
            xhtml("<p><![CDATA[<a href='/no'>]]></p><a href='/x'/><a href='/y'/>"),
        ),
        (
            "entities",
            format!(
                "<!DOCTYPE html [<!ENTITY root '/'><!ENTITY x '&root;x'><!ENTITY nav \"<a href='/y'>&#60;</a>\">]>{}",
                xhtml("<a href='&x;'/>&nav;")
            ),
        ),
        (
            "names of other kinds",
            xhtml(
                "<o:a xmlns:o='urn:o' href='/no'/><svg xmlns='http://www.w3.org/2000/svg' xmlns:l='http://www.w3.org/1999/xlink'>\
                <script/><title/><a l:href='/x'/></svg><a href='/y'/>",
            ),
        ),
        (
            "an error behind a link",
            xhtml("<a href='/x'/><p class=q>1 <script>if (a<b && c)</script><a href='/y'>"),
        ),
        (
            "a DTD with references of its own",
            format!(
                "<!DOCTYPE html [<!-- it's --><!ENTITY % more SYSTEM 'x'> %more; <!ENTITY x '/x'>]>{}",
                xhtml("<title/><a href='&x;'/><a href='/y'/>")
            ),
        ),
        (
            "an end that is missing",
            xhtml("<p><b><a href='/x'></p><script/><a href='/y'/>"),
        ),
    ] {
        assert_eq!(asked(XHTML, &body), ["/x", "/y"], "{what}");
        assert_eq!(
            asked("application/xml; charset=utf-8", &body),
            ["/x", "/y"],
            "{what}, by its root element"
        );
    }
    let query = xhtml("<a href='/x?q=&#233;'/>");
    let without_declaration = query.replace("<?xml version='1.0'?>", "");
    let wide: Vec<u8> = without_declaration.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for answer in [page_of(XHTML, query), page_of("text/xml; charset=utf-16le", wide)] {
        let run = run(|_| {}, vec![("/", answer)]);
        let is_asked = run.requests.iter().any(|asked| asked.url.ends_with("/x?q=%C3%A9"));
        assert!(is_asked, "queries are in UTF-8");
    }
    let page = run(
        |_| {},
        vec![(
            "/",
            page_of(XHTML, xhtml("<style/><title>A &amp; <![CDATA[<b>]]></title>")),
        )],
    );
    assert_eq!(page.reports.pages[0].title.as_deref(), Some("A & <b>"));
}

#[test]
fn entities_that_grow_without_end_are_cut_and_counted() {
    let mut bomb = "<!DOCTYPE html [<!ENTITY a0 '<a href=\"/x\"/>'>".to_owned();
    for n in 1..12 {
        bomb += &format!("<!ENTITY a{n} '{}'>", format!("&a{};", n - 1).repeat(10));
    }
    bomb += "<!ENTITY self 'x&self;'>]>";
    bomb += &xhtml("&self;<a href='&self;'/>&a11;<a href='/y'/>");
    let run = run(|_| {}, vec![("/", page_of(XHTML, &bomb))]);
    assert!(paths(&run).contains(&"/y".to_owned()), "{:?}", run.paths());
    assert!(run.summary.unfollowed.dropped > 0);
}

#[test]
fn svg_has_links_and_assets() {
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'><script/><style/>\
        <a xlink:href='/x'><text>x</text></a><a href='/y'/><image href='/i.png'/><use xlink:href='/u.svg#a'/>\
        <rect fill='url(/p.svg#a)'/></svg>";
    assert_eq!(asked("image/svg+xml", svg), ["/x", "/y"]);
    let mut all = asked_with("image/svg+xml", svg, |options| options.pages.assets = true);
    all.sort();
    assert_eq!(all, ["/i.png", "/p.svg", "/u.svg", "/x", "/y"]);
}

#[test]
fn shadow_roots_and_documents_in_srcdoc_are_read_and_plain_templates_are_not() {
    for (body, expected) in [
        (
            "<div><template shadowrootmode=open><a href=/x></a></template><a href=/y></a></div>",
            &["/x", "/y"][..],
        ),
        (
            "<div><template shadowrootmode='CLOSED'><slot></slot><a href=/x></a></template></div>",
            &["/x"],
        ),
        ("<template><a href=/no></a></template><a href=/x></a>", &["/x"]),
        (
            "<template shadowrootmode=none><a href=/no></a></template><a href=/x></a>",
            &["/x"],
        ),
        (
            "<template><p><template shadowrootmode=open><a href=/no></a></template></template><a href=/x></a>",
            &["/x"],
        ),
        (
            "<p><template shadowrootmode=open><template><a href=/no></a></template><a href=/x></a></template><a href=/y>",
            &["/x", "/y"],
        ),
        (
            "<p><template shadowrootmode=open><base href=/no/><a href=x></a></template><a href=y></a>",
            &["/x", "/y"],
        ),
        ("<iframe srcdoc='<a href=x>x</a>' src=/no></iframe>", &["/x"]),
        (
            "<iframe srcdoc='<base href=/b/><a href=x></a>'></iframe><a href=y></a>",
            &["/b/x", "/y"],
        ),
        ("<iframe srcdoc='<a href=x></a>'></iframe><base href=/b/>", &["/b/x"]),
        (
            "<iframe srcdoc=\"<iframe srcdoc='<base href=/c/><a href=&amp;quot;x&amp;quot;></a>'></iframe><a href=y></a>\"></iframe>",
            &["/c/x", "/y"],
        ),
        (
            "<iframe srcdoc='<template><a href=/no></a></template><a href=/x></a>'></iframe>",
            &["/x"],
        ),
        (
            "<iframe srcdoc='<meta name=robots content=nofollow><a href=/no></a>'></iframe><a href=/x></a>",
            &["/x"],
        ),
        (
            "<template><iframe srcdoc='<a href=/no></a>'></iframe></template><a href=/x></a>",
            &["/x"],
        ),
    ] {
        assert_eq!(asked("text/html", body), expected, "{body}");
    }
    let mut deep = "<a href=/deep></a>".to_owned();
    for _ in 0..12 {
        deep = format!(
            "<iframe srcdoc=\"{}\"></iframe>",
            deep.replace('&', "&amp;").replace('"', "&quot;")
        );
    }
    let run = run(|_| {}, vec![("/", page_of("text/html", &deep))]);
    assert_eq!(
        (paths(&run).len(), run.summary.unfollowed.dropped),
        (0, 1),
        "what is too deep is counted"
    );
}

#[test]
fn a_seed_that_is_a_sitemap_or_a_feed_is_read_as_one() {
    for (content_type, body) in [
        (
            "application/xml",
            "<!-- made by hand --><urlset><url><loc>/x</loc></url><url>/y</url></urlset>",
        ),
        (
            "text/html",
            "\u{feff}<?xml version='1.0'?><urlset><url><loc>/x</loc><loc>/y</loc></url></urlset>",
        ),
        (
            "application/rss+xml",
            "<rss><channel><item><guid>/x</guid></item><item><link>/y</link></item></channel></rss>",
        ),
        (
            "application/atom+xml",
            "<feed xml:base='/b/'><entry><link href='../x'/></entry><entry><link href='/y'/></entry></feed>",
        ),
        ("text/plain", "http://a.example/x\nhttp://a.example/y\n"),
    ] {
        assert_eq!(asked(content_type, body), ["/x", "/y"], "{content_type}");
        for (sitemaps, expected) in [(false, &["/feed"][..]), (true, &["/feed", "/x", "/y"])] {
            let home = page_of("text/html", "<a href=/feed></a>");
            let pages = vec![("/", home), ("/feed", page_of(content_type, body))];
            let run = run(|options| options.pages.sitemaps = sitemaps, pages);
            assert_eq!(paths(&run), expected, "{content_type}, linked");
        }
    }
    assert_eq!(
        asked("text/plain", "see http://a.example/x\nhttp://a.example/y\n"),
        [""; 0]
    );
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(b"<urlset><url><loc>/x</loc></url></urlset>").unwrap();
    let packed = page_of("application/xml", packer.finish().unwrap());
    assert_eq!(
        paths(&run(|_| {}, vec![("/", packed)])),
        ["/x"],
        "packed under another name"
    );
    let broken = run(
        |_| {},
        vec![("/", page_of("text/xml", "<urlset><url><loc>/x</loc></url><url><lo"))],
    );
    assert_eq!(paths(&broken), ["/x"]);
    let [sitemap] = &broken
        .reports
        .sitemaps
        .iter()
        .filter(|one| one.status == Some(200))
        .collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", broken.reports.sitemaps)
    };
    assert!(sitemap.broken.is_some() && sitemap.end == SitemapEnd::Read && sitemap.urls == 1);
}

#[test]
fn sitemaps_are_read_wherever_they_are_listed() {
    let index = "<sitemapindex><sitemap><loc>/in-index.xml</loc></sitemap></sitemapindex>";
    let urlset = |path: &str| page_of("text/xml", format!("<urlset><url><loc>{path}</loc></url></urlset>"));
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(b"<urlset><url><loc>/4</loc></url></urlset>").unwrap();
    let run = run(
        |options| options.pages.sitemaps = true,
        vec![
            (
                "/",
                page_of(
                    "text/html",
                    "<link rel='sitemap' type='application/xml' href='/named.xml'>",
                ),
            ),
            (
                "/named.xml",
                page_of(
                    "text/xml",
                    "<urlset><url><loc>/index.xml</loc></url><sitemap><loc>/odd.xml</loc></sitemap><url><loc>/list.txt</loc></url>\
                     <url><loc>/packed.xml.gz</loc></url></urlset>",
                ),
            ),
            ("/index.xml", page_of("text/xml", index)),
            ("/in-index.xml", urlset("/1")),
            ("/odd.xml", urlset("/2")),
            ("/list.txt", page_of("text/plain", "http://a.example/in-list.xml\n")),
            ("/in-list.xml", urlset("/3")),
            ("/packed.xml.gz", page_of("application/gzip", packer.finish().unwrap())),
        ],
    );
    for wanted in ["/1", "/2", "/3", "/4"] {
        assert!(paths(&run).contains(&wanted.to_owned()), "{wanted}: {:?}", run.paths());
    }
}

#[test]
fn a_3xx_that_leads_nowhere_has_failed_and_the_list_of_a_300_is_followed() {
    for code in [301, 302, 303, 305, 307, 308, 399] {
        let run = run(
            |_| {},
            vec![("/", scripted::page("<a href=/x></a>")), ("/x", status(code))],
        );
        assert_eq!(
            (run.summary.failed_pages(), run.summary.by_status[&code]),
            (1, 1),
            "{code}"
        );
    }
    let choices = Response {
        status: 300,
        ..scripted::page("<a href=/x></a><a href=/y></a>")
    };
    let run = run(|_| {}, vec![("/", choices)]);
    assert_eq!(
        (paths(&run), run.summary.failed_pages()),
        (vec!["/x".to_owned(), "/y".to_owned()], 1)
    );
}

#[test]
fn what_frames_show_and_links_lead_to_is_followed_and_backgrounds_are_assets() {
    let body = "<object data=/o></object><object data=/p type='text/html'></object><object data=/no.pdf type=application/pdf></object>\
        <embed src=/e><embed src=/f type='application/xhtml+xml; charset=utf-8'><embed src=/no type=video/mp4>\
        <link rel=prev href=/prev><link rel='Previous' href=/previous>";
    assert_eq!(asked("text/html", body), ["/o", "/p", "/e", "/f", "/prev", "/previous"]);
    let body = "<body background=/b.png><table background='/t.png'><tr background=/r.png><td background=/d.png><th background=/h.png>\
        </table><p background=/no.png><svg><style>a{fill:url(/s.svg#x)}</style><rect fill='url(/f.svg#a)' stroke=\"url('/k.svg#b')\" \
        filter='url(#own)' style='mask:url(/m.svg#c)'/></svg>";
    let mut found = asked_with("text/html", body, |options| options.pages.assets = true);
    found.sort();
    let expected = "/b.png /d.png /f.svg /h.png /k.svg /m.svg /r.png /s.svg /t.png";
    assert_eq!(found, expected.split(' ').collect::<Vec<_>>());
}

#[tokio::test]
async fn a_part_of_a_page_that_nobody_asked_for_counts_as_truncated() {
    let server = Server::start(|request| {
        let part = |range: &str| {
            let headers = format!("Content-Type: text/html\r\nX: y\r\n{range}");
            Script::say(answer("206 Partial Content", &headers, "<p>abc"))
        };
        match &*request.target {
            "/" => Script::say(html(
                "<a href=/1></a><a href=/2></a><a href=/3></a><a href=/4></a><a href=/whole></a>",
            )),
            "/1" => part(""),
            "/2" => part("Content-Range: bytes 0-5/12\r\n"),
            "/3" => part("Content-Range: bytes 6-11/12\r\n"),
            "/4" => part("Content-Range: bytes 0-99999/100000\r\n"),
            _ => part("Content-Range: bytes 0-5/6\r\n"),
        }
    })
    .await;
    let mut options = scripted::everywhere(&format!("http://127.0.0.1:{}/", server.port));
    options.frontier.politeness.ask_robots = false;
    let summary = crawl_over_http(options, HttpOptions::default()).await;
    assert_eq!(summary.failures.bodies_truncated.values().sum::<u64>(), 4);
    assert!(!summary.missing().is_empty());
}

#[tokio::test]
async fn a_304_answers_a_condition_of_the_users_own() {
    for (headers, fetched) in [
        (vec![], false),
        (
            vec![Secret::from("If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT")],
            true,
        ),
    ] {
        let server = Server::start(|request| {
            let is_not_modified = request.target == "/" || request.head.contains("if-modified-since");
            Script::say(match is_not_modified {
                true => answer("304 Not Modified", "", ""),
                false => answer("404 Not Found", "", ""),
            })
        })
        .await;
        let mut options = scripted::everywhere(&format!("http://127.0.0.1:{}/", server.port));
        options.pages.sitemaps = true;
        options.frontier.retries.max_attempts = NonZeroU32::MIN;
        let http = HttpOptions {
            headers,
            ..HttpOptions::default()
        };
        let summary = crawl_over_http(options, http).await;
        assert_eq!(
            (summary.has_pages(), summary.failed_pages(), summary.sitemaps.failed),
            (fetched, u64::from(!fetched), 0)
        );
    }
}
