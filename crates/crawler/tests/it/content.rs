//! The text and the links of pages, for observers that ask for them.

use std::sync::{Arc, Mutex};

use crate::scripted::{self, Call, Reply, Scripted, page_of};
use crawler::{CrawlOptions, Event, Response};

/// A page in windows-1252, two in UTF-8 with the same links, an image, and a page that is not there.
fn site(call: &Call<'_>) -> Reply {
    const LINKS: &str = "<a href=/b>b</a> <a href=/c>c</a> <a href=/none rel=nofollow>n</a> <area href=/image> <a href=http://other.example/>o</a>";
    Ok(match call.path() {
        "/" => page_of(
            "text/html; charset=windows-1252",
            [b"<title>Caf\xe9</title>", LINKS.as_bytes()].concat(),
        ),
        "/b" | "/c" => page_of("text/html; charset=utf-8", format!("<title>Th\u{e9}</title>{LINKS}")),
        "/image" => page_of("image/png", "png"),
        _ => Response {
            status: 404,
            ..page_of("text/html", "<a href=/below>not here</a>")
        },
    })
}

/// What an observer hears, a line per event.
fn heard(change: impl FnOnce(&mut CrawlOptions)) -> Vec<String> {
    let mut options = scripted::options("http://site.example/");
    change(&mut options);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let book = Arc::clone(&lines);
    Scripted::new(site).crawl_with(options, |crawl| {
        crawl.observe(move |event: &Event<'_>| {
            let mut lines = book.lock().unwrap();
            match event {
                Event::Page(page) => lines.push(format!("page {}", page.url)),
                Event::Content { page, text, links } => {
                    let title = page.title.as_deref().unwrap_or_default();
                    assert!(text.starts_with(&format!("<title>{title}</title>")), "{text}");
                    lines.push(format!("content {} {title}", page.url));
                    lines.extend(
                        links
                            .iter()
                            .map(|link| format!("  {} {} {}", link.kind, link.to, link.verdict_name())),
                    );
                }
                Event::Links { from, .. } => lines.push(format!("links {}", from.url)),
                _ => {}
            }
        })
    });
    let lines = lines.lock().unwrap();
    lines.clone()
}

#[test]
fn who_asks_for_content_gets_the_text_and_every_link_of_each_page_after_its_record() {
    assert_eq!(
        heard(|options| options.reports.content = true),
        [
            "page http://site.example/",
            "content http://site.example/ Caf\u{e9}",
            "  anchor http://site.example/b queued",
            "  anchor http://site.example/c queued",
            "  area http://site.example/image queued",
            "  anchor http://other.example/ other_host",
            "  anchor http://site.example/none nofollow",
            "page http://site.example/b",
            "content http://site.example/b Th\u{e9}",
            "  anchor http://site.example/b seen",
            "  anchor http://site.example/c seen",
            "  area http://site.example/image seen",
            "  anchor http://other.example/ other_host",
            "  anchor http://site.example/none nofollow",
            "page http://site.example/c",
            "content http://site.example/c Th\u{e9}",
            "  anchor http://site.example/b seen",
            "  anchor http://site.example/c seen",
            "  area http://site.example/image seen",
            "  anchor http://other.example/ other_host",
            "  anchor http://site.example/none nofollow",
            "page http://site.example/image",
        ]
    );
}

#[test]
fn who_does_not_ask_for_content_gets_none() {
    let pages = ["", "b", "c", "image"].map(|path| format!("page http://site.example/{path}"));
    assert_eq!(heard(|_| {}), pages);
    let with_links = heard(|options| options.reports.links = true);
    assert!(
        with_links.iter().all(|line| !line.starts_with("content")),
        "{with_links:?}"
    );
    assert!(with_links.contains(&"links http://site.example/b".to_owned()));
}
