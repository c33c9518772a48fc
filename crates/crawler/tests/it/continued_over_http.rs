//! Crawls over HTTP that are continued: what the fetcher knows of earlier runs holds, and nothing more.

use crate::folder::Folder;
use crate::hostile::server::{ReceivedRequest, Script, Server, html, page};
use crate::scripted::everywhere;
use crawler::fetch::CookieFile;
use crawler::{Crawl, HttpOptions, Summary};
use frontier::NotFetched;

impl Folder {
    /// Runs a crawl until it has this many pages in all its runs, or nothing is left.
    async fn run_over_http(&self, seeds: &[String], pages: u64, http: HttpOptions) -> Summary {
        let mut options = everywhere("");
        options.seeds = seeds.to_vec();
        options.frontier.politeness.ask_robots = false;
        options.frontier.limits.max_pages = Some(pages);
        let crawl = Crawl::builder(options)
            .unwrap()
            .http(http)
            .state_dir(self.state())
            .build()
            .unwrap();
        crawl.run().await.unwrap()
    }
}

const ALL: u64 = 1000;

fn targets(server: &Server) -> Vec<String> {
    let mut targets: Vec<String> = server.requests().into_iter().map(|request| request.target).collect();
    targets.sort();
    targets
}

/// A site whose first page links to two more of it, and to a page of another origin.
async fn site(other: u16) -> Server {
    Server::start(move |request| {
        let host = request.host.split(':').next().unwrap_or_default();
        Script::say(match request.target.as_str() {
            "/" => html(format!(
                "<a href=/1>1</a><a href=/2>2</a><a href=http://{host}:{other}/inside>o</a>"
            )),
            _ => html("end"),
        })
    })
    .await
}

#[tokio::test]
async fn private_seeds_of_earlier_runs_stay_allowed_and_open_no_other_origin() {
    for (name, old, new) in [
        ("addresses", "127.0.0.1", "127.0.0.1"),
        ("names", "a.localhost", "b.localhost"),
    ] {
        let inside = Server::start(|_| Script::say(html("inside"))).await;
        let (first, second) = (site(inside.port).await, site(inside.port).await);
        let seeds = [
            format!("http://{old}:{}/", first.port),
            format!("http://{new}:{}/", second.port),
        ];
        let state = Folder::new(&format!("seeds-{name}"));
        state.run_over_http(&seeds[..1], 1, HttpOptions::default()).await;
        assert_eq!(targets(&first), ["/"]);
        // A run over a seed of its own, and one that knows the first seed from the second run only.
        state.run_over_http(&seeds[1..], 2, HttpOptions::default()).await;
        let summary = state.run_over_http(&seeds[1..], ALL, HttpOptions::default()).await;
        assert_eq!(targets(&first), ["/", "/1", "/2"], "{name}: {summary}");
        assert_eq!(targets(&second), ["/", "/1", "/2"], "{name}: {summary}");
        let forbidden = summary.report.not_fetched.get(&NotFetched::AddressForbidden);
        let other_origins = if old == new { 1 } else { 2 };
        assert_eq!(forbidden, Some(&other_origins), "{name}: {summary}");
        assert_eq!(targets(&inside), Vec::<String>::new());
    }
}

/// A site that sets a cookie on its first page, and the value of this cookie in each request.
async fn site_with_cookie() -> Server {
    Server::start(|request| {
        Script::say(match request.target.as_str() {
            "/" => page(
                "200 OK",
                "Content-Type: text/html\r\nSet-Cookie: id=rotated; Path=/\r\n",
                "<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a><a href=/4>4</a>",
            ),
            _ => html("end"),
        })
    })
    .await
}

fn cookies(server: &Server) -> Vec<String> {
    let header = |request: &ReceivedRequest| {
        let header = request.head.lines().find_map(|line| line.strip_prefix("cookie: "));
        header.unwrap_or("none").to_owned()
    };
    server.requests().iter().map(header).collect()
}

fn with_file(text: &str) -> HttpOptions {
    HttpOptions {
        cookie_file: Some(CookieFile::parse(text, "c.txt").unwrap()),
        ..HttpOptions::default()
    }
}

/// A file with this value of the cookie of the site.
fn file(value: &str) -> HttpOptions {
    with_file(&format!("127.0.0.1\tFALSE\t/\tFALSE\t0\tid\t{value}\n"))
}

#[tokio::test]
async fn a_cookie_file_that_was_changed_wins_over_the_cookies_of_earlier_runs() {
    let (server, state) = (site_with_cookie().await, Folder::new("changed-cookies"));
    let seeds = [format!("http://127.0.0.1:{}/", server.port)];
    state.run_over_http(&seeds, 1, file("old")).await;
    // With the same file, the site has replaced its cookie since.
    state.run_over_http(&seeds, 2, file("old")).await;
    state.run_over_http(&seeds, 3, file("fresh")).await;
    state.run_over_http(&seeds, ALL, file("fresh")).await;
    let sent = ["id=old", "id=rotated", "id=fresh", "id=fresh", "id=fresh"];
    assert_eq!(cookies(&server), sent);
}

#[tokio::test]
async fn the_first_cookie_file_of_a_crawl_that_has_cookies_is_read() {
    let (server, state) = (site_with_cookie().await, Folder::new("first-cookies"));
    let seeds = [format!("http://127.0.0.1:{}/", server.port)];
    let only_kept = HttpOptions {
        cookies: true,
        ..HttpOptions::default()
    };
    state.run_over_http(&seeds, 2, only_kept).await;
    state.run_over_http(&seeds, ALL, file("login")).await;
    let sent = ["none", "id=rotated", "id=login", "id=login", "id=login"];
    assert_eq!(cookies(&server), sent);
}

#[tokio::test]
async fn a_run_without_cookies_keeps_those_of_earlier_runs_for_later_ones() {
    let (server, state) = (site_with_cookie().await, Folder::new("unused-cookies"));
    let seeds = [format!("http://127.0.0.1:{}/", server.port)];
    state.run_over_http(&seeds, 1, file("old")).await;
    let other = Server::start(|_| Script::say(html("end"))).await;
    let both = [seeds[0].clone(), format!("http://new.localhost:{}/", other.port)];
    // The new name is looked up, so what the fetcher keeps is written anew.
    state.run_over_http(&both, 3, HttpOptions::default()).await;
    assert_eq!(targets(&other), ["/"]);
    state.run_over_http(&both, ALL, file("old")).await;
    let sent = cookies(&server);
    assert!(sent[..2] == ["id=old", "none"], "{sent:?}");
    assert!(sent[2..].iter().all(|cookie| cookie == "id=rotated"), "{sent:?}");
}
