//! What is read from sitemaps.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use page::sitemap::{Lists, NotASitemap, Sitemap, SitemapLimits, read};
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
            "end tags in another case",
            "<rss><channel><item><pubDate>x</pubdate><link>http://a.example/a</link></item>\
             <item><link>http://a.example/b</LINK></item></channel></rss>"
                .to_owned(),
        ),
        (
            "something behind its root",
            urlset(&A_AND_B) + "<br><script>if(a<b){}</script><!-- x",
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
        ("\u{feff}http://a.example/a\u{200b}", "http://a.example/a"),
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
fn tags_that_do_not_match_and_a_second_root_hide_no_entry() {
    for (form, body) in [
        (
            "an end too much",
            "<urlset><url><loc>/a</loc><lastmod/></lastmod></url><url><loc>/b</loc></url></urlset>",
        ),
        (
            "an entry's end twice",
            "<urlset><url><loc>/a</loc></url></url><url><loc>/b</loc></url></urlset>",
        ),
        (
            "two files in one",
            "<urlset><url><loc>/a</loc></url></urlset><?xml version='1.0'?><urlset><url><loc>/b</loc></url></urlset>",
        ),
        (
            "an empty root",
            "<urlset/><url><loc>/a</loc></url><url><loc>/b</loc></url>",
        ),
        (
            "HTML in a feed",
            "<rss><channel><item><description>a</br>b<br>c<p>d</description><link>/a</link></item>\
             <item><description><img></description><link>/b</link></item></channel></rss>",
        ),
        (
            "entries without an end",
            "<rss><channel><item><link>/a</link><item><description><p></description><link>/b</link></channel></rss>",
        ),
    ] {
        let found = sitemap(body);
        assert_eq!(
            (urls(&found), found.broken.as_deref()),
            (A_AND_B.to_vec(), None),
            "{form}"
        );
    }
    let unclosed = urlset(&["/a"; 500]).replace("</url>", "");
    assert_eq!(
        (sitemap(&unclosed).entries.len(), sitemap(unclosed).broken),
        (500, None)
    );
}

#[test]
fn an_entry_has_the_location_of_its_own_format() {
    for body in [
        "<rss><channel><image><url>/no</url></image><url><loc>/a</loc></url><url><loc>/b</loc></url></channel></rss>",
        "<rss><channel><entry><link href='/a'/></entry><entry><link rel='alternate' href='/b'/></entry></channel></rss>",
        "<feed><author><url>/no</url></author><item><link>/a</link></item><item><guid>/b</guid></item></feed>",
        "<feed><entry><author><url>/no</url></author><link href='/a'/></entry><entry><link href='/b'/></entry></feed>",
        "<urlset><item><link>/a</link></item><url><loc>/b</loc></url></urlset>",
    ] {
        assert_eq!(urls(&sitemap(body)), A_AND_B, "{body}");
    }
}

#[test]
fn relations_are_words_of_any_case_and_the_next_file_of_a_feed_is_a_sitemap() {
    for relation in [
        "Alternate",
        "alternate canonical",
        "http://www.iana.org/assignments/relation/alternate",
    ] {
        let link = |path| format!("<link rel='{relation}' href='{path}'/>");
        let (a, b) = (link("/a"), link("/b"));
        let feed = format!("<feed><entry>{a}</entry><entry>{b}</entry></feed>");
        assert_eq!(urls(&sitemap(feed)), A_AND_B, "{relation}");
        assert_eq!(
            urls(&sitemap(format!("<urlset><url>{a}{b}<loc>/a</loc></url></urlset>"))),
            A_AND_B,
            "{relation}"
        );
    }
    for feed in [
        "<feed><link rel='self' href='/1'/><link rel='next' href='/2'/><entry><link href='/a'/><link rel='next' href='/no'/></entry></feed>",
        "<rss><channel><item><link>/a</link></item><atom:link rel='Next' href='/2'></atom:link></channel></rss>",
    ] {
        let found = sitemap(feed);
        let next: Vec<_> = found
            .entries
            .iter()
            .filter(|entry| entry.lists == Lists::Sitemaps)
            .collect();
        assert_eq!(
            (next.len(), next[0].url.path(), found.entries.len()),
            (1, "/2", 2),
            "{feed}"
        );
    }
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
    let deep = "<urlset>".to_owned() + &"<a>".repeat(500_000) + &"</b>".repeat(500_000);
    assert!(urls(&sitemap(deep)).is_empty());
    let long = urlset(&[&format!("http://a.example/{}", "y".repeat(100_000)), A_AND_B[0]]);
    let found = sitemap(long);
    assert_eq!((urls(&found), found.invalid), (vec![A_AND_B[0]], 1));
    let found = sitemap(format!("http://a.example/{}\n{}", "y".repeat(100_000), A_AND_B[0]));
    assert_eq!((urls(&found), found.invalid), (vec![A_AND_B[0]], 1));
}
