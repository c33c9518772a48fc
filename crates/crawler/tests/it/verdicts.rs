//! What follows from an answer: which links are followed, which pages are retried, which hosts are paused.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::hostile::server::{Script, Server, crawl_over_http, html as html_page, page as answer};
use crate::scripted::{self, Reply, Run, Scripted, page};
use crawler::{Crawl, CrawlOptions, FetchError, HttpOptions, Response, Summary};
use frontier::{FrontierConfig, NotFetched, PolitenessConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Crawls `http://a.example/` with a delay of one second, without robots.txt.
///
/// The reply depends on the path and on the number of earlier requests for it.
fn run(reply: impl Fn(&str, usize) -> Reply + Send + Sync + 'static) -> Run {
    let mut options = scripted::options("http://a.example/");
    options.user_agent = "ourbot/1.0".to_owned();
    options.frontier.politeness.ask_robots = false;
    options.frontier.retries.retry_jitter = 0;
    Scripted::new(move |call| reply(call.path(), call.earlier)).crawl(options)
}

const TWO_LINKS: &str = "<a href=/1></a><a href=/2></a>";

#[test]
fn the_links_of_a_page_with_nofollow_are_counted_and_not_followed() {
    let by_header = |tag: &str| Response {
        robots_tags: vec!["noarchive".to_owned(), tag.to_owned()],
        ..page(TWO_LINKS)
    };
    let nofollow = [
        page(format!("<meta name=robots content=nofollow>{TWO_LINKS}")),
        page(format!("<meta name=OurBot content='noindex, none'>{TWO_LINKS}")),
        by_header("nofollow"),
        by_header("noindex, none"),
        by_header("ourbot: nofollow"),
    ];
    for start in nofollow {
        let run = run(move |path, _| Ok(if path == "/" { start.clone() } else { page("") }));
        assert_eq!(run.paths(), ["/"]);
        assert_eq!(run.summary.unfollowed.nofollow, 2);
    }
    let follow = [
        page(format!("<meta name=otherbot content=nofollow>{TWO_LINKS}")),
        by_header("otherbot: nofollow"),
        by_header("noindex"),
    ];
    for start in follow {
        let run = run(move |path, _| Ok(if path == "/" { start.clone() } else { page("") }));
        assert_eq!(run.paths(), ["/", "/1", "/2"]);
        assert_eq!(run.summary.unfollowed.nofollow, 0);
    }
}

#[test]
fn only_html_that_answers_2xx_has_links() {
    let answers = [
        (200, Some("text/html; charset=utf-8"), 3),
        (203, Some("application/xhtml+xml"), 3),
        (200, None, 3),
        (200, Some("text/plain"), 1),
        (200, Some("application/json"), 1),
        (404, Some("text/html"), 1),
        (403, Some("text/html"), 1),
        (410, None, 1),
    ];
    for (status, kind, requested) in answers {
        let start = Response {
            status,
            content_type: kind.map(str::to_owned),
            ..page(TWO_LINKS)
        };
        let run = run(move |path, _| Ok(if path == "/" { start.clone() } else { page("") }));
        assert_eq!(run.asked.len(), requested, "{status}, {kind:?}: {:?}", run.asked);
        assert_eq!(
            run.summary.by_status[&status],
            if requested == 3 && status == 200 { 3 } else { 1 }
        );
    }
}

#[test]
fn a_page_with_a_forbidden_address_is_reported_as_not_fetched_and_costs_no_delay() {
    let run = run(|path, _| match path {
        "/" => Ok(page(TWO_LINKS)),
        "/1" => Err(FetchError::AddressForbidden),
        _ => Ok(page("")),
    });
    assert_eq!((run.seconds(), run.paths()), (vec![0, 1, 1], vec!["/", "/1", "/2"]));
    assert_eq!(run.summary.report.not_fetched[&NotFetched::AddressForbidden], 1);
    let url = "http://a.example/1".to_owned();
    let [(not_fetched, why, _)] = &run.reports.not_fetched[..] else {
        panic!("{:?}", run.reports.not_fetched);
    };
    assert_eq!((not_fetched, *why), (&url, NotFetched::AddressForbidden));
}

#[test]
fn redirects_and_refreshes_are_resolved_as_links_are() {
    for (text, requested) in [
        ("///a.example/x", "/x"),
        ("////a.example/x", "/x"),
        ("\\\\a.example\\x", "/x"),
        ("/\\a.example/x", "/x"),
        ("http:///a.example/x", "/x"),
        ("http:x", "/x"),
        ("/x #e", "/x%20"),
        ("/C:/../x", "/x"),
        ("/\t/\t/a.example/x", "/x"),
    ] {
        let answers = [
            page(format!("<a href='{text}'></a>")),
            scripted::redirect(text),
            Response {
                refresh: Some(format!("0; url={text}")),
                ..page("")
            },
        ];
        for start in answers {
            let run = run(move |path, _| Ok(if path == "/" { start.clone() } else { page("") }));
            assert_eq!(run.paths(), ["/", requested], "{text:?}");
        }
    }
}

#[test]
fn a_redirect_to_an_uncrawlable_url_is_reported_in_a_short_message() {
    let run = run(|_, _| {
        Ok(Response {
            status: 302,
            location: Some(format!("mailto:{}@a.example", "ann".repeat(100_000))),
            ..Response::default()
        })
    });
    let failure = run.summary.counts.failures.first_failure.unwrap();
    assert!(failure.contains("302") && failure.contains("mailto:ann"), "{failure}");
    assert!(failure.len() < 500, "{} bytes", failure.len());
}

/// Serves each path with the result of a function; 404 if it returns `None`.
async fn server(answer: impl Fn(&str) -> Option<Vec<u8>> + Send + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 16 * 1024];
            let length = stream.read(&mut head).await.unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec();
            let found = answer(head.split(' ').nth(1).unwrap_or_default()).unwrap_or(missing);
            let _ = stream.write_all(&found).await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

fn http(headers: &[u8], body: &str) -> Vec<u8> {
    let mut answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\n".to_vec();
    answer.extend_from_slice(headers);
    answer.extend_from_slice(b"\r\n");
    answer.extend_from_slice(body.as_bytes());
    answer
}

async fn crawl(port: u16) -> Summary {
    let options = CrawlOptions {
        seeds: vec![format!("http://127.0.0.1:{port}/")],
        user_agent: "ourbot/1.0".to_owned(),
        frontier: FrontierConfig {
            politeness: PolitenessConfig {
                delay: Duration::ZERO,
                ..PolitenessConfig::default()
            },
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    };
    Crawl::new(options).unwrap().run().await.unwrap()
}

#[tokio::test]
async fn robots_tags_are_read_from_every_header_line_whatever_its_bytes() {
    let lines: [(&[u8], u64); 4] = [
        (
            b"Content-Type: text/html\r\nX-Robots-Tag: noarchive\r\nx-robots-tag: nofollow\r\n",
            1,
        ),
        (b"Content-Type: text/html\r\nX-Robots-Tag: noarchive\r\n", 3),
        // The value is in Latin-1 in one case, in UTF-8 in the other.
        (b"Content-Type: text/html\r\nX-Robots-Tag: caf\xe9, nofollow\r\n", 1),
        (b"Content-Type: text/html\r\nX-Robots-Tag: nofollow, caf\xc3\xa9\r\n", 1),
    ];
    for (headers, pages) in lines {
        let port = server(move |path| match path {
            "/" => Some(http(headers, TWO_LINKS)),
            "/1" | "/2" => Some(http(b"Content-Type: text/html\r\n", "")),
            _ => None,
        })
        .await;
        let summary = crawl(port).await;
        assert_eq!(summary.pages, pages, "{}", headers.escape_ascii());
    }
}

#[tokio::test]
async fn a_long_robots_txt_of_any_type_is_read() {
    let port = server(|path| match path {
        "/robots.txt" => {
            let long = "# nothing to see\n".repeat(20_000);
            let rules = format!("{long}User-agent: *\nDisallow: /1\n");
            // Without a length: the body ends with the connection.
            Some(http(b"Content-Type: application/octet-stream\r\n", &rules))
        }
        "/" => Some(http(b"Content-Type: text/html\r\n", TWO_LINKS)),
        _ => Some(http(b"Content-Type: text/html\r\n", "")),
    })
    .await;
    let summary = crawl(port).await;
    assert_eq!(summary.pages, 2);
    assert_eq!(summary.report.not_fetched[&NotFetched::RobotsForbid], 1);
}

#[tokio::test]
async fn the_type_of_a_page_is_read_leniently_and_by_its_bytes_where_it_says_nothing() {
    let xhtml = "<?xml version='1.0'?><!DOCTYPE html><html xmlns='http://www.w3.org/1999/xhtml'>";
    let typed = |kind: &str| format!("Content-Type: {kind}\r\n");
    let html = [
        (typed("text/html charset=utf-8"), ""),
        (typed("text/html,text/html"), ""),
        (typed("text/plain; x=\"a,b\", text/html; charset=utf-8"), ""),
        (typed("TEXT/HTML ; charset"), ""),
        (typed(""), "<!DOCTYPE html>"),
        (typed(" "), "<p>"),
        (typed("html"), "<html>"),
        (typed("text/html:"), "\n<table>"),
        (typed("unknown/unknown"), ""),
        (String::new(), "<!-- comment -->"),
        (typed("application/xml"), xhtml),
        (typed("text/xml; charset=utf-8"), xhtml),
        (typed("image/png") + &typed("text/html"), ""),
        (typed("text/html") + &typed("nonsense"), ""),
    ];
    let rss = "<?xml version='1.0'?><rss>";
    let other = [
        (typed("application/xml"), rss, "application/xml"),
        (typed("application/rss+xml"), rss, "application/rss+xml"),
        (typed("text/plain"), "<html>", "text/plain"),
        (
            typed("text/html") + &typed("Application/JSON; x=y"),
            "",
            "application/json",
        ),
        (typed(""), "\u{1}\0GIF", "no type"),
        (String::new(), "%PDF-1.7", "no type"),
    ];
    let count = html.len();
    let of_others = other.clone().map(|(head, body, _)| (head, body));
    let pages: Vec<_> = html.into_iter().chain(of_others).collect();
    let all = pages.len();
    let server = Server::start(move |request| {
        let target = request.target.trim_start_matches('/');
        let links: String = (0..all).map(|at| format!("<a href=/{at}>x</a>")).collect();
        Script::say(match target.parse().ok().and_then(|at: usize| pages.get(at)) {
            Some((head, body)) => answer("200 OK", head, format!("{body}<a href=/found{target}>x</a>")),
            None if target.is_empty() => html_page(links),
            None => html_page("end"),
        })
    })
    .await;
    let mut options = scripted::everywhere(&format!("http://127.0.0.1:{}/", server.port));
    options.frontier.politeness.ask_robots = false;
    let summary = crawl_over_http(options, HttpOptions::default()).await;
    let asked: Vec<_> = server.requests().into_iter().map(|request| request.target).collect();
    for at in 0..all {
        assert_eq!(asked.contains(&format!("/found{at}")), at < count, "{at}: {asked:?}");
    }
    let mut by_type = BTreeMap::new();
    other
        .iter()
        .for_each(|(_, _, name)| *by_type.entry((*name).to_owned()).or_default() += 1);
    assert_eq!(summary.failures.not_html, by_type);
    let shown = summary.to_string();
    assert!(
        shown.contains("  not HTML          application/json: 1, application/rss+xml: 1,"),
        "{shown}"
    );
    assert_eq!(summary.to_json(str::to_owned)["not_html"]["no type"], 2);
}
