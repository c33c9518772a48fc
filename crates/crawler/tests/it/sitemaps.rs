//! Sitemaps: what is parsed, and what the crawl does with it. Uses a scripted fetcher and a paused clock, but for the last test.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::hostile::server::{Script, Server, html, page as answer, redirect};
use crate::scripted::replies::status;
use crate::scripted::{self, Reply, Run, Scripted};
use crawler::page::sitemap::{Lists, NotASitemap, Sitemap, SitemapLimits, read};
use crawler::{
    Crawl, CrawlOptions, Ending, Event, ResourceKind, Response, SitemapEnd, SitemapRecord, TruncationReason,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use frontier::{NotFetched, Refusal};
use url::Url;

const HERE: &str = "http://a.example/maps/sitemap.xml";

fn read_with(body: &[u8], content_type: Option<&str>, limits: &SitemapLimits) -> Result<Sitemap, NotASitemap> {
    read(body, content_type, &Url::parse(HERE).unwrap(), limits)
}

#[track_caller]
fn sitemap(body: impl AsRef<[u8]>) -> Sitemap {
    read_with(body.as_ref(), None, &SitemapLimits::default()).unwrap()
}

fn urls(sitemap: &Sitemap) -> Vec<&str> {
    sitemap.entries.iter().map(|entry| entry.url.as_str()).collect()
}

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

const A_AND_B: [&str; 2] = ["http://a.example/a", "http://a.example/b"];

#[test]
fn every_form_of_the_protocol_lists_its_pages() {
    for (form, body) in [
        ("urlset", urlset(&A_AND_B)),
        ("text", "http://a.example/a\r\n\r\n  http://a.example/b".to_owned()),
        ("text of an old Macintosh", "http://a.example/a\rhttp://a.example/b\r".to_owned()),
        (
            "RSS 2.0",
            "<rss version='2.0'><channel><link>http://a.example/</link><title>T</title>\
             <image><link>http://a.example/logo</link></image>\
             <item><title>1</title><link>http://a.example/a</link><atom:link href='/self'/></item>\
             <item><description>&lt;a&gt;</description><link><![CDATA[http://a.example/b]]></link></item></channel></rss>"
                .to_owned(),
        ),
        (
            "RSS 1.0",
            "<rdf:RDF><channel rdf:about='x'><link>http://a.example/</link></channel>\
             <item><link>http://a.example/a</link></item><item><link>http://a.example/b</link></item></rdf:RDF>"
                .to_owned(),
        ),
        (
            "Atom",
            "<feed xmlns='http://www.w3.org/2005/Atom'><link rel='self' href='http://a.example/feed'/>\
             <entry><link rel='enclosure' href='/x.mp3'/><link rel=\"alternate\" href=\"http://a.example/a\"/></entry>\
             <entry><link href='../b'></link></entry></feed>"
                .to_owned(),
        ),
    ] {
        let found = sitemap(&body);
        assert_eq!(urls(&found), A_AND_B, "{form}");
        assert_eq!((found.lists, found.cut, found.broken), (Lists::Pages, 0, None), "{form}");
    }
}

#[test]
fn an_index_lists_sitemaps() {
    let index = "<sitemapindex><sitemap><loc>http://a.example/1.xml.gz</loc><lastmod>2004-10-01T18:23:17+00:00</lastmod>\
                 </sitemap><sitemap><loc>/2.xml</loc></sitemap></sitemapindex>";
    let found = sitemap(index);
    assert_eq!(found.lists, Lists::Sitemaps);
    assert_eq!(urls(&found), ["http://a.example/1.xml.gz", "http://a.example/2.xml"]);
}

#[test]
fn a_location_is_parsed_as_xml_and_leniently_where_it_is_invalid() {
    for (written, meant) in [
        ("\n  http://a.example/a \t", "http://a.example/a"),
        ("http://a.example/?a=1&amp;b=2", "http://a.example/?a=1&b=2"),
        ("http://a.example/?a=1&#38;b=2&#x26;c", "http://a.example/?a=1&b=2&c"),
        ("http://a.example/?a=1&b=2", "http://a.example/?a=1&b=2"),
        ("http://a.example/?a=1&copy;b", "http://a.example/?a=1&copy;b"),
        ("<![CDATA[http://a.example/?a&b]]>", "http://a.example/?a&b"),
        ("http://a.example/<!-- x -->a", "http://a.example/a"),
        ("http://a.example/ä", "http://a.example/%C3%A4"),
        ("/a", "http://a.example/a"),
        ("b", "http://a.example/maps/b"),
        ("https://other.example/", "https://other.example/"),
        ("///other.example/c", "http://other.example/c"),
        ("/C:/../c", "http://a.example/c"),
    ] {
        assert_eq!(urls(&sitemap(urlset(&[written]))), [meant], "{written}");
    }
}

#[test]
fn every_loc_is_a_page_but_those_of_images_and_so_is_every_other_language() {
    let body = "<urlset xmlns:image='x' xmlns:xhtml='y'><url><image:image><image:loc>http://a.example/i.png</image:loc>\
        </image:image><x:loc xmlns:x='z'>http://a.example/a</x:loc><loc>http://a.example/second</loc>\
        <xhtml:link rel='alternate' hreflang='de' href='http://a.example/de'/>\
        <priority>0.5</priority><changefreq>always</changefreq></url>\
        <!-- <url><loc>http://a.example/comment</loc></url> --><loc>http://a.example/stray</loc>\
        <url><loc></loc></url><url/><url><loc>mailto:ann@a.example</loc></url><url><loc>http://</loc></url></urlset>";
    let found = sitemap(body);
    let listed = ["a", "second", "stray", "de"].map(|path| format!("http://a.example/{path}"));
    assert_eq!(urls(&found), listed);
    assert_eq!(found.invalid, 4);
}

#[test]
fn a_loc_is_what_its_entry_is_or_else_what_the_root_element_lists() {
    let [page, map] = [Lists::Pages, Lists::Sitemaps];
    for (body, expected) in [
        (
            "<urlset><sitemap><loc>/1</loc></sitemap><url><loc>/2</loc></url><loc>/3</loc></urlset>",
            [map, page, page],
        ),
        (
            "<sitemapindex><url><loc>/1</loc></url><loc>/2</loc><sitemap><loc>/3</loc></sitemap></sitemapindex>",
            [page, map, map],
        ),
        (
            "<urlset><url><sitemap><loc>/1</loc></sitemap></url><x><loc>/2</loc></x><url><y><loc>/3</loc></y></url></urlset>",
            [map, page, page],
        ),
        (
            "<urlset><url><loc>/1</loc><lastmod>2005-01-01</lastmod><loc>/2</loc></url><url><loc>/3",
            [page, page, page],
        ),
    ] {
        let found = sitemap(body);
        let count = found.entries.len();
        let lists: Vec<_> = found.entries.iter().map(|entry| entry.lists).collect();
        assert_eq!(lists, expected[..count], "{body}");
        assert!(count == 3 || found.broken.is_some(), "{body}");
    }
}

#[test]
fn an_item_without_a_link_has_its_guid_unless_that_is_no_link() {
    let items = "<item><guid>/a</guid></item><item><guid isPermaLink='true'>/b</guid><link></link></item>\
        <item><guid isPermaLink='False'>/no</guid></item><item><guid>/no</guid><link>/c</link></item>\
        <item><link>/d</link><guid>/no</guid></item><item><guid>tag:a.example,1</guid></item>";
    let found = sitemap(format!("<rss><channel>{items}</channel></rss>"));
    let listed = ["a", "b", "c", "d"].map(|path| format!("http://a.example/{path}"));
    assert_eq!(
        (urls(&found), found.invalid),
        (listed.iter().map(String::as_str).collect(), 2)
    );
}

#[test]
fn blank_lines_and_marks_may_precede_a_sitemap() {
    for blank in ["\n\u{feff}", "\u{feff}\u{feff}", "\u{feff} \r\n\u{feff}\t", "\u{a0}"] {
        assert_eq!(
            urls(&sitemap(blank.to_owned() + &urlset(&A_AND_B))),
            A_AND_B,
            "{blank:?}"
        );
        assert_eq!(
            urls(&sitemap(blank.to_owned() + &A_AND_B.join("\n"))),
            A_AND_B,
            "{blank:?}"
        );
    }
}

#[test]
fn other_languages_are_listed_once_and_within_the_limit() {
    let link = |path: usize| format!("<xhtml:link rel='alternate' hreflang='x' href='/{path}'/>");
    let entries: String = (0..4)
        .map(|n| format!("<url><loc>/{n}</loc>{}</url>", (0..8).map(link).collect::<String>()))
        .collect();
    let found = sitemap(format!("<urlset>{entries}</urlset>"));
    assert_eq!((found.entries.len(), found.cut), (8, 0));
    let limits = SitemapLimits {
        max_urls: 4,
        ..SitemapLimits::default()
    };
    let found = read_with(format!("<urlset>{entries}</urlset>").as_bytes(), None, &limits).unwrap();
    assert_eq!(found.entries.len(), 4);
    assert!(found.cut > 0);
}

#[test]
fn the_last_change_is_parsed() {
    let urlset = "<urlset><url><lastmod>2005-01-01</lastmod><loc>http://a.example/</loc></url>\
                  <url><loc>http://a.example/b</loc><lastmod>soon</lastmod></url></urlset>";
    let feed = "<feed><entry><updated>2005-01-01T01:00:00+01:00</updated><link href='/'/></entry></feed>";
    let rss = "<rss><item><link>/</link><pubDate>Sat, 01 Jan 2005 00:00:00 GMT</pubDate></item></rss>";
    for body in [urlset, feed, rss] {
        let found = sitemap(body);
        let lastmod = found.entries[0].lastmod.unwrap();
        assert_eq!(lastmod.as_millis(), 1_104_537_600_000, "{body}");
        assert!(found.entries.get(1).is_none_or(|entry| entry.lastmod.is_none()));
    }
}

#[test]
fn gzip_is_recognized_by_its_first_bytes() {
    let plain = urlset(&A_AND_B);
    let once = gzipped(plain.as_bytes());
    let two_members = [gzipped(&plain.as_bytes()[..60]), gzipped(&plain.as_bytes()[60..])].concat();
    let with_rest = [once.as_slice(), b"garbage"].concat();
    for (form, body) in [
        ("twice", gzipped(&once)),
        ("once", once),
        ("members", two_members),
        ("rest", with_rest),
    ] {
        let found = read_with(&body, Some("text/xml; charset=utf-16"), &SitemapLimits::default()).unwrap();
        assert_eq!(
            (urls(&found), found.broken.as_deref()),
            (A_AND_B.to_vec(), None),
            "{form}"
        );
    }
}

#[test]
fn a_sitemap_is_decoded_by_mark_header_or_declaration() {
    let latin =
        "<?xml version='1.0' encoding='iso-8859-1'?><urlset><url><loc>http://a.example/\u{e4}</loc></url></urlset>";
    let latin_bytes: Vec<u8> = latin.chars().map(|c| c as u8).collect();
    let utf_16 = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let marked = "\u{feff}".to_owned() + &urlset(&["http://a.example/\u{e4}"]);
    let by_header = latin_bytes[latin_bytes.iter().position(|&byte| byte == b'>').unwrap() + 1..].to_vec();
    for (form, body, header) in [
        ("declared", latin_bytes, None),
        ("UTF-8 with a mark", marked.clone().into_bytes(), None),
        ("UTF-16 with a mark", utf_16(&marked), Some("text/xml; charset=utf-8")),
        ("UTF-16 without one", utf_16(&marked[3..]), None),
        ("by its header", by_header, Some("text/xml; charset=windows-1252")),
        ("text in UTF-16", utf_16("\u{feff}http://a.example/\u{e4}\n"), None),
    ] {
        let found = read_with(&body, header, &SitemapLimits::default()).unwrap();
        assert_eq!(urls(&found), ["http://a.example/%C3%A4"], "{form}");
    }
}

#[test]
fn broken_markup_keeps_the_entries_before_the_error() {
    let whole = urlset(&A_AND_B);
    let end_of_b = whole.find("/b").unwrap();
    let items = &whole[..whole.rfind("</urlset").unwrap()];
    let packed_whole = gzipped(urlset(&["http://a.example/a"; 5_000]).as_bytes());
    for (form, body, count) in [
        ("cut in a tag", &whole[..end_of_b + 5], 1),
        ("cut in a URL", &whole[..end_of_b], 1),
        ("cut after an item", items, 2),
        ("a tag that never ends", &(items.to_owned() + &"<x ".repeat(9)), 2),
    ] {
        let found = sitemap(body);
        assert_eq!(urls(&found), A_AND_B[..count], "{form}");
        assert!(found.broken.is_some(), "{form}");
    }
    let found = sitemap(&packed_whole[..packed_whole.len() - 20]);
    assert!(found.broken.is_some() && !found.entries.is_empty() && found.entries.len() < 5_000);
    let text: Vec<_> = (0..5_000).map(|n| format!("http://a.example/{n:05}")).collect();
    let packed_text = gzipped(text.join("\n").as_bytes());
    let found = sitemap(&packed_text[..packed_text.len() / 2]);
    assert!(found.broken.is_some() && found.entries.len() > 100);
    assert!(
        found.entries.iter().all(|entry| entry.url.path().len() == 6),
        "a torn line would be a different URL"
    );
    let unclosed = "<urlset><url><loc>http://a.example/a</loc><url><loc>http://a.example/b</loc></url></urlset>";
    assert_eq!(urls(&sitemap(unclosed)), A_AND_B);
}

#[test]
fn a_file_that_is_not_a_sitemap_has_an_error_that_says_why() {
    let limits = SitemapLimits::default();
    let of = |body: &[u8]| read_with(body, None, &limits).unwrap_err();
    assert_eq!(of(b""), NotASitemap::Empty);
    assert_eq!(of(b" \n \t"), NotASitemap::Empty);
    assert_eq!(of(&gzipped(b"")), NotASitemap::Empty);
    assert_eq!(
        of(b"<!DOCTYPE html><html><body>404"),
        NotASitemap::OtherRoot("html".to_owned())
    );
    assert!(matches!(of(b"<"), NotASitemap::NoRoot(_)));
    assert!(matches!(of(b"<!-- nothing -->"), NotASitemap::NoRoot(_)));
    assert_eq!(of(b"not found"), NotASitemap::NoUrls);
    assert_eq!(of(b"\x89PNG\r\n\x1a\n\0\0\0"), NotASitemap::NoUrls);
    assert_eq!(of(br#"{"a": "http://a.example/"}"#), NotASitemap::NoUrls);
    assert!(matches!(
        of(&[0x1f, 0x8b, 8, 0]),
        NotASitemap::Empty | NotASitemap::NoUrls
    ));
}

#[test]
fn nothing_beyond_the_limits_is_kept_even_if_compressed() {
    let locations: Vec<_> = (0..10_000).map(|n| format!("http://a.example/{n:05}")).collect();
    let xml = urlset(&locations.iter().map(String::as_str).collect::<Vec<_>>());
    let text = locations.join("\n");
    let limits = SitemapLimits {
        max_urls: 3,
        ..SitemapLimits::default()
    };
    for body in [&xml, &text] {
        let found = read_with(body.as_bytes(), None, &limits).unwrap();
        assert_eq!((found.entries.len(), found.cut), (3, 9_997));
    }
    let limits = SitemapLimits {
        max_bytes: 10_000,
        ..SitemapLimits::default()
    };
    for body in [
        xml.clone().into_bytes(),
        gzipped(xml.as_bytes()),
        gzipped(text.as_bytes()),
    ] {
        let found = read_with(&body, None, &limits).unwrap();
        assert!((100..500).contains(&found.entries.len()), "{}", found.entries.len());
        assert!(found.broken.unwrap().contains("longer than 10000 bytes"));
        let all_whole = found.entries.iter().all(|entry| entry.url.path().len() == 6);
        assert!(all_whole, "a truncated URL would be a different URL");
    }
    let bomb = gzipped(&gzipped(&vec![b' '; 64 << 20]));
    assert_eq!(read_with(&bomb, None, &limits), Err(NotASitemap::Empty));
}

#[test]
fn entities_are_not_expanded() {
    let mut laughs = "<!DOCTYPE urlset [<!ENTITY a0 'ha'>".to_owned();
    for n in 1..30 {
        write!(laughs, "<!ENTITY a{n} '{}'>", format!("&a{};", n - 1).repeat(10)).unwrap();
    }
    laughs += "<!ENTITY file SYSTEM 'file:///etc/passwd'>]>";
    laughs += "<urlset><url><loc>http://a.example/?&a29;&file;</loc></url></urlset>";
    assert_eq!(urls(&sitemap(laughs)), ["http://a.example/?&a29;&file;"]);
}

#[test]
fn an_endless_tag_or_text_ends_the_sitemap() {
    for monster in ["<x ", "<!--", "<![CDATA[", "&", "<?"] {
        let body = format!(
            "{}<url>{monster}{}",
            urlset(&A_AND_B).replace("</urlset>", ""),
            "y".repeat(3 << 20)
        );
        let found = sitemap(body);
        assert_eq!(urls(&found), A_AND_B, "{monster}");
        assert!(found.broken.is_some(), "{monster}");
    }
    let deep = "<urlset>".to_owned() + &"<a>".repeat(500_000);
    assert!(urls(&sitemap(deep)).is_empty());
    let long = urlset(&[&format!("http://a.example/{}", "y".repeat(100_000)), A_AND_B[0]]);
    let found = sitemap(long);
    assert_eq!((urls(&found), found.invalid), (vec![A_AND_B[0]], 1));
    let found = sitemap(format!("http://a.example/{}\n{}", "y".repeat(100_000), A_AND_B[0]));
    assert_eq!((urls(&found), found.invalid), (vec![A_AND_B[0]], 1));
}

// Tests of whole crawls follow.

fn options() -> CrawlOptions {
    CrawlOptions {
        sitemaps: true,
        ..scripted::options("http://a.example/")
    }
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
    let options = CrawlOptions {
        sitemaps: false,
        ..options()
    };
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
    let missing: Vec<_> = run.summary.missing().iter().map(ToString::to_string).collect();
    assert_eq!(missing, ["no final answer: 1 sitemap not read (raise max_attempts)"]);
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
    options.sitemaps = true;
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
